//! What is judged: a name, a unit, and which way is better.

use serde::{Deserialize, Serialize};

/// Which way a metric gets better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// As a latency.
    LowerIsBetter,
    /// As a throughput.
    HigherIsBetter,
}

impl Direction {
    /// By how much `new` is worse than `base`, as the logarithm of their ratio; negative when it
    /// is better. Both above 0.
    pub(crate) fn worse_by(self, base: f64, new: f64) -> f64 {
        let ratio = (new / base).ln();
        match self {
            Self::LowerIsBetter => ratio,
            Self::HigherIsBetter => -ratio,
        }
    }

    /// Such a logarithm as a share of the base: 0.05 is "5 % slower" of a latency and "5 % less"
    /// of a throughput.
    pub(crate) fn share(self, worse_by: f64) -> f64 {
        let share = match self {
            Self::LowerIsBetter => worse_by.exp_m1(),
            Self::HigherIsBetter => -(-worse_by).exp_m1(),
        };
        // JSON has no infinity.
        share.clamp(f64::MIN, f64::MAX)
    }

    /// The logarithm of such a share, which is below 1 where higher is better.
    pub(crate) fn logarithm(self, share: f64) -> f64 {
        match self {
            Self::LowerIsBetter => share.ln_1p(),
            Self::HigherIsBetter => -(-share).ln_1p(),
        }
    }
}

/// The unit of a metric's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Time.
    Seconds,
    /// Size.
    Bytes,
    /// A part of 1.
    Share,
    /// Rate.
    PerSecond,
    /// Processors in use.
    Cores,
    /// A number of things.
    Count,
}

impl Unit {
    /// Its word, as in the JSON.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Seconds => "seconds",
            Self::Bytes => "bytes",
            Self::Share => "share",
            Self::PerSecond => "per_second",
            Self::Cores => "cores",
            Self::Count => "count",
        }
    }

    /// A value as people read it.
    #[must_use]
    pub fn show(self, value: f64) -> String {
        match self {
            Self::Seconds => units::show_seconds(value),
            Self::Bytes => units::show_bytes(value),
            Self::Share => units::show_share(value),
            Self::PerSecond => units::show_rate(value),
            Self::Cores => units::show_cores(value),
            Self::Count => units::show_count(value),
        }
    }
}

/// A metric that is compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metric {
    /// As in the experiment file: `soak at 70%: traffic p99`.
    pub name: String,
    /// Of its values.
    pub unit: Unit,
    /// Which way it gets better.
    pub direction: Direction,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_the_base_whichever_way_is_better() {
        let slower = Direction::LowerIsBetter.worse_by(100.0, 105.0);
        assert!((Direction::LowerIsBetter.share(slower) - 0.05).abs() < 1e-12);
        let less = Direction::HigherIsBetter.worse_by(100.0, 95.0);
        assert!((Direction::HigherIsBetter.share(less) - 0.05).abs() < 1e-12);
        for direction in [Direction::LowerIsBetter, Direction::HigherIsBetter] {
            for share in [-0.3, 0.0, 0.02, 0.9] {
                let back = direction.share(direction.logarithm(share));
                assert!((back - share).abs() < 1e-12, "{direction:?} {share}");
            }
        }
    }
}
