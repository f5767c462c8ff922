//! From lines to records.

use std::io::{self, BufRead, Read};

/// Why a record could not be read.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct CsvError {
    /// Line on which the record began, from 1.
    pub line: u64,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What is wrong with a record.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// Reading failed.
    #[error("cannot read: {0}")]
    Read(io::Error),
    /// The text is not UTF-8.
    #[error("the text is not UTF-8")]
    Encoding,
    /// A record is longer than the reader was told to take.
    #[error("the record is longer than {0} bytes")]
    TooLong(usize),
    /// A quote in a field that does not begin with one.
    #[error("a quote within a field; put the whole field in quotes and write the quote twice")]
    QuoteWithin,
    /// Something other than a comma or the end of the line.
    #[error("text after a closing quote; a quote within quotes is written twice")]
    TextAfterQuote,
    /// The end of the file within quotes.
    #[error("a quote is opened here and never closed")]
    Unclosed,
    /// The last line has no end. A number that was cut would be read as another number.
    #[error("the file ends in the middle of this line")]
    Cut,
}

/// A field of a record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cell {
    /// What it says.
    pub text: String,
    /// Whether it stood in quotes.
    pub quoted: bool,
}

/// A record; one of a line without any character has one empty cell.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Line on which it began, from 1.
    pub line: u64,
    /// Its fields, at least one.
    pub cells: Vec<Cell>,
    /// Whether its last line has an end.
    pub ended: bool,
}

impl Record {
    /// Whether it is a line without any character.
    pub fn is_blank(&self) -> bool {
        matches!(&*self.cells, [cell] if cell.text.is_empty() && !cell.quoted)
    }

    /// The record, unless the file was cut within it.
    ///
    /// # Errors
    /// [`Problem::Cut`].
    pub fn whole(&self) -> Result<&Self, CsvError> {
        match self.ended {
            true => Ok(self),
            false => Err(CsvError {
                line: self.line,
                problem: Problem::Cut,
            }),
        }
    }
}

/// Reads records one by one.
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
    most_bytes: usize,
    next_line: u64,
    bytes: Vec<u8>,
    record: Record,
}

impl<R: BufRead> Reader<R> {
    /// A reader at the first line of `input`, of records of at most so many bytes.
    pub fn new(input: R, most_bytes: usize) -> Self {
        Self {
            input,
            most_bytes,
            next_line: 1,
            bytes: Vec::new(),
            record: Record::default(),
        }
    }

    /// The line that is read next, from 1; at the end the last one, or the one after its end.
    pub fn next_line(&self) -> u64 {
        self.next_line
    }

    /// The next record; `None` at the end.
    ///
    /// # Errors
    /// What is wrong with it, but for a cut: that is for [`Record::whole`] to say.
    pub fn next_record(&mut self) -> Result<Option<&Record>, CsvError> {
        self.record.line = self.next_line;
        self.record.cells.clear();
        match self.read_record() {
            Ok(found) => Ok(found.then_some(&self.record)),
            Err(problem) => Err(CsvError {
                line: self.record.line,
                problem,
            }),
        }
    }

    fn read_record(&mut self) -> Result<bool, Problem> {
        let mut room = self.most_bytes;
        let mut open = None;
        loop {
            self.bytes.clear();
            let most = room as u64 + 1;
            let read = (&mut self.input)
                .take(most)
                .read_until(b'\n', &mut self.bytes)
                .map_err(Problem::Read)?;
            room = room
                .checked_sub(read)
                .ok_or(Problem::TooLong(self.most_bytes))?;
            if read == 0 {
                return match open {
                    Some(_) => Err(Problem::Unclosed),
                    None => Ok(false),
                };
            }
            let line = std::str::from_utf8(&self.bytes).map_err(|_| Problem::Encoding)?;
            self.record.ended = line.ends_with('\n');
            self.next_line += u64::from(self.record.ended);
            open = split(line, open, &mut self.record.cells)?;
            if open.is_none() {
                return Ok(true);
            }
        }
    }
}

/// Adds the cells of a line. `open` is the text so far of one whose quotes are still open;
/// that of this line is returned.
fn split(
    line: &str,
    mut open: Option<String>,
    cells: &mut Vec<Cell>,
) -> Result<Option<String>, Problem> {
    let mut rest = line;
    loop {
        let (text, quoted) = match (open.take(), rest.strip_prefix('"')) {
            (None, None) => {
                let end = rest.find([',', '"', '\n']).unwrap_or(rest.len());
                let (text, after) = rest.split_at(end);
                rest = after;
                if rest.starts_with('"') {
                    return Err(Problem::QuoteWithin);
                }
                let text = match rest.starts_with(',') {
                    true => text,
                    false => text.strip_suffix('\r').unwrap_or(text),
                };
                (text.to_owned(), false)
            }
            (before, inside) => {
                let begun = before.is_some();
                let mut text = before.unwrap_or_default();
                if !begun {
                    rest = inside.unwrap_or(rest);
                }
                match quoted_text(rest, &mut text) {
                    None => return Ok(Some(text)),
                    Some(after) => rest = after,
                }
                (text, true)
            }
        };
        cells.push(Cell { text, quoted });
        match rest.strip_prefix(',') {
            Some(next) => rest = next,
            None if matches!(rest, "" | "\n" | "\r\n" | "\r") => return Ok(None),
            None => return Err(Problem::TextAfterQuote),
        }
    }
}

/// Adds what stands within quotes; returns what follows them, `None` if they do not end here.
fn quoted_text<'a>(mut rest: &'a str, text: &mut String) -> Option<&'a str> {
    loop {
        let Some((before, after)) = rest.split_once('"') else {
            text.push_str(rest);
            return None;
        };
        text.push_str(before);
        match after.strip_prefix('"') {
            Some(more) => {
                text.push('"');
                rest = more;
            }
            None => return Some(after),
        }
    }
}
