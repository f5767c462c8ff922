//! The requests in hand of one thread: where they are, and when to look at them again.

use std::sync::Arc;

use wire::slab::Key;

use super::flight::{Active, Flight, Open};
use super::plan::Plan;
use crate::Nanos;
use wire::timed::Timed;

/// Requests whose memory is kept for the next ones.
const SPARE: usize = 256;

/// See the module.
#[derive(Default)]
pub(super) struct Flights {
    /// With the first thing that each waits for which ends by time.
    all: Timed<Active>,
    #[expect(clippy::vec_box, reason = "flights are large, and move in and out")]
    spare: Vec<Box<Flight>>,
}

impl Flights {
    /// A request that runs under a plan. It has a place, into which it is put.
    pub(super) fn begin(&mut self, plan: Arc<Plan>) -> Active {
        Active {
            key: self.all.values.reserve(),
            plan,
            flight: self.spare.pop().unwrap_or_default(),
        }
    }

    /// Takes a request out of its place, until [`Flights::put`] or [`Flights::forget`].
    pub(super) fn take(&mut self, key: Key) -> Option<Active> {
        self.all.values.take(key)
    }

    /// Puts a request back into its place, or forgets it if all of it has ended.
    pub(super) fn put(&mut self, active: Active) {
        if active.flight.concluded && active.flight.request.is_finished() {
            self.forget(active);
        } else {
            self.all.values.put(active.key, active);
        }
    }

    /// Forgets a request that is out of its place, and keeps its memory for another one.
    pub(super) fn forget(&mut self, active: Active) {
        self.all.release(active.key);
        let mut flight = active.flight;
        if self.spare.len() < SPARE {
            flight.clear();
            self.spare.push(flight);
        }
    }

    /// A request waits for something that ends by time.
    pub(super) fn wait(&mut self, active: &mut Active, open: Open) {
        active.flight.open.push(open);
        self.all.deadlines.lower(active.key.index(), open.until);
    }

    /// Puts a request back of which all was done whose time had come.
    pub(super) fn put_until_next(&mut self, active: Active) {
        let next = active.flight.next();
        self.all.deadlines.lower(active.key.index(), next);
        self.put(active);
    }

    /// Takes out a request that waits for something whose time has come.
    pub(super) fn take_late(&mut self, now: Nanos) -> Option<Active> {
        let key = self.all.late(now)?;
        self.take(key)
    }

    pub(super) fn next_deadline(&self) -> Nanos {
        self.all.next_deadline()
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.all.values.taken()
    }

    /// All that there are now.
    pub(super) fn keys(&self) -> Vec<Key> {
        self.all.keys()
    }
}
