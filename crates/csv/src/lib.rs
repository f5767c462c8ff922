//! Comma-separated values as RFC 4180 has them, read strictly: a quote out of place, a cut
//! line or a record without end is an error with its line, never another value.

mod read;
#[cfg(test)]
mod tests;

pub use read::{Cell, CsvError, Problem, Reader, Record};

/// Adds a cell, in quotes where it must be.
///
/// Some readers tell an empty text, `""`, from none: those who write for them give it quotes
/// with [`push_quoted`].
pub fn push_cell(out: &mut String, text: &str) {
    match text.contains([',', '"', '\n', '\r']) {
        true => push_quoted(out, text),
        false => out.push_str(text),
    }
}

/// Adds a cell in quotes.
pub fn push_quoted(out: &mut String, text: &str) {
    out.push('"');
    out.push_str(&text.replace('"', "\"\""));
    out.push('"');
}

/// Adds `cells` as one line.
pub fn push_record<'a>(out: &mut String, cells: impl IntoIterator<Item = &'a str>) {
    for (index, cell) in cells.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        push_cell(out, cell);
    }
    out.push('\n');
}
