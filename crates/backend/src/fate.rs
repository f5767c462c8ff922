//! What becomes of a single request, and who decides it.

use std::fmt::Debug;

use super::{Behaviour, Mode};

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is answered.
    Answer {
        /// When, on the monotonic clock; `None`: at once.
        at: Option<u64>,
        /// With this status instead of 200.
        failing: Option<u16>,
    },
    /// It is never answered; the connection stays.
    Hang,
    /// The connection is reset.
    Reset,
    /// The connection is closed without an answer.
    Close,
}

/// Decides what becomes of requests. All threads of a backend ask the same script.
pub trait Script: Debug + Send + Sync {
    /// The fate of a request whose head has been read at `now`, of the monotonic clock.
    fn fate(&self, now: u64) -> Fate;
}

impl Script for Behaviour {
    fn fate(&self, now: u64) -> Fate {
        let answer = |at, failing| Fate::Answer { at, failing };
        match self.mode {
            Mode::Ok => answer(None, None),
            Mode::Slow => {
                let delay = u64::try_from(self.delay.as_nanos()).unwrap_or(u64::MAX);
                answer(Some(now.saturating_add(delay)), None)
            }
            Mode::Error => answer(None, Some(self.status)),
            Mode::Hang => Fate::Hang,
            Mode::Reset => Fate::Reset,
            Mode::Close => Fate::Close,
        }
    }
}
