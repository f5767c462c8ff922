//! Spans of whole traces, made to mean the same whatever system and format they come from.
//!
//! - B3 lets a server share the span of its client. It gets an id of its own below it, and
//!   what its service did below the shared one moves there.
//! - A span that says no kind, or an inner one, is a server's if its parent is of another
//!   service; and if nothing else of its trace can be where the request entered.
//! - A client's callee is the service that answered. What a client says of it may be an
//!   address or a host: where the other end of some calls is known, those of the same
//!   caller to the same address are of the same service, so that no edge is there twice.
//! - Where no writer says which calls are made again, those are that follow a failed one of
//!   the same parent, callee and name.
//! - Paths that differ in ids alone are one, where there are many.
//! - Services that know the lower half of a trace id alone are in the trace that has all of it.
//!
//! Spans that are normal already stay as they are.

mod apart;
mod attempts;
mod paths;
mod widths;

use std::collections::{HashMap, HashSet};

pub use apart::part_requests;
pub(crate) use paths::without_ids;

use super::{Name, Span, SpanKind};
use crate::SpanId;

/// Gives paths that differ in ids alone one name, if they are many in all of these spans together:
/// of files that were [normalised](normalise) each by itself, some may have few.
pub fn join_paths<'a>(spans: impl IntoIterator<Item = &'a mut Span>) {
    let mut spans: Vec<&mut Span> = spans.into_iter().collect();
    paths::join(&mut spans);
}

/// Normalises the spans of any number of whole traces, in any order. The more traces, the
/// more is known of who answers at an address.
pub fn normalise<'a>(spans: impl IntoIterator<Item = &'a mut Span>) {
    let mut spans: Vec<&mut Span> = spans.into_iter().collect();
    widths::widen(&mut spans);
    spans.sort_by_key(|span| (span.trace, span.id));
    let mut callees = Callees::default();
    for trace in spans.chunk_by_mut(|one, next| one.trace == next.trace) {
        // What a reader has parted, first: its spans are no longer below the client's.
        move_below_parted(trace);
        find_servers(trace);
        part_shared(trace);
        move_below_parted(trace);
        find_entry(trace);
        callees.learn(trace);
    }
    for span in &mut spans {
        if span.kind == SpanKind::Client && !callees.answered.contains(&key(span)) {
            callees.name(span);
        }
    }
    if !attempts::are_numbered(&spans) {
        for trace in spans.chunk_by_mut(|one, next| one.trace == next.trace) {
            attempts::count(trace);
        }
    }
    // Calls of different paths are no attempts of one, so that comes first.
    paths::join(&mut spans);
}

type Key = (u128, SpanId);

fn key(span: &Span) -> Key {
    (span.trace.0, span.id)
}

/// The places of the spans with an id, in a trace that is ordered by ids.
fn places(trace: &[&mut Span], id: SpanId) -> std::ops::Range<usize> {
    let from = trace.partition_point(|span| span.id < id);
    let same = trace[from..].iter().take_while(|span| span.id == id);
    from..from + same.count()
}

/// Gives servers that share the id of their client one of their own.
fn part_shared(trace: &mut [&mut Span]) {
    let is_client = |span: &&mut Span| span.kind == SpanKind::Client;
    let shares = |span: &Span| trace[places(trace, span.id)].iter().any(is_client);
    let is_shared = |span: &Span| span.kind == SpanKind::Server && shares(span);
    let shared: Vec<bool> = trace.iter().map(|span| is_shared(span)).collect();
    if shared.contains(&true) {
        for (span, _) in trace.iter_mut().zip(shared).filter(|(_, shared)| *shared) {
            (span.parent, span.id) = (span.id, span.id.of_server());
        }
        trace.sort_by_key(|span| span.id);
    }
}

/// Moves spans from below a shared one to below the server that was parted from it, if they
/// are of its service.
fn move_below_parted(trace: &mut [&mut Span]) {
    for at in 0..trace.len() {
        let (id, parent) = (trace[at].id, trace[at].parent);
        if parent == SpanId::default() || trace[at].kind == SpanKind::Server {
            continue;
        }
        let own = parent.of_server();
        let is_mine = |place: usize| {
            let server = &trace[place];
            server.kind == SpanKind::Server
                && server.parent == parent
                && server.service == trace[at].service
        };
        if own != id && places(trace, own).any(is_mine) {
            trace[at].parent = own;
        }
    }
}

