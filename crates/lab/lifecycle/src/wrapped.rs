//! Log lines within what carries them: messages of syslog, entries of systemd's journal.

use std::borrow::Cow;

use jiff::Timestamp;
use memchr::memchr;
use serde_json::{Value, json};

use crate::line::MAX_LINE_BYTES;

/// Most digits of the length before a message of a stream, which allow for 10 MB.
const LENGTH_DIGITS: usize = 7;

/// The log line that a message of syslog carries (RFC 5424, RFC 3164), or what was sent without
/// syslog's header, as it is.
///
/// A message that is JSON is a line by itself. Any other becomes JSON with `timestamp`, `message`
/// and `source`, the program's name. The time is that of the header where it is exact: that of RFC 5424,
/// and of an older form whose time is written so, as Go's library and rsyslog do. RFC 3164's own knows
/// neither year nor offset, so there the time of its arrival counts, in nanoseconds since the Unix epoch.
pub fn syslog_line(message: &[u8], arrived_unix_ns: i64) -> Cow<'_, [u8]> {
    let message = message.trim_ascii_end();
    let Some(rest) = after_priority(message) else {
        return one_line(message);
    };
    let head = rfc5424(rest).unwrap_or_else(|| rfc3164(rest));
    if is_object(head.message) {
        return one_line(head.message.trim_ascii());
    }
    let time = head.time.and_then(|text| text.parse::<Timestamp>().ok());
    let nanos = time.map_or(i128::from(arrived_unix_ns), Timestamp::as_nanosecond);
    Cow::Owned(line_of(nanos, head.source, head.message))
}

/// The log line that an entry of the journal carries, as `journalctl --output json` writes it;
/// `None`: it is no such entry, or has no message.
///
/// A message that is JSON is a line by itself. Any other becomes JSON with `timestamp`, `message`
/// and `source` (`SYSLOG_IDENTIFIER`).
pub fn journal_line(entry: &[u8]) -> Option<Vec<u8>> {
    let entry: Value = serde_json::from_slice(entry).ok()?;
    let message = bytes_of(entry.get("MESSAGE")?)?;
    if is_object(&message) {
        return Some(one_line(message.trim_ascii()).into_owned());
    }
    // When the program wrote it, and else when the journal took it; in microseconds.
    let time = ["_SOURCE_REALTIME_TIMESTAMP", "__REALTIME_TIMESTAMP"];
    let time = time.iter().find_map(|name| entry.get(name)?.as_str());
    let micros: i128 = time?.parse().ok()?;
    let source = entry.get("SYSLOG_IDENTIFIER").and_then(Value::as_str);
    Some(line_of(
        micros.checked_mul(1000)?,
        source.unwrap_or_default(),
        &message,
    ))
}

/// A field of the journal: text, or a list of bytes where it is not all printable.
fn bytes_of(field: &Value) -> Option<Vec<u8>> {
    match field {
        Value::String(text) => Some(text.clone().into_bytes()),
        Value::Array(bytes) => {
            let bytes = bytes.iter();
            bytes
                .map(|byte| u8::try_from(byte.as_u64()?).ok())
                .collect()
        }
        _ => None,
    }
}

fn is_object(message: &[u8]) -> bool {
    message.trim_ascii_start().starts_with(b"{")
}

fn line_of(unix_ns: i128, source: &str, message: &[u8]) -> Vec<u8> {
    let (seconds, nanos) = (
        unix_ns.div_euclid(1_000_000_000),
        unix_ns.rem_euclid(1_000_000_000),
    );
    let line = json!({
        "timestamp": format!("{seconds}.{nanos:09}"),
        "source": source,
        "message": String::from_utf8_lossy(message),
    });
    line.to_string().into_bytes()
}

/// Without breaks, which would make several lines of it.
fn one_line(message: &[u8]) -> Cow<'_, [u8]> {
    match message.iter().any(|byte| matches!(byte, b'\n' | b'\r')) {
        false => Cow::Borrowed(message),
        true => Cow::Owned(
            message
                .iter()
                .map(|byte| match byte {
                    b'\n' | b'\r' => b' ',
                    byte => *byte,
                })
                .collect(),
        ),
    }
}

/// What follows `<PRI>`, a number of at most three digits.
fn after_priority(message: &[u8]) -> Option<&[u8]> {
    let rest = message.strip_prefix(b"<")?;
    let end = memchr(b'>', &rest[..rest.len().min(4)])?;
    let digits = &rest[..end];
    (!digits.is_empty() && digits.iter().all(u8::is_ascii_digit)).then(|| &rest[end + 1..])
}

struct Head<'a> {
    /// RFC 3339; `None`: not told, or not exactly.
    time: Option<&'a str>,
    /// The program.
    source: &'a str,
    message: &'a [u8],
}

/// `1 TIME HOST APP PROCID MSGID STRUCTURED-DATA MESSAGE`.
fn rfc5424(rest: &[u8]) -> Option<Head<'_>> {
    let rest = rest.strip_prefix(b"1 ")?;
    let (time, rest) = word(rest)?;
    let (_host, rest) = word(rest)?;
    let (source, rest) = word(rest)?;
    let (_process, rest) = word(rest)?;
    let (_kind, rest) = word(rest)?;
    let rest = after_structured_data(rest)?;
    let message = rest.strip_prefix(b" ").unwrap_or(rest);
    Some(Head {
        time: Some(time),
        source: if source == "-" { "" } else { source },
        message: message
            .strip_prefix("\u{feff}".as_bytes())
            .unwrap_or(message),
    })
}

