//! By how much a hold missed its objective or had room, as the response that the
//! bisection works on.

use std::time::Duration;

use measure::Histogram;
use stats::Answer;

use crate::recording::{Recorded, Recording};
use crate::slo::{Quantity, Slo, Statistic, Term};

/// Logarithm of the excess up to which it is taken to be linear in that of the rate.
const LINEAR: f64 = 1.5;

/// With the worst excess this far below 0, it is another term that broke: bins of
/// histograms move an excess by less.
const NEAR: f64 = 0.1;

/// The excess of a hold: what was seen over what is allowed, for the term that is
/// worst, in logarithms; above 0 the objective is broken. `p99 < 20ms` allows one of
/// a hundred to be slower than 20 ms, so the odds of being slower are compared with
/// one to 99, not the percentile with its bound: shares of short holds average to those
/// of a long one, percentiles do not.
///
/// Far from the knee only the side is told, and so it is when the queue `grows` or the
/// term that broke has no excess.
pub(super) fn answer(slo: &Slo, hold: &Recorded, holds: Option<bool>, grows: bool) -> Answer {
    let excesses = slo.terms.iter().filter_map(|term| Excess::of(term, hold));
    let worst = excesses.max_by(|a, b| a.all().total_cmp(&b.all()));
    let elsewhere = worst.as_ref().is_none_or(|worst| worst.all() < -NEAR);
    match (worst.map(|worst| worst.unbiased()), holds) {
        (Some(excess), _) if excess >= LINEAR => Answer::Over(LINEAR),
        _ if grows => Answer::Over(0.0),
        (_, Some(false)) if elsewhere => Answer::Over(0.0),
        (Some(excess), _) if excess <= -LINEAR => Answer::Under(-LINEAR),
        (Some(excess), _) if excess.is_finite() => Answer::Exactly(excess),
        (_, Some(true)) => Answer::Under(0.0),
        (_, _) => Answer::Over(0.0),
    }
}

/// What was seen over what is allowed, span by span.
struct Excess {
    /// Numerator and denominator of each span.
    parts: Vec<(f64, f64)>,
    /// What the ratio of their sums may be.
    allowed: f64,
    /// Whether the ratio is a share, so that odds are compared; they have no upper end.
    share: bool,
}

impl Excess {
    /// `None` for the largest latency and for terms that are held from below: they say
    /// nothing until they break.
    fn of(term: &Term, hold: &Recorded) -> Option<Self> {
        let allowed = match term.quantity {
            Quantity::Intended(Statistic::Max) | Quantity::Actual(Statistic::Max) => None,
            Quantity::Intended(statistic) | Quantity::Actual(statistic) => Some(
                statistic
                    .percentile()
                    .map_or(term.bound, |share| 1.0 - share),
            ),
            Quantity::Errors => Some(term.bound),
            Quantity::Sent | Quantity::Rate => None,
        };
        let allowed = allowed.filter(|allowed| *allowed > 0.0)?;
        let add = |sum: (f64, f64), part: (f64, f64)| (sum.0 + part.0, sum.1 + part.1);
        let spans = hold.timeline.spans().iter();
        let parts = spans.map(|span| {
            let kinds = span.kinds.iter().map(|kind| seen(term, kind));
            kinds.fold((0.0, 0.0), add)
        });
        Some(Self {
            parts: parts.collect(),
            allowed,
            share: !matches!(
                term.quantity,
                Quantity::Intended(Statistic::Mean) | Quantity::Actual(Statistic::Mean)
            ),
        })
    }

    fn sums(&self) -> (f64, f64) {
        let add = |sum: (f64, f64), part: &(f64, f64)| (sum.0 + part.0, sum.1 + part.1);
        self.parts.iter().fold((0.0, 0.0), add)
    }

    fn log(&self, seen: f64, of: f64) -> f64 {
        if of <= 0.0 {
            return f64::NEG_INFINITY;
        }
        let ratio = seen / of;
        if self.share && self.allowed < 1.0 {
            (ratio / (1.0 - ratio).max(0.0) / self.allowed * (1.0 - self.allowed)).ln()
        } else {
            (ratio / self.allowed).ln()
        }
    }

    /// Logarithm of the excess over the whole hold.
    fn all(&self) -> f64 {
        let (seen, of) = self.sums();
        self.log(seen, of)
    }

    /// The same without the bias that a logarithm has when few groups of slow requests
    /// were seen: the jackknife over spans (Quenouille, "Notes on bias in estimation",
    /// 1956). Where one span holds everything there is nothing to correct it by.
    fn unbiased(&self) -> f64 {
        let (seen, of) = self.sums();
        let whole = self.log(seen, of);
        let n = self.parts.len() as f64;
        let without = self
            .parts
            .iter()
            .map(|part| self.log(seen - part.0, of - part.1));
        let mean = without.sum::<f64>() / n;
        if mean.is_finite() && whole.is_finite() {
            n * whole - (n - 1.0) * mean
        } else {
            whole
        }
    }
}

/// What counts against a term, and of how much: slow requests of all, failed ones of
/// all, seconds of answers.
fn seen(term: &Term, requests: &Recording) -> (f64, f64) {
    let latency = |answers: &Histogram, statistic: Statistic| {
        let answered = answers.count() as f64;
        if statistic == Statistic::Mean {
            return (answers.sum_seconds(), answered);
        }
        let failed = requests.failed() as f64;
        let limit = Duration::try_from_secs_f64(term.bound).unwrap_or(Duration::MAX);
        let slow = answers.count_above(limit) as f64;
        (slow + failed, answered + failed)
    };
    match term.quantity {
        Quantity::Intended(statistic) => latency(&requests.intended, statistic),
        Quantity::Actual(statistic) => latency(&requests.actual, statistic),
        Quantity::Errors | Quantity::Sent | Quantity::Rate => {
            let tried = requests.tried();
            (tried.failed as f64, tried.all as f64)
        }
    }
}

#[cfg(test)]
mod tests;
