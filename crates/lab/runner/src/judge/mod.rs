//! From what was recorded to a verdict.

mod growth;
mod metrics;
mod too_few;
mod window;

use std::collections::BTreeMap;

use lab_experiment::expr::{
    Affected, Comparison, Expr, FaultNumber, Metric, Metrics, Op, ProbeSeries, Stat,
};
use lab_experiment::plan::{Expect, LeftOut, Plan, Watch};
use lab_lifecycle::{Table, Turns, span, summarise};
use lab_load::Summary;
use lab_store::{
    Expectation, FaultRecord, OmittedExpectation, Outcome, ProcessSample, Unit, Verdict,
};
use stats::{mean, nearest_rank};

use crate::conditions::between;
use crate::loads::{self, Bound};
use crate::probes::{LATE_S, Tried};
use crate::processes::copy_names;
use crate::recoveries;
use crate::skipped::Skipped;
use crate::steps::StepLength;

pub(crate) use metrics::metrics;
pub(crate) use window::{Judged, since};

/// Everything that expectations can be about.
#[derive(Debug, Default)]
pub(crate) struct Measured<'a> {
    pub(crate) tables: &'a [Table],
    pub(crate) loops: &'a [(String, Turns)],
    pub(crate) samples: &'a [ProcessSample],
    /// Names of the copies of each system.
    pub(crate) copies: BTreeMap<String, Vec<String>>,
    /// Length of each step that ended well, in seconds.
    pub(crate) steps: &'a [StepLength],
    pub(crate) loads: loads::Measured<'a>,
    /// Steps that were left out.
    pub(crate) skipped: &'a [Skipped],
    /// What this machine lacks.
    pub(crate) left_out: LeftOut,
    pub(crate) faults: &'a [FaultRecord],
    /// Numbers that steps kept.
    pub(crate) kept: BTreeMap<String, f64>,
    pub(crate) probes: Tried,
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
    /// A step failed by what a load measured, and the load is INVALID.
    Doubtful(String),
    /// The run could not go on, which says nothing about the system's limits.
    Broken(String),
}

