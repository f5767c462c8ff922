//! What was counted lately: differences of readings, of this process and of others.

use std::collections::{BTreeMap, HashMap, VecDeque};

use super::snapshot::{Key, Snapshot, Totals};
use crate::Nanos;

/// Most readings that are remembered.
pub const READINGS: usize = 60;

/// Most totals that are remembered over all readings: a graph of thousands of services
/// remembers fewer readings. The last one is always there.
const TOTALS: usize = 50_000;

/// Readings of counters, of one source or of several, and what came between them.
#[derive(Debug, Default)]
pub struct History {
    /// The last reading of each source.
    sources: HashMap<String, Source>,
    /// All that came in, since the start.
    all: BTreeMap<Key, Totals>,
    steps: VecDeque<Step>,
    totals: usize,
}

#[derive(Debug, Default)]
struct Source {
    last: Snapshot,
    /// Whether it was read in this round.
    read: bool,
}

/// What came within one round.
#[derive(Debug)]
struct Step {
    from: Nanos,
    to: Nanos,
    more: BTreeMap<Key, Totals>,
}

/// What came in a time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Window {
    /// The time, in seconds; 0: there are not two readings yet.
    pub seconds: f64,
    /// What came in it; what there is now, as of the last reading.
    pub totals: Snapshot,
}

impl History {
    /// Begins a round at `now`: all sources are read, then comes the next round.
    pub fn round(&mut self, now: Nanos) {
        for source in self.sources.values_mut() {
            source.read = false;
        }
        let from = self.steps.back().map_or(now, |step| step.to);
        self.steps.push_back(Step {
            from,
            to: now.max(from),
            more: BTreeMap::new(),
        });
        while self.steps.len() > READINGS || (self.totals > TOTALS && self.steps.len() > 1) {
            if let Some(old) = self.steps.pop_front() {
                self.totals -= old.more.len();
            }
        }
    }

    /// Takes the reading of a source into the round. A source that is new counts from
    /// zero: it began after the last round. One that misses a round has nothing now, and
    /// what it counted meanwhile comes with its next reading.
    pub fn read(&mut self, source: &str, snapshot: Snapshot) {
        let known = self.sources.entry(source.to_owned()).or_default();
        known.read = true;
        let before = std::mem::replace(&mut known.last, snapshot);
        let Some(step) = self.steps.back_mut() else {
            return;
        };
        let nothing = Totals::default();
        for (key, now) in &known.last.0 {
            let more = now.since(before.0.get(key).unwrap_or(&nothing));
            let all = self.all.entry(key.clone()).or_default();
            if more == nothing {
                continue;
            }
            all.add_counts(&more);
            self.totals += usize::from(!step.more.contains_key(key));
            step.more.entry(key.clone()).or_default().add_counts(&more);
        }
    }

    /// All that came since the start, and what there is now.
    pub fn all(&self) -> Snapshot {
        self.with_present(self.all.clone())
    }

    /// What came in the last rounds: as many as make up `length`, at least one.
    pub fn window(&self, length: Nanos) -> Window {
        let Some(last) = self.steps.back() else {
            return Window::default();
        };
        let mut from = last.to;
        let mut more = BTreeMap::<Key, Totals>::new();
        for step in self.steps.iter().rev() {
            // The first round has no beginning: what it read came before it.
            if step.from == step.to || (from < last.to && last.to - step.from > length) {
                break;
            }
            from = step.from;
            for (key, totals) in &step.more {
                more.entry(key.clone()).or_default().add_counts(totals);
            }
        }
        Window {
            seconds: (last.to - from) as f64 / 1e9,
            totals: self.with_present(more),
        }
    }

    /// Adds what there is now: the gauges of sources that were read in the last round, and
    /// everything that they know of, if only as zero.
    fn with_present(&self, mut counts: BTreeMap<Key, Totals>) -> Snapshot {
        for source in self.sources.values().filter(|source| source.read) {
            for (key, now) in &source.last.0 {
                counts.entry(key.clone()).or_default().add_present(now);
            }
        }
        Snapshot(counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Nanos = 1_000_000_000;

    fn key() -> Key {
        Key::Connections {
            service: "a".into(),
        }
    }

    fn opened(opened: u64, open: u64) -> Snapshot {
        let totals = Totals {
            opened,
            open,
            ..Totals::default()
        };
        Snapshot([(key(), totals)].into())
    }

    fn seen(window: &Window) -> (f64, u64, u64) {
        let totals = &window.totals.0[&key()];
        (window.seconds, totals.opened, totals.open)
    }

    #[test]
    fn a_window_holds_what_came_in_it() {
        let mut history = History::default();
        assert_eq!(history.window(S), Window::default());
        for second in 0..=10 {
            history.round(S * (100 + second));
            history.read("here", opened(1000 + 10 * second, second));
        }
        assert_eq!(seen(&history.window(S)), (1.0, 10, 10));
        assert_eq!(seen(&history.window(5 * S)), (5.0, 50, 10));
        // The first reading is not part of any time.
        assert_eq!(seen(&history.window(100 * S)), (10.0, 100, 10));
        assert_eq!(history.all().0[&key()].opened, 1100);
    }

    #[test]
    fn sources_add_up_and_may_start_anew() {
        let mut history = History::default();
        history.round(S);
        history.read("one", opened(5, 1));
        history.read("two", opened(7, 2));
        history.round(2 * S);
        history.read("one", opened(8, 1));
        // It was restarted, and has counted 4 since.
        history.read("two", opened(4, 3));
        assert_eq!(seen(&history.window(S)), (1.0, 7, 4));
        assert_eq!(history.all().0[&key()].opened, 19);
        // One is gone: what it counted stays, what it had now does not.
        history.round(3 * S);
        history.read("two", opened(4, 3));
        history.round(4 * S);
        history.read("two", opened(5, 3));
        assert_eq!(seen(&history.window(S)), (1.0, 1, 3));
        assert_eq!(history.all().0[&key()].opened, 20);
    }

    #[test]
    fn memory_has_bounds() {
        let mut history = History::default();
        let many = |count: u64| {
            let all = (0..30_000).map(|name| {
                let service = format!("s{name}").as_str().into();
                let totals = Totals {
                    opened: count,
                    ..Totals::default()
                };
                (Key::Connections { service }, totals)
            });
            Snapshot(all.collect())
        };
        for second in 1..6 {
            history.round(S * second);
            history.read("here", many(second));
        }
        assert!(history.totals <= TOTALS + 30_000);
        assert!(history.steps.len() <= 3);
        let mut history = History::default();
        for second in 1..200 {
            history.round(S * second);
            history.read("here", opened(second, 0));
        }
        assert_eq!(seen(&history.window(1000 * S)), (60.0, 60, 0));
    }
}
