//! Spans as a graph.

use std::collections::{HashMap, HashSet};

use super::calls::{Made, Merged, OwnWork, Trace, Visit};
use super::{Imported, TraceError};
use traces::analysis::TOLERANCE;
use traces::{Span, SpanKind};
use traces::{SpanId, TraceId};

/// Spans above each other that are looked at to find whose child one is.
const MOST_DEPTH: usize = 64;

/// A graph that behaves as the services of these spans did: our own, or those that
/// [`traces::read`] gives. Client and server may share an id, as Zipkin's do. Attempts after a
/// first one are left out, and so are spans that came already: who sends spans again does so
/// after an answer that was lost.
///
/// # Errors
/// There is no call, or too many services.
pub fn spans(name: &str, spans: &[Span]) -> Result<Imported, TraceError> {
    let mut order: Vec<TraceId> = Vec::new();
    let mut traces: HashMap<TraceId, Vec<&Span>> = HashMap::new();
    let mut known = HashSet::new();
    for span in spans {
        if !known.insert((span.trace, span.id, span.kind)) {
            continue;
        }
        let trace = traces.entry(span.trace).or_insert_with(|| {
            order.push(span.trace);
            Vec::new()
        });
        trace.push(span);
    }
    let mut merged = Merged::default();
    for trace in order.iter().filter_map(|trace| traces.get(trace)) {
        merged.add(&assembled(trace));
    }
    merged.graph(name)
}

/// The spans of a trace by what they are children of.
struct Index<'a> {
    spans: &'a [&'a Span],
    by_id: HashMap<(SpanId, SpanKind), usize>,
}

impl<'a> Index<'a> {
    fn new(spans: &'a [&'a Span]) -> Self {
        let ids = spans.iter().map(|span| (span.id, span.kind));
        Self {
            spans,
            by_id: ids.zip(0..).collect(),
        }
    }

    fn get(&self, id: SpanId, kind: SpanKind) -> Option<usize> {
        self.by_id.get(&(id, kind)).copied()
    }

    /// The span of these kinds that `span` is below of: its parent, or above others.
    fn above(&self, span: &Span, kinds: &[SpanKind]) -> Option<usize> {
        let mut id = span.parent;
        for _ in 0..MOST_DEPTH {
            if let Some(found) = kinds.iter().find_map(|kind| self.get(id, *kind)) {
                return Some(found);
            }
            let all = [
                SpanKind::Work,
                SpanKind::Internal,
                SpanKind::Client,
                SpanKind::Server,
            ];
            let between = all.iter().find_map(|kind| self.get(id, *kind))?;
            id = self.spans[between].parent;
        }
        None
    }

    /// What called a server: the client that shares its id, or the span above it.
    fn caller(&self, server: &Span) -> Option<usize> {
        let shared = self.get(server.id, SpanKind::Client);
        shared.or_else(|| self.above(server, &[SpanKind::Client, SpanKind::Server]))
    }
}

fn assembled(spans: &[&Span]) -> Trace {
    let index = Index::new(spans);
    let mut trace = Trace::default();
    // The visit of each server span, and that of a client whose callee says nothing.
    let mut visit_of: HashMap<usize, usize> = HashMap::new();
    for (at, span) in spans.iter().enumerate() {
        if span.kind == SpanKind::Server {
            visit_of.insert(at, trace.visits.len());
            trace.add(visit(&span.service, span));
        }
    }
    // Which server answered a client.
    let mut answered: HashMap<usize, usize> = HashMap::new();
    let mut calls: Vec<(usize, Made)> = Vec::new();
    for (at, span) in spans.iter().enumerate() {
        let Some(visit) = visit_of.get(&at).copied() else {
            continue;
        };
        match index.caller(span) {
            Some(caller) if spans[caller].kind == SpanKind::Client => {
                answered.insert(caller, visit);
            }
            Some(caller) => calls.extend(visit_of.get(&caller).map(|own| {
                let made = made(visit, span, &trace.visits[*own]);
                (*own, made)
            })),
            None => trace.roots.push(visit),
        }
    }
    for (at, span) in spans.iter().enumerate() {
        let server = index.above(span, &[SpanKind::Server]);
        let own = server.and_then(|server| visit_of.get(&server).copied());
        match (span.kind, own) {
            (SpanKind::Client, own) => {
                let callee = answered.get(&at).copied();
                client(&mut trace, span, own, callee, &mut calls);
            }
            (SpanKind::Work, Some(own)) => work(&mut trace.visits[own], span),
            _ => {}
        }
    }
    for (own, made) in calls {
        trace.visits[own].calls.push(made);
    }
    trace
}

/// A client span, whose callee may have told nothing; without a caller the callee is a root.
fn client(
    trace: &mut Trace,
    span: &Span,
    own: Option<usize>,
    callee: Option<usize>,
    calls: &mut Vec<(usize, Made)>,
) {
    let Some(own) = own else {
        trace.roots.extend(callee);
        return;
    };
    if span.has_failed() {
        trace.visits[own].failed = false;
    }
    if span.attempt > 0 {
        return;
    }
    let callee = callee.or_else(|| {
        // Such as a database, which records no span.
        (!span.peer.is_empty()).then(|| trace.add(visit(&span.peer, span)))
    });
    calls.extend(callee.map(|callee| (own, made(callee, span, &trace.visits[own]))));
}

/// What a service did while a span lasted.
fn visit(service: &str, span: &Span) -> Visit {
    Visit {
        service: service.to_owned(),
        path: span.name.to_string(),
        begun: span.start,
        ended: span.end,
        failed: span.has_failed(),
        ..Visit::default()
    }
}

fn made(visit: usize, span: &Span, caller: &Visit) -> Made {
    Made {
        visit,
        begun: span.start,
        ended: span.end,
        // Whole microseconds can end a call just after who waited for it.
        waits: span.end <= caller.ended.saturating_add(TOLERANCE),
    }
}

/// Adds own work to a visit, if the span tells of it. What work that only computes waited
/// for was taken by others, and is no part of it.
fn work(visit: &mut Visit, span: &Span) {
    let waits = ["sleep", "disk", "lock", "fork", "stress-ng"].contains(&&*span.name);
    if span.cpu == 0 && !waits {
        return;
    }
    let work = visit.work.get_or_insert_with(OwnWork::default);
    work.cpu += span.cpu;
    if waits {
        work.sleep += span.length().saturating_sub(span.cpu);
    }
}
