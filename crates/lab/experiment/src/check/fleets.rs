//! `[[fleet]]`: many simulated agents in one process.

use document::Problem;

use super::entries::Entry;
use super::fields::Fields;
use super::process::{self, COMMON, Found, check_disk, check_port, command_words, system_name};
use super::settings::{self, MOST};
use super::values::Reader;
use crate::catalogue::{Catalogue, SettingValue};
use crate::names::{Place, Scope};
use crate::plan::{Reference, Segment, Template};
use crate::text::Text;
use crate::words;

/// Reads a `[[fleet]]`: many agents in one process.
pub(super) fn fleet(
    reader: &mut Reader<'_>,
    entry: &Entry<'_>,
    catalogue: &Catalogue,
    seed: u64,
) -> Option<Found> {
    let known: Vec<&str> = COMMON.into_iter().chain(["kind", "talk_to"]).collect();
    let fields = Fields::open_any(entry.value, entry.label, reader)?;
    let kind = fields
        .require("kind", "\"...\", one of the kinds of agent", reader)
        .and_then(|field| reader.text(field, "a kind of agent"));
    let kind = kind.and_then(|text| {
        let found = catalogue
            .fleets
            .iter()
            .find(|kind| kind.kind == text.as_str());
        if found.is_none() {
            let known = catalogue.fleets.iter().map(|kind| kind.kind.as_str());
            reader.problem(reader.unknown(&text, "kind of agent", "kinds of agent", known));
        }
        found
    });
    let fleet = process::common(reader, &fields, kind);
    let agents = fields
        .require("count", "100", reader)
        .and_then(|field| reader.count(field, 1..=MOST));
    let words = fields.value_or("args", Vec::new(), |field| {
        reader.command(field, Place::System)
    });
    let talk_to = fields.value_or("talk_to", None, |field| {
        system_name(reader, field).map(|name| Some((name, field.span())))
    });
    // Without the kind nothing is known about the other keys.
    let kind = kind?;
    let settings = settings::read(reader, &fields, &known, &kind.settings);
    let (words, mut fleet, talk_to, agents) = (words?, fleet?, talk_to?, agents?);
    if let Some(builtin) = catalogue
        .builtins
        .iter()
        .find(|known| known.command == kind.builtin)
    {
        settings::check_flags(reader, &words, builtin);
    }

    let mut args = command_words(&kind.builtin);
    args.extend(fixed_words(&kind.args, None));
    args.extend(["--count".to_owned(), agents.to_string()].map(Template::literal));
    if let Some(flag) = &kind.seed_flag {
        args.extend([flag.clone(), seed.to_string()].map(Template::literal));
    }
    if let Some((system, span)) = talk_to {
        match &kind.talk_to_flag {
            Some(flag) => args.extend(fixed_words(flag, Some(&system))),
            None => {
                let message = format!("a fleet of kind \"{}\" talks to nobody", kind.kind);
                reader.problem(Problem::new(span.clone(), message));
            }
        }
        if !fleet.system.after.contains(&system) {
            fleet.system.after.push(system);
            fleet.after.push(span);
        }
    }
    for (setting, value) in settings {
        match (&setting.value, value.as_str()) {
            (SettingValue::Flag, "false") => {}
            (SettingValue::Flag, _) => args.push(Template::literal(setting.flag())),
            _ => args.extend([setting.flag(), value].map(Template::literal)),
        }
    }
    args.extend(words.into_iter().map(|word| word.filled));
    fleet.system.name = entry.name.clone()?;
    fleet.system.args = args;
    check_port(reader, &fields, &fleet.system);
    check_disk(reader, &fields, &fleet.system);
    fleet.system.agents = Some(u32::try_from(agents).ok()?);
    Some(fleet)
}

/// Arguments that the catalogue gives. With `talk_to`, the references to an own
/// port mean that system's.
fn fixed_words(line: &str, talk_to: Option<&str>) -> Vec<Template> {
    let line = Text::at(line, 0..0);
    let scope = Scope::default();
    let words = words::split(&line).unwrap_or_else(|_| vec![line]);
    let of_other = |segment: Segment| match (segment, talk_to) {
        (Segment::Reference(Reference::OwnAddr), Some(system)) => {
            Segment::Reference(Reference::Addr(system.to_owned()))
        }
        (Segment::Reference(Reference::OwnPort), Some(system)) => {
            Segment::Reference(Reference::Port(system.to_owned()))
        }
        (segment, _) => segment,
    };
    let template = |word: Text| {
        // What is no template in the catalogue is handed on as it is.
        let read = scope.template(&word, Place::System, &mut Vec::new());
        let segments = read.unwrap_or_else(|| Template::literal(word.as_str())).0;
        Template(segments.into_iter().map(of_other).collect())
    };
    words.into_iter().map(template).collect()
}
