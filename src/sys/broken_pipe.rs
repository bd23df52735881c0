//! What happens when nobody reads our output any more: signal(2) SIGPIPE. Layer 1.

use nix::sys::signal::{SigHandler, Signal, signal};

/// `signal(SIGPIPE, SIG_DFL)` - lets the process end quietly when the reader of its output has gone (`fsgauge … | head`).
///
/// Rust starts programs with SIGPIPE ignored, and then printing to a closed pipe is a panic.
pub fn end_quietly() {
    // SAFETY: SIG_DFL installs no handler, so nothing of ours can run in signal context. It cannot fail for SIGPIPE;
    // if it did, the old behaviour would remain.
    let _ = unsafe { signal(Signal::SIGPIPE, SigHandler::SigDfl) };
}
