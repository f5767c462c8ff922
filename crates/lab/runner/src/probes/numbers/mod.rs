//! What tries come to: the numbers of expressions, and a summary.

use std::collections::BTreeMap;

use lab_experiment::expr::{ProbeNumber, Stat};
use lab_experiment::plan::Plan;
use lab_store::{Event, EventKind, ProbeSample, ProbeSummary};
use units::{counted, show_count, show_seconds};

use super::value::Value;
use crate::judge::of_values;
use crate::standstill::{Span, shared};

/// A number of some tries in order of time; `None` if they do not tell it.
pub(super) fn number<'s>(
    tries: impl Iterator<Item = &'s ProbeSample> + Clone,
    number: &ProbeNumber,
) -> Option<f64> {
    let good = || tries.clone().filter(|one| one.is_ok());
    let share = |part: usize, whole: usize| (whole > 0).then(|| part as f64 / whole as f64);
    match number {
        ProbeNumber::Value(stat) => {
            let mut values: Vec<f64> = good().filter_map(|one| one.value).collect();
            of_values(&mut values, *stat)
        }
        ProbeNumber::Is(text) => {
            // Read as answers are: 'true' is what an answer says by true, and '1' by 1.0.
            let meant = Value::of_text(text);
            let is = |one: &&ProbeSample| match &meant {
                Some(Value::Number(number)) => one.value == Some(*number),
                Some(Value::Text(text)) => one.text == *text,
                None => one.value.is_none() && one.text.is_empty(),
            };
            share(good().filter(is).count(), good().count())
        }
        ProbeNumber::Ok => share(good().count(), tries.clone().count()),
        ProbeNumber::Latency(stat) => {
            let mut values: Vec<f64> = good().map(|one| one.latency_s).collect();
            of_values(&mut values, *stat)
        }
        ProbeNumber::Skipped => {
            let tries = tries.clone();
            let skipped = tries.map(|one| one.skipped).reduce(|all, more| all + more);
            skipped.map(|skipped| skipped as f64)
        }
    }
}

/// Whether the laboratory ran during a whole try, given when it stood still.
pub(super) fn ran_during(one: &ProbeSample, stood: &[Span]) -> bool {
    let own = (one.t_s, one.t_s + one.latency_s);
    stood.iter().all(|stood| shared(own, *stood) <= 0.0)
}

/// Whether what a try says for a number is as it was, given when the laboratory stood still: a good answer
/// is, but for the time that it took.
pub(super) fn is_certain(one: &ProbeSample, of: &ProbeNumber, stood: &[Span]) -> bool {
    let is_timed = matches!(of, ProbeNumber::Latency(_));
    one.is_ok() && !is_timed || ran_during(one, stood)
}

/// The tries of a run, and when its steps were.
#[derive(Debug, Default)]
pub(crate) struct Tried {
    /// In order of time.
    pub(crate) samples: Vec<ProbeSample>,
    /// Name, start and end of each step that began, in seconds of the run.
    steps: Vec<(String, f64, f64)>,
    /// When the laboratory itself stood still.
    pub(crate) stood: Vec<Span>,
}

impl Tried {
    pub(crate) fn new(mut samples: Vec<ProbeSample>, events: &[Event]) -> Self {
        samples.sort_by(|a, b| a.t_s.total_cmp(&b.t_s));
        let mut steps: Vec<(String, f64, f64)> = Vec::new();
        for event in events {
            match event.kind {
                EventKind::StepStarted => {
                    steps.push((event.name.clone(), event.t_s, f64::INFINITY));
                }
                EventKind::StepEnded | EventKind::StepFailed => {
                    let step = steps.iter_mut().rfind(|(name, ..)| *name == event.name);
                    if let Some((_, _, end_s)) = step {
                        *end_s = event.t_s;
                    }
                }
                _ => {}
            }
        }
        Self {
            samples,
            steps,
            stood: Vec::new(),
        }
    }

