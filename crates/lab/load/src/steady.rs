//! Which part of a load its numbers are about: without the warm-up.
//!
//! The warm-up is found by the MSER rule ([`stats::mser`]) on the timeline: each span
//! of it is one batch, represented by its median latency. For a closed loop its
//! throughput is looked at as well (in an open loop the schedule decides that).

use std::time::Duration;

use stats::WarmUp;

use crate::arrivals::{Arrivals, Shape};
use crate::recording::{Recorded, Span, Timeline};
use crate::segment::Model;
use crate::summary::Steady;

/// A part at the start that differs less than this from the rest is no warm-up, and a
/// load whose halves differ less than this has settled.
const MATTERS: f64 = 0.02;

/// The same in deviations of a mean of so many spans. MSER chooses the cut that differs
/// most, so this is more than the usual two or three.
const SURELY: f64 = 5.0;

/// Finds the steady part. States are those of [`Steady::state`]: `steady` with the
/// warm-up left out, `short` below ten spans, `not-steady`, `ramp`; in the latter
/// three nothing is left out.
pub fn find(recorded: &Recorded) -> Steady {
    let end = sending_end(recorded);
    let found = |from: Duration, state: &str| Steady {
        from_s: from.as_secs_f64(),
        to_s: end.as_secs_f64(),
        state: state.to_owned(),
    };
    let start = recorded.total.start;
    if !constant(&recorded.segment.model) {
        return found(start, "ramp");
    }
    let spans: Vec<&Span> = sending_spans(recorded).collect();
    let closed = matches!(recorded.segment.model, Model::Closed { .. });
    let mut cut = 0;
    for series in [Some(latencies(&spans)), closed.then(|| rates(&spans))] {
        match series.map(|series| settle(&series)) {
            None => {}
            Some(None) => return found(start, "short"),
            Some(Some(WarmUp::NotSteady)) => return found(start, "not-steady"),
            Some(Some(WarmUp::Cut(spans))) => cut = cut.max(spans),
        }
    }
    found(spans.get(cut).map_or(start, |span| span.start), "steady")
}

/// The load without what lies before the steady part: whole spans of the timeline.
/// Answers that came after the last request belong to it.
pub fn part(recorded: &Recorded, steady: &Steady) -> Recorded {
    let from = Duration::try_from_secs_f64(steady.from_s).unwrap_or_default();
    if from <= recorded.total.start {
        return recorded.clone();
    }
    let mut timeline = Timeline::default();
    let mut total = Span::empty(recorded.total.kinds.len());
    // Half a microsecond for the way through seconds as a number.
    let begun = |span: &&Span| span.start + Duration::from_nanos(500) >= from;
    for span in recorded.timeline.spans().iter().filter(begun) {
        total.append(span);
        timeline.push(span.clone());
    }
    Recorded {
        total,
        timeline,
        ..recorded.clone()
    }
}

/// What happened while requests were being sent, without the wait for the last
/// answers. All of it where there is no timeline.
pub(crate) fn sending(recorded: &Recorded) -> Span {
    let mut all = Span::empty(recorded.total.kinds.len());
    for span in sending_spans(recorded) {
        all.append(span);
    }
    if all.length.is_zero() {
        return recorded.total.clone();
    }
    all
}

/// The spans in which requests were sent.
pub(crate) fn sending_spans(recorded: &Recorded) -> impl Iterator<Item = &Span> {
    // A span that is half over when sending ends counts while most of it was sending.
    let end = sending_end(recorded);
    let spans = recorded.timeline.spans().iter();
    spans.filter(move |span| span.start + span.length / 2 <= end && !span.length.is_zero())
}

fn sending_end(recorded: &Recorded) -> Duration {
    let end = recorded.total.end();
    match recorded.segment.length.duration {
        Some(duration) if recorded.cut.is_none() && recorded.segment.length.requests.is_none() => {
            duration.min(end)
        }
        // It sent no longer than its last arrival.
        _ => {
            let mut spans = recorded.timeline.spans().iter();
            let last = spans.rfind(|span| span.planned > 0);
            last.map_or(end, |span| span.end().min(end))
        }
    }
}

fn constant(model: &Model) -> bool {
    match model {
        Model::Open(Arrivals::Rate { shape, .. }) => matches!(shape, Shape::Constant(_)),
        Model::Open(Arrivals::Trace(_)) => false,
        Model::Closed { .. } => true,
    }
}

/// Median latency of each span; one without an answer has that of the span before. Not
/// the mean: a few slow requests move it, and a cut that follows them takes bad luck
/// for warm-up.
fn latencies(spans: &[&Span]) -> Vec<f64> {
    let mut last = 0.0;
    let median = |span: &&Span| {
        let median = match span.kinds.as_slice() {
            [only] => only.intended.quantile(0.5),
            _ => span.requests().intended.quantile(0.5),
        };
        last = median.map_or(last, |median| median.as_secs_f64());
        last
    };
    spans.iter().map(median).collect()
}

fn rates(spans: &[&Span]) -> Vec<f64> {
    let rate = |span: &&Span| span.requests().answered as f64 / span.length.as_secs_f64();
    spans.iter().map(rate).collect()
}

/// [`stats::mser`], with differences left alone that are too small to matter, or that
/// chance makes: a cut that removed the slower spans of a steady load would make every
/// load look better than it is.
fn settle(series: &[f64]) -> Option<WarmUp> {
    let differs = |at: usize| {
        let (before, after) = series.split_at(at);
        let (Some(a), Some(b), Some(scatter)) = (
            stats::mean(before),
            stats::mean(after),
            stats::variance(after),
        ) else {
            return false;
        };
        let chance = SURELY * (scatter / before.len() as f64).sqrt();
        (a - b).abs() > (MATTERS * b.abs()).max(chance)
    };
    Some(match stats::mser(series)? {
        WarmUp::Cut(cut) if cut > 0 && differs(cut) => WarmUp::Cut(cut),
        WarmUp::NotSteady if differs(series.len() / 2) => WarmUp::NotSteady,
        WarmUp::Cut(_) | WarmUp::NotSteady => WarmUp::Cut(0),
    })
}

#[cfg(test)]
mod tests;
