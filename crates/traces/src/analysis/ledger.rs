//! What requests of one entry spent their time on, in numbers that are cheap to add.

use std::collections::{BTreeMap, HashMap};

use super::cause::Cause;
use super::forest::Tree;
use super::path::{Sink, Unawaited, Walk};
use super::survey::GONE;
use crate::Nanos;
use crate::{Name, Span, SpanKind};

/// Samples of slack that are kept for each sibling; of more the first are.
const MOST_SAMPLES: usize = 10_000;

/// Samples of lengths that are kept for each part; of more every second, every fourth and
/// so on are.
const MOST_LENGTHS: usize = 512;

/// The number of the empty name.
const NOTHING: u32 = u32::MAX;

/// Where time passes, and why.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Part {
    pub(super) service: Name,
    /// Who was called; empty: it is the service's own.
    pub(super) peer: Name,
    /// The kind of work, or what another system calls it; empty: none.
    pub(super) work: Name,
    pub(super) cause: Cause,
}

/// A branch of parallel steps: a call or a piece of work.
pub(super) type Branch = (Name, Name, Name);

/// How branches stood to those beside them.
#[derive(Debug, Default)]
pub(super) struct SiblingStats {
    pub(super) critical: u64,
    pub(super) alone: f64,
    pub(super) spare: u64,
    pub(super) slack: f64,
    pub(super) samples: Vec<Nanos>,
}

/// How often something was there.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Visits {
    /// Spans.
    pub(super) count: u64,
    /// Requests whose critical path it was on.
    pub(super) on_path: u64,
    /// Calls on critical paths, both ways of which were seen.
    pub(super) hops: u64,
    /// Of those, calls of which it is not known how long each way took.
    pub(super) moved: u64,
    /// Attempts of calls that failed: without an answer, out of time, otherwise.
    pub(super) failed: Failed,
    /// Attempts after one that failed.
    pub(super) again: u64,
    /// The request that counted last.
    stamp: usize,
}

/// Attempts that failed in requests that succeeded.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Failed {
    pub(super) drops: u64,
    pub(super) timeouts: u64,
    pub(super) others: u64,
}

/// Lengths of a part, each time it came up, thinned evenly.
#[derive(Debug, Default)]
struct Lengths {
    samples: Vec<Nanos>,
    every: u64,
    count: u64,
}

impl Lengths {
    fn add(&mut self, length: Nanos) {
        if self.samples.len() >= MOST_LENGTHS {
            let mut kept = false;
            self.samples.retain(|_| {
                kept = !kept;
                kept
            });
            self.every *= 2;
        }
        self.every = self.every.max(1);
        if self.count.is_multiple_of(self.every) {
            self.samples.push(length);
        }
        self.count += 1;
    }
}

/// Names by number, found by their place in memory: spans share them. What was found so is
/// kept, or another name could come to lie there.
#[derive(Debug, Default)]
struct Numbers {
    by_place: HashMap<(usize, usize), (u32, Name)>,
    by_text: HashMap<Name, u32>,
    names: Vec<Name>,
}

impl Numbers {
    fn of(&mut self, name: &Name) -> u32 {
        if name.is_empty() {
            return NOTHING;
        }
        let place = (name.as_ptr().addr(), name.len());
        if let Some((known, _)) = self.by_place.get(&place) {
            return *known;
        }
        let next = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        let number = *self.by_text.entry(name.clone()).or_insert(next);
        if number == next {
            self.names.push(name.clone());
        }
        self.by_place.insert(place, (number, name.clone()));
        number
    }

    fn name(&self, number: u32) -> Name {
        self.names.get(number as usize).cloned().unwrap_or_default()
    }
}

/// Requests that succeeded, part by part.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    numbers: Numbers,
    places: HashMap<(u32, u32, u32, Cause), u32>,
    pub(super) parts: Vec<Part>,
    lengths: Vec<Lengths>,
    /// Lengths of requests.
    pub(super) totals: Vec<Nanos>,
    /// When they began.
    starts: Vec<Nanos>,
    /// Where the entries of each request end.
    ends: Vec<usize>,
    entries: Vec<(u32, Nanos)>,
    /// Work of all requests, on the critical path or not: processor time, and sleeps.
    done: Vec<(u32, u32, Nanos)>,
    done_places: HashMap<(u32, u32, Cause), u32>,
    pub(super) done_parts: Vec<Part>,
    /// Of the request at hand, by part.
    sums: Vec<Nanos>,
    touched: Vec<u32>,
    // What is told of these is told in this order, the same each time.
    services: BTreeMap<u32, Visits>,
    edges: BTreeMap<(u32, u32), Visits>,
    branches: BTreeMap<(u32, u32, u32), SiblingStats>,
    /// Requests with spans below missing ones, or that came twice.
    pub(super) incomplete: u64,
    pub(super) moved: u64,
    /// Requests whose parts do not add up to them, and the largest difference.
    pub(super) broken: u64,
    pub(super) worst: Nanos,
    walk: Walk,
}

