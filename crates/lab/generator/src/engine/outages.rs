//! When requests failed, when they were answered again, and how long they waited meanwhile: to
//! the millisecond in which each was due, in bounded memory, and readable while the load goes on.

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// Length of a slot, in nanoseconds.
const SLOT: u64 = 1_000_000;
/// Slots of a chunk.
const SLOTS: u64 = 1 << 16;
/// Most chunks: 37 hours. What is due later is not seen here.
const CHUNKS: usize = 2048;
const WORDS: usize = (SLOTS / 64) as usize;

/// Which milliseconds of a segment had requests due that failed, and which had some that
/// were answered well. Threads write to it without waiting for each other.
#[derive(Debug)]
pub struct Outages(Box<[OnceLock<Box<Chunk>>]>);

#[derive(Debug)]
struct Chunk {
    good: [AtomicU64; WORDS],
    failed: [AtomicU64; WORDS],
    /// The longest wait for a good answer of each slot, in microseconds.
    slowest: Box<[AtomicU32]>,
    /// How many failed in each slot; made when the first does.
    failures: OnceLock<Box<[AtomicU32]>>,
}

/// What became of the requests that were due in one millisecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    /// Its begin, from the start of the segment.
    pub at: Duration,
    /// Whether any of them was answered well.
    pub any_good: bool,
    /// The longest wait for one of their good answers, from when it was due; 0 without any.
    pub slowest: Duration,
    /// How many of them failed.
    pub failed: u32,
}

/// A stretch of time in which no request was answered well, and some failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outage {
    /// When the first of them was due, from the start of the segment.
    pub from: Duration,
    /// From then until the first request was due that was answered well again.
    pub length: Duration,
    /// By how much this may be off: so far apart were requests due.
    pub give_or_take: Duration,
    /// No request was answered well after it: it may have been longer.
    pub open: bool,
}

impl Default for Outages {
    fn default() -> Self {
        Self(std::iter::repeat_with(OnceLock::new).take(CHUNKS).collect())
    }
}

impl Outages {
    /// Forgets everything: another segment begins.
    pub(crate) fn clear(&self) {
        for chunk in self.0.iter().filter_map(OnceLock::get) {
            for word in chunk.good.iter().chain(&chunk.failed) {
                word.store(0, Ordering::Relaxed);
            }
            let counts = chunk.failures.get().into_iter().flatten();
            for number in counts.chain(&chunk.slowest) {
                number.store(0, Ordering::Relaxed);
            }
        }
    }

    /// A request that was due so many nanoseconds after the start was answered well, at `now`.
    #[inline]
    pub(super) fn answered(&self, due: u64, now: u64) {
        let Some((chunk, slot)) = self.slot(due) else {
            return;
        };
        let took = u32::try_from(now.saturating_sub(due) / 1000).unwrap_or(u32::MAX);
        let slowest = &chunk.slowest[slot];
        // Most requests of a millisecond are as the one before.
        if slowest.load(Ordering::Relaxed) < took {
            slowest.fetch_max(took, Ordering::Relaxed);
        }
        set(&chunk.good, slot);
    }

    /// A request that was due so many nanoseconds after the start has failed.
    pub(super) fn failed(&self, due: u64) {
        if let Some((chunk, slot)) = self.slot(due) {
            chunk.count_failure(slot);
            set(&chunk.failed, slot);
        }
    }

    /// The chunk in which what is due then is noted, and its slot there.
    fn slot(&self, due: u64) -> Option<(&Chunk, usize)> {
        let slot = due / SLOT;
        let chunk = self.0.get((slot / SLOTS) as usize)?;
        Some((chunk.get_or_init(Chunk::new), (slot % SLOTS) as usize))
    }

    /// What became of the requests due within `window` that have ended, in order.
    pub fn due(&self, window: Range<Duration>) -> impl Iterator<Item = Due> {
        self.slots(&window).map(|(slot, any_good)| {
            let chunk = self.0.get((slot / SLOTS) as usize).and_then(OnceLock::get);
            let within = (slot % SLOTS) as usize;
            let slowest = chunk.map_or(0, |chunk| chunk.slowest[within].load(Ordering::Relaxed));
            Due {
                at: at(slot),
                any_good,
                slowest: Duration::from_micros(slowest.into()),
                failed: chunk.map_or(0, |chunk| chunk.failures_in(within)),
            }
        })
    }

