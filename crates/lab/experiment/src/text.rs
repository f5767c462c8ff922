//! Text of a value, with the place in the file of every byte.
//!
//! A problem inside a string is shown at the very characters that cause it, even
//! after escapes were decoded, words were split and names were filled in.

use std::ops::Range;

use document::Span;

/// Decoded text that knows where each of its bytes stands in the file.
#[derive(Debug, Clone)]
pub(crate) struct Text {
    text: String,
    /// One span for each byte of `text`.
    places: Vec<Span>,
    /// The place just after the text, usually the closing quote.
    end: Span,
}

impl Text {
    /// The string `decoded`, which the parser read from `span` of `file`.
    pub(crate) fn of_value(file: &str, span: Span, decoded: &str) -> Self {
        let token = file.get(span.clone()).unwrap_or_default();
        match decode(token, span.start) {
            Some(text) if text.text == decoded => text,
            _ => Self::at(decoded, span),
        }
    }

    /// Text whose every byte stands at `span`.
    pub(crate) fn at(text: &str, span: Span) -> Self {
        Self {
            text: text.to_owned(),
            places: vec![span.clone(); text.len()],
            end: span,
        }
    }

    /// No text yet, at the place of the byte `at` of `other`.
    pub(crate) fn empty_at(other: &Self, at: usize) -> Self {
        Self {
            text: String::new(),
            places: Vec::new(),
            end: other.span(at..at),
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.text.len()
    }

    /// The place of a range of bytes; an empty range has the place of the byte
    /// that follows it.
    pub(crate) fn span(&self, range: Range<usize>) -> Span {
        let place = |at: usize| self.places.get(at).unwrap_or(&self.end);
        if range.is_empty() {
            return place(range.start).clone();
        }
        let first = place(range.start);
        let last = place(range.end - 1);
        first.start..last.end.max(first.start)
    }

    /// The place of the whole text.
    pub(crate) fn whole(&self) -> Span {
        self.span(0..self.text.len())
    }

    /// A part of the text; `range` must lie on character boundaries.
    pub(crate) fn slice(&self, range: Range<usize>) -> Self {
        let text = self.text.get(range.clone()).unwrap_or_default().to_owned();
        let places = self.places.get(range.clone()).unwrap_or_default().to_vec();
        Self {
            text,
            places,
            end: self.span(range.end..range.end),
        }
    }

    /// Appends a part of another text, which keeps its place.
    pub(crate) fn push(&mut self, other: &Self) {
        self.text.push_str(&other.text);
        self.places.extend(other.places.iter().cloned());
        self.end = other.end.clone();
    }

    /// Appends new text that stands for what is written at `span`.
    pub(crate) fn push_at(&mut self, text: &str, span: &Span) {
        self.text.push_str(text);
        self.places
            .extend(std::iter::repeat_n(span.clone(), text.len()));
    }
}

/// Decodes a TOML string token that stands at `offset`. `None` when the token has
/// an unexpected form; the parser has accepted it, so that is no error.
fn decode(token: &str, offset: usize) -> Option<Text> {
    let quote = token.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let triple: String = std::iter::repeat_n(quote, 3).collect();
    let multi = token.len() >= 6 && token.starts_with(&triple);
    let width = if multi { 3 } else { 1 };
    let close = token.len().checked_sub(width)?;
    let mut at = width;
    if multi {
        let body = token.get(at..close)?;
        at += if body.starts_with("\r\n") {
            2
        } else {
            usize::from(body.starts_with('\n'))
        };
    }
    let place = |from: usize, to: usize| offset + from..offset + to;
    let mut text = Text {
        text: String::new(),
        places: Vec::new(),
        end: place(close, token.len()),
    };
    while at < close {
        let rest = token.get(at..close)?;
        let c = rest.chars().next()?;
        let (decoded, used) = if c == '\\' && quote == '"' {
            escape(rest)?
        } else {
            (Some(c), c.len_utf8())
        };
        if let Some(c) = decoded {
            text.push_at(c.encode_utf8(&mut [0; 4]), &place(at, at + used));
        }
        at += used;
    }
    Some(text)
}

/// Decodes the escape at the start of `rest`: its character and its length. A
/// backslash at the end of a line stands for nothing.
fn escape(rest: &str) -> Option<(Option<char>, usize)> {
    let code = rest.chars().nth(1)?;
    let hex = |digits: usize| {
        let value = u32::from_str_radix(rest.get(2..2 + digits)?, 16).ok()?;
        Some((Some(char::from_u32(value)?), 2 + digits))
    };
    let simple = |c: char| Some((Some(c), 2));
    match code {
        'b' => simple('\u{8}'),
        't' => simple('\t'),
        'n' => simple('\n'),
        'f' => simple('\u{c}'),
        'r' => simple('\r'),
        'e' => simple('\u{1b}'),
        '"' | '\\' => simple(code),
        'x' => hex(2),
        'u' => hex(4),
        'U' => hex(8),
        _ => {
            let after = rest.get(1..)?;
            let left = after.trim_start_matches([' ', '\t', '\r', '\n']);
            (left.len() < after.len()).then(|| (None, rest.len() - left.len()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place_of<'f>(file: &'f str, decoded: &str, part: &str) -> &'f str {
        let text = Text::of_value(file, 0..file.len(), decoded);
        let from = decoded.find(part).unwrap();
        &file[text.span(from..from + part.len())]
    }

    #[test]
    fn a_part_of_a_string_has_its_own_place() {
        assert_eq!(place_of(r#""one two""#, "one two", "two"), "two");
        assert_eq!(place_of(r#"'a\b two'"#, r"a\b two", "two"), "two");
    }

    #[test]
    fn escapes_before_and_inside_the_part_are_counted() {
        assert_eq!(
            place_of(r#""\"x\" \u00e9 two""#, "\"x\" é two", "two"),
            "two"
        );
        assert_eq!(place_of(r#""a\tb""#, "a\tb", "\tb"), r"\tb");
    }

    #[test]
    fn a_multi_line_string_is_followed_over_its_line_ends() {
        assert_eq!(
            place_of("\"\"\"\none \\\n   two\"\"\"", "one two", "two"),
            "two"
        );
        assert_eq!(place_of("'''\none\ntwo'''", "one\ntwo", "two"), "two");
    }

    #[test]
    fn the_end_is_the_closing_quote() {
        let file = r#""abc""#;
        let text = Text::of_value(file, 0..5, "abc");
        assert_eq!(text.span(3..3), 4..5);
    }

    #[test]
    fn text_of_another_form_stands_at_the_whole_value() {
        let text = Text::of_value("12", 0..2, "twelve");
        assert_eq!(text.span(2..4), 0..2);
    }
}
