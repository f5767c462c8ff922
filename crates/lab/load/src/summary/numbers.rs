//! Distributions and slots of time, out of histograms.

use std::collections::BTreeMap;
use std::time::Duration;

use measure::Histogram;
use serde::{Deserialize, Deserializer};

use super::{Distribution, Slot};
use crate::recording::{Latencies, Span};
use crate::slo::Statistic;
use crate::validity::Between;

/// Bins of latency in a slot.
const BINS: u8 = 80;

impl Distribution {
    /// What is known of latencies of which the generator may have made a part. So much,
    /// at least, may be its own of what is told.
    pub fn of(between: &Between<'_>, tolerated: Duration) -> Self {
        let all = between.most();
        let mut told = Self::from(all);
        for (name, statistic) in Statistic::ALL {
            if told.number(statistic).is_none() && !told.lost(name) {
                continue;
            }
            let bounds = between.bounds(|latencies| latencies.value(statistic));
            let Some(bounds) = bounds.filter(|bounds| !bounds.exact()) else {
                continue;
            };
            if bounds.withheld(tolerated) {
                *told.number(statistic) = None;
                told.no_answer.retain(|lost| lost != name);
            }
            let pair = [bounds.low, bounds.high];
            told.bounds.insert(name.to_owned(), pair);
        }
        told
    }

    /// Whether a number, by the name of its field, falls among requests without an answer.
    pub fn lost(&self, name: &str) -> bool {
        self.no_answer.iter().any(|lost| lost == name)
    }

    pub(super) fn number(&mut self, statistic: Statistic) -> &mut Option<f64> {
        match statistic {
            Statistic::P50 => &mut self.p50,
            Statistic::P75 => &mut self.p75,
            Statistic::P90 => &mut self.p90,
            Statistic::P95 => &mut self.p95,
            Statistic::P99 => &mut self.p99,
            Statistic::P999 => &mut self.p999,
            Statistic::P9999 => &mut self.p9999,
            Statistic::Mean => &mut self.mean,
            Statistic::Max => &mut self.max,
        }
    }
}

/// Reads bounds: JSON has no infinity.
pub(super) fn bounds<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, [f64; 2]>, D::Error> {
    let all = BTreeMap::<String, [Option<f64>; 2]>::deserialize(deserializer)?;
    let all = all.into_iter();
    Ok(all
        .map(|(name, pair)| (name, pair.map(|bound| bound.unwrap_or(f64::INFINITY))))
        .collect())
}

impl From<Latencies<'_>> for Distribution {
    fn from(all: Latencies<'_>) -> Self {
        let answers = all.answers();
        let seconds = |duration: Option<Duration>| duration.map(|time| time.as_secs_f64());
        let mut told = Self {
            count: answers.count(),
            unanswered: all.unanswered(),
            min: seconds(answers.min()),
            stddev: seconds(answers.stddev()),
            ..Self::default()
        };
        for (name, statistic) in Statistic::ALL {
            match all
                .value(statistic)
                .filter(|_| all.is_meaningful(statistic))
            {
                Some(f64::INFINITY) => told.no_answer.push(name.to_owned()),
                value => *told.number(statistic) = value,
            }
        }
        told
    }
}

impl From<&Histogram> for Distribution {
    fn from(histogram: &Histogram) -> Self {
        Latencies::of(histogram, 0).into()
    }
}

impl Slot {
    /// One of its latencies: infinite where it falls among requests without an answer, absent
    /// where nothing ended.
    pub fn latency(&self, of: impl Fn(&Self) -> Option<f64>) -> Option<f64> {
        of(self).or((self.unanswered > 0).then_some(f64::INFINITY))
    }
}

impl Slot {
    /// The numbers of a span in which sends later than `late_after` were late.
    pub(super) fn of(span: &Span, late_after: Duration) -> Self {
        let requests = span.requests();
        let latency = Latencies::intended(&requests);
        let told = |statistic| latency.value(statistic).filter(|time| time.is_finite());
        let length_s = span.length.as_secs_f64().max(f64::MIN_POSITIVE);
        let busiest = span.threads_cpu.iter().max().copied().unwrap_or_default();
        let threads = span.threads_cpu.len().max(1);
        Self {
            t_s: span.start.as_secs_f64(),
            length_s: span.length.as_secs_f64(),
            after_end: span.after_end,
            planned: span.planned,
            sent: requests.sent,
            good: requests.good(),
            failed: requests.refused + requests.failed(),
            unanswered: latency.unanswered(),
            p50: told(Statistic::P50),
            p99: told(Statistic::P99),
            max: told(Statistic::Max),
            in_flight: span.in_flight,
            backlog: span.backlog,
            heat: heat(latency.answers()),
            late: requests.lateness.count_above(late_after),
            waited: requests.waited,
            retried: requests.retried,
            opened: span.connections.opened,
            handshakes: span.connections.handshakes,
            resumed: span.connections.resumed,
            busiest: busiest.as_secs_f64() / length_s,
            waited_share: span.delays.waited.as_secs_f64() / length_s / threads as f64,
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
