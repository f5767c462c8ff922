//! What is recorded of a segment: spans, closed at the end of each second and handed over;
//! how much of a latency the thread made itself; outages; and requests one by one, for those
//! who ask for them.

use std::sync::Arc;
use std::sync::mpsc::TrySendError;

use lab_load::Span;
use lab_load::request::{Answer, Next, StepEnd, is_redirect};
use wire::clock;

use super::conversation::{Broken, CompleteResponse};
use super::exchange::Exchange;
use super::plan::Arrival;
use super::reaction::{Answered, Reaction};
use super::sampling::{End, Sample, Sampler};
use super::tally::Tally;
use super::{Report, ReportSender, Setup};

/// See the module. Times are nanoseconds of the loop's clock.
pub(super) struct Record {
    setup: Arc<Setup>,
    pub(super) tally: Tally,
    pub(super) reaction: Reaction,
    /// Spans that nobody took yet, as one.
    unsent: Option<Box<Span>>,
    /// Takes requests one by one, if anybody wants them so.
    sampler: Option<Sampler>,
    /// Whether users make the requests: what they send is what was planned.
    users: bool,
}

impl Record {
    /// For the calling thread, without a segment.
    pub(super) fn new(setup: Arc<Setup>, sampler: Option<Sampler>) -> Self {
        let span = Box::new(Span::empty(setup.composer.kinds().len()));
        let now = clock::now();
        Self {
            setup,
            tally: Tally::new(now, span),
            reaction: Reaction::new(now),
            unsent: None,
            sampler,
            users: false,
        }
    }

    /// A segment begins.
    pub(super) fn begin(&mut self, began: u64, users: bool, sender: &ReportSender) {
        // What happened to connections since the last segment belongs to this one.
        let connections = std::mem::take(&mut self.tally.span.connections);
        self.tally = Tally::new(began, self.empty_span(sender));
        self.tally.span.connections = connections;
        self.users = users;
    }

    /// Takes note of what this thread may have added to the answers that it has read.
    pub(super) fn settle(&mut self) {
        if self.reaction.is_settled() {
            return;
        }
        let tally = &mut self.tally;
        let end = tally.end();
        self.reaction.settle(|answered, unread, intended, actual| {
            let kind = tally.kind(answered.kind);
            kind.unread_seconds += unread as f64 * 1e-9;
            let in_time = answered.at.saturating_sub(intended) < end;
            kind.in_time_at_best += u64::from(answered.at >= end && in_time);
            kind.intended_doubt.record_ns(answered.intended, intended);
            kind.actual_doubt.record_ns(answered.actual, actual);
        });
    }

    /// A request is being sent.
    #[inline]
    pub(super) fn sending(&mut self, exchange: &mut Exchange, now: u64) {
        exchange.sent = now;
        if self.users && !exchange.counted {
            exchange.intended = now;
        }
        self.tally.sent(now);
    }

    /// A request of so many bytes was sent, over a connection that carried one before or not.
    #[inline]
    pub(super) fn sent(&mut self, exchange: &mut Exchange, bytes: usize, reused: bool) {
        self.tally.count(exchange, bytes, &mut self.reaction);
        self.tally.span.connections.reused += u64::from(reused);
    }

    /// A whole answer came in. Judges it, and says how the journey goes on.
    #[inline]
    pub(super) fn answered(
        &mut self,
        exchange: &mut Exchange,
        whole: CompleteResponse,
        now: u64,
    ) -> Option<Next> {
        let (zero, composer) = (self.tally.zero, &self.setup.composer);
        self.tally.ended(now);
        let in_flight = self.tally.in_flight();
        let intended = now.saturating_sub(exchange.intended);
        self.tally.answered(intended, now);
        let kind = self.tally.kind(exchange.kind);
        kind.answered += 1;
        let actual = now.saturating_sub(exchange.sent);
        kind.intended.record_ns(intended);
        kind.actual.record_ns(actual);
        let answered = Answered {
            kind: exchange.kind,
            at: now,
            intended,
            actual,
            late: exchange.late,
            burst: exchange.burst,
            pooled: exchange.pooled,
        };
        self.reaction.answered(answered, in_flight);
        if let Some(status) = whole.status {
            *kind.statuses.entry(status).or_insert(0) += 1;
        }
        let answer = Answer {
            status: whole.status.unwrap_or(0),
            fields: &exchange.kept.fields,
            body: &exchange.kept.body,
            body_bytes: whole.body_bytes,
            rows: exchange.kept.rows,
        };
        if is_redirect(answer.status) {
            kind.redirect = kind.redirect.take().or_else(|| answer.redirect());
        }
        // What a database refused is no answer to look at, whatever is asserted.
        let code = exchange.kept.code.take();
        let end = match &code {
            Some(code) => {
                kind.refuse(&format!("error {}", code.as_str()));
                StepEnd {
                    refusal: None,
                    next: Next::Done,
                }
            }
            None => composer.finish(exchange.visit.as_mut()?, &answer),
        };
        if let Some(refusal) = end.refusal {
            let name = composer.refusals().get(refusal);
            kind.refuse(name.map_or("refused", String::as_str));
        }
        let due = exchange.intended.saturating_sub(zero);
        let good = end.refusal.is_none() && code.is_none();
        match good {
            true => self.setup.outages.answered(due, now.saturating_sub(zero)),
            false => self.setup.outages.failed(due),
        }
        if let Some(sampler) = &mut self.sampler {
            let answered = End::Answered {
                at: now.saturating_sub(zero),
                status: whole.status,
                refusal: end.refusal,
                code,
            };
            sampler.take(exchange.sample(zero, answered));
        }
        exchange.kept.forget();
        Some(end.next)
    }

