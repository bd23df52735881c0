//! A child process that cannot outlive its parent. Layer 1.

use crate::{Error, Result};
use nix::sys::signal::Signal;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command};

/// Starts a command that the kernel kills when the calling *thread* ends, SIGKILL of this process included
/// (PR_SET_PDEATHSIG, prctl(2)). The thread must therefore be the one that waits for the child.
///
/// The child leads a process group of its own: a Ctrl-C reaches this process alone, which ends the child in its own order.
///
/// Errors: the program cannot be started.
pub fn spawn_bound(command: &mut Command) -> Result<Child> {
    let parent = nix::unistd::getpid();
    let die_with_parent = move || {
        nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).map_err(std::io::Error::from)?;
        // The parent may have died before the request took.
        if nix::unistd::getppid() == parent { Ok(()) } else { Err(std::io::ErrorKind::NotFound.into()) }
    };
    command.process_group(0);
    // SAFETY: between fork and exec the closure makes two system calls and allocates nothing.
    unsafe { command.pre_exec(die_with_parent) };
    command.spawn().map_err(|e| Error::io("run", Path::new(command.get_program()), &e))
}
