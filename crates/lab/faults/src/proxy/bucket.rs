//! A token bucket in whole numbers.

use std::time::Duration;

/// A nano-byte is what one byte a second earns in a nanosecond.
const NANO: i128 = 1_000_000_000;

/// How much may pass at a rate after a rest. It starts full.
///
/// It may be overdrawn: what two connections took at the same instant is earned back before
/// the next byte passes, so the rate holds.
#[derive(Debug, Clone)]
pub(super) struct Bucket {
    bytes_per_s: u64,
    burst_bytes: u64,
    /// What is in it, in nano-bytes.
    level: i128,
    at: Duration,
}

impl Bucket {
    pub(super) fn new(bytes_per_s: u64, burst_bytes: u64) -> Self {
        Self {
            bytes_per_s,
            burst_bytes,
            level: i128::from(burst_bytes) * NANO,
            at: Duration::ZERO,
        }
    }

    /// How many bytes may pass now.
    pub(super) fn available(&mut self, now: Duration) -> u64 {
        let earned = now.saturating_sub(self.at).as_nanos() * u128::from(self.bytes_per_s);
        let full = i128::from(self.burst_bytes) * NANO;
        self.level = self.level.saturating_add_unsigned(earned).min(full);
        self.at = self.at.max(now);
        u64::try_from(self.level / NANO).unwrap_or(0)
    }

    /// When `bytes` may pass at once; those beyond a burst are never waited for.
    pub(super) fn when(&mut self, now: Duration, bytes: u64) -> Duration {
        self.available(now);
        let wanted = i128::from(bytes.min(self.burst_bytes)) * NANO;
        let missing = u128::try_from(wanted - self.level).unwrap_or(0);
        let wait = missing.div_ceil(u128::from(self.bytes_per_s));
        self.at + Duration::from_nanos(u64::try_from(wait).unwrap_or(u64::MAX))
    }

    pub(super) fn take(&mut self, bytes: u64) {
        self.level -= i128::from(bytes) * NANO;
    }

    /// What is worth waking for: five milliseconds' worth, at most a burst.
    pub(super) fn quantum(&self) -> u64 {
        (self.bytes_per_s / 200).clamp(1, self.burst_bytes)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_burst_then_the_rate() {
        let ms = Duration::from_millis;
        let mut bucket = Bucket::new(1000, 100);
        assert_eq!(bucket.available(ms(0)), 100);
        bucket.take(100);
        assert_eq!(bucket.available(ms(0)), 0);
        assert_eq!(bucket.when(ms(0), 7), ms(7));
        assert_eq!(bucket.available(ms(7)), 7);
        // An hour fills it no further than a burst, and a clock that goes back earns nothing.
        assert_eq!(bucket.available(ms(3_600_000)), 100);
        assert_eq!(bucket.available(ms(5)), 100);
    }

    #[test]
    fn what_was_overdrawn_is_earned_back() {
        let mut bucket = Bucket::new(1000, 100);
        bucket.take(300);
        assert_eq!(bucket.available(Duration::from_millis(200)), 0);
        assert_eq!(
            bucket.when(Duration::from_millis(200), 1),
            Duration::from_millis(201)
        );
    }

    proptest! {
        #[test]
        fn never_more_than_the_rate_and_one_burst(
            rate in 1..10_000_000_u64, burst in 1..100_000_u64,
            steps in prop::collection::vec((0..50_000_000_u64, 1..200_000_u64), 1..60),
        ) {
            let mut bucket = Bucket::new(rate, burst);
            let mut now = Duration::ZERO;
            let mut passed = 0_u128;
            for (pause, wanted) in steps {
                now += Duration::from_nanos(pause);
                let some = bucket.available(now).min(wanted);
                bucket.take(some);
                passed += u128::from(some);
                prop_assert!(passed * 1_000_000_000 <= u128::from(burst) * 1_000_000_000 + now.as_nanos() * u128::from(rate));
                // Told exactly: not a nanosecond earlier.
                let when = bucket.when(now, wanted);
                prop_assert!(bucket.clone().available(when) >= wanted.min(burst));
                prop_assert!(when <= now || bucket.clone().available(when - Duration::from_nanos(1)) < wanted.min(burst));
            }
        }
    }
}
