//! Loggers: a source, a session path and fields that every line carries.

use std::fmt::Write;
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serialize;

use crate::sink::Sink;

/// Importance of a line, as lager numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Written only when asked for.
    Debug = 0,
    /// What an operator wants to follow.
    Info = 1,
    /// Something failed and was dealt with.
    Error = 2,
    /// Something failed and the process ends.
    Fatal = 3,
}

/// How a line says when it was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LineTimes {
    /// Seconds since 1970: `"1795249040.286360016"`.
    #[default]
    Unix,
    /// RFC 3339, UTC: `"2026-11-21T08:17:20.286360016Z"`.
    Rfc3339,
}

impl LineTimes {
    /// Appends a time after 1970.
    fn append(self, since_1970: Duration, line: &mut String) {
        let timestamp = match self {
            Self::Unix => None,
            // Beyond year 9999 there is no such form.
            Self::Rfc3339 => jiff::SignedDuration::try_from(since_1970)
                .and_then(jiff::Timestamp::from_duration)
                .ok(),
        };
        // Writing to a string cannot fail.
        let _ = match timestamp {
            Some(timestamp) => write!(line, "{timestamp:.9}"),
            None => write!(
                line,
                "{}.{:09}",
                since_1970.as_secs(),
                since_1970.subsec_nanos()
            ),
        };
    }
}

/// Writes lines of one component.
///
/// Cheap to clone. A logger made by [`Logger::session`] appends its name to the
/// message path; one made by [`Logger::with`] adds a field to each line.
#[derive(Clone)]
pub struct Logger {
    sink: Sink,
    least: Level,
    times: LineTimes,
    source: Arc<str>,
    path: Arc<str>,
    /// Fields of every line, already encoded: `"key":value,"key":value`.
    fixed: Arc<str>,
}

impl Logger {
    /// A logger of `source` that writes lines of level `least` and above to `sink`.
    pub fn new(source: &str, sink: Sink, least: Level) -> Self {
        Self {
            sink,
            least,
            times: LineTimes::default(),
            source: source.into(),
            path: source.into(),
            fixed: "".into(),
        }
    }

    /// A logger that appends `name` to the path of its messages.
    pub fn session(&self, name: &str) -> Self {
        Self {
            path: format!("{}.{name}", self.path).into(),
            ..self.clone()
        }
    }

    /// A logger whose lines all carry `key`.
    pub fn with(&self, key: &str, value: impl Serialize) -> Self {
        let mut fixed = String::from(&*self.fixed);
        append_field(&mut fixed, key, &value);
        Self {
            fixed: fixed.into(),
            ..self.clone()
        }
    }

    /// A logger whose lines say their time in this form.
    #[must_use]
    pub fn with_times(&self, times: LineTimes) -> Self {
        Self {
            times,
            ..self.clone()
        }
    }

    /// A logger that writes lines of every level: for those that another process waits for.
    pub fn of_every_level(&self) -> Self {
        Self {
            least: Level::Debug,
            ..self.clone()
        }
    }

    /// Is a line of `level` written?
    pub fn enabled(&self, level: Level) -> bool {
        level >= self.least
    }

    /// Writes a debug line.
    pub fn debug(&self, event: &str, fields: Fields) {
        self.write(Level::Debug, event, fields);
    }

    /// Writes an info line.
    pub fn info(&self, event: &str, fields: Fields) {
        self.write(Level::Info, event, fields);
    }

    /// Writes an error line; `cause` becomes the field `error`.
    pub fn error(&self, event: &str, cause: &dyn std::fmt::Display, fields: Fields) {
        self.write(Level::Error, event, fields.and("error", cause.to_string()));
    }

    /// Writes a fatal line; the caller ends the process after [`Sink::flush`].
    pub fn fatal(&self, event: &str, cause: &dyn std::fmt::Display, fields: Fields) {
        self.write(Level::Fatal, event, fields.and("error", cause.to_string()));
    }

    /// The sink, to flush it before the process ends.
    pub fn sink(&self) -> &Sink {
        &self.sink
    }

    fn write(&self, level: Level, event: &str, fields: Fields) {
        if !self.enabled(level) {
            return;
        }
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let mut line = String::with_capacity(192 + self.fixed.len() + fields.0.len());
        line.push_str(r#"{"timestamp":""#);
        self.times.append(now, &mut line);
        line.push_str(r#"","source":"#);
        append_value(&mut line, &*self.source);
        line.push_str(r#","message":"#);
        // Path and event are names from our own code: no character needs escaping.
        line.push('"');
        line.push_str(&self.path);
        line.push('.');
        line.push_str(event);
        line.push('"');
        line.push_str(r#","log_level":"#);
        line.push(char::from(b'0' + level as u8));
        line.push_str(r#","data":{"#);
        line.push_str(&self.fixed);
        if !self.fixed.is_empty() && !fields.0.is_empty() {
            line.push(',');
        }
        line.push_str(&fields.0);
        line.push_str("}}\n");
        self.sink.write(line, level);
    }
}

/// The fields of one line: `Fields::new().and("task-guid", guid)`.
#[derive(Debug, Clone, Default)]
pub struct Fields(String);

impl Fields {
    /// No fields.
    pub fn new() -> Self {
        Self::default()
    }

    /// These fields and one more. A value that cannot be written as JSON becomes
    /// null: a log line is never a reason to fail.
    #[must_use]
    pub fn and(mut self, key: &str, value: impl Serialize) -> Self {
        append_field(&mut self.0, key, &value);
        self
    }
}

fn append_field(text: &mut String, key: &str, value: &impl Serialize) {
    if !text.is_empty() {
        text.push(',');
    }
    append_value(text, key);
    text.push(':');
    append_value(text, value);
}

fn append_value<T: Serialize + ?Sized>(text: &mut String, value: &T) {
    let end = text.len();
    if serde_json::to_writer(Appending(text), value).is_err() {
        text.truncate(end);
        text.push_str("null");
    }
}

/// The end of a string, as a place to write to.
struct Appending<'a>(&'a mut String);

impl io::Write for Appending<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // JSON is written in whole characters.
        let text = std::str::from_utf8(bytes).map_err(io::Error::other)?;
        self.0.push_str(text);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_nanoseconds_in_both_forms() {
        let of = |times: LineTimes, time: Duration| {
            let mut line = String::new();
            times.append(time, &mut line);
            line
        };
        let time = Duration::new(1_795_249_040, 286_360_016);
        assert_eq!(of(LineTimes::Unix, time), "1795249040.286360016");
        assert_eq!(
            of(LineTimes::Rfc3339, time),
            "2026-11-21T08:17:20.286360016Z"
        );
        assert_eq!(
            of(LineTimes::Rfc3339, Duration::from_secs(1)),
            "1970-01-01T00:00:01.000000000Z"
        );
        assert_eq!(
            of(LineTimes::Rfc3339, Duration::MAX),
            format!("{}.999999999", u64::MAX)
        );
    }

    #[test]
    fn sessions_keep_the_form_of_times() {
        let sink = Sink::memory();
        let logger = Logger::new("router", sink.clone(), Level::Info);
        let logger = logger.with_times(LineTimes::Rfc3339).session("nats");
        logger.info("started", Fields::new());
        let line: serde_json::Value = serde_json::from_str(&sink.kept()).unwrap();
        let time = line["timestamp"].as_str().unwrap();
        assert!(time.parse::<jiff::Timestamp>().is_ok(), "{time}");
    }
}
