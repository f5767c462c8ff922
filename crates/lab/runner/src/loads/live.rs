//! What loads see while they run.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lab_experiment::expr::{LoadQuantity, Stat};
use lab_load::recording::{Latencies, Timeline};
use lab_load::slo::Statistic;
use lab_load::validity::{Between, more_asked};
use lab_load::{Recorded, Span};

/// Conditions are about this much time until now.
pub(crate) const WINDOW: Duration = Duration::from_secs(5);

/// The last seconds of a load, and what it saw in each step; cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Live(Arc<Mutex<Seen>>);

#[derive(Debug, Default)]
struct Seen {
    last: VecDeque<Span>,
    /// Since the step began: requests sent, whole answers, and good ones.
    sent: u64,
    answered: u64,
    good: u64,
    /// The step under way, for those that go on over steps.
    step: Option<String>,
    steps: Vec<StepWindow>,
}

/// What a load saw in one step.
#[derive(Debug)]
pub(crate) struct StepWindow {
    pub(crate) step: String,
    /// Where it begins, from the start of the load.
    begins: Duration,
    total: Span,
    timeline: Timeline,
}

impl StepWindow {
    /// Where it lies, from the start of the load.
    pub(crate) fn window(&self) -> std::ops::Range<Duration> {
        self.begins..self.begins + self.total.length
    }

    /// It as a recording of its own; `whole` is that of the load.
    pub(crate) fn recorded(mut self, whole: &Recorded) -> Recorded {
        // What falls due at the very end of a passage is sent in the next one.
        let sent: u64 = self.total.kinds.iter().map(|kind| kind.sent).sum();
        if sent.abs_diff(self.total.planned) <= 1 {
            self.total.planned = sent;
        }
        let begins = i64::try_from(self.begins.as_nanos()).unwrap_or(0);
        Recorded {
            segment: whole.segment.clone(),
            began_unix_ns: whole.began_unix_ns.saturating_add(begins),
            total: self.total,
            timeline: self.timeline,
            cut: None,
            lost: whole.lost.clone(),
            notes: whole.notes.clone(),
        }
    }
}

impl Live {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A load that goes on over steps is in this one now.
    pub(crate) fn enter(&self, step: &str) {
        let mut seen = self.seen();
        seen.step = Some(step.to_owned());
        (seen.sent, seen.answered, seen.good) = (0, 0, 0);
    }

    /// A span has passed. It counts to the step in which it ended.
    pub(crate) fn passed(&self, span: &Span) {
        let mut seen = self.seen();
        seen.last.push_back(span.clone());
        let requests = span.requests();
        seen.sent += requests.sent;
        seen.answered += requests.answered;
        seen.good += requests.good();
        let newest = span.end();
        while seen
            .last
            .front()
            .is_some_and(|oldest| newest.saturating_sub(oldest.start) > WINDOW + span.length / 2)
        {
            seen.last.pop_front();
        }
        let Some(step) = seen.step.clone() else {
            return;
        };
        if seen.steps.last().is_none_or(|last| last.step != step) {
            seen.steps.push(StepWindow {
                step,
                begins: span.start,
                total: Span::empty(span.kinds.len()),
                timeline: Timeline::default(),
            });
        }
        if let Some(last) = seen.steps.last_mut() {
            let mut own = span.clone();
            own.start = own.start.saturating_sub(last.begins);
            last.total.append(&own);
            last.timeline.push(own);
        }
    }

    /// The value of a quantity over the last seconds, of a count since the step began;
    /// `None` before the first span.
    pub(crate) fn value(&self, quantity: LoadQuantity) -> Option<f64> {
        self.value_by(quantity, |window| value(window, quantity))
    }

    /// The same without what the generator may have made worse.
    pub(crate) fn value_at_best(&self, quantity: LoadQuantity, is_open: bool) -> Option<f64> {
        self.value_by(quantity, |window| at_best(window, quantity, is_open))
    }

    fn value_by(
        &self,
        quantity: LoadQuantity,
        of_window: impl Fn(&Span) -> Option<f64>,
    ) -> Option<f64> {
        let window = self.window()?;
        match quantity {
            LoadQuantity::Answered => Some(self.seen().answered as f64),
            LoadQuantity::Good => Some(self.seen().good as f64),
            LoadQuantity::Requests => Some(self.seen().sent as f64),
            _ => of_window(&window),
        }
    }

    /// The last seconds as one span.
    pub(crate) fn window(&self) -> Option<Span> {
        let seen = self.seen();
        let kinds = seen.last.front()?.kinds.len();
        let mut window = Span::empty(kinds);
        seen.last.iter().for_each(|span| window.append(span));
        Some(window)
    }

    /// What was seen in each step; it is empty afterwards.
    pub(crate) fn take_steps(&self) -> Vec<StepWindow> {
        std::mem::take(&mut self.seen().steps)
    }
}

