//! Timelines of entities: read from their file, packed for the page.

use std::cmp::Ordering;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use lab_lifecycle::Table;
use serde::Serialize;

use crate::ReportError;
use crate::blob::{Blob, Column, Text, VALUE_MAX, coarse_len};
use crate::ids::{self, Ids};

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
    /// Bits behind the highest one that the lengths of phases keep at least; `None`: all of them.
    digits: Option<u32>,
    /// Of coarse columns: what the first point that an entity shows is predicted by.
    first: Option<Column>,
    /// One column for each point.
    at: Vec<Column>,
    ids: Ids,
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
    /// Packs a table into `blob`. If times would take more than `most` bytes, the lengths of phases
    /// are rounded to as many bits as there is room for.
    pub(crate) fn pack(table: &Table, most: f64, blob: &mut Blob) -> Result<Self, ReportError> {
        let (origin_ns, unit_ns) = scale(table);
        let number = |ns: i128| ((ns - origin_ns) / unit_ns) as u32;
        let columns: Vec<Vec<Option<u32>>> = (0..table.points.len())
            .map(|point| {
                let times = table.rows.iter().map(|row| row.at_ns[point]);
                times.map(|ns| ns.map(|ns| number(ns.into()))).collect()
            })
            .collect();
        let digits = digits(&columns, most);
        let fewest = digits.iter().copied().min();
        let first: Vec<Option<u32>> = match fewest {
            None => Vec::new(),
            Some(_) => (0..table.rows.len())
                .map(|row| columns.iter().find_map(|column| column[row]))
                .collect(),
        };
        let anchors = fewest.map(|_| blob.push_column(&first));
        let at = (0..columns.len())
            .map(|point| match (digits.get(point), point) {
                (Some(digits), _) => {
                    blob.push_coarse(&columns[..point], &first, &columns[point], *digits)
                }
                (None, 0) => blob.push_column(&columns[0]),
                (None, _) => blob.push_right_of(&columns[..point], &columns[point]),
            })
            .collect();
        let (groups, group) = groups(table);
        Ok(Self {
            name: table.name.clone(),
            points: table.points.clone(),
            entities: table.rows.len(),
            origin_s: origin_ns as f64 / 1e9,
            unit_s: unit_ns as f64 / 1e9,
            digits: fewest,
            first: anchors,
            at,
            ids: ids::pack(table.rows.iter().map(|row| &*row.id), blob)?,
            groups,
            group: blob.push_column(&group),
            lines: None,
        })
    }
}

#[cfg(test)]
impl Timelines {
    /// Where the times of each point lie.
    pub(crate) fn at(&self) -> &[Column] {
        &self.at
    }
}

/// Bytes that the times of all lifecycles of a page may take, about. With as many ids of 16 bytes as there are
/// entities of 16 points in them, that is a page of less than 40 MB.
pub(crate) const TIMES_MOST: f64 = 14.9e6;
/// Most and fewest bits behind the highest one that lengths are rounded to: by 0.01 % and 3 % at most.
const DIGITS_MOST: u32 = 12;
const DIGITS_LEAST: u32 = 4;

/// Bits that the lengths before each point keep so that the columns take no more than `most` bytes, as far as
/// that can be had; empty: all.
fn digits(columns: &[Vec<Option<u32>>], most: f64) -> Vec<u32> {
    let len = |point: usize, digits: u32| coarse_len(&columns[..point], &columns[point], digits);
    let all = |digits: u32| -> Vec<f64> {
        let points = 0..columns.len();
        points.map(|point| len(point, digits)).collect()
    };
    let cells: usize = columns.iter().map(Vec::len).sum();
    // No number takes more than four bytes.
    if 4.0 * cells as f64 <= most || all(u32::BITS - 1).iter().sum::<f64>() <= most {
        return Vec::new();
    }
    let mut digits = vec![DIGITS_MOST; columns.len()];
    let mut lens = all(DIGITS_MOST);
    while lens.iter().sum::<f64>() > most {
        // The costliest of those that keep most.
        let candidates = (0..digits.len()).filter(|point| digits[*point] > DIGITS_LEAST);
        let next = candidates.max_by(|a, b| {
            let of = |point: usize| (digits[point], lens[point]);
            of(*a).partial_cmp(&of(*b)).unwrap_or(Ordering::Equal)
        });
        let Some(point) = next else { break };
        digits[point] -= 1;
        lens[point] = len(point, digits[point]);
    }
    digits
}

/// The earliest whole microsecond, and the finest unit (a microsecond times a power
/// of ten) in which the latest point still fits: 35 minutes in microseconds, 5 hours
/// in tens of them, and so on.
fn scale(table: &Table) -> (i128, i128) {
    let mut times = table.rows.iter().flat_map(|row| &row.at_ns).flatten();
    let span = times.next().map(|at| {
        times.fold((*at, *at), |(first, last), at| {
            (first.min(*at), last.max(*at))
        })
    });
    scale_of(span)
}

