//! A sign of life for work that takes longer than two seconds, on a terminal only. Layer 4.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

/// What is shorter needs no sign.
const PATIENCE: Duration = Duration::from_secs(2);

/// Shows a line on standard error when two seconds have passed, until it is dropped.
#[derive(Debug, Default)]
pub struct Progress {
    bar: Option<ProgressBar>,
    watch: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    /// Begins; silent where `quiet`, and where standard error is no terminal.
    pub fn start(what: &str, quiet: bool) -> Progress {
        if quiet || !std::io::stderr().is_terminal() {
            return Progress::default();
        }
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template("fsgauge: {msg} {spinner} {elapsed}") {
            bar.set_style(style);
        }
        bar.set_message(what.to_owned());
        let (done, ended) = mpsc::channel();
        let shown = bar.clone();
        let watch = std::thread::spawn(move || {
            if ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                shown.set_draw_target(ProgressDrawTarget::stderr());
                shown.enable_steady_tick(Duration::from_millis(200));
            }
        });
        Progress { bar: Some(bar), watch: Some((done, watch)) }
    }

    /// Says what is being done now.
    pub fn say(&self, what: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(what.to_owned());
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((done, watch)) = self.watch.take() {
            drop(done);
            // The thread has nothing that could panic; should it, the bar is still taken away.
            let _ended = watch.join();
        }
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
