//! Times of spans as times of the day.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::Nanos;

/// How far the wall clock is ahead of the machine's monotonic clock, measured once: later
/// steps of the wall clock shift no span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Epoch(Nanos);

/// Readings of which the closest is taken.
const READINGS: usize = 16;

impl Epoch {
    /// Measures it now, to a microsecond or better.
    pub fn now() -> Self {
        let readings = (0..READINGS).map(|_| {
            let before = wire::clock::now();
            let wall = SystemTime::now().duration_since(UNIX_EPOCH);
            let after = wire::clock::now();
            // A machine set to a time before 1970 still gets a usable axis.
            let wall = wall.map_or(0, |wall| wall.as_nanos());
            let wall = u64::try_from(wall).unwrap_or(u64::MAX);
            let spread = after - before;
            (spread, wall.saturating_sub(before + spread / 2))
        });
        // The closest pair was least disturbed.
        Self(readings.min().map_or(0, |(_, ahead)| ahead))
    }

    /// One that is known: nanoseconds that the wall clock is ahead.
    pub const fn ahead(nanos: Nanos) -> Self {
        Self(nanos)
    }

    /// Nanoseconds that the wall clock is ahead.
    pub fn nanos(self) -> Nanos {
        self.0
    }

    /// A time of the monotonic clock, in nanoseconds since the Unix epoch.
    pub fn to_unix(self, time: Nanos) -> u64 {
        time.saturating_add(self.0)
    }

    /// The time of the monotonic clock that was so many nanoseconds after the Unix epoch;
    /// 0 for one before the clock's zero.
    pub fn of_unix(self, unix: u64) -> Nanos {
        unix.saturating_sub(self.0)
    }
}

/// What ties the times of this process to those of others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// Its clock.
    pub epoch: Epoch,
    /// Names this run of this machine: processes with the same name share a monotonic
    /// clock. Empty where the kernel does not tell.
    pub boot: Arc<str>,
}

impl Origin {
    /// None: times of spans are those of the day, in nanoseconds since the Unix epoch. For
    /// spans of files, which may be older than this machine's clock.
    pub fn unix() -> Self {
        Self {
            epoch: Epoch::ahead(0),
            boot: Arc::default(),
        }
    }

    /// This process, measured now.
    pub fn here() -> Self {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
        Self {
            epoch: Epoch::now(),
            boot: boot.map_or_else(|_| Arc::default(), |boot| boot.trim().into()),
        }
    }
}
