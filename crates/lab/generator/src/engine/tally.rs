//! What one thread sees, second by second.

use std::time::Duration;

use lab_load::Span;
use lab_load::recording::{Phase, Recording, Tenth};

use wire::clock;

use super::exchange::{Delay, Exchange};
use super::reaction::Reaction;
use super::sampling::Sample;

/// Counts of the span that is under way. Times are those of the loop's clock.
#[derive(Debug)]
pub(super) struct Tally {
    pub(super) span: Box<Span>,
    /// Start of the segment, and of the span.
    pub(super) zero: u64,
    began: u64,
    in_flight: u32,
    /// When `in_flight` changed last.
    changed: u64,
    /// Integral of requests in flight up to then, in request-nanoseconds.
    request_ns: u64,
    cpu: Duration,
    /// When the segment ends, and the span that ended with it: whatever is counted
    /// later came after the end.
    end: u64,
    window: Option<Box<Span>>,
    /// Takes what is counted for a kind that is not there, which does not happen.
    other: Recording,
}

impl Tally {
    /// For a segment that begins at `zero`, with an empty span.
    pub(super) fn new(zero: u64, span: Box<Span>) -> Self {
        Self {
            span,
            zero,
            began: zero,
            in_flight: 0,
            changed: zero,
            request_ns: 0,
            cpu: clock::thread_cpu(),
            end: u64::MAX,
            window: None,
            other: Recording::default(),
        }
    }

    #[inline]
    pub(super) fn kind(&mut self, kind: usize) -> &mut Recording {
        self.span.kinds.get_mut(kind).unwrap_or(&mut self.other)
    }

    /// A request failed, and whether it is counted as sent the sample says.
    pub(super) fn fail(&mut self, sample: &Sample, (phase, cause): (Phase, &str), now: u64) {
        self.pass(now);
        self.span.ended(Some(Duration::from_nanos(sample.intended)));
        let kind = self.kind(sample.kind);
        match sample.sent {
            Some(_) => kind.fail_sent(phase, cause),
            None => kind.fail(phase, cause),
        }
    }

    pub(super) fn in_flight(&self) -> u32 {
        self.in_flight
    }

    #[inline]
    pub(super) fn sent(&mut self, now: u64) {
        self.pass(now);
        self.integrate(now);
        self.in_flight += 1;
        self.span.in_flight = self.span.in_flight.max(u64::from(self.in_flight));
        let in_flight = self.in_flight;
        let tenth = self.tenth(now);
        tenth.sent += 1;
        tenth.in_flight = tenth.in_flight.max(in_flight);
    }

    /// An answer ended so long after its intended send.
    #[inline]
    pub(super) fn answered(&mut self, intended: u64, now: u64) {
        let due = now.saturating_sub(intended).saturating_sub(self.zero);
        self.span.ended(Some(Duration::from_nanos(due)));
        let micros = u32::try_from(intended / 1_000).unwrap_or(u32::MAX).max(1);
        // Before it ended, one more was in flight.
        let in_flight = self.in_flight + 1;
        let tenth = self.tenth(now);
        tenth.worst_us = tenth.worst_us.max(micros);
        tenth.in_flight = tenth.in_flight.max(in_flight);
    }

    #[inline]
    fn tenth(&mut self, now: u64) -> &mut Tenth {
        let since = now.saturating_sub(self.zero);
        self.span.tenths.at(Duration::from_nanos(since))
    }

