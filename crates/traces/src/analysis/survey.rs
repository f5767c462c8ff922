//! Traces sorted by where they entered and how they ended.

use std::collections::BTreeMap;

use super::forest::{Tree, by_trace, traces};
use super::known::Known;
use super::ledger::Ledger;
use super::path::{TOLERANCE, Unawaited};
use crate::failure::TIMEOUT;
use crate::{Name, Span, SpanKind};

/// Entries that are kept apart; further ones are counted together.
const MOST_ENTRIES: usize = 1_000;

/// The cause of what was cut off because its caller went: never why a request failed.
pub(super) const GONE: &str = "gone";

/// What entered at one path of one service.
#[derive(Default)]
pub(super) struct Accumulator {
    /// Those that succeeded.
    pub(super) ledger: Ledger,
    /// Those that failed, by where and why.
    pub(super) failures: BTreeMap<(String, &'static str), u64>,
}

impl Accumulator {
    pub(super) fn failed(&self) -> u64 {
        self.failures.values().sum()
    }

    pub(super) fn requests(&self) -> u64 {
        self.ledger.totals.len() as u64 + self.failed()
    }
}

/// All traces.
#[derive(Default)]
pub(super) struct Survey {
    /// By service, path and the revision of the profile under which they ran.
    pub(super) books: BTreeMap<(Name, Name, u32), Accumulator>,
    pub(super) traces: u64,
    pub(super) without_root: u64,
    /// Requests of entries beyond the bound.
    pub(super) beyond: u64,
    /// Spans that stand below a missing one, or came twice.
    pub(super) unused: u64,
    /// Those that came twice.
    pub(super) twice: u64,
}

impl Survey {
    /// Takes in the spans of any number of requests, in any order.
    pub(super) fn of(spans: &[Span], known: Option<&Known>, unawaited: &Unawaited) -> Self {
        let entry = known.and_then(|one| one.entry.as_deref());
        let mut survey = Self::default();
        let order = by_trace(spans);
        let mut tree = Tree::default();
        for trace in traces(&order) {
            survey.traces += 1;
            let Some(root) = tree.build(trace, entry) else {
                survey.without_root += 1;
                continue;
            };
            survey.unused += (tree.orphans + tree.twice) as u64;
            survey.twice += tree.twice as u64;
            let span = tree.node(root).span;
            let key = (span.service.clone(), span.name.clone(), span.revision);
            let full = survey.books.len() >= MOST_ENTRIES;
            if full && !survey.books.contains_key(&key) {
                survey.beyond += 1;
                continue;
            }
            let book = survey.books.entry(key).or_default();
            match span.has_failed() {
                true => *book.failures.entry(failure(&tree, root)).or_default() += 1,
                false => book.ledger.add(&tree, root, unawaited),
            }
        }
        survey
    }
}

/// Where a request failed first and why: from the root down along what failed for a reason
/// of its own. Below a call that ran out of time, or whose caller went, is only what that
/// cut off.
fn failure(tree: &Tree<'_>, root: usize) -> (String, &'static str) {
    let mut at = root;
    // The one that ended last is what its parent could not do without.
    while let Some(below) = tree
        .children(at)
        .map(|place| tree.child(place))
        .find(|below| explains(tree.node(*below).span, tree.node(at).span))
    {
        at = below;
    }
    let span = tree.node(at).span;
    let place = match span.kind {
        SpanKind::Client => format!("{}>{}", span.service, span.peer),
        SpanKind::Server => span.service.to_string(),
        SpanKind::Work | SpanKind::Internal => format!("{} {}", span.service, span.name),
    };
    let cause = match span.cause {
        "" => "status",
        cause => cause,
    };
    (place, cause)
}

/// Whether a failed span can owe that to one below it.
fn explains(below: &Span, above: &Span) -> bool {
    let failed = below.has_failed() || (below.kind == SpanKind::Work && !below.cause.is_empty());
    // Of a call that was answered, the other end's clock may be another.
    let is_comparable = above.kind != SpanKind::Client || above.cause == TIMEOUT;
    let came_later = is_comparable && below.end > above.end.saturating_add(TOLERANCE);
    failed && above.cause != GONE && below.cause != GONE && !came_later
}
