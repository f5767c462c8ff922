//! Why something failed, in the words that metrics, spans and answers use.

/// It took longer than it may.
pub const TIMEOUT: &str = "timeout";
/// Nobody listens there.
pub const REFUSED: &str = "refused";
/// The connection broke before the end of the answer.
pub const RESET: &str = "reset";
/// What came is no answer.
pub const MALFORMED: &str = "malformed";
/// A bounded queue of this service has no room.
pub const FULL: &str = "full";
/// This process may not have another descriptor.
pub const NO_DESCRIPTORS: &str = "no-descriptors";
/// A callee answered with a failure.
pub const STATUS: &str = "status";
/// Injected.
pub const FAULT: &str = "fault";
/// Own work could not be done.
pub const WORK: &str = "work";
/// No endpoint has the path.
pub const PATH: &str = "path";

/// Causes of failure that are told apart; another one counts as the last.
pub const ALL: [&str; 27] = [
    // of calls and answers
    "status",
    "timeout",
    "refused",
    "reset",
    "malformed",
    "closed",
    "unreachable",
    "no-ports",
    "no-descriptors",
    "no-memory",
    "full",
    "fault",
    "work",
    "path",
    "gone",
    // of work
    "late",
    "stopped",
    "too-much",
    "no-processor",
    "no-job-file",
    "no-program",
    "program",
    "system",
    "panic",
    "queue-full",
    "no-thread",
    "other",
];

/// The shared form of a cause of failure: those that counters know, or `error`.
pub fn known(text: &str) -> &'static str {
    match text {
        "" => "",
        text => listed(text).unwrap_or(ERROR),
    }
}

/// What stands for all other causes.
const ERROR: &str = "error";

/// Whether a text is a cause that is kept as it is.
pub(crate) fn is_known(text: &str) -> bool {
    text == ERROR || listed(text).is_some()
}

fn listed(text: &str) -> Option<&'static str> {
    ALL.iter().find(|known| **known == text).copied()
}
