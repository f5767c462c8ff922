//! A table as comma-separated values (RFC 4180): `id,group,<point>…`, times in whole
//! nanoseconds, an empty cell where there is no time or group.

use std::io::{self, BufRead, Read, Write};
use std::sync::Arc;

use crate::table::{Row, Table};

/// Most rows of a table that is read.
pub const MAX_ROWS: usize = 4_000_000;
/// Longest record that is read.
const MAX_RECORD_BYTES: u64 = 1 << 20;

/// A file that is not a table.
#[derive(Debug, thiserror::Error)]
pub enum CsvError {
    /// The file cannot be read.
    #[error("line {line}: cannot read the table: {reason}")]
    Read {
        /// Line, counted from 1.
        line: u64,
        /// What the system says.
        reason: io::Error,
    },
    /// The first line does not begin as every table does.
    #[error("line 1: expected a header that begins with `id,group`, found `{found}`")]
    Header {
        /// The first line.
        found: String,
    },
    /// A quote that does not enclose a whole cell, or is never closed.
    #[error(
        "line {line}: a quote is out of place; a cell is quoted as a whole, a quote in it doubled"
    )]
    Quote {
        /// Line on which the record starts.
        line: u64,
    },
    /// The text is not UTF-8.
    #[error("line {line}: the text is not UTF-8")]
    Encoding {
        /// Line on which the record starts.
        line: u64,
    },
    /// A record is longer than any that this program writes.
    #[error("line {line}: the record has more than {MAX_RECORD_BYTES} bytes")]
    TooLong {
        /// Line on which the record starts.
        line: u64,
    },
    /// The file was cut: its last line has no end.
    #[error("line {line}: the file ends in the middle of this line")]
    Cut {
        /// The last line.
        line: u64,
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
        write!(out, "id,group")?;
        for point in &self.points {
            write!(out, ",")?;
            write_text(&mut out, point)?;
        }
        writeln!(out)?;
        for row in &self.rows {
            write_text(&mut out, &row.id)?;
            write!(out, ",")?;
            if let Some(group) = &row.group {
                write_text(&mut out, group)?;
            }
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
    pub fn read_csv(mut from: impl BufRead, name: &str) -> Result<Self, CsvError> {
        let mut records = Records {
            from: &mut from,
            next_line: 1,
        };
        let header = records.next()?.unwrap_or_default();
        let points = match header.cells.as_slice() {
            [id, group, points @ ..] if id.text == "id" && group.text == "group" => points,
            _ => {
                let found: Vec<&str> = header.cells.iter().map(|cell| &*cell.text).collect();
                let found = found.join(",").chars().take(80).collect();
                return Err(CsvError::Header { found });
            }
        };
        let points: Vec<String> = points.iter().map(|cell| cell.text.clone()).collect();
        let mut rows = Vec::new();
        while let Some(record) = records.next()? {
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

fn row(record: Record, points: &[String]) -> Result<Row, CsvError> {
    let line = record.line;
    let [id, group, times @ ..] = record.cells.as_slice() else {
        let found = record.cells.len();
        return Err(CsvError::Cells {
            line,
            expected: points.len() + 2,
            found,
        });
    };
    if times.len() != points.len() {
        let found = record.cells.len();
        return Err(CsvError::Cells {
            line,
            expected: points.len() + 2,
            found,
        });
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
fn write_text(out: &mut impl Write, text: &str) -> io::Result<()> {
    if !text.is_empty() && !text.contains([',', '"', '\n', '\r']) {
        return out.write_all(text.as_bytes());
    }
    write!(out, "\"{}\"", text.replace('"', "\"\""))
}

#[derive(Debug, Default)]
struct Record {
    /// Line on which it starts.
    line: u64,
    cells: Vec<Cell>,
}

#[derive(Debug, Default)]
struct Cell {
    text: String,
    quoted: bool,
}

struct Records<'a, R> {
    from: &'a mut R,
    next_line: u64,
}

impl<R: BufRead> Records<'_, R> {
    fn next(&mut self) -> Result<Option<Record>, CsvError> {
        let line = self.next_line;
        let mut bytes = Vec::new();
        loop {
            let room = MAX_RECORD_BYTES + 1 - bytes.len() as u64;
            let got = self
                .from
                .take(room)
                .read_until(b'\n', &mut bytes)
                .map_err(|reason| CsvError::Read {
                    line: self.next_line,
                    reason,
                })?;
            if bytes.len() as u64 > MAX_RECORD_BYTES {
                return Err(CsvError::TooLong { line });
            }
            self.next_line += u64::from(got > 0);
            // A line end inside quotes belongs to the cell.
            let whole = bytes.iter().filter(|byte| **byte == b'"').count() % 2 == 0;
            match (got, whole) {
                (0, false) => return Err(CsvError::Quote { line }),
                (0, true) if bytes.is_empty() => return Ok(None),
                (_, true) => break,
                (_, false) => {}
            }
        }
        // A number that was cut would be read as another number.
        if bytes.pop_if(|last| *last == b'\n').is_none() {
            return Err(CsvError::Cut { line });
        }
        bytes.pop_if(|last| *last == b'\r');
        let text = String::from_utf8(bytes).map_err(|_| CsvError::Encoding { line })?;
        let cells = cells(&text).ok_or(CsvError::Quote { line })?;
        Ok(Some(Record { line, cells }))
    }
}

/// Splits a record; `None`: a quote is out of place.
fn cells(record: &str) -> Option<Vec<Cell>> {
    let mut cells = Vec::new();
    let mut rest = record;
    loop {
        let (cell, after) = match rest.strip_prefix('"') {
            Some(inside) => quoted_cell(inside)?,
            None => {
                let (text, after) = rest.split_at(rest.find(',').unwrap_or(rest.len()));
                if text.contains('"') {
                    return None;
                }
                (
                    Cell {
                        text: text.to_owned(),
                        quoted: false,
                    },
                    after,
                )
            }
        };
        cells.push(cell);
        match after.strip_prefix(',') {
            Some(next) => rest = next,
            None if after.is_empty() => return Some(cells),
            None => return None,
        }
    }
}

/// The cell whose opening quote was just passed, and what follows its closing quote.
fn quoted_cell(inside: &str) -> Option<(Cell, &str)> {
    let mut text = String::new();
    let mut rest = inside;
    loop {
        let (before, after) = rest.split_once('"')?;
        text.push_str(before);
        match after.strip_prefix('"') {
            Some(more) => {
                text.push('"');
                rest = more;
            }
            None => return Some((Cell { text, quoted: true }, after)),
        }
    }
}

#[cfg(test)]
#[path = "csv_tests.rs"]
mod tests;
