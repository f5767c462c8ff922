//! Which endpoints serve a host and a path.
//!
//! ```text
//! Table ──▶ Shard (by host) ──▶ Slots ──▶ Pool (a route) ──▶ Members ──▶ Endpoint
//! ```
//!
//! Readers never wait for writers: whatever an arrow leads to is immutable and replaced as
//! a whole, written once, or an atomic number. Writers wait for each other, one shard at a time.
//! Unchanged heartbeats, most of what a router hears, only store a time.

mod endpoint;
mod hash;
mod key;
mod maglev;
mod members;
mod pool;
mod refresh;
mod registration;
mod request_key;
mod settings;
mod shard;
#[cfg(test)]
mod tests;
mod text;

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hash::KeyHasher;
use members::Members;
use request_key::Target;
use shard::{Shard, Writer, depth_bit};
use text::TextCache;

pub use endpoint::{
    BackendProtocol, Endpoint, EndpointState, Fingerprint, LastFingerprint, Modification,
};
pub use key::{RouteKey, RouteKeyError};
pub use pool::{Algorithm, Endpoints, Pool, PoolSettings};
pub use registration::Registration;
pub use settings::{Bound, Lookup, Pruned, Registered, Segments, TableSettings, Unregistered};
pub use text::{Tags, Text};

pub(crate) use maglev::SLOTS as MAGLEV_SLOTS;

/// Nanoseconds of a monotonic clock, as [`wire::clock::now`] gives them; only differences
/// have a meaning.
pub type Nanos = u64;

/// Shards of a table, a power of two. A shard is what a writer locks and what is copied
/// when it grows: with a million routes, about a thousand of them.
const SHARDS: usize = 1024;

/// Requests for longer keys allocate memory to look them up.
const SHORT_KEY: usize = 512;

/// The routes of a router.
#[derive(Debug)]
pub struct Table {
    settings: TableSettings,
    hasher: KeyHasher,
    shards: Box<[Shard]>,
    texts: Mutex<TextCache>,
    /// What most routes say about themselves: nothing, or what the last one said.
    pool_settings: Mutex<Arc<PoolSettings>>,
    routes: AtomicUsize,
    /// Each counted for every route that has it.
    endpoints: AtomicUsize,
    updated: AtomicU64,
}

impl Table {
    /// A table without routes.
    pub fn new(settings: TableSettings) -> Self {
        Self {
            settings,
            hasher: KeyHasher::default(),
            shards: (0..SHARDS).map(|_| Shard::new()).collect(),
            texts: Mutex::default(),
            pool_settings: Mutex::default(),
            routes: AtomicUsize::new(0),
            endpoints: AtomicUsize::new(0),
            updated: AtomicU64::new(0),
        }
    }

    /// Adds an endpoint to the route `key`, or refreshes it: [`register_with`] of what
    /// `endpoint` and `pool` hold. The endpoint's state is not taken over.
    ///
    /// [`register_with`]: Self::register_with
    pub fn register(
        &self,
        key: &RouteKey<'_>,
        endpoint: Endpoint,
        pool: &PoolSettings,
        now: Nanos,
    ) -> Registered {
        let tags = endpoint.tags.as_deref().map(registration::borrowed);
        let registration = Registration {
            tags: tags.as_deref(),
            ..Registration::of(&endpoint, pool)
        };
        self.register_with(key, &registration, now)
    }

