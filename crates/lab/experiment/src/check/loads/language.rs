//! The texts of requests, checked by the language of requests itself.

use std::collections::BTreeMap;

use document::{Problem, Span};

use super::super::values::Reader;
use crate::load::{LoadError, LoadFiles};
use crate::plan::Load;
use crate::text::Text;
use lab_load::request::{RequestError, Table};

/// Stand-ins for the files that a load names, by which its texts can be checked.
pub(super) fn files(load: &Load, texts: &[Text]) -> LoadFiles {
    LoadFiles {
        tables: tables(load, texts),
        ..LoadFiles::default()
    }
}

/// Reports what cannot be understood of the target or a text; whether all of it can.
pub(super) fn ok_or_report(
    reader: &mut Reader<'_>,
    checked: Result<(), LoadError>,
    target: &Text,
    texts: &[Text],
) -> bool {
    let problem = match checked {
        Ok(()) => return true,
        Err(LoadError::Target(error)) => {
            Problem::new(target.span(error.at), error.message).suggest_if(error.suggestion)
        }
        Err(LoadError::Request(error)) => {
            let problem = match place(texts, &error) {
                Some(span) => Problem::new(span, error.message),
                None => {
                    let message = format!("{}: {}", error.place, error.message);
                    Problem::new(target.whole(), message)
                }
            };
            problem.suggest_if(error.suggestion)
        }
    };
    reader.problem(problem);
    false
}

/// Where the text stands that the language speaks of; it may be a part of one.
fn place(texts: &[Text], error: &RequestError) -> Option<Span> {
    if error.text.is_empty() {
        return None;
    }
    let whole = texts.iter().find(|text| text.as_str() == error.text);
    let part = || {
        texts
            .iter()
            .find(|text| text.as_str().contains(&error.text))
    };
    let text = whole.or_else(part)?;
    let from = text.as_str().find(&error.text)?;
    Some(text.span(from + error.at.start..from + error.at.end))
}

/// A table in place of each file, with every column that is asked for: the files are
/// read when the run starts, and say then which columns they have.
fn tables(load: &Load, texts: &[Text]) -> BTreeMap<String, Table> {
    let mut tables: BTreeMap<String, Table> = load
        .tables
        .keys()
        .map(|name| (name.clone(), Table::default()))
        .collect();
    for text in texts {
        for part in text.as_str().split("{line ").skip(1) {
            let end = part.find(|c: char| c == '}' || c.is_whitespace());
            let column = part.get(..end.unwrap_or(part.len())).unwrap_or_default();
            if let Some((table, column)) = column.split_once('.')
                && let Some(table) = tables.get_mut(table)
                && !table.columns.iter().any(|known| known == column)
            {
                table.columns.push(column.to_owned());
            }
        }
    }
    for table in tables.values_mut() {
        table.rows.push(vec!["x".to_owned(); table.columns.len()]);
    }
    tables
}
