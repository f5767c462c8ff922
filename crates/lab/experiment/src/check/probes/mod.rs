//! `[[probe]]`: questions asked all the time.
//!
//! A probe with a `rate` or a `trace` is an open load that runs by itself, and is read as one;
//! see [`super::loads`].

mod kinds;

use std::time::Duration;

use document::Problem;

use super::entries::Entry;
use super::fields::{Field, Fields};
use super::process::Found as FoundSystem;
use super::values::Reader;
use crate::expr::ProbeUse;
use crate::names::Place;
use crate::plan::{Probe, ProbeKind, Template};

/// Keys of a probe that is an open load.
const OF_LOADS: [&str; 2] = ["rate", "trace"];
/// Kinds of probe, which are keys that say what is asked.
const KINDS: [&str; 7] = ["http", "tcp", "grpc", "command", "prom", "postgres", "log"];
/// Keys of every probe.
const KEYS: [&str; 4] = ["name", "every", "within", "of"];
/// Keys that belong to some kinds.
const OF_KINDS: [(&str, &[&str]); 11] = [
    ("tls", &["http", "prom"]),
    ("value", &["http", "command", "prom"]),
    ("header", &["http"]),
    ("body", &["http"]),
    ("assert", &["http"]),
    ("metric", &["prom"]),
    ("labels", &["prom"]),
    ("series", &["prom"]),
    ("sql", &["postgres"]),
    ("password_file", &["postgres"]),
    ("pattern", &["log"]),
];
/// Time between two tries when a file does not say.
const EVERY: Duration = Duration::from_secs(1);
/// Shortest time between two tries.
const SHORTEST_EVERY: Duration = Duration::from_millis(10);
/// Longest time between two tries, and of one.
const LONGEST: Duration = Duration::from_secs(3600);
/// Longest time of a try when a file does not say.
const WITHIN: Duration = Duration::from_secs(1);
/// Shortest time that a try can be given.
const SHORTEST_WITHIN: Duration = Duration::from_millis(1);
/// Most that the probes of a file ask at a time, each copy of a system counted.
const MOST_ASKED: u32 = 1_000;

/// A probe that may be wrong in parts that others do not refer to.
pub(super) struct Found {
    pub(super) name: String,
    /// The system of which every copy is asked.
    pub(super) of: Option<String>,
    copies: u32,
    /// `None`: it is wrong, which is told already.
    pub(super) probe: Option<Probe>,
}

impl Found {
    /// Its name, and what expressions may say of it.
    pub(super) fn used(&self) -> (String, ProbeUse) {
        let used = ProbeUse {
            copies: self.copies,
            // What a broken probe would have is not known.
            has_value: self.probe.as_ref().is_none_or(Probe::has_value),
        };
        (self.name.clone(), used)
    }
}

/// Whether a `[[probe]]` is an open load.
pub(super) fn is_load(entry: &Entry<'_>) -> bool {
    let table = entry.value.get_ref().as_table();
    table.is_some_and(|table| OF_LOADS.iter().any(|key| table.contains_key(*key)))
}

