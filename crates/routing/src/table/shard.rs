//! A part of the routes: a hash table that is read without a lock.
//!
//! Slots are probed one after the other. The hash beside each pool tells a reader which
//! ones are worth a look. One writer at a time fills slots, each of them once, and marks
//! those whose route is gone; a slot that was used is never marked as unused, so a reader who
//! walks from a key's first slot to an unused one cannot miss a route. When the slots run out,
//! the writer builds others without those of gone routes and puts them in place of these; and
//! fewer when most of the routes have gone.
//!
//! A slot that is filled once needs no count of its readers: whoever holds the slots holds
//! the pools. With an `ArcSwapOption` in each, every store and every drop of a slot looked at
//! what each thread reads: some three times for a new route, as slots grow.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use arc_swap::{ArcSwap, Guard};

use super::Pool;

/// Some of the routes: all those of a host are in the same shard.
#[derive(Debug)]
pub(super) struct Shard {
    slots: ArcSwap<Slots>,
    /// Bit n: there was a route whose path has n segments since the slots were built. The
    /// last bit stands for all longer paths.
    depths: AtomicU64,
    occupancy: Mutex<Occupancy>,
}

/// How full the slots are.
#[derive(Debug, Default)]
struct Occupancy {
    routes: usize,
    /// Slots that are or were in use.
    used: usize,
    /// Entries of the lists that stay with pools whose place another one took.
    kept: usize,
}

/// Slots, a power of two of them; at least a quarter is always unused.
#[derive(Debug)]
pub(super) struct Slots(Box<[Slot]>);

/// Room for a route. A reader who passes by reads the mark only, and the pool if it is the
/// right one.
#[derive(Debug, Default)]
struct Slot {
    mark: AtomicU64,
    /// Stays when the route is gone, as long as the slots.
    pool: OnceLock<Arc<Pool>>,
}

/// Mark of a slot that was never used.
const UNUSED: u64 = 0;
/// Mark of a slot whose route is gone.
const GONE: u64 = 1;

/// The mark of a key's slot: its hash.
fn mark(hash: u64) -> u64 {
    hash.max(GONE + 1)
}

impl Slots {
    fn new(slots: usize) -> Self {
        let unused = std::iter::repeat_with(Slot::default);
        Self(unused.take(slots).collect())
    }

    /// Every slot in the order in which a key meets them.
    fn probe(&self, mark: u64) -> impl Iterator<Item = &Slot> {
        let (before, from) = self.0.split_at(mark as usize & (self.0.len() - 1));
        from.iter().chain(before)
    }

    /// The slot of `key` with its pool.
    fn find_slot(&self, hash: u64, key: &[u8]) -> Option<(&Slot, &Arc<Pool>)> {
        let wanted = mark(hash);
        for slot in self.probe(wanted) {
            // Pairs with the release in `fill`: who sees the mark sees the pool.
            let found = slot.mark.load(Ordering::Acquire);
            if found == wanted {
                if let Some(pool) = slot.pool.get().filter(|it| it.key_bytes() == key) {
                    return Some((slot, pool));
                }
            } else if found == UNUSED {
                return None;
            }
        }
        None
    }

    /// The pool of `key`.
    pub(super) fn find(&self, hash: u64, key: &[u8]) -> Option<&Arc<Pool>> {
        self.find_slot(hash, key).map(|(_, pool)| pool)
    }

    /// Puts `pool` into the first unused slot. There is one: a quarter of them is unused.
    fn fill(&self, mark: u64, pool: Arc<Pool>) {
        let mut probe = self.probe(mark);
        if let Some(slot) = probe.find(|slot| slot.mark.load(Ordering::Relaxed) == UNUSED) {
            // It is empty: whoever fills a slot marks it.
            let _ = slot.pool.set(pool);
            slot.mark.store(mark, Ordering::Release);
        }
    }

    /// Every pool with its mark.
    fn pools(&self) -> impl Iterator<Item = (u64, &Arc<Pool>)> {
        self.0.iter().filter_map(|slot| {
            let mark = slot.mark.load(Ordering::Acquire);
            let pool = slot.pool.get().filter(|_| mark > GONE)?;
            Some((mark, pool))
        })
    }
}

impl Shard {
    /// Slots of a shard without routes.
    const FEWEST_SLOTS: usize = 4;
    /// A shard with more slots than this for each route gets smaller. Behind that it has two
    /// to four for each: it takes as many changes again as it has routes until the next time.
    const MOST_SLOTS_A_ROUTE: usize = 8;

    /// A shard without routes.
    pub(super) fn new() -> Self {
        Self {
            slots: ArcSwap::from_pointee(Slots::new(Self::FEWEST_SLOTS)),
            depths: AtomicU64::new(0),
            occupancy: Mutex::default(),
        }
    }

    /// The routes, to be looked up.
    pub(super) fn slots(&self) -> Guard<Arc<Slots>> {
        self.slots.load()
    }

    /// How many segments paths have here: bit n stands for n of them.
    pub(super) fn depths(&self) -> u64 {
        self.depths.load(Ordering::Relaxed)
    }

