//! What a search is asked for, and what it says on its way.

use std::fmt;
use std::time::Duration;

use crate::arrivals::Process;
use crate::recording::Span;
use crate::slo::Slo;

use super::{Estimate, Point};

/// How the highest rate that holds is searched for.
#[derive(Debug, Clone, PartialEq)]
pub struct Search {
    /// What has to hold.
    pub slo: Slo,
    /// How arrivals lie around each rate.
    pub process: Process,
    /// First rate that is tried, per second.
    pub from: f64,
    /// Factor between rates until one does not hold; above 1, at most 10.
    pub grow: f64,
    /// Highest rate that may be tried.
    pub most: Option<f64>,
    /// Length of a hold; 1 s at least. Longer where the objective needs more requests.
    pub each: Duration,
    /// Longest hold.
    pub longest: Duration,
    /// How many times the requests that the objective needs a hold near the knee has,
    /// within [`Search::longest`]; 1 to 1,000.
    pub near: f64,
    /// What is left out at the start of each hold.
    pub settle: Settle,
    /// Ratio of the ends of the interval, less 1, at which the search may end.
    pub precision: f64,
    /// Probability with which the interval shall cover the truth; 0.5 to 0.99.
    pub confidence: f64,
    /// Most holds, those that confirm included; those that overload come on top.
    pub holds: u32,
    /// Most time in all, counted by the lengths of what was run.
    pub within: Duration,
    /// Length of the holds that confirm.
    pub confirm: Duration,
    /// Longest rest at a tenth of the load after a hold that overloaded the target.
    pub drain: Duration,
    /// Most holds beyond the knee that are made to see where the target saturates; 0
    /// where that is not wanted.
    pub overload: u32,
    /// Seed of the bootstrap.
    pub seed: u64,
}

/// What is left out at the start of a hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settle {
    /// A quarter of the hold, and a second at least, if nothing failed in it.
    Auto,
    /// So much.
    Lead(Duration),
}

impl Search {
    /// A search with defaults that fit a service which answers within a second.
    pub fn new(slo: Slo) -> Self {
        Self {
            slo,
            process: Process::Poisson,
            from: 100.0,
            grow: 1.5,
            most: None,
            each: Duration::from_secs(5),
            longest: Duration::from_secs(60),
            near: 15.0,
            settle: Settle::Auto,
            precision: 0.03,
            confidence: 0.9,
            holds: 45,
            within: Duration::from_secs(20 * 60),
            confirm: Duration::from_secs(15),
            drain: Duration::from_secs(10),
            overload: 4,
            seed: 0,
        }
    }

    /// A search of a few minutes, for people who wait for it: the interval is wider and
    /// what lies beyond the knee is not looked at.
    pub fn brief(slo: Slo) -> Self {
        Self {
            grow: 2.0,
            longest: Duration::from_secs(30),
            near: 6.0,
            precision: 0.1,
            within: Duration::from_secs(210),
            confirm: Duration::from_secs(10),
            drain: Duration::from_secs(5),
            overload: 0,
            ..Self::new(slo)
        }
    }

    /// Checks the bounds of every setting.
    ///
    /// # Errors
    /// Names the first setting that is out of its bounds.
    pub fn check(&self) -> Result<(), SearchError> {
        let wrong = |setting, found: String, expected| {
            Err(SearchError {
                setting,
                found,
                expected,
            })
        };
        let rate = |rate: f64| rate > 0.0 && rate <= MOST_RATE;
        if self.slo.terms.is_empty() {
            return wrong("the objective", "none".to_owned(), "at least one term");
        }
        if !rate(self.from) {
            let expected = "a rate above 0 and at most 10,000,000/s";
            return wrong("the first rate", format!("{}/s", self.from), expected);
        }
        if let Some(most) = self.most
            && !(rate(most) && most >= self.from)
        {
            let expected = "a rate from the first one to 10,000,000/s";
            return wrong("the highest rate", format!("{most}/s"), expected);
        }
        if !(self.grow > 1.0 && self.grow <= 10.0) {
            let expected = "a factor above 1 and at most 10";
            return wrong("the growth", self.grow.to_string(), expected);
        }
        if !(self.precision >= 0.001 && self.precision <= 1.0) {
            let expected = "0.1% to 100%";
            return wrong("the precision", self.precision.to_string(), expected);
        }
        if !(0.5..=0.99).contains(&self.confidence) {
            return wrong("the confidence", self.confidence.to_string(), "0.5 to 0.99");
        }
        if !(4..=1000).contains(&self.holds) {
            return wrong("the number of holds", self.holds.to_string(), "4 to 1000");
        }
        if !(1.0..=1000.0).contains(&self.near) {
            let setting = "the number of requests near the knee";
            return wrong(
                setting,
                self.near.to_string(),
                "1 to 1000 times those needed",
            );
        }
        let second = Duration::from_secs(1);
        if self.each < second || self.longest < self.each || self.confirm < second {
            let found = format!(
                "{:?}, at most {:?}, confirmed over {:?}",
                self.each, self.longest, self.confirm
            );
            return wrong("the length of holds", found, "1 s or more, in this order");
        }
        Ok(())
    }
}

/// Highest rate that is ever tried.
pub(super) const MOST_RATE: f64 = 10_000_000.0;

/// A setting out of its bounds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("search for a limit: {setting} is {found}, expected {expected}")]
pub struct SearchError {
    /// Which one.
    pub setting: &'static str,
    /// What it is.
    pub found: String,
    /// What it may be.
    pub expected: &'static str,
}

/// Why a hold is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To find one rate that holds and one that does not.
    Bracket,
    /// To halve what is not known.
    Bisect,
    /// To see that the ends of the interval are where they are said to be.
    Confirm,
    /// To see what the target does beyond its limit.
    Overload,
}

impl fmt::Display for Purpose {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Bracket => "bracket",
            Self::Bisect => "bisect",
            Self::Confirm => "confirm",
            Self::Overload => "overload",
        })
    }
}

/// What a search does, as it does it.
#[derive(Debug, Clone, Copy)]
pub enum Event<'e> {
    /// A hold begins.
    Hold {
        /// Number of the hold, from 1.
        number: u32,
        /// Rate, per second.
        rate: f64,
        /// Length.
        length: Duration,
        /// Why.
        purpose: Purpose,
    },
    /// A span of a hold or of a rest has passed.
    Passed(&'e Span),
    /// A hold has ended.
    Held(&'e Point),
    /// The target rests.
    Rest {
        /// Rate meanwhile.
        rate: f64,
        /// Longest time.
        most: Duration,
    },
    /// What is believed of the knee now.
    Believed(Estimate),
}