/// The same by the earliest and the latest time; `None`: there is none.
pub(crate) fn scale_of(span: Option<(i64, i64)>) -> (i128, i128) {
    let (first, last) = span.unwrap_or_default();
    let origin_ns = i128::from(first).div_euclid(1000) * 1000;
    let span_ns = i128::from(last) - origin_ns;
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

    /// The numbers of a coarse table, as the page reads them.
    fn read_coarse(packed: &Timelines, blob: &[u8]) -> Vec<Vec<Option<i64>>> {
        let stored = |column: &Column, row: usize| -> i64 {
            let byte = |plane: usize| i64::from(blob[column.at + plane * column.n + row]);
            (0..column.planes)
                .map(|plane| byte(plane) << (8 * plane))
                .sum()
        };
        let mut before = 0;
        let mut rows = Vec::new();
        for row in 0..packed.entities {
            let anchor = packed.first.as_ref().unwrap();
            if let Some(folded) = stored(anchor, row)
                .checked_sub(1)
                .filter(|folded| *folded >= 0)
            {
                let above = if anchor.coding == crate::blob::Coding::Above {
                    before
                } else {
                    0
                };
                before = above + (folded >> 1 ^ -(folded & 1));
            }
            let mut nearest = before;
            let point = |column: &Column| {
                let folded = stored(column, row) - 1;
                let (code, digits) = (folded >> 1, column.digits.unwrap());
                if folded < 0 {
                    return None;
                }
                let size = match code >> digits {
                    0 | 1 => code,
                    bits => (code & ((1 << digits) - 1) | 1 << digits) << (bits - 1),
                };
                nearest += if folded & 1 == 1 { -size } else { size };
                Some(nearest)
            };
            rows.push(packed.at.iter().map(point).collect());
        }
        rows
    }

    #[test]
    fn without_room_lengths_are_rounded_and_nothing_else() {
        let mut dice = stats::SplitMix::new(5);
        let rows: Vec<Vec<Option<i64>>> = (0..2000)
            .map(|row| {
                let mut at = row * 400_000;
                (0..6)
                    .map(|_| {
                        // One in 50 goes backwards, one in 20 is missing.
                        at += (1e9 * dice.unit().powi(3)) as i64
                            - 3_000_000 * i64::from(dice.unit() < 0.02);
                        (dice.unit() >= 0.05).then_some(at / 1000 * 1000)
                    })
                    .collect()
            })
            .collect();
        let rows: Vec<&[Option<i64>]> = rows.iter().map(Vec::as_slice).collect();
        let (table, mut blob) = (table(&rows), Blob::default());
        let packed = Timelines::pack(&table, 15_000.0, &mut blob).unwrap();
        let digits = packed.digits.unwrap();
        assert!((DIGITS_LEAST..DIGITS_MOST).contains(&digits), "{digits}");
        let found = read_coarse(&packed, blob.bytes());
        let origin = (packed.origin_s * 1e6).round() as i64;
        for (row, found) in table.rows.iter().zip(found) {
            let exact = row.at_ns.iter().map(|ns| ns.map(|ns| ns / 1000 - origin));
            let both: Vec<(i64, i64)> = exact
                .zip(found)
                .filter_map(|(exact, found)| {
                    assert_eq!(exact.is_some(), found.is_some());
                    exact.zip(found)
                })
                .collect();
            if let Some((exact, found)) = both.first() {
                assert_eq!(exact, found, "the first time of an entity is whole");
            }
            for pair in both.windows(2) {
                let (exact, found) = (pair[1].0 - pair[0].0, pair[1].1 - pair[0].1);
                assert_eq!(exact.signum(), found.signum());
                let most = exact.abs() as f64 / f64::from(2 << digits);
                assert!(
                    (exact - found).abs() as f64 <= most,
                    "{exact} became {found}"
                );
            }
        }
    }

    #[test]
    fn times_that_have_room_are_whole() {
        let mut blob = Blob::default();
        let rows: [&[Option<i64>]; 2] = [&[Some(0), Some(123_456_789_000)], &[Some(1000), None]];
        let packed = Timelines::pack(&table(&rows), 16.0, &mut blob).unwrap();
        assert!(packed.digits.is_none() && packed.first.is_none());
    }

    #[test]
    fn nothing_at_all_can_be_packed() {
        let mut blob = Blob::default();
        let packed = Timelines::pack(&table(&[&[None, None]]), TIMES_MOST, &mut blob).unwrap();
        assert_eq!((packed.entities, packed.origin_s), (1, 0.0));
    }
}
