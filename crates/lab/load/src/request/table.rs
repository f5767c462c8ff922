//! Tables: lines of CSV files that templates refer to.

use super::Table;

/// Text that is no table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct TableError {
    /// Number of the line, from 1.
    pub line: usize,
    /// What was found, what was expected.
    pub message: String,
}

impl TableError {
    fn new(line: usize, message: impl Into<String>) -> Self {
        Self {
            line,
            message: message.into(),
        }
    }
}

impl Table {
    /// Longest text that is read: 64 MiB.
    pub const MOST_BYTES: usize = 64 << 20;
    /// Most rows: a million.
    pub const MOST_ROWS: usize = 1_000_000;
    /// Most columns.
    pub const MOST_COLUMNS: usize = 100;

    /// Reads a CSV file (RFC 4180): the first line names the columns, fields are set
    /// apart by commas and may stand in double quotes, with a quote written twice.
    /// Lines end with LF or CRLF; lines without any character are skipped.
    ///
    /// # Errors
    /// A quote out of place, a line with another number of fields than the first, no
    /// rows, column names that are empty or occur twice, or more than the bounds above.
    pub fn parse(text: &str) -> Result<Self, TableError> {
        if text.len() > Self::MOST_BYTES {
            return Err(TableError::new(
                1,
                "a table has at most 64 MiB; use fewer rows",
            ));
        }
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut reader = csv::Reader::new(text.as_bytes(), Self::MOST_BYTES);
        let Some((_, columns)) = next(&mut reader)? else {
            let message = "the file is empty; its first line names the columns";
            return Err(TableError::new(1, message));
        };
        check_columns(&columns)?;
        let mut rows = Vec::new();
        while let Some((line, fields)) = next(&mut reader)? {
            if fields.len() != columns.len() {
                let (found, expected) = (fields.len(), columns.len());
                let message =
                    format!("expected {expected} fields as in the first line, found {found}");
                return Err(TableError::new(line, message));
            }
            if rows.len() == Self::MOST_ROWS {
                return Err(TableError::new(line, "a table has at most 1,000,000 rows"));
            }
            rows.push(fields);
        }
        match rows.is_empty() {
            true => Err(TableError::new(
                usize::try_from(reader.next_line()).unwrap_or(usize::MAX),
                "there is no row below the names of the columns",
            )),
            false => Ok(Self { columns, rows }),
        }
    }
}

fn check_columns(columns: &[String]) -> Result<(), TableError> {
    if columns.len() > Table::MOST_COLUMNS {
        let message = format!("a table has at most 100 columns, found {}", columns.len());
        return Err(TableError::new(1, message));
    }
    for (index, name) in columns.iter().enumerate() {
        if name.is_empty() || name.contains(['{', '}']) || name.contains(char::is_whitespace) {
            let message = format!(
                "column {} is named \"{name}\"; names of columns are not empty and have neither spaces nor braces",
                index + 1
            );
            return Err(TableError::new(1, message));
        }
        if columns[..index].contains(name) {
            return Err(TableError::new(
                1,
                format!("column \"{name}\" occurs twice"),
            ));
        }
    }
    Ok(())
}

/// The next line that is not blank, with its number.
fn next(reader: &mut csv::Reader<&[u8]>) -> Result<Option<(usize, Vec<String>)>, TableError> {
    let place = |line| usize::try_from(line).unwrap_or(usize::MAX);
    loop {
        let record = reader.next_record();
        let record = record
            .map_err(|error| TableError::new(place(error.line), error.problem.to_string()))?;
        match record {
            None => return Ok(None),
            Some(record) if record.is_blank() => {}
            Some(record) => {
                let cells = record.cells.iter().map(|cell| cell.text.clone());
                return Ok(Some((place(record.line), cells.collect())));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn fields_may_be_quoted() {
        let text = "\u{feff}name,note\r\nann,\"a, \"\"b\"\"\r\nc\"\r\n\nbob,\n\"\",x";
        let table = Table::parse(text).unwrap();
        assert_eq!(table.columns, ["name", "note"]);
        let expected = [["ann", "a, \"b\"\r\nc"], ["bob", ""], ["", "x"]];
        assert_eq!(table.rows, expected);
    }

    #[test]
    fn errors_name_the_line() {
        let cases = [
            ("", 1, "empty"),
            ("a,b\n", 2, "no row"),
            ("a,a\n1,2\n", 1, "occurs twice"),
            ("a,\n1,2\n", 1, "column 2"),
            (
                "a,b\n1,2\n1\n",
                3,
                "expected 2 fields as in the first line, found 1",
            ),
            ("a,b\n1,\"2\n\n\n", 2, "never closed"),
            ("a,b\n\"1\n\",2\n1,x\"y\n", 4, "quote within"),
            ("a,b\n1,\"2\"x\n", 2, "after a closing quote"),
        ];
        for (text, line, part) in cases {
            let error = Table::parse(text).expect_err(text);
            assert_eq!(error.line, line, "{text:?}: {error}");
            assert!(error.message.contains(part), "{text:?}: {error}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(rows in prop::collection::vec(prop::collection::vec("[a-z,\"\r\n é]{0,6}", 2), 1..8)) {
            let quote = |field: &String| format!("\"{}\"", field.replace('"', "\"\""));
            let line = |row: &Vec<String>| row.iter().map(quote).collect::<Vec<_>>().join(",") + "\r\n";
            let text = format!("a,b\r\n{}", rows.iter().map(line).collect::<String>());
            prop_assert_eq!(Table::parse(&text).unwrap().rows, rows);
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[a-c,\"\r\n]{0,40}") {
            if let Err(error) = Table::parse(&text) {
                prop_assert!(error.line <= text.matches('\n').count() + 1);
            }
        }
    }
}
