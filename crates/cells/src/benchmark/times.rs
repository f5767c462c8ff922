//! How long things took.

use std::sync::Mutex;
use std::time::Duration;

use measure::Histogram;
use serde::Serialize;

use crate::mutex::lock;

/// How long things of one kind took, in seconds; without any, everything is 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Times {
    /// How many there were.
    pub count: u64,
    /// The shortest.
    pub fastest: f64,
    /// The longest.
    pub slowest: f64,
    /// The arithmetic mean.
    pub mean: f64,
    /// The standard deviation.
    pub deviation: f64,
    /// The median, to three digits.
    pub p50: f64,
    /// The 99th percentile, to three digits.
    pub p99: f64,
    /// The 99.9th percentile, to three digits.
    pub p999: f64,
}

/// Times that many tasks note.
#[derive(Debug, Default)]
pub(super) struct Stopwatch(Mutex<Histogram>);

impl Stopwatch {
    /// One that has noted nothing.
    pub(super) const fn new() -> Self {
        Self(Mutex::new(Histogram::new()))
    }

    /// Notes one.
    pub(super) fn note(&self, took: Duration) {
        let mut noted = lock(&self.0);
        noted.record(took);
    }

    /// What they come to.
    pub(super) fn times(&self) -> Times {
        let noted = lock(&self.0);
        let seconds = |time: Option<Duration>| time.unwrap_or_default().as_secs_f64();
        Times {
            count: noted.count(),
            fastest: seconds(noted.min()),
            slowest: seconds(noted.max()),
            mean: seconds(noted.mean()),
            deviation: seconds(noted.stddev()),
            p50: seconds(noted.quantile(0.5)),
            p99: seconds(noted.quantile(0.99)),
            p999: seconds(noted.quantile(0.999)),
        }
    }
}
