//! From what was recorded to a verdict.

use std::collections::BTreeMap;

use lab_experiment::expr::{Metric, Metrics, Stat};
use lab_experiment::plan::{Plan, Watch};
use lab_lifecycle::{Table, Turns, span, summarise};
use lab_store::{Expectation, Outcome, ProcessSample, Verdict};
use stats::{mean, nearest_rank};

use crate::processes::copy_names;

/// Everything that expectations can be about.
#[derive(Debug, Default)]
pub(crate) struct Measured<'a> {
    pub(crate) tables: &'a [Table],
    pub(crate) loops: &'a [(String, Turns)],
    pub(crate) samples: &'a [ProcessSample],
    /// Names of the copies of each system.
    pub(crate) copies: BTreeMap<String, Vec<String>>,
    /// Length of each step that ended well, in seconds.
    pub(crate) steps: &'a [(String, f64)],
}

/// Names of the copies of each system of a plan.
pub(crate) fn copies(plan: &Plan) -> BTreeMap<String, Vec<String>> {
    let systems = plan.systems.iter();
    systems
        .map(|system| (system.name.clone(), copy_names(system)))
        .collect()
}

/// How the steps of a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ending {
    /// All of them ended well.
    Complete,
    /// A step failed: what is measured does not hold.
    Failed(String),
    /// The run could not go on, which says nothing about the system's limits.
    Broken(String),
}

/// Judges every expectation, also those of a run that ended early.
pub(crate) fn judge(
    plan: &Plan,
    measured: &Measured<'_>,
    ending: Ending,
    duration_s: f64,
) -> Verdict {
    let expectations: Vec<Expectation> = plan
        .expects
        .iter()
        .map(|expect| {
            let judgement = expect.that.eval(measured);
            let outcome = match judgement.holds {
                Some(true) => Outcome::Pass,
                Some(false) => Outcome::Fail,
                None => Outcome::Inconclusive,
            };
            let note = match judgement.holds {
                Some(_) => String::new(),
                None => format!("nothing was measured for {}", judgement.missing.join(", ")),
            };
            Expectation {
                that: expect.that.text.clone(),
                measured: judgement.measured,
                outcome,
                note,
            }
        })
        .collect();
    let any = |outcome| {
        expectations
            .iter()
            .any(|expectation| expectation.outcome == outcome)
    };
    let (outcome, reason) = match ending {
        Ending::Broken(reason) => (Outcome::Error, Some(reason)),
        Ending::Failed(reason) => (Outcome::Fail, Some(reason)),
        Ending::Complete if any(Outcome::Fail) => (Outcome::Fail, None),
        Ending::Complete if any(Outcome::Inconclusive) => (Outcome::Inconclusive, None),
        Ending::Complete => (Outcome::Pass, None),
    };
    Verdict {
        outcome,
        reason,
        duration_s,
        expectations,
    }
}

const SECOND_NS: f64 = 1e9;

impl Metrics for Measured<'_> {
    fn value(&self, metric: &Metric) -> Option<f64> {
        match metric {
            Metric::Interval {
                lifecycle,
                from,
                to,
                stat,
            } => self.interval(lifecycle, from, to, *stat),
            Metric::Complete { lifecycle } => summarise(self.table(lifecycle)?).complete_share,
            Metric::Negative { lifecycle } => {
                let phases = summarise(self.table(lifecycle)?).phases;
                let durations = phases.iter().filter_map(|phase| phase.durations.as_ref());
                Some(durations.map(|durations| durations.negative).sum::<u64>() as f64)
            }
            Metric::Rows { lifecycle } => Some(self.table(lifecycle)?.rows.len() as f64),
            Metric::Loop { name, stat } => {
                let (_, turns) = self.loops.iter().find(|(found, _)| found == name)?;
                let mut lengths: Vec<f64> = turns
                    .turns
                    .iter()
                    .map(|turn| (turn.end_ns - turn.start_ns) as f64 / SECOND_NS)
                    .collect();
                of_values(&mut lengths, *stat)
            }
            Metric::Process {
                system,
                quantity,
                stat,
            } => {
                let copies = self.copies.get(system)?;
                let mut values: Vec<f64> = self
                    .samples
                    .iter()
                    .filter(|sample| copies.contains(&sample.system))
                    .map(|sample| quantity_of(sample, *quantity))
                    .collect();
                of_values(&mut values, *stat)
            }
            Metric::StepDuration { step } => self
                .steps
                .iter()
                .find(|(name, _)| name == step)
                .map(|(_, seconds)| *seconds),
            // How many are in a state now has no meaning for a run that is over.
            Metric::Entities { .. } => None,
        }
    }
}

impl Measured<'_> {
    fn table(&self, lifecycle: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.name == lifecycle)
    }

    fn interval(&self, lifecycle: &str, from: &str, to: &str, stat: Stat) -> Option<f64> {
        let found = span(self.table(lifecycle)?, from, to).ok()?;
        if stat == Stat::Span {
            return found.makespan_ns.map(|ns| ns as f64 / SECOND_NS);
        }
        let mut seconds: Vec<f64> = found
            .sorted_ns
            .iter()
            .map(|ns| *ns as f64 / SECOND_NS)
            .collect();
        of_values(&mut seconds, stat)
    }
}

fn quantity_of(sample: &ProcessSample, quantity: Watch) -> f64 {
    match quantity {
        Watch::Cpu => sample.cpu_cores,
        Watch::Rss => sample.rss_bytes as f64,
        Watch::Fds => sample.fds as f64,
        Watch::Threads => sample.threads as f64,
    }
}

/// A statistic of values in order of time; sorts them where it needs to.
fn of_values(values: &mut [f64], stat: Stat) -> Option<f64> {
    match stat {
        Stat::Count => return Some(values.len() as f64),
        Stat::Last => return values.last().copied(),
        Stat::Mean => return mean(values),
        _ => values.sort_by(f64::total_cmp),
    }
    match stat {
        Stat::Min => values.first().copied(),
        Stat::Max => values.last().copied(),
        _ => nearest_rank(values, stat.quantile()?),
    }
}

#[cfg(test)]
mod tests;
