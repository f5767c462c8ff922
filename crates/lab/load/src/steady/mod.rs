//! The part of a load in which it is steady: a second view of it, beside the whole.
//!
//! What a load is judged by is never cut by what is found here. The warm-up is found by
//! the MSER rule ([`stats::mser`]) on the timeline: each span of it is one batch,
//! represented by its median latency. For a closed loop its throughput is looked at as
//! well (in an open loop the schedule decides that). A start is warm-up only if it is
//! unlike the rest from its first span on: an outage or a stall in the middle is none.

use std::borrow::Cow;
use std::time::Duration;

use stats::WarmUp;

use crate::arrivals::{Arrivals, Shape};
use crate::recording::{Recorded, Span, Timeline};
use crate::segment::Model;
use crate::summary::{Growth, Steady};

/// A part at the start that differs less than this from the rest is no warm-up, and a
/// load whose halves differ less than this has settled.
const MATTERS: f64 = 0.02;

/// The same in deviations of a mean of so many spans. MSER chooses the cut that differs
/// most, so this is more than the usual two or three.
const SURELY: f64 = 5.0;

/// Confidence of the interval of a latency's growth.
const CONFIDENCE: f64 = 0.95;
/// A latency that surely grows by this share of its mean while the load lasts, matters.
const GROWS: f64 = 0.2;
/// A span further than this from the line through most of them, in deviations of what the
/// others lie from it, counts as that far: a stall says nothing of growth.
const WILD: f64 = 4.0;

/// Finds the steady part. States are those of [`Steady::state`]: `steady` with the
/// warm-up left out, `short` below ten spans, `not-steady`, `growing`, `ramp`; in the
/// latter four it is all of the load.
pub fn find(recorded: &Recorded) -> Steady {
    let end = sending_end(recorded);
    let found = |from: Duration, state: &str| Steady::between(from, end, state);
    let start = recorded.total.start;
    if !constant(&recorded.segment.model) {
        return found(start, "ramp");
    }
    let spans: Vec<&Span> = sending_spans(recorded).collect();
    if let Some(growth) = growth(&spans) {
        return Steady {
            growth: Some(growth),
            ..found(start, "growing")
        };
    }
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
    if breaks(&spans[..cut.min(spans.len())]) {
        return found(start, "not-steady");
    }
    let settled = spans.get(cut).map_or(start, |span| span.start);
    match without_earlier(recorded, settled) {
        Some(from) => found(from, "steady"),
        None => found(start, "short"),
    }
}

/// Whether more requests failed at some later time than in the first span: a warm-up does
/// not begin well and then break.
fn breaks(spans: &[&Span]) -> bool {
    let shares = spans.iter().map(|span| span.tried().share().unwrap_or(0.0));
    let shares: Vec<f64> = shares.collect();
    let first = shares.first().copied().unwrap_or(0.0);
    shares.iter().any(|share| *share > first + MATTERS)
}

/// How the median grows, if it surely grows all the time, and by enough to matter.
fn growth(spans: &[&Span]) -> Option<Growth> {
    let medians = tamed(latencies(spans))?;
    let length = spans.first()?.length.as_secs_f64();
    let trend = stats::trend(&medians, CONFIDENCE)?;
    let steps = medians.len() as f64;
    if trend.low * steps < GROWS * stats::mean(&medians)? {
        return None;
    }
    // A step up is no growth: each quarter has to be above the one before.
    let quarters = medians.chunks(medians.len().div_ceil(4));
    let quarters: Vec<f64> = quarters.filter_map(stats::mean).collect();
    let rise = trend.slope * steps / 4.0;
    let rising = quarters.windows(2).all(|two| two[1] - two[0] > rise / 4.0);
    rising.then(|| Growth {
        per_s: trend.slope / length,
        low: trend.low / length,
        high: trend.high / length,
        confidence: CONFIDENCE,
    })
}

