//! A toxic while it is on: what it counts, and what all connections share of it.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use stats::SplitMix;

use super::bucket::Bucket;
use super::toxic::{Clients, Direction, Jitter, RateOf, Toxic, ToxicKind};
use crate::seed;

/// Most times that one segment is lost: with Linux's `tcp_retries2` a sender gives up after it.
const MOST_LOSSES: u32 = 15;
/// Longest time to a retransmission, as in RFC 6298 and Linux (`TCP_RTO_MAX`).
const LONGEST_RETRANSMIT: Duration = Duration::from_secs(120);

/// What one toxic did in one direction, since it was put on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToxicEffect {
    /// Connections, over UDP clients, that it was on.
    pub connections: u64,
    /// Bytes that passed it.
    pub bytes: u64,
    /// Datagrams that passed it.
    pub datagrams: u64,
    /// Segments that it lost and delivered later; one that was lost twice counts twice.
    pub lost_segments: u64,
    /// Datagrams that it dropped.
    pub dropped_datagrams: u64,
    /// Bytes of these.
    pub dropped_bytes: u64,
    /// Datagrams that it let pass twice.
    pub duplicated_datagrams: u64,
    /// Datagrams that it let others overtake.
    pub reordered_datagrams: u64,
    /// Connections that it reset.
    pub reset_connections: u64,
    /// Connections that it closed.
    pub closed_connections: u64,
    /// Bytes that stand before it now.
    pub held_bytes: u64,
}

/// The same while it is counted.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) connections: AtomicU64,
    pub(super) bytes: AtomicU64,
    pub(super) datagrams: AtomicU64,
    pub(super) lost_segments: AtomicU64,
    pub(super) dropped_datagrams: AtomicU64,
    pub(super) dropped_bytes: AtomicU64,
    pub(super) duplicated_datagrams: AtomicU64,
    pub(super) reordered_datagrams: AtomicU64,
    pub(super) reset_connections: AtomicU64,
    pub(super) closed_connections: AtomicU64,
    /// Wraps below zero between two additions of different threads.
    pub(super) held_bytes: AtomicU64,
}

impl Counters {
    pub(super) fn snapshot(&self) -> ToxicEffect {
        ToxicEffect {
            connections: self.connections.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
            datagrams: self.datagrams.load(Relaxed),
            lost_segments: self.lost_segments.load(Relaxed),
            dropped_datagrams: self.dropped_datagrams.load(Relaxed),
            dropped_bytes: self.dropped_bytes.load(Relaxed),
            duplicated_datagrams: self.duplicated_datagrams.load(Relaxed),
            reordered_datagrams: self.reordered_datagrams.load(Relaxed),
            reset_connections: self.reset_connections.load(Relaxed),
            closed_connections: self.closed_connections.load(Relaxed),
            held_bytes: self.held_bytes.load(Relaxed),
        }
    }

    pub(super) fn drop_datagram(&self, bytes: usize) {
        self.dropped_datagrams.fetch_add(1, Relaxed);
        self.dropped_bytes.fetch_add(bytes as u64, Relaxed);
    }
}

/// A toxic that is on.
#[derive(Debug)]
pub(super) struct Applied {
    pub(super) toxic: Toxic,
    /// By direction. Those of a toxic that was changed go on.
    pub(super) counters: Arc<[Counters; 2]>,
    /// What a link's rate leaves, by direction.
    link: Option<[Mutex<Bucket>; 2]>,
    /// What it draws from.
    stream: u64,
}

impl Applied {
    pub(super) fn new(toxic: Toxic, seed: u64, counters: Arc<[Counters; 2]>) -> Self {
        let link = match toxic.kind {
            ToxicKind::Throttle {
                bytes_per_s,
                burst_bytes,
                of: RateOf::Link,
            } => {
                let bucket = || Mutex::new(Bucket::new(bytes_per_s, burst_bytes));
                Some([bucket(), bucket()])
            }
            _ => None,
        };
        Self {
            stream: seed::named(seed, &toxic.name),
            toxic,
            counters,
            link,
        }
    }

