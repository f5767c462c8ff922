//! Compliance over days: one aggregate an hour. Hours that are durable elsewhere are forgotten here, but the last,
//! which goes on.

#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

use super::decision::UnixMillis;
use super::level::{FleetLevel, Precision};

/// Milliseconds of an hour.
pub(crate) const HOUR: i64 = 3_600_000;

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
    pub weighted: f64,
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

/// An hour, and whether it is durable as it stands.
#[derive(Debug, Clone)]
struct Held {
    hour: HourAggregate,
    written: bool,
}

/// The history of one thing: of the fleet, a rule, a group or a node.
#[derive(Debug, Clone)]
pub struct History {
    hours: VecDeque<Held>,
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

    /// Goes on with the last hour that is durable. What held since is not known.
    pub fn resume(&mut self, hour: HourAggregate) {
        let written = true;
        if self.hours.is_empty() {
            self.hours.push_back(Held { hour, written });
        }
    }

    /// From `at` on these are the counts, until the next are given. Time that goes back is taken
    /// as if it stood still. A level without components has no compliance: its time is not known.
    pub fn observe(&mut self, level: &FleetLevel, at: UnixMillis) {
        let mut at = at;
        if let Some(last) = self.hours.back() {
            at = at.max(last.hour.begin);
        }
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
            // After a clock went back a part of an hour may come twice.
            let known = (end - since).min(HOUR - hour.known);
            hour.known += known;
            hour.weighted += compliance * known as f64;
            since = end;
        }
        self.now = Some((level, compliance, at.max(since)));
    }

    /// The hours that are held, from the oldest.
    pub fn hours(&self) -> impl Iterator<Item = &HourAggregate> {
        self.hours.iter().map(|held| &held.hour)
    }

    /// The hours that are not durable as they stand, from the oldest.
    pub fn unwritten(&self) -> impl Iterator<Item = &HourAggregate> {
        let unwritten = self.hours.iter().filter(|held| !held.written);
        unwritten.map(|held| &held.hour)
    }

    /// An hour is durable as it stood in [`Self::unwritten`]; it may have gone on since.
    pub fn written(&mut self, hour: &HourAggregate) {
        for held in &mut self.hours {
            held.written |= held.hour == *hour;
        }
        while self.hours.len() > 1 && self.hours.front().is_some_and(|held| held.written) {
            self.hours.pop_front();
        }
    }

    /// Is there nothing to go on with?
    fn ended(&self) -> bool {
        self.now.is_none() && self.hours.iter().all(|held| held.written)
    }

    fn hour(&mut self, number: i64, level: FleetLevel, compliance: f64) -> &mut HourAggregate {
        let begin = number * HOUR;
        if self.hours.back().is_none_or(|last| last.hour.begin < begin) {
            if self.hours.len() >= self.limit {
                self.hours.pop_front();
            }
            let hour = HourAggregate::new(begin, level, compliance);
            let written = false;
            self.hours.push_back(Held { hour, written });
        }
        let last = self.hours.len() - 1;
        let held = &mut self.hours[last];
        held.written = false;
        held.hour.see(level, compliance);
        &mut held.hour
    }
}

/// Histories of many things, of which there are at most so many.
#[derive(Debug)]
pub struct Histories<K> {
    all: HashMap<K, History>,
    hours: usize,
    limit: usize,
}

impl<K: Hash + Eq + Clone> Histories<K> {
    /// Holds so many hours of so many things: 160 bytes times both at most, and mostly one hour
    /// of each if they are made durable.
    pub fn new(hours: usize, limit: usize) -> Self {
        let all = HashMap::new();
        Self { all, hours, limit }
    }

    /// As [`History::observe`]. Of what is new when the limit is reached nothing is held, and
    /// false returned.
    pub fn observe(&mut self, of: K, level: &FleetLevel, at: UnixMillis) -> bool {
        self.change(of, |history| history.observe(level, at))
    }

    /// As [`History::resume`], within the limit too.
    pub fn resume(&mut self, of: K, hour: HourAggregate) -> bool {
        self.change(of, |history| history.resume(hour))
    }

    fn change(&mut self, of: K, change: impl FnOnce(&mut History)) -> bool {
        if self.all.len() >= self.limit && !self.all.contains_key(&of) {
            return false;
        }
        let hours = self.hours;
        change(self.all.entry(of).or_insert_with(|| History::new(hours)));
        true
    }

    /// Takes what holds of everything as having held until `at`.
    pub fn advance(&mut self, at: UnixMillis) {
        for history in self.all.values_mut() {
            history.advance(at);
        }
    }

    /// The hours of everything that are not durable as they stand.
    pub fn unwritten(&self) -> Vec<(K, HourAggregate)> {
        let of = |(of, history): (&K, &History)| {
            let of = of.clone();
            let hours: Vec<_> = history.unwritten().copied().collect();
            hours.into_iter().map(move |hour| (of.clone(), hour))
        };
        self.all.iter().flat_map(of).collect()
    }

    /// These are durable as they stood; what has ended is forgotten.
    pub fn written(&mut self, hours: &[(K, HourAggregate)]) {
        for (of, hour) in hours {
            if let Some(history) = self.all.get_mut(of) {
                history.written(hour);
            }
        }
        self.all.retain(|_, history| !history.ended());
    }

    /// The history of one thing.
    pub fn of(&self, of: &K) -> Option<&History> {
        self.all.get(of)
    }
}
