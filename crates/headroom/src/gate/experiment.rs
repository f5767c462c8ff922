//! A gate over an experiment file: each run of a pair is one of the experiment.

use std::path::Path;

use anyhow::{Context, Result, bail};
use lab_experiment::plan::Plan;
use lab_judgement::{Gated, Metric};
use lab_runner::{Display, Finished, Options, RunError};
use lab_store::{Event, EventKind, MadeFrom, Outcome};

use super::args::{GateArgs, LIMIT};
use super::pairs::{Sample, Side};
use super::programs::Programs;
use crate::lab::ExperimentFile;
use crate::output::{eprint, explained};

/// Metrics that a gate judges at most.
const METRICS_MOST: usize = 32;

/// The runs of both sides.
pub(crate) struct Experiments<'a> {
    file: &'a ExperimentFile,
    out: &'a Path,
    /// What the base runs, and what the new one does.
    plans: [Plan; 2],
    sides: &'a Sides,
    /// Runs of each that were made.
    made: [usize; 2],
}

/// Constants of each side, the base first, and the variants that they are, if the file has such.
pub(crate) struct Sides {
    pub(crate) set: [Vec<(String, String)>; 2],
    variants: [Option<String>; 2],
}

/// The constants of both sides: those for both, then those of its variant, then its own.
pub(crate) fn sides(plan: &Plan, args: &GateArgs, programs: &Programs) -> Result<Sides> {
    let named = plan.gates.as_ref().and_then(|gates| gates.sides.as_ref());
    let usual = ["base".to_owned(), "new".to_owned()];
    let names = named.unwrap_or(&usual);
    let own = [
        (&args.base_set, &programs[0]),
        (&args.new_set, &programs[1]),
    ];
    let own = own.map(|(set, program)| set.iter().chain(program).cloned().collect::<Vec<_>>());
    let of_variant = |name: &String| {
        let mut variants = plan.variants.iter();
        let found = variants.find(|variant| variant.name == *name);
        found.map(|variant| variant.set.clone()).unwrap_or_default()
    };
    let each =
        [0, 1].map(|at| [args.set.clone(), of_variant(&names[at]), own[at].clone()].concat());
    let known = |name: &String| plan.variants.iter().any(|variant| variant.name == *name);
    if each[0] == each[1] {
        // Variants of two names are what the file wants compared, whatever is in them.
        if names[0] == names[1] || !names.iter().all(known) {
            bail!(
                "compare: both sides are the same; say what differs with --base-set and --new-set, or with \
                 [variants] in the file"
            );
        }
        eprint(format_args!(
            "headroom: {} and {} have the same values: what differs is the machine's noise",
            names[0], names[1]
        ));
    }
    Ok(Sides {
        set: each,
        variants: names.clone().map(|name| Some(name).filter(known)),
    })
}

/// What is compared: what the file's gates are about, or else its expectations.
pub(crate) fn gated(plan: &Plan, args: &GateArgs) -> Result<Vec<Gated>> {
    let judged = |name: String, unit, direction, limit: Option<f64>| Gated {
        limit_share: args.limit(&name).or(limit).unwrap_or(LIMIT),
        metric: Metric {
            direction: args.direction(&name).unwrap_or(direction),
            unit,
            name,
        },
    };
    let found: Vec<Gated> = match &plan.gates {
        Some(gates) => {
            let each = gates.metrics.iter().map(|gated| {
                let (metric, limit) = (&gated.metric, Some(gated.limit_share));
                let unit = metric.dimension().unit();
                judged(metric.to_string(), unit, gated.direction, limit)
            });
            each.collect()
        }
        None => {
            let each = plan.metrics().into_iter();
            each.map(|(name, (metric, direction))| {
                judged(name, metric.dimension().unit(), direction, None)
            })
            .collect()
        }
    };
    match found.len() {
        0 => bail!(
            "compare: the file has neither [[gate]] nor [[expect]], so there is nothing to compare; add for \
             instance [[gate]] with metric = \"traffic p99\" and fail = \"worse than 5%\""
        ),
        1..=METRICS_MOST => Ok(found),
        count => bail!(
            "compare: the expectations are about {count} metrics, and a gate judges {METRICS_MOST} at most: \
             name the few that matter in [[gate]]"
        ),
    }
}