    /// The longest outage that began within `window`, as far as is known now. One that
    /// goes on at the end of the window is cut there.
    pub fn longest(&self, window: Range<Duration>) -> Option<Outage> {
        let (mut longest, mut current) = (None::<Outage>, None::<(u64, u64)>);
        let mut last_good = None;
        let end = window.end;
        let mut close = |(from, last): (u64, u64), good: Option<u64>, before: Option<u64>| {
            let until = good.map_or(end, at);
            let gap = good.map_or(0, |good| good - last);
            let outage = Outage {
                from: at(from),
                length: until.saturating_sub(at(from)),
                give_or_take: at(gap.max(before.map_or(1, |before| from - before))),
                open: good.is_none(),
            };
            if longest.is_none_or(|longest| outage.length > longest.length) {
                longest = Some(outage);
            }
        };
        let mut before = None;
        for (slot, good) in self.slots(&window) {
            match (good, current) {
                (true, Some(outage)) => {
                    close(outage, Some(slot), before);
                    current = None;
                }
                (true, None) => {}
                (false, Some((from, _))) => current = Some((from, slot)),
                (false, None) => {
                    before = last_good;
                    current = Some((slot, slot));
                }
            }
            if good {
                last_good = Some(slot);
            }
        }
        if let Some(outage) = current {
            close(outage, None, before);
        }
        longest
    }

    /// When the first request was due that was answered well after the last one that
    /// failed; `None`: none failed, or none was answered since.
    pub fn recovered(&self) -> Option<Duration> {
        let mut recovered = None;
        let mut failed = false;
        for (slot, good) in self.slots(&(Duration::ZERO..Duration::MAX)) {
            match good {
                false => (failed, recovered) = (true, None),
                true if failed && recovered.is_none() => recovered = Some(at(slot)),
                true => {}
            }
        }
        recovered
    }

    /// Slots in which requests were due that have ended, in order, and whether any of them
    /// was answered well.
    fn slots(&self, window: &Range<Duration>) -> impl Iterator<Item = (u64, bool)> + use<'_> {
        let slot =
            |time: Duration| u64::try_from(time.as_nanos()).map_or(u64::MAX, |nanos| nanos / SLOT);
        let (from, to) = (slot(window.start), slot(window.end));
        let chunks = self.0.iter().enumerate();
        let chunks = chunks.filter_map(|(number, chunk)| Some((number as u64, chunk.get()?)));
        chunks
            .flat_map(|(number, chunk)| {
                let words = chunk.good.iter().zip(&chunk.failed).enumerate();
                words.flat_map(move |(word, (good, failed))| {
                    let first = number * SLOTS + word as u64 * 64;
                    let good = good.load(Ordering::Relaxed);
                    let any = good | failed.load(Ordering::Relaxed);
                    bits(any).map(move |bit| (first + bit, good & (1 << bit) != 0))
                })
            })
            .filter(move |(slot, _)| (from..to).contains(slot))
    }
}

fn at(slot: u64) -> Duration {
    Duration::from_nanos(slot.saturating_mul(SLOT))
}

fn none() -> Box<[AtomicU32]> {
    let none = std::iter::repeat_with(AtomicU32::default);
    none.take(SLOTS as usize).collect()
}

/// Sets the bit of a slot.
fn set(words: &[AtomicU64; WORDS], slot: usize) {
    let (word, bit) = (&words[slot / 64], 1 << (slot % 64));
    if word.load(Ordering::Relaxed) & bit == 0 {
        word.fetch_or(bit, Ordering::Relaxed);
    }
}

/// The numbers of the bits that are set.
fn bits(mut word: u64) -> impl Iterator<Item = u64> {
    std::iter::from_fn(move || {
        let bit = (word != 0).then(|| u64::from(word.trailing_zeros()))?;
        word &= word - 1;
        Some(bit)
    })
}

impl Chunk {
    fn new() -> Box<Self> {
        Box::new(Self {
            good: std::array::from_fn(|_| AtomicU64::new(0)),
            failed: std::array::from_fn(|_| AtomicU64::new(0)),
            slowest: none(),
            failures: OnceLock::new(),
        })
    }

    fn count_failure(&self, slot: usize) {
        self.failures.get_or_init(none)[slot].fetch_add(1, Ordering::Relaxed);
    }

