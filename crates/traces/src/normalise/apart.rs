//! Requests that share the id of a trace: of generators that begin anew with the same seed, of
//! proxies that keep an id. Each gets a trace of its own.

use std::collections::HashMap;

use super::widths::widen;
use crate::ids::mix;
use crate::{Nanos, Span, SpanId, SpanKind, TraceId};

/// What begins so long after everything before it ended is another request.
const FAR: Nanos = 60_000_000_000;

/// Gives requests that share a trace id traces of their own, before spans are
/// [normalised](crate::normalise): roots with nothing in common, and what comes a minute or more
/// after all before it. Answers how many traces were parted.
pub fn part_requests(spans: &mut [Span]) -> u64 {
    let mut order: Vec<&mut Span> = spans.iter_mut().collect();
    widen(&mut order);
    order.sort_by_key(|span| (span.trace, span.start, span.id));
    let mut parted = 0;
    for trace in order.chunk_by_mut(|one, next| one.trace == next.trace) {
        parted += u64::from(part(trace));
    }
    parted
}

fn is_root(span: &Span) -> bool {
    span.parent == SpanId::default() && span.kind != SpanKind::Work
}

fn part(trace: &mut [&mut Span]) -> bool {
    if trace.iter().filter(|span| is_root(span)).count() < 2 {
        return false;
    }
    let mut number = 0;
    let mut rest = trace;
    while !rest.is_empty() {
        let (one, more) = rest.split_at_mut(far(rest));
        number = part_roots(one, number) + 1;
        rest = more;
    }
    number > 1
}

/// Where the first spans end that are far from those after them; both have a root.
fn far(spans: &[&mut Span]) -> usize {
    let mut end = 0;
    for (at, span) in spans.iter().enumerate() {
        let is_far = at > 0 && span.start >= Nanos::saturating_add(end, FAR);
        if is_far && spans[at..].iter().any(|span| is_root(span)) {
            return at;
        }
        end = end.max(span.end);
    }
    spans.len()
}

/// Parts what hangs below different roots: the first keeps the number, and the last one's is the
/// answer.
fn part_roots(spans: &mut [&mut Span], number: u64) -> u64 {
    let mut joined = Joined((0..spans.len()).collect());
    let mut places: HashMap<SpanId, usize> = HashMap::new();
    for (at, span) in spans.iter().enumerate() {
        match places.get(&span.id) {
            Some(other) => joined.join(at, *other),
            None => drop(places.insert(span.id, at)),
        }
    }
    for (at, span) in spans.iter().enumerate() {
        if let Some(parent) = places.get(&span.parent) {
            joined.join(at, *parent);
        }
    }
    let mut numbers: HashMap<usize, u64> = HashMap::new();
    let mut latest = number;
    // Spans are in the order of their beginnings.
    for (at, span) in spans.iter().enumerate() {
        if is_root(span) {
            let next = number + numbers.len() as u64;
            latest = latest.max(*numbers.entry(joined.of(at)).or_insert(next));
        }
    }
    let mut before = number;
    for (at, span) in spans.iter_mut().enumerate() {
        // What hangs below no root is of the request that began last before it.
        let own = numbers.get(&joined.of(at)).copied();
        before = own.unwrap_or(before);
        if before > 0 {
            span.trace = other(span.trace, before);
        }
    }
    latest
}

fn other(trace: TraceId, number: u64) -> TraceId {
    let (high, low) = ((trace.0 >> 64) as u64, trace.0 & u128::from(u64::MAX));
    let low = u64::try_from(low).unwrap_or(u64::MAX);
    let mixed = (mix(high, low, number), mix(low, high, number).max(1));
    TraceId(u128::from(mixed.0) << 64 | u128::from(mixed.1))
}

/// Which spans hang together: each names one that it hangs with, in the end the same for all.
struct Joined(Vec<usize>);

impl Joined {
    fn of(&mut self, mut at: usize) -> usize {
        while self.0[at] != at {
            // Halves the way for the next time.
            self.0[at] = self.0[self.0[at]];
            at = self.0[at];
        }
        at
    }

    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.of(one), self.of(other));
        self.0[one.max(other)] = one.min(other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::server;

    const SECOND: Nanos = 1_000_000_000;

    fn child(id: u64, parent: u64, start: Nanos) -> Span {
        Span {
            parent: SpanId(parent),
            ..server(7, id, start, start + SECOND)
        }
    }

    fn traces(spans: &[Span]) -> Vec<usize> {
        let mut all: Vec<TraceId> = Vec::new();
        let mut place = |trace| match all.iter().position(|one| *one == trace) {
            Some(place) => place,
            None => {
                all.push(trace);
                all.len() - 1
            }
        };
        spans.iter().map(|span| place(span.trace)).collect()
    }

    #[test]
    fn requests_that_share_a_trace_are_apart_by_root_and_by_time() {
        let later = 100 * SECOND;
        let mut spans = vec![
            child(1, 0, 0),
            child(2, 1, 1),
            // Another root, at the same time.
            child(3, 0, 2),
            child(4, 3, 3),
            // Far later, with the same ids.
            child(1, 0, later),
            child(2, 1, later + 1),
        ];
        assert_eq!(part_requests(&mut spans), 1);
        assert_eq!(traces(&spans), [0, 0, 1, 1, 2, 2]);
        assert_eq!(spans[0].trace, TraceId(7), "the first keeps its id");
        let before = spans.clone();
        assert_eq!(part_requests(&mut spans), 0);
        assert_eq!(spans, before);
    }

    #[test]
    fn one_request_stays_one() {
        // A message that is taken long after it was sent, a span that came twice, and one
        // whose parent is missing.
        let mut spans = vec![
            child(1, 0, 0),
            child(1, 0, 0),
            child(2, 9, 3),
            child(3, 1, 500 * SECOND),
        ];
        let before = spans.clone();
        assert_eq!(part_requests(&mut spans), 0);
        assert_eq!(spans, before);
    }
}
