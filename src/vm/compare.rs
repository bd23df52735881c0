//! Boots both sides in ABBA order, two at a time where the clock allows it, and saves every round.

use super::clock::Clock;
use super::faults::Fault;
use super::recorded;
use super::run::{self, Boot, Setup, Side};
use super::schedule::{self, Step};
use super::work::WorkDirectory;
use crate::target::rounds;
use crate::{Error, names};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Boots every round of every side and saves it as `LABEL@ROUND`; earlier rounds of the sides are removed when the first
/// boot has ended well. The first fault ends it: a comparison with a round
/// missing would be a different one from what was asked for.
///
/// `say` gets lines for the user, from several threads.
///
/// Errors: the first fault.
pub fn boot_all(
    setup: &Setup,
    sides: &[Side],
    rounds: u32,
    stop: &AtomicUsize,
    say: &(dyn Fn(&str) + Sync),
) -> Result<(), Fault> {
    let work = WorkDirectory::create()?;
    let steps: Mutex<VecDeque<Step>> = Mutex::new(schedule::abba(sides.len(), rounds).into());
    let first_fault: Mutex<Option<Fault>> = Mutex::new(None);
    let failed = AtomicBool::new(false);
    // Criterion's directory has pages that every benchmark rewrites: one analysis at a time. Inside: whether earlier rounds
    // are gone. They stay until a boot has ended well: a kernel that panics costs nobody a baseline.
    let analysis = Mutex::new(false);
    let one_after_another = || {
        while let Some(step) = next(&steps, &failed) {
            let side = &sides[step.side];
            let name = names::round_name(&side.label, step.round);
            let outcome = boot_one(setup, side, step, &work, stop, say, &name).and_then(|boot| {
                let mut replaced = analysis.lock().unwrap_or_else(PoisonError::into_inner);
                if !*replaced {
                    replace_earlier_rounds(setup, sides, say)?;
                    *replaced = true;
                }
                run::save(setup, side, step.round, &boot)?;
                refuse_empty_round(setup, &name)
            });
            if let Err(fault) = outcome {
                failed.store(true, Ordering::Relaxed);
                first_fault.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(fault);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..at_once(setup.clock, steps_left(&steps)) {
            scope.spawn(one_after_another);
        }
    });
    first_fault.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

/// Removes what an earlier command saved of any side: the old rounds of one would be compared with new ones of the other.
fn replace_earlier_rounds(setup: &Setup, sides: &[Side], say: &(dyn Fn(&str) + Sync)) -> Result<(), Fault> {
    for side in sides {
        if recorded::remove_rounds(&setup.criterion_directory, &side.label)? > 0 {
            say(&format!("replaces the rounds of {} in {}", side.label, setup.criterion_directory.display()));
        }
    }
    Ok(())
}

fn boot_one(
    setup: &Setup,
    side: &Side,
    step: Step,
    work: &WorkDirectory,
    stop: &AtomicUsize,
    say: &(dyn Fn(&str) + Sync),
    name: &str,
) -> Result<Boot, Fault> {
    let words: Vec<&str> = std::iter::once(&side.kernel.release).chain(&side.append).map(String::as_str).collect();
    say(&format!("{name}: boots {}", words.join(" ")));
    let begin = std::time::Instant::now();
    let boot = || run::boot(setup, side, step.round, work, stop, &mut |line| say(&format!("{name}: {line}")));
    let boot = match boot() {
        Err(fault) if fault.stuck => {
            say(&format!("{}; boots once more with the same seed", fault.error));
            boot()?
        }
        outcome => outcome?,
    };
    let guest = boot.answer.seconds.get("guest").copied().unwrap_or_default();
    say(&format!("{name}: {:.0} s, of which {guest:.1} s on the guest's clock", begin.elapsed().as_secs_f64()));
    Ok(boot)
}

/// A round in which every benchmark was skipped is none.
fn refuse_empty_round(setup: &Setup, name: &str) -> Result<(), Fault> {
    if rounds::count_saved(&setup.criterion_directory, name) > 0 {
        return Ok(());
    }
    let error = format!("{name} saved nothing: every benchmark was skipped, see above for the reasons");
    Err(Fault::of_host(Error::failed(error)))
}

fn next(steps: &Mutex<VecDeque<Step>>, failed: &AtomicBool) -> Option<Step> {
    if failed.load(Ordering::Relaxed) {
        return None;
    }
    steps.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
}

fn steps_left(steps: &Mutex<VecDeque<Step>>) -> usize {
    steps.lock().unwrap_or_else(PoisonError::into_inner).len()
}

/// How many machines run at once: two with the instruction clock, which does not see what else the host does; one with
/// the wall clock, which does.
fn at_once(clock: Clock, steps: usize) -> usize {
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    match clock {
        Clock::Wall => 1,
        Clock::Instructions => cpus.min(2).min(steps).max(1),
    }
}
