//! A share of a processor's time, in small turns.

use crate::Nanos;

/// Time in which the share is met.
const PERIOD: f64 = 10e6;
/// Most time that is caught up when others took the processor, so that a starved thread
/// does not take it whole for long afterwards.
const DEBT: f64 = 50e6;
/// Rests shorter than this are not worth going to sleep for.
const SHORT: f64 = 50e3;

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// Take so much processor time.
    Work(Nanos),
    /// Let so much time pass.
    Rest(Nanos),
}

/// Meets a share over time, whatever each turn really took.
#[derive(Debug, Clone, Copy)]
pub(super) struct DutyCycle {
    share: f64,
    /// Processor time that is due; below zero when more was taken.
    due: f64,
    last: (Nanos, Nanos),
}

impl DutyCycle {
    /// A share of 0 to 1 from now on; what is no number is nothing.
    pub(super) fn new(share: f64, now: Nanos, cpu: Nanos) -> Self {
        let share = if share.is_nan() { 0.0 } else { share };
        Self {
            share: share.clamp(0.0, 1.0),
            due: 0.0,
            last: (now, cpu),
        }
    }

    /// The next turn, given the time and the processor time that the thread has used.
    pub(super) fn next(&mut self, now: Nanos, cpu: Nanos) -> Turn {
        let passed = now.saturating_sub(self.last.0) as f64;
        let used = cpu.saturating_sub(self.last.1) as f64;
        self.last = (now, cpu);
        self.due = (self.due + self.share * passed - used).min(DEBT);
        let work = self.share * PERIOD;
        if work < 1.0 {
            return Turn::Rest(PERIOD as Nanos);
        }
        let rest = -self.due / self.share;
        match rest < SHORT {
            true => Turn::Work(work as Nanos),
            false => Turn::Rest(rest as Nanos),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use stats::SplitMix;

    use super::*;

    /// Share of the processor's time that was taken in ten seconds in which every turn of
    /// work loses a random time to others.
    fn taken(share: f64, mut stolen: impl FnMut() -> u64) -> f64 {
        let (mut now, mut cpu) = (7, 3);
        let mut duty = DutyCycle::new(share, now, cpu);
        while now < 10_000_000_000 {
            match duty.next(now, cpu) {
                Turn::Work(time) => {
                    cpu += time;
                    now += time + stolen();
                }
                // A sleep ends late.
                Turn::Rest(time) => now += time + 60_000,
            }
        }
        cpu as f64 / now as f64
    }

    proptest! {
        #[test]
        fn the_share_is_met_though_others_take_a_part(share in 0.01_f64..0.45, seed: u64) {
            let mut random = SplitMix::new(seed);
            // As much as it takes itself: there is room to catch up.
            let most = (share * PERIOD) as usize;
            let share_seen = taken(share, || random.below(most.max(1)) as u64);
            prop_assert!((share_seen - share).abs() < 0.003, "{share_seen} for {share}");
        }
    }

    #[test]
    fn all_of_a_processor_is_no_sleep_at_all() {
        assert!(taken(1.0, || 0) > 0.999);
        assert_eq!(DutyCycle::new(1.0, 0, 0).next(0, 0), Turn::Work(10_000_000));
    }

    #[test]
    fn nothing_is_only_rest() {
        assert_eq!(DutyCycle::new(0.0, 0, 0).next(5, 5), Turn::Rest(10_000_000));
        assert_eq!(
            DutyCycle::new(f64::NAN, 0, 0).next(5, 5),
            Turn::Rest(10_000_000)
        );
    }

    #[test]
    fn what_was_long_missed_is_not_caught_up() {
        let mut duty = DutyCycle::new(0.5, 0, 0);
        // Starved for a minute, then alone: 50 ms are caught up, a little more taken.
        let (mut now, mut cpu) = (60_000_000_000, 0);
        while let Turn::Work(time) = duty.next(now, cpu) {
            now += time;
            cpu += time;
        }
        assert!((100_000_000..=115_000_000).contains(&cpu), "{cpu}");
    }
}
