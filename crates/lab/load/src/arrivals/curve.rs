//! The integral of a rate over time, and its inverse.

use std::f64::consts::TAU;
use std::sync::Arc;
use std::time::Duration;

use super::Shape;

/// A shape made ready for questions. Time is in seconds, the integral in requests.
#[derive(Debug, Clone)]
pub(super) enum Curve {
    /// Straight lines one after the other; the last one is level and goes on.
    Lines(Arc<[Line]>),
    /// A wave around a mean, upwards first.
    Sine {
        mean: f64,
        amplitude: f64,
        period: f64,
    },
}

/// A stretch in which the rate is a straight line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line {
    /// When it begins.
    from: f64,
    /// Requests before it.
    before: f64,
    /// Rate at its start.
    rate: f64,
    /// Change of the rate per second.
    slope: f64,
}

impl Line {
    fn integral(&self, at: f64) -> f64 {
        let passed = at - self.from;
        self.before + (self.rate + self.slope * passed / 2.0) * passed
    }

    fn inverse(&self, requests: f64) -> f64 {
        let more = requests - self.before;
        if more <= 0.0 {
            return self.from;
        }
        if self.slope == 0.0 {
            return self.from + more / self.rate;
        }
        let root = (self.rate * self.rate + 2.0 * more * self.slope)
            .max(0.0)
            .sqrt();
        // This form of the root loses no digits when the slope is small.
        self.from + 2.0 * more / (self.rate + root)
    }
}

impl Curve {
    pub(super) fn of(shape: &Shape) -> Self {
        match shape {
            Shape::Constant(rate) => Self::lines([], *rate),
            Shape::Ramp { from, to, over } => {
                let slope = (to - from) / over.as_secs_f64();
                Self::lines([(*from, slope, *over)], *to)
            }
            Shape::Steps(steps) => {
                let last = steps.last().map_or(0.0, |(rate, _)| *rate);
                Self::lines(
                    steps.iter().map(|(rate, length)| (*rate, 0.0, *length)),
                    last,
                )
            }
            Shape::Sine {
                mean,
                amplitude,
                period,
            } => Self::Sine {
                mean: *mean,
                amplitude: *amplitude,
                period: period.as_secs_f64(),
            },
        }
    }

    /// Lines given by rate, slope and length, then a level rate for ever.
    fn lines(parts: impl IntoIterator<Item = (f64, f64, Duration)>, last: f64) -> Self {
        let mut lines = Vec::new();
        let (mut from, mut before) = (Duration::ZERO, 0.0);
        let parts = parts.into_iter().filter(|(.., length)| !length.is_zero());
        for (rate, slope, length) in parts {
            let line = Line {
                from: from.as_secs_f64(),
                before,
                rate,
                slope,
            };
            from = from.saturating_add(length);
            before = line.integral(from.as_secs_f64());
            lines.push(line);
        }
        lines.push(Line {
            from: from.as_secs_f64(),
            before,
            rate: last,
            slope: 0.0,
        });
        Self::Lines(lines.into())
    }

    /// Requests a second at this time.
    pub(super) fn rate(&self, at: f64) -> f64 {
        match self {
            Self::Lines(lines) => {
                let line = last(lines, |line| line.from <= at);
                line.rate + line.slope * (at - line.from)
            }
            Self::Sine {
                mean,
                amplitude,
                period,
            } => mean + amplitude * (TAU * (at / period).fract()).sin(),
        }
    }

    /// Requests until this time.
    pub(super) fn integral(&self, at: f64) -> f64 {
        match self {
            Self::Lines(lines) => last(lines, |line| line.from <= at).integral(at),
            Self::Sine {
                mean,
                amplitude,
                period,
            } => {
                let waves = (at / period).floor();
                let within = at - waves * period;
                waves * mean * period + wave(*mean, *amplitude, *period, within)
            }
        }
    }

    /// Requests in all time; finite only where the last rate is 0.
    pub(super) fn total(&self) -> f64 {
        match self {
            Self::Lines(lines) => match lines.last() {
                Some(line) if line.rate == 0.0 => line.before,
                _ => f64::INFINITY,
            },
            Self::Sine { .. } => f64::INFINITY,
        }
    }

    /// When so many requests have been made; not finite when they never are.
    pub(super) fn inverse(&self, requests: f64) -> f64 {
        match self {
            Self::Lines(lines) => last(lines, |line| line.before <= requests).inverse(requests),
            Self::Sine {
                mean,
                amplitude,
                period,
            } => {
                let waves = (requests / (mean * period)).floor();
                let within = requests - waves * mean * period;
                waves * period + wave_inverse(*mean, *amplitude, *period, within)
            }
        }
    }
}

/// The last line for which `holds`; the first when it holds for none.
fn last(lines: &[Line], holds: impl Fn(&Line) -> bool) -> Line {
    let index = match lines {
        [_] => 0,
        lines => lines.partition_point(holds).saturating_sub(1),
    };
    lines[index]
}

/// Requests in the first `at` seconds of a wave.
fn wave(mean: f64, amplitude: f64, period: f64, at: f64) -> f64 {
    // 2 sin²(x/2) is 1 - cos(x) without the loss of digits near 0.
    let half = (TAU * at / period / 2.0).sin();
    mean * at + amplitude * period / TAU * 2.0 * half * half
}

/// When in a wave so many requests have been made: Newton's method, held within a
/// bracket because the rate may touch 0.
fn wave_inverse(mean: f64, amplitude: f64, period: f64, requests: f64) -> f64 {
    const MOST_STEPS: u32 = 100;
    // A tenth of a nanosecond, or what f64 can tell apart.
    let enough = (period * 4.0 * f64::EPSILON).max(1e-10);
    let (mut low, mut high) = (0.0, period);
    let mut at = (requests / mean).clamp(low, high);
    for _ in 0..MOST_STEPS {
        let wrong = wave(mean, amplitude, period, at) - requests;
        match wrong < 0.0 {
            true => low = at,
            false => high = at,
        }
        let rate = mean + amplitude * (TAU * at / period).sin();
        let newton = at - wrong / rate;
        let next = match newton > low && newton < high {
            true => newton,
            false => low + (high - low) / 2.0,
        };
        let moved = (next - at).abs();
        at = next;
        if moved <= enough {
            break;
        }
    }
    at
}
