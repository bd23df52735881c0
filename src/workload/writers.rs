//! Background writers: processes of their own that keep the disk busy while something else is measured. Layer 2.
//!
//! A writer is this executable again with a hidden first argument, so that it shares nothing with the process that measures
//! and dies by itself with it, SIGKILL included (PR_SET_PDEATHSIG). Each writes one file of a bounded size for ever: from the
//! beginning to the end in writes of 16 KiB, fdatasync, cut to nothing, again. It says `ready` once its file was on the disk
//! for the first time and waits until all are; its standard input is then closed, and all go on together. After its next write
//! it says `writing`: what is measured against the writers begins when all have said so, and they are under load from its first
//! call on.
//!
//! Where each had gone on by itself, what a short walk met first hung on how far the others had come when the last was ready: on
//! ext4 most were writing, or all waited for one journal commit, and a readdir took 6.6 or 6.2 µs. Where the walk began when they
//! were let go, on one processor they wrote nothing while it went on: they cut their files (docs/VM.md).
//!
//! Space: a filesystem may give the blocks of a file that was cut back only with its next transaction, so allow for twice
//! `count * file_bytes`.

mod process;

pub use process::run_if_asked;

use crate::sys::process_io;
use crate::{Error, Result, record};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long all writers together may take until the first pass of each is on the disk and the second begun. Six files of 64 MiB
/// at 3.2 MB/s, the rate of a slow memory card.
const READY_LIMIT: Duration = Duration::from_secs(120);

/// How long a writer whose pipe is closed may take to be dead.
const GOING_LIMIT: Duration = Duration::from_millis(500);

/// How long a killed writer may take to go. It can be held by a write that the kernel does not interrupt.
const EXIT_LIMIT: Duration = Duration::from_secs(30);

