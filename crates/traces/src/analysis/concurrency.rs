//! How much goes on at once, and where a limit shows: a level that is never exceeded while
//! others wait for it.

use std::collections::BTreeMap;

use serde::Serialize;

use super::known::Known;
use crate::Nanos;
use crate::{Name, Span, SpanKind};

/// A level is a limit if nearly all waiting happened while it was reached.
const WAITED_AT_LIMIT: f64 = 0.9;

/// Where the limit is known, from this share on: others wait for wake-ups.
const WAITED_AT_KNOWN: f64 = 0.5;

/// And if there was waiting for so much of the time in which anything went on.
const WAITED: f64 = 0.05;

/// How many requests a service had in hand at once, over the time in which it had any.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Concurrency {
    /// Its name.
    pub service: String,
    /// Mean over that time.
    pub mean: f64,
    /// The most.
    pub maximum: u64,
    /// Of the time in which work waited for a worker, the share in which as many worked as
    /// are allowed, or as ever did. `None`: none waited, or several instances share it.
    pub waited_while_full: Option<f64>,
    /// What bounds its work, or its calls, if something does.
    pub plateau: Option<ConcurrencyLimit>,
}

/// A level that was never exceeded while others waited.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ConcurrencyLimit {
    /// So many at once.
    pub level: u64,
    /// Share of the busy time at this level.
    pub share: f64,
    /// What has the limit: `workers of store`, `connections of root>store`.
    pub limit: String,
    /// What the profile allows, where it is known: of all instances together.
    pub allowed: Option<u64>,
    /// Mean time that one waits for it, in nanoseconds.
    pub wait_ns: f64,
}

/// What goes on, and what waits, as changes over time.
#[derive(Default)]
struct Flow {
    /// When, how many more run, how many more wait.
    changes: Vec<(Nanos, i32, i32)>,
    waits: f64,
    count: u64,
}

/// Times at levels.
struct Levels {
    busy: Nanos,
    mean: f64,
    maximum: i64,
    waiting: Nanos,
    /// While at least as many ran as are allowed, or as ever did.
    at_full: Nanos,
    waiting_while_full: Nanos,
}

impl Levels {
    fn waited_while_full(&self) -> Option<f64> {
        let waited = self.waiting > 0;
        waited.then(|| self.waiting_while_full as f64 / self.waiting as f64)
    }
}

impl Flow {
    fn add(&mut self, span: &Span, queue: Nanos) {
        let begun = span.start.saturating_add(queue).min(span.end);
        if begun > span.start {
            self.changes.push((span.start, 0, 1));
            self.changes.push((begun, 0, -1));
        }
        if span.end > begun {
            self.changes.push((begun, 1, 0));
            self.changes.push((span.end, -1, 0));
        }
        self.waits += begun.saturating_sub(span.start) as f64;
        self.count += 1;
    }

    fn levels(&mut self, allowed: Option<u64>) -> Levels {
        // At one moment, ends come before beginnings.
        self.changes.sort_unstable();
        let (mut level, mut maximum) = (0_i64, 0_i64);
        for (_, running, _) in &self.changes {
            level += i64::from(*running);
            maximum = maximum.max(level);
        }
        let allowed = allowed.and_then(|allowed| i64::try_from(allowed).ok());
        let allowed = allowed.unwrap_or(maximum);
        let mut levels = Levels {
            busy: 0,
            mean: 0.0,
            maximum,
            waiting: 0,
            at_full: 0,
            waiting_while_full: 0,
        };
        let (mut level, mut waiting, mut since, mut area) = (0_i64, 0_i64, 0, 0.0);
        for (at, running, waiters) in &self.changes {
            let length = at.saturating_sub(since);
            let full = level >= allowed;
            levels.busy += if level > 0 { length } else { 0 };
            levels.at_full += if full { length } else { 0 };
            let waited = if waiting > 0 { length } else { 0 };
            levels.waiting += waited;
            levels.waiting_while_full += if full { waited } else { 0 };
            area += length as f64 * level as f64;
            level += i64::from(*running);
            waiting += i64::from(*waiters);
            since = *at;
        }
        levels.mean = area / levels.busy.max(1) as f64;
        levels
    }

