//! Compliance over days: one aggregate an hour.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

use super::decision::UnixMillis;
use super::level::{FleetLevel, Precision};

/// Milliseconds of an hour.
const HOUR: i64 = 3_600_000;

/// The compliance of one hour: some 160 bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HourAggregate {
    /// When the hour begins.
    pub begin: UnixMillis,
    /// Milliseconds of it that are known.
    pub known: i64,
    /// The counts at its end, or the latest.
    pub level: FleetLevel,
    /// The lowest compliance in percent.
    pub lowest: f64,
    /// The highest compliance in percent.
    pub highest: f64,
    /// Percent times milliseconds.
    weighted: f64,
}

impl HourAggregate {
    fn new(begin: UnixMillis, level: FleetLevel, compliance: f64) -> Self {
        Self {
            begin,
            known: 0,
            level,
            lowest: compliance,
            highest: compliance,
            weighted: 0.0,
        }
    }

    /// The compliance in percent, on average over the time that is known.
    pub fn mean(&self) -> f64 {
        if self.known == 0 {
            return self.highest;
        }
        self.weighted / self.known as f64
    }

    fn see(&mut self, level: FleetLevel, compliance: f64) {
        self.level = level;
        self.lowest = self.lowest.min(compliance);
        self.highest = self.highest.max(compliance);
    }
}

/// The history of one thing: of the fleet, a rule, a group or a node.
#[derive(Debug, Clone)]
pub struct History {
    hours: VecDeque<HourAggregate>,
    limit: usize,
    /// What holds, and since when.
    now: Option<(FleetLevel, f64, UnixMillis)>,
}

impl History {
    /// Holds so many hours, and at least one.
    pub fn new(limit: usize) -> Self {
        Self {
            hours: VecDeque::new(),
            limit: limit.max(1),
            now: None,
        }
    }

    /// From `at` on these are the counts, until the next are given. Time that goes back is taken
    /// as if it stood still. A level without components has no compliance: its time is not known.
    pub fn observe(&mut self, level: &FleetLevel, at: UnixMillis) {
        let mut at = at;
        if let Some((_, _, since)) = self.now {
            at = at.max(since);
        }
        self.advance(at);
        let counted = level.without_unreported();
        if counted.total() == 0 {
            self.now = None;
            return;
        }
        let compliance = counted.percents(Precision::default()).compliance();
        self.now = Some((*level, compliance, at));
        self.hour(at.div_euclid(HOUR), *level, compliance);
    }

    /// Takes what holds as having held until `at`.
    pub fn advance(&mut self, at: UnixMillis) {
        let Some((level, compliance, mut since)) = self.now else {
            return;
        };
        // Hours that would be dropped again need not be made.
        let kept = i64::try_from(self.limit)
            .unwrap_or(i64::MAX)
            .saturating_mul(HOUR);
        since = since.max(at.saturating_sub(kept).div_euclid(HOUR) * HOUR);
        while since < at {
            let number = since.div_euclid(HOUR);
            let end = at.min((number + 1) * HOUR);
            let hour = self.hour(number, level, compliance);
            hour.known += end - since;
            hour.weighted += compliance * (end - since) as f64;
            since = end;
        }
        self.now = Some((level, compliance, at.max(since)));
    }

    /// The hours that are held, from the oldest.
    pub fn hours(&self) -> impl Iterator<Item = &HourAggregate> {
        self.hours.iter()
    }

    fn hour(&mut self, number: i64, level: FleetLevel, compliance: f64) -> &mut HourAggregate {
        let begin = number * HOUR;
        let fresh = HourAggregate::new(begin, level, compliance);
        if self.hours.back().is_none_or(|last| last.begin < begin) {
            if self.hours.len() >= self.limit {
                self.hours.pop_front();
            }
            self.hours.push_back(fresh);
        }
        let last = self.hours.len() - 1;
        let hour = &mut self.hours[last];
        hour.see(level, compliance);
        hour
    }
}

/// Histories of many things, of which there are at most so many.
#[derive(Debug)]
pub struct Histories<K> {
    all: HashMap<K, History>,
    hours: usize,
    limit: usize,
}

