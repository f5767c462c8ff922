//! From text to reports, in one pass.

use std::borrow::Cow;

use memchr::memchr2;
use memchr::memmem::Finder;

use super::lines::{REPORT, interrupts, level};
use super::{Limits, Report};
use crate::reports::moment::Moment;

/// Bytes within which the time of a line ends; the longest of RFC 3339 has 35.
const TIME_BYTES: usize = 64;

/// What comes next in a run log. Almost always it is a report, so that a box would only cost.
#[allow(clippy::large_enum_variant)]
pub(super) enum Entry<'a> {
    /// The lines of the agent's log before a report, and the report.
    Report(Vec<LogEntry<'a>>, Report<'a>),
    /// Lines that are no report.
    Broken,
}

/// An entry of the agent's own log.
pub(super) struct LogEntry<'a> {
    pub(super) event_type: &'static str,
    pub(super) msg: Cow<'a, str>,
    pub(super) time: Moment,
}

/// Searches for one text. What it found last it knows, so that a text of broken reports is not
/// searched to its end for each of them.
struct Search {
    finder: Finder<'static>,
    from: usize,
    found: Option<usize>,
}

impl Search {
    fn new(needle: &'static str) -> Self {
        let finder = Finder::new(needle);
        // Nothing is known yet: no place is after this one.
        let (from, found) = (usize::MAX, None);
        Self {
            finder,
            from,
            found,
        }
    }

    /// Where the text occurs first, at `from` or after.
    fn next(&mut self, text: &str, from: usize) -> Option<usize> {
        if from < self.from || self.found.is_some_and(|found| found < from) {
            let rest = text.as_bytes().get(from..)?;
            self.found = self.finder.find(rest).map(|found| from + found);
            self.from = from;
        }
        self.found
    }
}

