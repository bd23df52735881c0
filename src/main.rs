//! The `fsgauge` command: dispatch, one error line, an exit code.

mod cli;

fn main() -> std::process::ExitCode {
    // Process 1 of a guest; its arguments are what the kernel did not know of its own.
    if std::process::id() == 1 && std::env::args_os().next().is_some_and(|name| name == fsgauge::vm::plan::INIT) {
        fsgauge::vm::guest::main();
    }
    fsgauge::workload::writers::run_if_asked();
    fsgauge::sys::broken_pipe::end_quietly();
    cli::main()
}
