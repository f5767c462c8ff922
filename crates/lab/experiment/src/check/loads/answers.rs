//! What is made of answers: assertions, values for later requests, where one ends.

use regex::Regex;

use super::super::fields::{Field, Fields};
use super::super::values::Reader;
use super::requests::taken_name_problem;
use crate::diagnostic::Problem;
use lab_load::request::{AnswerEnd, Assertion, Source, Take};
use units::{UnitError, nearest};

/// Forms of an assertion, by their first word.
const ASSERTIONS: [&str; 4] = ["status", "header", "body", "size"];
/// Places in an answer, by their first word.
const SOURCES: [&str; 3] = ["json", "header", "regex"];
/// Largest answer whose size can be told.
const LARGEST: u64 = 1 << 40;

/// `assert`: what an answer must be.
pub(super) fn assertions(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<Vec<Assertion>> {
    let Some(field) = fields.get("assert") else {
        return Some(Vec::new());
    };
    let items = reader.list(field, "a list such as [\"status 200..299\"]")?;
    let read: Vec<Option<Assertion>> = items
        .into_iter()
        .map(|item| reader.quantity(item, "an assertion such as \"status 200..299\"", assertion))
        .collect();
    read.into_iter().collect()
}

/// Splits off the first word; the rest begins at the byte that is given with it.
fn first_word(text: &str) -> (&str, &str, usize) {
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let rest = rest.trim();
    (word, rest, text.rfind(rest).unwrap_or(text.len()))
}

fn wrong(at: std::ops::Range<usize>, message: impl Into<String>) -> UnitError {
    UnitError {
        message: message.into(),
        at,
        suggestion: None,
    }
}

fn unknown(word: &str, what: &str, forms: &[&str], examples: &str) -> UnitError {
    let suggestion = nearest(word, forms.iter().copied()).map(str::to_owned);
    let message = match suggestion {
        Some(_) => format!("unknown {what} \"{word}\""),
        None => format!("unknown {what} \"{word}\"; write {examples}"),
    };
    UnitError {
        message,
        at: 0..word.len(),
        suggestion,
    }
}

/// One assertion: `status 200..299, 404`, `header NAME contains TEXT`,
/// `body contains TEXT`, `body matches PATTERN`, `size 10..1000`.
fn assertion(text: &str) -> Result<Assertion, UnitError> {
    let (word, rest, at) = first_word(text);
    if rest.is_empty() && ASSERTIONS.contains(&word) {
        return Err(wrong(0..text.len(), format!("what must the {word} be?")));
    }
    match word {
        "status" => statuses(rest, at).map(Assertion::Status),
        "size" => size(rest, at),
        "header" => {
            let (name, rest, from) = first_word(rest);
            let (verb, value, _) = first_word(rest);
            match verb {
                "contains" if !value.is_empty() => {
                    Ok(Assertion::Header(name.to_owned(), value.to_owned()))
                }
                _ => Err(wrong(
                    at + from.min(rest.len())..text.len(),
                    format!("write header {name} contains TEXT"),
                )),
            }
        }
        "body" => {
            let (verb, value, from) = first_word(rest);
            match verb {
                "contains" if !value.is_empty() => Ok(Assertion::BodyContains(value.to_owned())),
                "matches" if !value.is_empty() => {
                    pattern(value, at + from)?;
                    Ok(Assertion::BodyMatches(value.to_owned()))
                }
                _ => Err(wrong(
                    at..text.len(),
                    "write body contains TEXT, or body matches PATTERN",
                )),
            }
        }
        _ => {
            let examples = "status 200..299, header NAME contains TEXT, body contains TEXT, \
                            body matches PATTERN or size 10..1000";
            Err(unknown(word, "assertion", &ASSERTIONS, examples))
        }
    }
}

fn pattern(text: &str, at: usize) -> Result<Regex, UnitError> {
    Regex::new(text).map_err(|error| {
        let told = error.to_string();
        let last = told.lines().last().unwrap_or_default().trim();
        let last = last.strip_prefix("error: ").unwrap_or(last);
        wrong(at..at + text.len(), format!("the pattern cannot be read: {last}"))
    })
}

fn statuses(text: &str, at: usize) -> Result<Vec<(u16, u16)>, UnitError> {
    let mut from = at;
    let mut ranges = Vec::new();
    for part in text.split(',') {
        let place = from..from + part.len();
        from = place.end + 1;
        let (first, last) = part.split_once("..").unwrap_or((part, part));
        let number = |text: &str| {
            let number = text.trim().parse::<u16>().ok();
            number.filter(|status| (0..=999).contains(status))
        };
        match (number(first), number(last)) {
            (Some(first), Some(last)) if first <= last => ranges.push((first, last)),
            _ => {
                let message = format!("\"{}\" is no status; write 200 or 200..299", part.trim());
                return Err(wrong(place, message));
            }
        }
    }
    Ok(ranges)
}

fn size(text: &str, at: usize) -> Result<Assertion, UnitError> {
    let (first, last) = text.split_once("..").unwrap_or((text, text));
    let number = |text: &str| {
        let text = text.trim();
        let bytes = units::parse_count(text).or_else(|_| units::parse_bytes(text));
        bytes.ok().filter(|bytes| *bytes <= LARGEST)
    };
    match (number(first), number(last)) {
        (Some(first), Some(last)) if first <= last => Ok(Assertion::Size(first, last)),
        _ => Err(wrong(
            at..at + text.len(),
            format!("\"{text}\" is no size; write 1024 or 10..1KiB"),
        )),
    }
}

/// `take = { token = "json /token" }`: values for later requests of a journey.
pub(super) fn take(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<Vec<Take>> {
    let Some(field) = fields.get("take") else {
        return Some(Vec::new());
    };
    let table = Fields::open_any(field.value, "\"take\"", &mut reader.problems)?;
    let mut taken = Vec::new();
    let mut good = true;
    for (span, field) in table.fields() {
        if let Some(message) = taken_name_problem(reader, field.key) {
            reader.problem(Problem::new(span, message));
            good = false;
            continue;
        }
        match source(reader, field) {
            Some(from) => taken.push(Take {
                name: field.key.to_owned(),
                from,
            }),
            None => good = false,
        }
    }
    good.then_some(taken)
}

fn source(reader: &mut Reader<'_>, field: Field<'_>) -> Option<Source> {
    let expected = "a place such as \"json /token\", \"header location\" or \"regex id=([0-9]+)\"";
    // A pattern may hold braces, so nothing is filled in.
    let text = reader.verbatim(field, expected)?;
    match read_source(text.as_str()) {
        Ok(source) => Some(source),
        Err(error) => {
            let problem = Problem::new(text.span(error.at.clone()), error.message);
            reader.problem(match error.suggestion {
                Some(meant) => problem.suggest(meant),
                None => problem,
            });
            None
        }
    }
}

fn read_source(text: &str) -> Result<Source, UnitError> {
    let (word, rest, at) = first_word(text);
    if rest.is_empty() && SOURCES.contains(&word) && word != "json" {
        return Err(wrong(0..text.len(), format!("which {word} is meant?")));
    }
    match word {
        "json" if rest.is_empty() || rest.starts_with('/') => Ok(Source::Json(rest.to_owned())),
        "json" => Err(wrong(
            at..text.len(),
            "a JSON pointer begins with /, as in json /user/id",
        )),
        "header" => Ok(Source::Header(rest.to_owned())),
        "regex" => match pattern(rest, at)?.captures_len() {
            1 => Err(wrong(
                at..text.len(),
                "the pattern has no group that says what to take, as in id=([0-9]+)",
            )),
            _ => Ok(Source::Regex(rest.to_owned())),
        },
        _ => {
            let examples = "json /token, header NAME or regex PATTERN";
            Err(unknown(word, "place", &SOURCES, examples))
        }
    }
}

/// `answer`: how the end of an answer is told over TCP.
pub(super) fn end(reader: &mut Reader<'_>, field: Field<'_>) -> Option<AnswerEnd> {
    let expected = "\"echo\", \"close\", \"bytes 64\" or \"until TEXT\"";
    let text = reader.verbatim(field, expected)?;
    let wrong = |reader: &mut Reader<'_>, message: String| {
        reader.problem(Problem::new(field.span(), message));
        None
    };
    match text.as_str() {
        "echo" => return Some(AnswerEnd::Echo),
        "close" => return Some(AnswerEnd::Close),
        _ => {}
    }
    if let Some(bytes) = text.as_str().strip_prefix("bytes ") {
        return match units::parse_count(bytes.trim()) {
            Ok(bytes) if (1..=LARGEST).contains(&bytes) => Some(AnswerEnd::Bytes(bytes)),
            _ => wrong(reader, format!("\"{bytes}\" is no number of bytes")),
        };
    }
    // White space may be what ends it.
    match text.as_str().strip_prefix("until ") {
        Some(end) if !end.is_empty() => Some(AnswerEnd::Delimiter(end.as_bytes().to_vec())),
        _ => wrong(reader, format!("\"answer\" must be {expected}")),
    }
}
