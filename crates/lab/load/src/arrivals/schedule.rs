//! The times themselves, one after the other.

use std::iter::FusedIterator;
use std::sync::Arc;
use std::time::Duration;

use stats::SplitMix;

use super::curve::Curve;
use super::{Arrivals, Process};
use crate::segment::Length;

/// The times at which requests are due, in nanoseconds from the start of the segment,
/// ascending (several may be equal). It takes the same small memory however long it
/// is; a copy goes on independently from the same place.
#[derive(Debug, Clone)]
pub struct Schedule {
    points: Points,
    /// Times are below this.
    end: u64,
    /// The latest time given out.
    latest: u64,
    /// How many are to come; `None`: no end.
    left: Option<u64>,
}

#[derive(Debug, Clone)]
enum Points {
    Trace {
        times: Arc<[u64]>,
        next: usize,
    },
    Even {
        curve: Curve,
        /// Number of the next point.
        next: u64,
        /// Points at the same time.
        group: u64,
    },
    Poisson {
        curve: Curve,
        /// Where the latest point lies, as an integral of the rate.
        at: f64,
        /// Where the integral ends; meaningless without an end.
        total: f64,
        draws: SplitMix,
    },
}

impl Schedule {
    pub(super) fn new(arrivals: &Arrivals, length: &Length, seed: u64) -> Self {
        let end = length.duration.map_or(u64::MAX, |end| {
            u64::try_from(end.as_nanos()).unwrap_or(u64::MAX)
        });
        let left = planned(arrivals, length);
        let points = match arrivals {
            Arrivals::Trace(times) => Points::Trace {
                times: Arc::clone(times),
                next: 0,
            },
            Arrivals::Rate { process, shape } => {
                let curve = Curve::of(shape);
                match process {
                    Process::Constant => Points::even(curve, 1),
                    Process::Burst(group) => Points::even(curve, u64::from(*group).max(1)),
                    Process::Poisson => Points::Poisson {
                        total: extent(&curve, length),
                        curve,
                        at: 0.0,
                        draws: SplitMix::at(seed, [STREAM, 0]),
                    },
                }
            }
        };
        Self {
            points,
            end,
            latest: 0,
            left,
        }
    }
}

/// Sets the draws of arrivals apart from those of requests.
const STREAM: u64 = u64::MAX;

/// The integral of the rate over a segment; infinite when it has no end.
fn extent(curve: &Curve, length: &Length) -> f64 {
    let by_time = length
        .duration
        .map_or_else(|| curve.total(), |end| curve.integral(end.as_secs_f64()));
    let by_number = length.requests.map_or(f64::INFINITY, |n| n as f64);
    by_time.min(by_number)
}

/// The exact number of points; `None`: no end.
pub(super) fn planned(arrivals: &Arrivals, length: &Length) -> Option<u64> {
    match arrivals {
        Arrivals::Trace(times) => {
            let within = length.duration.map_or(times.len(), |end| {
                times.partition_point(|&at| u128::from(at) < end.as_nanos())
            });
            let most = length.requests.unwrap_or(u64::MAX);
            Some(u64::try_from(within).unwrap_or(u64::MAX).min(most))
        }
        Arrivals::Rate { shape, .. } => {
            let extent = extent(&Curve::of(shape), length);
            extent.is_finite().then(|| extent.round() as u64)
        }
    }
}

/// How long a segment is; `None`: no end.
pub(super) fn lasts(arrivals: &Arrivals, length: &Length) -> Option<Duration> {
    let own = match (arrivals, length.requests) {
        (_, None) if length.duration.is_some() => None,
        (Arrivals::Trace(times), _) => {
            let count = usize::try_from(planned(arrivals, length)?).ok()?;
            Some(lasts_trace(&times[..count.min(times.len())]))
        }
        (Arrivals::Rate { shape, .. }, number) => {
            let curve = Curve::of(shape);
            let number = number.map_or(f64::INFINITY, |number| number as f64);
            let at = curve.inverse(number.min(curve.total()));
            Duration::try_from_secs_f64(at).ok()
        }
    };
    match (own, length.duration) {
        (Some(own), Some(duration)) => Some(own.min(duration)),
        (one, other) => one.or(other),
    }
}

/// Until the mean distance of a trace's moments after the last of them: so a trace of evenly spaced
/// requests, or bursts, lasts as long as these arrivals themselves would. One moment has a second.
fn lasts_trace(times: &[u64]) -> Duration {
    let (Some(first), Some(last)) = (times.first(), times.last()) else {
        return Duration::ZERO;
    };
    let further = times.windows(2).filter(|pair| pair[0] < pair[1]).count();
    let apart = match u64::try_from(further) {
        Ok(further @ 1..) => (last - first) / further,
        _ => 1_000_000_000,
    };
    Duration::from_nanos(last.saturating_add(apart))
}

impl Points {
    fn even(curve: Curve, group: u64) -> Self {
        Self::Even {
            curve,
            next: 0,
            group,
        }
    }

    /// The next time; `left` points are to come, this one included.
    fn next(&mut self, left: Option<u64>) -> Option<u64> {
        match self {
            Self::Trace { times, next } => {
                let time = times.get(*next).copied();
                *next += 1;
                time
            }
            Self::Even { curve, next, group } => {
                let first = *next - *next % *group;
                *next += 1;
                nanos(curve.inverse(first as f64))
            }
            Self::Poisson {
                curve,
                at,
                total,
                draws,
            } => {
                let gap = gap(draws);
                *at += match left {
                    // The smallest of n uniform numbers over what remains: so all of
                    // them together are n uniform numbers in ascending order, which
                    // is a Poisson process, given that it has n points.
                    Some(left) => (*total - *at) * below_one(gap / left as f64),
                    None => gap,
                };
                nanos(curve.inverse(*at))
            }
        }
    }
}

/// An exponential number of mean 1; above 0, at most 37.
fn gap(draws: &mut SplitMix) -> f64 {
    // Not from 1, so that the logarithm is finite; minus zero would be no gap at all.
    let least = 1.0 / (1_u64 << 53) as f64;
    (-(draws.unit() + least).ln()).max(least)
}

/// 1 - e^-x.
fn below_one(x: f64) -> f64 {
    // With many points to come x is tiny; three terms are then exact to 12 digits and
    // save a third of the cost of a point.
    match x < 1e-4 {
        true => x * (1.0 - x / 2.0 * (1.0 - x / 3.0)),
        false => -(-x).exp_m1(),
    }
}

/// A time in whole nanoseconds.
fn nanos(seconds: f64) -> Option<u64> {
    seconds.is_finite().then(|| (seconds * 1e9).round() as u64)
}

impl Iterator for Schedule {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        if self.left == Some(0) {
            return None;
        }
        let Some(time) = self.points.next(self.left) else {
            self.left = Some(0);
            return None;
        };
        self.left = self.left.map(|left| left - 1);
        // Rounding may reach the end, or step back by a nanosecond where lines meet.
        self.latest = time.min(self.end.saturating_sub(1)).max(self.latest);
        Some(self.latest)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match self.left.map(usize::try_from) {
            Some(Ok(left)) => (left, Some(left)),
            Some(Err(_)) => (usize::MAX, None),
            None => (0, None),
        }
    }
}

impl FusedIterator for Schedule {}
