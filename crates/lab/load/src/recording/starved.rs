//! Failures that the generator itself may have made.

use super::failure::{NONE_FREE, Phase};
use super::kind::Recording;

impl Recording {
    /// Of the requests that found every connection busy, those that the generator may have kept
    /// from one, as answers that lay unread held connections for longer than the target did. Into
    /// the time so lost fit as many more answers as it is long in answers that were read at once.
    #[must_use]
    pub fn starved(&self) -> u64 {
        self.kept_waiting(0)
    }

    /// The same, with `late` answers that were good and came after the end of the load.
    pub(crate) fn kept_waiting(&self, late: u64) -> u64 {
        let errors = self.errors.iter();
        let busy = errors
            .filter(|(failure, _)| failure.phase == Phase::Connect && failure.cause == NONE_FREE);
        let busy: u64 = busy.map(|(_, count)| count).sum();
        let late = if self.waited > 0 { late } else { 0 };
        let lost_s = self.unread_seconds;
        if busy + late == 0 || lost_s <= 0.0 {
            return 0;
        }
        let least_s = (self.actual.sum_seconds() - lost_s).max(f64::MIN_POSITIVE);
        // What is beyond every whole number becomes the largest.
        let more = (self.answered as f64 * lost_s / least_s).ceil() as u64;
        (busy + late).min(more)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::KEPT;

    const MS: u64 = 1_000_000;

    /// So many answers that took 5 ms and were read `added` ms later, and so many requests that
    /// found no connection.
    fn recording(answered: u64, added: u64, busy: u64) -> Recording {
        let mut requests = Recording {
            sent: answered,
            answered,
            unread_seconds: (answered * added) as f64 * 1e-3,
            ..Recording::default()
        };
        for _ in 0..answered {
            requests.actual.record_ns((5 + added) * MS);
        }
        for _ in 0..busy {
            requests.fail(Phase::Connect, NONE_FREE);
        }
        requests
    }

    #[test]
    fn a_generator_in_time_made_no_failure() {
        assert_eq!(recording(100, 0, 50).starved(), 0);
    }

    #[test]
    fn as_many_more_fit_as_the_time_lost_is_long() {
        // 100 answers held connections for 5 ms longer than they took: 100 more would have fit.
        assert_eq!(recording(100, 5, 50).starved(), 50);
        assert!((100..=101).contains(&recording(100, 5, 500).starved()));
        assert!((20..=21).contains(&recording(100, 1, 500).starved()));
    }

    #[test]
    fn answers_after_the_end_may_have_been_in_time_if_requests_waited() {
        let mut requests = recording(100, 5, 10);
        assert_eq!(requests.kept_waiting(40), 10);
        requests.waited = 1;
        assert_eq!(requests.kept_waiting(40), 50);
        assert!((100..=101).contains(&requests.kept_waiting(400)));
    }

    #[test]
    fn other_failures_are_the_target_s_or_the_load_s() {
        let mut requests = recording(100, 5, 0);
        requests.fail(Phase::Connect, "refused");
        requests.fail(Phase::Connect, KEPT);
        requests.fail(Phase::Timeout, "timeout");
        assert_eq!(requests.starved(), 0);
    }
}