/// Reads entries of a run log. Places are bytes of `text`, always between characters.
pub(super) struct Scanner<'a> {
    text: &'a str,
    at: usize,
    field_bytes: usize,
    message_bytes: usize,
    /// Messages of reports so far that were cut.
    pub(super) cut: usize,
    fields: Search,
    starts: Search,
    nodes: Search,
    reports: Search,
    /// Times are mostly those of the report before.
    last_time: Option<(&'a str, Moment)>,
    last_start: Option<(&'a str, Moment)>,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str, limits: &Limits) -> Self {
        Self {
            text,
            at: 0,
            field_bytes: limits.field_bytes,
            message_bytes: limits.message_bytes,
            cut: 0,
            fields: Search::new("@@"),
            starts: Search::new("##"),
            nodes: Search::new("@#"),
            reports: Search::new(REPORT),
            last_time: None,
            last_start: None,
        }
    }

    /// The next entry; none if nothing that follows is a report.
    pub(super) fn entry(&mut self) -> Option<Entry<'a>> {
        let from = self.at;
        if let Some(entry) = self.report() {
            return Some(entry);
        }
        // Lines without a time are skipped one by one.
        if self.time(from).is_none()
            && let Some((_, next)) = self.line(from)
        {
            self.at = next;
            return Some(Entry::Broken);
        }
        let report = self.reports.next(self.text, from)?;
        let (_, next) = self.lines(report + REPORT.len())?;
        self.at = next;
        Some(Entry::Broken)
    }

    fn report(&mut self) -> Option<Entry<'a>> {
        let mut at = self.at;
        let mut logs = Vec::new();
        while let Some((log, next)) = self.log(at) {
            logs.push(log);
            at = next;
        }
        let (execution_datetime, at) = self.time(at)?;
        let at = at + self.rest(at).starts_with(REPORT).then_some(REPORT.len())?;
        let (mut report, at) = self.fields(at, execution_datetime)?;
        let (msg, next) = self.lines(at)?;
        report.msg = self.bounded(msg);
        for log in &mut logs {
            log.msg = self.bounded(std::mem::take(&mut log.msg));
        }
        self.at = next;
        Some(Entry::Report(logs, report))
    }

    /// A message within its bound: what a report says of compliance does not depend on it.
    pub(super) fn bounded(&mut self, msg: Cow<'a, str>) -> Cow<'a, str> {
        if msg.len() <= self.message_bytes {
            return msg;
        }
        self.cut += 1;
        let end = msg.floor_char_boundary(self.message_bytes);
        match msg {
            Cow::Borrowed(text) => Cow::Borrowed(&text[..end]),
            Cow::Owned(mut text) => {
                text.truncate(end);
                Cow::Owned(text)
            }
        }
    }

    /// What follows the beginning of a report: all but the message, and where that begins.
    pub(super) fn fields(
        &mut self,
        at: usize,
        execution_datetime: Moment,
    ) -> Option<(Report<'a>, usize)> {
        let (policy, at) = self.field(at)?;
        let (event_type, at) = self.field(at)?;
        let (rule_id, at) = self.field(at)?;
        let (directive_id, at) = self.field(at)?;
        let (report_id, at) = self.field(at)?;
        let (component, at) = self.lines_of_field(at)?;
        let (key_value, at) = self.lines_of_field(at)?;
        let end = self.starts.next(self.text, at)?;
        let start_datetime = self.start(self.text.get(at..end)?)?;
        let at = end + 2;
        let end = self.nodes.next(self.text, at)?;
        let node_id = one_line(self.text.get(at..end)?)?;
        let fields = [
            policy,
            event_type,
            rule_id,
            directive_id,
            report_id,
            node_id,
        ];
        let sizes = fields.map(str::len).into_iter().sum::<usize>();
        if sizes + component.len() + key_value.len() > self.field_bytes {
            return None;
        }
        let report = Report {
            start_datetime,
            rule_id,
            directive_id,
            component,
            key_value: or(key_value, "None"),
            event_type,
            msg: Cow::Borrowed(""),
            policy,
            node_id,
            execution_datetime,
            report_id: if report_id.is_empty() { "0" } else { report_id },
        };
        Some((report, end + 2))
    }

    /// An entry of the agent's own log, with the lines that continue it.
    fn log(&mut self, at: usize) -> Option<(LogEntry<'a>, usize)> {
        let (time, at) = self.time(at)?;
        let (event_type, length) = level(self.rest(at))?;
        let (msg, next) = self.lines(at + length)?;
        let log = LogEntry {
            event_type,
            msg,
            time,
        };
        Some((log, next))
    }

    /// The time that a line begins with and the space after it.
    fn time(&mut self, at: usize) -> Option<(Moment, usize)> {
        let bytes = self.text.as_bytes().get(at..)?;
        if !bytes.first()?.is_ascii_digit() {
            return None;
        }
        let bytes = bytes.get(..TIME_BYTES).unwrap_or(bytes);
        let end = at + memchr::memchr(b' ', bytes)?;
        let text = self.text.get(at..end)?;
        let moment = match self.last_time {
            Some((last, moment)) if last == text => moment,
            _ => Moment::from_rfc3339(text)?,
        };
        self.last_time = Some((text, moment));
        Some((moment, end + 1))
    }

    fn start(&mut self, text: &'a str) -> Option<Moment> {
        let moment = match self.last_start {
            Some((last, moment)) if last == text => moment,
            _ => Moment::from_run_start(text)?,
        };
        self.last_start = Some((text, moment));
        Some(moment)
    }

    /// A line that continues something, without its time and its end, and where the next begins.
    /// A line without an end is not whole.
    fn line(&mut self, at: usize) -> Option<(&'a str, usize)> {
        let at = self.time(at).map_or(at, |(_, next)| next);
        let rest = self.rest(at);
        if interrupts(rest) {
            return None;
        }
        let end = memchr2(b'\n', b'\r', rest.as_bytes())?;
        let next = if rest.as_bytes().get(end..)?.starts_with(b"\r\n") {
            end + 2
        } else {
            end + 1
        };
        Some((rest.get(..end)?, at + next))
    }

    /// One line and all that continue it, joined by `\n`.
    fn lines(&mut self, at: usize) -> Option<(Cow<'a, str>, usize)> {
        let (first, mut at) = self.line(at)?;
        let mut joined = Cow::Borrowed(first);
        while let Some((line, next)) = self.line(at) {
            let text = joined.to_mut();
            text.push('\n');
            text.push_str(line);
            at = next;
        }
        Some((joined, at))
    }

    /// A field, and where the next begins.
    fn field(&mut self, at: usize) -> Option<(&'a str, usize)> {
        let end = self.fields.next(self.text, at)?;
        Some((one_line(self.text.get(at..end)?)?, end + 2))
    }

    /// A field of one line or several.
    fn lines_of_field(&mut self, mut at: usize) -> Option<(Cow<'a, str>, usize)> {
        let mut joined: Option<Cow<'a, str>> = None;
        while !self.rest(at).starts_with("@@") {
            let from = self.time(at).map_or(at, |(_, next)| next);
            let end = self.fields.next(self.text, from)?;
            let (line, next) = match one_line(self.text.get(from..end)?) {
                Some(last) => (last, end),
                None => self.line(from)?,
            };
            at = next;
            match &mut joined {
                None => joined = Some(Cow::Borrowed(line)),
                Some(text) => {
                    let text = text.to_mut();
                    text.push('\n');
                    text.push_str(line);
                }
            }
        }
        Some((joined.unwrap_or_default(), at + 2))
    }

    fn rest(&self, at: usize) -> &'a str {
        self.text.get(at..).unwrap_or_default()
    }
}

/// The text, if it has no end of a line in it.
fn one_line(text: &str) -> Option<&str> {
    memchr2(b'\n', b'\r', text.as_bytes())
        .is_none()
        .then_some(text)
}

fn or<'a>(text: Cow<'a, str>, otherwise: &'static str) -> Cow<'a, str> {
    if text.is_empty() {
        Cow::Borrowed(otherwise)
    } else {
        text
    }
}
