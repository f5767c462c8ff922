//! What a probe saw around faults: instants of tries, and a level over time.

use std::collections::BTreeMap;

use lab_experiment::expr::{Affected, Metric, ProbeSeries};
use lab_experiment::plan::Plan;
use lab_store::ProbeSample;

/// What is looked at of one probe.
#[derive(Debug, PartialEq)]
pub(crate) enum Seen {
    /// Each try by when it began, with whether it went well.
    Tries(Vec<(f64, bool)>),
    /// The number that was answered, where there was one; of several copies the sum of their
    /// newest.
    Level(Vec<(f64, f64)>),
}

impl Seen {
    /// When it was seen first and last.
    pub(crate) fn span(&self) -> Option<(f64, f64)> {
        Some(match self {
            Self::Tries(tries) => (tries.first()?.0, tries.last()?.0),
            Self::Level(level) => (level.first()?.0, level.last()?.0),
        })
    }

    /// How many tries failed that began from one second on, and before another.
    pub(crate) fn failed(&self, from_s: f64, to_s: f64) -> f64 {
        let Self::Tries(tries) = self else {
            return 0.0;
        };
        let failed = |(at_s, ok): &&(f64, bool)| !ok && (from_s..to_s).contains(at_s);
        tries.iter().filter(failed).count() as f64
    }
}

/// What is looked at: of every probe which tries went well, and the numbers that expectations
/// ask about; each with the seconds from one look at a copy to the next. `samples` are in order
/// of time.
pub(crate) fn series(plan: &Plan, samples: &[ProbeSample]) -> Vec<(Affected, f64, Seen)> {
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
            let own = samples.iter().filter(|one| one.probe == probe.name);
            let seen = match series {
                ProbeSeries::Ok => Seen::Tries(own.map(|one| (one.t_s, one.is_ok())).collect()),
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
            let every_s = probe.every.as_secs_f64();
            let probe = probe.name.clone();
            (Affected::Probe { probe, series }, every_s, seen)
        })
        .collect()
}

/// The sum of the newest numbers of all copies, each time that one has a new one. A copy that
/// does not answer adds nothing.
fn level<'s>(tries: impl Iterator<Item = &'s ProbeSample>) -> Vec<(f64, f64)> {
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
}
