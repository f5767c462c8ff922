//! Delays as distributions: written in a plan, drawn with a seed.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use rand::{Rng, RngExt};
use rand_distr::{Distribution as _, Exp, LogNormal};

/// Longest delay that is ever drawn: a day. A heavy tail must not stop a run.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// Standard normal quantile at 0.99.
const Z99: f64 = 2.326_347_874_040_841;

/// How long something takes.
///
/// Written as `0`, `50ms`, `uniform 10ms 100ms`, `exponential 50ms` (mean),
/// `lognormal 900ms p99=4s` (median and 99th percentile) or `5s +- 20%` (uniform from 4 s to
/// 6 s), as [`units::check_distribution`] accepts them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Distribution {
    /// Always the same.
    Fixed(Duration),
    /// Any time of a range with equal probability; the first is not the longer one.
    Uniform(Duration, Duration),
    /// Memoryless, with this mean.
    Exponential(Duration),
    /// Most near the median, some far above it.
    LogNormal {
        /// Half are shorter; above zero.
        median: Duration,
        /// One in a hundred is longer; not below the median.
        p99: Duration,
    },
}

impl Distribution {
    /// No time at all.
    pub const ZERO: Self = Self::Fixed(Duration::ZERO);

    /// Draws one delay, at most a day.
    pub fn draw(&self, rng: &mut impl Rng) -> Duration {
        let seconds = match *self {
            Self::Fixed(delay) => return delay.min(LONGEST),
            Self::Uniform(from, to) => {
                from.as_secs_f64() + rng.random::<f64>() * to.saturating_sub(from).as_secs_f64()
            }
            Self::Exponential(mean) => match Exp::new(1.0 / mean.as_secs_f64()) {
                Ok(law) => law.sample(rng),
                Err(_) => 0.0,
            },
            Self::LogNormal { median, p99 } => {
                let middle = median.as_secs_f64().ln();
                let width = (p99.as_secs_f64().ln() - middle) / Z99;
                match LogNormal::new(middle, width) {
                    Ok(law) => law.sample(rng),
                    Err(_) => median.as_secs_f64(),
                }
            }
        };
        Duration::try_from_secs_f64(seconds).map_or(LONGEST, |delay| delay.min(LONGEST))
    }
}

/// Why a text is not a distribution.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadDistribution {
    /// The text has another shape.
    #[error(
        "{0:?} is not a delay: write 50ms, uniform 10ms 100ms, exponential 50ms, lognormal 900ms p99=4s or 5s +- 20%"
    )]
    Shape(String),
    /// A duration in it cannot be read.
    #[error("{0:?} is not a duration: write a number and ns, us, ms, s, m or h")]
    Duration(String),
    /// Two durations are in the wrong order, or the lower one is zero.
    #[error("in {text:?}, {lower} must be above zero and not above {upper}")]
    Order {
        /// The whole text.
        text: String,
        /// What should be the shorter one.
        lower: &'static str,
        /// What should be the longer one.
        upper: &'static str,
    },
}

impl FromStr for Distribution {
    type Err = BadDistribution;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let words: Vec<&str> = text.split_whitespace().collect();
        match *words.as_slice() {
            [fixed] => Ok(Self::Fixed(duration(fixed)?)),
            ["fixed", fixed] => Ok(Self::Fixed(duration(fixed)?)),
            ["exponential", mean] => Ok(Self::Exponential(duration(mean)?)),
            ["uniform", from, to] => {
                let (from, to) = (duration(from)?, duration(to)?);
                if from > to {
                    return Err(BadDistribution::Order {
                        text: text.into(),
                        lower: "the first duration",
                        upper: "the second",
                    });
                }
                Ok(Self::Uniform(from, to))
            }
            ["lognormal", median, p99] => {
                let Some(p99) = p99.strip_prefix("p99=") else {
                    return Err(BadDistribution::Shape(text.into()));
                };
                let median = duration(median.strip_prefix("p50=").unwrap_or(median))?;
                let p99 = duration(p99)?;
                if median.is_zero() || median > p99 {
                    return Err(BadDistribution::Order {
                        text: text.into(),
                        lower: "the median",
                        upper: "p99",
                    });
                }
                Ok(Self::LogNormal { median, p99 })
            }
            [middle, "+-" | "±", share] => {
                let middle = duration(middle)?;
                let share = units::parse_share(share);
                let share = share.map_err(|_| BadDistribution::Shape(text.into()))?;
                let (least, most) = (middle.mul_f64(1.0 - share), middle.mul_f64(1.0 + share));
                Ok(Self::Uniform(least, most))
            }
            _ => Err(BadDistribution::Shape(text.into())),
        }
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = |delay: Duration| format!("{}ns", delay.as_nanos());
        match *self {
            Self::Fixed(delay) => f.write_str(&ns(delay)),
            Self::Uniform(from, to) => write!(f, "uniform {} {}", ns(from), ns(to)),
            Self::Exponential(mean) => write!(f, "exponential {}", ns(mean)),
            Self::LogNormal { median, p99 } => {
                write!(f, "lognormal {} p99={}", ns(median), ns(p99))
            }
        }
    }
}