impl Ending {
    /// The ending on this record of the run. One with holes cannot show that
    /// something held.
    pub(crate) fn on(self, record: Result<(), String>) -> Self {
        match (record, self) {
            (Err(hole), Self::Complete) => Self::Broken(hole),
            // What broke the record may well be why the step failed.
            (Err(hole), Self::Failed(reason) | Self::Doubtful(reason)) => {
                Self::Broken(format!("{reason}\n{hole}"))
            }
            (_, ending) => ending,
        }
    }
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
            let invalid = measured.invalid(&expect.that);
            let skipped = measured.skipped(&expect.that, plan);
            let skipped = skipped.filter(|one| one.invalid && judgement.holds.is_none());
            let invalid = invalid.or_else(|| skipped.map(Skipped::note));
            let invalid = invalid.or_else(|| measured.turned_round(&expect.that, judgement.holds));
            let (outcome, note) = match (invalid, judgement.holds) {
                // Whether it held or not, nobody knows: the instrument was at its limit.
                (Some(why), _) => (Outcome::Invalid, why),
                (None, Some(held)) if let Some(why) = measured.bounded(&expect.that, held) => {
                    (Outcome::Inconclusive, why)
                }
                (None, Some(held)) if let Some(why) = measured.too_few(&expect.that, held) => {
                    (Outcome::Inconclusive, why)
                }
                (None, Some(true)) => (Outcome::Pass, String::new()),
                (None, Some(false)) => (Outcome::Fail, String::new()),
                (None, None) => (Outcome::Inconclusive, measured.lacks(&expect.that, plan)),
            };
            Expectation {
                that: expect.that.text.clone(),
                measured: judgement.measured,
                values: measured.values(&expect.that),
                units: units(&expect.that),
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
    let decided = |summary: &Summary| {
        let about = |expect: &Expect| measured.summaries(&expect.that).any(|own| own == summary);
        let judged = plan.expects.iter().zip(&expectations);
        let mut about = judged.filter(|(expect, _)| about(expect)).peekable();
        about.peek().is_some() && about.all(|(_, judged)| judged.outcome != Outcome::Invalid)
    };
    let invalid = measured.loads.invalid(decided).next();
    let invalid = invalid.map(loads::is_invalid);
    // A load may hold as a whole, and a number of it not.
    let undecided = expectations
        .iter()
        .find(|one| one.outcome == Outcome::Invalid);
    let undecided = undecided.map(|one| format!("{:?} is not decided: {}", one.that, one.note));
    let invalid = invalid.or(undecided);
    let (outcome, reason) = match ending {
        Ending::Broken(reason) => (Outcome::Error, Some(reason)),
        Ending::Failed(reason) => (Outcome::Fail, Some(reason)),
        Ending::Doubtful(reason) => (Outcome::Invalid, Some(reason)),
        // What fails without the help of an INVALID load fails by itself.
        Ending::Complete if any(Outcome::Fail) => (Outcome::Fail, None),
        Ending::Complete if invalid.is_some() => (Outcome::Invalid, invalid),
        Ending::Complete if any(Outcome::Inconclusive) => (Outcome::Inconclusive, None),
        // Nobody may take what was never tried for something that went well.
        Ending::Complete if let Some(skipped) = measured.skipped.first() => {
            let outcome = match skipped.invalid {
                true => Outcome::Invalid,
                false => Outcome::Inconclusive,
            };
            (outcome, Some(skipped.note()))
        }
        Ending::Complete if let Some(why) = measured.left_out.leaves_nothing(plan) => {
            (Outcome::Inconclusive, Some(why))
        }
        Ending::Complete => (Outcome::Pass, None),
    };
    let left_out = measured.left_out.expects.iter();
    let left_out = left_out.map(|(that, program)| OmittedExpectation {
        that: that.clone(),
        why: format!("{program} is not installed"),
    });
    Verdict {
        outcome,
        reason,
        duration_s,
        expectations,
        left_out: left_out.collect(),
        probes: measured.probes.summaries(plan),
        notes: Vec::new(),
    }
}

/// The unit of each metric of an expression.
fn units(expr: &Expr) -> BTreeMap<String, Unit> {
    let unit = |metric: &Metric| (metric.to_string(), metric.dimension().unit());
    expr.metrics().map(unit).collect()
}

const SECOND_NS: f64 = 1e9;
/// Most uncertain numbers in an expression of which every combination is tried.
const MOST_UNCERTAIN: usize = 8;

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
                // Of no intervals none is negative, which says nothing.
                durations
                    .map(|durations| durations.negative as f64)
                    .reduce(|all, more| all + more)
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
            Metric::Kept { name } => self.kept.get(name).copied(),
            Metric::StepDuration { step } => self.length_of(step).map(|length| length.seconds),
            Metric::Load {
                step,
                load,
                quantity,
            } => self
                .loads
                .value(load, step.as_deref(), *quantity, Bound::Measured),
            Metric::Probe {
                step,
                probe,
                number,
            } => self.probes.value(step.as_deref(), probe, number),
            Metric::Knee { step, end } => loads::knee(self.loads.search(step.as_deref())?, *end),
            Metric::Fault { step, of, number } => {
                recoveries::value(self.faults, step.as_deref(), of, *number)
            }
            Metric::Growth { step, of } => self.growth(step, of).ok().map(|found| found.share),
            // How many are in a state now has no meaning for a run that is over.
            Metric::Entities { .. } => None,
        }
    }
}

/// What was measured, some of it at its best.
struct AtBounds<'m> {
    measured: &'m Measured<'m>,
    best: &'m dyn Fn(&Metric) -> bool,
}

