//! `[[step]]` and `[[expect]]`: what happens, and what must hold.

use std::time::Duration;

use document::Problem;

use super::always::always;
use super::drivers::Makers;
use super::entries::Entry;
use super::faults;
use super::fields::{Field, Fields, Value};
use super::loads::{self, CaptureSource, KnownLoads};
use super::probes;
use super::process::{Found, LONGEST, SHORTEST};
use super::settings::{self, MOST};
use super::signals;
use super::values::Reader;
use crate::expr::{Expr, Names, Use, compile};
use crate::names::Place;
use crate::plan::{Expect, Make, Rate, Step, Wait};
use units::UnitError;

/// How long a command may take when a file does not say.
const RUN_WITHIN: Duration = Duration::from_secs(600);
/// Keys of every `make`.
pub(super) const MAKE_KEYS: [&str; 5] = ["what", "count", "rate", "in_flight", "as"];
/// Requests that wait for an answer at any moment, when a file does not say.
const IN_FLIGHT: u64 = 100;
/// Most requests that wait for an answer at any moment.
const MOST_IN_FLIGHT: u64 = 100_000;
/// Most requests a second that can be asked for.
const FASTEST: f64 = 10_000_000.0;

/// Keys of a step that take time.
const WORKS: [&str; 7] = ["make", "hold", "http", "run", "wait", "search", "fault"];

/// Reads a `[[step]]`, and adds to `names` where loads run and what is searched for.
pub(super) fn step(
    reader: &mut Reader<'_>,
    entry: &Entry<'_>,
    makers: &Makers,
    names: &mut Names,
    under: &mut KnownLoads<'_>,
    (systems, probes): (&[Found], &[probes::Found]),
) -> Option<Step> {
    let known = [
        "name",
        "make",
        "hold",
        "signal",
        "http",
        "run",
        "run_within",
        "keep",
        "wait",
        "load",
        "search",
        "while",
        "fit",
        "fault",
    ];
    let fields = Fields::open(entry.value, entry.label, &known, reader)?;
    if !fields
        .keys()
        .any(|(key, _)| !["name", "run_within", "keep", "while"].contains(&key))
    {
        let message = format!("this {} does nothing", entry.label);
        let problem = Problem::new(fields.span.clone(), message);
        reader
            .problem(problem.help("give it make, hold, signal, http, run, wait, fault or search"));
    } else if let Some(field) = fields.get("load")
        && !WORKS.iter().any(|key| fields.get(key).is_some())
    {
        let problem = Problem::new(field.span(), "how long does this load run?");
        reader.problem(problem.help("add hold = \"30s\", or something else that takes time"));
    }
    let name = entry.name.clone().unwrap_or_default();
    let loads = loads::loads(reader, &fields, under);
    // Also of what is wrong, so that what is said of its results is no second mistake.
    for load in loads::run_in(&fields) {
        if let Some(used) = names.loads.get_mut(load) {
            used.steps.push(name.clone());
        }
    }
    let named = faults::Named {
        systems,
        loads: under.loads,
        probes,
        step: &name,
        steps: &names.steps,
        searches: &under.searching,
    };
    let faults = faults::faults(reader, &fields, named);
    if fields.get("fault").is_some() {
        names.faults.push(name.clone());
    }
    let search = loads::search(reader, &fields, under.loads, names);
    if let Some(Some(search)) = &search {
        under.searches.push((name.clone(), search.load.clone()));
        names.searches.push(name.clone());
        if let Some(used) = names.loads.get_mut(&search.load) {
            used.searches.push(name.clone());
        }
    }
    let make = fields.optional("make", |field| make(reader, field.value, makers));
    let hold = fields.optional("hold", |field| reader.duration(field, SHORTEST..=LONGEST));
    let signals = signals::signals(reader, &fields, named);
    let calls = loads::calls(reader, &fields, &name);
    let run = fields.optional("run", |field| {
        reader
            .template(field, Place::Command)
            .filter(|template| !template.0.is_empty())
    });
    let run_within = fields.value_or("run_within", RUN_WITHIN, |field| {
        reader.duration(field, SHORTEST..=LONGEST)
    });
    let keep = loads::keep(reader, &fields, &name, CaptureSource::Output);
    if let (Some(field), None) = (fields.get("keep"), fields.get("run")) {
        let problem = Problem::new(
            field.span(),
            "\"keep\" goes with \"run\": it is of what that prints",
        );
        reader.problem(problem.help("what an answer says is kept in the `http` itself"));
    }
    let wait = fields.optional("wait", |field| {
        wait(reader, field.value, makers, names, &name)
    });
    let always = always(reader, &fields, |reader, field| {
        expression(reader, field, Use::Until(&name), makers, names)
    });
    Some(Step {
        name: entry.name.clone()?,
        make: make?,
        hold: hold?,
        signals: signals?,
        calls: calls?,
        run: run?,
        keep: keep?,
        run_within: run_within?,
        wait: wait?,
        always: always?,
        loads: loads?,
        faults: faults?,
        search: search?,
    })
}