impl<'a> Experiments<'a> {
    /// Checks the file for both sides; `None` once every mistake was shown.
    pub(crate) fn of(file: &'a ExperimentFile, out: &'a Path, sides: &'a Sides) -> Option<Self> {
        let [base, new] = sides.set.each_ref().map(|set| file.plan(set));
        Some(Self {
            file,
            out,
            plans: [base?, new?],
            sides,
            made: [0, 0],
        })
    }

    /// A run of a side.
    pub(crate) fn sample(&mut self, side: Side, metrics: &[Gated]) -> Result<Sample> {
        let at = match side {
            Side::Base => 0,
            Side::New => 1,
        };
        self.made[at] += 1;
        let (number, word) = (self.made[at], side.word());
        let mut options = Options::for_this_binary(self.out).context("find the own binary")?;
        options.base.clone_from(&self.file.folder);
        options.made_from = Some(MadeFrom {
            side: Some(word.to_owned()),
            variant: self.sides.variants[at].clone(),
            ..self.file.made_from(&self.sides.set[at])
        });
        options.display = Display::None;
        let text = &self.file.source.text;
        let made = match lab_runner::run(self.plans[at].clone(), text, options) {
            Ok(finished) => of_run(&finished, metrics),
            // Before the first step nothing is written of it.
            Err(RunError::Early {
                interrupted: true, ..
            }) => Err(INTERRUPTED.into()),
            Err(error) => Err(explained(&error.into())),
        };
        match made {
            Ok((values, lacks, id)) => {
                eprint(format_args!("headroom: pair {number}: {word}: {id}"));
                Ok(Sample {
                    values,
                    failure: lacks,
                })
            }
            // What does not work at all need not be tried again.
            Err(why) if number == 1 || why == INTERRUPTED => bail!("{word}: {why}"),
            Err(why) => {
                eprint(format_args!("headroom: pair {number}: {word}: {why}"));
                Ok(Sample {
                    values: vec![None; metrics.len()],
                    failure: Some(why),
                })
            }
        }
    }
}

const INTERRUPTED: &str = "the run was interrupted";

/// Values of a run, why some are missing, and its identity; an error if it did not come to its end.
type Run = (Vec<Option<f64>>, Option<String>, String);

fn of_run(finished: &Finished, metrics: &[Gated]) -> Result<Run, String> {
    let (folder, verdict) = (&finished.folder, &finished.verdict);
    let events: Vec<Event> = folder.records().map_err(|error| error.to_string())?;
    if events
        .iter()
        .any(|event| event.kind == EventKind::Interrupted)
    {
        return Err(INTERRUPTED.into());
    }
    let at = folder.path().display();
    // A step that failed was not measured to its end.
    if let (Outcome::Error | Outcome::Fail, Some(reason)) = (verdict.outcome, &verdict.reason) {
        return Err(format!("{at}: {reason}"));
    }
    let measured = folder.metrics().map_err(|error| error.to_string())?;
    let value = |gated: &Gated| {
        let mut found = measured.iter();
        let found = found.find(|one| one.metric.name == gated.metric.name);
        found.map(|one| one.value)
    };
    let values: Vec<Option<f64>> = metrics.iter().map(value).collect();
    let missing = metrics
        .iter()
        .zip(&values)
        .filter(|(_, value)| value.is_none());
    let missing: Vec<&str> = missing
        .map(|(gated, _)| gated.metric.name.as_str())
        .collect();
    let lacks = (!missing.is_empty()).then(|| {
        let why = verdict.reason.as_ref();
        let why = why.map_or_else(String::new, |why| format!(": {why}"));
        format!("{at}: no value for {}{why}", missing.join(", "))
    });
    Ok((values, lacks, folder.id()))
}
