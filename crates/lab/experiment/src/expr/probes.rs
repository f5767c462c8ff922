//! Metrics of probes: what they were answered.

use std::fmt;

use serde::Serialize;

use super::lexer::Fault;
use super::loads::own_step_only;
use super::parser::{Raw, Word};
use super::resolve::{Names, Use, no_stat, stat, unknown};
use super::{Comparison, Dimension, Metric, Op, Stat};

/// What expressions may say of a probe.
#[derive(Debug)]
pub(crate) struct ProbeUse {
    /// How many copies of a system it asks.
    pub(crate) copies: u32,
    /// Whether its answers have a value.
    pub(crate) has_value: bool,
}

/// What is told of a probe. In `until` and `always` it is that of the newest try of each copy,
/// in an expectation that of all tries.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProbeNumber {
    /// `value`, `value max`: numbers that were answered; without a statistic the newest.
    Value(Stat),
    /// `value == 'text'`: share of the answers that were this text.
    Is(String),
    /// `ok`: share of the tries that went well.
    Ok,
    /// `latency p99`: of the tries that went well, in seconds.
    Latency(Stat),
    /// `skipped`: tries that were left out because one before took too long.
    Skipped,
}

impl ProbeNumber {
    const WORDS: [&'static str; 4] = ["value", "ok", "latency", "skipped"];
    /// Of the newest values of several copies.
    const OF_COPIES: [Stat; 4] = [Stat::Min, Stat::Mean, Stat::Max, Stat::Sum];
    /// Of all values.
    const OF_VALUES: [Stat; 7] = [
        Stat::Min,
        Stat::Mean,
        Stat::P50,
        Stat::P90,
        Stat::P99,
        Stat::Max,
        Stat::Last,
    ];

    /// The unit that its values are in.
    pub(super) fn dimension(&self) -> Dimension {
        match self {
            Self::Value(_) => Dimension::Number,
            Self::Is(_) | Self::Ok => Dimension::Share,
            Self::Latency(_) => Dimension::Seconds,
            Self::Skipped => Dimension::Count,
        }
    }
}

impl fmt::Display for ProbeNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(Stat::Last) => f.write_str("value"),
            Self::Value(stat) => write!(f, "value {stat}"),
            Self::Is(text) => write!(f, "value is '{text}'"),
            Self::Ok => f.write_str("ok"),
            Self::Latency(stat) => write!(f, "latency {stat}"),
            Self::Skipped => f.write_str("skipped"),
        }
    }
}

/// The probe that a path begins with, and what follows its name: `alive.ok`, `probe.alive.ok`.
pub(super) fn named<'p>(path: &'p [Word], names: &Names) -> Option<(&'p Word, &'p [Word])> {
    let (path, is_meant) = match path {
        [first, rest @ ..] if first.text == "probe" => (rest, true),
        path => (path, false),
    };
    let (name, rest) = path.split_first()?;
    let is_probe = names.probes.contains_key(&name.text);
    (is_probe && (is_meant || !names.knows(&name.text))).then_some((name, rest))
}

