//! Reports over syslog, as agents up to Rudder 6 send them: one a message, facility local6,
//! program `rudder`, in the form of RFC 3164 or RFC 5424. [`frames`] cuts a stream into messages, [`runs`] puts
//! their reports together again.

pub mod frames;
pub mod runs;

use std::fmt::Write;

use jiff::tz::Offset;
use thiserror::Error;

use super::moment::Moment;
use super::runlog::{DelimiterError, Limits, Report, check, parse_one, write_fields};

/// Local6, informational.
const PRIORITY: u8 = 22 * 8 + 6;

/// Where the text of a report begins in a message, at the latest.
const HEADER_BYTES: usize = 1024;

/// A report and who sent it, by the message's header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyslogReport<'a> {
    /// Facility and severity, 0 to 191, if the message tells them.
    pub priority: Option<u8>,
    /// The name that the sender gives itself; empty if it gives none.
    pub host: &'a str,
    /// What it reports.
    pub report: Report<'a>,
}

/// Why a message is no report.
#[derive(Debug, Error, Clone, Copy, PartialEq, Eq)]
pub enum SyslogError {
    /// It is of another program or not about a report.
    #[error(
        "reading a syslog message: it is no report; expected \"<182>DATE HOST rudder[PID]: R: @@…\""
    )]
    NoReport,
    /// Its priority is not from 0 to 191.
    #[error("reading a syslog message: its priority is no number from 0 to 191 in <…>")]
    Priority,
    /// The report in it cannot be read.
    #[error("reading a syslog message: the report in it is broken; it may have been cut off")]
    Broken,
}

/// Reads a message. Its own time has neither a year nor a zone, so `received` stands for it.
///
/// # Errors
/// It is no report of an agent, or a broken one.
pub fn parse<'a>(
    message: &'a str,
    received: Moment,
    limits: &Limits,
) -> Result<SyslogReport<'a>, SyslogError> {
    let (priority, rest) = match message.strip_prefix('<') {
        None => (None, message),
        Some(rest) => {
            let (digits, rest) = rest.split_once('>').ok_or(SyslogError::Priority)?;
            let all_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
            let priority: u8 = digits.parse().map_err(|_| SyslogError::Priority)?;
            if priority > 191 || !all_digits {
                return Err(SyslogError::Priority);
            }
            (Some(priority), rest)
        }
    };
    let at = rest.find("R: @@").filter(|at| *at <= HEADER_BYTES);
    let (header, text) = rest.split_at(at.ok_or(SyslogError::NoReport)?);
    let host = match header.strip_prefix("1 ") {
        Some(header) => rfc5424_host(header),
        None => rfc3164_host(header),
    };
    let host = host.ok_or(SyslogError::NoReport)?;
    let report = parse_one(text, received, limits).ok_or(SyslogError::Broken)?;
    Ok(SyslogReport {
        priority,
        host,
        report,
    })
}

/// `DATE HOST rudder[PID]: `, where the date takes one word or three.
fn rfc3164_host(header: &str) -> Option<&str> {
    let header = header.trim_end().strip_suffix(':')?;
    let (before, tag) = header.rsplit_once(' ').unwrap_or(("", header));
    let program = tag.split_once('[').map_or(tag, |(program, _)| program);
    if program != "rudder" {
        return None;
    }
    let mut words = before.split_ascii_whitespace();
    let dated = words.next().is_some_and(|first| {
        // A day and a time follow the name of a month.
        first.len() != 3 || words.nth(1).is_some()
    });
    Some(words.next().filter(|_| dated).unwrap_or_default())
}

/// `DATE HOST PROGRAM PID ID DATA `.
fn rfc5424_host(header: &str) -> Option<&str> {
    let mut words = header.split(' ');
    let host = words.nth(1)?;
    (words.next() == Some("rudder")).then_some(if host == "-" { "" } else { host })
}

