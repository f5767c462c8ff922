//! The requests in hand of one thread: where they are, and when to look at them again.

use std::sync::Arc;

use wire::slab::Key;

use super::plan::Plan;
use super::request_state::{ActiveRequest, Open, RequestState};
use crate::Nanos;
use wire::timed::Timed;

/// Requests whose memory is kept for the next ones.
const SPARE: usize = 256;

/// See the module.
#[derive(Default)]
pub(super) struct ActiveRequests {
    /// With the first thing that each waits for which ends by time.
    all: Timed<ActiveRequest>,
    #[expect(clippy::vec_box, reason = "requests are large, and move in and out")]
    spare: Vec<Box<RequestState>>,
}

impl ActiveRequests {
    /// A request that runs under a plan. It has a place, into which it is put.
    pub(super) fn begin(&mut self, plan: Arc<Plan>) -> ActiveRequest {
        ActiveRequest {
            key: self.all.values.reserve(),
            plan,
            state: self.spare.pop().unwrap_or_default(),
        }
    }

    /// Takes a request out of its place, until [`ActiveRequests::put`] or [`ActiveRequests::forget`].
    pub(super) fn take(&mut self, key: Key) -> Option<ActiveRequest> {
        self.all.values.take(key)
    }

    /// Puts a request back into its place, or forgets it if all of it has ended.
    pub(super) fn put(&mut self, active: ActiveRequest) {
        if active.state.concluded && active.state.request.is_finished() {
            self.forget(active);
        } else {
            self.all.values.put(active.key, active);
        }
    }

    /// Forgets a request that is out of its place, and keeps its memory for another one.
    pub(super) fn forget(&mut self, active: ActiveRequest) {
        self.all.release(active.key);
        let mut state = active.state;
        if self.spare.len() < SPARE {
            state.clear();
            self.spare.push(state);
        }
    }

    /// A request waits for something that ends by time.
    pub(super) fn wait(&mut self, active: &mut ActiveRequest, open: Open) {
        active.state.open.push(open);
        self.all.deadlines.lower(active.key.index(), open.until);
    }

    /// Puts a request back of which all was done whose time had come.
    pub(super) fn put_until_next(&mut self, active: ActiveRequest) {
        let next = active.state.next();
        self.all.deadlines.lower(active.key.index(), next);
        self.put(active);
    }

    /// Takes out a request that waits for something whose time has come.
    pub(super) fn take_late(&mut self, now: Nanos) -> Option<ActiveRequest> {
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
