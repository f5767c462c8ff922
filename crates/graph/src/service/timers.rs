//! When to look at something again, by the place of what it is about.

use wire::deadlines::{Deadlines, NEVER};

use crate::Nanos;

/// The deadlines of one thread.
#[derive(Debug)]
pub(super) struct Timers {
    /// A caller's connection, or the request that it carries.
    pub(super) sessions: Deadlines,
    /// A call.
    pub(super) links: Deadlines,
    /// The first of a caller's connection of HTTP/2, or of the requests that it carries.
    pub(super) fronts: Deadlines,
    /// The first call over a connection of HTTP/2.
    pub(super) channels: Deadlines,
    /// The first thing that a request waits for which ends by time.
    pub(super) waits: Deadlines,
    /// Listeners that were paused may be tried again.
    pub(super) accept: Nanos,
}

impl Default for Timers {
    fn default() -> Self {
        Self {
            sessions: Deadlines::default(),
            links: Deadlines::default(),
            fronts: Deadlines::default(),
            channels: Deadlines::default(),
            waits: Deadlines::default(),
            accept: NEVER,
        }
    }
}

impl Timers {
    /// When the first of all runs out, or earlier.
    pub(super) fn next(&self) -> Nanos {
        let connections = self.sessions.next().min(self.links.next());
        let streams = self.fronts.next().min(self.channels.next());
        connections
            .min(streams)
            .min(self.waits.next())
            .min(self.accept)
    }
}
