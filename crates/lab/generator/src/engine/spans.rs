//! Spans: closed at the end of each second and handed over.

use std::sync::mpsc::TrySendError;

use lab_load::Span;

use super::{Engine, Report, ReportSender, SECOND, Source};

impl Engine {
    /// Counts the arrivals that came due since the last call into the span.
    pub(super) fn came_due(&mut self, now: u64) {
        if let Source::Schedule(plan) = &mut self.source {
            let all = plan.came_due(now);
            self.tally.own().planned += all - self.came_due;
            self.came_due = all;
        }
    }

    /// Ends the span at the last whole second, and says when the next one ends.
    pub(super) fn turn(
        &mut self,
        now: u64,
        end: Option<u64>,
        began: u64,
        sender: &ReportSender,
    ) -> u64 {
        let last = end.map_or(now, |end| now.min(end.saturating_sub(1)));
        let end = began + (last - began) / SECOND * SECOND;
        let span = self.close_span(end, now, sender);
        let span = self.after_unsent(span);
        // While nobody takes spans, they are merged into one: time is lost from the
        // timeline, nothing from the counts.
        // Without a receiver the generator is being dropped, and a command to end comes
        // next.
        let told = sender.reports.try_send((sender.number, Report::Span(span)));
        if let Err(TrySendError::Full((_, Report::Span(span)))) = told {
            self.unsent_span = Some(span);
        }
        end + SECOND
    }

    /// Ends the segment's own time.
    pub(super) fn finish(&mut self, at: u64) {
        self.settle_answers();
        self.came_due(at);
        self.tally.finish(at);
        self.tally.own().planned += std::mem::take(&mut self.later_steps);
    }

    /// The last span of a segment, which ends when the segment did, and what came after
    /// it, if anything did.
    pub(super) fn last(
        &mut self,
        now: u64,
        sender: &ReportSender,
    ) -> (Box<Span>, Option<Box<Span>>) {
        self.finish(self.ended.unwrap_or(now));
        let span = self.tally.take_window();
        let mut span = span.unwrap_or_else(|| self.empty_span(sender));
        span.connections.open = u64::from(self.open / self.streams);
        self.complete(&mut span);
        let after = (!self.tally.is_quiet()).then(|| {
            let mut after = self.close_span(now, now, sender);
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
        match self.unsent_span.take() {
            Some(mut earlier) => {
                earlier.append(&span);
                earlier
            }
            None => span,
        }
    }

    fn close_span(&mut self, end: u64, now: u64, sender: &ReportSender) -> Box<Span> {
        if let Some(sampler) = &mut self.sampler {
            sampler.hand_over();
        }
        self.settle_answers();
        self.came_due(end);
        let empty = self.empty_span(sender);
        let mut span = self
            .tally
            .turn(end, now, u64::from(self.open / self.streams), empty);
        self.complete(&mut span);
        span
    }

    /// Counts what was not due by a schedule, and what the machine did meanwhile.
    fn complete(&mut self, span: &mut Span) {
        span.planned += std::mem::take(&mut self.later_steps);
        span.delays = self.reaction.delays();
        if self.users {
            span.planned = span.kinds.iter().map(|kind| kind.sent).sum();
        }
    }

    pub(super) fn empty_span(&self, sender: &ReportSender) -> Box<Span> {
        let kinds = self.setup.composer.kinds().len();
        let emptied = sender.emptied.try_recv();
        emptied.unwrap_or_else(|_| Box::new(Span::empty(kinds)))
    }
}
