//! A progress bar for set-up that takes long, drawn on a terminal only, and never while criterion measures.

use super::place::Place;
use indicatif::{ProgressBar, ProgressStyle};
use std::time::Duration;

/// A bar that knows bytes done of a total.
#[derive(Debug)]
pub struct SetUpBar(ProgressBar);

/// Begins a bar; it stays hidden where nobody looks.
pub fn set_up_bar(place: &Place, what: &'static str) -> SetUpBar {
    let bar = if place.interactive { ProgressBar::new(0) } else { ProgressBar::hidden() };
    if let Ok(style) = ProgressStyle::with_template("fsgauge: {msg} {bar:30} {bytes}/{total_bytes}, {eta} left") {
        bar.set_style(style);
    }
    bar.set_message(what);
    bar.enable_steady_tick(Duration::from_millis(200));
    SetUpBar(bar)
}

impl SetUpBar {
    /// So many bytes are done.
    pub fn advance(&self, done: u64, total: u64) {
        self.0.set_length(total);
        self.0.set_position(done);
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.0.finish_and_clear();
    }
}
