//! Reports as an agent writes them.

use std::fmt::Write;

use thiserror::Error;

use super::Report;
use super::lines::interrupts;
use crate::reports::moment::Moment;

/// A report whose text would be read as another: delimiters cannot be escaped.
#[derive(Debug, Error, Clone, Copy, PartialEq, Eq)]
#[error(
    "writing a report: its {field} contains {found}, which ends it where it is read; replace it \
     before reporting"
)]
pub struct DelimiterError {
    /// Which field.
    pub field: &'static str,
    /// What it may not contain.
    pub found: &'static str,
}

/// Appends a report as a line of a run log, ended by `\n`.
///
/// # Errors
/// A field contains what ends it; nothing is appended then.
pub fn write_report(out: &mut String, report: &Report<'_>) -> Result<(), DelimiterError> {
    check(report)?;
    let _ = write!(out, "{} ", report.execution_datetime);
    write_fields(out, report);
    out.push('\n');
    Ok(())
}

/// Appends a report from `R: @@` to the end of its message.
pub(crate) fn write_fields(out: &mut String, report: &Report<'_>) {
    let _ = write!(
        out,
        "R: @@{}@@{}@@{}@@{}@@{}@@{}@@{}@@{}##{}@#{}",
        report.policy,
        report.event_type,
        report.rule_id,
        report.directive_id,
        report.report_id,
        report.component,
        report.key_value,
        report.start_datetime.as_run_start(),
        report.node_id,
        report.msg,
    );
}

/// Can the report be read as it is written?
pub(crate) fn check(report: &Report<'_>) -> Result<(), DelimiterError> {
    for (field, text) in [
        ("technique", report.policy),
        ("type", report.event_type),
        ("rule", report.rule_id),
        ("directive", report.directive_id),
        ("report's identifier", report.report_id),
        ("component", &report.component),
        ("key", &report.key_value),
    ] {
        // A field that ends with half a delimiter completes it with the next.
        if text.contains("@@") || text.ends_with('@') {
            return Err(DelimiterError { field, found: "@@" });
        }
        let lines = field == "component" || field == "key";
        if text.ends_with('\n') {
            let found = "an empty last line";
            return Err(DelimiterError { field, found });
        }
        unbroken(field, text, lines)?;
    }
    if report.node_id.contains("@#") || report.node_id.ends_with('@') {
        let (field, found) = ("node", "@#");
        return Err(DelimiterError { field, found });
    }
    unbroken("node", report.node_id, false)?;
    unbroken("message", &report.msg, true)
}

/// Is the text of one line, or do its lines stay together?
fn unbroken(field: &'static str, text: &str, lines: bool) -> Result<(), DelimiterError> {
    let dated = |line: &str| {
        let first = line.split_once(' ');
        first.is_some_and(|(time, _)| Moment::from_rfc3339(time).is_some())
    };
    let found = if text.contains('\r') {
        "a carriage return"
    } else if !lines && text.contains('\n') {
        "the end of a line"
    } else if lines && text.split('\n').any(interrupts) {
        "a line that begins like another report"
    } else if lines && text.split('\n').any(dated) {
        "a line that begins with a time"
    } else {
        return Ok(());
    };
    Err(DelimiterError { field, found })
}
