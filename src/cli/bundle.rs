//! `fsgauge bundle FILE`.

use clap::Args;
use fsgauge::target::{bundle, run};
use fsgauge::{say, units};
use std::path::PathBuf;
use std::process::ExitCode;

/// Pack an archive that runs on a test machine without Rust.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fsgauge bundle fsgauge.tar.gz
  scp fsgauge.tar.gz test-machine: && ssh test-machine 'tar xf fsgauge.tar.gz && ./fsgauge run --target ext4'

The archive holds `fsgauge`, `benches/` and `target-config/`, linked statically for this machine's architecture. Results
go to ./criterion there (CRITERION_HOME). The test machine needs the mkfs programs alone; a chroot also /proc and /dev.

Exit status: 0 packed, 1 it could not be built or written, 2 refused.")]
pub struct Arguments {
    /// The archive: NAME.tar.gz, NAME.tgz or NAME.tar.
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// Runs the subcommand.
pub fn run(arguments: Arguments) -> ExitCode {
    match bundle::bundle(&arguments.file) {
        Ok(bundle) => {
            say!(
                "packed {} files, {}, in {}",
                bundle.content.len(),
                units::format_size(bundle.size_bytes),
                bundle.path.display()
            );
            ExitCode::SUCCESS
        }
        Err(error) => {
            say!("{error}");
            ExitCode::from(run::status_of(&error))
        }
    }
}
