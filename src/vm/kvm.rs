//! Whether KVM is usable: tried, since /dev/kvm can exist and hang.

use super::virtme::{Tools, kvm_trial};
use crate::sys::child::spawn_bound;
use crate::{Error, Result};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io::Read as _;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::{ChildStdout, Stdio};
use std::time::{Duration, Instant};

/// How long a kernel that runs takes to its first line, with much to spare: it unpacks itself in a second or two.
const KVM_PATIENCE: Duration = Duration::from_secs(15);
/// The first line of every kernel.
const FIRST_WORDS: &str = "Linux version";

/// Boots the kernel under KVM, with nothing to boot into, and waits for its first line. Firmware alone is no proof:
/// under a host that only half supports nesting it runs, and the kernel hangs.
///
/// Returns whether the line came. Errors: QEMU cannot be started.
pub fn kvm_is_usable(tools: &Tools, image: &Path) -> Result<bool> {
    // Without the right to open it QEMU would only say so.
    if std::fs::OpenOptions::new().read(true).write(true).open("/dev/kvm").is_err() {
        return Ok(false);
    }
    let mut command = kvm_trial(tools, image);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = spawn_bound(&mut command)?;
    let spoke = child.stdout.as_mut().is_some_and(|output| says(output, FIRST_WORDS, KVM_PATIENCE));
    // Already gone is as good as killed.
    let _gone = child.kill();
    child.wait().map_err(|e| Error::io("wait for", &tools.qemu, &e))?;
    Ok(spoke)
}

/// Reads a pipe until the words come, it is closed, or the time is over.
fn says(output: &mut ChildStdout, words: &str, patience: Duration) -> bool {
    let deadline = Instant::now() + patience;
    let mut heard = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
        let mut descriptors = [PollFd::new(output.as_fd(), PollFlags::POLLIN)];
        if left.is_zero() || !poll(&mut descriptors, timeout).is_ok_and(|ready| ready > 0) {
            return false;
        }
        match output.read(&mut buffer) {
            Ok(0) | Err(_) => return false,
            Ok(read) => heard.extend_from_slice(&buffer[..read]),
        }
        if String::from_utf8_lossy(&heard).contains(words) {
            return true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hears(script: &str) -> (bool, Duration) {
        let begin = Instant::now();
        let mut command = std::process::Command::new("sh");
        let mut child = spawn_bound(command.args(["-c", script]).stdout(Stdio::piped())).unwrap();
        let heard = child.stdout.as_mut().is_some_and(|output| says(output, FIRST_WORDS, Duration::from_millis(500)));
        child.kill().unwrap();
        child.wait().unwrap();
        (heard, begin.elapsed())
    }

    #[test]
    fn a_machine_that_speaks_is_usable_and_one_that_hangs_or_dies_is_not() {
        assert!(hears("echo SeaBIOS; echo '[ 0.0] Linux version 6.1'; exec sleep 100").0);
        let (heard, took) = hears("echo SeaBIOS; exec sleep 100");
        assert!(!heard && took < Duration::from_secs(5), "{took:?}");
        assert!(!hears("echo SeaBIOS").0);
    }
}
