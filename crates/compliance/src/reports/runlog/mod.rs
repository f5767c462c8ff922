//! The log of an agent's run: one report a line, as Rudder's relayd reads it.
//!
//! ```text
//! LINE_TIME R: @@TECHNIQUE@@TYPE@@RULE@@DIRECTIVE@@REPORT@@COMPONENT@@KEY@@RUN_START##NODE@#MESSAGE
//! ```
//!
//! Components, keys and messages may take several lines. Lines of an agent's own log become
//! reports of the type `log_…` of the report that follows them. A line that cannot be read is
//! dropped and counted; what relayd loses beside it is lost here too, so that both show the same.

mod kind;
mod lines;
mod scan;
#[cfg(test)]
mod tests;
mod write;

use std::borrow::Cow;

use serde::Serialize;
use thiserror::Error;

pub use kind::ReportKind;
pub use write::{DelimiterError, write_report};
pub(super) use write::{check, write_fields};

use super::moment::Moment;
use super::run_info::RunInfo;
use scan::{Entry, Scanner};

/// How much of a run log is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the whole text; a longer one is refused.
    pub text_bytes: usize,
    /// Reports of a run, with those that stand for lines of the agent's log; more are refused.
    pub reports: usize,
    /// Bytes of a report's fields but its message; a longer report is dropped as broken.
    pub field_bytes: usize,
    /// Bytes of a message; a longer one is cut.
    pub message_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            text_bytes: 64 << 20,
            reports: 200_000,
            field_bytes: 64 << 10,
            message_bytes: 1 << 20,
        }
    }
}

/// One report. It borrows from the text that it was read from.
///
/// Its JSON is that of relayd.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report<'a> {
    /// The start of the run: with the node it is the run's identity.
    pub start_datetime: Moment,
    /// The rule; `rudder` for markers of the run itself.
    pub rule_id: &'a str,
    /// The directive; `run` for markers of the run itself.
    pub directive_id: &'a str,
    /// The component; of several lines joined by `\n`.
    pub component: Cow<'a, str>,
    /// The component's value, `None` if there is none; of several lines joined by `\n`.
    pub key_value: Cow<'a, str>,
    /// The type as it was written; [`Report::kind`] understands it.
    pub event_type: &'a str,
    /// The message; of several lines joined by `\n`.
    pub msg: Cow<'a, str>,
    /// The technique.
    pub policy: &'a str,
    /// The node that ran.
    pub node_id: &'a str,
    /// When the line was written.
    pub execution_datetime: Moment,
    /// The stable identifier of the method call; `0` if there is none.
    pub report_id: &'a str,
}

impl Report<'_> {
    /// What the report's type means.
    pub fn kind(&self) -> ReportKind {
        ReportKind::from_name(self.event_type)
    }
}

/// The reports of one run, never none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunLog<'a> {
    /// Node and date by the name of the file.
    pub info: RunInfo,
    /// The configuration that the agent ran: the key of its first start or end marker.
    pub config_id: Option<String>,
    /// In the order of the text.
    pub reports: Vec<Report<'a>>,
    /// Lines that could not be read, each with the lines that continue it.
    #[serde(skip)]
    pub broken: usize,
    /// Messages that were longer than the limit, and are cut.
    #[serde(skip)]
    pub cut: usize,
    /// Reports that tell another start of the run than the first does.
    #[serde(skip)]
    pub other_starts: usize,
}

/// Why a run log is refused.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum RunLogError {
    /// It has more bytes than the limit.
    #[error("reading a run log: it has {found} bytes; expected at most {limit}")]
    TooLong {
        /// Bytes of the text.
        found: usize,
        /// The limit.
        limit: usize,
    },
    /// It has more reports than the limit.
    #[error("reading a run log: it has more than {limit} reports; the agent repeats itself")]
    TooManyReports {
        /// The limit.
        limit: usize,
    },
    /// Lines of the agent's log, which stand for reports with the fields of the report after them,
    /// would have too many bytes of these.
    #[error(
        "reading a run log: lines of the agent's log repeat the fields of the report after them to \
         more than {limit} bytes; the agent repeats itself"
    )]
    Repeats {
        /// The limit.
        limit: usize,
    },
    /// No line of it is a report.
    #[error(
        "reading a run log: none of its lines is a report and {broken} are broken; expected \
         lines as \"DATE R: @@technique@@type@@…\""
    )]
    NoReport {
        /// Lines that could not be read.
        broken: usize,
    },
    /// It is of another node than the file's name says.
    #[error(
        "reading a run log: a report is of node {found:?}, the file of {expected:?}; a run log \
         holds one node's reports"
    )]
    OtherNode {
        /// The node of the file.
        expected: String,
        /// The node of the report.
        found: String,
    },
}