    fn plateau(
        &self,
        levels: &Levels,
        limit: String,
        allowed: Option<u64>,
    ) -> Option<ConcurrencyLimit> {
        let share = |part: Nanos, whole: Nanos| part as f64 / whole.max(1) as f64;
        // One that ends on a worker's clock and one that begins there overlap by a moment:
        // a limit that is known is not read off the maximum.
        let (level, least) = match allowed {
            Some(allowed) => (allowed, WAITED_AT_KNOWN),
            None => (levels.maximum.unsigned_abs(), WAITED_AT_LIMIT),
        };
        let limited = levels.waiting > 0
            && share(levels.waiting, levels.busy) >= WAITED
            && share(levels.waiting_while_full, levels.waiting) >= least;
        limited.then(|| ConcurrencyLimit {
            level,
            share: share(levels.at_full, levels.busy),
            limit,
            allowed,
            wait_ns: self.waits / self.count.max(1) as f64,
        })
    }
}

/// Of every service. Only what was traced counts, so a sample shows less than there was.
pub(super) fn of(spans: &[Span], known: Option<&Known>) -> Vec<Concurrency> {
    let mut servers: BTreeMap<&Name, Flow> = BTreeMap::new();
    let mut works: BTreeMap<&Name, Flow> = BTreeMap::new();
    let mut calls: BTreeMap<(&Name, &Name), Flow> = BTreeMap::new();
    for span in spans {
        match span.kind {
            // What waits for the thread is in the service already.
            SpanKind::Server => servers.entry(&span.service).or_default().add(span, 0),
            // Sleeps are timers: no worker is held.
            SpanKind::Work if *span.name == *"sleep" => {}
            SpanKind::Internal => {}
            SpanKind::Work => works
                .entry(&span.service)
                .or_default()
                .add(span, span.queue),
            SpanKind::Client => {
                let edge = (&span.service, &span.peer);
                calls.entry(edge).or_default().add(span, span.queue);
            }
        }
    }
    let mut plateaus: BTreeMap<&Name, ConcurrencyLimit> = BTreeMap::new();
    let mut full: BTreeMap<&Name, f64> = BTreeMap::new();
    for (service, mut flow) in works {
        let limit = format!("workers of {service}");
        let allowed = known.and_then(|one| one.workers(service));
        let levels = flow.levels(allowed);
        // Of several instances one can be full while others are not.
        let instances = |one: &Known| one.service(service).map(|one| one.instances);
        let one_instance = known.is_none_or(|one| instances(one) == Some(1));
        let waited = levels.waited_while_full().filter(|_| one_instance);
        full.extend(waited.map(|share| (service, share)));
        let found = flow.plateau(&levels, limit, allowed);
        plateaus.extend(found.map(|found| (service, found)));
    }
    for ((from, to), mut flow) in calls {
        let limit = format!("connections of {from}>{to}");
        let allowed = known.and_then(|one| one.connections(from, to));
        let levels = flow.levels(allowed);
        let Some(found) = flow.plateau(&levels, limit, allowed) else {
            continue;
        };
        let worse = plateaus
            .get(from)
            .is_none_or(|one| one.wait_ns < found.wait_ns);
        if worse {
            plateaus.insert(from, found);
        }
    }
    let all = servers.into_iter().map(|(service, mut flow)| {
        let levels = flow.levels(None);
        Concurrency {
            service: service.to_string(),
            mean: levels.mean,
            maximum: levels.maximum.unsigned_abs(),
            waited_while_full: full.remove(service),
            plateau: plateaus.remove(service),
        }
    });
    all.collect()
}
