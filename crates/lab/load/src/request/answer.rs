//! What came back, and what is asked of it.

use std::borrow::Cow;
use std::cell::OnceCell;

use regex::bytes::Regex;
use serde_json::Value;

use super::{Assertion, Source};

/// A whole answer, as far as [`Needs`](super::Needs) asked for it.
#[derive(Debug, Clone, Copy)]
pub struct Answer<'a> {
    /// Status of HTTP, `grpc-status` of gRPC, nothing (0) else.
    pub status: u16,
    /// Header lines, `Name: value`, each ended by LF or CRLF, without the status line.
    pub fields: &'a [u8],
    /// The body, without framing and chunk sizes; at most [`Answer::KEPT`] bytes of it.
    pub body: &'a [u8],
    /// Size of the whole body.
    pub body_bytes: u64,
    /// Rows of a database's answer; elements of a reply of Redis, of which nil has none.
    pub rows: u64,
}

impl<'a> Answer<'a> {
    /// Bytes of a body that are kept for assertions and values: 1 MiB. An assertion on
    /// a longer body, or a value from it, is a refusal.
    pub const KEPT: usize = 1 << 20;

    /// The values of all fields of this name, whatever its case.
    pub(super) fn values(&self, name: &str) -> impl Iterator<Item = Cow<'a, str>> {
        self.fields.split(|&b| b == b'\n').filter_map(move |line| {
            let colon = line.iter().position(|&b| b == b':')?;
            let (found, value) = (&line[..colon], &line[colon + 1..]);
            found
                .eq_ignore_ascii_case(name.as_bytes())
                .then(|| String::from_utf8_lossy(value.trim_ascii()))
        })
    }

    /// Where the answer sends its reader, if it does: the start of its `Location`.
    pub fn redirect(&self) -> Option<String> {
        const LONGEST: usize = 200;
        let to = is_redirect(self.status).then(|| self.values("location").next())??;
        Some(to.chars().take(LONGEST).collect())
    }

    /// Whether not all of the body is here.
    pub(super) fn is_cut(&self) -> bool {
        (self.body.len() as u64) < self.body_bytes
    }
}

/// Whether an answer of HTTP with this status sends its reader elsewhere.
pub const fn is_redirect(status: u16) -> bool {
    matches!(status, 301 | 302 | 303 | 307 | 308)
}

/// An assertion made ready.
#[derive(Debug, Clone)]
pub(super) enum Check {
    Status(Vec<(u16, u16)>),
    Header(String, String),
    BodyContains(String),
    BodyMatches(Regex),
    BodyIs(String),
    Size(u64, u64),
    Rows(u64, u64),
}

impl Check {
    /// The assertion; its expressions are known to compile.
    pub(super) fn of(assertion: &Assertion) -> Result<Self, String> {
        Ok(match assertion {
            Assertion::Status(ranges) => Self::Status(ranges.clone()),
            Assertion::Header(name, part) => Self::Header(name.clone(), part.clone()),
            Assertion::BodyContains(part) => Self::BodyContains(part.clone()),
            Assertion::BodyMatches(pattern) => Self::BodyMatches(expression(pattern)?),
            Assertion::BodyIs(text) => Self::BodyIs(text.clone()),
            Assertion::Size(low, high) => Self::Size(*low, *high),
            Assertion::Rows(low, high) => Self::Rows(*low, *high),
        })
    }

    pub(super) fn needs_fields(&self) -> bool {
        matches!(self, Self::Header(..))
    }

    pub(super) fn needs_body(&self) -> bool {
        matches!(
            self,
            Self::BodyContains(_) | Self::BodyMatches(_) | Self::BodyIs(_)
        )
    }

    pub(super) fn holds(&self, answer: &Answer<'_>) -> bool {
        match self {
            Self::Status(ranges) => ranges
                .iter()
                .any(|&(low, high)| (low..=high).contains(&answer.status)),
            Self::Header(name, part) => answer.values(name).any(|value| value.contains(part)),
            Self::BodyContains(part) => {
                memchr::memmem::find(answer.body, part.as_bytes()).is_some()
            }
            Self::BodyMatches(pattern) => pattern.is_match(answer.body),
            Self::BodyIs(text) => answer.body == text.as_bytes(),
            Self::Size(low, high) => (*low..=*high).contains(&answer.body_bytes),
            Self::Rows(low, high) => (*low..=*high).contains(&answer.rows),
        }
    }
}

/// Compiles an expression; its size is bounded by the library's default (10 MiB).
pub(super) fn expression(pattern: &str) -> Result<Regex, String> {
    Regex::new(pattern).map_err(|error| {
        let text = error.to_string();
        let last = text.lines().last().unwrap_or_default();
        format!(
            "this is no regular expression: {}",
            last.trim_start_matches("error: ")
        )
    })
}

/// A place in an answer, made ready.
#[derive(Debug, Clone)]
pub(super) enum Place {
    Json(String),
    Header(String),
    Group(Regex),
}

impl Place {
    pub(super) fn of(source: &Source) -> Result<Self, String> {
        match source {
            Source::Json(pointer) => Ok(Self::Json(pointer.clone())),
            Source::Header(name) => Ok(Self::Header(name.clone())),
            Source::Regex(pattern) => match expression(pattern)? {
                regex if regex.captures_len() > 1 => Ok(Self::Group(regex)),
                _ => Err(
                    "the expression has no group; put what shall be taken in parentheses"
                        .to_owned(),
                ),
            },
        }
    }

    pub(super) fn needs_body(&self) -> bool {
        !matches!(self, Self::Header(_))
    }

    /// The value, when it is there and is text. `json` holds the parsed body between
    /// several values of the same answer.
    pub(super) fn find(
        &self,
        answer: &Answer<'_>,
        json: &OnceCell<Option<Value>>,
    ) -> Option<String> {
        match self {
            Self::Header(name) => answer.values(name).next().map(Cow::into_owned),
            Self::Group(regex) => {
                let group = regex.captures(answer.body)?.get(1)?;
                std::str::from_utf8(group.as_bytes())
                    .ok()
                    .map(str::to_owned)
            }
            Self::Json(pointer) => {
                let body = json.get_or_init(|| serde_json::from_slice(answer.body).ok());
                match body.as_ref()?.pointer(pointer)? {
                    Value::Null => None,
                    Value::String(text) => Some(text.clone()),
                    other => Some(other.to_string()),
                }
            }
        }
    }
}