/// Writes a report as a message of RFC 3164, its time from the report's line.
///
/// # Errors
/// A field of it, or `host`, contains what ends it.
pub fn write(report: &Report<'_>, host: &str) -> Result<String, DelimiterError> {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    check(report)?;
    if host.is_empty() || host.contains(|c: char| c.is_whitespace() || c.is_control()) {
        let (field, found) = ("host", "a space");
        return Err(DelimiterError { field, found });
    }
    if report.msg.contains('\n') {
        let (field, found) = ("message", "the end of a line");
        return Err(DelimiterError { field, found });
    }
    let local = Offset::UTC.to_datetime(report.execution_datetime.instant());
    let month = usize::from(local.month().unsigned_abs()) - 1;
    let mut message = String::with_capacity(256 + report.msg.len());
    let _ = write!(
        message,
        "<{PRIORITY}>{} {:>2} {:02}:{:02}:{:02} {host} rudder: ",
        MONTHS.get(month).copied().unwrap_or_default(),
        local.day(),
        local.hour(),
        local.minute(),
        local.second(),
    );
    write_fields(&mut message, report);
    Ok(message)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Limits, Moment, SyslogError, parse, write};

    const REPORT: &str = "R: @@Common@@result_success@@rule@@directive@@12@@CRON Daemon@@None@@\
                          2018-08-24 15:55:01+00:00##root@#All is well";

    fn received() -> Moment {
        Moment::from_rfc3339("2018-08-24T15:55:09+00:00").unwrap()
    }

    #[test]
    fn headers_of_both_forms_are_read() {
        for (header, priority, host) in [
            (
                "<182>Aug 24 15:55:01 node-1 rudder[99]: ",
                Some(182),
                "node-1",
            ),
            ("<182>Aug  4 15:55:01 node-1 rudder: ", Some(182), "node-1"),
            (
                "<14>2018-08-24T15:55:01.5+02:00 node-1 rudder: ",
                Some(14),
                "node-1",
            ),
            (
                "<182>1 2018-08-24T15:55:01Z node-1 rudder 99 - - ",
                Some(182),
                "node-1",
            ),
            ("<182>1 - - rudder - - - ", Some(182), ""),
            ("Aug 24 15:55:01 node-1 rudder[99]: ", None, "node-1"),
            ("rudder: ", None, ""),
        ] {
            let message = format!("{header}{REPORT}\n");
            let found = parse(&message, received(), &Limits::default()).unwrap();
            assert_eq!((found.priority, found.host), (priority, host), "{header}");
            assert_eq!(found.report.msg, "All is well");
            assert_eq!(found.report.report_id, "12");
            assert_eq!(found.report.execution_datetime, received());
        }
    }

    #[test]
    fn other_messages_are_refused() {
        let cut = &REPORT[..REPORT.len() - 30];
        let sent = |header: &str, text: &str| format!("{header}{text}");
        for (message, expected) in [
            (sent("", ""), SyslogError::NoReport),
            (
                sent("<182>Aug 24 15:55:01 n sshd: ", "hello"),
                SyslogError::NoReport,
            ),
            (
                sent("<182>Aug 24 15:55:01 n sshd: ", REPORT),
                SyslogError::NoReport,
            ),
            (
                sent("<999>Aug 24 15:55:01 n rudder: ", REPORT),
                SyslogError::Priority,
            ),
            (
                sent("<+12>Aug 24 15:55:01 n rudder: ", REPORT),
                SyslogError::Priority,
            ),
            (sent("<182 ", REPORT), SyslogError::Priority),
            (
                sent("<182>Aug 24 15:55:01 n rudder: ", cut),
                SyslogError::Broken,
            ),
        ] {
            let found = parse(&message, received(), &Limits::default());
            assert_eq!(found, Err(expected), "{message}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(key in "[a-z@#é]{1,9}", msg in "[a-z@#: ]{0,30}") {
            let text = format!("rudder: {REPORT}");
            let mut report = parse(&text, received(), &Limits::default()).unwrap().report;
            report.key_value = key.into();
            report.msg = msg.into();
            if let Ok(message) = write(&report, "node-1") {
                let read = parse(&message, received(), &Limits::default()).unwrap();
                prop_assert_eq!(read.report, report);
                prop_assert_eq!(read.host, "node-1");
                prop_assert!(message.starts_with("<182>Aug 24 15:55:09 node-1 rudder: R: @@"));
            }
        }

        #[test]
        fn any_text_is_read(message in "[<>0-9 a-zR:@#\\n]{0,80}") {
            prop_assert!(parse(&message, received(), &Limits::default()).is_err());
        }
    }
}
