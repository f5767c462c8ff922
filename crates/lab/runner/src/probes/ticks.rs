//! When a probe is asked.

use std::time::Duration;

/// The tick that comes after tick `now`, when so much time has passed since tick 0, and how many
/// are left out because their time has gone by.
pub(super) fn next(now: u64, passed: Duration, every: Duration) -> (u64, u64) {
    let every = every.as_nanos().max(1);
    let begun = u64::try_from(passed.as_nanos() / every).unwrap_or(u64::MAX - 1);
    let next = begun.max(now) + 1;
    (next, next - now - 1)
}

/// When a tick is, since tick 0.
pub(super) fn at(tick: u64, every: Duration) -> Duration {
    let nanos = every.as_nanos().saturating_mul(u128::from(tick));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_slow_try_leaves_ticks_out_and_none_pile_up() {
        let (every, ms) = (Duration::from_millis(100), Duration::from_millis);
        assert_eq!(next(0, ms(5), every), (1, 0));
        assert_eq!(next(0, ms(99), every), (1, 0));
        assert_eq!(next(1, ms(350), every), (4, 2));
        assert_eq!(next(4, ms(400), every), (5, 0));
        assert_eq!(at(5, every), ms(500));
    }

    proptest! {
        #[test]
        fn the_next_tick_is_ahead_and_none_is_lost(now in 0_u64..10_000, late_us in 0_u64..10_000_000, every_us in 10_000_u64..5_000_000) {
            let every = Duration::from_micros(every_us);
            let passed = at(now, every) + Duration::from_micros(late_us);
            let (tick, skipped) = next(now, passed, every);
            prop_assert!(at(tick, every) > passed);
            prop_assert!(at(tick - 1, every) <= passed);
            prop_assert_eq!(tick, now + 1 + skipped);
        }
    }
}
