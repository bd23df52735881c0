//! What must be undone however a run ends: work directories and background writers.
//!
//! Rust runs no destructors on a signal, so a thread of its own waits for them, removes what was made and exits.

use crate::workload::writers;
use signal_hook::consts::{SIGHUP, SIGINT, SIGPIPE, SIGTERM};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The file in a work directory that says it is ours.
pub const MARKER: &str = "fsgauge-made-this-directory";

static DIRECTORIES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Held while the target is unmounted, so that no exit happens between umount(2) and mount(2).
static MOUNTED: Mutex<()> = Mutex::new(());

fn lock<T>(mutex: &'static Mutex<T>) -> MutexGuard<'static, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Registers a directory that is to be removed at the end.
pub fn register(directory: &Path) {
    lock(&DIRECTORIES).push(directory.to_owned());
}

/// No signal ends the process while the guard lives.
pub fn hold_exit() -> MutexGuard<'static, ()> {
    lock(&MOUNTED)
}

/// Ends writers and removes every registered directory. Returns the directories that could not be removed.
pub fn clean_up() -> Vec<PathBuf> {
    writers::kill_all();
    let mut left = Vec::new();
    for directory in lock(&DIRECTORIES).drain(..) {
        if directory.exists() && remove_work_directory(&directory).is_err() {
            left.push(directory);
        }
    }
    left
}

/// Removes a work directory, its marker last, so that one half removed is still known as ours.
pub fn remove_work_directory(directory: &Path) -> std::io::Result<()> {
    // Another thread may still be in the middle of creating a file in it: renamed first, it can create no more.
    let name = directory.file_name().unwrap_or_default().to_string_lossy();
    let doomed = directory.with_file_name(format!("{name}-removed"));
    let directory = if std::fs::rename(directory, &doomed).is_ok() { &doomed } else { directory };
    let mut attempts = 0;
    loop {
        match empty_but_for_marker(directory).and_then(|()| {
            let _ = std::fs::remove_file(directory.join(MARKER));
            std::fs::remove_dir(directory)
        }) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound && attempts < 20 => attempts += 1,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            result => return result,
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// Removes everything in a work directory but its marker.
pub fn empty_but_for_marker(directory: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_name() == MARKER {
            continue;
        }
        if entry.file_type()?.is_dir() {
            std::fs::remove_dir_all(entry.path())?;
        } else {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Starts the thread that waits for SIGINT, SIGTERM, SIGHUP and SIGPIPE, and the hook that turns a panic of ours or of
/// criterion's into one line. Both clean up first.
pub fn watch_signals() -> crate::Result<()> {
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP, SIGPIPE])
        .map_err(|error| crate::Error::failed(format!("cannot watch for signals: {error}")))?;
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            let _mounted = hold_exit();
            report(&clean_up());
            std::process::exit(128 + signal);
        }
    });
    std::panic::set_hook(Box::new(|panic| {
        let text = panic.payload_as_str().unwrap_or("unknown cause").lines().next().unwrap_or_default();
        // A reader that went away (`| head`) is no fault of the run: SIGPIPE's own status.
        let status = if text.contains("Broken pipe") { 128 + SIGPIPE } else { 1 };
        if status == 1 {
            let place = panic.location().map(|place| format!(" at {}:{}", place.file(), place.line()));
            eprintln!("fsgauge: internal error: {text}{}; please report it", place.unwrap_or_default());
        }
        report(&clean_up());
        std::process::exit(status);
    }));
    Ok(())
}

fn report(left: &[PathBuf]) {
    for directory in left {
        eprintln!("fsgauge: could not remove {}; the next run on that path will", directory.display());
    }
}
