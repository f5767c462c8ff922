//! The share of requests that failed: the one definition of it.

use super::kind::Recording;

/// Requests that were tried, and those of them that failed.
///
/// A request failed when its answer was refused (by its status or an assertion), when no
/// whole answer came, or when it was due and never sent because no connection became
/// free. Every share of failures that is shown, judged or stored is [`Tried::share`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tried {
    /// Requests that were sent, could not be sent, or were given up.
    pub all: u64,
    /// Of these, requests that failed.
    pub failed: u64,
}

impl Tried {
    /// The share that failed, from 0 to 1; `None` when nothing was tried.
    #[must_use]
    pub fn share(self) -> Option<f64> {
        // Of a part of a load more may fail than were sent in it: those of before, by their timeout.
        let failed = self.failed.min(self.all);
        (self.all > 0).then(|| failed as f64 / self.all as f64)
    }

    /// The same if `served` of those that failed had not.
    #[must_use]
    pub fn had_served(self, served: u64) -> Self {
        Self {
            failed: self.failed.saturating_sub(served),
            ..self
        }
    }
}

impl Recording {
    /// What was tried, and what of it failed.
    #[must_use]
    pub fn tried(&self) -> Tried {
        Tried {
            // An answer may come in a later span than its request was sent in.
            all: self.sent + self.unsendable(),
            failed: self.refused + self.failed(),
        }
    }
}
