//! The critical path of a request, and what each stretch of it was spent on.
//!
//! The rule is that of CRISP (Zhang, Ramanathan, Raj, Parwal, Sherwood and Chabbi, "CRISP:
//! Critical Path Analysis of Large-Scale Microservice Architectures", USENIX ATC 2022):
//! from a span, take the child that ended last; then the one that ended last of those that
//! ended before that one started; and so on; then the same in each of them. What no chosen
//! child covers is the span's own. So every nanosecond of the root belongs to exactly one
//! span.
//!
//! What is added to it here:
//! - A child that ends after a span that succeeded was not waited for (a call without
//!   `wait`, a branch that a quorum left behind): it is never chosen. That of a failed or
//!   given-up span is cut off where its parent ends.
//! - Children may overlap by [`TOLERANCE`], since many formats keep whole microseconds.
//! - Of children that end together, the one that started first is chosen.
//! - A server span outside its client's, which one clock cannot give, is moved to its
//!   middle: two machines' clocks differ. So is one of another service that seems to begin
//!   before its parent, where the call itself left no span.
//! - An attempt of a call that was made again waited for the attempt before it, whatever
//!   else ended meanwhile. The failed one counts as a whole: what it began was in vain.

use std::collections::HashSet;

use super::cause::Cause;
use super::forest::{Node, Tree};
use super::known::Known;
use crate::Nanos;
use crate::{Name, Span, SpanKind};

/// How far children may overlap and still count as one after the other.
pub const TOLERANCE: Nanos = 2_000;

/// A server that seems to end so long after its caller had the whole answer has another
/// clock; below, its thread was held up before it took the time.
const OTHER_CLOCK: Nanos = 1_000_000;

