//! A server whose truth is known, to hold measurements against: how long it works on a
//! request, how many at once, how many it fails, and when it stands still.
//!
//! Its queue is computed and not lived: a request that finds all slots busy is given the
//! moment at which a slot would be free, and is answered when its own work would be done.
//! So a pool of 20 slots of 20 ms serves 1,000 requests a second to the last one, however
//! late this process is woken.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::{Fate, Script};

/// What is drawn for a request: how long the work on it takes, and whether it fails.
pub type Draw = Box<dyn FnMut() -> (Duration, bool) + Send>;

/// How a target answers.
pub struct TargetSettings {
    /// Asked once for each request that is taken.
    pub draw: Draw,
    /// Requests that are worked on at once; the others wait. `None`: all.
    pub pool: Option<u32>,
    /// Requests a second that are taken, with a burst of one second's worth; the others are
    /// answered 429 at once.
    pub rate_limit: Option<f64>,
    /// Status of answers that fail.
    pub status: u16,
    /// When nothing is worked on or answered, counted from the first request.
    pub frozen: Vec<Range<Duration>>,
    /// When every request has its connection reset, counted from the first request.
    pub down: Vec<Range<Duration>>,
}

/// A server whose truth is known. See the module.
pub struct Target {
    state: Mutex<State>,
    counts: Counts,
}

/// What became of the requests of a [`Target`].
#[derive(Debug, Default)]
struct Counts {
    good: AtomicU64,
    failed: AtomicU64,
    limited: AtomicU64,
    reset: AtomicU64,
}

/// What became of the requests so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TargetCounts {
    /// Taken, to be answered well.
    pub good: u64,
    /// Taken, to be answered with the status of failures.
    pub failed: u64,
    /// Beyond the rate limit.
    pub limited: u64,
    /// Their connections were reset.
    pub reset: u64,
}

struct State {
    settings: TargetSettings,
    /// When the first request came.
    began: Option<u64>,
    /// When each busy slot of the pool will be free, the first one first.
    slots: BinaryHeap<Reverse<u64>>,
    /// Requests that the rate limit has room for, as of a moment.
    tokens: f64,
    filled: u64,
}

impl Target {
    /// One that no request has reached yet.
    pub fn new(settings: TargetSettings) -> Self {
        Self {
            state: Mutex::new(State {
                tokens: settings.rate_limit.unwrap_or(0.0).max(1.0),
                settings,
                began: None,
                slots: BinaryHeap::new(),
                filled: 0,
            }),
            counts: Counts::default(),
        }
    }

    /// What became of the requests so far.
    pub fn counts(&self) -> TargetCounts {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        TargetCounts {
            good: read(&self.counts.good),
            failed: read(&self.counts.failed),
            limited: read(&self.counts.limited),
            reset: read(&self.counts.reset),
        }
    }
}

impl Script for Target {
    fn fate(&self, now: u64) -> Fate {
        // A thread that panicked left whole numbers behind.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let fate = state.fate(now);
        drop(state);
        let count = match fate {
            Fate::Answer { failing: None, .. } => &self.counts.good,
            Fate::Answer { at: None, .. } => &self.counts.limited,
            Fate::Answer { .. } => &self.counts.failed,
            _ => &self.counts.reset,
        };
        count.fetch_add(1, Ordering::Relaxed);
        fate
    }
}

impl State {
    fn fate(&mut self, now: u64) -> Fate {
        let began = *self.began.get_or_insert(now);
        let within = |range: &Range<u64>| range.contains(&now);
        if moments(&self.settings.down, began).any(|range| within(&range)) {
            return Fate::Reset;
        }
        if !self.takes(now) {
            return Fate::Answer {
                at: None,
                failing: Some(429),
            };
        }
        let (work, fails) = (self.settings.draw)();
        let work = u64::try_from(work.as_nanos()).unwrap_or(u64::MAX);
        let at = match self.settings.pool {
            None => self.done(now, work, began),
            Some(pool) => {
                let free = match self.slots.len() < pool as usize {
                    true => now,
                    false => self.slots.pop().map_or(now, |Reverse(free)| free.max(now)),
                };
                let done = self.done(free, work, began);
                self.slots.push(Reverse(done));
                done
            }
        };
        let failing = fails.then_some(self.settings.status);
        // A failure always has its moment: at once is what the rate limit says.
        let at = (at > now || fails).then_some(at);
        Fate::Answer { at, failing }
    }

    /// Whether the rate limit has room for a request now, which then is used.
    fn takes(&mut self, now: u64) -> bool {
        let Some(rate) = self.settings.rate_limit else {
            return true;
        };
        let passed = Duration::from_nanos(now.saturating_sub(self.filled)).as_secs_f64();
        self.filled = self.filled.max(now);
        self.tokens = (self.tokens + passed * rate).min(rate.max(1.0));
        let takes = self.tokens >= 1.0;
        if takes {
            self.tokens -= 1.0;
        }
        takes
    }