impl<'a> RunLog<'a> {
    /// Reads a run log. Bytes that are not UTF-8 should be replaced before
    /// ([`String::from_utf8_lossy`]): they are no reason to refuse a run.
    ///
    /// # Errors
    /// Nothing in it is a report, a report is of another node than `info` says, or a limit.
    pub fn parse(info: RunInfo, text: &'a str, limits: &Limits) -> Result<Self, RunLogError> {
        if text.len() > limits.text_bytes {
            let (found, limit) = (text.len(), limits.text_bytes);
            return Err(RunLogError::TooLong { found, limit });
        }
        let mut scanner = Scanner::new(text, limits);
        let (mut reports, mut broken, mut repeated) = (Vec::new(), 0, 0_usize);
        // A line of a report takes about 256 bytes.
        reports.reserve((text.len() / 200).min(limits.reports));
        while let Some(entry) = scanner.entry() {
            match entry {
                Entry::Broken => broken += 1,
                Entry::Report(logs, report) => {
                    let limit = limits.reports;
                    if reports.len() + logs.len() >= limit {
                        return Err(RunLogError::TooManyReports { limit });
                    }
                    // Each has its own copy of what takes several lines.
                    let owned = [&report.component, &report.key_value].map(|text| match text {
                        Cow::Borrowed(_) => 0,
                        Cow::Owned(text) => text.len(),
                    });
                    repeated += logs.len().saturating_mul(owned.iter().sum());
                    if repeated > limits.text_bytes {
                        let limit = limits.text_bytes;
                        return Err(RunLogError::Repeats { limit });
                    }
                    for log in logs {
                        reports.push(Report {
                            event_type: log.event_type,
                            msg: log.msg,
                            execution_datetime: log.time,
                            ..report.clone()
                        });
                    }
                    reports.push(report);
                }
            }
        }
        Self::of_reports(info, reports, broken, scanner.cut)
    }

    fn of_reports(
        info: RunInfo,
        reports: Vec<Report<'a>>,
        broken: usize,
        cut: usize,
    ) -> Result<Self, RunLogError> {
        let Some(first) = reports.first() else {
            return Err(RunLogError::NoReport { broken });
        };
        let start = first.start_datetime;
        let mut other_starts = 0;
        for report in &reports {
            if report.node_id != info.node_id {
                return Err(RunLogError::OtherNode {
                    expected: info.node_id,
                    found: report.node_id.chars().take(256).collect(),
                });
            }
            other_starts += usize::from(report.start_datetime != start);
        }
        let config_id = reports
            .iter()
            .find(|report| is_marker(report, "start") || is_marker(report, "end"))
            .map(|report| report.key_value.clone().into_owned());
        Ok(Self {
            info,
            config_id,
            reports,
            broken,
            cut,
            other_starts,
        })
    }

    /// The start of the run by its reports, which with the node is its identity.
    pub fn start(&self) -> Moment {
        match self.reports.first() {
            Some(report) => report.start_datetime,
            None => self.info.timestamp,
        }
    }

    /// Is this a run, of which compliance is computed? A log without a start is not: its reports
    /// inform. The end may be missing if the agent was interrupted.
    pub fn is_run(&self) -> bool {
        self.reports.iter().any(|report| is_marker(report, "start"))
    }

    /// Why the agent gave up before it applied its policy, if it did: causes and messages.
    pub fn aborts(&self) -> impl Iterator<Item = (&str, &str)> {
        let aborts = self.reports.iter().filter(|report| {
            report.component.eq_ignore_ascii_case("abort run") && report.kind().is_log()
        });
        aborts.map(|report| (&*report.key_value, &*report.msg))
    }
}

/// Reads one report that stands alone: from `R: @@` to the end of the text, which is the
/// message.
pub(super) fn parse_one<'a>(text: &'a str, time: Moment, limits: &Limits) -> Option<Report<'a>> {
    let length = text
        .starts_with(lines::REPORT)
        .then_some(lines::REPORT.len())?;
    let mut scanner = Scanner::new(text, limits);
    let (mut report, at) = scanner.fields(length, time)?;
    let msg = text.get(at..)?.trim_end_matches(['\r', '\n']);
    report.msg = scanner.bounded(Cow::Borrowed(msg));
    Some(report)
}

fn is_marker(report: &Report<'_>, component: &str) -> bool {
    report.component == component && report.kind() == ReportKind::Control
}