/// What the walk tells.
pub(super) trait Sink<'a> {
    /// A span is on the path, with what its parent leaves of it.
    fn on_path(&mut self, span: &'a Span, from: Nanos, to: Nanos);

    /// A stretch of the path. `peer` is the service that a client span called.
    fn spend(&mut self, span: &'a Span, peer: &'a Name, cause: Cause, length: Nanos);

    /// A server, timed by another clock, was moved to the middle of its call: how long each way took
    /// is not known.
    fn moved(&mut self, _call: &'a Span) {}

    /// A child that could have taken longer, by at least so much, without harm.
    fn slack(&mut self, _span: &'a Span, _slack: Nanos) {}

    /// A child on the path that others ran beside: they all waited for it for so long.
    fn critical(&mut self, _span: &'a Span, _alone: Nanos) {}
}

/// Calls that nobody waits for, as far as a topology says it of whole edges.
#[derive(Debug, Default)]
pub(super) struct Unawaited(HashSet<(String, String)>);

impl Unawaited {
    pub(super) fn of(known: &Known) -> Self {
        let calls = known.calls.iter().filter(|call| !call.awaited);
        Self(
            calls
                .map(|call| (call.from.clone(), call.to.clone()))
                .collect(),
        )
    }

    fn has(&self, span: &Span) -> bool {
        // Looking up a pair of texts needs a pair of them; most graphs have no such edge.
        let same = |(from, to): &(String, String)| **from == *span.service && **to == *span.peer;
        span.kind == SpanKind::Client && self.0.iter().any(same)
    }
}

/// Walks critical paths. Memory is used again for the next request.
#[derive(Debug, Default)]
pub(super) struct Walk {
    stack: Vec<Frame>,
    chosen: Vec<bool>,
    /// Spans below which the service's own work ran beside what was chosen.
    beside: Vec<bool>,
    /// Server spans that were moved.
    pub(super) moved: usize,
}

/// A span on the path: what its parent leaves of it, and how far it was moved.
#[derive(Debug, Clone, Copy)]
struct Frame {
    at: usize,
    from: Nanos,
    to: Nanos,
    shift: i64,
    /// It failed and was made again.
    in_vain: bool,
}

/// The child that was chosen last.
struct Latest<'a> {
    span: &'a Span,
    from: Nanos,
    to: Nanos,
    /// When the last of those beside it ended.
    others: Option<Nanos>,
}

impl Walk {
    /// Tells `sink` of the critical path from `root` on. The lengths that it spends add up
    /// to the root's.
    pub(super) fn request<'a>(
        &mut self,
        tree: &Tree<'a>,
        root: usize,
        unawaited: &Unawaited,
        sink: &mut impl Sink<'a>,
    ) {
        for flags in [&mut self.chosen, &mut self.beside] {
            flags.clear();
            flags.resize(tree.len(), false);
        }
        let span = tree.node(root).span;
        self.stack.clear();
        self.stack.push(Frame {
            at: root,
            from: span.start,
            to: span.end.max(span.start),
            shift: 0,
            in_vain: false,
        });
        while let Some(frame) = self.stack.pop() {
            self.span(tree, frame, unawaited, sink);
        }
    }

    fn span<'a>(
        &mut self,
        tree: &Tree<'a>,
        frame: Frame,
        unawaited: &Unawaited,
        sink: &mut impl Sink<'a>,
    ) {
        let node = tree.node(frame.at);
        let span = node.span;
        let mut peer = &span.peer;
        sink.on_path(span, frame.from, frame.to);
        if frame.in_vain {
            sink.spend(span, peer, Cause::of_attempt(span), frame.to - frame.from);
            return;
        }
        let mut gaps = Gaps::default();
        let mut cursor = frame.to;
        let mut latest: Option<Latest<'a>> = None;
        // The attempt that failed before the one on the path.
        let mut before: Option<usize> = None;
        for place in tree.children(frame.at) {
            let at = tree.child(place);
            let child = tree.node(at).span;
            if unawaited.has(child) || !is_awaited(span, child) {
                continue;
            }
            let skew = self.skew(span, child, frame);
            if skew != 0 {
                sink.moved(span);
            }
            let shift = frame.shift.saturating_add(skew);
            let (start, end) = (moved(child.start, shift), moved(child.end, shift));
            // What a parent that was cut off began only then, or ended before it began.
            if end > frame.to && start >= frame.to || child.end < child.start {
                continue;
            }
            let end = end.min(frame.to);
            if end <= frame.from {
                break;
            }
            if before.is_some_and(|before| before != at) {
                if let Some(latest) = &latest {
                    sink.slack(child, latest.to.saturating_sub(end));
                }
                continue;
            }
            if end > cursor.saturating_add(TOLERANCE) {
                self.beside[frame.at] |= child.kind == SpanKind::Work;
                if let Some(latest) = latest.as_mut().filter(|one| end > one.from) {
                    sink.slack(child, latest.to.saturating_sub(end));
                    latest.others = latest.others.max(Some(end));
                }
                continue;
            }
            let to = end.min(cursor);
            let from = start.clamp(frame.from, to);
            let in_vain = before.take().is_some();
            if in_vain {
                sink.spend(child, &child.peer, Cause::Backoff, cursor - to);
            }
            // A pause before a call was made again is told as such, whatever it is within.
            gaps.add(if in_vain { 0 } else { cursor - to });
            if span.kind == SpanKind::Client && peer.is_empty() {
                peer = &child.service;
            }
            emit_critical(latest.take(), sink);
            latest = Some(Latest {
                span: child,
                from,
                to,
                others: None,
            });
            self.chosen[at] = true;
            self.stack.push(Frame {
                at,
                from,
                to,
                shift,
                in_vain,
            });
            cursor = from;
            before = attempt_before(tree, frame.at, child);
        }
        emit_critical(latest, sink);
        gaps.first = cursor - frame.from;
        match span.kind {
            // What another system does inside may be anything: it is handling, by its name.
            SpanKind::Server | SpanKind::Internal => {
                let queue = span.queue.min(gaps.first);
                sink.spend(span, peer, Cause::Queue, queue);
                sink.spend(span, peer, Cause::Own, gaps.sum() - queue);
            }
            SpanKind::Work => work(span, gaps.sum(), sink),
            SpanKind::Client => self.client(tree, &node, frame, peer, &gaps, sink),
        }
    }

    /// A call: the queue, both ways on the wire, and what the service itself did meanwhile.
    fn client<'a>(
        &self,
        tree: &Tree<'a>,
        node: &Node<'a>,
        frame: Frame,
        peer: &'a Name,
        gaps: &Gaps,
        sink: &mut impl Sink<'a>,
    ) {
        let span = node.span;
        let queue = span.queue.min(gaps.first);
        sink.spend(span, peer, Cause::Queue, queue);
        if gaps.count == 0 {
            sink.spend(span, peer, Cause::Unseen, gaps.first - queue);
            return;
        }
        let sent = frame.from + queue;
        let arrived = frame.from + gaps.first;
        let out = self.beside(tree, node.parent, frame, sent, arrived);
        let back = self.beside(tree, node.parent, frame, frame.to - gaps.last, frame.to);
        let between = gaps.sum() - gaps.first - gaps.last;
        let out_length = gaps.first - queue - out + between;
        sink.spend(span, peer, Cause::WireOut, out_length);
        sink.spend(span, peer, Cause::WireBack, gaps.last - back);
        sink.spend(span, peer, Cause::Sibling, out + back);
    }

    /// How long, of a stretch of time, own work ran beside the path below `parent`.
    fn beside(
        &self,
        tree: &Tree<'_>,
        parent: usize,
        frame: Frame,
        from: Nanos,
        to: Nanos,
    ) -> Nanos {
        if !self.beside[parent] || from >= to {
            return 0;
        }
        let mut sum = 0;
        let mut cursor = to;
        for place in tree.children(parent) {
            let at = tree.child(place);
            let child = tree.node(at).span;
            if self.chosen[at] || child.kind != SpanKind::Work || !Cause::keeps_thread(&child.name)
            {
                continue;
            }
            let begun = child.start.saturating_add(child.queue);
            let end = moved(child.end, frame.shift).min(cursor);
            let start = moved(begun, frame.shift).max(from);
            if start < end {
                sum += end - start;
                cursor = start;
            }
        }
        sum
    }

    /// How far a server span must be moved to lie within its client's.
    fn skew(&mut self, parent: &Span, child: &Span, frame: Frame) -> i64 {
        let start = moved(child.start, frame.shift);
        let end = moved(child.end, frame.shift);
        let called = child.kind == SpanKind::Server
            && match parent.kind {
                SpanKind::Client => true,
                // Without a span of the call, one that ends late may be waited for by nobody;
                // but none begins before what caused it.
                _ => {
                    parent.service != child.service && start.saturating_add(TOLERANCE) < frame.from
                }
            };
        let length = child.length();
        if !called || parent.has_failed() || length > frame.to - frame.from {
            return 0;
        }
        let within = start.saturating_add(TOLERANCE) >= frame.from
            && end <= frame.to.saturating_add(OTHER_CLOCK);
        if within {
            return 0;
        }
        self.moved += 1;
        let middle = frame.from + (frame.to - frame.from - length) / 2;
        middle.cast_signed().wrapping_sub(start.cast_signed())
    }
}

