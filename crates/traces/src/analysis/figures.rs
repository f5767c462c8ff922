//! Latencies, and how much of them parts are: over all requests, over the typical ones,
//! over those of the tail.

use std::ops::{Add, Range};

use serde::Serialize;
use stats::{nearest_rank, quantile_ranks};

use super::ledger::Ledger;
use crate::Nanos;

/// Fewest requests for a p90, a p99 and a p99.9: one in the tail says nothing, ten do.
pub const FEWEST: [(f64, usize); 3] = [(0.9, 100), (0.99, 1_000), (0.999, 10_000)];

/// The requests around the median.
pub(super) const TYPICAL: (f64, f64) = (0.45, 0.55);

/// The tail's quantile, and the requests around it, by what is the highest that can be said.
pub(super) const TAILS: [(f64, (f64, f64)); 2] = [(0.99, (0.985, 0.995)), (0.9, (0.85, 0.95))];

/// Confidence of intervals.
const CONFIDENCE: f64 = 0.95;

/// How long requests took. Quantiles are by nearest rank; `None`: too few requests.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Latency {
    /// Requests.
    pub count: u64,
    /// Nanoseconds, as all of these.
    pub mean_ns: f64,
    /// The shortest.
    pub min_ns: Nanos,
    /// The median.
    pub p50_ns: Nanos,
    /// Where the median lies with 95 % confidence, as far as requests are independent.
    pub p50_interval_ns: Option<(Nanos, Nanos)>,
    /// From 100 requests.
    pub p90_ns: Option<Nanos>,
    /// From 1,000 requests.
    pub p99_ns: Option<Nanos>,
    /// As that of the median.
    pub p99_interval_ns: Option<(Nanos, Nanos)>,
    /// From 10,000 requests.
    pub p999_ns: Option<Nanos>,
    /// The longest.
    pub max_ns: Nanos,
}

impl Latency {
    /// Of lengths in any order.
    pub(super) fn of(lengths: &[Nanos]) -> Self {
        let mut sorted = lengths.to_vec();
        sorted.sort_unstable();
        Self::of_sorted(&sorted)
    }

    /// Of lengths in ascending order.
    pub fn of_sorted(sorted: &[Nanos]) -> Self {
        let high = |q| quantile(sorted, q);
        let sum: f64 = sorted.iter().map(|one| *one as f64).sum();
        Self {
            count: sorted.len() as u64,
            mean_ns: sum / sorted.len().max(1) as f64,
            min_ns: sorted.first().copied().unwrap_or(0),
            p50_ns: nearest_rank(sorted, 0.5).unwrap_or(0),
            p50_interval_ns: interval(sorted, 0.5),
            p90_ns: high(0.9),
            p99_ns: high(0.99),
            p99_interval_ns: high(0.99).and_then(|_| interval(sorted, 0.99)),
            p999_ns: high(0.999),
            max_ns: sorted.last().copied().unwrap_or(0),
        }
    }
}

/// A quantile of lengths in ascending order; `None`: there are too few for it.
pub fn quantile(sorted: &[Nanos], q: f64) -> Option<Nanos> {
    match is_enough(sorted.len(), q) {
        true => nearest_rank(sorted, q),
        false => None,
    }
}

/// Whether so many requests are enough for a quantile.
pub(super) fn is_enough(count: usize, q: f64) -> bool {
    FEWEST
        .iter()
        .all(|(bound, fewest)| q < *bound || count >= *fewest)
}

fn interval(sorted: &[Nanos], q: f64) -> Option<(Nanos, Nanos)> {
    let (low, high) = quantile_ranks(sorted.len() as u64, q, CONFIDENCE)?;
    let at = |rank: u64| {
        sorted
            .get(usize::try_from(rank).ok()?.checked_sub(1)?)
            .copied()
    };
    Some((at(low?)?, at(high?)?))
}

