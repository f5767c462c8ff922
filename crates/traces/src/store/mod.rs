//! The traces that a process remembers.
//!
//! Spans come in any order, from this process and from others, and are joined by their
//! trace. Beyond its bounds the store forgets the traces that changed longest ago; of
//! those it remembers the slowest a while longer.

mod entry;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use entry::Entry;

use super::Span;
use crate::Nanos;
use crate::TraceId;
use crate::normalise::without_ids;

/// Bounds of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreLimits {
    /// Spans of all traces.
    pub spans: usize,
    /// Memory of all traces in bytes, names not counted: those are shared.
    pub bytes: usize,
    /// Spans of one trace; further ones are dropped and counted.
    pub trace_spans: usize,
    /// Forgotten traces that are remembered for being the slowest. Their spans come on
    /// top of the other bounds, up to an eighth of `spans`.
    pub slowest: usize,
}

impl Default for StoreLimits {
    fn default() -> Self {
        Self {
            spans: 500_000,
            bytes: 128 << 20,
            trace_spans: 20_000,
            slowest: 64,
        }
    }
}

impl StoreLimits {
    /// Of a process whose spans another one collects: what it saw last.
    pub fn of_collected() -> Self {
        Self {
            spans: 20_000,
            bytes: 4 << 20,
            trace_spans: 2000,
            slowest: 8,
        }
    }
}

/// Which traces are asked for, by their roots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceFilter<'a> {
    /// Those that began then or later.
    pub from: Nanos,
    /// Those that ended then or earlier, so that late spans had time to come.
    pub ended: Nanos,
    /// The time at which it is asked. Spans come when they have ended: what ended later by its own
    /// clock has another clock, and is there.
    pub now: Nanos,
    /// Those of one path; `None`: of all.
    pub path: Option<&'a str>,
    /// At most so many.
    pub traces: usize,
    /// With at most so many spans together.
    pub spans: usize,
}

impl TraceFilter<'_> {
    /// All traces that have ended so.
    pub fn ended(ended: Nanos) -> Self {
        Self {
            from: 0,
            ended,
            now: Nanos::MAX,
            path: None,
            traces: usize::MAX,
            spans: usize::MAX,
        }
    }

    fn wants(&self, root: &Span) -> bool {
        // Also as it is called once it is normalised beside many others.
        let is_path = |path: &str| {
            *root.name == *path || without_ids(&root.name).is_some_and(|name| name == path)
        };
        root.start >= self.from
            && (root.end <= self.ended || root.end > self.now)
            && self.path.is_none_or(is_path)
    }
}

/// The request that a trace is about, as its root saw it.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// The trace.
    pub trace: TraceId,
    /// The server span that began first.
    pub root: Span,
    /// Spans that are known of it.
    pub spans: usize,
    /// Its place in the order of change. See [`Store::since`].
    pub changed: u64,
}

/// What a store holds and has dropped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoreCounts {
    /// Traces.
    pub traces: usize,
    /// Spans.
    pub spans: usize,
    /// Bytes.
    pub bytes: usize,
    /// Spans that came in so far.
    pub received: u64,
    /// Spans that were dropped because their trace had too many.
    pub dropped: u64,
    /// Spans that were forgotten to make room.
    pub forgotten: u64,
    /// The last change. See [`Store::since`].
    pub changes: u64,
}

/// Traces by their id, by their time and by how slow they were. Cheap to clone; all
/// clones are one store.
#[derive(Debug, Clone)]
pub struct Store {
    limits: StoreLimits,
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    traces: HashMap<TraceId, Entry>,
    /// By the order of their last change.
    order: BTreeMap<u64, TraceId>,
    /// By how long their root took.
    by_length: BTreeSet<(Nanos, TraceId)>,
    /// Forgotten ones that were the slowest; shortest first.
    hall: BTreeMap<(Nanos, TraceId), Entry>,
    hall_spans: usize,
    counts: StoreCounts,
    change: u64,
}

impl Store {
    /// An empty one.
    pub fn new(limits: StoreLimits) -> Self {
        Self {
            limits,
            inner: Arc::default(),
        }
    }

    /// Locks, whoever panicked with the lock held: no change is made by halves under it.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes spans in; answers how many of them are dropped since their traces have too many.
    pub fn extend(&self, spans: impl IntoIterator<Item = Span>) -> u64 {
        let mut inner = self.lock();
        let (known, dropped) = (inner.change, inner.counts.dropped);
        for span in spans {
            inner.add(span, known, &self.limits);
        }
        inner.make_room(&self.limits);
        inner.counts.dropped - dropped
    }

    /// All spans of a trace, by their start, what holds others before those; empty: it is
    /// not known.
    pub fn trace(&self, trace: TraceId) -> Vec<Span> {
        let inner = self.lock();
        let gone = inner.hall.iter().filter(|((_, id), _)| *id == trace);
        let gone = gone.map(|(_, entry)| entry);
        let entries = inner.traces.get(&trace).into_iter().chain(gone);
        let spans = entries.flat_map(|entry| entry.spans.iter().cloned());
        let mut spans: Vec<_> = spans.collect();
        spans.sort_by_key(|span| (span.start, Reverse(span.end), span.id));
        spans
    }

