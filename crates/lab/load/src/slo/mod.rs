//! Objectives: what must hold of a load, as people write it, and whether it does.
//!
//! An objective is one or more terms, all of which must hold:
//! `p99 < 20ms, errors < 0.1%`.
//!
//! | Quantity | What it is | Compared with |
//! |---|---|---|
//! | `p50 p75 p90 p95 p99 p999 p9999 mean max` | latency from the intended send | `< 20ms` |
//! | `actual p99` and so on | latency from the actual send | `< 20ms` |
//! | `errors` | requests refused, without an answer or never sent, over all that were tried | `< 0.1%` |
//! | `sent` | requests sent, over those planned | `>= 99%` |
//! | `rate` | good answers a second, until the end of the load | `>= 495/s` |

mod judge;
mod parse;

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::recording::BEYOND;

pub use judge::{Judgement, Measured};

/// What must hold of a load. Reads from and shows as text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Slo {
    /// All of these must hold; at least one, at most [`Slo::MOST_TERMS`].
    pub terms: Vec<Term>,
}

/// One comparison.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Term {
    /// What is compared.
    pub quantity: Quantity,
    /// Whether the bound itself is still fine: `<=` and `>=` rather than `<` and `>`.
    pub inclusive: bool,
    /// What it is compared with: seconds, a share from 0 to 1, or requests a second.
    pub bound: f64,
}

/// Something that a load has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quantity {
    /// Latency from the intended send; held from above.
    Intended(Statistic),
    /// Latency from the actual send; held from above.
    Actual(Statistic),
    /// Share of requests that failed; held from above.
    Errors,
    /// Share of the planned requests that were sent; held from below.
    Sent,
    /// Good answers a second; held from below.
    Rate,
}

/// A number that stands for a distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Statistic {
    /// Median.
    P50,
    /// 75th percentile.
    P75,
    /// 90th percentile.
    P90,
    /// 95th percentile.
    P95,
    /// 99th percentile.
    P99,
    /// 99.9th percentile.
    P999,
    /// 99.99th percentile.
    P9999,
    /// Mean, over whole answers only.
    Mean,
    /// Largest.
    Max,
}

impl Slo {
    /// Most terms of an objective.
    pub const MOST_TERMS: usize = 16;

    /// Number of requests from which every term can be told, whatever comes out.
    pub fn samples_needed(&self) -> u64 {
        let needed = self.terms.iter().map(|term| match term.quantity {
            Quantity::Intended(statistic) | Quantity::Actual(statistic) => statistic
                .percentile()
                .map_or(1.0, |share| (BEYOND / (1.0 - share)).ceil()),
            Quantity::Errors if term.bound > 0.0 => (1.0 / term.bound).ceil(),
            Quantity::Errors | Quantity::Sent | Quantity::Rate => 1.0,
        });
        // Rounding in 1 - 0.999 must not ask for one sample more.
        needed.fold(1.0, |most: f64, n| most.max((n * (1.0 - 1e-9)).round())) as u64
    }
}

impl Quantity {
    /// Whether less is better.
    pub fn held_from_above(self) -> bool {
        matches!(self, Self::Intended(_) | Self::Actual(_) | Self::Errors)
    }
}

impl Statistic {
    pub(crate) const ALL: [(&str, Self); 9] = [
        ("p50", Self::P50),
        ("p75", Self::P75),
        ("p90", Self::P90),
        ("p95", Self::P95),
        ("p99", Self::P99),
        ("p999", Self::P999),
        ("p9999", Self::P9999),
        ("mean", Self::Mean),
        ("max", Self::Max),
    ];

    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        let found = Self::ALL.iter().find(|(known, _)| *known == name)?;
        Some(found.1)
    }

    /// The share of requests that a percentile does not exceed; `None` for others.
    pub fn percentile(self) -> Option<f64> {
        match self {
            Self::P50 => Some(0.5),
            Self::P75 => Some(0.75),
            Self::P90 => Some(0.9),
            Self::P95 => Some(0.95),
            Self::P99 => Some(0.99),
            Self::P999 => Some(0.999),
            Self::P9999 => Some(0.9999),
            Self::Mean | Self::Max => None,
        }
    }
}

impl fmt::Display for Statistic {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = Self::ALL.iter().find(|(_, statistic)| statistic == self);
        out.write_str(named.map_or("", |(name, _)| name))
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Intended(statistic) => write!(out, "{statistic}"),
            Self::Actual(statistic) => write!(out, "actual {statistic}"),
            Self::Errors => out.write_str("errors"),
            Self::Sent => out.write_str("sent"),
            Self::Rate => out.write_str("rate"),
        }
    }
}

impl fmt::Display for Term {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let relation = match (self.quantity.held_from_above(), self.inclusive) {
            (true, false) => "<",
            (true, true) => "<=",
            (false, false) => ">",
            (false, true) => ">=",
        };
        write!(out, "{} {relation} ", self.quantity)?;
        match self.quantity {
            Quantity::Intended(_) | Quantity::Actual(_) => {
                let bound = Duration::try_from_secs_f64(self.bound).unwrap_or(Duration::MAX);
                out.write_str(&units::write_duration(bound))
            }
            Quantity::Errors | Quantity::Sent => out.write_str(&share_text(self.bound)),
            Quantity::Rate => write!(out, "{}/s", self.bound),
        }
    }
}

/// The shortest percentage that reads back as this share.
fn share_text(share: f64) -> String {
    let percent = share * 100.0;
    (0..=15)
        .map(|digits| format!("{percent:.digits$}%"))
        .find(|text| units::parse_share(text) == Ok(share))
        .unwrap_or_else(|| format!("{share}"))
}

impl fmt::Display for Slo {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, term) in self.terms.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(out, "{separator}{term}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
