//! Assertions, values and ends of answers as people write them.

use std::cell::OnceCell;

use units::{UnitError, Word};

use super::answer::Answer;
use super::compile::judgement::place as place_of;
use super::composer::LONGEST_VALUE;
use super::error::RequestError;
use super::{AnswerEnd, Assertion, Source, Take};

impl Assertion {
    /// Reads an assertion: `status 200`, `status 200..299, 304`,
    /// `header Content-Type contains json`, `body contains ok`, `body matches ^\{`,
    /// `body is OK`, `size 100..2000`, `size 1KiB..64KiB`, `rows 1..10`. Texts go on to the
    /// end and are taken as they are.
    ///
    /// # Errors
    /// Text of another form.
    pub fn parse(text: &str) -> Result<Self, RequestError> {
        assertion(text).map_err(|error| RequestError::new("assertion", text, error))
    }

    /// The assertion as [`parse`](Self::parse) reads it.
    pub fn describe(&self) -> String {
        match self {
            Self::Status(ranges) => {
                let range = |&(low, high): &(u16, u16)| match low == high {
                    true => low.to_string(),
                    false => format!("{low}..{high}"),
                };
                let ranges: Vec<String> = ranges.iter().map(range).collect();
                format!("status {}", ranges.join(", "))
            }
            Self::Header(name, part) => format!("header {name} contains {part}"),
            Self::BodyContains(part) => format!("body contains {part}"),
            Self::BodyMatches(pattern) => format!("body matches {pattern}"),
            Self::BodyIs(text) => format!("body is {text}"),
            Self::Size(low, high) if low == high => format!("size {low}"),
            Self::Size(low, high) => format!("size {low}..{high}"),
            Self::Rows(low, high) if low == high => format!("rows {low}"),
            Self::Rows(low, high) => format!("rows {low}..{high}"),
        }
    }
}

impl Take {
    /// Reads where a value comes from: `token = json /access_token`,
    /// `id = header X-Request-Id`, `csrf = regex name="csrf" value="([^"]*)"`.
    ///
    /// # Errors
    /// Text of another form.
    pub fn parse(text: &str) -> Result<Self, RequestError> {
        take(text).map_err(|error| RequestError::new("value", text, error))
    }

    /// Checks that the value could be looked for; an error tells of its
    /// [description](Self::describe).
    ///
    /// # Errors
    /// A name that is none, a pointer, a field or an expression that cannot be.
    pub fn check(&self) -> Result<(), RequestError> {
        let text = self.describe();
        place_of(self)
            .map(drop)
            .map_err(|error| RequestError::new("value", &text, error))
    }

    /// The value in an answer; `None`: it is not there, is no text, or is longer than 64 KiB.
    pub fn find(&self, answer: &Answer<'_>) -> Option<String> {
        let found = place_of(self).ok()?.find(answer, &OnceCell::new());
        found.filter(|value| value.len() <= LONGEST_VALUE)
    }

    /// The value as [`parse`](Self::parse) reads it.
    pub fn describe(&self) -> String {
        let (kind, place) = match &self.from {
            Source::Json(pointer) => ("json", pointer),
            Source::Header(name) => ("header", name),
            Source::Regex(pattern) => ("regex", pattern),
        };
        format!("{} = {kind} {place}", self.name)
    }
}

impl AnswerEnd {
    /// Reads how the end of an answer is told: `bytes 512`, `delimiter \r\n` (with
    /// `\r`, `\n`, `\t`, `\0`, `\\` and `\xHH`), `echo`, `close`.
    ///
    /// # Errors
    /// Text of another form.
    pub fn parse(text: &str) -> Result<Self, RequestError> {
        answer_end(text).map_err(|error| RequestError::new("answer", text, error))
    }
}

fn assertion(text: &str) -> Result<Assertion, UnitError> {
    let (kind, rest) = word(text, 0);
    match kind {
        "status" => statuses(text, rest),
        "size" => {
            let (low, high) = bounds(text, rest, bytes, "size")?;
            Ok(Assertion::Size(low, high))
        }
        "rows" => {
            let (low, high) = bounds(text, rest, units::parse_count, "number of rows")?;
            Ok(Assertion::Rows(low, high))
        }
        "header" => {
            let (name, after) = word(text, rest);
            let (verb, part) = word(text, after);
            match verb {
                "contains" if !text[part..].is_empty() => {
                    Ok(Assertion::Header(name.to_owned(), text[part..].to_owned()))
                }
                _ => {
                    let message = "expected header NAME contains TEXT";
                    Err(UnitError::new(after.min(text.len())..text.len(), message))
                }
            }
        }
        "body" => match word(text, rest) {
            (_, part) if text[part..].is_empty() => {
                let message =
                    "expected body contains TEXT, body is TEXT or body matches EXPRESSION";
                Err(UnitError::new(0..text.len(), message))
            }
            ("is", part) => Ok(Assertion::BodyIs(text[part..].to_owned())),
            ("contains", part) => Ok(Assertion::BodyContains(text[part..].to_owned())),
            ("matches", part) => Ok(Assertion::BodyMatches(text[part..].to_owned())),
            (verb, _) => {
                let message = "a body contains, is or matches something";
                let error = UnitError::new(rest..rest + verb.len(), message);
                Err(error.meant(verb, ["contains", "is", "matches"]))
            }
        },
        kind => {
            let message = "an assertion begins with status, header, body, size or rows";
            let error = UnitError::new(place(text, kind), message);
            Err(error.meant(kind, ["status", "header", "body", "size", "rows"]))
        }
    }
}