    /// The traces whose roots took longest, the longest first: at most `most`, of those
    /// that began at `from` or later.
    pub fn slowest(&self, most: usize, from: Nanos) -> Vec<Summary> {
        let inner = self.lock();
        let kept = inner.by_length.iter().rev();
        let kept = kept.filter_map(|(_, id)| inner.traces.get(id));
        let gone = inner.hall.values().rev();
        let late = |entry: &&Entry| entry.root().is_some_and(|root| root.start >= from);
        let mut found: Vec<_> = kept
            .filter(late)
            .take(most)
            .chain(gone.filter(late).take(most))
            .filter_map(Entry::summary)
            .collect();
        found.sort_by_key(|one| Reverse(one.root.end - one.root.start));
        // A late span may have brought back a trace that is in the hall.
        let mut seen = HashSet::new();
        found.retain(|one| seen.insert(one.trace));
        found.truncate(most);
        found
    }

    /// The traces that changed after the change `after`, in their order, at most `most`.
    /// A trace that changes again is told again: who follows replaces what it knows.
    pub fn since(&self, after: u64, most: usize) -> Vec<Summary> {
        let inner = self.lock();
        let later = inner.order.range(after.saturating_add(1)..);
        let entries = later.filter_map(|(_, id)| inner.traces.get(id)?.summary());
        entries.take(most).collect()
    }

    /// The traces that changed last, the last one first, at most `most`.
    pub fn recent(&self, most: usize) -> Vec<Summary> {
        let inner = self.lock();
        let latest = inner.order.values().rev();
        let entries = latest.filter_map(|id| inner.traces.get(id)?.summary());
        entries.take(most).collect()
    }

    /// The spans of whole traces: of those that changed last, in the order of their
    /// change. The slowest that are remembered beyond the bounds are not among them: they
    /// would make requests look slower than they are.
    pub fn whole(&self, wanted: &TraceFilter<'_>) -> Vec<Vec<Span>> {
        let inner = self.lock();
        let mut room = wanted.spans;
        let whole = inner.order.values().rev().filter_map(|id| {
            let entry = inner.traces.get(id)?;
            wanted.wants(entry.root()?).then_some(&entry.spans)
        });
        let whole = whole.take(wanted.traces).map_while(|spans| {
            room = room.checked_sub(spans.len())?;
            Some(spans.clone())
        });
        let mut traces: Vec<_> = whole.collect();
        traces.reverse();
        traces
    }

    /// The spans of all traces, whole or not, in the order of their change; without the slowest that
    /// are remembered beyond the bounds.
    pub fn all(&self) -> Vec<Vec<Span>> {
        let inner = self.lock();
        let entries = inner.order.values().filter_map(|id| inner.traces.get(id));
        entries.map(|entry| entry.spans.clone()).collect()
    }

    /// What it holds.
    pub fn counts(&self) -> StoreCounts {
        let inner = self.lock();
        StoreCounts {
            changes: inner.change,
            ..inner.counts
        }
    }
}

impl Inner {
    /// Changes up to `known` may have been told.
    fn add(&mut self, span: Span, known: u64, limits: &StoreLimits) {
        self.counts.received += 1;
        let trace = span.trace;
        let entry = self.traces.entry(trace).or_default();
        let bytes = entry.bytes();
        if entry.spans.len() >= limits.trace_spans {
            self.counts.dropped += 1;
            return;
        }
        let length = entry.length();
        if entry.changed <= known {
            self.order.remove(&entry.changed);
            self.change += 1;
            entry.changed = self.change;
            self.order.insert(self.change, trace);
        }
        self.counts.traces += usize::from(entry.spans.is_empty());
        self.counts.spans += 1;
        entry.add(span);
        self.counts.bytes += entry.bytes() - bytes;
        if entry.length() != length {
            self.by_length
                .extend(entry.length().map(|new| (new, trace)));
            if let Some(old) = length {
                self.by_length.remove(&(old, trace));
            }
        }
    }

    fn make_room(&mut self, limits: &StoreLimits) {
        while self.counts.spans > limits.spans || self.counts.bytes > limits.bytes {
            let Some((_, trace)) = self.order.pop_first() else {
                return;
            };
            let Some(entry) = self.traces.remove(&trace) else {
                continue;
            };
            self.counts.traces -= 1;
            self.counts.spans -= entry.spans.len();
            self.counts.bytes -= entry.bytes();
            self.counts.forgotten += entry.spans.len() as u64;
            if let Some(length) = entry.length() {
                self.by_length.remove(&(length, trace));
                self.remember((length, trace), entry, limits);
            }
        }
    }

    fn remember(&mut self, key: (Nanos, TraceId), entry: Entry, limits: &StoreLimits) {
        self.hall_spans += entry.spans.len();
        let replaced = self.hall.insert(key, entry);
        self.hall_spans -= replaced.map_or(0, |entry| entry.spans.len());
        while self.hall.len() > limits.slowest || self.hall_spans > limits.spans / 8 {
            let Some((_, entry)) = self.hall.pop_first() else {
                return;
            };
            self.hall_spans -= entry.spans.len();
        }
    }
}
