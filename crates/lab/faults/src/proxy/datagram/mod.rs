//! One direction of one UDP client, without sockets and clock: datagrams come in at instants,
//! and go out at instants or never.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use bytes::Bytes;

use super::applied::Applied;
use super::on_path::OnPath;
use super::toxic::{Direction, ToxicKind};

/// Most bytes and datagrams that a direction of a client holds. What comes beyond is dropped,
/// as a router with a full queue does.
const MOST_HELD: usize = 4 << 20;
const MOST_DATAGRAMS: usize = 4096;
/// What one that is held costs beside its bytes.
const DATAGRAM_COST: usize = 128;

/// A datagram under way. The earliest is due first; of equals the one that came first.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Held {
    due: Duration,
    ordinal: u64,
    copy: u64,
    arrived: Duration,
    bytes: Bytes,
}

/// What is to be done with what comes out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DatagramStep {
    /// This one is sent now.
    Send(Bytes),
    /// Nothing, until then or until something changes.
    Wait(Option<Duration>),
}

#[derive(Debug)]
pub(super) struct DatagramPath {
    direction: Direction,
    id: u64,
    toxics: Vec<OnPath<()>>,
    held: BinaryHeap<Reverse<Held>>,
    bytes: usize,
    datagrams: u64,
    /// Dropped because it held too much.
    overflowed: u64,
}

impl DatagramPath {
    /// That of the `ordinal`th client.
    pub(super) fn new(direction: Direction, ordinal: u64) -> Self {
        Self {
            direction,
            id: ordinal * 2 + direction.index() as u64,
            toxics: Vec::new(),
            held: BinaryHeap::new(),
            bytes: 0,
            datagrams: 0,
            overflowed: 0,
        }
    }

    /// These toxics are on from now on; what is under way becomes due by them.
    pub(super) fn set(&mut self, toxics: Vec<Arc<Applied>>) {
        OnPath::replace(&mut self.toxics, toxics, self.direction, self.bytes, |_| ());
        let held = std::mem::take(&mut self.held).into_iter();
        let again = |Reverse(held): Reverse<Held>| {
            let due = held.arrived + self.delay(held.ordinal, held.copy);
            Reverse(Held { due, ..held })
        };
        self.held = held.map(again).collect();
    }

    /// How many were dropped because too much was held.
    pub(super) fn overflowed(&self) -> u64 {
        self.overflowed
    }

    /// What it holds, in bytes of memory.
    pub(super) fn cost(&self) -> usize {
        self.bytes + self.held.len() * DATAGRAM_COST
    }

    /// A datagram comes in, given what all clients may still hold together.
    pub(super) fn push(&mut self, now: Duration, bytes: Bytes, spare: usize) {
        let ordinal = self.datagrams;
        self.datagrams += 1;
        let place = [self.id, ordinal];
        for on in &mut self.toxics {
            if on.drops(&place, bytes.len()) {
                on.counters().drop_datagram(bytes.len());
                return;
            }
        }
        let mut copies = 1;
        for on in &self.toxics {
            let counters = on.counters();
            match on.applied.toxic.kind {
                ToxicKind::Duplicate { share } if on.applied.draw(&place).uniform() < share => {
                    copies += 1;
                    counters.duplicated_datagrams.fetch_add(1, Relaxed);
                }
                ToxicKind::Reorder { .. } if !on.late(&place).is_zero() => {
                    counters.reordered_datagrams.fetch_add(1, Relaxed);
                }
                _ => {}
            }
        }
        for copy in 0..copies {
            let cost = bytes.len() + DATAGRAM_COST;
            let room = MOST_HELD.saturating_sub(self.cost()).min(spare);
            // One always fits, or a proxy whose memory is full would pass nothing.
            if !self.held.is_empty() && (self.held.len() >= MOST_DATAGRAMS || room < cost) {
                self.overflowed += 1;
                continue;
            }
            for on in &self.toxics {
                on.counters()
                    .held_bytes
                    .fetch_add(bytes.len() as u64, Relaxed);
            }
            self.bytes += bytes.len();
            let due = now + self.delay(ordinal, copy);
            let bytes = bytes.clone();
            self.held.push(Reverse(Held {
                due,
                ordinal,
                copy,
                arrived: now,
                bytes,
            }));
        }
    }

    fn delay(&self, ordinal: u64, copy: u64) -> Duration {
        // Copies of one are delayed each by themselves, yet late together.
        let delay = |on: &OnPath<()>| match on.applied.toxic.kind {
            ToxicKind::Delay { .. } => on.applied.delay(&[self.id, ordinal, copy]),
            _ => on.late(&[self.id, ordinal]),
        };
        self.toxics.iter().map(delay).sum()
    }

    /// What is to be done now.
    pub(super) fn step(&mut self, now: Duration) -> DatagramStep {
        loop {
            let Some(Reverse(first)) = self.held.peek() else {
                return DatagramStep::Wait(None);
            };
            if first.due > now {
                return DatagramStep::Wait(Some(first.due));
            }
            let size = first.bytes.len();
            let partition = |on: &&OnPath<()>| on.applied.toxic.kind == ToxicKind::Partition;
            if let Some(on) = self.toxics.iter().find(partition) {
                on.counters().drop_datagram(size);
                self.pop();
                continue;
            }
            for on in &mut self.toxics {
                let when = on.with_bucket(|bucket| bucket.when(now, size as u64));
                if let Some(when) = when.filter(|when| *when > now) {
                    return DatagramStep::Wait(Some(when));
                }
            }
            for on in &mut self.toxics {
                on.with_bucket(|bucket| bucket.take(size as u64));
                let counters = on.counters();
                counters.bytes.fetch_add(size as u64, Relaxed);
                counters.datagrams.fetch_add(1, Relaxed);
            }
            return DatagramStep::Send(self.pop());
        }
    }

    fn pop(&mut self) -> Bytes {
        let bytes = self
            .held
            .pop()
            .map(|Reverse(held)| held.bytes)
            .unwrap_or_default();
        self.bytes -= bytes.len();
        for on in &self.toxics {
            on.counters()
                .held_bytes
                .fetch_sub(bytes.len() as u64, Relaxed);
        }
        bytes
    }
}

impl Drop for DatagramPath {
    fn drop(&mut self) {
        OnPath::let_go(&self.toxics, self.bytes);
    }
}

impl OnPath<()> {
    fn drops(&mut self, place: &[u64], size: usize) -> bool {
        match self.applied.toxic.kind {
            ToxicKind::Partition => true,
            ToxicKind::Lose { share, .. } => self.applied.draw(place).uniform() < share,
            ToxicKind::Limit { bytes, .. } => {
                let beyond = self.passed + size as u64 > bytes;
                self.passed += if beyond { 0 } else { size as u64 };
                beyond
            }
            _ => false,
        }
    }

    /// By how much it lets others overtake the datagram of this place.
    fn late(&self, place: &[u64]) -> Duration {
        match self.applied.toxic.kind {
            ToxicKind::Reorder { share, by } if self.applied.draw(place).uniform() < share => by,
            _ => Duration::ZERO,
        }
    }
}

#[cfg(test)]
mod tests;
