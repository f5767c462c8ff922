//! Reading files of records, line by line.

use std::io::{BufRead, Read};
use std::path::Path;

use csv::{Cell, CsvError, Problem, Reader};

use crate::{LINE_BYTES_MAX, RECORDS_MAX, Record, StoreError};

/// Every record of one kind in `input`, which is the file at `path`.
pub(crate) fn records<R: Record>(path: &Path, input: impl BufRead) -> Result<Vec<R>, StoreError> {
    match R::COLUMNS {
        Some(columns) => csv_records(path, input, columns),
        None => json_lines(path, input),
    }
}

fn csv_records<R: Record>(
    path: &Path,
    input: impl BufRead,
    columns: &[&str],
) -> Result<Vec<R>, StoreError> {
    let explain = |error: CsvError| match error.problem {
        Problem::Read(cause) => StoreError::io("read", path)(cause),
        problem => StoreError::malformed(path, error.line, problem.to_string()),
    };
    let mut reader = Reader::new(input, LINE_BYTES_MAX);
    // An empty file: the run ended before anything was written.
    let Some(header) = reader.next_record().map_err(explain)? else {
        return Ok(Vec::new());
    };
    let header = header.whole().map_err(explain)?;
    if !header.cells.iter().map(|cell| &cell.text).eq(columns) {
        let found: Vec<_> = header.cells.iter().map(|cell| &*cell.text).collect();
        let (found, wanted) = (found.join(","), columns.join(","));
        let problem = format!("expected the header `{wanted}`, found `{found}`");
        return Err(StoreError::malformed(path, header.line, problem));
    }
    let mut records = Vec::new();
    while let Some(record) = reader.next_record().map_err(explain)? {
        let record = record.whole().map_err(explain)?;
        let line = record.line;
        let record = R::from_fields(&record.cells)
            .map_err(|text| StoreError::malformed(path, line, text))?;
        push_bounded(&mut records, record, path)?;
    }
    Ok(records)
}

fn json_lines<R: Record>(path: &Path, mut input: impl BufRead) -> Result<Vec<R>, StoreError> {
    let mut records = Vec::new();
    for line in 1.. {
        let mut text = String::new();
        let room = LINE_BYTES_MAX as u64 + 1;
        let read = (&mut input).take(room).read_line(&mut text);
        if read.map_err(StoreError::io("read", path))? == 0 {
            break;
        }
        if text.len() > LINE_BYTES_MAX {
            let problem = format!("the line is longer than {} bytes", LINE_BYTES_MAX);
            return Err(StoreError::malformed(path, line, problem));
        }
        if !text.ends_with('\n') {
            return Err(StoreError::malformed(path, line, Problem::Cut.to_string()));
        }
        let quoted = false;
        let record = R::from_fields(&[Cell { text, quoted }])
            .map_err(|text| StoreError::malformed(path, line, text))?;
        push_bounded(&mut records, record, path)?;
    }
    Ok(records)
}

fn push_bounded<R>(records: &mut Vec<R>, record: R, path: &Path) -> Result<(), StoreError> {
    if records.len() == RECORDS_MAX {
        let limit = RECORDS_MAX as u64;
        return Err(StoreError::TooLarge {
            path: path.to_owned(),
            limit,
            unit: "records",
        });
    }
    records.push(record);
    Ok(())
}
