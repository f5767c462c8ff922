//! Heartbeats that are known without being read.
//!
//! Most messages repeat what was said before. An endpoint keeps the [`Fingerprint`] of the
//! message that would change nothing about it or its route; any change of either forgets
//! it. So a message is known again by looking at the endpoint itself: there is nothing
//! beside the table that could be out of date.

use std::sync::atomic::Ordering;

use super::{Endpoint, Fingerprint, Nanos, RouteKey, Table};

/// Endpoints of a route among which one is searched: beyond, to read the message and to go
/// by its address costs less.
const SEARCHED: usize = 16;

impl Table {
    /// Refreshes the endpoint of the route `key` about which a message says nothing new,
    /// and runs `read` on it. `None`: there is no such endpoint; what the message says must
    /// be registered. `fingerprint` gives that of the message; it is asked only if there
    /// are endpoints among which to search.
    pub fn refresh<T>(
        &self,
        key: &RouteKey<'_>,
        fingerprint: impl FnOnce() -> Fingerprint,
        now: Nanos,
        read: impl FnOnce(&Endpoint) -> T,
    ) -> Option<T> {
        let key = key.as_str();
        let (host, hash) = self.hasher.ends(key);
        // Not needed to read, but no change may come between the search and the refresh.
        let writer = self.shard(host).write();
        let found = writer.with(hash, key, |pool| {
            let endpoints = pool.endpoints();
            if endpoints.is_empty() || endpoints.len() > SEARCHED {
                return None;
            }
            let message = fingerprint();
            let known = endpoints
                .iter()
                .find(|it| it.last_fingerprint.is(message))?;
            known.state.refreshed(now);
            Some(read(known))
        });
        let found = found??;
        self.updated.store(now, Ordering::Relaxed);
        Some(found)
    }
}
