//! Distributions and slots of time, out of histograms.

use std::collections::BTreeMap;
use std::time::Duration;

use measure::Histogram;

use super::{Distribution, Slot};
use crate::recording::Span;
use crate::validity::Between;

/// Fewest samples beyond a percentile without which it is not told.
const BEYOND: f64 = 10.0;
/// Bins of latency in a slot.
const BINS: u8 = 80;

impl Distribution {
    /// What is known of latencies of which the generator may have made a part. So much,
    /// at least, may be its own of what is told.
    pub fn of(between: &Between<'_>, tolerated: Duration) -> Self {
        let mut told = Self::from(between.most());
        let quantile = |q: f64| move |all: &Histogram| all.quantile(q);
        let (p50, p75, p90, p95) = (quantile(0.5), quantile(0.75), quantile(0.9), quantile(0.95));
        let (p99, p999, p9999) = (quantile(0.99), quantile(0.999), quantile(0.9999));
        let numbers: [(&str, &mut Option<f64>, Number<'_>); 9] = [
            ("mean", &mut told.mean, &Histogram::mean),
            ("p50", &mut told.p50, &p50),
            ("p75", &mut told.p75, &p75),
            ("p90", &mut told.p90, &p90),
            ("p95", &mut told.p95, &p95),
            ("p99", &mut told.p99, &p99),
            ("p999", &mut told.p999, &p999),
            ("p9999", &mut told.p9999, &p9999),
            ("max", &mut told.max, &Histogram::max),
        ];
        for (name, number, of) in numbers {
            if number.is_none() {
                continue;
            }
            let Some(bounds) = between.bounds(of).filter(|bounds| !bounds.exact()) else {
                continue;
            };
            let pair = [bounds.low, bounds.high];
            told.bounds.insert(name.to_owned(), pair);
            if bounds.withheld(tolerated) {
                *number = None;
            }
        }
        told
    }
}

/// A number of a distribution.
type Number<'n> = &'n dyn Fn(&Histogram) -> Option<Duration>;

impl From<&Histogram> for Distribution {
    fn from(histogram: &Histogram) -> Self {
        let count = histogram.count();
        let seconds = |duration: Option<Duration>| duration.map(|time| time.as_secs_f64());
        let percentile = |q: f64| {
            // 0.1 of 100 is a hair less than 10 in floating point.
            let told = count as f64 * (1.0 - q) >= BEYOND - 1e-6;
            seconds(histogram.quantile(q).filter(|_| told))
        };
        Self {
            count,
            min: seconds(histogram.min()),
            mean: seconds(histogram.mean()),
            stddev: seconds(histogram.stddev()),
            p50: percentile(0.5),
            p75: percentile(0.75),
            p90: percentile(0.9),
            p95: percentile(0.95),
            p99: percentile(0.99),
            p999: percentile(0.999),
            p9999: percentile(0.9999),
            max: seconds(histogram.max()),
            bounds: BTreeMap::new(),
        }
    }
}

impl From<&Span> for Slot {
    fn from(span: &Span) -> Self {
        let requests = span.requests();
        let latency = &requests.intended;
        let seconds = |duration: Option<Duration>| duration.map(|time| time.as_secs_f64());
        Self {
            t_s: span.start.as_secs_f64(),
            length_s: span.length.as_secs_f64(),
            after_end: span.after_end,
            planned: span.planned,
            sent: requests.sent,
            good: requests.good(),
            failed: requests.refused + requests.failed(),
            p50: seconds(latency.quantile(0.5)),
            p99: seconds(latency.quantile(0.99)),
            max: seconds(latency.max()),
            in_flight: span.in_flight,
            backlog: span.backlog,
            heat: heat(latency),
        }
    }
}

/// Answers by latency, in ten bins a decade.
pub fn heat(latency: &Histogram) -> Vec<(u8, u64)> {
    let mut heat: Vec<(u8, u64)> = Vec::new();
    for bin in latency.bins() {
        let middle = (bin.lowest + bin.highest).as_secs_f64() / 2.0;
        let place = bin_of(middle);
        match heat.last_mut() {
            Some((last, count)) if *last == place => *count += bin.count,
            _ => heat.push((place, bin.count)),
        }
    }
    heat
}

/// Bin `b` begins at `1e-5 * 10^(b/10)` seconds; what is beyond either end counts there.
fn bin_of(seconds: f64) -> u8 {
    // A latency at a bin's beginning must not fall below it by rounding.
    let place = (10.0 * (seconds / 1e-5).log10() + 1e-9).floor();
    place.clamp(0.0, f64::from(BINS - 1)) as u8
}