fn duration(text: &str) -> Result<Duration, BadDistribution> {
    units::parse_duration(text).map_err(|_| BadDistribution::Duration(text.into()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;

    fn parse(text: &str) -> Distribution {
        text.parse().unwrap()
    }

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn texts_of_plans_are_read() {
        assert_eq!(parse("0"), Distribution::ZERO);
        assert_eq!(parse("1.5s"), Distribution::Fixed(MS(1500)));
        assert_eq!(
            parse("uniform 10ms 2s"),
            Distribution::Uniform(MS(10), MS(2000))
        );
        assert_eq!(parse("exponential 50ms"), Distribution::Exponential(MS(50)));
        let expected = Distribution::LogNormal {
            median: MS(900),
            p99: MS(4000),
        };
        assert_eq!(parse("lognormal 900ms p99=4s"), expected);
        assert_eq!(parse("lognormal p50=900ms p99=4s"), expected);
        assert_eq!(
            parse("5s +- 20%"),
            Distribution::Uniform(MS(4000), MS(6000))
        );
    }

    #[test]
    fn what_an_experiment_accepts_is_read() {
        for text in [
            "0",
            "1m30s",
            "uniform 10ms 90ms",
            "exponential 50ms",
            "lognormal 900ms p99=4s",
            "5s +- 20%",
            "5s ± 20%",
        ] {
            assert_eq!(units::check_distribution(text), Ok(()), "{text}");
            assert!(text.parse::<Distribution>().is_ok(), "{text}");
        }
    }

    #[test]
    fn errors_say_what_to_write() {
        for bad in [
            "",
            "5",
            "-3s",
            "3 s",
            "uniform 3s",
            "uniform 3s 1s",
            "lognormal 0 p99=1s",
            "1e99h",
            "5s +- 120%",
        ] {
            let error = bad.parse::<Distribution>().unwrap_err().to_string();
            assert!(
                error.contains("write") || error.contains("must be"),
                "{error}"
            );
        }
    }

    #[test]
    fn quantiles_are_those_asked_for() {
        let mut rng = StdRng::seed_from_u64(7);
        let law = parse("lognormal 900ms p99=4s");
        let mut drawn: Vec<Duration> = (0..20_000).map(|_| law.draw(&mut rng)).collect();
        drawn.sort();
        let near = |found: Duration, wanted: f64| (found.as_secs_f64() / wanted - 1.0).abs() < 0.1;
        assert!(near(drawn[10_000], 0.9), "{:?}", drawn[10_000]);
        assert!(near(drawn[19_800], 4.0), "{:?}", drawn[19_800]);
        let law = parse("exponential 50ms");
        let sum: Duration = (0..20_000).map(|_| law.draw(&mut rng)).sum();
        assert!(near(sum / 20_000, 0.05), "{sum:?}");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(a in 1..u64::MAX / 2, b in 1..u64::MAX / 2, seed: u64) {
            let (a, b) = (Duration::from_nanos(a.min(b)), Duration::from_nanos(a.max(b)));
            for law in [
                Distribution::Fixed(a),
                Distribution::Uniform(a, b),
                Distribution::Exponential(a),
                Distribution::LogNormal { median: a, p99: b },
            ] {
                prop_assert_eq!(parse(&law.to_string()), law);
                prop_assert!(law.draw(&mut StdRng::seed_from_u64(seed)) <= LONGEST);
            }
        }
    }
}
