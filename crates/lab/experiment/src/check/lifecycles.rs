//! `[[lifecycle]]` and `[[loop]]`: what is mined from logs.

use document::Problem;
use lab_lifecycle::{Matcher, MatcherError};
use regex::Regex;

use super::entries::Entry;
use super::fields::{Field, Fields};
use super::values::{Reader, all, name_problem};
use crate::plan::{Lifecycle, Loop};

/// Most points of a lifecycle.
const MOST_POINTS: usize = 64;
/// Most fields in a list of fields.
const MOST_FIELDS: usize = 64;

/// Reads a `[[lifecycle]]`.
pub(super) fn lifecycle(reader: &mut Reader<'_>, entry: &Entry<'_>) -> Option<Lifecycle> {
    let known = ["name", "key", "alias", "group", "points"];
    let fields = Fields::open(entry.value, entry.label, &known, reader)?;
    entry.refuse_reserved(reader, "lifecycle");
    let key = fields
        .require("key", "[\"...\"], fields that identify an entity", reader)
        .and_then(|field| identities(reader, field, 1));
    let alias = fields.value_or("alias", Vec::new(), |field| {
        log_fields(reader, field, 0).and_then(|items| aliases(reader, field, items))
    });
    let group = fields.value_or("group", Vec::new(), |field| identities(reader, field, 0));
    let example = "[[\"begun\", \"matcher\"], [\"done\", \"matcher\"]]";
    let points = fields
        .require("points", example, reader)
        .and_then(|field| points(reader, field));
    Some(Lifecycle {
        name: entry.name.clone()?,
        key: key?,
        alias: alias?,
        group: group?,
        points: points?,
    })
}

/// A list of names of fields in log lines.
fn log_fields(reader: &mut Reader<'_>, field: Field<'_>, least: usize) -> Option<Vec<String>> {
    let names = reader.lines(field, "a list of fields such as [\"task-guid\"]")?;
    if !(least..=MOST_FIELDS).contains(&names.len()) {
        let message = format!("\"{}\" needs {least} to {MOST_FIELDS} fields", field.key);
        return reader.refuse(Problem::new(field.span(), message));
    }
    Some(names)
}

/// Where lines have what identifies something: names of fields, or `/re/` whose only group
/// is found in the message.
fn identities(reader: &mut Reader<'_>, field: Field<'_>, least: usize) -> Option<Vec<String>> {
    let items = reader.list(field, "a list of fields such as [\"task-guid\"]")?;
    if !(least..=MOST_FIELDS).contains(&items.len()) {
        let message = format!("\"{}\" needs {least} to {MOST_FIELDS} fields", field.key);
        return reader.refuse(Problem::new(field.span(), message));
    }
    all(items.into_iter().map(|item| identity(reader, item)))
}

fn identity(reader: &mut Reader<'_>, item: Field<'_>) -> Option<String> {
    let is_pattern = |text: &str| between_slashes(text).is_some();
    if !item.value.get_ref().as_str().is_some_and(is_pattern) {
        return reader.line(
            item,
            "a field such as \"task-guid\", or a /pattern/ with one group",
        );
    }
    // Names are not filled in, for a pattern may hold braces.
    let text = reader.verbatim(item, "a /pattern/")?;
    let fault = match Regex::new(between_slashes(text.as_str())?) {
        Err(error) => unreadable(&error),
        // The whole match counts as a group too.
        Ok(regex) if regex.captures_len() == 2 => return Some(text.as_str().to_owned()),
        Ok(regex) => format!(
            "the pattern has {} groups, and needs one: what identifies the entity",
            regex.captures_len() - 1
        ),
    };
    let problem = Problem::new(text.whole(), fault);
    reader.refuse(problem.help("as in /task (\\S+) started/; write other groups as (?:...)"))
}