    /// Every pool. Waits for a writer, who may have a route in two slots for a moment.
    pub(super) fn pools(&self) -> Vec<Arc<Pool>> {
        self.write().pools()
    }

    /// Slots, used or not.
    #[cfg(test)]
    pub(super) fn room(&self) -> usize {
        self.slots.load().0.len()
    }

    /// Keeps other writers away. Readers do not notice.
    pub(super) fn write(&self) -> Writer<'_> {
        let occupancy = self.occupancy.lock();
        Writer {
            shard: self,
            // A writer that panicked left slots whole: nothing panics between two stores.
            occupancy: occupancy.unwrap_or_else(PoisonError::into_inner),
        }
    }
}

/// The one who may change a shard.
#[derive(Debug)]
pub(super) struct Writer<'a> {
    shard: &'a Shard,
    occupancy: MutexGuard<'a, Occupancy>,
}

/// The bit of a path's depth.
pub(super) fn depth_bit(segments: usize) -> u64 {
    1 << segments.min(63)
}

fn depth_of(key: &[u8]) -> u64 {
    depth_bit(memchr::memchr_iter(b'/', key).count())
}

impl Writer<'_> {
    /// The pool of `key`.
    pub(super) fn find(&self, hash: u64, key: &str) -> Option<Arc<Pool>> {
        let slots = self.shard.slots.load();
        slots.find(hash, key.as_bytes()).cloned()
    }

    /// Every pool.
    pub(super) fn pools(&self) -> Vec<Arc<Pool>> {
        let slots = self.shard.slots.load();
        slots.pools().map(|(_, pool)| Arc::clone(pool)).collect()
    }

    /// Runs `visit` on the pool of `key`, without counting a reference to it.
    pub(super) fn with<T>(
        &self,
        hash: u64,
        key: &str,
        visit: impl FnOnce(&Pool) -> T,
    ) -> Option<T> {
        let slots = self.shard.slots.load();
        let pool = slots.find(hash, key.as_bytes())?;
        Some(visit(pool))
    }

    /// Adds a pool whose key is not there.
    pub(super) fn insert(&mut self, hash: u64, pool: Arc<Pool>) {
        let slots = self.shard.slots.load();
        self.occupancy.routes += 1;
        if self.is_full(&slots) {
            self.rebuild(&slots, Some((mark(hash), pool)));
        } else {
            let depth = depth_of(pool.key_bytes());
            // Before the route is there: who finds it must have looked for its depth.
            self.shard.depths.fetch_or(depth, Ordering::Relaxed);
            slots.fill(mark(hash), pool);
            self.occupancy.used += 1;
        }
    }

    /// Puts `pool` in place of the one with the same key.
    pub(super) fn replace(&mut self, hash: u64, pool: Arc<Pool>) {
        let mut slots = self.shard.slots.load();
        if self.is_full(&slots) {
            self.rebuild(&slots, None);
            slots = self.shard.slots.load();
        }
        if let Some((old, known)) = slots.find_slot(hash, pool.key_bytes()) {
            // Readers may still hold it, so its lists cannot be taken from it.
            self.occupancy.kept += known.entries();
            // It lies behind the old one, which goes last: a reader meets one of both.
            slots.fill(mark(hash), pool);
            self.occupancy.used += 1;
            old.mark.store(GONE, Ordering::Release);
        }
    }

    /// Whether one more slot in use would leave too few unused ones. Kept entries count as
    /// slots do: of a route with thousands of endpoints, old lists would soon take more memory
    /// than all slots, and to build slots costs no more than these lists did.
    fn is_full(&self, slots: &Slots) -> bool {
        (self.occupancy.used + self.occupancy.kept + 1) * 4 > slots.0.len() * 3
    }

    /// Removes the pool of `key`.
    pub(super) fn remove(&mut self, hash: u64, key: &str) {
        let slots = self.shard.slots.load();
        if let Some((slot, _)) = slots.find_slot(hash, key.as_bytes()) {
            slot.mark.store(GONE, Ordering::Release);
            self.occupancy.routes -= 1;
            let routes = self.occupancy.routes.max(1);
            let most = (routes * Shard::MOST_SLOTS_A_ROUTE).max(Shard::FEWEST_SLOTS);
            if slots.0.len() > most {
                self.rebuild(&slots, None);
            }
        }
    }

    /// Puts slots in place of the old ones that fit the routes, of which `one` may be new.
    /// Readers who are in the old slots go on there.
    fn rebuild(&mut self, old: &Slots, one: Option<(u64, Arc<Pool>)>) {
        let room = (self.occupancy.routes * 2).next_power_of_two();
        let mut depths = 0;
        let slots = Slots::new(room.max(Shard::FEWEST_SLOTS));
        let known = old.pools().map(|(mark, pool)| (mark, Arc::clone(pool)));
        for (mark, pool) in known.chain(one) {
            depths |= depth_of(pool.key_bytes());
            slots.fill(mark, pool);
        }
        self.occupancy.used = self.occupancy.routes;
        self.occupancy.kept = 0;
        self.shard.slots.store(Arc::new(slots));
        self.shard.depths.store(depths, Ordering::Relaxed);
    }
}