    /// Adds an endpoint to the route `key`, or refreshes it. Endpoints of a route are told
    /// apart by their `host:port`. Of what they say about the whole route, the latest
    /// counts. Of an endpoint that is known and unchanged, only the time is stored.
    pub fn register_with(
        &self,
        key: &RouteKey<'_>,
        registration: &Registration<'_>,
        now: Nanos,
    ) -> Registered {
        if !self.settings.segments.serve(registration.isolation_segment) {
            return Registered::Ignored;
        }
        self.updated.store(now, Ordering::Relaxed);
        let (named, key) = (key, key.as_str());
        let stale_after = self.stale_after(registration);
        let (host, hash) = self.hasher.ends(key);
        let mut writer = self.shard(host).write();
        let refreshed = writer.with(hash, key, |pool| {
            let endpoints = pool.endpoints();
            let known = &endpoints[endpoints.members().position(registration.identity)?];
            let alike = registration.agrees_with(pool.settings())
                && registration.describes(known, stale_after);
            alike.then(|| {
                known.last_fingerprint.set(registration.fingerprint);
                known.state.refreshed(now);
            })
        });
        match refreshed {
            Some(Some(())) => Registered::Refreshed,
            Some(None) => self.update(&mut writer, (hash, key), registration, now),
            None if self.len() >= self.settings.most_routes => {
                Registered::Refused(Bound::Routes(self.settings.most_routes))
            }
            None => {
                if let Some(bound) = self.full() {
                    return Registered::Refused(bound);
                }
                let endpoint = self.endpoint(registration, now, Arc::default());
                let pool = Pool::new(
                    named,
                    self.pool_settings(registration),
                    Arc::new(Members::One(endpoint)),
                    // Where round robin begins is as random as the seed of the hash.
                    hash as u32,
                );
                writer.insert(hash, Arc::new(pool));
                self.routes.fetch_add(1, Ordering::Relaxed);
                self.endpoints.fetch_add(1, Ordering::Relaxed);
                Registered::Added { route: true }
            }
        }
    }

    /// Registers with a known route what is not known, or not alike.
    fn update(
        &self,
        writer: &mut Writer<'_>,
        (hash, key): (u64, &str),
        registration: &Registration<'_>,
        now: Nanos,
    ) -> Registered {
        let Some(pool) = writer.find(hash, key) else {
            return Registered::Ignored;
        };
        let endpoints = pool.endpoints();
        let members = endpoints.members();
        let hashed = registration.algorithm == Some(Algorithm::Hash);
        let (registered, members) = match members.position(registration.identity) {
            None if endpoints.len() >= self.settings.most_endpoints => {
                let most = self.settings.most_endpoints;
                return Registered::Refused(Bound::EndpointsOfRoute(most));
            }
            None => {
                if let Some(bound) = self.full() {
                    return Registered::Refused(bound);
                }
                let endpoint = self.endpoint(registration, now, Arc::default());
                self.endpoints.fetch_add(1, Ordering::Relaxed);
                let added = Registered::Added { route: false };
                (added, members.with(endpoint, hashed))
            }
            Some(at) => {
                let known = &endpoints[at];
                let (guid, index) = (
                    registration.modification_guid,
                    registration.modification_index,
                );
                let alike = registration.describes(known, self.stale_after(registration));
                if !alike && !known.modification.is_before(guid, index) {
                    return Registered::Ignored;
                }
                let state = if known.server_name == registration.server_name {
                    Arc::clone(&known.state)
                } else {
                    Arc::default()
                };
                let endpoint = self.endpoint(registration, now, state);
                let updated = Registered::Updated;
                (updated, members.replaced(at, endpoint, hashed))
            }
        };
        if registration.agrees_with(pool.settings()) {
            pool.set_members(members, now);
        } else {
            // What they said about the route counts again as soon as they repeat it.
            for other in endpoints.iter() {
                other.last_fingerprint.set(None);
            }
            let successor = pool.succeeded(self.pool_settings(registration), members);
            writer.replace(hash, Arc::new(successor));
        }
        registered
    }

