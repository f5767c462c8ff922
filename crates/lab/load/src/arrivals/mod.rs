//! When requests are due. A schedule is fixed by its arrivals and a seed before the
//! first request; nothing that the target does can stretch it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

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
    /// Recorded times, from the start of the segment, ascending, in nanoseconds.
    Trace(Vec<u64>),
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

/// A rate over time, per second. Rates are above 0 and at most 10,000,000.
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
    /// Around a mean, as a day is.
    Sine {
        /// Mean rate.
        mean: f64,
        /// Largest distance from the mean, at most the mean.
        amplitude: f64,
        /// Length of one wave.
        period: Duration,
    },
}
