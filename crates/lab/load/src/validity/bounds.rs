//! Between which two values a number lies, when the generator may have made latencies
//! longer than they were.

use std::time::Duration;

use measure::Histogram;

use crate::recording::{Doubt, Latencies, Recorded, Recording};

/// Bounds closer than this share of the value, or than [`ALIKE_S`], are one number.
const ALIKE: f64 = 0.1;
const ALIKE_S: f64 = 50e-6;
/// Bounds further apart than this share of the value say nothing that a reader could use.
const USEFUL: f64 = 0.2;

/// The least and the most that a number may be in truth, in seconds. The most is what was
/// measured: a generator that is late makes latencies longer, not shorter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// The least.
    pub low: f64,
    /// The most.
    pub high: f64,
}

impl Bounds {
    /// Whether the two are one number for every purpose.
    pub fn exact(self) -> bool {
        // Two that are infinite have no difference, and one of two makes all the difference.
        let apart = self.high - self.low;
        self.high == self.low || apart.is_finite() && apart <= (ALIKE * self.high).max(ALIKE_S)
    }

    /// Whether they are so far apart that the number is withheld: further than
    /// `tolerated`, and than a fifth of the value.
    pub fn withheld(self, tolerated: Duration) -> bool {
        let apart = self.high - self.low;
        apart.is_infinite() || apart > (USEFUL * self.high).max(tolerated.as_secs_f64())
    }
}

/// A distribution between two: as it was measured, and with everything taken away that
/// the generator may have added.
#[derive(Debug, Clone)]
pub struct Between<'h> {
    most: &'h Histogram,
    /// Absent where it is the same.
    least: Option<Histogram>,
    unanswered: u64,
    /// Of these, those that the generator may have kept from an answer.
    starved: u64,
}

impl<'h> Between<'h> {
    /// Latencies from the intended send.
    pub fn intended(requests: &'h Recording) -> Self {
        let Recording {
            intended,
            intended_doubt,
            ..
        } = requests;
        Self::of(intended, intended_doubt, requests)
    }

    /// Latencies from the actual send.
    pub fn actual(requests: &'h Recording) -> Self {
        let Recording {
            actual,
            actual_doubt,
            ..
        } = requests;
        Self::of(actual, actual_doubt, requests)
    }

    /// What was measured, what is doubtful of it, and the requests, some of which had no answer.
    fn of(all: &'h Histogram, doubt: &Doubt, requests: &Recording) -> Self {
        let starved = requests.starved();
        let least = (doubt.seen.count() > 0).then(|| {
            let mut least = doubt.least_of(all);
            // Of an answer that never came nobody knows how soon it would have.
            least.record_n(Duration::ZERO, starved);
            least
        });
        Self {
            most: all,
            least,
            unanswered: requests.failed(),
            starved,
        }
    }

    /// As it was measured.
    pub fn most(&self) -> Latencies<'h> {
        Latencies::of(self.most, self.unanswered)
    }

    /// At its least.
    pub fn least(&self) -> Latencies<'_> {
        let unanswered = self.unanswered.saturating_sub(self.starved);
        Latencies::of(self.least.as_ref().unwrap_or(self.most), unanswered)
    }

    /// Bounds, in seconds, of a number that does not fall when a latency grows.
    pub fn bounds(&self, of: impl Fn(Latencies<'_>) -> Option<f64>) -> Option<Bounds> {
        let high = of(self.most())?;
        let low = of(self.least()).unwrap_or(0.0);
        Some(Bounds {
            low: low.min(high),
            high,
        })
    }
}

/// The most good answers that may have come within the load's own time without the generator's part in
/// it, where `good` came. `requests` are those of `recorded`.
pub(crate) fn most_good(recorded: &Recorded, requests: &Recording, good: u64) -> f64 {
    let good = good as f64;
    if recorded.segment.model.is_open() {
        let late = recorded.after_end().requests().good();
        let in_time = requests.in_time_at_best.min(late);
        return good + (in_time + requests.kept_waiting(late - in_time)) as f64;
    }
    (good * more_asked(requests)).min(f64::MAX)
}