/// How the tail stands to the typical requests.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tail {
    /// 0.99, or 0.9 with fewer than 1,000 requests.
    pub quantile: f64,
    /// The median.
    pub p50_ns: Nanos,
    /// The quantile.
    pub quantile_ns: Nanos,
    /// The quantile less the median.
    pub above_ns: f64,
    /// The mean of the requests around the quantile less that of those around the median.
    /// What parts add above the median adds up to this.
    pub difference_ns: f64,
    /// Requests around the quantile.
    pub requests: u64,
}

/// How much a part is of requests. Means in nanoseconds; those of parts add up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Figures {
    /// Over all requests.
    pub mean_ns: f64,
    /// Over those from p45 to p55: all parts together are about the median.
    pub typical_ns: f64,
    /// Over those around the tail's quantile.
    pub tail_ns: Option<f64>,
    /// Tail less typical.
    pub above_ns: Option<f64>,
    /// Share of [`Tail::difference_ns`]; below zero: smaller in the tail.
    pub tail_share: Option<f64>,
    /// Share of the variance of latency.
    pub variance_share: Option<f64>,
    /// Over requests without contention.
    pub expected_ns: Option<f64>,
    /// Mean less expected.
    pub surplus_ns: Option<f64>,
}

/// What [`Figures`] are made of; parts of a whole can be added.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Sums {
    pub(super) mean: f64,
    pub(super) typical: f64,
    pub(super) tail: f64,
    pub(super) covariance: f64,
    pub(super) expected: f64,
}

impl Add for Sums {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            mean: self.mean + other.mean,
            typical: self.typical + other.typical,
            tail: self.tail + other.tail,
            covariance: self.covariance + other.covariance,
            expected: self.expected + other.expected,
        }
    }
}

/// What parts are shares of.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Scale {
    /// Of the tail above the typical; `None`: there is no tail.
    pub(super) difference: Option<f64>,
    pub(super) variance: f64,
    pub(super) expected: bool,
}

impl Scale {
    pub(super) fn figures(&self, sums: &Sums) -> Figures {
        let share = |part: f64, whole: f64| (whole > 0.0).then_some(part / whole);
        let above = sums.tail - sums.typical;
        let difference = self.difference;
        Figures {
            mean_ns: sums.mean,
            typical_ns: sums.typical,
            tail_ns: difference.map(|_| sums.tail),
            above_ns: difference.map(|_| above),
            tail_share: difference.and_then(|whole| share(above, whole)),
            variance_share: share(sums.covariance, self.variance),
            expected_ns: self.expected.then_some(sums.expected),
            surplus_ns: self.expected.then_some(sums.mean - sums.expected),
        }
    }
}

/// Latencies of a ledger's requests, and what each of its parts is of them.
pub(super) struct Measured {
    pub(super) latency: Latency,
    pub(super) tail: Option<Tail>,
    /// In the order of the ledger's parts.
    pub(super) sums: Vec<Sums>,
    pub(super) scale: Scale,
}

