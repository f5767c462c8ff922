//! Settings that the catalogue describes.

use std::collections::BTreeMap;

use document::{Problem, Span};
use toml::de::DeValue;

use super::fields::{Field, Fields};
use super::values::Reader;
use crate::catalogue::{Setting, SettingValue};
use crate::plan::{Make, Template};
use units::UnitError;

/// Most of what is counted anywhere in a file.
pub(super) const MOST: u64 = Make::MOST;

/// Reads every key of a table that is not in `known` as one of the settings, which
/// are given back with their values as they are written, in catalogue order.
pub(super) fn read<'s>(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    known: &[&str],
    settings: &'s [Setting],
) -> Vec<(&'s Setting, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    for (span, field) in fields
        .fields()
        .filter(|(_, field)| !known.contains(&field.key))
    {
        let place = Nested {
            label: fields.label,
            path: field.key,
            siblings: known,
        };
        place.read(reader, settings, span, field, &mut found);
    }
    found.sort_by_key(|(index, _)| *index);
    found
        .into_iter()
        .filter_map(|(index, text)| Some((settings.get(index)?, text)))
        .collect()
}

/// The values in which something stands that a step keeps, by key: `count`, and settings that
/// are texts. What the others are is checked before a run.
pub(super) fn later(
    reader: &Reader<'_>,
    fields: &Fields<'_>,
    settings: &[Setting],
) -> BTreeMap<String, Template> {
    let may_be_kept = |key: &str| {
        let is_text = |setting: &Setting| setting.value == SettingValue::Text;
        let mut settings = settings.iter();
        key == "count" || settings.any(|setting| setting.key == key && is_text(setting))
    };
    let kept = fields.fields().filter(|(_, field)| may_be_kept(field.key));
    let kept = kept.filter_map(|(_, field)| Some((field.key.to_owned(), reader.kept(field)?)));
    kept.collect()
}

/// A key of the table or of a table within it.
struct Nested<'p> {
    label: &'p str,
    /// The way to the key, with dots.
    path: &'p str,
    /// Other keys beside it that are no settings.
    siblings: &'p [&'p str],
}

impl Nested<'_> {
    fn read(
        &self,
        reader: &mut Reader<'_>,
        settings: &[Setting],
        span: Span,
        field: Field<'_>,
        found: &mut Vec<(usize, String)>,
    ) {
        let Self {
            label,
            path,
            siblings,
        } = *self;
        let exact = settings.iter().position(|setting| setting.key == path);
        if let Some((index, setting)) = exact.and_then(|i| Some((i, settings.get(i)?))) {
            found.extend(value(reader, &setting.value, field).map(|text| (index, text)));
            return;
        }
        let inner = format!("{path}.");
        let is_group = settings
            .iter()
            .any(|setting| setting.key.starts_with(&inner));
        if !is_group {
            reader.problem(unknown(label, path, siblings, settings, span, field.key));
            return;
        }
        let label = format!("\"{path}\" of {label}");
        let Some(nested) = Fields::open_any(field.value, &label, reader) else {
            return;
        };
        for (span, field) in nested.fields() {
            let path = format!("{inner}{}", field.key);
            Nested {
                label: self.label,
                path: &path,
                siblings: &[],
            }
            .read(reader, settings, span, field, found);
        }
    }
}

fn unknown(
    label: &str,
    path: &str,
    siblings: &[&str],
    settings: &[Setting],
    span: Span,
    key: &str,
) -> Problem {
    let parent = &path[..path.len() - key.len()];
    let mut names: Vec<&str> = siblings.to_vec();
    for setting in settings {
        if let Some(rest) = setting.key.strip_prefix(parent) {
            names.push(rest.split('.').next().unwrap_or(rest));
        }
    }
    names.dedup();
    let place = match parent.strip_suffix('.') {
        Some(parent) => format!("\"{parent}\" of {label}"),
        None => label.to_owned(),
    };
    Problem::new(span, format!("unknown key \"{key}\" in {place}")).suggest_from(key, "keys", names)
}

