//! The end of a host in good order.
//!
//! Instances that nobody of this host calls leave first: they accept nothing more and close
//! what carries no request. The others go on for those that still work, until no thread
//! has a request in hand.

use wire::clock;

use super::orders::Orders;
use crate::Nanos;

/// For how long no thread must have a request in hand: what one thread says of itself may
/// be old when another one looks at it.
pub(super) const QUIET: Nanos = 5_000_000;

/// Whether all threads of a host have done what they had to.
#[derive(Default)]
pub(super) struct Draining {
    /// When some thread last had a request in hand.
    busy_at: Nanos,
}

impl Draining {
    /// Says how much a thread has in hand, and whether no thread had any for a while.
    pub(super) fn is_over(&mut self, orders: &Orders, thread: usize, busy: usize) -> bool {
        let now = clock::now();
        if !orders.say_busy(thread, busy) {
            self.busy_at = now;
        }
        now.saturating_sub(self.busy_at) >= QUIET
    }
}