impl Measured {
    pub(super) fn of(ledger: &Ledger) -> Self {
        let totals = &ledger.totals;
        let mut order: Vec<usize> = (0..totals.len()).collect();
        order.sort_unstable_by_key(|at| (totals[*at], *at));
        let sorted: Vec<Nanos> = order.iter().map(|at| totals[*at]).collect();
        let latency = Latency::of_sorted(&sorted);

        let mut sums = vec![Sums::default(); ledger.parts.len()];
        let each = 1.0 / totals.len().max(1) as f64;
        let mut variance = 0.0;
        for (at, total) in totals.iter().enumerate() {
            let from_mean = *total as f64 - latency.mean_ns;
            variance += from_mean * from_mean * each;
            for (part, length) in ledger.request(at) {
                let sum = &mut sums[*part as usize];
                let length = *length as f64;
                sum.mean += length * each;
                // The part's own mean may stay: deviations of totals add up to nothing.
                sum.covariance += length * from_mean * each;
            }
        }
        let typical = band(totals.len(), TYPICAL);
        let typical_total = over(&sorted, &typical);
        add_band(ledger, &order, &typical, |part, length| {
            sums[part].typical += length;
        });
        let found = TAILS.iter().find_map(|(q, around)| {
            let value = quantile(&sorted, *q)?;
            Some((*q, band(totals.len(), *around), value))
        });
        let tail = found.map(|(q, band, value)| {
            add_band(ledger, &order, &band, |part, length| {
                sums[part].tail += length;
            });
            Tail {
                quantile: q,
                p50_ns: latency.p50_ns,
                quantile_ns: value,
                above_ns: value.saturating_sub(latency.p50_ns) as f64,
                difference_ns: over(&sorted, &band) - typical_total,
                requests: band.len() as u64,
            }
        });
        Self {
            scale: Scale {
                difference: tail.as_ref().map(|tail| tail.difference_ns),
                variance,
                expected: false,
            },
            latency,
            tail,
            sums,
        }
    }
}

/// Means over the requests of two bands, the typical ones and the tail, that are told in
/// ascending order with their weights.
pub(super) struct Bands {
    bands: [(f64, f64); 2],
    whole: f64,
    before: f64,
    /// For each band its weight, its total, and that of each group.
    sums: [(f64, f64, Vec<f64>); 2],
}

impl Bands {
    /// Of requests that weigh so much together.
    pub(super) fn new(groups: usize, bands: [(f64, f64); 2], whole: f64) -> Self {
        let empty = || (0.0, 0.0, vec![0.0; groups]);
        Self {
            bands,
            whole,
            before: 0.0,
            sums: [empty(), empty()],
        }
    }

    pub(super) fn add(&mut self, weight: f64, total: f64, part: impl Fn(usize) -> f64) {
        let after = self.before + weight;
        for ((low, high), (sum, whole, parts)) in self.bands.iter().zip(&mut self.sums) {
            let from = self.before.max(low * self.whole);
            let within = after.min(high * self.whole) - from;
            if within > 0.0 {
                *sum += within;
                *whole += total * within;
                for (group, length) in parts.iter_mut().enumerate() {
                    *length += part(group) * within;
                }
            }
        }
        self.before = after;
    }

    /// What share of the tail less the typical each group is.
    pub(super) fn shares(&self) -> Vec<f64> {
        let [typical, tail] = &self.sums;
        let mean = |sum: f64, of: &(f64, f64, Vec<f64>)| sum / of.0.max(f64::MIN_POSITIVE);
        let above = mean(tail.1, tail) - mean(typical.1, typical);
        let groups = tail.2.iter().zip(&typical.2);
        let shares = groups.map(|(in_tail, in_typical)| match above > 0.0 {
            true => (mean(*in_tail, tail) - mean(*in_typical, typical)) / above,
            false => 0.0,
        });
        shares.collect()
    }
}

/// Places, in ascending order of latency, from one quantile to another.
fn band(count: usize, (low, high): (f64, f64)) -> Range<usize> {
    let from = (count as f64 * low) as usize;
    let to = (count as f64 * high).ceil() as usize;
    from..to.min(count)
}

fn over(sorted: &[Nanos], band: &Range<usize>) -> f64 {
    let values = sorted.get(band.clone()).unwrap_or(&[]);
    let sum: f64 = values.iter().map(|one| *one as f64).sum();
    sum / band.len().max(1) as f64
}

fn add_band(
    ledger: &Ledger,
    order: &[usize],
    band: &Range<usize>,
    mut add: impl FnMut(usize, f64),
) {
    let each = 1.0 / band.len().max(1) as f64;
    for request in order.get(band.clone()).unwrap_or(&[]) {
        for (part, length) in ledger.request(*request) {
            add(*part as usize, *length as f64 * each);
        }
    }
}
