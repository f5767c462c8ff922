//! Comma-separated values as RFC 4180 has them, with bounds and line numbers.

use std::io::{self, BufRead, Read};

use thiserror::Error;

use crate::LINE_BYTES_MAX;

/// Why a record could not be read.
#[derive(Debug, Error)]
pub enum CsvError {
    /// Reading failed.
    #[error("cannot read: {0}")]
    Io(io::Error),
    /// The text is not CSV.
    #[error("{problem}")]
    Malformed {
        /// Line on which the record began, from 1.
        line: u64,
        /// What was found and what was expected.
        problem: String,
    },
}

/// Adds `fields` to `out` as one line.
///
/// A field is quoted only where it must be, so that common files stay readable.
pub fn push_record<'a>(out: &mut String, fields: impl IntoIterator<Item = &'a str>) {
    for (index, field) in fields.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        if field.contains([',', '"', '\n', '\r']) {
            out.push('"');
            out.push_str(&field.replace('"', "\"\""));
            out.push('"');
        } else {
            out.push_str(field);
        }
    }
    out.push('\n');
}

/// Reads records one by one.
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
    text: String,
    next_line: u64,
    fields: Vec<String>,
}

impl<R: BufRead> Reader<R> {
    /// A reader at the first line of `input`.
    pub fn new(input: R) -> Self {
        Self {
            input,
            text: String::new(),
            next_line: 1,
            fields: Vec::new(),
        }
    }

    /// The next record with the line on which it began; `None` at the end.
    ///
    /// # Errors
    ///
    /// Fails on a record longer than [`LINE_BYTES_MAX`], on a quote that is never
    /// closed, and on text that is not UTF-8.
    pub fn next_record(&mut self) -> Result<Option<(u64, &[String])>, CsvError> {
        let line = self.next_line;
        self.text.clear();
        loop {
            if self.read_line(line)? == 0 {
                if self.text.is_empty() {
                    return Ok(None);
                }
                return Err(malformed(line, "a quoted field is never closed"));
            }
            if self.text.bytes().filter(|&byte| byte == b'"').count() % 2 == 0 {
                break;
            }
        }
        // A number that was cut would be read as another number.
        let record = self
            .text
            .strip_suffix('\n')
            .ok_or_else(|| malformed(line, CUT))?;
        let record = record.strip_suffix('\r').unwrap_or(record);
        split(record, &mut self.fields).map_err(|problem| malformed(line, problem))?;
        Ok(Some((line, &self.fields)))
    }

    fn read_line(&mut self, first: u64) -> Result<usize, CsvError> {
        let room = (LINE_BYTES_MAX + 1).saturating_sub(self.text.len());
        let read = (&mut self.input)
            .take(room as u64)
            .read_line(&mut self.text)
            .map_err(|cause| match cause.kind() {
                io::ErrorKind::InvalidData => malformed(self.next_line, "the text is not UTF-8"),
                _ => CsvError::Io(cause),
            })?;
        if self.text.len() > LINE_BYTES_MAX {
            let problem = format!("the record is longer than {LINE_BYTES_MAX} bytes");
            return Err(malformed(first, &problem));
        }
        if read > 0 {
            self.next_line += 1;
        }
        Ok(read)
    }
}

/// What is wrong with a file whose last line has no end.
pub(crate) const CUT: &str = "the file ends in the middle of this line";

fn malformed(line: u64, problem: &str) -> CsvError {
    CsvError::Malformed {
        line,
        problem: problem.to_owned(),
    }
}

fn split(record: &str, fields: &mut Vec<String>) -> Result<(), &'static str> {
    fields.clear();
    let mut rest = record;
    loop {
        let (field, after) = match rest.strip_prefix('"') {
            Some(quoted) => quoted_field(quoted)?,
            None => {
                let end = rest.find(',').unwrap_or(rest.len());
                let (field, after) = rest.split_at(end);
                if field.contains('"') {
                    return Err("a quote stands inside a field that is not quoted");
                }
                (field.to_owned(), after)
            }
        };
        fields.push(field);
        match after.strip_prefix(',') {
            Some(next) => rest = next,
            None => return Ok(()),
        }
    }
}

/// The field that begins after an opening quote, and the text behind it.
fn quoted_field(text: &str) -> Result<(String, &str), &'static str> {
    let mut field = String::new();
    let mut rest = text;
    loop {
        let Some(quote) = rest.find('"') else {
            return Err("a quoted field is never closed");
        };
        field.push_str(&rest[..quote]);
        rest = &rest[quote + 1..];
        match rest.strip_prefix('"') {
            Some(after) => {
                field.push('"');
                rest = after;
            }
            None if rest.is_empty() || rest.starts_with(',') => return Ok((field, rest)),
            None => return Err("text stands between a closing quote and the next comma"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Result<Vec<(u64, Vec<String>)>, CsvError> {
        let mut reader = Reader::new(text.as_bytes());
        let mut records = Vec::new();
        while let Some((line, fields)) = reader.next_record()? {
            records.push((line, fields.to_vec()));
        }
        Ok(records)
    }

    fn problem(text: &str) -> (u64, String) {
        match read(text) {
            Err(CsvError::Malformed { line, problem }) => (line, problem),
            other => panic!("expected a malformed record, got {other:?}"),
        }
    }

    #[test]
    fn fields_with_commas_quotes_and_line_breaks_are_quoted() {
        let mut out = String::new();
        push_record(&mut out, ["a", "b,c", "say \"x\"", "two\nlines", ""]);
        assert_eq!(out, "a,\"b,c\",\"say \"\"x\"\"\",\"two\nlines\",\n");
        assert_eq!(
            read(&out).unwrap()[0].1,
            ["a", "b,c", "say \"x\"", "two\nlines", ""]
        );
    }

    #[test]
    fn a_record_knows_the_line_it_began_on() {
        let records = read("a\r\n\"b\nb\"\nc\n").unwrap();
        let lines: Vec<u64> = records.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [1, 2, 4]);
    }

    #[test]
    fn broken_quotes_are_errors_with_their_line() {
        assert_eq!(problem("a\n\"b").0, 2);
        assert_eq!(problem("a\nx\"y\"\n").0, 2);
        assert!(problem("\"a\"b\n").1.contains("between a closing quote"));
    }

    #[test]
    fn a_file_that_was_cut_is_refused() {
        assert_eq!(problem("t_s,count\n1,4000\n2,40"), (3, CUT.to_owned()));
    }

    #[test]
    fn a_line_without_end_is_refused() {
        let (line, problem) = problem(&"x".repeat(LINE_BYTES_MAX + 10));
        assert_eq!(line, 1);
        assert!(problem.contains("longer than"), "{problem}");
    }

    proptest! {
        #[test]
        fn reading_gives_back_what_was_written(
            records in prop::collection::vec(prop::collection::vec(".*|[,\"\r\n]{0,4}", 1..5), 0..8)
        ) {
            let mut out = String::new();
            for record in &records {
                push_record(&mut out, record.iter().map(String::as_str));
            }
            let found: Vec<Vec<String>> =
                read(&out).unwrap().into_iter().map(|(_, fields)| fields).collect();
            prop_assert_eq!(found, records);
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in "[a,\"\r\n]{0,40}") {
            let _ = read(&text);
        }
    }
}
