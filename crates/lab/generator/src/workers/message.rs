//! What coordinator and workers tell each other, as JSON.

use lab_load::{GenerateError, Segment, Span, Workload};
use serde::{Deserialize, Serialize};

/// A worker offers itself; repeated until it is answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hello {
    /// Chosen at random, as hexadecimal digits; also the last part of the subject
    /// that the worker listens on.
    pub(crate) id: String,
    /// What people call it.
    pub(crate) name: String,
    /// Version of the program.
    pub(crate) version: String,
    /// Processors it may use.
    pub(crate) cores: u32,
}

/// The answer to a hello. Anything else about the worker's start is said over the link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Answer {
    /// It takes part.
    Welcome {
        /// Of this run, as hexadecimal digits; part of the subject that the
        /// coordinator listens on.
        token: String,
        /// Milliseconds of silence after which each takes the other for lost.
        silence_ms: u64,
    },
    /// It does not, and why.
    Refused(String),
}

/// From the coordinator to a worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Order {
    /// Get ready for this workload: open the connections.
    Prepare(Box<Workload>),
    /// Run a segment.
    Run {
        /// Number of the run; older ones are over.
        run: u64,
        /// What to run.
        segment: Segment,
        /// When, in nanoseconds of the worker's own Unix time.
        at_unix_ns: i64,
    },
    /// End that run; requests in flight are awaited.
    Stop {
        /// Its number.
        run: u64,
    },
    /// The session is over.
    Leave,
}

/// From a worker to the coordinator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Word {
    /// The connections are open.
    Ready,
    /// They could not be opened.
    NotReady(GenerateError),
    /// A span of a run has ended. Spans come in the order of time.
    Span {
        /// Number of the run.
        run: u64,
        /// What was seen.
        span: Box<Span>,
    },
    /// The run is over.
    Done {
        /// Number of the run.
        run: u64,
        /// How it went.
        end: Result<End, GenerateError>,
    },
    /// The worker was told to end by its own user.
    Bye,
}

/// How a worker's part of a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct End {
    /// All of it; what the spans before it add up to, and what was not in them yet.
    pub(crate) total: Box<Span>,
    /// Why it ended before its time.
    pub(crate) cut: Option<String>,
    /// How much later than told it began, in nanoseconds.
    pub(crate) late_ns: u64,
}

/// An id or token as it stands in subjects.
pub(crate) fn hex(id: u128) -> String {
    format!("{id:032x}")
}

/// Reads what [`hex`] wrote, and nothing else.
pub(crate) fn from_hex(text: &str) -> Option<u128> {
    let id = u128::from_str_radix(text, 16).ok()?;
    (hex(id) == text).then_some(id)
}

/// The subject on which workers say hello.
pub(crate) fn hello_subject(session: &str) -> String {
    format!("headroom.load.{session}.hello")
}

/// The subject that a worker listens on.
pub(crate) fn worker_subject(session: &str, id: &str) -> String {
    format!("headroom.load.{session}.worker.{id}")
}

/// The subject that the coordinator of a run listens on.
pub(crate) fn run_subject(session: &str, token: &str) -> String {
    format!("headroom.load.{session}.run.{token}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_one_spelling() {
        for id in [0, 1, u128::MAX] {
            assert_eq!(from_hex(&hex(id)), Some(id));
        }
        for text in ["", "1", "+0000000000000000000000000000001", "FF"] {
            assert_eq!(from_hex(text), None, "{text}");
        }
    }
}
