//! Pauses of users: when which exchange goes on.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Times at which exchanges go on, at most one for each exchange, which is the bound.
#[derive(Debug, Default)]
pub(super) struct Timers {
    heap: BinaryHeap<Reverse<(u64, u32)>>,
}

impl Timers {
    pub(super) fn set(&mut self, exchange: u32, at: u64) {
        self.heap.push(Reverse((at, exchange)));
    }

    /// When the next one goes on.
    pub(super) fn next(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    /// Takes an exchange whose time has come, with that time.
    pub(super) fn expired(&mut self, now: u64) -> Option<(u32, u64)> {
        if self.next()? > now {
            return None;
        }
        self.heap
            .pop()
            .map(|Reverse((at, exchange))| (exchange, at))
    }

    pub(super) fn clear(&mut self) -> impl Iterator<Item = u32> + '_ {
        self.heap.drain().map(|Reverse((_, exchange))| exchange)
    }
}
