//! `[[driver]]`: who makes and counts entities.

use std::net::IpAddr;

use document::Problem;

use super::entries::{Entry, reserved};
use super::fields::{Field, Fields};
use super::process::system_name;
use super::values::{Reader, name_problem};
use crate::catalogue::{Catalogue, EntityKind, Setting, SettingValue};
use crate::names::Place;
use crate::plan::{Driver, DriverKind, Remote, Segment, TlsFiles};

/// Most kinds of entity of one driver, and most states of one kind.
const MOST_KINDS: usize = 64;

/// Kinds of entity that the drivers of a file make.
#[derive(Default)]
pub(super) struct Makers {
    pub(super) kinds: Vec<EntityKind>,
    /// A driver has a problem, so a kind that is missing may be one of its own.
    pub(super) incomplete: bool,
}

/// Reads a `[[driver]]` and adds its kinds of entity to `makers`.
pub(super) fn driver(
    reader: &mut Reader<'_>,
    entry: &Entry<'_>,
    catalogue: &Catalogue,
    makers: &mut Makers,
) -> Option<Driver> {
    let found = read(reader, entry, catalogue, makers);
    makers.incomplete |= found.is_none();
    found
}

fn read(
    reader: &mut Reader<'_>,
    entry: &Entry<'_>,
    catalogue: &Catalogue,
    makers: &mut Makers,
) -> Option<Driver> {
    let known: Vec<&str> = ["name", "kind", "run", "makes", "options", "talk_to"]
        .into_iter()
        .chain(REMOTE_KEYS)
        .collect();
    let fields = Fields::open(entry.value, entry.label, &known, reader)?;
    let remote = remote(reader, &fields);
    let talk_to = match fields.get("talk_to") {
        Some(field) if fields.get("address").is_some() => {
            let message = "\"talk_to\" and \"address\" exclude each other";
            reader.refuse(Problem::new(field.span(), message))
        }
        Some(field) => system_name(reader, field).map(Some),
        None if fields.get("kind").is_some() && fields.get("address").is_none() => {
            fields.require("talk_to", "\"...\", the system to talk to", reader);
            None
        }
        None => Some(None),
    };
    let kind = match (fields.get("kind"), fields.get("run")) {
        (Some(kind), None) => builtin(reader, &fields, kind, catalogue),
        (None, Some(run)) => program(reader, &fields, run),
        (None, None) => {
            let message = format!("{} needs \"kind\" or \"run\"", entry.label);
            reader.refuse(Problem::new(fields.span.clone(), message))
        }
        (Some(_), Some(run)) => reader.refuse(Problem::new(
            run.span(),
            "\"kind\" and \"run\" exclude each other",
        )),
    };
    let (kind, made) = kind?;
    for entity in &made {
        if makers.kinds.iter().any(|other| other.what == entity.what) {
            let message = format!(
                "another driver makes entities of kind \"{}\" too",
                entity.what
            );
            reader.problem(Problem::new(fields.span.clone(), message));
        }
    }
    let entities = made
        .iter()
        .map(|e| (e.what.clone(), e.states.clone()))
        .collect();
    makers.kinds.extend(made);
    Some(Driver {
        name: entry.name.clone()?,
        kind,
        talk_to: talk_to?,
        remote: remote?,
        entities,
    })
}

/// Keys about something that the run does not start.
const REMOTE_KEYS: [&str; 5] = ["address", "certificate", "key", "authority", "reach_at"];

