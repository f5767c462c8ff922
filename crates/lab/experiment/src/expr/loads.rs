//! Metrics of loads and searches: which one is meant, and whether it is known there.

use document::listed;

use super::lexer::Fault;
use super::parser::{Of, Raw, Word};
use super::resolve::{Names, Use, form, judged_only, unknown};
use super::{Dimension, KneeEnd, LoadQuantity, Metric, Stat};

/// Where a load runs.
#[derive(Debug, Default)]
pub(crate) struct LoadUse {
    /// It runs by itself.
    pub(crate) probe: bool,
    /// Steps in which it runs, without those that search.
    pub(crate) steps: Vec<String>,
    /// Steps that vary its rate.
    pub(crate) searches: Vec<String>,
}

/// `traffic p99`, perhaps after the name of a step.
pub(super) fn load(raw: &Raw, name: &Word, place: Use<'_>, names: &Names) -> Result<Metric, Fault> {
    let Some(used) = names.loads.get(&name.text) else {
        let known = names.loads.keys().map(String::as_str);
        return Err(unknown(name, "load", "loads and probes", known));
    };
    let quantity = quantity(raw)?;
    match place {
        Use::Until(step) => {
            own_step_only(raw)?;
            if !used.steps.iter().any(|known| known == step) {
                let message = format!("{} does not run in this step", name.text);
                return Err(Fault::new(name.at.clone(), message).help(match used.probe {
                    true => "the probe's `from` and `to` say in which steps it runs".to_owned(),
                    false => format!("add load = {{ {} = \"500/s\" }} to the step", name.text),
                }));
            }
        }
        Use::Good(varied) => {
            own_step_only(raw)?;
            if quantity == LoadQuantity::Outage {
                let message = "a search judges holds at one rate; `outage` is for steps";
                return Err(Fault::new(name.at.clone(), message)
                    .help("limit the share of failures: `errors`"));
            }
            if name.text != varied {
                let message = format!(
                    "the search varies {varied}; only its own requests can say what is good"
                );
                return Err(Fault::new(name.at.clone(), message));
            }
        }
        Use::That => measured_in(raw, name, used, quantity)?,
    }
    Ok(Metric::Load {
        step: raw.step.as_ref().map(|step| step.text.clone()),
        load: name.text.clone(),
        quantity,
    })
}

/// A metric of now has no other step.
pub(super) fn own_step_only(raw: &Raw) -> Result<(), Fault> {
    match &raw.step {
        None => Ok(()),
        Some(step) => Err(Fault::new(
            step.at.clone(),
            "what is measured now is that of this step; only an [[expect]] names one",
        )),
    }
}

/// Checks that it is clear which of a load's results is meant.
fn measured_in(
    raw: &Raw,
    name: &Word,
    used: &LoadUse,
    quantity: LoadQuantity,
) -> Result<(), Fault> {
    let load = &name.text;
    let which = |step: &String| format!("'{step}': {load} {}", stats_of(raw));
    match (&raw.step, used.steps.as_slice()) {
        (Some(step), steps) if steps.contains(&step.text) => Ok(()),
        (Some(step), _) if used.searches.contains(&step.text) => {
            let message = format!(
                "the step {:?} searches, so {load} has no one rate there",
                step.text
            );
            Err(Fault::new(step.at.clone(), message).help(format!(
                "a search tells '{}': knee.rate, knee.low and knee.high",
                step.text
            )))
        }
        (Some(step), steps) => {
            let message = format!("{load} does not run in the step {:?}", step.text);
            Err(Fault::new(step.at.clone(), message).help(match steps {
                [] => "it runs in no step".to_owned(),
                steps => format!("it runs in: {}", listed(steps)),
            }))
        }
        (None, [_]) => Ok(()),
        // Counts of several steps add up.
        (None, [_, ..]) if quantity.dimension() == Dimension::Count => Ok(()),
        (None, _) if used.probe => Ok(()),
        (None, []) => {
            let message = format!("{load} runs in no step");
            Err(
                Fault::new(name.at.clone(), message).help(match used.searches.is_empty() {
                    true => format!("add load = {{ {load} = \"500/s\" }} to a step"),
                    false => "a search tells knee.rate, knee.low and knee.high".to_owned(),
                }),
            )
        }
        (None, steps) => {
            let message = format!("{load} runs in several steps; which one is meant?");
            let forms: Vec<String> = steps.iter().map(which).collect();
            Err(Fault::new(name.at.clone(), message)
                .help(format!("write one of {}", listed(&forms))))
        }
    }
}

fn stats_of(raw: &Raw) -> String {
    let words: Vec<&str> = raw.stats.iter().map(|word| word.text.as_str()).collect();
    words.join(" ")
}

