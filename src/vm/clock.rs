//! Which clock a guest runs on, and whether KVM is usable: tried, since /dev/kvm can exist and hang.

use super::virtme::Tools;
use crate::sys::child::spawn_bound;
use crate::{Error, Result};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::os::fd::AsFd as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The clock of a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// A nanosecond is one instruction of the one virtual CPU; idle time is skipped.
    Instructions,
    /// Real time, under KVM where it works.
    Wall,
}

impl Clock {
    /// As the user writes it and as it is recorded.
    pub fn name(self) -> &'static str {
        match self {
            Clock::Instructions => "instructions",
            Clock::Wall => "wall",
        }
    }

    /// What every report made with it says.
    pub fn remark(self) -> &'static str {
        match self {
            Clock::Instructions => {
                "measured in a VM with the instruction clock: one nanosecond is one instruction of one virtual CPU plus a modelled disk; \
                 cache misses, lock contention across CPUs and real devices are not seen"
            }
            Clock::Wall => "measured in a VM in real time: as noisy as the host, with a modelled disk",
        }
    }
}

/// How long a firmware that runs takes to say its first word: it is the first thing a virtual CPU does.
const KVM_PATIENCE: Duration = Duration::from_secs(5);

/// Boots nothing but the firmware under KVM and waits for its first byte on the debug port.
///
/// Returns whether it came. Errors: QEMU cannot be started.
pub fn kvm_is_usable(tools: &Tools) -> Result<bool> {
    // Without the right to open it QEMU would only say so.
    if std::fs::OpenOptions::new().read(true).write(true).open("/dev/kvm").is_err() {
        return Ok(false);
    }
    let mut command = Command::new(&tools.qemu);
    command.args(["-accel", "kvm", "-machine", "q35", "-nodefaults", "-display", "none", "-m", "64", "-no-reboot"]);
    command.args(["-chardev", "stdio,id=firmware", "-device", "isa-debugcon,iobase=0x402,chardev=firmware"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = spawn_bound(&mut command)?;
    let spoke = match &child.stdout {
        Some(output) => {
            let begin = Instant::now();
            let patience = PollTimeout::try_from(KVM_PATIENCE).unwrap_or(PollTimeout::MAX);
            let mut descriptors = [PollFd::new(output.as_fd(), PollFlags::POLLIN)];
            let ready = poll(&mut descriptors, patience).is_ok_and(|n| n > 0);
            // A QEMU that gave up closes the pipe: ready, but with nothing in it.
            let bytes = descriptors[0].revents().is_some_and(|events| events.contains(PollFlags::POLLIN));
            ready && bytes && begin.elapsed() < KVM_PATIENCE
        }
        None => false,
    };
    // Already gone is as good as killed.
    let _gone = child.kill();
    child.wait().map_err(|e| Error::io("wait for", &tools.qemu, &e))?;
    Ok(spoke)
}