    /// When work that begins at `from` is done: it stands still while the target is frozen.
    fn done(&self, from: u64, work: u64, began: u64) -> u64 {
        let mut done = from.saturating_add(work);
        for frozen in moments(&self.settings.frozen, began) {
            if from < frozen.end && done > frozen.start {
                let lost = frozen.end - frozen.start.max(from);
                done = done.saturating_add(lost);
            } else if frozen.contains(&done) {
                // Nothing is answered while it is frozen.
                done = frozen.end;
            }
        }
        done
    }
}

/// Lengths of time as moments of the clock, in order.
fn moments(ranges: &[Range<Duration>], began: u64) -> impl Iterator<Item = Range<u64>> + '_ {
    let at = move |length: Duration| {
        let length = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
        began.saturating_add(length)
    };
    ranges
        .iter()
        .map(move |range| at(range.start)..at(range.end))
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target")
            .field("counts", &self.counts)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Works 20 ms on each request, and fails none.
    fn settings() -> TargetSettings {
        TargetSettings {
            draw: Box::new(|| (Duration::from_millis(20), false)),
            pool: None,
            rate_limit: None,
            status: 500,
            frozen: Vec::new(),
            down: Vec::new(),
        }
    }

    fn span(from: u64, to: u64) -> Range<Duration> {
        Duration::from_millis(from)..Duration::from_millis(to)
    }

    /// When requests are answered, all in milliseconds.
    fn answered(settings: TargetSettings, arrivals: &[u64]) -> Vec<Option<u64>> {
        let target = Target::new(settings);
        let mut answered = Vec::new();
        for arrival in arrivals {
            // The clock's zero has no meaning, so another one gives the same.
            answered.push(match target.fate((arrival + 77) * MS) {
                Fate::Answer {
                    at: Some(at),
                    failing: None,
                } => Some(at / MS - 77),
                _ => None,
            });
        }
        answered
    }

    #[test]
    fn a_pool_serves_so_many_at_once_and_the_others_in_their_order() {
        let of_two = TargetSettings {
            pool: Some(2),
            ..settings()
        };
        let seen = answered(of_two, &[0, 0, 0, 5, 100]);
        assert_eq!(seen, [20, 20, 40, 40, 120].map(Some));
        // The twin without a pool has no queue.
        let seen = answered(settings(), &[0, 0, 0, 5, 100]);
        assert_eq!(seen, [20, 20, 20, 25, 120].map(Some));
    }

    #[test]
    fn a_full_pool_has_exactly_its_capacity() {
        let target = Target::new(TargetSettings {
            pool: Some(20),
            ..settings()
        });
        let last = (0..5_000).map(|_| target.fate(0)).last();
        // 5,000 requests, 1,000 a second.
        let at = Some(5_000 * MS);
        assert_eq!(last, Some(Fate::Answer { at, failing: None }));
        assert_eq!(target.counts().good, 5_000);
    }

    #[test]
    fn while_frozen_nothing_is_worked_on_or_answered() {
        let frozen = TargetSettings {
            frozen: vec![span(100, 200), span(300, 310)],
            ..settings()
        };
        let seen = answered(frozen, &[0, 80, 81, 90, 150, 199, 200, 285, 400]);
        let expected = [20, 200, 201, 210, 220, 220, 220, 315, 420];
        assert_eq!(seen, expected.map(Some));
    }

    #[test]
    fn while_down_it_resets_and_afterwards_it_serves() {
        let down = TargetSettings {
            down: vec![span(100, 200)],
            ..settings()
        };
        let seen = answered(down, &[0, 99, 100, 199, 200]);
        assert_eq!(seen, [Some(20), Some(119), None, None, Some(220)]);
    }

    #[test]
    fn a_rate_limit_takes_one_second_at_once_and_then_its_rate() {
        let target = Target::new(TargetSettings {
            rate_limit: Some(10.0),
            ..settings()
        });
        for arrival in 0..1_000 {
            target.fate(arrival * 10 * MS);
        }
        // Ten at the start, and ten in each of the ten seconds less the last instant.
        let counts = target.counts();
        assert!((108..=110).contains(&counts.good), "{counts:?}");
        assert_eq!(counts.good + counts.limited, 1_000);
    }

    #[test]
    fn failures_take_their_time_and_are_counted() {
        let mut number = 0;
        let target = Target::new(TargetSettings {
            draw: Box::new(move || {
                number += 1;
                (Duration::from_millis(20), number % 4 == 0)
            }),
            ..settings()
        });
        let fates: Vec<Fate> = (0..8).map(|_| target.fate(0)).collect();
        let failed = Fate::Answer {
            at: Some(20 * MS),
            failing: Some(500),
        };
        assert_eq!(fates.iter().filter(|fate| **fate == failed).count(), 2);
        assert_eq!((target.counts().good, target.counts().failed), (6, 2));
    }
}