    /// Removes the endpoint `identity` (`host:port`) from the route `key`, unless it is
    /// newer than `modification`.
    pub fn unregister(
        &self,
        key: &RouteKey<'_>,
        identity: &str,
        modification: &Modification,
        now: Nanos,
    ) -> Unregistered {
        let key = key.as_str();
        let (host, hash) = self.hasher.ends(key);
        let mut writer = self.shard(host).write();
        let Some(pool) = writer.find(hash, key) else {
            return Unregistered::Ignored;
        };
        let endpoints = pool.endpoints();
        let Some(at) = endpoints.members().position(identity) else {
            return Unregistered::Ignored;
        };
        let known = &endpoints[at].modification;
        if known != modification && !known.succeeded_by(modification) {
            return Unregistered::Ignored;
        }
        let rest = endpoints.members().without(at, pool.settings().hashes());
        let route = rest.as_slice().is_empty() && self.settings.empty_pool_stays.is_zero();
        pool.set_members(rest, now);
        self.endpoints.fetch_sub(1, Ordering::Relaxed);
        if route {
            self.drop_route(&mut writer, hash, key);
        }
        Unregistered::Removed { route }
    }

    /// Removes an endpoint that proved not to be what its route says, until it registers
    /// again. Its pool stays, even without endpoints, until the next [`prune`](Self::prune).
    /// Whether it was there; what has registered under another name meanwhile is not it.
    pub fn remove(&self, pool: &Pool, endpoint: &Endpoint, now: Nanos) -> bool {
        let (host, hash) = self.hasher.ends(pool.key());
        let writer = self.shard(host).write();
        let Some(pool) = writer.find(hash, pool.key()) else {
            return false;
        };
        let endpoints = pool.endpoints();
        let at = endpoints.members().position(&endpoint.identity);
        let Some(at) = at.filter(|at| Arc::ptr_eq(&endpoints[*at].state, &endpoint.state)) else {
            return false;
        };
        let hashed = pool.settings().hashes();
        pool.set_members(endpoints.members().without(at, hashed), now);
        self.endpoints.fetch_sub(1, Ordering::Relaxed);
        true
    }

    /// Removes endpoints that nobody refreshed for too long, and routes that have been
    /// without one for long enough. Other writers wait for one shard at most.
    pub fn prune(&self, now: Nanos) -> Pruned {
        let mut pruned = Pruned::default();
        for shard in &self.shards {
            let mut writer = shard.write();
            for pool in writer.pools() {
                let endpoints = pool.endpoints();
                let stale = endpoints.iter().filter(|it| it.is_stale(now)).count();
                if stale > 0 {
                    let rest = endpoints.iter().filter(|it| !it.is_stale(now));
                    let rest = Members::new(rest.cloned().collect(), pool.settings().hashes());
                    pool.set_members(rest, now);
                    self.endpoints.fetch_sub(stale, Ordering::Relaxed);
                    pruned.endpoints += stale;
                }
                let is_over = |since: Nanos| {
                    let empty_for = Duration::from_nanos(now.saturating_sub(since));
                    empty_for >= self.settings.empty_pool_stays
                };
                if pool.emptied_at().is_some_and(is_over) {
                    let (_, hash) = self.hasher.ends(pool.key());
                    self.drop_route(&mut writer, hash, pool.key());
                    pruned.routes += 1;
                }
            }
        }
        pruned
    }

    /// The age of every endpoint begins anew: for the time after the feeds were away.
    pub fn refresh_all(&self, now: Nanos) {
        for pool in self.pools() {
            for endpoint in pool.endpoints().iter() {
                endpoint.state.refreshed(now);
            }
        }
    }

    /// The pool for a request: `host` as in its Host field (with or without port), `path`
    /// as on the request line, escapes kept; a query is ignored.
    pub fn lookup(&self, host: &[u8], path: &[u8]) -> Lookup {
        let Some(target) = Target::new(host, path) else {
            return Lookup::Nothing;
        };
        let (mut short, mut long);
        let space = if target.space() <= SHORT_KEY {
            short = [0; SHORT_KEY];
            &mut short[..target.space()]
        } else {
            long = vec![0; target.space()];
            &mut long[..]
        };
        let mut key = target.key(space);
        loop {
            match self.longest(key.as_bytes()) {
                Lookup::Nothing if key.next_wildcard() => {}
                found => return found,
            }
        }
    }