impl<K: Hash + Eq> Histories<K> {
    /// Holds so many hours of so many things: 160 bytes times both.
    pub fn new(hours: usize, limit: usize) -> Self {
        let all = HashMap::new();
        Self { all, hours, limit }
    }

    /// As [`History::observe`]. Of what is new when the limit is reached nothing is held, and
    /// false returned.
    pub fn observe(&mut self, of: K, level: &FleetLevel, at: UnixMillis) -> bool {
        if self.all.len() >= self.limit && !self.all.contains_key(&of) {
            return false;
        }
        let hours = self.hours;
        self.all
            .entry(of)
            .or_insert_with(|| History::new(hours))
            .observe(level, at);
        true
    }

    /// The history of one thing.
    pub fn of(&self, of: &K) -> Option<&History> {
        self.all.get(of)
    }

    /// Forgets one thing.
    pub fn remove(&mut self, of: &K) {
        self.all.remove(of);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{FleetLevel, HOUR, Histories, History};
    use crate::reports::level::ComplianceLevel;
    use crate::reports::status::Status;

    fn level(successes: u32, errors: u32) -> FleetLevel {
        let mut level = ComplianceLevel::of(Status::EnforceSuccess, successes);
        level.count(Status::EnforceError, errors);
        level.into()
    }

    #[test]
    fn an_hour_has_mean_extremes_and_end() {
        let mut history = History::new(24);
        history.observe(&level(1, 1), HOUR / 2);
        history.observe(&level(1, 0), 3 * HOUR / 4);
        history.observe(&level(3, 1), HOUR);
        history.advance(5 * HOUR / 2);
        let hours: Vec<_> = history.hours().copied().collect();
        assert_eq!(hours.len(), 3);
        assert_eq!((hours[0].known, hours[0].mean()), (HOUR / 2, 75.0));
        assert_eq!((hours[0].lowest, hours[0].highest), (50.0, 100.0));
        assert_eq!(hours[0].level, level(1, 0));
        assert_eq!((hours[1].known, hours[1].mean()), (HOUR, 75.0));
        assert_eq!((hours[2].begin, hours[2].known), (2 * HOUR, HOUR / 2));
    }

    #[test]
    fn what_is_not_known_is_no_zero() {
        let mut history = History::new(24);
        history.observe(&level(1, 0), 0);
        history.observe(&level(0, 0), HOUR / 4);
        history.observe(&level(1, 0), HOUR / 2);
        history.advance(HOUR);
        let hours: Vec<_> = history.hours().collect();
        assert_eq!((hours[0].known, hours[0].mean()), (3 * HOUR / 4, 100.0));
    }

    #[test]
    fn histories_are_bounded() {
        let mut histories = Histories::new(3, 1);
        assert!(histories.observe("a", &level(1, 0), 0));
        assert!(!histories.observe("b", &level(1, 0), 0));
        assert!(histories.observe("a", &level(1, 1), 1_000_000_000_000 * HOUR));
        let begins: Vec<i64> = histories
            .of(&"a")
            .unwrap()
            .hours()
            .map(|hour| hour.begin)
            .collect();
        assert_eq!(begins.len(), 3);
        assert_eq!(begins[2], 1_000_000_000_000 * HOUR);
        histories.remove(&"a");
        assert!(histories.observe("b", &level(1, 0), 0));
    }

    proptest! {
        #[test]
        fn all_time_is_counted_once(
            steps in prop::collection::vec((0_i64..3 * HOUR, 0_u32..5, 1_u32..5), 1..20),
        ) {
            let mut history = History::new(1000);
            let (mut at, mut first) = (0, None);
            for (step, successes, errors) in steps {
                at += step;
                first.get_or_insert(at);
                history.observe(&level(successes, errors), at);
            }
            let known: i64 = history.hours().map(|hour| hour.known).sum();
            prop_assert_eq!(Some(known), first.map(|first| at - first));
            for hour in history.hours() {
                prop_assert!(hour.lowest <= hour.mean() + 1e-9 && hour.mean() <= hour.highest + 1e-9);
                prop_assert!(hour.known <= HOUR);
            }
        }
    }
}
