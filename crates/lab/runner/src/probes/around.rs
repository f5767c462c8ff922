//! What a probe saw around faults: instants of tries, and a level over time.

use std::collections::BTreeMap;

use lab_experiment::expr::{Affected, Metric, ProbeSeries};
use lab_experiment::plan::Plan;
use lab_store::ProbeSample;

use super::numbers::{Tried, ran_during};
use crate::standstill::{Span, may_be_within};

/// An answer that came in time, and for which other tries were left out, was an outage only from so many
/// seconds on: a machine without a processor to spare makes answers late by less.
pub(crate) const LATE_S: f64 = 0.25;

/// What is looked at of one probe.
#[derive(Debug, PartialEq)]
pub(crate) enum Seen {
    /// Each try by when it was due, in that order, with whether it went well. One that was left
    /// out because the one before it had no answer yet did not.
    Tries(Vec<(f64, bool)>),
    /// The same of several copies, and which share of them answered well when last asked.
    Copies {
        /// Tries of all of them.
        tries: Vec<(f64, bool)>,
        /// The share, each time that one was asked.
        well: Vec<(f64, f64)>,
    },
    /// The number that was answered, where there was one; of several copies the sum of their
    /// newest.
    Level(Vec<(f64, f64)>),
}

impl Seen {
    /// When it was seen first and last.
    pub(crate) fn span(&self) -> Option<(f64, f64)> {
        Some(match self {
            Self::Tries(tries) | Self::Copies { tries, .. } => (tries.first()?.0, tries.last()?.0),
            Self::Level(level) => (level.first()?.0, level.last()?.0),
        })
    }

    /// How many tries failed, or were left out, that were due from one second on, and before another.
    pub(crate) fn failed(&self, from_s: f64, to_s: f64) -> f64 {
        let (Self::Tries(tries) | Self::Copies { tries, .. }) = self else {
            return 0.0;
        };
        let tries = between(tries, from_s, to_s).iter();
        tries.filter(|(_, ok)| !ok).count() as f64
    }
}

/// What was due from one second on, and before another, of what is in order of time.
pub(crate) fn between<T>(all: &[(f64, T)], from_s: f64, to_s: f64) -> &[(f64, T)] {
    let from = all.partition_point(|one| one.0 < from_s);
    let to = all.partition_point(|one| one.0 < to_s);
    &all[from..to.max(from)]
}

/// What is looked at: of every probe which tries went well, and the numbers that expectations
/// ask about; each with the seconds from one look at a copy to the next.
pub(crate) fn series(plan: &Plan, tried: &Tried) -> Vec<(Affected, f64, Seen)> {
    let probes = plan.probes.iter();
    let all = probes.clone().map(|probe| (probe, ProbeSeries::Ok));
    let metrics = plan.expects.iter().flat_map(|expect| expect.that.metrics());
    let mut asked: Vec<_> = metrics
        .filter_map(|metric| match metric {
            Metric::Fault {
                of:
                    Affected::Probe {
                        probe,
                        series: ProbeSeries::Value,
                    },
                ..
            } => Some((probe, ProbeSeries::Value)),
            _ => None,
        })
        .collect();
    asked.sort();
    asked.dedup();
    let named = |name: &String| probes.clone().find(|probe| probe.name == *name);
    let asked = asked.into_iter();
    let asked = asked.filter_map(|(name, series)| Some((named(name)?, series)));
    all.chain(asked)
        .map(|(probe, series)| {
            let own = tried.of(None, &probe.name);
            let every_s = probe.every.as_secs_f64();
            let seen = match series {
                ProbeSeries::Ok => tries(own, every_s, probe.copies, &tried.stood),
                // What one does not say is not known; of several, the others still say something.
                ProbeSeries::Value if probe.copies == 1 => {
                    let known = own.filter(|one| one.is_ok());
                    Seen::Level(
                        known
                            .filter_map(|one| Some((one.t_s, one.value?)))
                            .collect(),
                    )
                }
                ProbeSeries::Value => Seen::Level(level(own)),
            };
            let probe = probe.name.clone();
            (Affected::Probe { probe, series }, every_s, seen)
        })
        .collect()
}

/// Which tries of a probe went well, of so many copies that are asked so often by a laboratory that stood
/// still at these times.
pub(crate) fn tries<'s>(
    samples: impl Iterator<Item = &'s ProbeSample>,
    every_s: f64,
    copies: u32,
    stood: &[Span],
) -> Seen {
    let due = due(samples, every_s, stood);
    let tries = due.iter().map(|one| (one.at_s, one.is_ok)).collect();
    match copies {
        1 => Seen::Tries(tries),
        _ => Seen::Copies {
            tries,
            well: well(&due),
        },
    }
}

