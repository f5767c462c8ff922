//! A toxic on one direction of one connection, or of one UDP client.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::applied::{Applied, Counters};
use super::bucket::Bucket;
use super::toxic::{Direction, RateOf, ToxicKind};

/// A toxic with what it remembers of its path; `M` is what only one protocol has.
#[derive(Debug)]
pub(super) struct OnPath<M> {
    pub(super) applied: Arc<Applied>,
    direction: Direction,
    /// Bytes that it let pass since it was put on.
    pub(super) passed: u64,
    /// A connection's own rate.
    bucket: Option<Bucket>,
    pub(super) memory: M,
}

impl<M> OnPath<M> {
    /// `toxics` are on a path that holds `held_bytes`, instead of those that were. Those that
    /// stay keep what they remember; the memory of others begins anew.
    pub(super) fn replace(
        on: &mut Vec<Self>,
        toxics: Vec<Arc<Applied>>,
        direction: Direction,
        held_bytes: usize,
        remember: impl Fn(&Applied) -> M,
    ) {
        Self::let_go(on, held_bytes);
        let mut before = std::mem::take(on);
        for applied in toxics {
            let same = |on: &Self| Arc::ptr_eq(&on.applied, &applied);
            if let Some(place) = before.iter().position(same) {
                on.push(before.swap_remove(place));
                continue;
            }
            let changed = |on: &Self| Arc::ptr_eq(&on.applied.counters, &applied.counters);
            let is_new = !before.iter().any(changed);
            let bucket = match applied.toxic.kind {
                ToxicKind::Throttle {
                    bytes_per_s,
                    burst_bytes,
                    of: RateOf::Connection,
                } => Some(Bucket::new(bytes_per_s, burst_bytes)),
                _ => None,
            };
            let memory = remember(&applied);
            let new = Self {
                applied,
                direction,
                passed: 0,
                bucket,
                memory,
            };
            let connections = &new.counters().connections;
            connections.fetch_add(u64::from(is_new), Relaxed);
            on.push(new);
        }
        for on in on {
            let held = &on.counters().held_bytes;
            held.fetch_add(held_bytes as u64, Relaxed);
        }
    }

    /// What a path holds stands before its toxics no longer.
    pub(super) fn let_go(on: &[Self], held_bytes: usize) {
        for on in on {
            let held = &on.counters().held_bytes;
            held.fetch_sub(held_bytes as u64, Relaxed);
        }
    }

    pub(super) fn counters(&self) -> &Counters {
        &self.applied.counters[self.direction.index()]
    }

    /// What a rate leaves, of the connection or of the link; `None`: this is no throttle.
    pub(super) fn with_bucket<T>(&mut self, act: impl FnOnce(&mut Bucket) -> T) -> Option<T> {
        match &mut self.bucket {
            Some(bucket) => Some(act(bucket)),
            None => self.applied.with_link(self.direction, act),
        }
    }
}
