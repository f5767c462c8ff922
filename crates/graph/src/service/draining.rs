//! The end of a host in good order.
//!
//! Instances that nobody of this host calls leave first: they accept nothing more and close
//! what carries no request. The others go on for those that still work, until no thread
//! has a request in hand.

use std::sync::Arc;

use wire::clock;

use super::host::{DRAINING, Orders, RUNNING, STOPPED};
use crate::Nanos;

/// For how long no thread must have a request in hand: what one thread says of itself may
/// be old when another one looks at it.
const QUIET: Nanos = 5_000_000;

/// What the host wants of a thread, as that saw it last.
pub(super) struct Draining {
    orders: Arc<Orders>,
    /// Its place among the threads.
    thread: usize,
    state: u8,
    /// When some thread last had a request in hand, while the host drains.
    busy_at: Nanos,
}

/// What to do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Go on.
    Running,
    /// Let those leave whom nobody calls from here; told once.
    Leaving,
    /// Go on until nobody [`has anything in hand`](Draining::is_over).
    Draining,
    /// End at once.
    Stopped,
}

impl Draining {
    pub(super) fn new(orders: Arc<Orders>, thread: usize) -> Self {
        Self {
            orders,
            thread,
            state: RUNNING,
            busy_at: 0,
        }
    }

    /// Looks what the host wants now.
    pub(super) fn look(&mut self) -> Stage {
        let state = self.orders.state();
        let before = std::mem::replace(&mut self.state, state);
        match state {
            STOPPED => Stage::Stopped,
            DRAINING if state != before => Stage::Leaving,
            DRAINING => Stage::Draining,
            _ => Stage::Running,
        }
    }

    /// Says how much this thread has in hand, and whether no thread had any for a while.
    pub(super) fn is_over(&mut self, busy: usize) -> bool {
        let now = clock::now();
        if !self.orders.say_busy(self.thread, busy) {
            self.busy_at = now;
        }
        now.saturating_sub(self.busy_at) >= QUIET
    }

    /// When to look again at the latest.
    pub(super) fn next_deadline(&self) -> Nanos {
        match self.state {
            DRAINING => clock::now() + QUIET / 2,
            _ => Nanos::MAX,
        }
    }
}
