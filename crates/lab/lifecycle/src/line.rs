//! One log line: its time, its message and the fields that somebody wants.

use std::borrow::Cow;

use memchr::memchr;

use crate::fields::{FieldId, Fields};
use crate::json::{self, Kind, Slot};
use crate::{logfmt, timestamp};

/// Longest line that is read; what a line has beyond is dropped.
pub const MAX_LINE_BYTES: usize = 1 << 20;

/// The form of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// JSON when the line is an object, or has one with a time behind a text; otherwise logfmt.
    #[default]
    Auto,
    /// Lager's JSON; text before the first `{` (monit, BOSH) is skipped.
    Lager,
    /// A JSON object and nothing else.
    Json,
    /// `key=value` pairs.
    Logfmt,
}

/// The line has none of the known forms, or no time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the line is neither JSON nor logfmt with a time")]
pub struct Unreadable;

/// Reads lines. It is asked once which fields are wanted, finds all of them in one
/// pass over a line, and keeps its memory from line to line.
///
/// The time is the first of `timestamp`, `time`, `ts`, `@timestamp` that is one; the message is
/// `message`, `msg` or `event` (none: the message is empty). A field is looked
/// for in the object `data`, where lager has it, and then in the line itself.
/// Numbers and booleans count as their text; null, objects and arrays do not count.
#[derive(Debug)]
pub struct Scanner {
    fields: Fields,
    top: Vec<Slot>,
    data: Vec<Slot>,
}

impl Scanner {
    /// A reader that finds these fields.
    pub fn new(fields: Fields) -> Self {
        let slots = vec![Slot::default(); fields.len()];
        Self {
            fields,
            top: slots.clone(),
            data: slots,
        }
    }

    /// Reads one line, given without or with its line end. Only its first
    /// [`MAX_LINE_BYTES`] are looked at.
    pub fn scan<'a>(&'a mut self, format: Format, line: &'a [u8]) -> Result<Line<'a>, Unreadable> {
        let line = &line[..line.len().min(MAX_LINE_BYTES)];
        self.find(format, line).ok_or(Unreadable)?;

        let at = self.at(line);
        let message = FieldId::messages()
            .map(|id| self.top[id.0])
            .find(Slot::is_present);
        Ok(Line {
            bytes: line,
            at_unix_ns: at.ok_or(Unreadable)?,
            message: message.unwrap_or_default(),
            top: &self.top,
            data: &self.data,
        })
    }

    fn find(&mut self, format: Format, line: &[u8]) -> Option<()> {
        match format {
            Format::Json => self.json(line, line.iter().position(|b| !b.is_ascii_whitespace())?),
            Format::Lager => self.json(line, memchr(b'{', line)?),
            Format::Logfmt => self.logfmt(line),
            Format::Auto => match memchr(b'{', line) {
                Some(start) => {
                    let object = self.json(line, start);
                    // What stands behind a text, and has no time, may be the value of a pair.
                    let is_alone = line[..start].trim_ascii().is_empty();
                    let object = object.filter(|()| is_alone || self.at(line).is_some());
                    object.or_else(|| self.logfmt(line))
                }
                None => self.logfmt(line),
            },
        }
    }

    /// The time of what was read of a line.
    fn at(&self, line: &[u8]) -> Option<i64> {
        FieldId::times().find_map(|id| timestamp::parse(&text(line, self.top[id.0])))
    }

    fn json(&mut self, line: &[u8], start: usize) -> Option<()> {
        self.top.fill(Slot::default());
        self.data.fill(Slot::default());
        json::read(
            line,
            start,
            &self.fields.root,
            &mut self.top,
            &mut self.data,
        )
    }

    fn logfmt(&mut self, line: &[u8]) -> Option<()> {
        self.top.fill(Slot::default());
        self.data.fill(Slot::default());
        logfmt::read(line, &self.fields.root, &mut self.top)
    }
}

/// A line that was read. It borrows from the line and from its [`Scanner`].
#[derive(Debug, Clone, Copy)]
pub struct Line<'a> {
    bytes: &'a [u8],
    at_unix_ns: i64,
    message: Slot,
    top: &'a [Slot],
    data: &'a [Slot],
}

impl<'a> Line<'a> {
    /// When, in nanoseconds since the Unix epoch.
    pub fn at_unix_ns(&self) -> i64 {
        self.at_unix_ns
    }

    /// What happened; empty when the line does not say. Not always UTF-8.
    pub fn message(&self) -> Cow<'a, [u8]> {
        text(self.bytes, self.message)
    }

    /// The program that wrote the line (`source`).
    pub fn source(&self) -> Option<Cow<'a, [u8]>> {
        let slot = self.top[FieldId::SOURCE.0];
        slot.is_present().then(|| text(self.bytes, slot))
    }

    /// The text of a wanted field. An empty text is a value too.
    pub fn field(&self, id: FieldId) -> Option<Cow<'a, [u8]>> {
        let (data, top) = (self.data[id.0], self.top[id.0]);
        let slot = if data.is_present() { data } else { top };
        slot.is_present().then(|| text(self.bytes, slot))
    }
}

impl Line<'_> {
    /// The texts of the first of these lists of fields that the line has whole and not
    /// empty, joined by `/`.
    pub(crate) fn joined(&self, lists: &[Vec<FieldId>]) -> Option<Vec<u8>> {
        lists.iter().find_map(|fields| {
            let texts = fields
                .iter()
                .map(|id| self.field(*id).filter(|text| !text.is_empty()));
            let texts: Option<Vec<_>> = texts.collect();
            Some(texts?.join(&b'/'))
        })
    }
}

fn text(line: &[u8], slot: Slot) -> Cow<'_, [u8]> {
    match slot.kind {
        Kind::Absent => Cow::Borrowed(b""),
        Kind::Plain => Cow::Borrowed(slot.raw(line)),
        Kind::Escaped => Cow::Owned(json::unescape(slot.raw(line))),
    }
}

#[cfg(test)]
#[path = "line_tests.rs"]
mod tests;