    #[inline]
    pub(super) fn ended(&mut self, now: u64) {
        self.pass(now);
        self.integrate(now);
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// A try has failed in a way that lets the request be sent again.
    pub(super) fn retried(&mut self, exchange: &mut Exchange, now: u64) {
        exchange.again = true;
        self.ended(now);
        let kind = self.kind(exchange.kind);
        kind.retried += 1;
        kind.retried_seconds += now.saturating_sub(exchange.sent) as f64 * 1e-9;
    }

    /// Counts a request as sent, unless it was sent before on a connection that the
    /// target was closing.
    #[inline]
    pub(super) fn count(&mut self, exchange: &mut Exchange, bytes: usize, reaction: &mut Reaction) {
        if std::mem::replace(&mut exchange.counted, true) {
            return;
        }
        let delay = exchange.delay;
        let late = exchange.sent.saturating_sub(exchange.intended);
        exchange.late = match delay {
            Delay::Own => late,
            Delay::Opening | Delay::Capped => exchange.found_late.min(late),
        };
        exchange.pooled = match delay {
            Delay::Own | Delay::Opening => 0,
            Delay::Capped => reaction.pooled(self.in_flight).min(late),
        };
        exchange.burst = reaction.sent(exchange.late, exchange.sent);
        if delay != Delay::Own {
            reaction.sent_freed(exchange.sent);
        }
        let kind = self.kind(exchange.kind);
        kind.sent += 1;
        kind.bytes_sent += bytes as u64;
        match delay {
            Delay::Own => kind.lateness.record_ns(late),
            Delay::Opening => {}
            Delay::Capped => kind.waited += 1,
        }
    }

    #[inline]
    fn integrate(&mut self, now: u64) {
        self.request_ns += now.saturating_sub(self.changed) * u64::from(self.in_flight);
        self.changed = self.changed.max(now);
    }

    /// Says when the segment will end.
    pub(super) fn ends_at(&mut self, end: u64) {
        self.end = end;
    }

    /// When the segment's own time ends; as late as can be, where that is not known yet.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Whether what is counted now comes after the end of the segment.
    pub(super) fn is_over(&self) -> bool {
        self.window.is_some()
    }

    /// Looks whether the segment is over. The loop may be in the middle of a batch of
    /// events then, and each of them has its own time.
    #[inline]
    fn pass(&mut self, now: u64) {
        if now >= self.end && !self.is_over() {
            self.finish(self.end);
        }
    }

    /// Ends the segment's own time, unless it has ended.
    pub(super) fn finish(&mut self, end: u64) {
        if !self.is_over() {
            self.end = end;
            let empty = Box::new(Span::empty(self.span.kinds.len()));
            self.window = Some(self.turn(end, end, 0, empty));
        }
    }

    /// The last span of the segment's own time: the one that is under way, until it has
    /// ended.
    pub(super) fn own(&mut self) -> &mut Span {
        self.window.as_mut().unwrap_or(&mut self.span)
    }

    /// Takes the span that ended with the segment.
    pub(super) fn take_window(&mut self) -> Option<Box<Span>> {
        self.window.take()
    }

    /// Whether the span under way has seen anything of requests.
    pub(super) fn is_quiet(&self) -> bool {
        let untouched =
            |kind: &Recording| kind.sent == 0 && kind.answered == 0 && kind.errors.is_empty();
        self.request_ns == 0 && self.in_flight == 0 && self.span.kinds.iter().all(untouched)
    }

    /// Ends the span at `end`, gives it away and begins the next one in `empty`. What
    /// happened after `end` and is in it already, stays: nothing is lost between spans.
    pub(super) fn turn(&mut self, end: u64, now: u64, open: u64, empty: Box<Span>) -> Box<Span> {
        self.integrate(now);
        let mut span = std::mem::replace(&mut self.span, empty);
        span.start = Duration::from_nanos(self.began.saturating_sub(self.zero));
        span.length = Duration::from_nanos(end.saturating_sub(self.began).max(1));
        span.in_flight_seconds = self.request_ns as f64 * 1e-9;
        span.connections.open = open;
        let cpu = clock::thread_cpu();
        span.threads_cpu.push(cpu.saturating_sub(self.cpu));
        self.cpu = cpu;
        self.request_ns = 0;
        self.began = end;
        self.span.in_flight = u64::from(self.in_flight);
        span
    }
}
