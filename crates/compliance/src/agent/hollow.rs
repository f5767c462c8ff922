//! An agent that has no machine: it draws outcomes.

use stats::{SplitMix, fnv1a};
use thiserror::Error;

use super::{Applied, Invocation, Methods, Outcome};
use crate::model::mode::PolicyMode;

/// How often calls end otherwise than in order, each from 0 to 1, all together at most 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rates {
    /// Calls that fail, in this and all other runs.
    pub error: f64,
    /// Calls that are not as they should be in audit, in all runs.
    pub non_compliant: f64,
    /// Calls that are repaired in a run.
    pub repaired: f64,
    /// Calls that have nothing to do, in all runs.
    pub not_applicable: f64,
}

/// Rates that cannot be.
#[derive(Debug, Error, Clone, Copy, PartialEq)]
#[error("rates of outcomes add up to {sum}; expected each from 0 to 1 and at most 1 together")]
pub struct RatesError {
    sum: f64,
}

impl Rates {
    /// Nothing but success.
    pub const NONE: Self = Self {
        error: 0.0,
        non_compliant: 0.0,
        repaired: 0.0,
        not_applicable: 0.0,
    };
}

/// Draws outcomes by a seed: what fails or does not comply is the same in every run of a node,
/// what is repaired is drawn anew.
#[derive(Debug, Clone)]
pub struct Hollow {
    rates: Rates,
    node: u64,
    run: SplitMix,
}

impl Hollow {
    /// The agent of the node with this seed, in its run of this number.
    ///
    /// # Errors
    /// Rates that are below 0 or more than 1 together.
    pub fn new(rates: Rates, node: u64, run: u64) -> Result<Self, RatesError> {
        let all = [
            rates.error,
            rates.non_compliant,
            rates.repaired,
            rates.not_applicable,
        ];
        let sum: f64 = all.iter().sum();
        // Written so that what is no number is refused too.
        if !(all.iter().all(|rate| *rate >= 0.0) && sum <= 1.0) {
            return Err(RatesError { sum });
        }
        let mut mixed = SplitMix::new(node ^ run.rotate_left(32));
        Ok(Self {
            rates,
            node,
            run: SplitMix::new(mixed.bits()),
        })
    }
}

impl Methods for Hollow {
    fn apply(&mut self, call: &Invocation<'_>, mode: PolicyMode) -> Applied {
        let Rates {
            error,
            non_compliant,
            repaired,
            not_applicable,
        } = self.rates;
        let texts = [call.id, call.method, call.key()].into_iter();
        let bytes = texts.flat_map(|text| text.bytes().chain([0xff]));
        // A hash need be no better: SplitMix mixes it.
        let lasting = SplitMix::new(fnv1a(self.node, bytes)).uniform();
        let passing = self.run.uniform();
        let below = |rate: f64, from: f64| (from..from + rate).contains(&lasting);
        let audit = mode == PolicyMode::Audit;
        let rest = 1.0 - error - not_applicable;
        let (outcome, message) = if below(error, 0.0) {
            (Outcome::Error, "it could not be found out or done")
        } else if below(not_applicable, error) {
            (Outcome::NotApplicable, "there was nothing to do")
        } else if audit && below(non_compliant, error + not_applicable) {
            (Outcome::NonCompliant, "it is not as it should be")
        } else if !audit && rest > 0.0 && passing < repaired / rest {
            (Outcome::Repaired, "it was not as it should be and is now")
        } else {
            (Outcome::Success, "it was as it should be")
        };
        Applied::new(outcome, message)
    }
}
