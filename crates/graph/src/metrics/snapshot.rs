//! What counters said at a moment, as plain data that adds up: over instances, threads
//! and processes.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use traces::failure;

use super::counters::{CLASSES, ClientCounters, ConnectionCounters, ServerCounters, WorkCounters};
use super::histogram::Times;
use crate::Nanos;

/// What totals are about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Key {
    /// Connections of a service's clients.
    Connections {
        /// The service.
        service: Arc<str>,
    },
    /// Requests.
    Server {
        /// The service.
        service: Arc<str>,
        /// The endpoint; `None`: paths that no endpoint has.
        path: Option<Arc<str>>,
    },
    /// Calls.
    Client {
        /// Who calls.
        from: Arc<str>,
        /// Who is called.
        to: Arc<str>,
    },
    /// Work.
    Work {
        /// The service.
        service: Arc<str>,
        /// The step's number.
        step: u32,
        /// What kind of work it is.
        kind: Arc<str>,
    },
}

/// What was counted of one thing. What the kind of thing has not is 0.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Totals {
    /// Times by class of status: its first digit, 0 for none; those of work are in class 2.
    pub times: BTreeMap<u8, Times>,
    /// Failures by the place of their cause in [`failure::ALL`].
    pub failures: BTreeMap<u8, u64>,
    /// Time spent waiting before it began.
    pub queue: Nanos,
    /// Requests without an answer.
    pub dropped: u64,
    /// Attempts of calls.
    pub attempts: u64,
    /// Attempts after the first.
    pub retries: u64,
    /// Connections that were opened or accepted.
    pub opened: u64,
    /// Processor time.
    pub cpu: Nanos,
    /// Processor time that others took.
    pub stolen: Nanos,
    /// Now: requests or attempts under way.
    pub in_flight: u64,
    /// Now: calls that wait for a connection.
    pub waiting: u64,
    /// Now: connections.
    pub open: u64,
}

/// The totals of everything that is counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot(pub BTreeMap<Key, Totals>);

impl Serialize for Snapshot {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Keys are no texts, so it is a list of pairs.
        serializer.collect_seq(&self.0)
    }
}

impl<'de> Deserialize<'de> for Snapshot {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let pairs = Vec::<(Key, Totals)>::deserialize(deserializer)?;
        Ok(Self(pairs.into_iter().collect()))
    }
}

impl Totals {
    /// Adds what another has counted, and what it has now.
    pub fn add(&mut self, other: &Self) {
        self.add_counts(other);
        self.add_present(other);
    }

    /// Adds what another has now.
    pub(super) fn add_present(&mut self, other: &Self) {
        self.in_flight += other.in_flight;
        self.waiting += other.waiting;
        self.open += other.open;
    }

    /// Adds what another has counted.
    pub(super) fn add_counts(&mut self, other: &Self) {
        for (class, times) in &other.times {
            self.times.entry(*class).or_default().add(times);
        }
        for (cause, count) in &other.failures {
            *self.failures.entry(*cause).or_default() += count;
        }
        for (all, more) in self.rising_mut().into_iter().zip(other.rising()) {
            *all = all.wrapping_add(more);
        }
    }

    /// What came since `before`, an earlier reading of the same. What has shrunk has
    /// started anew. What there is now is not part of it.
    pub(super) fn since(&self, before: &Self) -> Self {
        let mut more = Self::default();
        for (class, times) in &self.times {
            let times = match before.times.get(class) {
                Some(old) if old == times => continue,
                Some(old) => times.since(old),
                None => times.clone(),
            };
            more.times.insert(*class, times);
        }
        for (cause, count) in &self.failures {
            let old = before.failures.get(cause).copied().unwrap_or(0);
            let count = count.checked_sub(old).unwrap_or(*count);
            if count > 0 {
                more.failures.insert(*cause, count);
            }
        }
        let pairs = self.rising().into_iter().zip(before.rising());
        for (to, (now, old)) in more.rising_mut().into_iter().zip(pairs) {
            *to = now.checked_sub(old).unwrap_or(now);
        }
        more
    }

    /// Times of answers that are no failures: a status below 500, or work.
    pub fn good(&self) -> Times {
        self.times_of(|class| (1..=4).contains(&class))
    }

    /// Answers that are failures, or none.
    pub fn bad(&self) -> Times {
        self.times_of(|class| !(1..=4).contains(&class))
    }

    fn times_of(&self, wanted: impl Fn(u8) -> bool) -> Times {
        let mut all = Times::default();
        for (_, times) in self.times.iter().filter(|(class, _)| wanted(**class)) {
            all.add(times);
        }
        all
    }

    pub(super) fn of_connections(counters: &ConnectionCounters) -> Self {
        Self {
            opened: counters.accepted.get(),
            open: counters.open.get(),
            ..Self::default()
        }
    }

    pub(super) fn of_server(counters: &ServerCounters) -> Self {
        Self {
            times: classes(&counters.latency),
            failures: causes(&counters.failures),
            queue: counters.queue.get(),
            dropped: counters.dropped.get(),
            in_flight: counters.in_flight.get(),
            ..Self::default()
        }
    }

    pub(super) fn of_client(counters: &ClientCounters) -> Self {
        Self {
            times: classes(&counters.latency),
            failures: causes(&counters.failures),
            queue: counters.queue.get(),
            attempts: counters.attempts.get(),
            retries: counters.retries.get(),
            opened: counters.opened.get(),
            open: counters.open.get(),
            in_flight: counters.in_flight.get(),
            waiting: counters.waiting.get(),
            ..Self::default()
        }
    }

    pub(super) fn of_work(counters: &WorkCounters) -> Self {
        let times = counters.wall.times();
        let times = (!times.is_empty()).then_some((2, times));
        Self {
            times: times.into_iter().collect(),
            failures: causes(&counters.failures),
            queue: counters.queue.get(),
            cpu: counters.cpu.get(),
            stolen: counters.stolen.get(),
            ..Self::default()
        }
    }

    fn rising(&self) -> [u64; 7] {
        [
            self.queue,
            self.dropped,
            self.attempts,
            self.retries,
            self.opened,
            self.cpu,
            self.stolen,
        ]
    }

    fn rising_mut(&mut self) -> [&mut u64; 7] {
        [
            &mut self.queue,
            &mut self.dropped,
            &mut self.attempts,
            &mut self.retries,
            &mut self.opened,
            &mut self.cpu,
            &mut self.stolen,
        ]
    }
}

impl Snapshot {
    /// Adds all that another has.
    pub fn add(&mut self, other: &Self) {
        for (key, totals) in &other.0 {
            self.0.entry(key.clone()).or_default().add(totals);
        }
    }
}

fn classes(by_status: &super::counters::ByStatus) -> BTreeMap<u8, Times> {
    let seen = by_status.seen();
    let seen = seen.filter_map(|(class, times)| Some((u8::try_from(class).ok()?, times.times())));
    seen.collect()
}

fn causes(by_cause: &super::counters::ByCause) -> BTreeMap<u8, u64> {
    let counts = (0_u8..).zip(by_cause.get());
    counts.filter(|(_, count)| *count > 0).collect()
}

/// The name of a class of status.
pub(super) fn class_name(class: u8) -> &'static str {
    CLASSES.get(usize::from(class)).copied().unwrap_or("none")
}

/// The name of a cause of failure.
pub fn cause_name(cause: u8) -> &'static str {
    failure::ALL
        .get(usize::from(cause))
        .copied()
        .unwrap_or("other")
}
