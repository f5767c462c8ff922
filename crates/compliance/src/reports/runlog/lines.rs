//! How single lines of a run log begin.

/// How a report begins, after the time of its line.
pub(super) const REPORT: &str = "R: @@";

/// Beginnings of lines of an agent's own log, after the time, with the type that they become.
/// CFEngine pads its levels to eight columns and puts its program's name before some of them.
const LEVELS: [(&str, &str); 17] = [
    ("CRITICAL", "log_warn"),
    ("   error", "log_warn"),
    (" warning", "log_warn"),
    ("  notice", "log_info"),
    ("    info", "log_info"),
    (" verbose", "log_debug"),
    ("   debug", "log_debug"),
    ("rudder CRITICAL", "log_warn"),
    ("rudder    error", "log_warn"),
    ("rudder  warning", "log_warn"),
    ("rudder   notice", "log_info"),
    ("rudder     info", "log_info"),
    ("R: [FATAL]", "log_warn"),
    ("R: [ERROR]", "log_warn"),
    ("R: [INFO]", "log_info"),
    ("R: [DEBUG]", "log_debug"),
    ("R: WARNING", "log_warn"),
];

/// The type of a log line that begins like this, and the bytes of its level. A colon and spaces
/// after the level belong to it.
pub(super) fn level(text: &str) -> Option<(&'static str, usize)> {
    // Most lines are reports.
    if text.starts_with(REPORT) || !matches!(text.as_bytes().first()?, b'C' | b' ' | b'r' | b'R') {
        return None;
    }
    let (event_type, mut length) = LEVELS
        .iter()
        .find(|(start, _)| text.starts_with(start))
        .map(|(start, event_type)| (*event_type, start.len()))
        .or_else(|| other_report(text))?;
    let rest = text.get(length..)?;
    let rest = rest.strip_prefix(':').unwrap_or(rest);
    length = text.len() - rest.trim_start_matches(' ').len();
    Some((event_type, length))
}

/// CFEngine's reports that are not Rudder's.
fn other_report(text: &str) -> Option<(&'static str, usize)> {
    let rest = text.strip_prefix("R:")?;
    if rest.starts_with(" DEBUG") {
        return Some(("log_warn", "R: DEBUG".len()));
    }
    (!rest.starts_with(" @@")).then_some(("log_info", "R:".len()))
}

/// Does a line that begins like this end what stands before it?
pub(super) fn interrupts(text: &str) -> bool {
    text.starts_with(REPORT) || level(text).is_some()
}
