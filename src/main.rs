//! The `fsgauge` command: dispatch, one error line, an exit code.

mod cli;

fn main() -> std::process::ExitCode {
    fsgauge::workload::writers::run_if_asked();
    fsgauge::sys::broken_pipe::end_quietly();
    cli::main()
}