/// The value of a quantity in a span. A percentile of few samples is one of the
/// largest: a condition shall not hold because little is known.
fn value(span: &Span, quantity: LoadQuantity) -> Option<f64> {
    let requests = span.requests();
    match quantity {
        LoadQuantity::Latency(stat) => latency(Latencies::intended(&requests), stat),
        LoadQuantity::Actual(stat) => latency(Latencies::actual(&requests), stat),
        LoadQuantity::Errors => span.tried().share(),
        LoadQuantity::Ok => span.tried().share().map(|failed| 1.0 - failed),
        LoadQuantity::Sent => share(requests.sent, span.planned),
        LoadQuantity::Rate => {
            let seconds = span.length.as_secs_f64();
            (seconds > 0.0).then(|| requests.good() as f64 / seconds)
        }
        LoadQuantity::Answered => Some(requests.answered as f64),
        LoadQuantity::Good => Some(requests.good() as f64),
        LoadQuantity::Requests => Some(requests.sent as f64),
        // Spans are too coarse for it.
        LoadQuantity::Outage => None,
    }
}

/// The same without what the generator may have made worse.
fn at_best(span: &Span, quantity: LoadQuantity, is_open: bool) -> Option<f64> {
    let requests = span.requests();
    let failed = || span.tried().had_served(requests.starved()).share();
    match quantity {
        LoadQuantity::Latency(stat) => latency(Between::intended(&requests).least(), stat),
        LoadQuantity::Actual(stat) => latency(Between::actual(&requests).least(), stat),
        LoadQuantity::Errors => failed(),
        LoadQuantity::Ok => failed().map(|failed| 1.0 - failed),
        LoadQuantity::Sent => share(requests.sent + kept_back(span, requests.sent), span.planned),
        LoadQuantity::Rate => {
            let good = requests.good() as f64;
            let most = match is_open {
                true => good + (kept_back(span, requests.sent) + requests.starved()) as f64,
                false => good * more_asked(&requests),
            };
            let seconds = span.length.as_secs_f64();
            (seconds > 0.0).then(|| most / seconds)
        }
        quantity => value(span, quantity),
    }
}

/// Requests that fell due in a span and are not among those sent in it, as far as the generator's threads did
/// not run.
fn kept_back(span: &Span, sent: u64) -> u64 {
    let seconds = span.length.as_secs_f64();
    if seconds <= 0.0 {
        return 0;
    }
    let kept = (span.delays.stopped + span.delays.waited).as_secs_f64();
    let most = span.planned as f64 * (kept / seconds).min(1.0);
    span.planned.saturating_sub(sent).min(most.ceil() as u64)
}

fn latency(all: Latencies<'_>, stat: Stat) -> Option<f64> {
    match stat {
        Stat::Mean => all.value(Statistic::Mean),
        Stat::Max => all.value(Statistic::Max),
        Stat::Min => all.answers().min().map(|time| time.as_secs_f64()),
        stat => all.percentile(stat.quantile()?),
    }
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_counted_from_the_begin_of_the_step() {
        let live = Live::default();
        let span = |second, answered| {
            let mut span = Span::empty(1);
            (span.start, span.length) = (Duration::from_secs(second), Duration::from_secs(1));
            span.kinds[0].answered = answered;
            span
        };
        assert_eq!(live.value(LoadQuantity::Answered), None);
        for second in 0..10 {
            live.passed(&span(second, 100));
        }
        assert_eq!(live.value(LoadQuantity::Answered), Some(1000.0));
        live.enter("next");
        live.passed(&span(10, 7));
        assert_eq!(live.value(LoadQuantity::Answered), Some(7.0));
    }
    /// A hundred requests a second for five, of which those of 300 ms were late, or not sent at all; and one
    /// failure.
    fn stopped(sent_late: bool) -> Span {
        let mut span = Span::empty(1);
        (span.length, span.planned) = (Duration::from_secs(5), 500);
        let kind = &mut span.kinds[0];
        let late = if sent_late { 30 } else { 0 };
        (kind.sent, kind.answered) = (470 + late, 469 + late);
        (0..469).for_each(|_| kind.intended.record_ns(2_000_000));
        for place in 0..late {
            let added = place * 10_000_000;
            kind.intended.record_ns(2_000_000 + added);
            kind.intended_doubt.record_ns(2_000_000 + added, added);
        }
        kind.fail(lab_load::recording::Phase::Connect, "refused");
        span
    }

    #[test]
    fn what_a_generator_in_time_might_have_seen() {
        let of = |span: &Span, quantity| (at_best(span, quantity, true), value(span, quantity));
        let p99 = LoadQuantity::Latency(Stat::P99);
        let mut span = stopped(true);
        let (best, measured) = of(&span, p99);
        assert!(
            best < Some(0.0021) && measured > Some(0.2),
            "{best:?} {measured:?}"
        );
        let (best, measured) = of(&span, LoadQuantity::Errors);
        assert_eq!(best, measured);
        span = stopped(false);
        let rate = of(&span, LoadQuantity::Rate);
        // Whoever ran all the time sent late because of the target.
        assert_eq!(rate, (Some(469.0 / 5.0), Some(469.0 / 5.0)));
        span.delays.stopped = Duration::from_millis(300);
        assert_eq!(of(&span, LoadQuantity::Rate).0, Some(499.0 / 5.0));
        assert_eq!(of(&span, LoadQuantity::Sent), (Some(1.0), Some(0.94)));
        span.delays.stopped = Duration::from_millis(100);
        assert_eq!(of(&span, LoadQuantity::Rate).0, Some(479.0 / 5.0));
    }
}