    /// The pool of the longest prefix of `key` that has one with endpoints.
    fn longest(&self, key: &[u8]) -> Lookup {
        let (host, mut longer) = self.hasher.host(key);
        let shard = self.shard(host.hash);
        // The depths first: a route that is in the slots has its bit, whoever reads them later.
        let depths = shard.depths();
        let slots = shard.slots();
        let (mut found, mut empty) = (None, None);
        let mut prefix = host;
        loop {
            if depths & depth_bit(prefix.depth) != 0
                && let Some(pool) = slots.find(prefix.hash, &key[..prefix.end])
            {
                match pool.is_empty() {
                    true => empty = Some(pool),
                    false => found = Some(pool),
                }
            }
            if depths < depth_bit(prefix.depth + 1) {
                break;
            }
            let Some(next) = longer.next() else { break };
            prefix = next;
        }
        match (found, empty) {
            (Some(pool), _) => Lookup::Found(Arc::clone(pool)),
            (None, Some(pool)) => Lookup::Empty(Arc::clone(pool)),
            (None, None) => Lookup::Nothing,
        }
    }

    /// Every pool with its key, in no order, as it is now.
    pub fn pools(&self) -> Vec<Arc<Pool>> {
        self.shards.iter().flat_map(Shard::pools).collect()
    }

    /// Routes, those with an empty pool included.
    pub fn len(&self) -> usize {
        self.routes.load(Ordering::Relaxed)
    }

    /// Endpoints of all routes, each counted for every route that has it.
    pub fn endpoints(&self) -> usize {
        self.endpoints.load(Ordering::Relaxed)
    }

    /// The bound at which no route takes a further endpoint, if it is reached.
    fn full(&self) -> Option<Bound> {
        let most = self.settings.most_endpoints_in_all;
        (self.endpoints() >= most).then_some(Bound::Endpoints(most))
    }

    /// Whether there is no route.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// When something was last registered; 0: never.
    pub fn updated_at(&self) -> Nanos {
        self.updated.load(Ordering::Relaxed)
    }

    /// Whole milliseconds since something was last registered; `None` while nothing was.
    pub fn ms_since_update(&self, now: Nanos) -> Option<u64> {
        match self.updated_at() {
            0 => None,
            updated => Some(now.saturating_sub(updated) / 1_000_000),
        }
    }

    /// How this table behaves.
    pub fn settings(&self) -> &TableSettings {
        &self.settings
    }

    fn shard(&self, host: u64) -> &Shard {
        &self.shards[(host >> 54) as usize % SHARDS]
    }

    fn drop_route(&self, writer: &mut Writer<'_>, hash: u64, key: &str) {
        writer.remove(hash, key);
        self.routes.fetch_sub(1, Ordering::Relaxed);
    }

    /// The time that an endpoint may go without a refresh.
    fn stale_after(&self, registration: &Registration<'_>) -> Duration {
        match registration.stale_after {
            Duration::ZERO => self.settings.stale_after,
            asked => asked.min(self.settings.stale_after),
        }
    }

    fn endpoint(
        &self,
        registration: &Registration<'_>,
        now: Nanos,
        state: Arc<EndpointState>,
    ) -> Arc<Endpoint> {
        state.refreshed(now);
        let stale_after = self.stale_after(registration);
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::new(registration.endpoint(&mut texts, stale_after, state))
    }

    fn pool_settings(&self, registration: &Registration<'_>) -> Arc<PoolSettings> {
        let last = self.pool_settings.lock();
        let mut last = last.unwrap_or_else(PoisonError::into_inner);
        if !registration.agrees_with(&last) {
            *last = Arc::new(registration.pool_settings());
        }
        Arc::clone(&last)
    }
}
