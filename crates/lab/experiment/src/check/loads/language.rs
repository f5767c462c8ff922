//! The texts of requests, checked by the language of requests itself.

use std::collections::BTreeMap;

use super::super::values::Reader;
use crate::diagnostic::Problem;
use crate::load::LoadFiles;
use crate::names::stand_in;
use crate::plan::{Load, Reference};
use crate::text::Text;
use lab_load::Target;
use lab_load::request::{Composer, RequestError, Table};

/// Checks that the target and every text can be understood; says what cannot.
pub(super) fn check(reader: &mut Reader<'_>, load: &Load, target: &Text, texts: &[Text]) -> bool {
    let stands = |reference: &Reference| stand_in(reference).to_owned();
    let found = match Target::parse(target.as_str()) {
        Ok((found, _)) => found,
        Err(error) => {
            let problem = Problem::new(target.span(error.at.clone()), error.message);
            reader.problem(match error.suggestion {
                Some(meant) => problem.suggest(meant),
                None => problem,
            });
            return false;
        }
    };
    let files = LoadFiles {
        tables: tables(load, texts),
        ..LoadFiles::default()
    };
    let workload = load.workload(found, 0, files, &stands);
    match Composer::new(&workload.mix, &workload.target, workload.seed) {
        Ok(_) => true,
        Err(error) => {
            reader.problem(shown(target, texts, error));
            false
        }
    }
}

/// The problem at its place in the file; where no text of the file is meant, at the
/// target.
fn shown(target: &Text, texts: &[Text], error: RequestError) -> Problem {
    let text = texts.iter().find(|text| text.as_str() == error.text);
    let problem = match text {
        Some(text) => Problem::new(text.span(error.at), error.message),
        None => {
            let message = format!("{}: {}", error.place, error.message);
            Problem::new(target.whole(), message)
        }
    };
    match error.suggestion {
        Some(meant) => problem.suggest(meant),
        None => problem,
    }
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