impl Ledger {
    /// Adds a request that succeeded.
    pub(super) fn add<'a>(&mut self, tree: &Tree<'a>, root: usize, unawaited: &Unawaited) {
        let mut walk = std::mem::take(&mut self.walk);
        walk.request(tree, root, unawaited, self);
        self.moved += walk.moved as u64;
        walk.moved = 0;
        self.walk = walk;
        for span in tree.spans() {
            if span.kind == SpanKind::Work {
                self.add_work(span);
            } else if matches!(span.kind, SpanKind::Server | SpanKind::Client) {
                self.add_visit(span);
            }
        }
        let root = tree.node(root).span;
        let total = root.length();
        let mut sum = 0;
        for place in self.touched.drain(..) {
            let part = std::mem::take(&mut self.sums[place as usize]);
            sum += part;
            self.entries.push((place, part));
        }
        let difference = sum.abs_diff(total);
        self.worst = self.worst.max(difference);
        self.broken += u64::from(difference > 1000 + total / 1000);
        self.incomplete += u64::from(tree.orphans + tree.twice > 0);
        self.totals.push(total);
        self.starts.push(root.start);
        self.ends.push(self.entries.len());
    }

    fn add_visit(&mut self, span: &Span) {
        let visits = self.visits(span);
        visits.count += 1;
        if span.kind != SpanKind::Client {
            return;
        }
        visits.again += u64::from(span.attempt > 0);
        if span.has_failed() && span.cause != GONE {
            match Cause::of_attempt(span) {
                Cause::Drop => visits.failed.drops += 1,
                Cause::Timeout => visits.failed.timeouts += 1,
                _ => visits.failed.others += 1,
            }
        }
    }

    /// Work counts wherever it ran.
    fn add_work(&mut self, span: &Span) {
        let cause = Cause::beside_cpu(&span.name);
        let (cause, length) = match (cause, span.cpu) {
            (Cause::Sleep, _) => (cause, span.length()),
            (_, 0) => return,
            (_, cpu) => (Cause::Cpu, cpu),
        };
        let service = self.numbers.of(&span.service);
        let work = self.numbers.of(&span.name);
        let parts = &mut self.done_parts;
        let place = *self
            .done_places
            .entry((service, work, cause))
            .or_insert_with(|| {
                parts.push(Part {
                    service: span.service.clone(),
                    peer: Name::default(),
                    work: span.name.clone(),
                    cause,
                });
                u32::try_from(parts.len() - 1).unwrap_or(u32::MAX)
            });
        let request = u32::try_from(self.totals.len()).unwrap_or(u32::MAX);
        self.done.push((place, request, length));
    }

    /// Work of every request, wherever it ran: its place in `done_parts`, the request, and
    /// processor time or a sleep.
    pub(super) fn done(&self) -> impl Iterator<Item = (usize, usize, Nanos)> {
        let places = self.done.iter();
        places.map(|(place, request, length)| (*place as usize, *request as usize, *length))
    }

    /// Parts of every request: their place in `parts`, the request, and their length.
    pub(super) fn lengths(&self) -> impl Iterator<Item = (usize, usize, Nanos)> {
        (0..self.totals.len()).flat_map(|request| {
            let parts = self.request(request).iter();
            parts.map(move |(part, length)| (*part as usize, request, *length))
        })
    }

    /// The mean length of a request.
    pub(super) fn mean(&self) -> f64 {
        let sum: f64 = self.totals.iter().map(|one| *one as f64).sum();
        sum / self.totals.len().max(1) as f64
    }

    /// The mean length of each part.
    pub(super) fn means(&self) -> Vec<f64> {
        self.means_of(self.parts.len(), self.lengths())
    }

    /// The mean of work wherever it ran, by its place in `done_parts`.
    pub(super) fn done_means(&self) -> Vec<f64> {
        self.means_of(self.done_parts.len(), self.done())
    }

    fn means_of(
        &self,
        places: usize,
        lengths: impl Iterator<Item = (usize, usize, Nanos)>,
    ) -> Vec<f64> {
        let mut means = vec![0.0; places];
        let each = 1.0 / self.totals.len().max(1) as f64;
        for (place, _, length) in lengths {
            means[place] += length as f64 * each;
        }
        means
    }

    /// Of each part, lengths of when it came up.
    pub(super) fn samples(&self) -> impl Iterator<Item = Vec<Nanos>> {
        self.lengths.iter().map(|one| one.samples.clone())
    }

    /// How often each part came up.
    pub(super) fn often(&self, part: usize) -> f64 {
        self.lengths.get(part).map_or(0.0, |one| one.count as f64)
    }

    pub(super) fn starts(&self) -> &[Nanos] {
        &self.starts
    }

    /// Lengths of requests in the order of their beginnings.
    pub(super) fn in_time(&self) -> Vec<Nanos> {
        let both = self.starts.iter().zip(&self.totals);
        let mut both: Vec<(Nanos, Nanos)> = both.map(|(start, total)| (*start, *total)).collect();
        both.sort_unstable();
        both.into_iter().map(|(_, total)| total).collect()
    }

    /// Parts of a request, each once, by their place in `parts`.
    pub(super) fn request(&self, at: usize) -> &[(u32, Nanos)] {
        let from = match at {
            0 => 0,
            at => self.ends[at - 1],
        };
        &self.entries[from..self.ends[at]]
    }

    pub(super) fn services(&self) -> impl Iterator<Item = (Name, Visits)> {
        let named = |(number, visits): (&u32, &Visits)| (self.numbers.name(*number), *visits);
        self.services.iter().map(named)
    }

    pub(super) fn edges(&self) -> impl Iterator<Item = ((Name, Name), Visits)> {
        let name = |number: &u32| self.numbers.name(*number);
        let edges = self.edges.iter();
        edges.map(move |((from, to), visits)| ((name(from), name(to)), *visits))
    }

    pub(super) fn branches(&self) -> impl Iterator<Item = (Branch, &SiblingStats)> {
        let name = |number: &u32| self.numbers.name(*number);
        let branches = self.branches.iter();
        branches.map(move |((one, two, three), standing)| {
            ((name(one), name(two), name(three)), standing)
        })
    }

    /// Those of a server's service, or of a client's edge.
    fn visits(&mut self, span: &Span) -> &mut Visits {
        let service = self.numbers.of(&span.service);
        match span.kind {
            SpanKind::Client => {
                let peer = self.numbers.of(&span.peer);
                self.edges.entry((service, peer)).or_default()
            }
            _ => self.services.entry(service).or_default(),
        }
    }

    fn branch(&mut self, span: &Span) -> &mut SiblingStats {
        let work = match span.kind {
            SpanKind::Work | SpanKind::Internal => self.numbers.of(&span.name),
            SpanKind::Server | SpanKind::Client => NOTHING,
        };
        let service = self.numbers.of(&span.service);
        let peer = self.numbers.of(&span.peer);
        self.branches.entry((service, peer, work)).or_default()
    }
}

