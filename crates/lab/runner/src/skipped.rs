//! Steps that are left out: what they build on is missing, and the steps after them may not.

use lab_experiment::expr::Metric;
use lab_experiment::plan::{Plan, Step, Traffic};

use crate::loads::{self, Measured};

/// A step that was left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Skipped {
    pub(crate) step: String,
    /// What is missing, in words.
    pub(crate) why: String,
    /// The instrument was the limit, and not what was measured.
    pub(crate) invalid: bool,
}

impl Skipped {
    /// Why a step has to be left out, after these loads were measured and these steps were
    /// left out; `None`: it can be made.
    pub(crate) fn of(
        step: &Step,
        plan: &Plan,
        measured: Measured<'_>,
        before: &[Self],
    ) -> Option<Self> {
        let rates = step.loads.iter().filter_map(|own| match &own.traffic {
            Traffic::ShareOfKnee { share, search } => Some((*share, search)),
            _ => None,
        });
        let no_rate = |(share, search): (f64, &String)| {
            let (what, invalid) = no_rate(search, measured, before)?;
            let share = units::show_share(share);
            Some((
                format!("{share} of the knee is asked for, and {what}"),
                invalid,
            ))
        };
        let mut missing = rates.filter_map(no_rate);
        let (why, invalid) = missing.next().or_else(|| not_kept(step, plan, before))?;
        Some(Self {
            step: step.name.clone(),
            why,
            invalid,
        })
    }

    /// A note about it, for the verdict.
    pub(crate) fn note(&self) -> String {
        format!("step {:?} was skipped: {}", self.step, self.why)
    }

    /// Whether a metric that has no value would have been measured in it.
    pub(crate) fn lacks(&self, metric: &Metric, plan: &Plan) -> bool {
        let mut steps = plan.steps.iter();
        let Some(step) = steps.find(|step| step.name == self.step) else {
            return false;
        };
        let is_it = |named: &Option<String>| named.as_ref().map(|named| *named == self.step);
        match metric {
            Metric::StepDuration { step } | Metric::Growth { step, .. } => *step == self.step,
            Metric::Kept { name } => step.keeps().any(|kept| kept == name),
            Metric::Load {
                step: named, load, ..
            } => is_it(named).unwrap_or_else(|| step.loads.iter().any(|own| own.load == *load)),
            Metric::Knee { step: named, .. } => is_it(named).unwrap_or(step.search.is_some()),
            Metric::Probe { step: named, .. } => is_it(named) == Some(true),
            Metric::Fault { step: named, .. } => is_it(named).unwrap_or(!step.faults.is_empty()),
            _ => false,
        }
    }
}

/// Why a search leaves later steps without a rate, and whether it is INVALID.
fn no_rate(search: &str, measured: Measured<'_>, before: &[Skipped]) -> Option<(String, bool)> {
    let Some(summary) = measured.search(Some(search)) else {
        let skipped = before.iter().find(|skipped| skipped.step == search);
        let invalid = skipped.is_some_and(|skipped| skipped.invalid);
        return Some((format!("{search:?} was skipped itself"), invalid));
    };
    if !summary.validity.valid {
        return Some((
            format!("{search:?} is INVALID: {}", loads::reasons(summary)),
            true,
        ));
    }
    let capacity = summary.capacity.as_ref();
    if capacity.is_some_and(|capacity| capacity.confirmed().is_some()) {
        return None;
    }
    let found = match capacity.map(|capacity| (capacity.knee, &capacity.note)) {
        Some((Some(_), note)) => {
            format!("no hold of {search:?} confirmed a rate up to the knee that it tells: {note}")
        }
        Some((None, note)) => format!("{search:?} found none: {note}"),
        None => format!("{search:?} found none"),
    };
    Some((found, false))
}

/// Why a step cannot fill in a value: the one that keeps it was left out.
fn not_kept(step: &Step, plan: &Plan, before: &[Skipped]) -> Option<(String, bool)> {
    before.iter().find_map(|skipped| {
        let keeper = plan.steps.iter().find(|step| step.name == skipped.step)?;
        let name = step
            .uses()
            .find(|name| keeper.keeps().any(|kept| kept == *name))?;
        let why = format!(
            "it uses {{{name}}}, which {:?} keeps, and that was skipped",
            keeper.name
        );
        Some((why, skipped.invalid))
    })
}
