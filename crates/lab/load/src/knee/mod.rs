//! The highest rate that holds. How it is found stands in `docs/knee.md`.

mod bench;
mod fit;
mod holds;
mod margin;
mod search;
mod settings;

use serde::{Deserialize, Serialize};

use crate::summary::{Reason, Validity};

pub use holds::Holds;
pub use search::search;
pub use settings::{Event, Purpose, Search, SearchError, Settle};

/// So many holds at a failed rate or above take the failure back.
const TAKEN_BACK: usize = 2;

/// What a search for a limit found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Capacity {
    /// What had to hold, as it was asked for: `p99 < 20ms, errors < 0.1%`.
    pub slo: String,
    /// Every hold, in the order it was made.
    pub points: Vec<Point>,
    /// The highest rate at which the objective holds; absent when none was found.
    pub knee: Option<Estimate>,
    /// The rate beyond which the target answers no more, whatever the objective.
    pub physical: Option<Estimate>,
    /// What set the limit: `target`, `generator` (the knee is at least this),
    /// `range` (the highest rate that was tried held), `unsure` (too little is known between the rates
    /// that held, if any did, and those that did not), `none` (no rate held, down to the lowest).
    pub limit: String,
    /// What the search has to say in a sentence: also why something is absent.
    pub note: String,
    /// The universal scalability law through the points, or why it was refused.
    pub usl: Usl,
}

/// One hold at one rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Rate asked for.
    pub rate: f64,
    /// Rate sent.
    pub sent: f64,
    /// Rate of good answers.
    pub good_rate: f64,
    /// Median latency from intended send, in seconds; `None` also where that was no answer.
    pub p50: Option<f64>,
    /// 99th percentile, as the median.
    pub p99: Option<f64>,
    /// Share of requests that failed.
    pub errors: f64,
    /// Requests in flight on average.
    pub in_flight: f64,
    /// Length of the hold in seconds.
    pub length_s: f64,
    /// Whether the objective held.
    pub good: bool,
    /// Why the guard did not let it count; empty otherwise.
    pub invalid: Vec<String>,
    /// `bracket`, `bisect`, `confirm`, `overload`.
    pub purpose: String,
}

impl Capacity {
    /// What the validity of the whole search is: that of its answer. Holds that the guard refused do
    /// not count, so they do not make it INVALID; it is where the generator, or its machine, ended it,
    /// and where no hold counts at all. Which limits were loosened stays.
    pub fn validity(&self, of_hold: Validity) -> Validity {
        let counts = |point: &Point| point.invalid.is_empty();
        let none_counts = !self.points.is_empty() && !self.points.iter().any(counts);
        let mut why: Vec<&str> = Vec::new();
        for name in self.points.iter().flat_map(|point| &point.invalid) {
            if !why.contains(&&**name) {
                why.push(name);
            }
        }
        let found = match (none_counts, self.limit == "generator") {
            (true, _) => Some(format!("no hold of the search counts: {}", why.join(", "))),
            (false, true) => Some(format!(
                "what ended the search was no answer of the target: {}",
                self.note
            )),
            (false, false) => None,
        };
        let reasons = found.map(|found| Reason {
            check: "generator-limit".to_owned(),
            found,
            help:
                "search on a machine that is quiet, with more threads (--threads), or from another \
                   machine than the target's (--workers)"
                    .to_owned(),
        });
        let reasons: Vec<Reason> = reasons.into_iter().collect();
        Validity {
            valid: reasons.is_empty(),
            reasons,
            ..of_hold
        }
    }

    /// The highest rate that was held and met the objective, at most the knee that is told,
    /// and with no hold below that failed and was not taken back. What is believed of the
    /// rates between holds is no such rate: nobody has seen the target bear it. `None`: no
    /// knee was found, or all that held lies above it or beyond a failure.
    pub fn confirmed(&self) -> Option<f64> {
        let knee = self.knee?;
        let counted = || self.points.iter().filter(|point| point.invalid.is_empty());
        let good = || counted().filter(|point| point.good).map(|point| point.rate);
        let stands = |failed: f64| good().filter(|good| *good >= failed).count() < TAKEN_BACK;
        let failed = counted()
            .filter(|point| !point.good)
            .map(|point| point.rate);
        let failed = failed.filter(|failed| stands(*failed)).reduce(f64::min);
        let most = failed.unwrap_or(f64::INFINITY);
        let held = good().filter(|good| *good <= knee.rate && *good < most);
        held.reduce(f64::max)
    }

    /// A share of the confirmed rate: `share(0.7)` is "70 % of knee". `None` where there is
    /// none, or the share is not above 0 and finite.
    pub fn share(&self, share: f64) -> Option<f64> {
        let held = self.confirmed()?;
        (share.is_finite() && share > 0.0).then_some(held * share)
    }
}

/// A rate with its interval. Where only a lower bound is known (see
/// [`Capacity::limit`]), `rate` and `high` are that bound too.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Best estimate.
    pub rate: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Probability that the interval covers the truth.
    pub confidence: f64,
}

impl Estimate {
    /// A best estimate between the ends of its interval.
    fn new(rate: f64, (low, high): (f64, f64), confidence: f64) -> Self {
        Self {
            rate,
            low,
            high,
            confidence,
        }
    }
}

/// The universal scalability law, X(N) = λN / (1 + α(N−1) + βN(N−1)).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Usl {
    /// Fitted.
    Fit {
        /// Throughput at N = 1.
        lambda: f64,
        /// Contention.
        alpha: f64,
        /// Coherency.
        beta: f64,
        /// Concurrency at the peak, with its interval; absent where it may not be
        /// told (no point beyond 0.7 N*, or the interval of β touches 0).
        peak: Option<Estimate>,
        /// What may be said in words.
        note: String,
    },
    /// Not fitted, and why.
    Refused(String),
}

#[cfg(test)]
mod simulated;
#[cfg(test)]
mod tests;
