//! Timelines of entities: read from their file, packed for the page.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;

use lab_lifecycle::{Row, Table};
use lab_store::csv::{CsvError, Reader};
use serde::Serialize;

use crate::ReportError;
use crate::blob::{Blob, Column, Text, VALUE_MAX};

/// Most entities of one lifecycle.
const ENTITIES_MAX: usize = 2_000_000;
/// Columns before the points.
const FIXED: [&str; 2] = ["id", "group"];

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
}

/// Reads the timelines of `name` from the file at `path`.
pub(crate) fn read(name: &str, path: &Path) -> Result<Table, ReportError> {
    let failed = |line, problem| ReportError::Timelines {
        path: path.to_owned(),
        line,
        problem,
    };
    let explain = |error| match error {
        CsvError::Io(cause) => failed(0, format!("cannot read: {cause}")),
        CsvError::Malformed { line, problem } => failed(line, problem),
    };
    let file = File::open(path).map_err(|cause| failed(0, format!("cannot open: {cause}")))?;
    let mut reader = Reader::new(BufReader::new(file));
    let mut table = Table {
        name: name.to_owned(),
        ..Table::default()
    };
    match reader.next_record().map_err(explain)? {
        Some((_, header)) if header.len() > FIXED.len() && header[..2] == FIXED => {
            table.points = header[FIXED.len()..].to_vec();
        }
        other => {
            let found = other
                .map(|(_, header)| header.join(","))
                .unwrap_or_default();
            let problem = format!("expected the header `id,group,POINT,...`, found `{found}`");
            return Err(failed(1, problem));
        }
    }
    while let Some((line, fields)) = reader.next_record().map_err(explain)? {
        if table.rows.len() == ENTITIES_MAX {
            return Err(failed(line, format!("more than {ENTITIES_MAX} entities")));
        }
        table
            .rows
            .push(row(fields, table.points.len()).map_err(|text| failed(line, text))?);
    }
    Ok(table)
}

fn row(fields: &[String], points: usize) -> Result<Row, String> {
    if fields.len() != FIXED.len() + points {
        return Err(format!(
            "expected {} fields, found {}",
            FIXED.len() + points,
            fields.len()
        ));
    }
    let at = |text: &String| match text.as_str() {
        "" => Ok(None),
        digits => digits
            .parse()
            .map(Some)
            .map_err(|_| format!("expected nanoseconds or nothing, found {digits:?}")),
    };
    Ok(Row {
        id: Arc::from(fields[0].as_str()),
        group: (!fields[1].is_empty()).then(|| Arc::from(fields[1].as_str())),
        at_ns: fields[FIXED.len()..]
            .iter()
            .map(at)
            .collect::<Result<_, _>>()?,
    })
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
    fn rows_are_read_with_missing_points_and_negative_times() {
        let table = read_text("id,group,a,b\nx,cell-1,-5,\n\"y,z\",,1,2\n").unwrap();
        assert_eq!(table.points, ["a", "b"]);
        assert_eq!(table.rows[0].at_ns, [Some(-5), None]);
        assert_eq!(table.rows[0].group.as_deref(), Some("cell-1"));
        assert_eq!(
            (&*table.rows[1].id, table.rows[1].group.as_deref()),
            ("y,z", None)
        );
    }

    #[test]
    fn an_error_names_the_line() {
        let error = read_text("id,group,a\nx,,1\ny,,soon\n")
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("line 3") && error.contains("\"soon\""),
            "{error}"
        );
        let error = read_text("id,cell,a\n").unwrap_err().to_string();
        assert!(error.contains("id,group,POINT"), "{error}");
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
