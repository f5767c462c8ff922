//! What every part of a thread works with: settings, poller, clock, counters and memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rand::rngs::SmallRng;
use rustix::io::Errno;
use wire::clock;
use wire::deadlines::NEVER;
use wire::poller::Poller;
use wire::stream::StreamError;

use super::buffers::Buffers;
use super::resolver::Resolver;
use super::tls::Tls;
use crate::http::counters::ThreadCounters;
use crate::http::pipeline::{Pipeline, Times};
use crate::http::settings::HttpSettings;
use crate::selection::SelectionSettings;
use crate::table::{Nanos, Table};

/// The difference between both clocks is looked at this often.
const WALL_EVERY: Nanos = 20_000_000;

/// Deadlines are late by up to this, so that many connections cost few wake-ups.
pub(super) const GRAIN: Duration = Duration::from_millis(10);

/// What all threads share.
pub(super) struct Shared {
    pub(super) pipeline: Pipeline,
    pub(super) settings: Arc<HttpSettings>,
    pub(super) selection: SelectionSettings,
    pub(super) tls: Tls,
    pub(super) resolver: Arc<Resolver>,
    pub(super) table: Arc<Table>,
    pub(super) healthy: Arc<AtomicBool>,
}

/// The tools of one thread. Each keeps its own rules; together they have none.
pub(super) struct Context {
    pub(super) shared: Arc<Shared>,
    pub(super) counters: Arc<ThreadCounters>,
    pub(super) poller: Poller,
    pub(super) clock: Clock,
    pub(super) buffers: Buffers,
    pub(super) random: SmallRng,
    /// Not while the engine drains: idle connections are closed then.
    pub(super) running: bool,
}

impl Context {
    /// Whether connections go on behind their requests: not once the router is unhealthy, for
    /// who waits to be drained shall lose no request that comes just as it closes what is idle.
    pub(super) fn keeps_connections(&self) -> bool {
        self.running && self.shared.healthy.load(Ordering::Relaxed)
    }

    /// Counts a connection that ends since there is no memory for what came.
    pub(super) fn note_memory(&self, error: &StreamError) {
        if matches!(error, StreamError::Socket(Errno::NOBUFS)) {
            self.counters.no_memory.increment();
        }
    }
}

/// When the event came that is being handled.
#[derive(Default)]
pub(super) struct Clock {
    now: Nanos,
    /// What to add to `now` for the time since 1970, and when that was looked at.
    wall: (u64, Nanos),
}

impl Clock {
    /// The moment that was seen last.
    pub(super) fn now(&self) -> Nanos {
        self.now
    }

    /// Looks at the clock.
    pub(super) fn look(&mut self) -> Nanos {
        self.now = clock::now();
        self.now
    }

    /// The moment after a time from now.
    pub(super) fn after(&self, time: Duration) -> Nanos {
        let time = u64::try_from(time.as_nanos()).unwrap_or(NEVER);
        self.now.saturating_add(time)
    }

    /// The moment on both clocks.
    pub(super) fn times(&mut self) -> Times {
        if self.now.saturating_sub(self.wall.1) > WALL_EVERY {
            let since_1970 = std::time::SystemTime::now()
                .duration_since(std::time::UNIX_EPOCH)
                .unwrap_or_default();
            let wall = u64::try_from(since_1970.as_nanos()).unwrap_or_default();
            self.wall = (wall.wrapping_sub(clock::now()), self.now);
        }
        Times {
            mono: self.now,
            wall: self.now.wrapping_add(self.wall.0),
        }
    }
}