/// How many times as often a closed loop's users would have asked at most without the generator's part in
/// what they waited: as many as it made latencies longer.
pub fn more_asked(requests: &Recording) -> f64 {
    let mean = |all: Latencies<'_>| {
        let mean = all.answers().mean();
        mean.map_or(0.0, |mean| mean.as_secs_f64())
    };
    let actual = Between::actual(requests);
    let least = mean(actual.least()).max(f64::MIN_POSITIVE);
    (mean(actual.most()) / least).max(1.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::recording::{NONE_FREE, Phase};
    use crate::slo::Statistic;

    proptest! {
        /// Whatever of the doubtful part is the generator's, the truth lies between.
        #[test]
        fn every_percentile_of_the_truth_lies_within_its_bounds(
            answers in proptest::collection::vec(
                (0_u64..10_000_000, 0_u64..5_000_000, 0.0..1.0_f64, any::<bool>()), 1..300),
            quantile in 0.0..1.0_f64,
            unanswered in 0_u64..3,
        ) {
            let (mut seen, mut truth) = (Histogram::new(), Histogram::new());
            let mut doubt = Doubt::default();
            for (latency, added, share, late) in answers {
                let added = if late { added } else { 0 };
                let measured = latency + (added as f64 * share) as u64;
                truth.record_ns(latency);
                seen.record_ns(measured);
                if late {
                    doubt.record_ns(measured, added);
                }
            }
            let mut requests = Recording::default();
            (0..unanswered).for_each(|_| requests.fail(Phase::Timeout, "timeout"));
            let between = Between::of(&seen, &doubt, &requests);
            for of in [
                &(|all: Latencies<'_>| all.percentile(quantile)) as &dyn Fn(Latencies<'_>) -> _,
                &|all: Latencies<'_>| all.value(Statistic::Mean),
                &|all: Latencies<'_>| all.value(Statistic::Max),
            ] {
                let bounds = between.bounds(of).unwrap();
                let truth = of(Latencies::of(&truth, unanswered)).unwrap();
                // The mean is of the middles of bins.
                let (least, most) = (bounds.low * 0.999 - 1e-6, bounds.high * 1.001 + 1e-6);
                prop_assert!(least <= truth && truth <= most, "{truth} in {bounds:?}");
            }
        }
    }

    #[test]
    fn who_found_no_connection_may_have_got_an_answer_from_a_generator_in_time() {
        let mut requests = Recording {
            answered: 100,
            unread_seconds: 0.4,
            ..Recording::default()
        };
        for _ in 0..100 {
            requests.actual.record_ns(5_000_000);
            requests.actual_doubt.record_ns(5_000_000, 4_000_000);
        }
        (0..300).for_each(|_| requests.fail(Phase::Connect, NONE_FREE));
        let p99 = |all: Latencies<'_>| all.percentile(0.99);
        let bounds = Between::actual(&requests).bounds(p99).unwrap();
        assert!(
            bounds.high.is_infinite() && bounds.low < 0.0011,
            "{bounds:?}"
        );
        (0..300).for_each(|_| requests.fail(Phase::Connect, NONE_FREE));
        let bounds = Between::actual(&requests).bounds(p99).unwrap();
        assert!(bounds.low.is_infinite() && bounds.exact(), "{bounds:?}");
    }

    #[test]
    fn bounds_are_one_number_two_or_too_far_apart() {
        let class = |low, high| {
            let bounds = Bounds { low, high };
            (bounds.exact(), bounds.withheld(Duration::from_millis(1)))
        };
        assert_eq!(class(0.0095, 0.010), (true, false));
        assert_eq!(class(0.00001, 0.00005), (true, false));
        assert_eq!(class(0.0085, 0.010), (false, false));
        assert_eq!(class(0.0, 0.0009), (false, false));
        assert_eq!(class(0.0, 0.010), (false, true));
        // Whether there was an answer at all.
        assert_eq!(class(0.010, f64::INFINITY), (false, true));
        assert_eq!(class(f64::INFINITY, f64::INFINITY), (true, false));
    }
}
