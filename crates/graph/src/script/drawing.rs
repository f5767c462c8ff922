//! What is drawn for a request. A draw follows from its step and from what it is for, here
//! by number, so that none depends on the order in which things happen.

use super::bound;
use super::turn::Turn;
use crate::Nanos;
use crate::amount::Amount;
use crate::topology::StepId;
use traces::SpanId;

// Of an endpoint.
pub(super) const DROP: u32 = 0;
pub(super) const ERROR: u32 = 1;
pub(super) const DELAYED: u32 = 2;
pub(super) const DELAY: u32 = 3;
pub(super) const LATENCY: u32 = 4;
pub(super) const RESPONSE: u32 = 5;
// Of a call.
pub(super) const CALLED: u32 = 0;
pub(super) const COUNT: u32 = 1;
/// That of the first repeat's body; those of the others follow.
pub(super) const BYTES: u32 = 2;
// Of work.
pub(super) const FIRST: u32 = 0;
pub(super) const SECOND: u32 = 1;

impl Turn<'_> {
    pub(super) fn child(&self, step: StepId, turn: u32) -> SpanId {
        self.request.span.child(self.request.trace, step.0, turn)
    }

    pub(super) fn by_chance(&self, share: f64, step: StepId, of: u32) -> bool {
        share > 0.0 && (share >= 1.0 || self.request.draws.uniform(step.0, of) < share)
    }

    pub(super) fn drawn(&self, amount: &Amount, step: StepId, of: u32, most: u64) -> f64 {
        let u = match amount {
            Amount::Constant(_) => 0.0,
            _ => self.request.draws.uniform(step.0, of),
        };
        #[expect(clippy::cast_precision_loss, reason = "a bound is no figure")]
        let most = most as f64;
        amount.at(u, most).max(0.0)
    }

    pub(super) fn time(&self, amount: &Amount, step: StepId, of: u32) -> Nanos {
        whole(self.drawn(amount, step, of, bound::TIME))
    }

    pub(super) fn bytes(&self, amount: &Amount, step: StepId, of: u32) -> u64 {
        whole(self.drawn(amount, step, of, bound::BYTES))
    }
}

/// A drawn amount as a number; fractions are cut off.
fn whole(amount: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "drawn amounts are not negative, and bounded; `as` cuts and never wraps"
    )]
    let whole = amount as u64;
    whole
}
