//! Runs one machine: starts QEMU, follows its console, ends it when it no longer gets anywhere.

use crate::sys::child::spawn_bound;
use crate::{Error, Result};
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How a machine ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// QEMU ended by itself: power-off, or reset after a panic. Its exit status, or 128 + the signal.
    ByItself(i32),
    /// Nothing was said on the console for that long.
    Silent(Duration),
    /// Its virtual CPU did nothing at all for that long: it waits for something that will never come.
    Idle(Duration),
    /// This process was asked to end, by this signal.
    Interrupted(usize),
}

/// When a machine counts as hanging. Both are measured from its last sign of life, not from its start.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// Longest silence on the console. The guest says a line at least for each benchmark.
    pub silence: Duration,
    /// Longest time without any CPU time used by QEMU. Idle time is skipped by the instruction clock, so a working
    /// guest is never idle for seconds.
    pub idle: Duration,
}

const POLL: Duration = Duration::from_millis(100);

/// Runs a machine to its end. QEMU dies with the calling thread.
///
/// `console` is the file its console goes to; `stop` holds the number of a signal that asks this process to end, 0 for
/// none; `on_line` gets each line of the console.
///
/// Errors: QEMU cannot be started, or its console not be read.
pub fn run(
    command: &[String],
    console: &Path,
    patience: Patience,
    stop: &AtomicUsize,
    on_line: &mut dyn FnMut(&str),
) -> Result<Ended> {
    let Some((program, arguments)) = command.split_first() else {
        return Err(Error::failed("there is no command line for QEMU"));
    };
    let failed = |e: &std::io::Error| Error::io("write the console to", console, e);
    let output = File::create(console).map_err(|e| failed(&e))?;
    let also = output.try_clone().map_err(|e| failed(&e))?;
    let mut qemu = Command::new(program);
    // virtme-ng sends the console to stderr, QEMU's own complaints go there too.
    qemu.args(arguments).stdin(Stdio::null()).stdout(also).stderr(output);
    let mut child = spawn_bound(&mut qemu)?;
    let ended = follow(&mut child, console, patience, stop, on_line);
    if !matches!(ended, Ok(Ended::ByItself(_))) {
        // Already gone is as good as killed.
        let _gone = child.kill();
        let _status = child.wait();
    }
    ended
}

fn follow(
    child: &mut Child,
    console: &Path,
    patience: Patience,
    stop: &AtomicUsize,
    on_line: &mut dyn FnMut(&str),
) -> Result<Ended> {
    let mut tail = Tail::open(console)?;
    let (mut spoke, mut worked) = (Instant::now(), Instant::now());
    let mut cpu_ticks = 0;
    loop {
        let status = child.try_wait().map_err(|e| Error::failed(format!("cannot wait for QEMU: {e}")))?;
        if tail.lines(on_line)? {
            spoke = Instant::now();
        }
        if let Some(status) = status {
            return Ok(Ended::ByItself(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))));
        }
        let signal = stop.load(Ordering::Relaxed);
        if signal != 0 {
            return Ok(Ended::Interrupted(signal));
        }
        match cpu_time(child.id()) {
            Some(ticks) if ticks == cpu_ticks => {}
            Some(ticks) => (cpu_ticks, worked) = (ticks, Instant::now()),
            None => worked = Instant::now(),
        }
        if spoke.elapsed() > patience.silence {
            return Ok(Ended::Silent(patience.silence));
        }
        if worked.elapsed() > patience.idle {
            return Ok(Ended::Idle(patience.idle));
        }
        std::thread::sleep(POLL);
    }
}

/// User and system time of a process, in clock ticks (proc(5), fields 14 and 15 of stat).
fn cpu_time(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

/// Reads a file that grows, line by line.
struct Tail {
    file: File,
    at: u64,
    partial: Vec<u8>,
}

impl Tail {
    fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(|e| Error::io("read", path, &e))?;
        Ok(Tail { file, at: 0, partial: Vec::new() })
    }

    /// Hands over the complete lines that are new. Returns whether anything was.
    fn lines(&mut self, on_line: &mut dyn FnMut(&str)) -> Result<bool> {
        let mut new = Vec::new();
        self.file
            .seek(SeekFrom::Start(self.at))
            .and_then(|_| self.file.read_to_end(&mut new))
            .map_err(|e| Error::failed(format!("cannot read the console of the machine: {e}")))?;
        self.at += new.len() as u64;
        let grew = !new.is_empty();
        self.partial.append(&mut new);
        while let Some(end) = self.partial.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = self.partial.drain(..=end).collect();
            on_line(String::from_utf8_lossy(&line).trim_end());
        }
        Ok(grew)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, patience: Patience, stop: usize) -> (Ended, Vec<String>, Duration) {
        let folder = tempfile::tempdir().unwrap();
        let command = ["sh", "-c", script].map(String::from);
        let mut lines = Vec::new();
        let begin = Instant::now();
        let stop = AtomicUsize::new(stop);
        let ended =
            run(&command, &folder.path().join("console"), patience, &stop, &mut |line| lines.push(line.to_string()));
        (ended.unwrap(), lines, begin.elapsed())
    }

    const LONG: Duration = Duration::from_secs(60);
    const SHORT: Duration = Duration::from_millis(400);

    #[test]
    fn lines_come_whole_and_the_status_is_told() {
        let (ended, lines, _) =
            shell("printf 'one\\ntw'; sleep 0.3; printf 'o\\n' >&2; exit 3", Patience { silence: LONG, idle: LONG }, 0);
        assert_eq!((ended, lines), (Ended::ByItself(3), vec!["one".to_string(), "two".to_string()]));
    }

    #[test]
    fn a_machine_that_says_nothing_or_does_nothing_is_ended() {
        let (ended, _, took) = shell("while :; do :; done", Patience { silence: SHORT, idle: LONG }, 0);
        assert_eq!(ended, Ended::Silent(SHORT));
        assert!(took < Duration::from_secs(10), "{took:?}");
        let (ended, _, _) = shell("exec sleep 100", Patience { silence: LONG, idle: SHORT }, 0);
        assert_eq!(ended, Ended::Idle(SHORT));
    }

    #[test]
    fn a_signal_ends_it_at_once() {
        let (ended, _, took) = shell("exec sleep 100", Patience { silence: LONG, idle: LONG }, 2);
        assert_eq!(ended, Ended::Interrupted(2));
        assert!(took < Duration::from_secs(5), "{took:?}");
    }
}