impl Metrics for AtBounds<'_> {
    fn value(&self, metric: &Metric) -> Option<f64> {
        let bound = match (self.best)(metric) {
            true => Bound::AtBest,
            false => Bound::Measured,
        };
        self.measured.at(metric, bound)
    }
}

impl Measured<'_> {
    /// Why an expression cannot be believed, if a load that it is about is INVALID.
    fn invalid(&self, expr: &Expr) -> Option<String> {
        let mut spoiled = expr.metrics().filter_map(|metric| {
            let summary = self.summary(metric)?;
            let validity = &summary.validity;
            let spoiled = match metric {
                Metric::Load { quantity, .. } if quantity.is_count() => validity.miscounted(),
                _ => validity.spoiled(),
            };
            spoiled.then_some(summary)
        });
        spoiled.next().map(|summary| {
            let (name, reasons) = (&summary.name, loads::reasons(summary));
            format!("{name} is INVALID: {reasons}")
        })
    }

    /// The step that was left out, and would have measured what an expression lacks.
    fn skipped(&self, expr: &Expr, plan: &Plan) -> Option<&Skipped> {
        let lacking = || expr.metrics().filter(|metric| self.value(metric).is_none());
        let mut skipped = self.skipped.iter();
        skipped.find(|one| lacking().any(|metric| one.lacks(metric, plan)))
    }

    /// Results of loads that an expression is about.
    fn summaries<'s>(&'s self, expr: &'s Expr) -> impl Iterator<Item = &'s Summary> {
        expr.metrics().filter_map(|metric| self.summary(metric))
    }

    /// The result of the load that a metric is about.
    fn summary(&self, metric: &Metric) -> Option<&Summary> {
        match metric {
            Metric::Load { step, load, .. } => self.loads.load(load, step.as_deref()),
            Metric::Knee { step, .. } => self.loads.search(step.as_deref()),
            _ => None,
        }
    }

    /// Why nobody knows whether an expression holds, if what the generator may have spoiled could
    /// have made the difference.
    fn turned_round(&self, expr: &Expr, measured: Option<bool>) -> Option<String> {
        let uncertain: Vec<&Metric> = expr
            .metrics()
            .filter(|metric| self.at(metric, Bound::AtBest) != self.at(metric, Bound::Measured))
            .collect();
        // Each of the numbers may be at either end, whatever the others are. Nobody
        // writes down more than a few.
        let ends = 0..1_u32 << uncertain.len().min(MOST_UNCERTAIN);
        let differs = ends.into_iter().any(|ends| {
            let best = |metric: &Metric| {
                let place = uncertain.iter().position(|one| *one == metric);
                place.is_some_and(|place| ends >> place.min(31) & 1 == 1)
            };
            let at = AtBounds {
                measured: self,
                best: &best,
            };
            expr.eval(&at).holds != measured
        });
        let metric = uncertain.first().filter(|_| differs)?;
        let [best, measured] = [Bound::AtBest, Bound::Measured].map(|bound| {
            let value = self.at(metric, bound);
            value.unwrap_or_default()
        });
        Some(between(metric, best, measured))
    }

    /// The value of a metric at one of its bounds.
    fn at(&self, metric: &Metric, bound: Bound) -> Option<f64> {
        match metric {
            Metric::Load {
                step,
                load,
                quantity,
            } => self.loads.value(load, step.as_deref(), *quantity, bound),
            Metric::StepDuration { step } if bound == Bound::AtBest => {
                let length = self.length_of(step)?;
                Some(length.seconds - length.stood_s)
            }
            Metric::Probe {
                step,
                probe,
                number,
            } if bound == Bound::AtBest => {
                self.probes.value_at_best(step.as_deref(), probe, number)
            }
            Metric::Fault { step, of, number } if bound == Bound::AtBest => {
                let stood = &self.probes.stood;
                recoveries::value_at_best(self.faults, step.as_deref(), of, *number, stood)
            }
            _ => self.value(metric),
        }
    }

    fn length_of(&self, step: &str) -> Option<&StepLength> {
        self.steps.iter().find(|length| length.step == step)
    }

    /// Why a lower bound of a knee does not decide an expression that holds or not.
    fn bounded(&self, expr: &Expr, held: bool) -> Option<String> {
        expr.comparisons().into_iter().find_map(|comparison| {
            if let Some(why) = self.unfinished(comparison, held) {
                return Some(why);
            }
            if let Some(why) = self.unsettled(comparison, held) {
                return Some(why);
            }
            let (step, of_knee) = match (&comparison.metric, &comparison.of) {
                (Metric::Knee { step, .. }, _) => (step, false),
                (_, Some(Metric::Knee { step, .. })) => (step, true),
                _ => return None,
            };
            let capacity = self.loads.search(step.as_deref())?.capacity.as_ref()?;
            let from_below = matches!(comparison.op, Op::Greater | Op::GreaterOrEqual);
            let decided = capacity.limit == "target" || held && from_below && !of_knee;
            (!decided).then(|| format!("the knee may be higher: {}", capacity.note))
        })
    }

    /// Why a bound of a recovery does not decide a comparison.
    fn unfinished(&self, comparison: &Comparison, held: bool) -> Option<String> {
        let Metric::Fault { step, of, number } = &comparison.metric else {
            return None;
        };
        let (faults, step) = (self.faults, step.as_deref());
        let is_exact = matches!(comparison.op, Op::Equal | Op::NotEqual);
        let bound = |value: f64| match &comparison.of {
            None => Some(comparison.op.holds(value, comparison.quantity)),
            Some(metric) => {
                let whole = self.value(metric)?;
                Some(comparison.op.holds(value, comparison.quantity * whole))
            }
        };
        if let Some(most) = recoveries::at_most(faults, step, of, *number) {
            let seen = recoveries::value(faults, step, of, *number)?;
            // No probe is so exact that it could show nothing at all.
            let is_nothing = is_exact && most.lasting_s < LATE_S;
            if !is_nothing && bound(seen) != bound(most.value) {
                let lasting = units::show_seconds(most.lasting_s);
                let what = match number {
                    FaultNumber::Depth => {
                        format!("for up to {lasting}, and how deep that was is not known")
                    }
                    _ => format!("which may have lasted up to {lasting}"),
                };
                let remedy = recoveries::remedy(faults, step, of, |effect| effect.at_most_s)
                    .unwrap_or("ask more often, or for longer before the fault");
                return Some(format!(
                    "too little was seen of {of} to tell: some of it was not well, or not asked, {what}; \
                     {remedy}",
                ));
            }
        }
        if !recoveries::is_lower_bound(faults, step, of, *number) {
            let seen = recoveries::value(faults, step, of, *number)?;
            let least = recoveries::least(faults, step, of, *number).filter(|_| !is_exact)?;
            return (bound(seen) != bound(least)).then(|| {
                let unknown = units::show_seconds(seen - least);
                let remedy = recoveries::remedy(faults, step, of, |effect| effect.resolution_s)
                    .unwrap_or("ask more often");
                format!(
                    "too little was seen of {of} to tell: it may have come back up to {unknown} before that \
                     was seen; {remedy}"
                )
            });
        }
        let from_below = matches!(comparison.op, Op::Greater | Op::GreaterOrEqual);
        (held != from_below).then(|| {
            // Everything else is looked at often enough to tell.
            let (seldom, often) = match of {
                Affected::Probe {
                    series: ProbeSeries::Value,
                    ..
                } => (", or was asked too seldom to tell", ", or ask more often"),
                _ => ("", ""),
            };
            format!(
                "{of} had not come back when the measurement ended{seldom}, so it may be more; \
                 measure for longer{often}"
            )
        })
    }

    /// The values of an expression's metrics.
    fn values(&self, expr: &Expr) -> BTreeMap<String, f64> {
        let values = expr.metrics().filter_map(|metric| {
            let value = self.value(metric).filter(|value| value.is_finite())?;
            Some((metric.to_string(), value))
        });
        values.collect()
    }

    /// Which metrics of an expression have no value, and why.
    fn lacks(&self, expr: &Expr, plan: &Plan) -> String {
        let why = |metric: &Metric| {
            let mut skipped = self.skipped.iter();
            let skipped = skipped.find(|one| one.lacks(metric, plan));
            skipped.map_or_else(|| self.why(metric), Skipped::note)
        };
        let mut lacks: Vec<String> = expr
            .metrics()
            .filter(|metric| self.value(metric).is_none())
            .map(|metric| format!("nothing was measured for {metric}: {}", why(metric)))
            .collect();
        let endless = |metric: &&Metric| self.value(metric) == Some(f64::INFINITY);
        let compared = expr
            .comparisons()
            .into_iter()
            .filter_map(|one| one.of.as_ref());
        lacks.extend(
            compared
                .filter(endless)
                .map(|metric| format!("{metric} had no answer, so nothing compares with it")),
        );
        lacks.dedup();
        lacks.join("; ")
    }

    /// Why a metric has no value.
    fn why(&self, metric: &Metric) -> String {
        match metric {
            Metric::Interval { lifecycle, .. }
            | Metric::Complete { lifecycle }
            | Metric::Negative { lifecycle }
            | Metric::Rows { lifecycle }
                if self
                    .table(lifecycle)
                    .is_none_or(|table| table.rows.is_empty()) =>
            {
                format!("no log line showed a point of {lifecycle} together with its key")
            }
            Metric::Interval { from, to, .. } => {
                format!("no entity passed both {from} and {to}")
            }
            Metric::Complete { .. } | Metric::Negative { .. } | Metric::Rows { .. } => {
                "no entity passed two neighbouring points".to_owned()
            }
            Metric::Loop { name, .. } => match self.loops.iter().find(|(found, _)| found == name) {
                Some((_, turns)) if turns.unmatched_starts + turns.unmatched_ends > 0 => format!(
                    "the logs showed {} starts and {} ends of {name} that belong to no turn",
                    turns.unmatched_starts, turns.unmatched_ends
                ),
                _ => format!("no log line showed a start or an end of {name}"),
            },
            Metric::Process { system, .. } => format!("{system} ended before its first sample"),
            Metric::Growth { step, of } => self.growth(step, of).err().unwrap_or_default(),
            Metric::Kept { .. } => "no step has kept a number for it".to_owned(),
            Metric::StepDuration { .. } => "the step did not end well".to_owned(),
            Metric::Load { step, load, .. } => match self.loads.load(load, step.as_deref()) {
                Some(summary) => format!(
                    "{} answers are too few for it",
                    summary.latency.intended.count
                ),
                None => format!("{load} did not run to its end"),
            },
            Metric::Knee { step, .. } => match self.loads.search(step.as_deref()) {
                Some(summary) => {
                    let capacity = summary.capacity.as_ref();
                    capacity.map_or_else(String::new, |capacity| capacity.note.clone())
                }
                None => "the search did not end well".to_owned(),
            },
            Metric::Probe { step, probe, .. } => self.probes.why(step.as_deref(), probe),
            Metric::Fault { step, of, .. } => recoveries::why(self.faults, step.as_deref(), of),
            Metric::Entities { .. } => "the run is over".to_owned(),
        }
    }

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
pub(crate) fn of_values(values: &mut [f64], stat: Stat) -> Option<f64> {
    match stat {
        Stat::Count => return Some(values.len() as f64),
        Stat::Last => return values.last().copied(),
        Stat::Mean => return mean(values),
        Stat::Sum => return (!values.is_empty()).then(|| stats::sum(values)),
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