/// `Nov 26 18:04:05 HOST TAG: MESSAGE`, of which programs leave out what they like. Some write a
/// time of RFC 3339 instead.
fn rfc3164(rest: &[u8]) -> Head<'_> {
    // `Mmm dd hh:mm:ss ` is always as long.
    let timed = rest.len() > 16 && rest[3] == b' ' && rest[9] == b':' && rest[12] == b':';
    let exact = word(rest).filter(|(first, _)| first.parse::<Timestamp>().is_ok());
    let (time, body) = match exact {
        Some((first, after)) => (Some(first), after),
        None if timed && rest[15] == b' ' => (None, &rest[16..]),
        None => (None, rest),
    };
    let whole = Head {
        time,
        source: "",
        message: body,
    };
    // The tag is a word before a colon, behind at most one other word, the host.
    let mut at = 0;
    for _ in 0..2 {
        let Some((first, after)) = word(&body[at..]) else {
            break;
        };
        if let Some(tag) = first.strip_suffix(':') {
            return Head {
                source: tag.split('[').next().unwrap_or(tag),
                message: after,
                ..whole
            };
        }
        at = body.len() - after.len();
    }
    whole
}

/// The text before the next space, and what follows.
fn word(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let end = memchr(b' ', bytes)?;
    let text = std::str::from_utf8(&bytes[..end]).ok()?;
    Some((text, &bytes[end + 1..]))
}

/// What follows `-` or `[id name="value" …]…`, in whose values `\` takes the next byte as it is.
fn after_structured_data(bytes: &[u8]) -> Option<&[u8]> {
    if let Some(rest) = bytes.strip_prefix(b"-") {
        return Some(rest);
    }
    let (mut quoted, mut escaped) = (false, false);
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b']' if !quoted && bytes.get(at + 1) != Some(&b'[') => return Some(&bytes[at + 1..]),
            _ => {}
        }
    }
    None
}

/// The messages of a stream of syslog (RFC 6587): each ends with a line, or its length stands
/// before it. Of one longer than [`MAX_LINE_BYTES`] the rest is dropped.
#[derive(Debug, Default)]
pub struct SyslogStream {
    held: Vec<u8>,
    /// Bytes of a message that was too long and are yet to come; `None` within a line: up to its end.
    dropping: Option<Drop>,
}

#[derive(Debug, Clone, Copy)]
enum Drop {
    Bytes(usize),
    Line,
}

impl SyslogStream {
    /// Takes what came, and gives every message that is whole.
    pub fn push(&mut self, mut bytes: &[u8], mut each: impl FnMut(&[u8])) {
        while !bytes.is_empty() {
            bytes = match self.dropping {
                Some(drop) => self.dropped(drop, bytes),
                None => {
                    // At most as much as is kept of a message, and its head.
                    let room = MAX_LINE_BYTES + 1 + LENGTH_DIGITS + 1 - self.held.len();
                    let (now, later) = bytes.split_at(room.min(bytes.len()));
                    self.held.extend_from_slice(now);
                    self.whole(&mut each);
                    later
                }
            };
        }
    }

    /// The stream has ended: gives what came of its last message.
    pub fn end(&mut self, mut each: impl FnMut(&[u8])) {
        if !self.held.is_empty() && self.dropping.is_none() {
            let (_, from) = counted(&self.held).unwrap_or((0, 0));
            each(&self.held[from..]);
        }
        self.held.clear();
    }

    /// Gives the messages that are whole, and keeps the rest.
    fn whole(&mut self, each: &mut impl FnMut(&[u8])) {
        let mut from = 0;
        while from < self.held.len() {
            let held = &self.held[from..];
            let most = MAX_LINE_BYTES + 1;
            let (head, length, end) = match counted(held) {
                Some((length, head)) => (head, length, head + length),
                None => match memchr(b'\n', held) {
                    Some(end) => (0, end, end + 1),
                    None if held.len() > most => (0, usize::MAX, usize::MAX),
                    None => break,
                },
            };
            if length > most {
                if held.len() < head + most {
                    break;
                }
                each(&held[head..head + most]);
                self.dropping = match end {
                    usize::MAX => Some(Drop::Line),
                    end => Some(Drop::Bytes(end.saturating_sub(held.len()))),
                };
                // A length that is met already leaves what follows it.
                from = self.held.len().min(from.saturating_add(end));
                if matches!(self.dropping, Some(Drop::Bytes(0))) {
                    self.dropping = None;
                    continue;
                }
                break;
            }
            if held.len() < end {
                break;
            }
            each(&held[head..head + length]);
            from += end;
        }
        self.held.drain(..from);
    }

    fn dropped<'a>(&mut self, drop: Drop, bytes: &'a [u8]) -> &'a [u8] {
        let gone = match drop {
            Drop::Bytes(left) => {
                let gone = left.min(bytes.len());
                self.dropping = (gone < left).then_some(Drop::Bytes(left - gone));
                gone
            }
            Drop::Line => match memchr(b'\n', bytes) {
                Some(end) => {
                    self.dropping = None;
                    end + 1
                }
                None => bytes.len(),
            },
        };
        &bytes[gone..]
    }
}

/// The length that stands before a message, and where the message begins; `None`: none does.
fn counted(bytes: &[u8]) -> Option<(usize, usize)> {
    let digits = bytes
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    if !(1..=LENGTH_DIGITS).contains(&digits) || !bytes[digits..].starts_with(b" <") {
        return None;
    }
    let length = std::str::from_utf8(&bytes[..digits]).ok()?.parse().ok()?;
    Some((length, digits + 1))
}

#[cfg(test)]
#[path = "wrapped_tests.rs"]
mod tests;
