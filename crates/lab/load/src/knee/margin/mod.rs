//! By how much a hold missed its objective or had room, as the response from which the
//! threshold is learnt.

use std::time::Duration;

use measure::Histogram;
use stats::Answer;

use crate::recording::{Recorded, Recording};
use crate::slo::{Quantity, Slo, Statistic, Term};

/// Logarithm of the excess up to which it is taken to be linear in that of the rate. What
/// broke by more is broken beyond chance.
pub(super) const LINEAR: f64 = 1.5;

/// With the worst excess this far below 0, it is another term that broke: bins of
/// histograms move an excess by less.
const NEAR: f64 = 0.1;

/// What a hold says of the term that is worst. `p99 < 20ms` allows one of a hundred to
/// be slower than 20 ms, so the slow ones are counted, and the percentile is not compared
/// with its bound: shares of short holds average to those of a long one, percentiles do not.
///
/// Far from the knee only the side is told, and so it is when the queue `grows` or the
/// term that broke has no excess. `near` is whether the rate was chosen near the knee: a
/// mean far from it never falls below the time that one request takes.
pub(super) fn answer(
    slo: &Slo,
    hold: &Recorded,
    holds: Option<bool>,
    grows: bool,
    near: bool,
) -> Answer {
    let excesses = slo.terms.iter().filter_map(|term| Excess::of(term, hold));
    // Of terms that all saw nothing, the one that could have seen most says most.
    let worst = excesses.max_by(|a, b| {
        let by_size = a.allowed.total_cmp(&b.allowed);
        a.all().total_cmp(&b.all()).then(by_size)
    });
    let response = worst.as_ref().map_or(f64::NEG_INFINITY, Excess::all);
    let allowed = worst.as_ref().map_or(0.0, |worst| worst.allowed);
    let over = |response| Answer::Over { response, allowed };
    let broken = holds == Some(false);
    match worst {
        Some(_) if response >= LINEAR => over(LINEAR),
        _ if grows || (broken && response < -NEAR) => Answer::Over {
            response: 0.0,
            allowed: 0.0,
        },
        Some(worst) if worst.share.is_some() || (near && response > -LINEAR) => worst.counted(),
        _ if broken || response > 0.0 => over(0.0),
        _ => Answer::Under {
            response: 0.0,
            allowed,
        },
    }
}

/// Whether a hold failed by so much that chance does not explain it.
pub(super) fn clearly_over(answer: &Answer) -> bool {
    match answer {
        Answer::Over { response, allowed } => *response >= LINEAR || *allowed == 0.0,
        Answer::Counted { .. } | Answer::Under { .. } => false,
    }
}

/// What was seen and what is allowed.
struct Excess {
    seen: f64,
    allowed: f64,
    /// The share that is allowed, where it is one; odds are compared then, which have no
    /// upper end.
    share: Option<f64>,
}

impl Excess {
    /// `None` for the largest latency and for terms that are held from below: they say
    /// nothing until they break.
    fn of(term: &Term, hold: &Recorded) -> Option<Self> {
        let share = match term.quantity {
            Quantity::Intended(Statistic::Max) | Quantity::Actual(Statistic::Max) => return None,
            Quantity::Intended(statistic) | Quantity::Actual(statistic) => {
                statistic.percentile().map(|share| 1.0 - share)
            }
            Quantity::Errors => Some(term.bound),
            Quantity::Sent | Quantity::Rate => return None,
        };
        let allowed = share.unwrap_or(term.bound);
        if !(allowed > 0.0 && share.is_none_or(|share| share < 1.0)) {
            return None;
        }
        let (seen, of) = seen(term, &hold.total.requests());
        let (seen, allowed) = match share {
            Some(allowed) => (seen, of * allowed),
            // Counted in requests as slow as the bound, not in seconds.
            None => (seen / term.bound, of),
        };
        Some(Self {
            seen,
            allowed,
            share,
        })
    }

    /// Logarithm of the excess over the whole hold.
    fn all(&self) -> f64 {
        let (seen, allowed) = (self.seen, self.allowed);
        if allowed <= 0.0 {
            return f64::NEG_INFINITY;
        }
        match self.share {
            Some(share) => {
                let of = allowed / share;
                (seen / (of - seen).max(0.0) * (1.0 - share) / share).ln()
            }
            None => (seen / allowed).ln(),
        }
    }

    fn counted(&self) -> Answer {
        Answer::Counted {
            seen: self.seen,
            allowed: self.allowed,
            share: self.share.unwrap_or(0.0),
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
