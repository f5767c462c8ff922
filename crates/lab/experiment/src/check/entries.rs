//! Tables with names: found first, so that every other part can refer to them.

use std::collections::BTreeMap;

use document::Span;
use document::{Lines, Problem};
use toml::de::DeValue;

use super::fields::{Field, Fields, Value, described};
use super::values::Reader;
use crate::expr::RESERVED;

/// A table of an array of tables.
pub(super) struct Entry<'t> {
    /// How messages call it: `[[system]]`.
    pub(super) label: &'static str,
    pub(super) value: &'t Value<'t>,
    /// Its name, unless that is missing or wrong, which is a problem already told.
    pub(super) name: Option<String>,
}

impl Entry<'_> {
    /// Its name and those of its further ports, whose problems are told when it is read.
    pub(super) fn further_ports(&self) -> Option<(String, Vec<String>)> {
        let ports = self.value.get_ref().get("ports")?.get_ref().as_array()?;
        let ports = ports.iter().filter_map(|port| port.get_ref().as_str());
        Some((self.name.clone()?, ports.map(str::to_owned).collect()))
    }

    /// Reports a name that begins other metrics; `what` has it.
    pub(super) fn refuse_reserved(&self, reader: &mut Reader<'_>, what: &str) {
        let message = self.name.as_deref().and_then(|name| reserved(name, what));
        if let (Some(message), Some(name)) = (message, self.value.get_ref().get("name")) {
            reader.problem(Problem::new(name.span(), message));
        }
    }
}

/// Why a name of something that has metrics cannot be its own.
pub(super) fn reserved(name: &str, what: &str) -> Option<String> {
    let message = || format!("\"{name}\" begins other metrics and cannot name a {what}");
    RESERVED.contains(&name).then(message)
}

/// What a name may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Naming {
    /// A word that expressions and references use.
    Word,
    /// Free text on one line.
    Line,
}

/// The tables of an array of tables, without a look at their names.
pub(super) fn tables<'t>(
    reader: &mut Reader<'_>,
    root: &Fields<'t>,
    label: &'static str,
    most: usize,
) -> Vec<&'t Value<'t>> {
    let key = label.trim_matches(['[', ']']);
    let Some(field) = root.get(key) else {
        return Vec::new();
    };
    match field.value.get_ref() {
        DeValue::Array(items) if items.len() > most => {
            let message = format!("there are {} {label} tables, {most} at most", items.len());
            reader.problem(Problem::new(field.span(), message));
            Vec::new()
        }
        DeValue::Array(items) => items.iter().collect(),
        DeValue::Table(_) => {
            let message = format!("{key} is a list of tables");
            let problem = Problem::new(field.span(), message);
            reader.problem(problem.help(format!("write {label} with two brackets")));
            Vec::new()
        }
        other => {
            let message = format!("{key} is a list of tables, found {}", described(other));
            let problem = Problem::new(field.span(), message);
            reader.problem(problem.help(format!("begin each with a line {label}")));
            Vec::new()
        }
    }
}

/// Names that were given, with their places; one for each group of tables whose
/// names must differ.
#[derive(Default)]
pub(super) struct NamesInUse(BTreeMap<String, Span>);

impl NamesInUse {
    pub(super) fn names(&self) -> impl Iterator<Item = String> {
        self.0.keys().cloned()
    }
}

/// The tables of an array of tables with their names.
pub(super) fn named<'t>(
    reader: &mut Reader<'_>,
    root: &Fields<'t>,
    label: &'static str,
    (naming, most): (Naming, usize),
    taken: &mut NamesInUse,
    lines: &Lines<'_>,
) -> Vec<Entry<'t>> {
    let values = tables(reader, root, label, most);
    let mut entries = Vec::new();
    for value in values {
        let name = Fields::open_any(value, label, reader)
            .and_then(|fields| fields.require("name", "\"...\"", reader))
            .and_then(|field| name(reader, field, naming, taken, lines));
        entries.push(Entry { label, value, name });
    }
    entries
}

fn name(
    reader: &mut Reader<'_>,
    field: Field<'_>,
    naming: Naming,
    taken: &mut NamesInUse,
    lines: &Lines<'_>,
) -> Option<String> {
    let name = match naming {
        Naming::Word => reader.name(field)?,
        Naming::Line => reader.line(field, "a name")?,
    };
    match taken.0.get(&name) {
        Some(first) => {
            let message = format!(
                "the name \"{name}\" is taken, on line {}",
                lines.number(first.start)
            );
            reader.refuse(Problem::new(field.span(), message))
        }
        None => {
            taken.0.insert(name.clone(), field.span());
            Some(name)
        }
    }
}
