//! What arrivals may be.

use std::time::Duration;

use super::{Arrivals, Process, Shape};

/// Highest rate, per second.
const MOST_RATE: f64 = 1e7;
/// Longest part of a shape, and latest time of a trace: 366 days.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);
/// Shortest wave.
const SHORTEST_WAVE: Duration = Duration::from_millis(1);
/// Most steps of a shape.
pub(super) const MOST_STEPS: usize = 1_000;
/// Most requests at the same time.
const MOST_BURST: u32 = 1_000_000;
/// Most times of a trace.
pub(super) const MOST_TIMES: usize = 20_000_000;

/// Arrivals that cannot be.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ArrivalsError {
    /// A rate out of bounds or not a number.
    #[error("a rate is above 0 and at most 10,000,000/s, found {0}/s")]
    Rate(f64),
    /// A ramp or steps that are 0 all the time.
    #[error("the rate is 0 all the time; at least one rate must be above 0")]
    Nothing,
    /// A part of a shape without length or too long.
    #[error("a part of a shape lasts longer than 0 and at most 366 days, found {0:?}")]
    Part(Duration),
    /// Waves too short or too long.
    #[error("the period of a wave is at least 1 ms and at most 366 days, found {0:?}")]
    Period(Duration),
    /// A wave that would go below 0.
    #[error(
        "the rate of a wave would fall below 0: {amplitude}/s around {mean}/s; make the second number at most the first"
    )]
    Amplitude {
        /// Mean rate.
        mean: f64,
        /// Distance from it.
        amplitude: f64,
    },
    /// No steps or too many.
    #[error("there are 1 to 1,000 steps, found {0}")]
    Steps(usize),
    /// No requests in a burst, or too many.
    #[error("a burst has 1 to 1,000,000 requests, found {0}")]
    Burst(u32),
    /// No recorded times, or too many.
    #[error("a trace has 1 to 20,000,000 times, found {0}")]
    Times(usize),
    /// Recorded times that go back or too far.
    #[error("time {0} of the trace is before the one it follows, or later than 366 days")]
    Order(usize),
}

impl Arrivals {
    /// Whether these arrivals can be: numbers are finite and within bounds.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), ArrivalsError> {
        match self {
            Self::Trace(times) => trace(times),
            Self::Rate { process, shape } => {
                if let Process::Burst(count) = process
                    && !(1..=MOST_BURST).contains(count)
                {
                    return Err(ArrivalsError::Burst(*count));
                }
                match shape {
                    Shape::Constant(rate) => positive(*rate),
                    Shape::Ramp { from, to, over } => {
                        part(*over)?;
                        several(&[*from, *to])
                    }
                    Shape::Steps(steps) => {
                        if steps.is_empty() || steps.len() > MOST_STEPS {
                            return Err(ArrivalsError::Steps(steps.len()));
                        }
                        for (_, length) in steps {
                            part(*length)?;
                        }
                        let rates: Vec<f64> = steps.iter().map(|(rate, _)| *rate).collect();
                        several(&rates)
                    }
                    Shape::Sine {
                        mean,
                        amplitude,
                        period,
                    } => wave(*mean, *amplitude, *period),
                }
            }
        }
    }
}

fn positive(rate: f64) -> Result<(), ArrivalsError> {
    match rate > 0.0 && rate <= MOST_RATE {
        true => Ok(()),
        false => Err(ArrivalsError::Rate(rate)),
    }
}

/// Rates of which some may be 0, but not all.
fn several(rates: &[f64]) -> Result<(), ArrivalsError> {
    for &rate in rates.iter().filter(|rate| **rate != 0.0) {
        positive(rate)?;
    }
    match rates.iter().all(|rate| *rate == 0.0) {
        true => Err(ArrivalsError::Nothing),
        false => Ok(()),
    }
}

fn part(length: Duration) -> Result<(), ArrivalsError> {
    match length > Duration::ZERO && length <= LONGEST {
        true => Ok(()),
        false => Err(ArrivalsError::Part(length)),
    }
}

fn wave(mean: f64, amplitude: f64, period: Duration) -> Result<(), ArrivalsError> {
    positive(mean)?;
    if !(0.0..=mean).contains(&amplitude) {
        return Err(ArrivalsError::Amplitude { mean, amplitude });
    }
    positive(mean + amplitude)?;
    match (SHORTEST_WAVE..=LONGEST).contains(&period) {
        true => Ok(()),
        false => Err(ArrivalsError::Period(period)),
    }
}

fn trace(times: &[u64]) -> Result<(), ArrivalsError> {
    if times.is_empty() || times.len() > MOST_TIMES {
        return Err(ArrivalsError::Times(times.len()));
    }
    let back = times.windows(2).position(|pair| pair[1] < pair[0]);
    let far = times.partition_point(|&at| u128::from(at) <= LONGEST.as_nanos());
    match back {
        Some(index) => Err(ArrivalsError::Order(index + 2)),
        None if far < times.len() => Err(ArrivalsError::Order(far + 1)),
        None => Ok(()),
    }
}