/// A series whose wild values are as far from its line as [`WILD`] allows. Without them it is
/// as it was.
fn tamed(mut series: Vec<f64>) -> Option<Vec<f64>> {
    let numbered = || (0..).map(f64::from);
    let points: Vec<(f64, f64)> = numbered().zip(series.iter().copied()).collect();
    let slope = stats::robust_slope(&points)?;
    let flat: Vec<f64> = points
        .iter()
        .map(|(at, value)| value - slope * at)
        .collect();
    let (level, spread) = stats::level_and_spread(&flat)?;
    for (at, value) in numbered().zip(&mut series) {
        let line = level + slope * at;
        *value = value.clamp(line - WILD * spread, line + WILD * spread);
    }
    Some(series)
}

/// The load as it is judged: with the latencies of answers within a warm-up that was asked
/// for left out, and everything else kept. Failures are facts, also those in a warm-up.
pub fn judged(recorded: &Recorded, warm_up: Duration) -> Cow<'_, Recorded> {
    let Some(from) = after(recorded, warm_up).filter(|from| !from.is_zero()) else {
        return Cow::Borrowed(recorded);
    };
    let later = since(recorded, from).total;
    let mut judged = recorded.clone();
    for (kind, later) in judged.total.kinds.iter_mut().zip(later.kinds) {
        kind.intended = later.intended;
        kind.actual = later.actual;
        kind.intended_doubt = later.intended_doubt;
        kind.actual_doubt = later.actual_doubt;
    }
    Cow::Owned(judged)
}

/// Where the first span begins that lies after a warm-up of this length, and in which no answer
/// to a request of the warm-up comes any more, if that leaves half of the rest; `None` when
/// nothing would be left.
pub(crate) fn after(recorded: &Recorded, warm_up: Duration) -> Option<Duration> {
    let mut starts = sending_spans(recorded).map(|span| span.start);
    let from = starts.find(|start| *start >= warm_up)?;
    Some(without_earlier(recorded, from).unwrap_or(from))
}

/// Where the first span begins from which on only requests end that were due at `from` or
/// later: the latencies of a part are those of its own requests. `None` if that is past half of
/// what comes after `from`.
fn without_earlier(recorded: &Recorded, from: Duration) -> Option<Duration> {
    let latest = from + sending_end(recorded).saturating_sub(from) / 2;
    let has_earlier = |span: &&Span| span.earliest_due.is_some_and(|due| due < from);
    let mut spans = recorded.timeline.spans().iter();
    let last = spans.rfind(|span| has_earlier(span) && span.start >= from);
    match last {
        None => Some(from),
        Some(last) => {
            let mut starts = sending_spans(recorded).map(|span| span.start);
            starts.find(|start| *start > last.start && *start <= latest)
        }
    }
}

/// The load without what lies before the steady part: whole spans of the timeline.
/// Answers that came after the last request belong to it.
pub fn part(recorded: &Recorded, steady: &Steady) -> Recorded {
    let from = Duration::try_from_secs_f64(steady.from_s).unwrap_or_default();
    if from <= recorded.total.start {
        return recorded.clone();
    }
    since(recorded, from)
}

/// What began at `from` or later.
fn since(recorded: &Recorded, from: Duration) -> Recorded {
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
    let end = sending_end(recorded);
    let spans = recorded.timeline.spans().iter();
    let own = spans.filter(|span| !span.after_end && !span.length.is_zero());
    own.filter(move |span| span.start + span.length / 2 <= end)
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
            let last = spans.rfind(|span| span.planned > 0 && !span.after_end);
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
        WarmUp::Cut(cut) if cut > 0 && differs(cut) => match begins(series, cut) {
            true => WarmUp::Cut(cut),
            false => WarmUp::NotSteady,
        },
        WarmUp::NotSteady if differs(series.len() / 2) => WarmUp::NotSteady,
        WarmUp::Cut(_) | WarmUp::NotSteady => WarmUp::Cut(0),
    })
}

/// Whether the first value is itself unlike what comes after the cut. Where it is not,
/// something happened later, and that was no warm-up.
fn begins(series: &[f64], cut: usize) -> bool {
    let rest = &series[cut..];
    let (Some(level), Some(scatter)) = (stats::mean(rest), stats::variance(rest)) else {
        return false;
    };
    (series[0] - level).abs() > (MATTERS * level.abs()).max(2.0 * scatter.sqrt())
}

#[cfg(test)]
mod tests;
