//! Which calls are made again, of systems that do not tell.

use std::collections::BTreeMap;

use crate::analysis::TOLERANCE;
use crate::{Name, Span, SpanId, SpanKind};

/// Whether the writers of spans say themselves which attempt of a call one is.
pub(super) fn are_numbered(spans: &[&mut Span]) -> bool {
    let tells = |span: &&mut Span| {
        span.attempt > 0 || span.kind == SpanKind::Work || span.queue > 0 || span.cpu > 0
    };
    spans.iter().any(tells)
}

/// Counts the attempts in one trace: a call that begins after one of the same parent, to the same
/// callee and of the same name, had failed is that one made again. Each is made again once.
pub(super) fn count(trace: &mut [&mut Span]) {
    let mut calls: BTreeMap<(SpanId, Name, Name), Vec<usize>> = BTreeMap::new();
    for (at, span) in trace.iter().enumerate() {
        if span.kind == SpanKind::Client {
            let key = (span.parent, span.peer.clone(), span.name.clone());
            calls.entry(key).or_default().push(at);
        }
    }
    for mut same in calls.into_values().filter(|same| same.len() > 1) {
        same.sort_by_key(|at| (trace[*at].start, trace[*at].id));
        // Failed ones that nobody made again yet.
        let mut open: Vec<usize> = Vec::new();
        for at in same {
            let start = trace[at].start.saturating_add(TOLERANCE);
            let ended = open
                .iter()
                .enumerate()
                .filter(|(_, one)| trace[**one].end <= start);
            let last = ended.max_by_key(|(_, one)| (trace[**one].end, trace[**one].id));
            if let Some(place) = last.map(|(place, _)| place) {
                let failed = open.remove(place);
                trace[at].attempt = trace[failed].attempt.saturating_add(1);
            }
            if trace[at].has_failed() {
                open.push(at);
            }
        }
    }
}
