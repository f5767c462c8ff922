//! When a run is looked at: what may be asked for differs, and what is made of it does not.

use lab_store::{Event, Outcome, SoFar, Verdict};

/// When a run is looked at.
pub(crate) enum Moment<'a> {
    /// Once it is over.
    End(Verdict),
    /// While it goes on.
    Now(&'a SoFar),
}

impl<'a> Moment<'a> {
    /// Was the run made? One that was not lacks files by right, and so does one that goes on.
    pub(crate) fn is_whole(&self) -> bool {
        matches!(self, Self::End(verdict) if verdict.outcome != Outcome::Error)
    }

    pub(crate) fn so_far(&self) -> Option<&'a SoFar> {
        match self {
            Self::End(_) => None,
            Self::Now(so_far) => Some(so_far),
        }
    }

    /// Seconds from the start of the run. What happened between the look and the reading of its events
    /// is told as well, so it must not lie behind the end.
    pub(crate) fn at_s(&self, events: &[Event]) -> f64 {
        match self {
            Self::End(verdict) => verdict.duration_s,
            Self::Now(so_far) => events
                .iter()
                .fold(so_far.now_s, |at_s, event| at_s.max(event.t_s)),
        }
    }

    pub(crate) fn verdict(self) -> Option<Verdict> {
        match self {
            Self::End(verdict) => Some(verdict),
            Self::Now(_) => None,
        }
    }
}
