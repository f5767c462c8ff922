//! Whether the router is healthy.

use std::sync::atomic::{AtomicU8, Ordering};

/// Where a router is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// It gathers routes and does not listen yet.
    Initializing = 0,
    /// It serves.
    Healthy = 1,
    /// It drains, or stops.
    Degraded = 2,
}

/// The phase of a router, shared by all who ask. It only ever moves on, so that a router
/// that drains stays unhealthy.
#[derive(Debug, Default)]
pub struct Health(AtomicU8);

impl Health {
    /// Moves on to a phase; going back does nothing.
    pub fn reach(&self, phase: Phase) {
        self.0.fetch_max(phase as u8, Ordering::Relaxed);
    }

    /// The phase.
    pub fn phase(&self) -> Phase {
        match self.0.load(Ordering::Relaxed) {
            0 => Phase::Initializing,
            1 => Phase::Healthy,
            _ => Phase::Degraded,
        }
    }

    /// Whether load balancers may send requests.
    pub fn is_healthy(&self) -> bool {
        self.phase() == Phase::Healthy
    }
}