/// The sum of the newest numbers of all copies, each time that one has a new one. A copy that
/// does not answer adds nothing.
pub(crate) fn level<'s>(tries: impl Iterator<Item = &'s ProbeSample>) -> Vec<(f64, f64)> {
    let mut newest: BTreeMap<&str, f64> = BTreeMap::new();
    tries
        .map(|one| {
            match one.value.filter(|_| one.is_ok()) {
                Some(value) => newest.insert(&one.of, value),
                None => newest.remove(&*one.of),
            };
            (one.t_s, newest.values().sum())
        })
        .collect()
}

/// A try that was made or left out.
struct Due<'s> {
    at_s: f64,
    /// The copy that it was for.
    of: &'s str,
    is_ok: bool,
}

/// Every try by when it was due. A try that was left out because the one before it had no
/// answer yet did not go well: nobody answered then. What was left out for another reason (the
/// probe itself was late, or the answer a little) says nothing, so it is not there; nor is what failed, or
/// was left out, while the laboratory stood still.
fn due<'s>(
    samples: impl Iterator<Item = &'s ProbeSample>,
    every_s: f64,
    stood: &[Span],
) -> Vec<Due<'s>> {
    let is_within = |at_s: f64| stood.iter().any(|own| may_be_within(at_s, *own));
    let mut before: BTreeMap<&str, &ProbeSample> = BTreeMap::new();
    let mut all = Vec::new();
    for one in samples {
        let before = before.insert(&one.of, one);
        if let Some(before) = before.filter(|it| !it.is_ok() || it.latency_s >= LATE_S) {
            let answered_s = before.t_s + before.latency_s;
            let left_out = (1..=one.skipped).map(|place| before.t_s + place as f64 * every_s);
            let waited = left_out.take_while(|at_s| *at_s < answered_s.min(one.t_s));
            all.extend(waited.filter(|at_s| !is_within(*at_s)).map(|at_s| Due {
                at_s,
                of: &one.of,
                is_ok: false,
            }));
        }
        if one.is_ok() || ran_during(one, stood) {
            all.push(Due {
                at_s: one.t_s,
                of: &one.of,
                is_ok: one.is_ok(),
            });
        }
    }
    // What was left out of one copy is known after others were asked.
    all.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
    all
}

/// The share of copies that answered well when they were asked last, each time that one is due.
fn well(tries: &[Due<'_>]) -> Vec<(f64, f64)> {
    let mut newest: BTreeMap<&str, bool> = BTreeMap::new();
    let mut good = 0.0;
    tries
        .iter()
        .map(|one| {
            let before = newest.insert(one.of, one.is_ok);
            good += f64::from(u8::from(one.is_ok)) - f64::from(u8::from(before == Some(true)));
            (one.at_s, good / newest.len() as f64)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_the_sum_of_what_the_copies_said_last() {
        let one = |t_s: f64, of: &str, value: Option<f64>, error: &str| ProbeSample {
            t_s,
            of: of.into(),
            value,
            error: error.into(),
            ..ProbeSample::default()
        };
        let tries = [
            one(0.0, "a", Some(1.0), ""),
            one(0.1, "b", Some(0.0), ""),
            one(1.0, "a", None, "refused"),
            one(1.1, "b", Some(0.0), ""),
            one(2.1, "b", Some(1.0), ""),
        ];
        let found = level(tries.iter());
        assert_eq!(
            found,
            [(0.0, 1.0), (0.1, 1.0), (1.0, 0.0), (1.1, 0.0), (2.1, 1.0)]
        );
    }

    #[test]
    fn of_ten_copies_the_one_that_is_gone_is_a_tenth_however_often_it_is_asked() {
        let ask = |number: u32| ProbeSample {
            t_s: f64::from(number) / 10.0,
            // The third is asked twice in a row, as after it was late.
            of: format!(
                "copy {}",
                [0, 1, 2, 2, 3, 4, 5, 6, 7, 8, 9][number as usize % 11]
            ),
            error: match number % 11 {
                2 | 3 if number > 20 => "refused".into(),
                _ => String::new(),
            },
            ..ProbeSample::default()
        };
        let tries: Vec<ProbeSample> = (0..60).map(ask).collect();
        let shares = well(&due(tries.iter(), 1.1, &[]));
        let at = |t_s: f64| shares.iter().find(|one| one.0 == t_s).map(|one| one.1);
        assert_eq!(
            (at(1.0), at(2.0), at(2.4)),
            (Some(1.0), Some(1.0), Some(0.9))
        );
        assert_eq!(shares.last(), Some(&(5.9, 0.9)));
    }
}