fn take(text: &str) -> Result<Take, UnitError> {
    let Some((name, from)) = text.split_once('=') else {
        let message = "expected NAME = json POINTER, header NAME or regex EXPRESSION";
        return Err(UnitError::new(0..text.len(), message));
    };
    let (kind, rest) = word(text, text.len() - from.len());
    let named = text[rest..].to_owned();
    let from = match kind {
        "json" => Source::Json(named.trim_end().to_owned()),
        "header" if !named.is_empty() => Source::Header(named.trim_end().to_owned()),
        "regex" if !named.is_empty() => Source::Regex(named),
        "header" | "regex" => {
            let message = format!("{kind} needs to know which");
            return Err(UnitError::new(place(text, kind), message));
        }
        kind => {
            let message = "a value comes from json, header or regex";
            let error = UnitError::new(place(text, kind), message);
            return Err(error.meant(kind, ["json", "header", "regex"]));
        }
    };
    Ok(Take {
        name: name.trim().to_owned(),
        from,
    })
}

fn answer_end(text: &str) -> Result<AnswerEnd, UnitError> {
    let (kind, rest) = word(text, 0);
    match (kind, &text[rest..]) {
        ("echo", "") => Ok(AnswerEnd::Echo),
        ("close", "") => Ok(AnswerEnd::Close),
        ("bytes", more) => Word::at(more, rest)
            .read(units::parse_count)
            .map(AnswerEnd::Bytes),
        ("delimiter", more) if !more.is_empty() => Word::at(more, rest)
            .read(unescape)
            .map(AnswerEnd::Delimiter),
        (kind, _) => {
            let message = "expected bytes 512, delimiter \\r\\n, echo or close";
            let error = UnitError::new(0..text.len(), message);
            Err(error.meant(kind, ["bytes", "delimiter", "echo", "close"]))
        }
    }
}

/// The word at or after `from`, and where the text after it and its space begins.
fn word(text: &str, from: usize) -> (&str, usize) {
    let rest = &text[from..];
    let start = from + rest.len() - rest.trim_start().len();
    let rest = &text[start..];
    let end = start + rest.find(char::is_whitespace).unwrap_or(rest.len());
    let after = &text[end..];
    (
        &text[start..end],
        end + after.len() - after.trim_start().len(),
    )
}

/// Where a word stands that is a part of the text.
fn place(text: &str, word: &str) -> std::ops::Range<usize> {
    let start = word.as_ptr() as usize - text.as_ptr() as usize;
    start..start + word.len()
}

/// Low and high end of `A..B` or of `A`.
fn ends(range: &str) -> (&str, &str) {
    range.split_once("..").unwrap_or((range, range))
}

fn statuses(text: &str, from: usize) -> Result<Assertion, UnitError> {
    let mut ranges = Vec::new();
    for range in text[from..].split(',').map(str::trim) {
        let at = place(text, range);
        let status = |text: &str| {
            text.trim()
                .parse::<u16>()
                .ok()
                .filter(|status| *status < 1_000)
        };
        let (low, high) = ends(range);
        ranges.push(
            match (
                range.strip_suffix("xx").map(str::parse::<u16>),
                status(low),
                status(high),
            ) {
                (Some(Ok(class @ 1..=9)), ..) => (class * 100, class * 100 + 99),
                (_, Some(low), Some(high)) if low <= high => (low, high),
                _ => {
                    return Err(UnitError::new(
                        at,
                        "expected a status such as 200, 200..299 or 2xx",
                    ));
                }
            },
        );
    }
    Ok(Assertion::Status(ranges))
}

/// A number of bytes, with a unit or without.
fn bytes(text: &str) -> Result<u64, UnitError> {
    units::parse_count(text).or_else(|_| units::parse_bytes(text))
}

/// The bounds `A..B` or `A` of what is called `what`.
fn bounds(
    text: &str,
    from: usize,
    number: impl Fn(&str) -> Result<u64, UnitError>,
    what: &str,
) -> Result<(u64, u64), UnitError> {
    let read = |part: &str| {
        let part = part.trim();
        number(part).map_err(|error| error.shifted(place(text, part).start))
    };
    let (low, high) = ends(&text[from..]);
    match (read(low)?, read(high)?) {
        (low, high) if low <= high => Ok((low, high)),
        (low, high) => {
            let message = format!("the smallest {what}, {low}, is above the largest, {high}");
            Err(UnitError::new(from..text.len(), message))
        }
    }
}

fn unescape(text: &str) -> Result<Vec<u8>, UnitError> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        let start = text.len() - rest.len() + at;
        let code = &rest[at + 1..];
        let (byte, used) = match code.as_bytes() {
            [b'r', ..] => (Some(b'\r'), 1),
            [b'n', ..] => (Some(b'\n'), 1),
            [b't', ..] => (Some(b'\t'), 1),
            [b'0', ..] => (Some(0), 1),
            [b'\\', ..] => (Some(b'\\'), 1),
            [b'x', ..] => {
                let digits = code
                    .get(1..3)
                    .filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
                (
                    digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()),
                    3,
                )
            }
            _ => (None, 0),
        };
        let Some(byte) = byte else {
            let message = "unknown escape; there are \\r \\n \\t \\0 \\\\ \\xHH";
            return Err(UnitError::new(start..start + 1, message));
        };
        bytes.push(byte);
        rest = &code[used..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    Ok(bytes)
}