/// Reports the first step that needs a driver, in a file that has none; what further
/// steps make and wait for is then not reported one by one.
pub(super) fn without_driver(
    reader: &mut Reader<'_>,
    steps: &[Entry<'_>],
    measures: bool,
    makers: &mut Makers,
) {
    let needs = steps.iter().find_map(|entry| {
        let table = entry.value.get_ref().as_table()?;
        // A wait may also look at what loads and probes see.
        let key = |key: &&str| *key == "make" || *key == "wait" && !measures;
        table.keys().find(|name| key(&name.get_ref().as_ref()))
    });
    if let Some(key) = needs {
        let message = "a driver makes and counts entities, and the file has no [[driver]]";
        let problem = Problem::new(key.span(), message);
        reader.problem(problem.help("add a [[driver]] with `kind` or `run`"));
        makers.incomplete = true;
    }
}

fn make(reader: &mut Reader<'_>, value: &Value<'_>, makers: &Makers) -> Option<Make> {
    let fields = Fields::open_any(value, "\"make\"", reader)?;
    let what = fields
        .require("what", "\"...\", a kind of entity", reader)
        .and_then(|field| reader.text(field, "a kind of entity"));
    let kind = what.and_then(|text| {
        let found = makers.kinds.iter().find(|kind| kind.what == text.as_str());
        if found.is_none() && !makers.incomplete {
            let known = makers.kinds.iter().map(|kind| kind.what.as_str());
            let all = "kinds of entity that the drivers make";
            let problem = reader.unknown(&text, "kind of entity", all, known);
            reader.problem(problem);
        }
        found
    });
    let options = kind.map_or(&[][..], |kind| &kind.options);
    let later = settings::later(reader, &fields, options);
    let count = match later.contains_key("count") {
        true => Some(0),
        false => fields
            .require("count", "100", reader)
            .and_then(|field| reader.count(field, 0..=MOST)),
    };
    let rate = fields.value_or("rate", Rate::Max, |field| rate(reader, field));
    let in_flight = fields.value_or("in_flight", IN_FLIGHT, |field| {
        reader.count(field, 1..=MOST_IN_FLIGHT)
    });
    let kind = kind?;
    let shape = fields.optional("as", |field| {
        if kind.shapes.is_empty() {
            let message = format!("entities of kind \"{}\" have one shape only", kind.what);
            return reader.refuse(Problem::new(field.span(), message));
        }
        let shapes: Vec<(&str, &str)> = kind
            .shapes
            .iter()
            .map(|s| (s.as_str(), s.as_str()))
            .collect();
        reader.choice(field, &shapes).map(str::to_owned)
    });
    let known = MAKE_KEYS
        .into_iter()
        .chain(later.keys().map(String::as_str));
    let known: Vec<&str> = known.collect();
    let options = settings::read(reader, &fields, &known, &kind.options);
    Some(Make {
        what: kind.what.clone(),
        count: count?,
        rate: rate?,
        in_flight: u32::try_from(in_flight?).ok()?,
        shape: shape?,
        options: options
            .into_iter()
            .map(|(option, value)| (option.key.clone(), value))
            .collect(),
        later,
    })
}

fn rate(reader: &mut Reader<'_>, field: Field<'_>) -> Option<Rate> {
    let read = |text: &str| match text {
        "max" => Ok(Rate::Max),
        _ if text.starts_with(|c: char| c.is_ascii_digit()) => {
            units::parse_rate(text).map(Rate::PerSecond)
        }
        _ => {
            let message = format!("expected max or a rate such as 500/s, found \"{text}\"");
            Err(UnitError::new(0..text.len(), message))
        }
    };
    let rate = reader.rate(field, "\"max\" or a rate such as \"500/s\"", read)?;
    match rate {
        Rate::PerSecond(rate) if rate <= 0.0 || rate > FASTEST => reader.refuse(Problem::new(
            field.span(),
            "a rate is above 0 and at most 10,000,000/s",
        )),
        rate => Some(rate),
    }
}

fn wait(
    reader: &mut Reader<'_>,
    value: &Value<'_>,
    makers: &Makers,
    names: &Names,
    step: &str,
) -> Option<Wait> {
    let known = ["until", "steady", "at_most"];
    let fields = Fields::open(value, "\"wait\"", &known, reader)?;
    let until = fields
        .require("until", "\"task.resolved == 100\"", reader)
        .and_then(|field| expression(reader, field, Use::Until(step), makers, names));
    let steady = fields.value_or("steady", Duration::ZERO, |field| {
        reader.duration(field, Duration::ZERO..=LONGEST)
    });
    let at_most = fields
        .require("at_most", "\"2m\", for every wait has an end", reader)
        .and_then(|field| Some((reader.duration(field, SHORTEST..=LONGEST)?, field)));
    let (steady, (at_most, field)) = (steady?, at_most?);
    if steady >= at_most {
        let message = format!(
            "\"at_most\" must be longer than \"steady\", which is {}",
            units::write_duration(steady)
        );
        reader.problem(Problem::new(field.span(), message));
    }
    Some(Wait {
        until: until?,
        steady,
        at_most,
    })
}

/// Reads an `[[expect]]`.
pub(super) fn expect(
    reader: &mut Reader<'_>,
    value: &Value<'_>,
    makers: &Makers,
    names: &Names,
) -> Option<Expect> {
    let fields = Fields::open(value, "[[expect]]", &["that"], reader)?;
    let that = fields.require("that", "\"task.complete == 100%\"", reader)?;
    Some(Expect {
        that: expression(reader, that, Use::That, makers, names)?,
    })
}

fn expression(
    reader: &mut Reader<'_>,
    field: Field<'_>,
    place: Use<'_>,
    makers: &Makers,
    names: &Names,
) -> Option<Expr> {
    let text = reader.text(field, "an expression such as \"task.resolved == 100\"")?;
    // What a broken driver would have counted is unknown.
    let mut doubtful = Vec::new();
    let problems = match makers.incomplete && place != Use::That {
        true => &mut doubtful,
        false => &mut reader.problems,
    };
    compile(&text, place, names, problems)
}