    /// A request has failed.
    pub(super) fn failed(&mut self, exchange: &mut Exchange, broken: Broken, now: u64) {
        if let Some(visit) = &exchange.visit {
            exchange.kind = self.setup.composer.kind(visit);
        }
        let end = End::Failed(broken.0, broken.1);
        self.unanswered(exchange.sample(self.tally.zero, end), broken, now);
    }

    /// An arrival has failed that had no place.
    pub(super) fn arrival_failed(&mut self, arrival: &Arrival, broken: Broken, now: u64) {
        let composer = &self.setup.composer;
        let sample = Sample {
            kind: composer.kind(&composer.begin(arrival.number)),
            intended: arrival.due.saturating_sub(self.tally.zero),
            sent: None,
            waited: true,
            end: End::Failed(broken.0, broken.1),
        };
        self.unanswered(sample, broken, now);
    }

    fn unanswered(&mut self, sample: Sample, broken: Broken, now: u64) {
        self.tally.fail(&sample, broken, now);
        self.setup.outages.failed(sample.intended);
        if let Some(sampler) = &mut self.sampler {
            sampler.take(sample);
        }
    }

    /// Ends the span at `end`, while so many connections are open, and hands it over.
    pub(super) fn turn(&mut self, end: u64, now: u64, open: u32, sender: &ReportSender) {
        let span = self.close_span(end, now, open, sender);
        let span = self.after_unsent(span);
        // While nobody takes spans, they are merged into one: time is lost from the
        // timeline, nothing from the counts.
        // Without a receiver the generator is being dropped, and a command to end comes
        // next.
        let told = sender.reports.try_send((sender.number, Report::Span(span)));
        if let Err(TrySendError::Full((_, Report::Span(span)))) = told {
            self.unsent = Some(span);
        }
    }

    /// Ends the segment's own time.
    pub(super) fn finish(&mut self, at: u64, planned: u64) {
        self.settle();
        self.tally.own().planned += planned;
        self.tally.finish(at);
    }

    /// The last span of a segment, which ends when the segment did, and what came after
    /// it, if anything did. So many requests fell due after it, and so many connections are
    /// open.
    pub(super) fn last(
        &mut self,
        now: u64,
        planned: u64,
        open: u32,
        sender: &ReportSender,
    ) -> (Box<Span>, Option<Box<Span>>) {
        let span = self.tally.take_window();
        let mut span = span.unwrap_or_else(|| self.empty_span(sender));
        span.connections.open = u64::from(open);
        self.complete(&mut span);
        self.tally.own().planned += planned;
        let after = (!self.tally.is_quiet()).then(|| {
            let mut after = self.close_span(now, now, open, sender);
            after.after_end = true;
            after
        });
        if let Some(sampler) = &mut self.sampler {
            sampler.hand_over();
        }
        (self.after_unsent(span), after)
    }

    /// A span together with those before it that nobody took.
    fn after_unsent(&mut self, span: Box<Span>) -> Box<Span> {
        match self.unsent.take() {
            Some(mut earlier) => {
                earlier.append(&span);
                earlier
            }
            None => span,
        }
    }

    fn close_span(&mut self, end: u64, now: u64, open: u32, sender: &ReportSender) -> Box<Span> {
        if let Some(sampler) = &mut self.sampler {
            sampler.hand_over();
        }
        self.settle();
        let empty = self.empty_span(sender);
        let mut span = self.tally.turn(end, now, u64::from(open), empty);
        self.complete(&mut span);
        span
    }

    /// Counts what was not due by a schedule, and what the machine did meanwhile.
    fn complete(&mut self, span: &mut Span) {
        span.delays = self.reaction.delays();
        if self.users {
            span.planned = span.kinds.iter().map(|kind| kind.sent).sum();
        }
    }

    fn empty_span(&self, sender: &ReportSender) -> Box<Span> {
        let kinds = self.setup.composer.kinds().len();
        let emptied = sender.emptied.try_recv();
        emptied.unwrap_or_else(|_| Box::new(Span::empty(kinds)))
    }
}
