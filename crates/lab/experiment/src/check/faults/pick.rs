//! Which copies of a system are hit: `kill = "etcd.0"`, `pick = 2`,
//! `pick = { probe = "is_leader" }`.

use std::time::Duration;

use document::Problem;
use toml::de::DeValue;

use super::super::fields::{Field, Fields};
use super::super::probes;
use super::super::process::{Found, LONGEST, SHORTEST};
use super::super::values::Reader;
use super::Named;
use crate::plan::{CopySelector, Probe};

/// Longest wait until a probe picks one when a file does not say.
const WITHIN: Duration = Duration::from_secs(10);

/// The copies of a system that are hit.
pub(in super::super) fn copies(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    field: Field<'_>,
    named: Named<'_>,
) -> Option<(String, CopySelector)> {
    let (system, copy) = target(
        reader,
        field,
        named.systems,
        ("copies", |found| found.system.count),
    )?;
    let (name, count) = (&system.system.name, system.system.count);
    let who = who(reader, fields, (name, count, "copies", copy), named.probes)?;
    Some((name.clone(), who))
}

/// The system that is hit, and the one member if the text names one: `etcd.0`. Members have a
/// name and a number.
pub(super) fn target<'f>(
    reader: &mut Reader<'_>,
    field: Field<'_>,
    systems: &'f [Found],
    (members, number): (&str, fn(&Found) -> u32),
) -> Option<(&'f Found, Option<u32>)> {
    let text = reader.text(field, "the name of a system")?;
    let find = |name: &str| systems.iter().find(|found| found.system.name == name);
    if let Some(found) = find(text.as_str()) {
        return Some((found, None));
    }
    let copy = text.as_str().rsplit_once('.').and_then(|(name, index)| {
        let index: u32 = index.parse().ok()?;
        Some((find(name)?, index))
    });
    if let Some((found, index)) = copy {
        let count = number(found);
        // What has none is refused by whoever asks.
        if index < count || count == 0 {
            return Some((found, Some(index)));
        }
        let name = &found.system.name;
        let message = match count {
            1 => format!("there is one {name}, and no other"),
            _ => format!(
                "{name} has {count} {members}, {name}.0 to {name}.{}",
                count - 1
            ),
        };
        return reader.refuse(Problem::new(text.whole(), message));
    }
    let name = text.as_str().rsplit_once('.').map_or("", |(name, _)| name);
    if reader.declares(text.as_str()) || reader.declares(name) {
        return None;
    }
    let known = systems.iter().map(|found| found.system.name.as_str());
    reader.refuse(reader.unknown(&text, "system", "systems and fleets", known))
}

/// Which copies are hit. A system of several has to say so: to hit one of three and to hit
/// all three are different experiments.
pub(super) fn who(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    (name, count, members, copy): (&str, u32, &str, Option<u32>),
    probes: &[probes::Found],
) -> Option<CopySelector> {
    let Some(field) = fields.get("pick") else {
        if copy.is_none() && count > 1 {
            let message = format!("{name} has {count} {members}; which are hit?");
            let problem = Problem::new(fields.span.clone(), message);
            return reader.refuse(problem.help(format!(
                "add pick = 1, pick = \"10%\" or pick = \"all\", or name one: {name}.0"
            )));
        }
        return Some(
            copy.filter(|_| count > 1)
                .map_or(CopySelector::Only, CopySelector::Copy),
        );
    };
    if copy.is_some() {
        let message = "one of them is named, so there is nothing to pick";
        return reader.refuse(Problem::new(field.span(), message));
    }
    let text = match field.value.get_ref() {
        DeValue::Table(_) => return by_probe(reader, field, name, probes),
        DeValue::String(_) => Some(reader.text(field, "a number, a share or \"all\"")?),
        _ => None,
    };
    match text.as_ref().map(crate::text::Text::as_str) {
        Some("all") => Some(CopySelector::All),
        Some(share) if share.ends_with('%') => {
            let share = reader.quantity(field, "a share such as \"10%\"", units::parse_share)?;
            if share <= 0.0 || share > 1.0 {
                let message = format!("a share of {members} is above 0% and at most 100%");
                return reader.refuse(Problem::new(field.span(), message));
            }
            Some(CopySelector::Share(share))
        }
        Some(word) if !word.starts_with(|first: char| first.is_ascii_digit()) => reader.mismatch(
            field,
            &format!("a number of {members}, a share such as \"10%\", or \"all\""),
        ),
        _ => {
            let number = reader.count(field, 1..=u64::from(count))?;
            u32::try_from(number).ok().map(CopySelector::Number)
        }
    }
}

/// The copies of `system` that a probe picks. It asks each of them, or asks once for the name
/// or the address of one.
fn by_probe(
    reader: &mut Reader<'_>,
    field: Field<'_>,
    system: &str,
    probes: &[probes::Found],
) -> Option<CopySelector> {
    let known = ["probe", "within"];
    let fields = Fields::open(field.value, "\"pick\"", &known, reader)?;
    let within = fields.value_or("within", WITHIN, |field| {
        reader.duration(field, SHORTEST..=LONGEST)
    });
    let example = "\"NAME\", the name of a probe";
    let field = fields.require("probe", example, reader)?;
    let text = reader.text(field, "the name of a probe")?;
    let Some(found) = probes.iter().find(|probe| probe.name == text.as_str()) else {
        let known = probes.iter().map(|probe| probe.name.as_str());
        let problem = reader.unknown(&text, "probe", "probes that can pick", known);
        return reader.refuse(match probes.is_empty() {
            true => problem.help(format!("add a [[probe]] with of = \"{system}\"")),
            false => problem,
        });
    };
    let problem = match (&found.of, &found.probe) {
        (Some(of), _) if of != system => {
            let message = format!("{} asks the copies of {of}, not of {system}", found.name);
            Problem::new(text.whole(), message)
        }
        (_, Some(probe)) if !Probe::has_value(probe) => {
            let message = format!(
                "the answers of {} have no value, so it picks nobody",
                found.name
            );
            Problem::new(text.whole(), message)
                .help("an http probe keeps one by value = \"json /POINTER\"")
        }
        _ => {
            return Some(CopySelector::Probe {
                probe: found.name.clone(),
                within: within?,
            });
        }
    };
    reader.refuse(problem)
}
