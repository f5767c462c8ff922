//! When requests are due. A schedule is fixed by its arrivals and a seed before the
//! first request; nothing that the target does can stretch it.

mod check;
mod curve;
mod schedule;
mod text;
pub mod trace;
mod turn;

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use check::ArrivalsError;
use curve::Curve;
pub use schedule::Schedule;
pub use turn::{Fixed, Numbers};

use crate::segment::Length;

/// When requests are due.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// A point process whose rate follows a shape.
    Rate {
        /// How points lie around the rate.
        process: Process,
        /// How the rate changes over the segment.
        shape: Shape,
    },
    /// Recorded times, from the start of the segment, ascending, in nanoseconds; shared,
    /// because there may be millions. See [`trace::parse`].
    Trace(Arc<[u64]>),
}

/// How points lie around a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Process {
    /// Independent of each other, as the requests of many users are. Where the length
    /// of the segment is known, their number is exactly the integral of the rate (to
    /// the nearest whole), and they are as a Poisson process is, given that number.
    Poisson,
    /// Evenly spaced.
    Constant,
    /// Groups of so many at the same time, evenly spaced.
    Burst(u32),
}

/// A rate over time, per second, at most 10,000,000. Ramps and steps may touch 0;
/// other rates are above it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// Always the same.
    Constant(f64),
    /// From one rate to another in a straight line, then the latter.
    Ramp {
        /// At the start.
        from: f64,
        /// At the end of `over`.
        to: f64,
        /// Length of the line.
        over: Duration,
    },
    /// Each rate for its time; the last one goes on.
    Steps(Vec<(f64, Duration)>),
    /// Around a mean, as a day is: from the mean upwards first.
    Sine {
        /// Mean rate.
        mean: f64,
        /// Largest distance from the mean, at most the mean.
        amplitude: f64,
        /// Length of one wave.
        period: Duration,
    },
}

impl Arrivals {
    /// Requests that are independent of each other, at a constant rate per second.
    pub fn poisson(rate: f64) -> Self {
        Self::Rate {
            process: Process::Poisson,
            shape: Shape::Constant(rate),
        }
    }

    /// When the requests of a segment are due. The same arguments always give the same
    /// times. Segments that shall differ need different seeds.
    ///
    /// A segment of known length gets exactly [`planned`](Self::planned) requests, all
    /// before its end. Where only their number is known, the length is the time in
    /// which the rate adds up to that number. Arrivals that [`check`](Self::check)
    /// refuses give some schedule, possibly an empty one.
    pub fn schedule(&self, length: &Length, seed: u64) -> Schedule {
        Schedule::new(self, length, seed)
    }

    /// How many requests a segment has, to the request; `None` when it has no end.
    pub fn planned(&self, length: &Length) -> Option<f64> {
        schedule::planned(self, length).map(|count| count as f64)
    }

    /// How long a segment is, over which its rates are: its duration, or the time in which the rate
    /// adds up to its number of requests. Recorded times last until their mean distance after the
    /// last one. `None` when it has no end.
    pub fn lasts(&self, length: &Length) -> Option<Duration> {
        schedule::lasts(self, length)
    }

    /// Requests a second so long after the start; `None` for recorded times.
    pub fn rate_at(&self, at: Duration) -> Option<f64> {
        match self {
            Self::Trace(_) => None,
            Self::Rate { shape, .. } => Some(Curve::of(shape).rate(at.as_secs_f64())),
        }
    }
}

#[cfg(test)]
mod tests;
