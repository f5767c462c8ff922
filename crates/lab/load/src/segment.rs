//! A stretch of load over connections that are open already.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::arrivals::Arrivals;

/// A stretch of load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Segment {
    /// Who decides when a request is made.
    pub model: Model,
    /// When it ends.
    pub length: Length,
    /// Number of the first arrival. Segments of one generator use different numbers,
    /// so that variables do not repeat.
    pub first: u64,
}

/// Who decides when a request is made. The two are never mixed in one result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Model {
    /// The schedule does, whatever the target does. Latency counts from the intended time.
    Open(Arrivals),
    /// The target does: each of `Connections::held` users sends, waits for the answer,
    /// thinks, and sends again. Intended and actual send time are the same.
    Closed {
        /// Pause between an answer and the next request.
        think: Duration,
    },
}

impl Segment {
    /// How long its own time is, in which its requests are due, where that is known beforehand.
    /// Its rates are over it.
    #[must_use]
    pub fn lasts(&self) -> Option<Duration> {
        match &self.model {
            Model::Open(arrivals) => arrivals.lasts(&self.length),
            Model::Closed { .. } => self.length.duration,
        }
    }
}

impl Model {
    /// Whether a schedule decides.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Open(_))
    }
}

/// When a segment ends: whichever comes first. With neither it runs until told to stop.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Length {
    /// No request falls due after this. What is due and waits for a connection is sent
    /// for up to a second more; answers are awaited up to the timeout.
    pub duration: Option<Duration>,
    /// Number of requests (of journeys, where a kind has several steps).
    pub requests: Option<u64>,
}
