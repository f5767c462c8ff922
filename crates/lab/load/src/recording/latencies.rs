//! Latencies of requests, some of which had no answer: the one definition of their numbers.

use measure::Histogram;

use super::kind::Recording;
use crate::slo::Statistic;

/// Fewest requests beyond a percentile without which it is not told.
pub(crate) const BEYOND: f64 = 10.0;

/// The latencies of all requests that ended.
///
/// A request without a whole answer counts as slower than every answer: a target must not
/// look fast because it gave up. Percentiles and the largest are of all requests, and
/// infinite where they fall among those without an answer; the mean is of whole answers.
/// Every such number that is shown, judged or stored comes from here.
#[derive(Debug, Clone, Copy)]
pub struct Latencies<'h> {
    answers: &'h Histogram,
    unanswered: u64,
}

impl<'h> Latencies<'h> {
    /// Those of whole answers, and how many requests had none.
    pub fn of(answers: &'h Histogram, unanswered: u64) -> Self {
        Self {
            answers,
            unanswered,
        }
    }

    /// From the intended send.
    pub fn intended(requests: &'h Recording) -> Self {
        Self::of(&requests.intended, requests.failed())
    }

    /// From the actual send.
    pub fn actual(requests: &'h Recording) -> Self {
        Self::of(&requests.actual, requests.failed())
    }

    /// Those of whole answers.
    pub fn answers(self) -> &'h Histogram {
        self.answers
    }

    /// Requests that had no whole answer.
    pub fn unanswered(self) -> u64 {
        self.unanswered
    }

    /// All requests.
    pub fn count(self) -> u64 {
        self.answers.count() + self.unanswered
    }

    /// A number in seconds, infinite where there was no answer; `None` without requests.
    pub fn value(self, statistic: Statistic) -> Option<f64> {
        match statistic.percentile() {
            Some(share) => self.percentile(share),
            None if statistic == Statistic::Max => self.at_rank(self.count()),
            None if self.count() == 0 => None,
            None => Some(seconds(self.answers.mean())),
        }
    }

    /// Whether there are enough requests for a number to mean something: ten of them beyond
    /// a percentile, or ten without an answer where it falls among these.
    pub fn is_meaningful(self, statistic: Statistic) -> bool {
        let Some(share) = statistic.percentile() else {
            return self.count() > 0;
        };
        // 0.1 of 100 is a hair less than 10 in floating point.
        let beyond = self.count() as f64 * (1.0 - share) >= BEYOND - 1e-6;
        let lost = || self.percentile(share) == Some(f64::INFINITY);
        beyond || self.unanswered as f64 >= BEYOND && lost()
    }

    /// The latency that this share of all requests, from 0 to 1, does not exceed, by
    /// nearest rank; as [`Latencies::value`].
    pub fn percentile(self, share: f64) -> Option<f64> {
        // 0.07 * 100.0 is a hair above 7; without the correction its rank would be 8.
        let exact = share * self.count() as f64 * (1.0 - 4.0 * f64::EPSILON);
        self.at_rank((exact.ceil() as u64).clamp(1, self.count().max(1)))
    }

    /// The latency at a rank, counted from 1; as [`Latencies::value`].
    pub fn at_rank(self, rank: u64) -> Option<f64> {
        let answered = self.answers.count();
        let latency = (rank <= answered)
            .then(|| self.answers.quantile(rank as f64 / answered as f64))
            .flatten();
        (self.count() > 0).then(|| seconds(latency))
    }
}

fn seconds(latency: Option<std::time::Duration>) -> f64 {
    latency.map_or(f64::INFINITY, |latency| latency.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn who_has_no_answer_is_slower_than_all_who_have() {
        let mut answers = Histogram::new();
        answers.record_n(Duration::from_millis(5), 950);
        let all = Latencies::of(&answers, 50);
        let at = |statistic| all.value(statistic).unwrap();
        assert!((at(Statistic::P95) - 0.005).abs() < 1e-5);
        assert_eq!(at(Statistic::P99), f64::INFINITY);
        assert_eq!(at(Statistic::Max), f64::INFINITY);
        assert!((at(Statistic::Mean) - 0.005).abs() < 1e-5);
        let few = Latencies::of(&answers, 9);
        assert!(few.is_meaningful(Statistic::P95) && !few.is_meaningful(Statistic::P999));
        assert!(
            all.is_meaningful(Statistic::P9999),
            "fifty are enough to know"
        );
        let none = Latencies::of(&answers, 0);
        assert!((none.value(Statistic::Max).unwrap() - 0.005).abs() < 1e-5);
        answers.reset();
        assert_eq!(Latencies::of(&answers, 0).value(Statistic::P50), None);
        let lost = Latencies::of(&answers, 1);
        assert_eq!(lost.value(Statistic::Mean), Some(f64::INFINITY));
    }

    proptest! {
        /// What never came is where something infinitely slow would be.
        #[test]
        fn percentiles_are_those_of_a_sorted_list(
            mut answers in proptest::collection::vec(1_u64..2_000, 0..200),
            unanswered in 0_u64..50,
            share in 0.0..1.0_f64,
        ) {
            let mut histogram = Histogram::new();
            answers.iter().for_each(|us| histogram.record(Duration::from_micros(*us)));
            answers.sort_unstable();
            let mut sorted: Vec<f64> = answers.iter().map(|us| *us as f64 / 1e6).collect();
            sorted.extend((0..unanswered).map(|_| f64::INFINITY));
            let found = Latencies::of(&histogram, unanswered).percentile(share);
            match stats::nearest_rank(&sorted, share) {
                None => prop_assert_eq!(found, None),
                Some(f64::INFINITY) => prop_assert_eq!(found, Some(f64::INFINITY)),
                Some(truth) => prop_assert!((found.unwrap() / truth - 1.0).abs() < 2e-3),
            }
        }
    }
}