/// What no child covers.
#[derive(Default)]
struct Gaps {
    /// After the last child. Without children there is only `first`.
    last: Nanos,
    /// Between children.
    between: Nanos,
    /// Before the first child.
    first: Nanos,
    /// Children.
    count: usize,
}

impl Gaps {
    fn add(&mut self, length: Nanos) {
        match self.count {
            0 => self.last = length,
            _ => self.between += length,
        }
        self.count += 1;
    }

    fn sum(&self) -> Nanos {
        self.first + self.between + self.last
    }
}

/// Work: its queue, its processor time, and what passed beside it; of a span that was cut
/// off, in proportion.
fn work<'a>(span: &'a Span, length: Nanos, sink: &mut impl Sink<'a>) {
    let queue = span.queue.min(length);
    sink.spend(span, &span.peer, Cause::Queue, queue);
    let rest = length - queue;
    let wall = span.length().saturating_sub(span.queue);
    let cpu = match rest < wall {
        true => {
            let part = u128::from(span.cpu) * u128::from(rest) / u128::from(wall);
            u64::try_from(part).unwrap_or(rest)
        }
        false => span.cpu,
    };
    let beside = Cause::beside_cpu(&span.name);
    let cpu = cpu.min(rest);
    sink.spend(span, &span.peer, Cause::Cpu, cpu);
    sink.spend(span, &span.peer, beside, rest - cpu);
}

fn emit_critical<'a>(latest: Option<Latest<'a>>, sink: &mut impl Sink<'a>) {
    let Some(latest) = latest else {
        return;
    };
    if let Some(others) = latest.others {
        sink.critical(latest.span, latest.to.saturating_sub(others));
    }
}

/// The attempt of the same call that failed before this one. Of several calls of one service
/// at once it is the one that ended last before this one began.
fn attempt_before(tree: &Tree<'_>, parent: usize, again: &Span) -> Option<usize> {
    if again.kind != SpanKind::Client || again.attempt == 0 {
        return None;
    }
    let children = tree.children(parent).map(|place| tree.child(place));
    children.into_iter().find(|at| {
        let failed = tree.node(*at).span;
        is_same_call(failed, again)
            && again.attempt - 1 == failed.attempt
            && failed.end <= again.start.saturating_add(TOLERANCE)
    })
}

/// Whether two spans can be attempts of one call.
pub(super) fn is_same_call(one: &Span, other: &Span) -> bool {
    one.kind == SpanKind::Client
        && other.kind == SpanKind::Client
        && one.peer == other.peer
        && one.name == other.name
}

/// Whether a span may have waited for a child.
fn is_awaited(span: &Span, child: &Span) -> bool {
    span.kind == SpanKind::Client
        || child.end <= span.end.saturating_add(TOLERANCE)
        || span.has_failed()
}

fn moved(time: Nanos, shift: i64) -> Nanos {
    time.saturating_add_signed(shift)
}