/// Reads every `[[probe]]` that is no load.
pub(super) fn probes(
    reader: &mut Reader<'_>,
    entries: &[Entry<'_>],
    systems: &[FoundSystem],
) -> Vec<Found> {
    let mut asked = 0_u32;
    let mut found = Vec::new();
    for entry in entries {
        let (copies, of, probe) = read(reader, entry, systems);
        let before = asked;
        asked = asked.saturating_add(copies);
        if before <= MOST_ASKED && asked > MOST_ASKED {
            let message = format!("the probes ask more than {MOST_ASKED} copies of systems");
            let problem = Problem::new(entry.value.span(), message);
            reader.problem(problem.help("ask fewer, or one copy by its address"));
        }
        found.extend(entry.name.clone().map(|name| Found {
            name,
            of,
            copies,
            probe,
        }));
    }
    reader.scope.own = None;
    found
}

/// How many are asked, of which system, and the probe if all of it is good.
fn read(
    reader: &mut Reader<'_>,
    entry: &Entry<'_>,
    systems: &[FoundSystem],
) -> (u32, Option<String>, Option<Probe>) {
    let Some(fields) = Fields::open_any(entry.value, entry.label, reader) else {
        return (1, None, None);
    };
    let is_known = keys(reader, &fields);
    entry.refuse_reserved(reader, "probe");
    let system = fields.optional("of", |field| system(reader, field, systems));
    let copies = system.flatten().map_or(1, |system| system.system.count);
    let of = system.flatten().map(|system| system.system.name.clone());
    reader.scope.own.clone_from(&of);
    let place = match fields.get("of") {
        Some(_) => Place::System,
        None => Place::Command,
    };
    let every = fields.value_or("every", EVERY, |field| {
        reader.duration(field, SHORTEST_EVERY..=LONGEST)
    });
    let within = fields.value_or("within", WITHIN, |field| {
        reader.duration(field, SHORTEST_WITHIN..=LONGEST)
    });
    let kind = kind(reader, &fields).and_then(|field| {
        let kind = kinds::read(reader, &fields, field, place, systems)?;
        names_the_copy(reader, field, &kind, of.as_deref()).then_some(kind)
    });
    let probe = || {
        Some(Probe {
            name: entry.name.clone()?,
            kind: kind?,
            of: system?.map(|system| system.system.name.clone()),
            copies,
            every: every?,
            within: within?,
        })
    };
    let probe = probe().filter(|_| is_known);
    (copies, of, probe)
}

/// Reports keys that no probe has. Those of loads have a help of their own.
fn keys(reader: &mut Reader<'_>, fields: &Fields<'_>) -> bool {
    let all = KINDS.into_iter().chain(KEYS);
    let known: Vec<&str> = all.chain(OF_KINDS.map(|(key, _)| key)).collect();
    let mut good = true;
    for (key, span) in fields.keys().filter(|(key, _)| !known.contains(key)) {
        let message = format!("unknown key \"{key}\" in {}", fields.label);
        let problem = Problem::new(span, message);
        reader.problem(match super::loads::is_key(key) {
            true => problem.help("it goes with `rate`: such a probe is an open load"),
            false => problem.suggest_from(key, "keys", known.iter().copied()),
        });
        good = false;
    }
    good
}

/// The one kind that a probe has.
fn kind<'t>(reader: &mut Reader<'_>, fields: &Fields<'t>) -> Option<Field<'t>> {
    let given: Vec<Field<'_>> = KINDS.iter().filter_map(|kind| fields.get(kind)).collect();
    let field = match given.as_slice() {
        [] => {
            let message = format!("{} asks nothing", fields.label);
            let problem = Problem::new(fields.span.clone(), message);
            return reader.refuse(problem.help(format!(
                "say what, by one of {}; for instance http = \"GET http://{{NAME.addr}}/\"",
                KINDS.join(", ")
            )));
        }
        [one] => *one,
        [one, other, ..] => {
            let message = format!("\"{}\" and \"{}\" are two probes", one.key, other.key);
            let problem = Problem::new(other.span(), message);
            return reader.refuse(problem.help("write a [[probe]] for each"));
        }
    };
    let belongs = fields.go_with(field.key, &OF_KINDS, reader);
    belongs.then_some(field)
}

/// A system by its name.
fn system<'f>(
    reader: &mut Reader<'_>,
    field: Field<'_>,
    systems: &'f [FoundSystem],
) -> Option<&'f FoundSystem> {
    let text = reader.text(field, "the name of a system")?;
    let found = systems
        .iter()
        .find(|found| found.system.name == text.as_str());
    if found.is_none() && !reader.declares(text.as_str()) {
        let known = systems.iter().map(|found| found.system.name.as_str());
        let problem = reader.unknown(&text, "system", "systems and fleets", known);
        reader.problem(problem);
    }
    found
}

/// A probe of every copy that is the same for each of them would ask one of them several times.
fn names_the_copy(
    reader: &mut Reader<'_>,
    field: Field<'_>,
    kind: &ProbeKind,
    of: Option<&str>,
) -> bool {
    let Some(of) = of else {
        return true;
    };
    let texts: Vec<&Template> = match kind {
        ProbeKind::Http { url, body, .. } => vec![url, body],
        ProbeKind::Tcp { address } => vec![address],
        ProbeKind::Grpc { address, service } => vec![address, service],
        ProbeKind::Command { program, args, .. } => std::iter::once(program).chain(args).collect(),
        ProbeKind::Prom { url, .. } => vec![url],
        ProbeKind::Postgres { url, .. } => vec![url],
        ProbeKind::Log { system, .. } if system == of => return true,
        ProbeKind::Log { .. } => {
            let message = format!("\"log\" must be the system that is asked, {of}");
            reader.problem(Problem::new(field.span(), message).suggest(of));
            return false;
        }
    };
    let names = texts.iter().any(|text| text.is_of_a_copy());
    if !names {
        let message = format!("nothing here says which copy of {of} is asked");
        let problem = Problem::new(field.span(), message);
        reader.problem(problem.help("write {addr}, {port} or {index}, those of each copy"));
    }
    names
}