    fn failures_in(&self, slot: usize) -> u32 {
        let counts = self.failures.get();
        counts.map_or(0, |counts| counts[slot].load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Range<Duration> = Duration::ZERO..Duration::from_secs(200);

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// A request has ended, a good one after 2 ms.
    fn ended(outages: &Outages, due: u64, good: bool) {
        match good {
            true => outages.answered(due, due + 2_000_000),
            false => outages.failed(due),
        }
    }

    /// Requests every 5 ms, those in the ranges failed.
    fn seen(until: u64, failed: &[Range<u64>]) -> Outages {
        let outages = Outages::default();
        for due in (0..until).step_by(5) {
            let good = !failed.iter().any(|range| range.contains(&due));
            ended(&outages, due * 1_000_000 + 77, good);
        }
        outages
    }

    #[test]
    fn an_outage_is_as_long_as_requests_failed() {
        let outages = seen(100_000, &[3000..4100, 70_000..70_005]);
        let expected = Outage {
            from: ms(3000),
            length: ms(1100),
            give_or_take: ms(5),
            open: false,
        };
        assert_eq!(outages.longest(ALL), Some(expected));
        assert_eq!(outages.recovered(), Some(ms(70_005)));
        let later = outages.longest(ms(50_000)..ms(90_000)).unwrap();
        assert_eq!((later.from, later.length), (ms(70_000), ms(5)));
        outages.clear();
        assert_eq!(outages.longest(ALL), None);
    }

    #[test]
    fn what_failed_is_counted_where_it_was_due() {
        let outages = Outages::default();
        for due in 0..200_000 {
            // Three a millisecond; of those in one second, in another chunk, two fail.
            for third in 0..3 {
                let failed = (100_000..101_000).contains(&due) && third > 0;
                ended(&outages, due * 1_000_000 + third * 300_000, !failed);
            }
        }
        let window = ms(99_999)..ms(101_001);
        let due: Vec<Due> = outages.due(window.clone()).collect();
        assert_eq!(due.len(), 1002);
        assert!(due.iter().all(|due| due.any_good));
        assert_eq!(due.iter().map(|due| due.failed).sum::<u32>(), 2000);
        assert_eq!((due[0].at, due[0].failed), (ms(99_999), 0));
        assert_eq!((due[1].at, due[1].failed), (ms(100_000), 2));
        outages.clear();
        assert_eq!(outages.due(window).count(), 0);
    }

    #[test]
    fn the_longest_wait_of_each_millisecond_is_kept() {
        let outages = Outages::default();
        // Everything waits for the end of a second that begins at 70 s.
        for due in (69_000..72_000).step_by(5) {
            let held = (70_000..71_000).contains(&due);
            for (part, took) in [(100, 3), (200, 1)] {
                let due = due * 1_000_000 + part;
                let end = if held { 71_000 * 1_000_000 } else { due };
                outages.answered(due, end + took * 1_000_000);
            }
        }
        outages.failed(70_500 * 1_000_000);
        let waits: Vec<Duration> = outages.due(ALL).map(|due| due.slowest).collect();
        assert_eq!((waits[0], waits[599]), (ms(3), ms(3)));
        assert_eq!(waits.iter().max(), Some(&Duration::from_micros(1_002_999)));
        assert_eq!(waits.iter().filter(|wait| **wait > ms(3)).count(), 200);
        outages.clear();
        outages.failed(70_500 * 1_000_000);
        let again: Vec<Due> = outages.due(ALL).collect();
        assert_eq!(again[0].slowest, Duration::ZERO);
    }

    #[test]
    fn where_nothing_failed_there_is_no_outage() {
        let outages = seen(10_000, &[]);
        assert_eq!((outages.longest(ALL), outages.recovered()), (None, None));
    }

    #[test]
    fn an_outage_that_nothing_ended_is_open() {
        let to_the_end = 4000..6000;
        let outages = seen(5000, std::slice::from_ref(&to_the_end));
        let outage = outages.longest(Duration::ZERO..ms(5000)).unwrap();
        assert_eq!(
            (outage.from, outage.length, outage.open),
            (ms(4000), ms(1000), true)
        );
        assert_eq!(outages.recovered(), None);
    }

    #[test]
    fn some_failures_among_good_answers_are_no_outage_of_their_sum() {
        let outages = Outages::default();
        for due in 0..1000 {
            ended(&outages, due * 1_000_000, due % 10 != 0);
        }
        assert_eq!(outages.longest(ALL).unwrap().length, ms(1));
    }
}