fn remote(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<Option<Remote>> {
    let Some(field) = fields.get("address") else {
        for key in &REMOTE_KEYS[1..] {
            if let Some(field) = fields.get(key) {
                let message = format!("\"{key}\" goes with \"address\"");
                reader.problem(Problem::new(field.span(), message));
            }
        }
        return Some(None);
    };
    let address = reader.template(field, Place::Command)?;
    let secure = match address.0.first() {
        Some(Segment::Text(text)) if text.starts_with("https://") => true,
        Some(Segment::Text(text)) if text.starts_with("http://") => false,
        _ => {
            let message = "an address begins with http:// or https://";
            return reader.refuse(Problem::new(field.span(), message));
        }
    };
    if let Some(system) = address.all_of() {
        let message = format!("a driver talks to one address, and this is every copy of {system}");
        let problem = Problem::new(field.span(), message);
        return reader.refuse(problem.help(format!("name one: {{{system}[0].addr}}")));
    }
    let mut file = |key: &str| match fields.get(key) {
        Some(field) if secure => reader.template(field, Place::Command),
        Some(field) => {
            let message = format!("\"{key}\" goes with an https address");
            reader.refuse(Problem::new(field.span(), message))
        }
        None if secure => {
            let expected = "\"...\", a PEM file: https shows and asks for a certificate";
            fields.require(key, expected, reader);
            None
        }
        None => None,
    };
    let files = (file("certificate"), file("key"), file("authority"));
    let tls = match files {
        (Some(certificate), Some(key), Some(authority)) => Some(TlsFiles {
            certificate,
            key,
            authority,
        }),
        _ if secure => return None,
        _ => None,
    };
    let reach_at = match fields.get("reach_at") {
        None => None,
        Some(field) => {
            let text = reader.text(field, "an IP address of this machine")?;
            let Ok(ip) = text.as_str().parse::<IpAddr>() else {
                return reader.mismatch(field, "an IP address of this machine");
            };
            Some(ip)
        }
    };
    Some(Some(Remote {
        address,
        tls,
        reach_at,
    }))
}

fn builtin(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    kind: Field<'_>,
    catalogue: &Catalogue,
) -> Option<(DriverKind, Vec<EntityKind>)> {
    for key in ["makes", "options"] {
        if let Some(field) = fields.get(key) {
            let message = format!("\"{key}\" goes with \"run\"; a kind knows what it makes");
            reader.problem(Problem::new(field.span(), message));
        }
    }
    let text = reader.text(kind, "a kind of driver")?;
    let Some(spec) = catalogue
        .drivers
        .iter()
        .find(|known| known.kind == text.as_str())
    else {
        let known = catalogue.drivers.iter().map(|driver| driver.kind.as_str());
        return reader.refuse(
            reader
                .unknown(&text, "kind of driver", "kinds of driver", known)
                .help_also("run = \"program and arguments\" starts a driver of your own"),
        );
    };
    Some((
        DriverKind::Builtin {
            kind: spec.kind.clone(),
            command: spec.builtin.split(' ').map(str::to_owned).collect(),
        },
        spec.entities.clone(),
    ))
}

fn program(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    run: Field<'_>,
) -> Option<(DriverKind, Vec<EntityKind>)> {
    let program = reader.program(run, Place::Command);
    let options = fields.value_or("options", Vec::new(), |field| options(reader, field));
    let makes = fields.require(
        "makes",
        "{ order = [\"placed\", \"paid\"] }, kinds of entity with their states",
        reader,
    )?;
    let kinds = Fields::open_any(makes.value, "\"makes\"", reader)?;
    let mut made = Vec::new();
    let mut good = true;
    for (span, field) in kinds.fields() {
        let reserved = || reserved(field.key, "kind");
        if let Some(problem) = name_problem(field.key).or_else(reserved) {
            reader.problem(Problem::new(span, problem));
            good = false;
            continue;
        }
        match states(reader, field) {
            Some(states) => made.push((field.key.to_owned(), states)),
            None => good = false,
        }
    }
    if made.is_empty() && good || made.len() > MOST_KINDS {
        let message = format!("a driver makes 1 to {MOST_KINDS} kinds of entity");
        reader.problem(Problem::new(makes.span(), message));
        good = false;
    }
    let (path, args) = program?;
    let (options, program) = (options?, std::iter::once(path).chain(args).collect());
    let kind = |(what, states)| EntityKind {
        what,
        states,
        shapes: Vec::new(),
        options: options.clone(),
    };
    good.then(|| {
        (
            DriverKind::Program(program),
            made.into_iter().map(kind).collect(),
        )
    })
}

fn states(reader: &mut Reader<'_>, field: Field<'_>) -> Option<Vec<String>> {
    let expected = "a list of states such as [\"placed\", \"paid\"]";
    let names = names(reader, field, expected)?;
    if names.is_empty() || names.len() > MOST_KINDS {
        let message = format!("\"{}\" needs 1 to {MOST_KINDS} states", field.key);
        return reader.refuse(Problem::new(field.span(), message));
    }
    Some(names)
}

fn options(reader: &mut Reader<'_>, field: Field<'_>) -> Option<Vec<Setting>> {
    let names = names(reader, field, "a list of keys such as [\"colour\"]")?;
    if let Some(taken) = names
        .iter()
        .find(|name| super::steps::MAKE_KEYS.contains(&name.as_str()))
    {
        let message = format!("\"{taken}\" already means something in every `make`");
        return reader.refuse(Problem::new(field.span(), message));
    }
    Some(
        names
            .into_iter()
            .map(|name| Setting::new(name, SettingValue::Text))
            .collect(),
    )
}

/// A list of names without repetition.
fn names(reader: &mut Reader<'_>, field: Field<'_>, expected: &str) -> Option<Vec<String>> {
    let items = reader.list(field, expected)?;
    let mut names: Vec<String> = Vec::new();
    let mut good = true;
    for item in items {
        match reader.name(item) {
            Some(name) if names.contains(&name) => {
                reader.problem(Problem::new(
                    item.span(),
                    format!("\"{name}\" is named twice"),
                ));
                good = false;
            }
            Some(name) => names.push(name),
            None => good = false,
        }
    }
    good.then_some(names)
}
