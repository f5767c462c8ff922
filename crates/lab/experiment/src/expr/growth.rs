//! Growth: by how much something rose within a step, where a flat line is expected.

use std::fmt;

use serde::Serialize;

use super::Metric;
use super::lexer::Fault;
use super::metric::{WATCHES, watch_name};
use super::parser::{Argument, Raw, Word};
use super::probes;
use super::resolve::{Names, Use, judged_only, no_stat, unknown, watched};
use crate::plan::Watch;

/// What may grow.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Growing {
    /// `system.bbs.rss`: a watched quantity; of several copies the sum.
    Process {
        /// Name of the system or fleet.
        system: String,
        /// The quantity.
        quantity: Watch,
    },
    /// `loop.convergence`: length of its turns.
    Loop(String),
    /// `lists.latency`: how long the answers to a probe took.
    Latency(String),
    /// `waiting.value`: the number that a probe was answered; of several copies the sum of the
    /// newest.
    Value(String),
}

impl fmt::Display for Growing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process { system, quantity } => {
                write!(f, "system.{system}.{}", watch_name(*quantity))
            }
            Self::Loop(name) => write!(f, "loop.{name}"),
            Self::Latency(probe) => write!(f, "probe.{probe}.latency"),
            Self::Value(probe) => write!(f, "probe.{probe}.value"),
        }
    }
}

/// The word of the function.
pub(super) const WORD: &str = "growth";
/// What of a probe may grow.
const OF_PROBES: [&str; 2] = ["latency", "value"];

/// `'step name': growth(system.bbs.rss)`.
pub(super) fn growth(
    raw: &Raw,
    argument: &Argument,
    place: Use<'_>,
    names: &Names,
) -> Result<Metric, Fault> {
    if place != Use::That {
        return Err(judged_only(raw));
    }
    no_stat(raw)?;
    let Some(step) = &raw.step else {
        let message = "growth is that within a step, of which the name is missing";
        return Err(Fault::new(raw.subject.at(), message)
            .help("put it before: 'STEP': growth(system.NAME.rss)"));
    };
    Ok(Metric::Growth {
        step: step.text.clone(),
        of: growing(raw, argument, names)?,
    })
}

fn growing(raw: &Raw, argument: &Argument, names: &Names) -> Result<Growing, Fault> {
    let path = match argument {
        Argument::Path(path) => path.as_slice(),
        Argument::Quoted(_) => &[],
    };
    if let Some((name, rest)) = probes::named(path, names) {
        return of_probe(raw, name, rest, names);
    }
    let words: Vec<&str> = path.iter().map(|word| word.text.as_str()).collect();
    match (words.as_slice(), path) {
        (["system", _, _], [_, system, quantity]) => Ok(Growing::Process {
            system: system.text.clone(),
            quantity: watched(system, quantity, names)?,
        }),
        (["loop", _], [_, name]) if names.loops.contains(&name.text) => {
            Ok(Growing::Loop(name.text.clone()))
        }
        (["loop", _], [_, name]) => {
            let known = names.loops.iter().map(String::as_str);
            Err(unknown(name, "loop", "loops", known))
        }
        (["probe", name, ..], [_, word, ..]) if !names.probes.contains_key(*name) => {
            let known = names.probes.keys().map(String::as_str);
            Err(unknown(word, "probe", "probes", known))
        }
        _ => {
            let message = "expected what may grow: a system, a loop or a probe";
            let quantities = WATCHES.map(watch_name).join(", ");
            Err(Fault::new(raw.subject.at(), message).help(format!(
                "for instance system.NAME.rss (or {quantities}), loop.NAME, NAME.latency or NAME.value of a probe"
            )))
        }
    }
}

fn of_probe(raw: &Raw, name: &Word, rest: &[Word], names: &Names) -> Result<Growing, Fault> {
    match rest {
        [word] if word.text == "latency" => Ok(Growing::Latency(name.text.clone())),
        [word] if word.text == "value" => {
            probes::has_value(name, word, names)?;
            Ok(Growing::Value(name.text.clone()))
        }
        [word, ..] => {
            let what = format!("of {} may grow", name.text);
            Err(unknown(word, "measure", &what, OF_PROBES))
        }
        [] => {
            let message = format!("what of {} may grow?", name.text);
            Err(Fault::new(raw.subject.at(), message)
                .help(format!("{0}.latency or {0}.value", name.text)))
        }
    }
}
