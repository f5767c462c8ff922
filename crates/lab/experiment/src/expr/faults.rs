//! Metrics of faults: what they did to a load or to a number of entities.

use std::fmt;

use serde::Serialize;

use super::lexer::Fault;
use super::parser::{Argument, Raw, Word};
use super::probes;
use super::resolve::{Names, Use, judged_only, no_stat, unknown};
use super::{Dimension, Metric};

/// What is looked at around a fault.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Affected {
    /// `traffic.good`, or `traffic`: requests of this load that were answered well.
    Load(String),
    /// `task.running`: how many entities are in a state.
    Entities {
        /// Kind of entity.
        what: String,
        /// Its state.
        state: String,
    },
    /// `alive.ok`, `leader.value`: what a probe was answered.
    Probe {
        /// Its name.
        probe: String,
        /// What is looked at.
        series: ProbeSeries,
    },
}

/// What is looked at of a probe around a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProbeSeries {
    /// `ok`: which tries went well.
    Ok,
    /// `value`: the number that was answered; of several copies the sum of the newest.
    Value,
}

impl ProbeSeries {
    const WORDS: [(&'static str, Self); 2] = [("ok", Self::Ok), ("value", Self::Value)];
}

impl fmt::Display for Affected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Load(load) => write!(f, "{load}.good"),
            Self::Entities { what, state } => write!(f, "{what}.{state}"),
            Self::Probe { probe, series } => {
                let word = ProbeSeries::WORDS.iter().find(|(_, known)| known == series);
                write!(f, "probe.{probe}.{}", word.map_or("", |(word, _)| word))
            }
        }
    }
}

/// A number that a fault leaves behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultNumber {
    /// `detection(…)`: from the fault's start until something was seen, in seconds.
    Detection,
    /// `recovery(…)`: from the fault's start until everything was as before, in seconds.
    Recovery,
    /// `recovery_from_end(…)`: from the fault's end, in seconds; 0 if it was before.
    RecoveryFromEnd,
    /// `depth(…)`: the largest distance from what was usual, as a share of it.
    Depth,
    /// `lost(…)`: requests that failed, or the sum over time of the entities that were
    /// missing, in entity-seconds.
    Lost,
}

impl FaultNumber {
    pub(super) const WORDS: [(&str, Self); 5] = [
        ("detection", Self::Detection),
        ("recovery", Self::Recovery),
        ("recovery_from_end", Self::RecoveryFromEnd),
        ("depth", Self::Depth),
        ("lost", Self::Lost),
    ];

    /// The unit that its values are in.
    pub(super) fn dimension(self) -> Dimension {
        match self {
            Self::Detection | Self::Recovery | Self::RecoveryFromEnd => Dimension::Seconds,
            Self::Depth => Dimension::Share,
            Self::Lost => Dimension::Count,
        }
    }
}

impl fmt::Display for FaultNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = Self::WORDS.iter().find(|(_, known)| known == self);
        f.write_str(word.map_or("", |(word, _)| word))
    }
}

/// `recovery(traffic.good)`, perhaps after the name of a step.
pub(super) fn number(
    raw: &Raw,
    number: FaultNumber,
    argument: &Argument,
    place: Use<'_>,
    names: &Names,
) -> Result<Metric, Fault> {
    if place != Use::That {
        return Err(judged_only(raw));
    }
    no_stat(raw)?;
    let known = names.faults.iter().map(String::as_str);
    match &raw.step {
        Some(step) if !names.faults.contains(&step.text) => {
            let mut fault = unknown(step, "step with a fault", "steps with faults", known);
            fault.message = format!("the step {:?} has no fault", step.text);
            return Err(fault);
        }
        None if names.faults.is_empty() => {
            let message = format!("{number} is that from a fault, and no step has one");
            return Err(Fault::new(raw.subject.at(), message)
                .help("add for instance fault = { kill = \"NAME\", for = \"10s\" } to a step"));
        }
        _ => {}
    }
    Ok(Metric::Fault {
        step: raw.step.as_ref().map(|step| step.text.clone()),
        of: affected(argument, number, names)?,
        number,
    })
}

fn affected(argument: &Argument, number: FaultNumber, names: &Names) -> Result<Affected, Fault> {
    let path = match argument {
        Argument::Path(path) => path.as_slice(),
        Argument::Quoted(word) => {
            let message = format!("what is to recover from the faults of {:?}?", word.text);
            return Err(Fault::new(word.at.clone(), message).help(format!(
                "write '{}': {number}(LOAD.good), or KIND.STATE for entities",
                word.text
            )));
        }
    };
    if let Some((name, rest)) = probes::named(path, names) {
        let series = match rest {
            [] => ProbeSeries::Ok,
            [word, ..] => {
                let mut known = ProbeSeries::WORDS.into_iter();
                let Some((_, series)) = known.find(|(known, _)| *known == word.text) else {
                    let what = format!("of {} is told", name.text);
                    let known = ProbeSeries::WORDS.map(|(word, _)| word);
                    return Err(unknown(word, "measure", &what, known));
                };
                if series == ProbeSeries::Value {
                    probes::has_value(name, word, names)?;
                }
                series
            }
        };
        return Ok(Affected::Probe {
            probe: name.text.clone(),
            series,
        });
    }
    let is_load = |word: &Word| names.loads.contains_key(&word.text);
    match path {
        [load] if is_load(load) => Ok(Affected::Load(load.text.clone())),
        [load, good] if is_load(load) && good.text == "good" => {
            Ok(Affected::Load(load.text.clone()))
        }
        [load, other] if is_load(load) => {
            let what = format!("of {} is told", load.text);
            Err(unknown(other, "measure", &what, ["good"]))
        }
        [what, state] if let Some(states) = names.entities.get(&what.text) => {
            if !states.contains(&state.text) {
                let all = format!("states of {}", what.text);
                let states = states.iter().map(String::as_str);
                return Err(unknown(state, "state", &all, states));
            }
            Ok(Affected::Entities {
                what: what.text.clone(),
                state: state.text.clone(),
            })
        }
        [first, ..] => {
            let known = names.loads.keys().chain(names.probes.keys());
            let known = known.chain(names.entities.keys());
            let known = known.map(String::as_str);
            let all = "loads, probes and kinds of entity";
            Err(unknown(first, "load or kind of entity", all, known))
        }
        [] => Err(Fault::new(0..0, "expected LOAD.good or KIND.STATE")),
    }
}