/// The words after the name of a load.
fn quantity(raw: &Raw) -> Result<LoadQuantity, Fault> {
    let latency = |word: &Word| {
        let mut known = Stat::OF_LATENCY.into_iter();
        known.find(|stat| stat.name() == word.text)
    };
    let known = || -> Vec<&str> {
        let words = LoadQuantity::WORDS.map(|(word, _)| word).into_iter();
        words.chain(Stat::OF_LATENCY.map(Stat::name)).collect()
    };
    match raw.stats.as_slice() {
        [] => Err(
            Fault::new(raw.subject.at(), "which quantity is meant?").help(format!(
                "put one after the load: {}, actual p99",
                listed(&known())
            )),
        ),
        [word] => {
            let found = LoadQuantity::WORDS
                .iter()
                .find(|(known, _)| *known == word.text);
            let found = found.map(|(_, quantity)| *quantity);
            found
                .or(latency(word).map(LoadQuantity::Latency))
                .ok_or_else(|| {
                    let message = format!("unknown quantity \"{}\"", word.text);
                    // The nearest name is often another percentile, which is not meant.
                    Fault::new(word.at.clone(), message)
                        .help(format!("a load has: {}, actual p99", listed(&known())))
                })
        }
        [first, word] if first.text == "actual" => match latency(word) {
            Some(stat) => Ok(LoadQuantity::Actual(stat)),
            None => {
                let known = Stat::OF_LATENCY.map(Stat::name);
                let message = format!("unknown statistic \"{}\"", word.text);
                Err(Fault::new(word.at.clone(), message)
                    .help(format!("statistics: {}", listed(&known))))
            }
        },
        [_, further, ..] => Err(Fault::new(
            further.at.clone(),
            format!("expected a comparison, found \"{}\"", further.text),
        )),
    }
}

/// `knee.rate`, perhaps after the name of a step.
pub(super) fn knee(raw: &Raw, end: &Word, place: Use<'_>, names: &Names) -> Result<Metric, Fault> {
    if place != Use::That {
        return Err(judged_only(raw));
    }
    super::resolve::no_stat(raw)?;
    let found = KneeEnd::WORDS.iter().find(|(word, _)| *word == end.text);
    let Some((_, found)) = found else {
        let known = KneeEnd::WORDS.map(|(word, _)| word);
        return Err(unknown(end, "rate", "a knee has", known));
    };
    let searches = &names.searches;
    match (&raw.step, searches.as_slice()) {
        (_, []) => Err(
            Fault::new(raw.subject.at(), "no step of the file searches for a knee")
                .help("add a [[step]] with search = { vary = \"NAME.rate\", from = \"100/s\" }"),
        ),
        (Some(step), _) if !searches.contains(&step.text) => {
            let message = format!("the step {:?} does not search", step.text);
            let help = format!("steps that do: {}", listed(searches));
            Err(Fault::new(step.at.clone(), message).help(help))
        }
        (None, [_, _, ..]) => {
            let message = "several steps search; which one is meant?";
            let forms: Vec<String> = searches
                .iter()
                .map(|step| format!("'{step}': knee.{}", end.text))
                .collect();
            Err(Fault::new(raw.subject.at(), message)
                .help(format!("write one of {}", listed(&forms))))
        }
        (step, _) => Ok(Metric::Knee {
            step: step.as_ref().map(|step| step.text.clone()),
            end: *found,
        }),
    }
}

/// Checks what stands after `of`.
pub(super) fn share_of(raw: &Raw, metric: &Metric) -> Result<(), Fault> {
    let is_sent = matches!(
        metric,
        Metric::Load {
            quantity: LoadQuantity::Sent,
            ..
        }
    );
    match &raw.of {
        None | Some(Of::Metric(_)) => Ok(()),
        Some(Of::Word(word)) if is_sent && word.text == "planned" => Ok(()),
        Some(Of::Word(word)) if is_sent => {
            Err(unknown(word, "whole", "sent is a share of", ["planned"]))
        }
        Some(Of::Word(word)) => Err(Fault::new(
            word.at.clone(),
            format!("{metric} is not a share of \"{}\"", word.text),
        )),
    }
}

/// A metric that begins with `probe`, of one that is an open load.
pub(super) fn probe(
    raw: &Raw,
    path: &[Word],
    place: Use<'_>,
    names: &Names,
) -> Result<Metric, Fault> {
    match path {
        [_, name, rest @ ..] => match names.loads.get(&name.text) {
            Some(used) if used.probe && rest.is_empty() => load(raw, name, place, names),
            Some(used) if used.probe => Err(form(raw, "NAME p99 or NAME ok")),
            _ => {
                let probes = names.loads.iter().filter(|(_, used)| used.probe);
                let known = probes.map(|(name, _)| name).chain(names.probes.keys());
                Err(unknown(name, "probe", "probes", known.map(String::as_str)))
            }
        },
        _ => Err(form(raw, "probe.NAME.ok")),
    }
}
