//! How long to leave a peer alone that does not answer, or is too busy.

use std::time::Duration;

/// Wait after a first failure; it doubles with each further one.
const FIRST: Duration = Duration::from_millis(500);
/// Longest wait, also of one that the peer names.
const MOST: Duration = Duration::from_secs(60);

/// Failures of a peer in a row. Times are those since some start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Backoff {
    failures: u32,
    until: Duration,
}

impl Backoff {
    /// It failed, and may have said when to come again; `random` is from 0 to 1, so that many
    /// do not come back in step. Failures of requests that were under way at once count once.
    pub(crate) fn failed(&mut self, now: Duration, told: Option<Duration>, random: f64) {
        if self.is_failing() && now < self.until {
            return;
        }
        let doubled = FIRST.saturating_mul(1 << self.failures.min(16));
        let wait = doubled
            .min(MOST)
            .mul_f64(0.5 + random.clamp(0.0, 1.0) / 2.0);
        let wait = told.map_or(wait, |told| told.min(MOST).max(wait));
        self.failures = self.failures.saturating_add(1);
        self.until = now.saturating_add(wait);
    }

    /// It answered.
    pub(crate) fn succeeded(&mut self) {
        *self = Self::default();
    }

    /// Did it fail the last time?
    pub(crate) fn is_failing(&self) -> bool {
        self.failures > 0
    }

    /// How long it is still to be left alone.
    pub(crate) fn wait(&self, now: Duration) -> Duration {
        self.until.saturating_sub(now)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn waits_double_to_a_bound_and_end_with_an_answer() {
        let mut backoff = Backoff::default();
        let mut now = Duration::ZERO;
        assert!(!backoff.is_failing() && backoff.wait(now).is_zero());
        let mut waits = Vec::new();
        for _ in 0..10 {
            backoff.failed(now, None, 1.0);
            // Another that was under way at once.
            backoff.failed(now, None, 1.0);
            waits.push(backoff.wait(now).as_millis());
            now += backoff.wait(now);
        }
        let expected = [
            500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000,
        ];
        assert_eq!(waits, expected);
        assert!(backoff.is_failing() && backoff.wait(now).is_zero());
        backoff.succeeded();
        backoff.failed(now, None, 0.0);
        assert_eq!(backoff.wait(now), Duration::from_millis(250));
    }

    #[test]
    fn what_the_peer_names_is_kept_within_the_bound() {
        let mut backoff = Backoff::default();
        backoff.failed(seconds(5), Some(seconds(20)), 0.5);
        assert_eq!(backoff.wait(seconds(5)), seconds(20));
        assert_eq!(backoff.wait(seconds(30)), Duration::ZERO);
        backoff.failed(seconds(30), Some(seconds(86_400)), 0.5);
        assert_eq!(backoff.wait(seconds(30)), seconds(60));
    }

    proptest! {
        #[test]
        fn no_wait_is_longer_than_the_bound(
            steps in proptest::collection::vec(
                (0u64..200_000, proptest::option::of(0u64..1_000_000), 0.0f64..1.0, any::<bool>()),
                0..100,
            ),
        ) {
            let (mut backoff, mut now) = (Backoff::default(), Duration::ZERO);
            for (after, told, random, answered) in steps {
                now += Duration::from_millis(after);
                match answered {
                    true => backoff.succeeded(),
                    false => backoff.failed(now, told.map(Duration::from_secs), random),
                }
                prop_assert!(backoff.wait(now) <= MOST);
                prop_assert_eq!(backoff.is_failing(), !answered);
                prop_assert!(answered || !backoff.wait(now).is_zero());
            }
        }
    }
}