/// Finds out which spans without a kind are servers': those whose parent is elsewhere.
fn find_servers(trace: &mut [&mut Span]) {
    for at in 0..trace.len() {
        if trace[at].kind == SpanKind::Internal && comes_from_elsewhere(trace, at) {
            trace[at].kind = SpanKind::Server;
        }
    }
}

/// Whether a span's parent is known, and of another service.
fn comes_from_elsewhere(trace: &[&mut Span], at: usize) -> bool {
    let own = &trace[at].service;
    let mut services = above(trace, at).map(|place| &trace[place].service);
    services.next().is_some_and(|first| first != own) && services.all(|other| other != own)
}

/// A trace that nothing else can have entered was entered by the first span without a kind.
fn find_entry(trace: &mut [&mut Span]) {
    let mut first: Option<usize> = None;
    for at in 0..trace.len() {
        if above(trace, at).next().is_some() {
            continue;
        }
        match trace[at].kind {
            SpanKind::Server | SpanKind::Client => return,
            SpanKind::Work => {}
            SpanKind::Internal => {
                let rank = |at: usize| {
                    let span = &trace[at];
                    (span.parent != SpanId::default(), span.start, span.id)
                };
                let is_client = |place: usize| trace[place].kind == SpanKind::Client;
                let alone = !places(trace, trace[at].id).any(is_client);
                if alone && first.is_none_or(|first| rank(at) < rank(first)) {
                    first = Some(at);
                }
            }
        }
    }
    if let Some(first) = first {
        trace[first].kind = SpanKind::Server;
    }
}

/// The places of a span's parent; several share an id.
fn above(trace: &[&mut Span], at: usize) -> impl Iterator<Item = usize> + Clone {
    places(trace, trace[at].parent).filter(move |place| *place != at)
}

/// What a caller calls somebody: its own name, what it says of the other, and, where that
/// is nothing, what it asked for.
type CallerView = (Name, Name, Name);

fn caller_view(span: &Span) -> CallerView {
    let name = match span.peer.is_empty() {
        true => span.name.clone(),
        false => Name::default(),
    };
    (span.service.clone(), span.peer.clone(), name)
}

/// Who answers.
#[derive(Default)]
struct Callees {
    /// `None`: several do.
    known: HashMap<CallerView, Option<Name>>,
    /// Clients whose server is known.
    answered: HashSet<Key>,
    services: HashSet<Name>,
}

impl Callees {
    /// Names the callees of clients whose servers are in the trace.
    fn learn(&mut self, trace: &mut [&mut Span]) {
        for at in 0..trace.len() {
            if trace[at].kind != SpanKind::Server {
                continue;
            }
            let service = trace[at].service.clone();
            for client in places(trace, trace[at].parent) {
                if trace[client].kind != SpanKind::Client
                    || !self.answered.insert(key(trace[client]))
                {
                    continue;
                }
                let known = self
                    .known
                    .entry(caller_view(trace[client]))
                    .or_insert_with(|| Some(service.clone()));
                if known.as_ref().is_some_and(|known| *known != service) {
                    *known = None;
                }
                trace[client].peer = service.clone();
            }
            if !self.services.contains(&service) {
                self.services.insert(service);
            }
        }
    }

    /// Names the callee of a client whose server left no span, if others tell who that is.
    fn name(&mut self, span: &mut Span) {
        if let Some(known) = self.known.get(&caller_view(span)) {
            if let Some(service) = known {
                span.peer = service.clone();
            }
            return;
        }
        let host = host(&span.peer);
        if let Some(service) = host.and_then(|host| self.services.get(host)) {
            span.peer = service.clone();
        }
    }
}

/// The name of a service in what is called: `store:8080`, `store.shop.svc.cluster.local`.
fn host(callee: &str) -> Option<&str> {
    let host = callee.split_once(':').map_or(callee, |(host, _)| host);
    let name = match host.split_once('.') {
        None => host,
        Some((name, rest)) => {
            let (_, rest) = rest.split_once('.')?;
            (rest == "svc" || rest.starts_with("svc.")).then_some(name)?
        }
    };
    (name != callee && !name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests;
