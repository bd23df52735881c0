//! What must be undone however a run ends: work directories and background writers.
//!
//! Rust runs no destructors on a signal, so a thread of its own waits for them, removes what was made and exits.

use crate::say;
use crate::workload::writers;
use signal_hook::consts::{SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTERM, SIGXFSZ};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;

/// The file in a work directory that says it is ours.
pub const MARKER: &str = "fsgauge-made-this-directory";

static DIRECTORIES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// The thread that ends the process.
static ENDING: Mutex<Option<ThreadId>> = Mutex::new(None);

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
///
/// Call it to end the process. The first thread that does decides how it ends: any other waits here for that, so that a
/// benchmark whose files are being removed after a signal does not report that they are gone.
pub fn clean_up() -> Vec<PathBuf> {
    let own = std::thread::current().id();
    while *lock(&ENDING).get_or_insert(own) != own {
        std::thread::park();
    }
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

/// Starts the thread that waits for SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGPIPE, cleans up and exits.
///
/// SIGXFSZ (`ulimit -f`) does nothing from here on: the write that met the limit says EFBIG.
pub fn watch_signals() -> crate::Result<()> {
    let failed = |error| crate::Error::failed(format!("cannot watch for signals: {error}"));
    let mut signals =
        signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE]).map_err(failed)?;
    signal_hook::flag::register(SIGXFSZ, Arc::default()).map_err(failed)?;
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            let _mounted = hold_exit();
            report(&clean_up());
            if let (true, Some(name)) = (signal != SIGPIPE, signal_hook::low_level::signal_name(signal)) {
                // Below the line that criterion may have begun.
                let _ = std::io::stderr().write_all(b"\n");
                say::line(format_args!("{name}: ended; benchmarks that had finished are kept"));
            }
            std::process::exit(128 + signal);
        }
    });
    Ok(())
}

/// Turns a panic of ours or of criterion's into one line, cleans up and exits with 1.
pub fn catch_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let payload = panic.payload();
        let text = payload.downcast_ref::<&str>().copied().or(payload.downcast_ref::<String>().map(String::as_str));
        let text = text.and_then(|text| text.lines().next()).unwrap_or("unknown cause");
        let place = panic.location().map(|place| format!(" at {}:{}", place.file(), place.line())).unwrap_or_default();
        let mut status = 1;
        // Written, not printed: stderr may be what failed.
        match text.strip_prefix("failed printing to ") {
            // A reader that went away (`| head`) is no fault of the run: SIGPIPE's own status.
            Some(why) if why.contains("Broken pipe") => status = 128 + SIGPIPE,
            Some(why) => say::line(format_args!("cannot write to {why}")),
            None => say::line(format_args!("internal error: {text}{place}; please report it")),
        }
        report(&clean_up());
        std::process::exit(status);
    }));
}

fn report(left: &[PathBuf]) {
    for directory in left {
        let left = directory.display();
        say::line(format_args!("could not remove {left}; the next run on that path will"));
    }
}