/// Every writer of this process that may still run.
static RUNNING: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// Kills all writers of this process at once, and waits up to a second until they are dead, so that none makes a file any more
/// in a directory that is then removed. For a thread that cleans up after a signal; may be called at any time.
pub fn kill_all() {
    let running = running();
    for id in running.iter() {
        send(*id, Signal::SIGKILL);
    }
    let deadline = Instant::now() + Duration::from_secs(1);
    while running.iter().any(|id| !is_dead(*id)) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Whether a child has ended. It is left to be reaped by whoever started it.
fn is_dead(id: u32) -> bool {
    let Ok(id) = i32::try_from(id) else { return true };
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT | WaitPidFlag::WNOHANG;
    !matches!(waitid(Id::Pid(Pid::from_raw(id)), flags), Ok(WaitStatus::StillAlive))
}

/// Writers at work. Dropped without [`Writers::stop`], they are killed and their files removed.
pub struct Writers {
    writers: Vec<Writer>,
}

struct Writer {
    child: Child,
    file: PathBuf,
    lines: Receiver<String>,
}

impl Writers {
    /// Starts `count` writers on files of `file_bytes` in `directory`, waits until each has written its file once and synced
    /// it, lets them go on together, and waits until each has written again. Zero writers are none, and wrote zero bytes.
    ///
    /// Call it from a thread that lives as long as they shall: the kernel kills them when the thread that started them ends.
    /// The executable must call [`run_if_asked`] first thing in its `main`.
    pub fn start(directory: &Path, count: u32, file_bytes: u64, seed: u64) -> Result<Self> {
        Self::start_from(Path::new("/proc/self/exe"), directory, count, file_bytes, seed)
    }

    /// [`Writers::start`] with another executable than this process's own, for one whose `main` is not ours.
    pub fn start_from(executable: &Path, directory: &Path, count: u32, file_bytes: u64, seed: u64) -> Result<Self> {
        if count > 0 && file_bytes == 0 {
            return Err(Error::refused("background writers on files of 0 bytes would write nothing"));
        }
        let mut writers = Writers { writers: Vec::new() };
        for index in 0..count {
            writers.writers.push(Writer::start(executable, directory, index, file_bytes, seed)?);
        }
        let deadline = Instant::now() + READY_LIMIT;
        writers.all_say(process::READY, deadline)?;
        // Closed: all go on.
        writers.writers.iter_mut().for_each(|writer| drop(writer.child.stdin.take()));
        writers.all_say(process::WRITING, deadline)?;
        Ok(writers)
    }

    fn all_say(&mut self, line: &str, deadline: Instant) -> Result<()> {
        for writer in &mut self.writers {
            if writer.line_until(deadline).as_deref() != Some(line) {
                let limit = READY_LIMIT.as_secs();
                return Err(writer.silence(&format!("had not written its file once and begun again within {limit} s")));
            }
        }
        Ok(())
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        self.writers.len() as u32
    }

    /// Checks that all are at work. Errors: the writer that is not, how it ended, and what it said.
    pub fn check(&mut self) -> Result<()> {
        for writer in &mut self.writers {
            if let Some(error) = writer.death()? {
                return Err(error);
            }
        }
        Ok(())
    }

    /// Does `work`, and says what the writers wrote meanwhile. Errors: those of `work`, and a writer that has died.
    pub fn during<T>(&mut self, work: impl FnOnce() -> Result<T>) -> Result<(T, record::Writers)> {
        let before = self.bytes_written()?;
        let begun = Instant::now();
        let done = work()?;
        let seconds = begun.elapsed().as_secs_f64();
        let bytes_written = self.bytes_written()? - before;
        let bytes_per_second = bytes_written as f64 / seconds;
        Ok((done, record::Writers { count: self.count(), bytes_written, bytes_per_second }))
    }

    /// Bytes of all writes that have returned so far. Errors: a writer that has died.
    fn bytes_written(&mut self) -> Result<u64> {
        self.check()?;
        self.writers.iter().map(|writer| process_io::bytes_given_to_write(writer.child.id())).sum()
    }

    /// Ends them and removes their files. Errors: a writer that had died before.
    pub fn stop(mut self) -> Result<()> {
        self.check()?;
        self.kill();
        self.writers.iter_mut().try_for_each(Writer::end)
    }

    fn kill(&self) {
        for writer in &self.writers {
            if running().contains(&writer.child.id()) {
                send(writer.child.id(), Signal::SIGKILL);
            }
        }
    }
}

impl Drop for Writers {
    fn drop(&mut self) {
        self.kill();
        for writer in &mut self.writers {
            // Nobody is left to tell; a process that does not go even now is removed by the kernel when it can.
            let _ = writer.end();
        }
    }
}

impl Writer {
    fn start(executable: &Path, directory: &Path, index: u32, file_bytes: u64, seed: u64) -> Result<Self> {
        let file = directory.join(format!("writer-{index}"));
        let mut running = running();
        let mut child = Command::new(executable)
            .args(process::arguments(&file, seed.wrapping_add(u64::from(index)), file_bytes))
            // Ctrl-C goes to the process that measures, which stops its writers, and not past it to them.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| Error::io("start a background writer from", executable, &error))?;
        running.push(child.id());
        drop(running);
        let (sender, lines) = channel();
        let output = child.stdout.take();
        // Ends with the writer: its end of the pipe is then closed.
        std::thread::spawn(move || {
            let lines = output.into_iter().flat_map(|output| BufReader::new(output).lines());
            lines.map_while(std::result::Result::ok).try_for_each(|line| sender.send(line))
        });
        Ok(Writer { child, file, lines })
    }

    /// The next line that the writer says; none after the deadline or its end.
    fn line_until(&self, deadline: Instant) -> Option<String> {
        self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())).ok()
    }

    /// Why the writer is not at work any more, if it is not.
    fn death(&mut self) -> Result<Option<Error>> {
        let Some(status) = self.reap()? else { return Ok(None) };
        let mut said = String::new();
        if let Some(mut stream) = self.child.stderr.take() {
            // What it said is an addition to its status; without it the status is reported alone.
            let _ = stream.read_to_string(&mut said);
        }
        let said = said.lines().next().map(|line| format!(": {line}")).unwrap_or_default();
        Ok(Some(self.failed(&format!("died ({status}){said}"))))
    }

    /// Why the writer did not say what it should have: it died, or `what`. A writer's pipe closes just before it is dead.
    fn silence(&mut self, what: &str) -> Error {
        let deadline = Instant::now() + GOING_LIMIT;
        while Instant::now() < deadline {
            match self.death() {
                Ok(None) => std::thread::sleep(Duration::from_millis(2)),
                Ok(Some(error)) | Err(error) => return error,
            }
        }
        self.failed(what)
    }

    fn failed(&self, what: &str) -> Error {
        Error::failed(format!("background writer on {} {what}", self.file.display()))
    }

    /// Waits for the end of a writer that was killed, and removes its file.
    fn end(&mut self) -> Result<()> {
        let started = Instant::now();
        while self.reap()?.is_none() {
            if started.elapsed() > EXIT_LIMIT {
                return Err(self
                    .failed(&format!("is still there {} s after SIGKILL", EXIT_LIMIT.as_secs()))
                    .hint("the kernel holds it in a write; see the kernel log"));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        match std::fs::remove_file(&self.file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::io("remove", &self.file, &error)),
            _ => Ok(()),
        }
    }

    /// The writer's status once it has ended. Taken off the list of the running under its lock, so that [`kill_all`] never
    /// sends a signal to a number that the kernel has given to somebody else.
    fn reap(&mut self) -> Result<Option<std::process::ExitStatus>> {
        let mut running = running();
        let status = self.child.try_wait().map_err(|error| Error::io("wait for the writer on", &self.file, &error))?;
        if status.is_some() {
            running.retain(|id| *id != self.child.id());
        }
        Ok(status)
    }
}

fn running() -> MutexGuard<'static, Vec<u32>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A process that is gone already has what the signal was for.
fn send(id: u32, signal: Signal) {
    if let Ok(id) = i32::try_from(id) {
        let _ = kill(Pid::from_raw(id), signal);
    }
}
