//! Requests of one kind.

use std::collections::BTreeMap;

use measure::Histogram;
use serde::{Deserialize, Serialize};

use super::doubt::Doubt;
use super::failure::{self, Failure, Phase};

/// Requests of one kind in one span.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Recording {
    /// Requests whose bytes were handed to the kernel.
    pub sent: u64,
    /// Of these, requests that had to wait because every connection was busy.
    pub waited: u64,
    /// Whole answers, whatever their status.
    pub answered: u64,
    /// Whole answers that an assertion (or a status of 400 and above) made failures.
    pub refused: u64,
    /// Time from the intended send to the end of the answer, of every whole answer.
    pub intended: Histogram,
    /// Time from the actual send to the end of the answer, of the same answers.
    pub actual: Histogram,
    /// Actual minus intended send time, of every send that did not have to wait for a
    /// connection: the generator's own lateness.
    pub lateness: Histogram,
    /// What the generator may have added to `intended`.
    pub intended_doubt: Doubt,
    /// What it may have added to `actual`.
    pub actual_doubt: Doubt,
    /// Time that whole answers may have lain unread, in seconds; in `actual`.
    #[serde(default)]
    pub unread_seconds: f64,
    /// Whole answers that came after the end of the load's own time, and within it but for what the
    /// generator may have added to `intended`.
    #[serde(default)]
    pub in_time_at_best: u64,
    /// Times that a request was sent once more because the target left it out or
    /// closed its connection; not in `sent`.
    pub retried: u64,
    /// Time that these tries were in flight before, in seconds; not in `actual`.
    pub retried_seconds: f64,
    /// Answers by status (HTTP; gRPC: `grpc-status`; others: nothing).
    pub statuses: BTreeMap<u16, u64>,
    /// Requests without a whole answer, by phase and cause.
    #[serde(with = "failure::counts")]
    pub errors: BTreeMap<Failure, u64>,
    /// Of these, requests that were in `sent`: they were to be sent once more, and no connection
    /// came about then.
    #[serde(default)]
    pub unsent_again: u64,
    /// Answers refused, by assertion.
    pub refusals: BTreeMap<String, u64>,
    /// Where the first answer that was a redirect sent its reader.
    #[serde(default)]
    pub redirect: Option<String>,
    /// Bytes handed to the kernel (before TLS).
    pub bytes_sent: u64,
    /// Bytes taken from it (after TLS).
    pub bytes_received: u64,
}

impl Recording {
    /// Counts a request without a whole answer. Allocates for the first of its sort only.
    pub fn fail(&mut self, phase: Phase, cause: &str) {
        let same = |failure: &Failure| failure.phase == phase && failure.cause == cause;
        match self.errors.iter_mut().find(|(failure, _)| same(failure)) {
            Some((_, count)) => *count += 1,
            None => {
                let cause = cause.to_owned();
                self.errors.insert(Failure { phase, cause }, 1);
            }
        }
    }

    /// Counts one that was in `sent` already.
    pub fn fail_sent(&mut self, phase: Phase, cause: &str) {
        self.unsent_again += u64::from(phase.before_send());
        self.fail(phase, cause);
    }

    /// Counts a whole answer that `assertion`, or the code of a database's error, made a failure.
    /// Allocates for the first of its sort only. Beyond 1,000 sorts, which only a target that
    /// makes codes up has, the others are counted together.
    pub fn refuse(&mut self, assertion: &str) {
        const MOST_SORTS: usize = 1_000;
        self.refused += 1;
        let sort = match self.refusals.len() < MOST_SORTS || self.refusals.contains_key(assertion) {
            true => assertion,
            false => "others",
        };
        match self.refusals.get_mut(sort) {
            Some(count) => *count += 1,
            None => {
                self.refusals.insert(sort.to_owned(), 1);
            }
        }
    }

    /// Requests without a whole answer.
    pub fn failed(&self) -> u64 {
        self.errors.values().sum()
    }

    /// Requests that were never sent: no connection came about, or their values did not make a
    /// request.
    pub fn unsendable(&self) -> u64 {
        let errors = self.errors.iter();
        let before = errors.filter(|(failure, _)| failure.before_send());
        let before: u64 = before.map(|(_, count)| count).sum();
        before.saturating_sub(self.unsent_again)
    }

    /// Whole answers that nothing refused.
    pub fn good(&self) -> u64 {
        self.answered.saturating_sub(self.refused)
    }

    /// Adds requests of the same kind, or of another where kinds are told together.
    pub fn merge(&mut self, other: &Self) {
        self.sent += other.sent;
        self.waited += other.waited;
        self.answered += other.answered;
        self.refused += other.refused;
        self.intended.merge(&other.intended);
        self.actual.merge(&other.actual);
        self.lateness.merge(&other.lateness);
        self.intended_doubt.merge(&other.intended_doubt);
        self.actual_doubt.merge(&other.actual_doubt);
        self.unread_seconds += other.unread_seconds;
        self.in_time_at_best += other.in_time_at_best;
        self.retried += other.retried;
        self.retried_seconds += other.retried_seconds;
        self.unsent_again += other.unsent_again;
        add(&mut self.statuses, &other.statuses);
        add(&mut self.errors, &other.errors);
        add(&mut self.refusals, &other.refusals);
        if self.redirect.is_none() {
            self.redirect.clone_from(&other.redirect);
        }
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
    }

    /// Forgets everything and keeps the memory.
    pub fn clear(&mut self) {
        let mut kept = std::mem::take(self);
        for histogram in kept.histograms() {
            histogram.reset();
        }
        *self = Self {
            intended: kept.intended,
            actual: kept.actual,
            lateness: kept.lateness,
            intended_doubt: kept.intended_doubt,
            actual_doubt: kept.actual_doubt,
            ..Self::default()
        };
    }

    /// Takes as little memory as it can.
    pub(super) fn pack(&mut self) {
        for histogram in self.histograms() {
            histogram.pack();
        }
    }

    fn histograms(&mut self) -> [&mut Histogram; 7] {
        let (intended, actual) = (&mut self.intended_doubt, &mut self.actual_doubt);
        [
            &mut self.intended,
            &mut self.actual,
            &mut self.lateness,
            &mut intended.seen,
            &mut intended.least,
            &mut actual.seen,
            &mut actual.least,
        ]
    }
}

fn add<K: Ord + Clone>(to: &mut BTreeMap<K, u64>, from: &BTreeMap<K, u64>) {
    for (key, count) in from {
        match to.get_mut(key) {
            Some(sum) => *sum += count,
            None => {
                to.insert(key.clone(), *count);
            }
        }
    }
}