impl<'a> Sink<'a> for Ledger {
    fn on_path(&mut self, span: &'a Span, _: Nanos, _: Nanos) {
        if matches!(span.kind, SpanKind::Work | SpanKind::Internal) {
            return;
        }
        let request = self.totals.len() + 1;
        let visits = self.visits(span);
        if visits.stamp != request {
            visits.stamp = request;
            visits.on_path += 1;
        }
    }

    fn spend(&mut self, span: &'a Span, peer: &'a Name, cause: Cause, length: Nanos) {
        if cause == Cause::WireOut {
            self.visits(span).hops += 1;
        }
        if length == 0 {
            return;
        }
        let service = self.numbers.of(&span.service);
        let (called, work) = match span.kind {
            SpanKind::Server => (NOTHING, NOTHING),
            SpanKind::Client => (self.numbers.of(peer), NOTHING),
            SpanKind::Work | SpanKind::Internal => (NOTHING, self.numbers.of(&span.name)),
        };
        let key = (service, called, work, cause);
        let (parts, numbers) = (&mut self.parts, &self.numbers);
        let place = *self.places.entry(key).or_insert_with(|| {
            parts.push(Part {
                service: span.service.clone(),
                peer: numbers.name(called),
                work: numbers.name(work),
                cause,
            });
            u32::try_from(parts.len() - 1).unwrap_or(u32::MAX)
        });
        self.lengths.resize_with(self.parts.len(), Lengths::default);
        self.lengths[place as usize].add(length);
        self.sums.resize(self.parts.len(), 0);
        let sum = &mut self.sums[place as usize];
        if *sum == 0 {
            self.touched.push(place);
        }
        *sum += length;
    }

    fn moved(&mut self, call: &'a Span) {
        if call.kind == SpanKind::Client {
            self.visits(call).moved += 1;
        }
    }

    fn slack(&mut self, span: &'a Span, slack: Nanos) {
        let standing = self.branch(span);
        standing.spare += 1;
        standing.slack += slack as f64;
        if standing.samples.len() < MOST_SAMPLES {
            standing.samples.push(slack);
        }
    }

    fn critical(&mut self, span: &'a Span, alone: Nanos) {
        let standing = self.branch(span);
        standing.critical += 1;
        standing.alone += alone as f64;
    }
}
