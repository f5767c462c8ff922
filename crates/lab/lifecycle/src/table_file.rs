//! A table as comma-separated values (RFC 4180): `id,group,<point>…`, times in whole
//! nanoseconds, an empty cell where there is no time or group.

use std::io::{self, BufRead, Write};
use std::sync::Arc;

use csv::{Reader, Record, push_cell, push_quoted};

use crate::table::{Row, Table};

/// Most rows of a table that is read.
pub const MAX_ROWS: usize = 4_000_000;
/// Longest record that is read.
const MAX_RECORD_BYTES: usize = 1 << 20;

/// A file that is not a table.
#[derive(Debug, thiserror::Error)]
pub enum CsvError {
    /// The file cannot be read, or is no CSV.
    #[error(transparent)]
    Record(#[from] csv::CsvError),
    /// The first line does not begin as every table does.
    #[error("line 1: expected a header that begins with `id,group`, found `{found}`")]
    Header {
        /// The first line.
        found: String,
    },
    /// A record does not have the cells that the header names.
    #[error("line {line}: expected {expected} cells, found {found}")]
    Cells {
        /// Line on which the record starts.
        line: u64,
        /// Cells of the header.
        expected: usize,
        /// Cells of this record.
        found: usize,
    },
    /// A cell is no time.
    #[error("line {line}: `{point}` should be whole nanoseconds or empty, found `{found}`")]
    Time {
        /// Line on which the record starts.
        line: u64,
        /// Name of the column.
        point: String,
        /// The cell.
        found: String,
    },
    /// More rows than [`MAX_ROWS`].
    #[error("line {line}: the table has more than {MAX_ROWS} rows")]
    TooManyRows {
        /// Line of the first row too many.
        line: u64,
    },
}

impl Table {
    /// Writes the table; [`Table::read_csv`] gives exactly the same back, except for
    /// the name. Writes small pieces, so give it something buffered.
    pub fn write_csv(&self, mut out: impl Write) -> io::Result<()> {
        let mut line = "id,group".to_owned();
        for point in &self.points {
            line.push(',');
            push_text(&mut line, point);
        }
        writeln!(out, "{line}")?;
        for row in &self.rows {
            line.clear();
            push_text(&mut line, &row.id);
            line.push(',');
            if let Some(group) = &row.group {
                push_text(&mut line, group);
            }
            out.write_all(line.as_bytes())?;
            for at in &row.at_ns {
                match at {
                    Some(at) => write!(out, ",{at}")?,
                    None => write!(out, ",")?,
                }
            }
            writeln!(out)?;
        }
        Ok(())
    }

    /// Reads a table that was written by [`Table::write_csv`], or by another program
    /// in this form, and names it.
    pub fn read_csv(from: impl BufRead, name: &str) -> Result<Self, CsvError> {
        let mut reader = Reader::new(from, MAX_RECORD_BYTES);
        let header = match reader.next_record()? {
            Some(header) => header.whole()?.cells.as_slice(),
            None => &[],
        };
        let points = match header {
            [id, group, points @ ..] if id.text == "id" && group.text == "group" => points,
            _ => {
                let found: Vec<&str> = header.iter().map(|cell| &*cell.text).collect();
                let found = found.join(",").chars().take(80).collect();
                return Err(CsvError::Header { found });
            }
        };
        let points: Vec<String> = points.iter().map(|cell| cell.text.clone()).collect();
        let mut rows = Vec::new();
        while let Some(record) = reader.next_record()? {
            let record = record.whole()?;
            if rows.len() >= MAX_ROWS {
                return Err(CsvError::TooManyRows { line: record.line });
            }
            rows.push(row(record, &points)?);
        }
        Ok(Self {
            name: name.to_owned(),
            points,
            rows,
        })
    }
}

fn row(record: &Record, points: &[String]) -> Result<Row, CsvError> {
    let line = record.line;
    let wrong = || CsvError::Cells {
        line,
        expected: points.len() + 2,
        found: record.cells.len(),
    };
    let [id, group, times @ ..] = record.cells.as_slice() else {
        return Err(wrong());
    };
    if times.len() != points.len() {
        return Err(wrong());
    }
    let at_ns = times
        .iter()
        .zip(points)
        .map(|(cell, point)| match cell.text.as_str() {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|_| CsvError::Time {
                line,
                point: point.clone(),
                found: text.chars().take(80).collect(),
            }),
        });
    Ok(Row {
        id: Arc::from(id.text.as_str()),
        group: (group.quoted || !group.text.is_empty()).then(|| Arc::from(group.text.as_str())),
        at_ns: at_ns.collect::<Result<_, _>>()?,
    })
}

/// Quotes what must be quoted, and an empty text, which would else mean "none".
fn push_text(out: &mut String, text: &str) {
    match text.is_empty() {
        true => push_quoted(out, text),
        false => push_cell(out, text),
    }
}

#[cfg(test)]
#[path = "table_file_tests.rs"]
mod tests;
