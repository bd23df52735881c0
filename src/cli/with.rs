//! `fsgauge with TARGET… -- COMMAND…`.

use clap::Args;
use fsgauge::target::plan::{self, Wishes};
use fsgauge::target::{catalog, with};
use fsgauge::{Result, say, units};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// Make filesystems, run a command in them, take them down.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fsgauge with ext4 -- cargo bench
  fsgauge with ext4-1k xfs-1k -- sh -c 'echo $FSGAUGE_PATH; df -h'
  fsgauge with old=ext4 new=./my-ext4.toml -- cargo bench -- preallocation
  fsgauge with ext4 --device /dev/nvme1n1p2 -- bash

COMMAND sees FSGAUGE_PATH=LABEL=PATH, several separated by `:`. The mounts are in a private mount namespace: nothing is
visible outside, and nothing is left when fsgauge or COMMAND ends, by SIGKILL too.

Exit status: COMMAND's own; 125 if fsgauge itself failed, 126 if COMMAND cannot be run, 127 if it is not found, 128 + n if
signal n ended it.")]
pub struct Arguments {
    /// [LABEL=]TARGET: a name (see `fsgauge targets`) or a .toml file.
    #[arg(required = true, value_name = "TARGET")]
    targets: Vec<String>,
    #[command(flatten)]
    making: Making,
    /// The command and its arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// How targets are made; shared by `with` and `run`.
#[derive(Args)]
pub struct Making {
    /// Block device to format for a target; with several targets LABEL=DEVICE. May be repeated.
    #[arg(long = "device", value_name = "[LABEL=]DEVICE")]
    devices: Vec<String>,
    /// Give up what is there: what blkid finds on a --device (and, in `run`, rounds saved under the same name).
    #[arg(long)]
    pub overwrite: bool,
    /// Size of images and of tmpfs, instead of the targets' own.
    #[arg(long, value_name = "SIZE", value_parser = units::parse_size)]
    size: Option<u64>,
    /// Directory for image files [default: cargo's target directory here, else /var/tmp].
    #[arg(long, value_name = "DIR")]
    image_dir: Option<PathBuf>,
    /// Keep images in memory: no disk is measured, and nothing is cold below the filesystem.
    #[arg(long)]
    in_memory: bool,
}

impl Making {
    /// The same in the library's words.
    pub fn wishes(&self) -> Wishes {
        Wishes {
            devices: self.devices.clone(),
            overwrite: self.overwrite,
            size_bytes: self.size,
            image_folder: self.image_dir.clone(),
            in_memory: self.in_memory,
        }
    }
}

/// Runs the subcommand.
pub fn run(arguments: Arguments) -> ExitCode {
    match try_run(&arguments) {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            say!("{error}");
            ExitCode::from(fsgauge::target::supervise::OWN_FAILURE)
        }
    }
}

fn try_run(arguments: &Arguments) -> Result<u8> {
    let targets = catalog::resolve_all(&arguments.targets)?;
    let plans = plan::plan(targets, &arguments.making.wishes())?;
    with::with(&plans, &arguments.command)
}
