//! Which endpoints serve a host and a path.
//!
//! Readers never wait for writers, and writers never wait for readers: what a lookup
//! finds is immutable, or an atomic number.

mod endpoint;
mod key;
mod pool;

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

pub use endpoint::{BackendProtocol, Endpoint, EndpointState, Modification};
pub use key::{RouteKey, RouteKeyError};
pub use pool::{Algorithm, Pool, PoolSettings};

/// Nanoseconds of a monotonic clock, as [`wire::clock::now`] gives them; only differences
/// have a meaning.
pub type Nanos = u64;

/// How a table behaves.
#[derive(Debug, Clone, PartialEq)]
pub struct TableSettings {
    /// An endpoint without TLS that nobody refreshed for so long is pruned, and the longest
    /// time that a registration may ask for. `droplet_stale_threshold`, 120 s.
    pub stale_after: Duration,
    /// A pool that lost its last endpoint answers 503 for so long before its route is gone.
    /// `empty_pool_timeout`, 0.
    pub empty_pool_stays: Duration,
    /// Which isolation segments are taken.
    pub segments: Segments,
}

impl Default for TableSettings {
    fn default() -> Self {
        Self {
            stale_after: Duration::from_secs(120),
            empty_pool_stays: Duration::ZERO,
            segments: Segments::All,
        }
    }
}

/// Which isolation segments a router serves (`routing_table_sharding_mode`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segments {
    /// Every endpoint (`all`).
    All,
    /// Endpoints of these segments (`segments`).
    Only(Vec<String>),
    /// Those, and endpoints without a segment (`shared-and-segments`).
    SharedAnd(Vec<String>),
}

/// What became of a registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Registered {
    /// The endpoint is new in its pool; `route` when the pool is new too.
    Added {
        /// Whether nobody had registered this route before.
        route: bool,
    },
    /// The endpoint was there and differs now.
    Updated,
    /// The endpoint was there, alike: only its age began anew.
    Refreshed,
    /// Its isolation segment is not served here, or it is older than what is known.
    Ignored,
}

/// What became of an unregistration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unregistered {
    /// The endpoint is gone; `route` when its pool is gone with it.
    Removed {
        /// Whether it was the route's last endpoint, and the route is gone.
        route: bool,
    },
    /// There is no such endpoint, or it is newer.
    Ignored,
}

/// What a lookup found.
#[derive(Debug, Clone)]
pub enum Lookup {
    /// A pool with endpoints.
    Found(Arc<Pool>),
    /// Pools match, and all of them are empty: the longest.
    Empty(Arc<Pool>),
    /// No route.
    Nothing,
}

/// The routes of a router.
#[derive(Debug)]
pub struct Table {
    settings: TableSettings,
    pools: RwLock<BTreeMap<Box<str>, Arc<Pool>>>,
}

impl Table {
    /// A table without routes.
    pub fn new(settings: TableSettings) -> Self {
        Self {
            settings,
            pools: RwLock::default(),
        }
    }

    /// Adds an endpoint to the route `key`, or refreshes it. Endpoints of a pool are told
    /// apart by their `host:port`. `pool` is what the latest endpoint says about the whole
    /// route: the last writer wins.
    pub fn register(
        &self,
        key: &RouteKey<'_>,
        endpoint: Endpoint,
        pool: &PoolSettings,
        now: Nanos,
    ) -> Registered {
        let mut pools = self.pools.write().unwrap_or_else(PoisonError::into_inner);
        let known = pools.get(key.as_str());
        let route = known.is_none();
        let endpoints = known.map(|pool| pool.endpoints().to_vec());
        let mut endpoints = endpoints.unwrap_or_default();
        endpoint.state.refreshed(now);
        endpoints.retain(|other| other.identity() != endpoint.identity());
        endpoints.push(Arc::new(endpoint));
        let pool = Pool::new(key.as_str(), pool.clone(), endpoints);
        pools.insert(key.as_str().into(), Arc::new(pool));
        Registered::Added { route }
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
        let (_, _) = (modification, now);
        let mut pools = self.pools.write().unwrap_or_else(PoisonError::into_inner);
        let Some(pool) = pools.get(key.as_str()) else {
            return Unregistered::Ignored;
        };
        let mut endpoints = pool.endpoints().to_vec();
        let before = endpoints.len();
        endpoints.retain(|endpoint| endpoint.identity() != identity);
        if endpoints.len() == before {
            return Unregistered::Ignored;
        }
        let route = endpoints.is_empty();
        if route {
            pools.remove(key.as_str());
        } else {
            let pool = Pool::new(key.as_str(), pool.settings().clone(), endpoints);
            pools.insert(key.as_str().into(), Arc::new(pool));
        }
        Unregistered::Removed { route }
    }

    /// The pool for a request: `host` as in its Host field (with or without port), `path`
    /// as on the request line, escapes kept; a query is ignored.
    pub fn lookup(&self, host: &[u8], path: &[u8]) -> Lookup {
        let pools = self.pools.read().unwrap_or_else(PoisonError::into_inner);
        let (Ok(host), Ok(path)) = (std::str::from_utf8(host), std::str::from_utf8(path)) else {
            return Lookup::Nothing;
        };
        let host = host.split(':').next().unwrap_or_default();
        let path = path.split('?').next().unwrap_or_default();
        let full = format!("{host}{path}").to_ascii_lowercase();
        let mut end = full.trim_end_matches('/').len();
        loop {
            if let Some(pool) = pools.get(&full[..end]) {
                return Lookup::Found(Arc::clone(pool));
            }
            match full[..end].rfind('/') {
                Some(slash) => end = slash,
                None => return Lookup::Nothing,
            }
        }
    }

    /// Every pool with its key, in no order, as it is now.
    pub fn pools(&self) -> Vec<Arc<Pool>> {
        let pools = self.pools.read().unwrap_or_else(PoisonError::into_inner);
        pools.values().cloned().collect()
    }

    /// Routes, those with an empty pool included.
    pub fn len(&self) -> usize {
        let pools = self.pools.read().unwrap_or_else(PoisonError::into_inner);
        pools.len()
    }

    /// Whether there is no route.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How this table behaves.
    pub fn settings(&self) -> &TableSettings {
        &self.settings
    }
}
