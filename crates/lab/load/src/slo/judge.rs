//! Whether a load met its objective.

use super::{Quantity, Slo, Statistic, Term};
use crate::recording::{Latencies, Recorded, Recording, Tried};
use crate::validity::{Between, most_good};

/// Confidence with which a percentile of few samples must be beyond its bound to be
/// called so.
const CONFIDENCE: f64 = 0.99;

/// What an objective comes to.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// Whether it holds; `None` when too few requests were made to tell, or when the
    /// generator may have made the difference. One term that does not hold is enough for
    /// `Some(false)`.
    pub holds: Option<bool>,
    /// Each term, in its order.
    pub measured: Vec<Measured>,
}

/// What one term comes to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// What was asked.
    pub term: Term,
    /// What was found, in the unit of the bound. Infinite where so many requests had
    /// no answer that the percentile is among them; absent where nothing was seen.
    pub value: Option<f64>,
    /// The value with everything taken away, or added, that the generator may have
    /// spoiled; absent where that changes nothing.
    pub at_best: Option<f64>,
    /// Whether the term holds; `None` when too few requests were made to tell, or when
    /// it does not and might without the generator's part in it.
    pub holds: Option<bool>,
}

impl Measured {
    /// Whether it cannot be told because of the generator.
    pub fn doubtful(&self) -> bool {
        let best = self.at_best.is_some_and(|best| self.term.holds(best));
        best && self.value.is_some_and(|value| !self.term.holds(value))
    }

    /// The least that the value may be in truth.
    pub fn least(&self) -> f64 {
        let value = self.value.unwrap_or(f64::NAN);
        self.at_best.map_or(value, |best| best.min(value))
    }

    /// The most that it may be.
    pub fn most(&self) -> f64 {
        let value = self.value.unwrap_or(f64::NAN);
        self.at_best.map_or(value, |best| best.max(value))
    }
}

impl Slo {
    /// Judges a load, or what [`judged`](crate::steady::judged) left of it.
    ///
    /// A request without a whole answer, or one that was never sent, counts as slower
    /// than any bound ([`Latencies`]): `p99 < 20ms` says that 99 of 100 requests were
    /// answered within 20 ms. A percentile with fewer than ten samples beyond it, or a share
    /// of errors below one request, is not told unless it is surely too large.
    pub fn judge(&self, recorded: &Recorded) -> Judgement {
        let requests = recorded.total.requests();
        let seen = Seen {
            recorded,
            tried: recorded.total.tried(),
            requests,
        };
        let measured: Vec<Measured> = self.terms.iter().map(|term| seen.term(*term)).collect();
        let fails = measured.iter().any(|one| one.holds == Some(false));
        let unknown = measured.iter().any(|one| one.holds.is_none());
        Judgement {
            holds: if fails {
                Some(false)
            } else {
                (!unknown).then_some(true)
            },
            measured,
        }
    }
}

struct Seen<'r> {
    recorded: &'r Recorded,
    requests: Recording,
    tried: Tried,
}

impl Seen<'_> {
    fn term(&self, term: Term) -> Measured {
        let told = |value: f64| Measured {
            term,
            value: Some(value),
            at_best: None,
            holds: Some(term.holds(value)),
        };
        let unknown = |value| Measured {
            term,
            value,
            at_best: None,
            holds: None,
        };
        let all = &self.requests;
        match term.quantity {
            Quantity::Intended(statistic) => between(term, statistic, &Between::intended(all)),
            Quantity::Actual(statistic) => between(term, statistic, &Between::actual(all)),
            Quantity::Errors => {
                let Tried { all, failed } = self.tried;
                let Some(share) = self.tried.share() else {
                    return unknown(None);
                };
                if failed == 0 && term.bound > 0.0 && all as f64 * term.bound < 1.0 {
                    return unknown(Some(0.0));
                }
                let best = self.tried.had_served(self.requests.starved());
                at_best(told(share), best.share())
            }
            Quantity::Sent if self.recorded.total.planned == 0 => unknown(None),
            Quantity::Sent => {
                let planned = self.recorded.total.planned as f64;
                let share = |sent: u64| (sent as f64 / planned).min(1.0);
                let sent = self.requests.sent;
                let best = share(sent + self.requests.starved());
                at_best(told(share(sent)), Some(best))
            }
            Quantity::Rate => {
                let sending = self.recorded.sending();
                let length = sending.length.as_secs_f64();
                if length <= 0.0 {
                    return unknown(None);
                }
                let good = sending.requests().good();
                let best = most_good(self.recorded, &self.requests, good);
                at_best(told(good as f64 / length), Some(best / length))
            }
        }
    }
}

/// What was seen, beside what it would be without the generator's part in it: that does not hold
/// only if it holds neither way.
fn at_best(seen: Measured, best: Option<f64>) -> Measured {
    Measured {
        at_best: best.filter(|best| seen.value != Some(*best)),
        holds: match (seen.holds, best) {
            (Some(false), Some(best)) if seen.term.holds(best) => None,
            (holds, _) => holds,
        },
        ..seen
    }
}

/// What holds of latencies as they were measured holds of the truth, which is not longer;
/// what does not must not hold at its shortest either.
fn between(term: Term, statistic: Statistic, between: &Between<'_>) -> Measured {
    let seen = latency(term, statistic, between.most());
    let best = latency(term, statistic, between.least());
    Measured {
        at_best: best.value.filter(|best| seen.value != Some(*best)),
        holds: match seen.holds {
            Some(false) if best.holds != Some(false) => None,
            holds => holds,
        },
        ..seen
    }
}

fn latency(term: Term, statistic: Statistic, all: Latencies<'_>) -> Measured {
    let value = all.value(statistic);
    let surely = || {
        let (low, _) = stats::quantile_ranks(all.count(), statistic.percentile()?, CONFIDENCE)?;
        let least = all.at_rank(low?)?;
        (!term.holds(least)).then_some(false)
    };
    Measured {
        term,
        value,
        at_best: None,
        holds: match value {
            Some(value) if all.is_meaningful(statistic) => Some(term.holds(value)),
            _ => surely(),
        },
    }
}

impl Term {
    /// Whether a value is on the right side of the bound.
    pub fn holds(&self, value: f64) -> bool {
        match (self.quantity.held_from_above(), self.inclusive) {
            (true, false) => value < self.bound,
            (true, true) => value <= self.bound,
            (false, false) => value > self.bound,
            (false, true) => value >= self.bound,
        }
    }
}