    /// The tries of a probe that began in a step, or in any.
    pub(crate) fn of<'s>(
        &'s self,
        step: Option<&'s str>,
        probe: &'s str,
    ) -> impl Iterator<Item = &'s ProbeSample> + Clone {
        let within = move |t_s: f64| {
            let mut steps = self.steps.iter();
            step.is_none_or(|step| {
                steps.any(|(name, from_s, to_s)| name == step && (*from_s..*to_s).contains(&t_s))
            })
        };
        let samples = self.samples.iter();
        samples.filter(move |one| one.probe == probe && within(one.t_s))
    }

    /// Start and end of a step that began, in seconds of the run.
    pub(crate) fn span(&self, step: &str) -> Option<(f64, f64)> {
        let mut steps = self.steps.iter();
        let (_, from_s, to_s) = steps.find(|(name, ..)| name == step)?;
        Some((*from_s, *to_s))
    }

    /// The value of a metric of a probe.
    pub(crate) fn value(&self, step: Option<&str>, probe: &str, of: &ProbeNumber) -> Option<f64> {
        number(self.of(step, probe), of)
    }

    /// The same without what the laboratory may have changed because it stood still.
    pub(crate) fn value_at_best(
        &self,
        step: Option<&str>,
        probe: &str,
        of: &ProbeNumber,
    ) -> Option<f64> {
        let tries = self.of(step, probe);
        number(tries.filter(|one| is_certain(one, of, &self.stood)), of)
    }

    /// Why a metric of a probe has no value.
    pub(crate) fn why(&self, step: Option<&str>, probe: &str) -> String {
        let tries = || self.of(step, probe);
        match tries().rfind_ok() {
            Some(newest) if newest.text.is_empty() => "no answer had a value".to_owned(),
            Some(newest) => format!("no answer was a number; the newest was {:?}", newest.text),
            None => never(tries()).unwrap_or_else(|| "no try of it had ended".to_owned()),
        }
    }

    /// What each probe of a plan came to, by copy.
    pub(crate) fn summaries(&self, plan: &Plan) -> Vec<ProbeSummary> {
        let mut all = Vec::new();
        for probe in &plan.probes {
            let mut copies: BTreeMap<&str, Vec<&ProbeSample>> = BTreeMap::new();
            for one in self.of(None, &probe.name) {
                copies.entry(&one.of).or_default().push(one);
            }
            if copies.is_empty() {
                all.push(ProbeSummary {
                    name: probe.name.clone(),
                    ..ProbeSummary::default()
                });
            }
            let of_copies = copies.into_iter();
            all.extend(of_copies.map(|(of, tries)| summary(&probe.name, of, &tries)));
        }
        all
    }

    /// The probes that were never answered, each with why and for how long.
    pub(crate) fn silent(&self, plan: &Plan) -> Vec<String> {
        let probes = plan.probes.iter();
        let silent = probes.filter_map(|probe| {
            let tries = || self.of(None, &probe.name);
            if tries().next().is_none() {
                let name = &probe.name;
                return Some(format!(
                    "probe {name}: no try had ended when the steps were over"
                ));
            }
            let why = never(tries())?;
            Some(format!("probe {}: {why}", probe.name))
        });
        silent.collect()
    }
}

/// The newest try that went well.
trait RfindOk<'s> {
    fn rfind_ok(self) -> Option<&'s ProbeSample>;
}

impl<'s, I: Iterator<Item = &'s ProbeSample>> RfindOk<'s> for I {
    fn rfind_ok(self) -> Option<&'s ProbeSample> {
        self.filter(|one| one.is_ok()).last()
    }
}

/// How often nobody answered, if it was always.
fn never<'s>(tries: impl Iterator<Item = &'s ProbeSample>) -> Option<String> {
    let (mut count, mut first_s, mut last) = (0_u64, f64::INFINITY, None);
    for one in tries {
        if one.is_ok() {
            return None;
        }
        count += 1;
        first_s = first_s.min(one.t_s);
        last = Some(one);
    }
    let last: &ProbeSample = last?;
    let waited = show_seconds(last.t_s + last.latency_s - first_s);
    let times = if count == 1 { "try" } else { "tries" };
    let error = &last.error;
    Some(format!(
        "never answered, {count} {times} in {waited}; the last failed: {error}"
    ))
}

fn summary(name: &str, of: &str, tries: &[&ProbeSample]) -> ProbeSummary {
    let good = || tries.iter().filter(|one| one.is_ok());
    let failed = tries.iter().rfind(|one| !one.is_ok());
    let newest = good().next_back();
    let latency = |stat| number(tries.iter().copied(), &ProbeNumber::Latency(stat));
    ProbeSummary {
        name: name.to_owned(),
        of: of.to_owned(),
        tries: tries.len() as u64,
        failed: (tries.len() - good().count()) as u64,
        skipped: tries.iter().map(|one| one.skipped).sum(),
        p50_s: latency(Stat::P50),
        max_s: latency(Stat::Max),
        value: newest.and_then(|one| one.value),
        text: newest.map(|one| one.text.clone()).unwrap_or_default(),
        error: failed.map(|one| one.error.clone()).unwrap_or_default(),
    }
}

/// A summary in words.
pub(super) fn sentence(summary: &ProbeSummary) -> String {
    let mut text = counted(summary.tries, "try", "tries");
    if !summary.of.is_empty() {
        text = format!("{}: {text}", summary.of);
    }
    if summary.failed > 0 {
        text += &format!(", {} failed (the last: {})", summary.failed, summary.error);
    }
    if summary.skipped > 0 {
        text += &format!(", {} skipped", summary.skipped);
    }
    if let (Some(p50_s), Some(max_s)) = (summary.p50_s, summary.max_s) {
        let (p50, max) = (show_seconds(p50_s), show_seconds(max_s));
        text += &format!(", latency p50 {p50} max {max}");
    }
    match (summary.value, summary.text.as_str()) {
        (Some(value), _) => text += &format!(", newest value {}", show_count(value)),
        (None, "") => {}
        (None, newest) => text += &format!(", newest value {newest:?}"),
    }
    text
}

#[cfg(test)]
mod tests;
