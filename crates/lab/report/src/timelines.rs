//! Timelines of entities: read from their file, packed for the page.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use lab_lifecycle::Table;
use serde::Serialize;

use crate::ReportError;
use crate::blob::{Blob, Column, Text, VALUE_MAX};

/// One lifecycle as the page takes it.
///
/// Number `n` in a column of `at` is `origin_s + n × unit_s` seconds after the
/// start of the run.
#[derive(Debug, Serialize)]
pub(crate) struct Timelines {
    name: String,
    points: Vec<String>,
    entities: usize,
    origin_s: f64,
    unit_s: f64,
    /// One column for each point.
    at: Vec<Column>,
    /// Ids as a JSON list.
    ids: Text,
    groups: Vec<String>,
    /// For each entity the index of its group.
    group: Column,
    /// The log lines of some entities as JSON; see `log_lines.rs`.
    pub(crate) lines: Option<Text>,
}

/// Reads the timelines of `name` from the file at `path`.
pub(crate) fn read(name: &str, path: &Path) -> Result<Table, ReportError> {
    let failed = |problem: String| ReportError::Timelines {
        path: path.to_owned(),
        problem,
    };
    let file = File::open(path).map_err(|cause| failed(format!("cannot open: {cause}")))?;
    Table::read_csv(BufReader::new(file), name).map_err(|error| failed(error.to_string()))
}

impl Timelines {
    /// Packs a table into `blob`.
    pub(crate) fn pack(table: &Table, blob: &mut Blob) -> Result<Self, ReportError> {
        let (origin_ns, unit_ns) = scale(table);
        let mut left: Vec<Vec<Option<u32>>> = Vec::with_capacity(table.points.len());
        let mut at = Vec::with_capacity(table.points.len());
        for point in 0..table.points.len() {
            let number = |ns: i128| ((ns - origin_ns) / unit_ns) as u32;
            let values: Vec<Option<u32>> = table
                .rows
                .iter()
                .map(|row| row.at_ns[point].map(|ns| number(ns.into())))
                .collect();
            at.push(if point == 0 {
                blob.push_column(&values)
            } else {
                blob.push_right_of(&left, &values)
            });
            left.push(values);
        }
        let (groups, group) = groups(table);
        let ids: Vec<&str> = table.rows.iter().map(|row| &*row.id).collect();
        let ids = serde_json::to_string(&ids).map_err(ReportError::Encode)?;
        Ok(Self {
            name: table.name.clone(),
            points: table.points.clone(),
            entities: table.rows.len(),
            origin_s: origin_ns as f64 / 1e9,
            unit_s: unit_ns as f64 / 1e9,
            at,
            ids: blob.push_text(&ids),
            groups,
            group: blob.push_column(&group),
            lines: None,
        })
    }
}

/// The earliest whole microsecond, and the finest unit (a microsecond times a power
/// of ten) in which the latest point still fits: 35 minutes in microseconds, 5 hours
/// in tens of them, and so on.
fn scale(table: &Table) -> (i128, i128) {
    let times = || {
        table
            .rows
            .iter()
            .flat_map(|row| &row.at_ns)
            .flatten()
            .copied()
            .map(i128::from)
    };
    let origin_ns = times().min().unwrap_or(0).div_euclid(1000) * 1000;
    let span_ns = times().max().unwrap_or(0) - origin_ns;
    let mut unit_ns = 1000;
    while span_ns / unit_ns > i128::from(VALUE_MAX) {
        unit_ns *= 10;
    }
    (origin_ns, unit_ns)
}

/// Names of groups in order of first appearance, and each row's group.
fn groups(table: &Table) -> (Vec<String>, Vec<Option<u32>>) {
    let mut names = Vec::new();
    let mut index_of = std::collections::HashMap::new();
    let index = table
        .rows
        .iter()
        .map(|row| {
            row.group.as_ref().map(|group| {
                *index_of.entry(group).or_insert_with(|| {
                    names.push(group.to_string());
                    names.len() as u32 - 1
                })
            })
        })
        .collect();
    (names, index)
}

#[cfg(test)]
mod tests {
    use lab_lifecycle::Row;

    use super::*;

    fn table(rows: &[&[Option<i64>]]) -> Table {
        let row = |at_ns: &&[Option<i64>]| Row {
            id: "a".into(),
            group: None,
            at_ns: at_ns.to_vec(),
        };
        Table {
            name: "task".into(),
            points: (0..rows[0].len()).map(|i| format!("p{i}")).collect(),
            rows: rows.iter().map(row).collect(),
        }
    }

    fn read_text(text: &str) -> Result<Table, ReportError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("task.csv");
        std::fs::write(&path, text).unwrap();
        read("task", &path)
    }

    #[test]
    fn an_error_names_the_line() {
        let error = read_text("id,group,a\nx,,1\ny,,soon\n")
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("line 3") && error.contains("soon"),
            "{error}"
        );
        let error = read_text("id,cell,a\n").unwrap_err().to_string();
        assert!(error.contains("id,group"), "{error}");
    }

    #[test]
    fn times_before_the_start_move_the_origin() {
        assert_eq!(
            scale(&table(&[&[Some(-1_500), Some(9_000)]])),
            (-2000, 1000)
        );
    }

    #[test]
    fn long_runs_get_a_coarser_unit() {
        let hour = 3_600_000_000_000;
        assert_eq!(scale(&table(&[&[Some(0), Some(hour)]])).1, 10_000);
        assert_eq!(
            scale(&table(&[&[Some(i64::MIN), Some(i64::MAX)]])).1,
            10_000_000_000
        );
    }

    #[test]
    fn nothing_at_all_can_be_packed() {
        let mut blob = Blob::default();
        let packed = Timelines::pack(&table(&[&[None, None]]), &mut blob).unwrap();
        assert_eq!((packed.entities, packed.origin_s), (1, 0.0));
    }
}