    /// Whether it touches a direction of the `ordinal`th connection, or client over UDP.
    pub(super) fn touches(&self, direction: Direction, client: IpAddr, ordinal: u64) -> bool {
        let to_it = match &self.toxic.clients {
            Clients::All => true,
            Clients::Addresses(addresses) => addresses.contains(&client),
            Clients::Share(share) => self.draw(&[ordinal]).uniform() < *share,
        };
        to_it && self.toxic.direction.is_none_or(|only| only == direction)
    }

    /// Whether it stands between everybody and the server: no handshake gets through either.
    pub(super) fn cuts_everybody_off(&self) -> bool {
        self.toxic.kind == ToxicKind::Partition && self.toxic.clients == Clients::All
    }

    /// A link's bucket; `None`: this is no throttle of a link.
    pub(super) fn with_link<T>(
        &self,
        direction: Direction,
        act: impl FnOnce(&mut Bucket) -> T,
    ) -> Option<T> {
        let bucket = &self.link.as_ref()?[direction.index()];
        Some(act(&mut bucket
            .lock()
            .unwrap_or_else(PoisonError::into_inner)))
    }

    /// The numbers for one place, which are its own.
    pub(super) fn draw(&self, place: &[u64]) -> SplitMix {
        SplitMix::new(seed::place(self.stream, place))
    }

    /// By how much it delays what has this place: a segment, a datagram, an end.
    pub(super) fn delay(&self, place: &[u64]) -> Duration {
        match self.toxic.kind {
            ToxicKind::Delay { by, jitter } => delayed(by, jitter, || self.draw(place)),
            ToxicKind::Lose { retransmit, .. } => stalled(retransmit, self.losses(place)),
            _ => Duration::ZERO,
        }
    }

    /// How often in a row the segment of this place is lost.
    pub(super) fn losses(&self, place: &[u64]) -> u32 {
        let ToxicKind::Lose { share, .. } = self.toxic.kind else {
            return 0;
        };
        let mut random = self.draw(place);
        let mut losses = 0;
        while losses < MOST_LOSSES && random.uniform() < share {
            losses += 1;
        }
        losses
    }

    /// The longest that it holds something, but for the tails of what it draws.
    pub(super) fn reach(&self) -> Duration {
        match self.toxic.kind {
            ToxicKind::Delay { by, jitter } => {
                by + match jitter {
                    Jitter::None => Duration::ZERO,
                    Jitter::Uniform(jitter) => jitter,
                    Jitter::Normal(jitter) | Jitter::Exponential(jitter) => 3 * jitter,
                }
            }
            ToxicKind::Lose { retransmit, .. } => 3 * retransmit,
            _ => Duration::ZERO,
        }
    }
}

/// A delay with its jitter, which may not be drawn at all.
fn delayed(by: Duration, jitter: Jitter, random: impl FnOnce() -> SplitMix) -> Duration {
    let (scale, factor) = match jitter {
        Jitter::None => return by,
        Jitter::Uniform(scale) => (scale, 2.0 * random().uniform() - 1.0),
        Jitter::Normal(scale) => (scale, random().normal().clamp(-3.0, 3.0)),
        Jitter::Exponential(scale) => (scale, random().exponential().min(10.0)),
    };
    let varied = scale.mul_f64(factor.abs());
    match factor < 0.0 {
        true => by.saturating_sub(varied),
        false => by + varied,
    }
}

/// How late a segment is that was lost so often: each retransmission waits twice as long as the
/// one before.
fn stalled(retransmit: Duration, losses: u32) -> Duration {
    (0..losses)
        .map(|n| (retransmit * 2_u32.pow(n)).min(LONGEST_RETRANSMIT.max(retransmit)))
        .sum()
}

#[cfg(test)]
pub(super) mod tests;