/// A value in the form of a setting, as text.
fn value(reader: &mut Reader<'_>, form: &SettingValue, field: Field<'_>) -> Option<String> {
    match form {
        SettingValue::Count => reader.count(field, 0..=MOST).map(|count| count.to_string()),
        SettingValue::Bytes => checked(reader, field, "a size such as \"12GiB\"", |text| {
            units::parse_bytes(text).map(drop)
        }),
        SettingValue::Duration => {
            let expected = "a length of time such as \"50ms\"";
            checked(reader, field, expected, |text| {
                units::parse_duration(text).map(drop)
            })
        }
        SettingValue::Distribution => {
            if matches!(field.value.get_ref(), DeValue::Integer(number) if number.as_str() == "0") {
                return Some("0".to_owned());
            }
            let expected = "a delay such as \"50ms\" or \"lognormal 900ms p99=4s\"";
            checked(reader, field, expected, units::check_distribution)
        }
        SettingValue::Share => share(reader, field),
        SettingValue::Text => reader
            .text(field, "a string")
            .map(|text| text.as_str().to_owned()),
        SettingValue::Choice(choices) => {
            let choices: Vec<(&str, &str)> =
                choices.iter().map(|c| (c.as_str(), c.as_str())).collect();
            reader.choice(field, &choices).map(str::to_owned)
        }
        SettingValue::Flag => match field.value.get_ref() {
            DeValue::Boolean(value) => Some(value.to_string()),
            DeValue::String(_) => {
                let choices = [("true", true), ("false", false)];
                reader
                    .choice(field, &choices)
                    .map(|value| value.to_string())
            }
            _ => reader.mismatch(field, "true or false"),
        },
    }
}

/// A string with a unit, as it is written.
fn checked(
    reader: &mut Reader<'_>,
    field: Field<'_>,
    expected: &str,
    check: impl Fn(&str) -> Result<(), UnitError>,
) -> Option<String> {
    reader.quantity(field, expected, |text| {
        check(text).map(|()| text.to_owned())
    })
}

fn share(reader: &mut Reader<'_>, field: Field<'_>) -> Option<String> {
    let expected = "a share such as \"10%\" or 0.1";
    let number = match field.value.get_ref() {
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        _ => {
            return checked(reader, field, expected, |text| {
                units::parse_share(text).map(drop)
            });
        }
    };
    match units::parse_share(&number) {
        Ok(_) => Some(number),
        Err(error) => {
            let problem = Problem::new(field.span(), error.message);
            reader.refuse(problem.suggest_if(error.suggestion))
        }
    }
}

/// Checks that every `--flag` among the words is one of the builtin's.
pub(super) fn check_flags(
    reader: &mut Reader<'_>,
    words: &[super::values::CommandWord],
    builtin: &crate::catalogue::Builtin,
) {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let text = word.written.as_str();
        if text == "--" {
            return;
        }
        if !text.starts_with("--") {
            continue;
        }
        let name = text.split_once('=').map_or(text, |(name, _)| name);
        let at = word.written.span(0..name.len());
        match builtin.flags.iter().find(|flag| flag.name == name) {
            Some(flag) if flag.takes_value && name == text => {
                if words.next().is_none() {
                    let message = format!("{name} needs a value");
                    reader.problem(Problem::new(at, message));
                }
            }
            Some(flag) if !flag.takes_value && name != text => {
                let message = format!("{name} takes no value");
                reader.problem(Problem::new(word.written.whole(), message));
            }
            Some(_) => {}
            None => {
                let message = format!("unknown flag {name} of \"{}\"", builtin.command);
                let flags = builtin.flags.iter().map(|flag| flag.name.as_str());
                reader.problem(Problem::new(at, message).suggest_from(name, "flags", flags));
            }
        }
    }
}
