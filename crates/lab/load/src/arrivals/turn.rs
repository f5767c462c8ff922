//! Another rate from some moment on, while requests are being sent.

use std::time::Duration;

use super::check::MOST_STEPS;
use super::{Arrivals, ArrivalsError, Process, Shape};
use crate::segment::Length;

/// How long the last rate of steps lasts that has no length of its own. It goes on.
const OPEN_END: Duration = Duration::from_secs(1);

/// Why the rate of arrivals stays as it is.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Fixed {
    /// They are not described by one rate after the other.
    #[error("its arrivals are {0}; another rate can follow on a constant rate or on steps only")]
    Form(&'static str),
    /// It was changed too often.
    #[error("its rate has changed {} times; more is not kept", MOST_STEPS - 1)]
    TooOften,
    /// No rate.
    #[error(transparent)]
    Rate(#[from] ArrivalsError),
}

impl Arrivals {
    /// These arrivals up to `at` after their start, which is above 0, and from then on at another
    /// rate per second, for `rest` if that is known.
    ///
    /// # Errors
    /// When they cannot go on at that rate.
    pub fn turned(&self, at: Duration, rate: f64, rest: Option<Duration>) -> Result<Self, Fixed> {
        let Self::Rate { process, shape } = self else {
            return Err(Fixed::Form("recorded times"));
        };
        let mut steps = match shape {
            Shape::Constant(before) => vec![(*before, at)],
            Shape::Steps(steps) => cut(steps, at),
            Shape::Ramp { .. } => return Err(Fixed::Form("a ramp")),
            Shape::Sine { .. } => return Err(Fixed::Form("a wave")),
        };
        if steps.len() >= MOST_STEPS {
            return Err(Fixed::TooOften);
        }
        let rest = rest.filter(|rest| !rest.is_zero()).unwrap_or(OPEN_END);
        steps.push((rate, rest));
        let turned = Self::Rate {
            process: *process,
            shape: Shape::Steps(steps),
        };
        Self::Rate {
            process: *process,
            shape: Shape::Constant(rate),
        }
        .check()?;
        turned.check()?;
        Ok(turned)
    }

    /// No more requests than these fall due within so long a time from the start, however chance has it.
    pub fn most_within(&self, time: Duration) -> u64 {
        let length = Length {
            duration: Some(time),
            requests: None,
        };
        let group = match self {
            Self::Rate {
                process: Process::Burst(group),
                ..
            } => f64::from(*group),
            _ => 1.0,
        };
        let planned = self.planned(&length).unwrap_or(0.0);
        // Eight times the spread of a Poisson process; groups of a burst are whole.
        (planned + 8.0 * planned.sqrt() + group + 64.0) as u64
    }
}

/// The numbers of requests whose rate changes while they are sent. Whoever is told the same moments
/// and rates comes to the same numbers, whatever was sent. Moments are nanoseconds of any clock.
#[derive(Debug, Clone)]
pub struct Numbers {
    arrivals: Arrivals,
    since: u64,
    first: u64,
}

impl Numbers {
    /// Those of arrivals that begin at a moment; the first is 0.
    pub fn new(arrivals: Arrivals, began: u64) -> Self {
        Self {
            arrivals,
            since: began,
            first: 0,
        }
    }

    /// From `at` on the rate is another: gives the arrivals from there, and the number of the first;
    /// `None`: the moment is not after the last one, or the arrivals follow no rate.
    pub fn turn(&mut self, at: u64, rate: f64) -> Option<(&Arrivals, u64)> {
        let Arrivals::Rate { process, .. } = self.arrivals else {
            return None;
        };
        if at <= self.since {
            return None;
        }
        self.first = self.most_by(at);
        self.since = at;
        self.arrivals = Arrivals::Rate {
            process,
            shape: Shape::Constant(rate),
        };
        Some((&self.arrivals, self.first))
    }

    /// As [`Numbers::most_by`], if the rate was changed at all: there are gaps then, so how many
    /// fell due does not tell which numbers were given out.
    pub fn with_gaps_by(&self, at: u64) -> Option<u64> {
        (self.first > 0).then(|| self.most_by(at))
    }

    /// Requests that fall due before a moment have numbers below this.
    pub fn most_by(&self, at: u64) -> u64 {
        let passed = Duration::from_nanos(at.saturating_sub(self.since));
        self.first.saturating_add(self.arrivals.most_within(passed))
    }
}

/// What steps are up to a moment; the last one goes on.
fn cut(steps: &[(f64, Duration)], at: Duration) -> Vec<(f64, Duration)> {
    let mut left = at;
    let mut kept = Vec::with_capacity(steps.len() + 1);
    for (number, (rate, length)) in steps.iter().enumerate() {
        let goes_on = number + 1 == steps.len();
        let length = if goes_on { left } else { left.min(*length) };
        if length.is_zero() {
            break;
        }
        kept.push((*rate, length));
        left = left.saturating_sub(length);
    }
    kept
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const S: fn(u64) -> Duration = Duration::from_secs;

    #[test]
    fn another_rate_follows_on_a_rate_and_on_steps() {
        let turned = Arrivals::poisson(500.0).turned(S(12), 800.0, Some(S(8)));
        assert_eq!(
            turned.unwrap().describe(),
            "poisson 500/s for 12s, 800/s for 8s"
        );
        let steps = Arrivals::parse("constant 100/s for 20s, 500/s for 20s").unwrap();
        let say = |at| steps.turned(at, 9.0, None).unwrap().describe();
        assert_eq!(say(S(5)), "constant 100/s for 5s, 9/s for 1s");
        assert_eq!(say(S(20)), "constant 100/s for 20s, 9/s for 1s");
        assert_eq!(
            say(S(90)),
            "constant 100/s for 20s, 500/s for 1m10s, 9/s for 1s"
        );
    }

    #[test]
    fn what_cannot_go_on_says_why() {
        let why = |text: &str, rate| {
            let arrivals = Arrivals::parse(text).unwrap();
            arrivals.turned(S(1), rate, None).unwrap_err().to_string()
        };
        assert!(why("1/s..5/s over 60s", 2.0).contains("a ramp"));
        assert!(why("sine 9/s +- 3/s period 60s", 2.0).contains("a wave"));
        for rate in [0.0, -1.0, 1e9, f64::NAN, f64::INFINITY] {
            assert!(why("5/s", rate).contains("10,000,000/s"), "{rate}");
        }
        let trace = Arrivals::Trace([1, 2].into());
        assert!(trace.turned(S(1), 2.0, None).is_err());
        let mut often = Arrivals::poisson(1.0);
        for second in 1..MOST_STEPS as u64 {
            often = often.turned(S(second), 2.0, None).unwrap();
        }
        assert_eq!(often.turned(S(5000), 3.0, None), Err(Fixed::TooOften));
    }

    #[test]
    fn numbers_of_each_part_are_above_those_of_the_part_before() {
        let mut numbers = Numbers::new(Arrivals::poisson(100.0), 1_000);
        assert!(numbers.turn(1_000, 5.0).is_none(), "nothing has passed");
        let second = 1_000_000_000;
        assert_eq!(numbers.with_gaps_by(second), None);
        let (later, first) = numbers.turn(1_000 + second, 5.0).unwrap();
        assert_eq!((later, first), (&Arrivals::poisson(5.0), 100 + 80 + 1 + 64));
        assert_eq!(numbers.most_by(1_000 + second), first + 65);
        // Some 105 fell due within two seconds, and the last of them has a higher number than that.
        assert_eq!(
            numbers.with_gaps_by(1_000 + 2 * second),
            Some(first + 5 + 17 + 1 + 64)
        );
        let trace = Arrivals::Trace([1, 2].into());
        assert!(Numbers::new(trace, 0).turn(1, 2.0).is_none());
    }

    proptest! {
        /// The rate is the old one before the moment and the new one after it.
        #[test]
        fn only_what_comes_after_the_moment_changes(
            steps in proptest::collection::vec((1..500_u32, 1..30_u64), 1..6),
            at in 1..120_u64,
            rate in 1..500_u32,
        ) {
            let steps = steps.iter().map(|(rate, length)| (f64::from(*rate), S(*length)));
            let before = Arrivals::Rate {
                process: Process::Poisson,
                shape: Shape::Steps(steps.collect()),
            };
            let after = before.turned(S(at), f64::from(rate), None).unwrap();
            for half in 0..300_u64 {
                let moment = Duration::from_millis(500 * half);
                let expected = match moment < S(at) {
                    true => before.rate_at(moment),
                    false => Some(f64::from(rate)),
                };
                prop_assert_eq!(after.rate_at(moment), expected);
            }
        }
    }
}