/// `alive.ok`, `probe.leader.value max`, perhaps after the name of a step.
pub(super) fn metric(
    raw: &Raw,
    name: &Word,
    rest: &[Word],
    place: Use<'_>,
    names: &Names,
) -> Result<Metric, Fault> {
    let probe = &name.text;
    if let Use::Good(load) = place {
        let message = "a search is good by what its own requests tell";
        return Err(Fault::new(raw.subject.at(), message)
            .help(format!("write for instance \"{load} p99 < 20ms\"")));
    }
    if let Use::Until(_) = place {
        own_step_only(raw)?;
    }
    let word = match rest {
        [word] => word,
        [] => {
            let mut fault = Fault::new(raw.subject.at(), "which measure is meant?");
            let of_latency = |word: &Word| Stat::OF_LATENCY.iter().any(|s| s.name() == word.text);
            match raw.stats.first() {
                Some(word) if ProbeNumber::WORDS.contains(&word.text.as_str()) => {
                    fault.at.end = word.at.end;
                    fault.suggestion = Some(format!("{probe}.{}", word.text));
                }
                Some(word) if of_latency(word) => {
                    fault.at.end = word.at.end;
                    fault.suggestion = Some(format!("{probe}.latency {}", word.text));
                }
                _ => {
                    let known = ProbeNumber::WORDS.map(|word| format!("{probe}.{word}"));
                    fault = fault.help(format!("a probe tells {}", known.join(", ")));
                }
            }
            return Err(fault);
        }
        [_, further, ..] => {
            let message = format!("expected a comparison, found \"{}\"", further.text);
            return Err(Fault::new(further.at.clone(), message));
        }
    };
    let number = match word.text.as_str() {
        "value" => ProbeNumber::Value(value(raw, name, word, place, names)?),
        "ok" => {
            no_stat(raw)?;
            ProbeNumber::Ok
        }
        "latency" => ProbeNumber::Latency(stat(raw, &Stat::OF_LATENCY)?),
        "skipped" => {
            no_stat(raw)?;
            ProbeNumber::Skipped
        }
        _ => {
            return Err(unknown(
                word,
                "measure",
                "a probe tells",
                ProbeNumber::WORDS,
            ));
        }
    };
    Ok(Metric::Probe {
        step: raw.step.as_ref().map(|step| step.text.clone()),
        probe: probe.clone(),
        number,
    })
}

/// Which value is meant. Of several copies there is no one value, so that one has to be said.
fn value(
    raw: &Raw,
    name: &Word,
    word: &Word,
    place: Use<'_>,
    names: &Names,
) -> Result<Stat, Fault> {
    has_value(name, word, names)?;
    let copies = names.probes.get(&name.text).map_or(1, |used| used.copies);
    match (raw.stats.is_empty(), place) {
        (true, _) if copies == 1 => Ok(Stat::Last),
        (true, _) => {
            let message = format!("{} asks {copies} copies; which value is meant?", name.text);
            let of_now = ProbeNumber::OF_COPIES.map(Stat::name).join(", ");
            Err(Fault::new(raw.subject.at(), message).help(match place {
                Use::That => "put min, mean, max or another statistic after it".to_owned(),
                _ => format!("put one after it: {of_now}"),
            }))
        }
        (false, Use::That) => stat(raw, &ProbeNumber::OF_VALUES),
        (false, _) => stat(raw, &ProbeNumber::OF_COPIES),
    }
}

/// Refuses the value of a probe that has none.
pub(super) fn has_value(name: &Word, word: &Word, names: &Names) -> Result<(), Fault> {
    match names.probes.get(&name.text) {
        Some(used) if !used.has_value => {
            let message = format!("the answers of {} have no value", name.text);
            Err(Fault::new(word.at.clone(), message)
                .help("an http probe keeps one by value = \"json /POINTER\"; a tcp probe has none"))
        }
        _ => Ok(()),
    }
}

/// `version.value == 'v3'`: every answer was this text, or with `!=` none was.
pub(super) fn text(
    raw: &Raw,
    path: Option<&[Word]>,
    place: Use<'_>,
    names: &Names,
) -> Result<Comparison, Fault> {
    let found = path.and_then(|path| named(path, names));
    let Some((name, [word])) =
        found.filter(|(_, rest)| matches!(rest, [word] if word.text == "value"))
    else {
        let message = "expected a quantity such as 30s; only the value of a probe can be a text";
        return Err(Fault::new(raw.quantity.at.clone(), message));
    };
    has_value(name, word, names)?;
    no_stat(raw)?;
    if place != Use::That {
        own_step_only(raw)?;
    }
    let share = match raw.op {
        Op::Equal => 1.0,
        Op::NotEqual => 0.0,
        _ => {
            let message = "a text is compared by == or !=";
            return Err(Fault::new(raw.quantity.at.clone(), message));
        }
    };
    Ok(Comparison {
        metric: Metric::Probe {
            step: raw.step.as_ref().map(|step| step.text.clone()),
            probe: name.text.clone(),
            number: ProbeNumber::Is(raw.quantity.text.clone()),
        },
        op: Op::Equal,
        quantity: share,
        of: None,
        written: format!("'{}'", raw.quantity.text),
    })
}
