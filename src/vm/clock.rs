//! Which clock a guest runs on.

/// The clock of a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// A nanosecond is one instruction of the one virtual CPU; idle time is skipped.
    Instructions,
    /// Real time, under KVM where it works.
    Wall,
}

impl Clock {
    /// As the user writes it and as it is recorded.
    pub fn name(self) -> &'static str {
        match self {
            Clock::Instructions => "instructions",
            Clock::Wall => "wall",
        }
    }

    /// What every report made with it says.
    pub fn remark(self) -> &'static str {
        match self {
            Clock::Instructions => {
                "measured in a VM with the instruction clock: one nanosecond is one instruction of one virtual CPU plus a modelled disk; \
                 cache misses, lock contention across CPUs and real devices are not seen"
            }
            Clock::Wall => "measured in a VM in real time: as noisy as the host, with a modelled disk",
        }
    }
}