/// Splits `a+b` into its fields.
fn aliases(
    reader: &mut Reader<'_>,
    field: Field<'_>,
    items: Vec<String>,
) -> Option<Vec<Vec<String>>> {
    let mut aliases = Vec::new();
    for item in items {
        let parts: Vec<String> = item.split('+').map(|part| part.trim().to_owned()).collect();
        if parts.iter().any(String::is_empty) {
            let message = format!("\"{item}\" has no field on one side of a +");
            return reader.refuse(Problem::new(field.span(), message));
        }
        aliases.push(parts);
    }
    Some(aliases)
}

fn points(reader: &mut Reader<'_>, field: Field<'_>) -> Option<Vec<(String, String)>> {
    let expected = "a list of points such as [[\"begun\", \"matcher\"], [\"done\", \"matcher\"]]";
    let items = reader.list(field, expected)?;
    if !(2..=MOST_POINTS).contains(&items.len()) {
        let message = format!(
            "a lifecycle has 2 to {MOST_POINTS} points, found {}",
            items.len()
        );
        return reader.refuse(Problem::new(field.span(), message));
    }
    let mut points: Vec<(String, String)> = Vec::new();
    let mut good = true;
    for item in items {
        match point(reader, item) {
            Some((name, _)) if points.iter().any(|(other, _)| *other == name) => {
                let message = format!("the point \"{name}\" comes twice");
                reader.problem(Problem::new(item.span(), message));
                good = false;
            }
            Some(point) => points.push(point),
            None => good = false,
        }
    }
    good.then_some(points)
}

fn point(reader: &mut Reader<'_>, item: Field<'_>) -> Option<(String, String)> {
    let expected = "pairs of a name and a matcher, as in [\"begun\", \"task.started\"]";
    let parts = reader.list(item, expected)?;
    let [name, with] = parts.as_slice() else {
        return reader.mismatch(item, expected);
    };
    let text = reader.verbatim(*name, "a list of pairs of strings");
    let matcher = matcher(
        reader,
        Field {
            key: "matcher",
            value: with.value,
        },
    );
    let text = text?;
    if let Some(problem) = name_problem(text.as_str()) {
        return reader.refuse(Problem::new(name.span(), problem));
    }
    Some((text.as_str().to_owned(), matcher?))
}

/// A matcher of log lines: text that a line contains, `/re/`, or `field=value`.
/// Names are not filled in, for a pattern may hold braces.
pub(super) fn matcher(reader: &mut Reader<'_>, field: Field<'_>) -> Option<String> {
    let text = reader.verbatim(field, "a text, /pattern/ or field=value")?;
    let matcher = text.as_str();
    let says_nothing = matcher.trim().is_empty() || between_slashes(matcher) == Some("");
    if says_nothing || matcher.contains('\n') {
        let message = "a matcher is text of one line; this one matches every line or none";
        return reader.refuse(Problem::new(field.span(), message));
    }
    // No run takes it.
    if let Err(error @ MatcherError::TooLong { .. }) = Matcher::parse(matcher) {
        return reader.refuse(Problem::new(field.span(), error.to_string()));
    }
    if let Some(pattern) = between_slashes(matcher)
        && let Err(error) = Regex::new(pattern)
    {
        return reader.refuse(Problem::new(text.whole(), unreadable(&error)));
    }
    Some(matcher.to_owned())
}

fn between_slashes(text: &str) -> Option<&str> {
    text.strip_prefix('/')?.strip_suffix('/')
}

/// The last line of an expression's fault says what is wrong.
pub(super) fn unreadable(error: &regex::Error) -> String {
    let text = error.to_string();
    let line = text.lines().last().unwrap_or_default().trim();
    let reason = line.strip_prefix("error: ").unwrap_or(line);
    format!("the pattern cannot be read: {reason}")
}

/// Reads a `[[loop]]`.
pub(super) fn recurring(reader: &mut Reader<'_>, entry: &Entry<'_>) -> Option<Loop> {
    let known = ["name", "start", "end"];
    let fields = Fields::open(entry.value, entry.label, &known, reader)?;
    let mut end = |key| {
        fields
            .require(key, "\"matcher\"", reader)
            .and_then(|field| matcher(reader, field))
    };
    let (start, end) = (end("start"), end("end"));
    Some(Loop {
        name: entry.name.clone()?,
        start: start?,
        end: end?,
    })
}
