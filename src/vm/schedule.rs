//! The order in which kernels boot. Pure.

/// One boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Which side: 0 is the first kernel on the command line.
    pub side: usize,
    /// Which round of it, from 1.
    pub round: u32,
}

/// ABBA: each round boots both sides once, and every second round the other way round, so that a drift of the host over
/// the whole time falls on both alike and neither is always first.
pub fn abba(sides: usize, rounds: u32) -> Vec<Step> {
    let round = |round: u32| {
        let order: Vec<usize> = if round % 2 == 1 { (0..sides).collect() } else { (0..sides).rev().collect() };
        order.into_iter().map(move |side| Step { side, round })
    };
    (1..=rounds).flat_map(round).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_alternate_and_every_side_has_as_many() {
        let letters = |rounds| abba(2, rounds).iter().map(|step| ["A", "B"][step.side]).collect::<String>();
        assert_eq!(letters(1), "AB");
        assert_eq!(letters(2), "ABBA");
        assert_eq!(letters(4), "ABBAABBA");
        let places = |side| {
            let steps = abba(2, 4);
            steps.iter().enumerate().filter(|(_, s)| s.side == side).map(|(i, _)| i).sum::<usize>()
        };
        assert_eq!(places(0), places(1), "both sides stand equally early");
        assert_eq!(abba(2, 2)[2], Step { side: 1, round: 2 });
    }
}
