//! The endpoints of one route.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use arc_swap::{ArcSwap, Guard};

use super::members::Members;
use super::{Endpoint, Nanos};

/// How an endpoint is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// One after the other.
    RoundRobin,
    /// The one with the fewest requests in flight.
    LeastConnection,
    /// By the hash of a header's value.
    Hash,
}

/// What the latest registration says about a whole route.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PoolSettings {
    /// Where requests go first (section 5); empty: straight to the endpoints.
    pub route_service_url: Box<str>,
    /// How to choose; `None`: as the router does.
    pub algorithm: Option<Algorithm>,
    /// The header to hash; empty: none.
    pub hash_header: Box<str>,
    /// Requests in flight above the average by more than this factor send a request to
    /// the next endpoint; 0: never.
    pub hash_balance: f64,
}

impl PoolSettings {
    /// Whether endpoints are chosen by hash.
    pub(super) fn hashes(&self) -> bool {
        self.algorithm == Some(Algorithm::Hash)
    }
}

/// The endpoints of one route. One pool stays while endpoints come and go; only when what
/// is said about the whole route changes does another one take its place.
#[derive(Debug)]
pub struct Pool {
    key: Box<str>,
    settings: Arc<PoolSettings>,
    members: ArcSwap<Members>,
    /// When it lost its last endpoint.
    emptied: AtomicU64,
    /// Where round robin goes on.
    cursor: AtomicU32,
}

/// The endpoints of a pool at one moment. It costs no count of references; drop it soon.
#[derive(Debug)]
pub struct Endpoints(Guard<Arc<Members>>);

impl Deref for Endpoints {
    type Target = [Arc<Endpoint>];

    fn deref(&self) -> &Self::Target {
        self.0.as_slice()
    }
}

impl Endpoints {
    /// The list itself.
    pub(crate) fn members(&self) -> &Members {
        &self.0
    }
}

impl Pool {
    pub(super) fn new(
        key: &str,
        settings: Arc<PoolSettings>,
        members: Arc<Members>,
        cursor: u32,
    ) -> Self {
        Self {
            key: key.into(),
            settings,
            members: ArcSwap::new(members),
            emptied: AtomicU64::new(0),
            cursor: AtomicU32::new(cursor),
        }
    }

    /// The route's key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The path behind the host, or `/`.
    pub fn context_path(&self) -> &str {
        self.key.find('/').map_or("/", |slash| &self.key[slash..])
    }

    /// What the latest registration said about the route.
    pub fn settings(&self) -> &PoolSettings {
        &self.settings
    }

    /// The endpoints as they are now.
    pub fn endpoints(&self) -> Endpoints {
        Endpoints(self.members.load())
    }

    /// Puts other endpoints in place of all.
    pub(super) fn set_members(&self, members: Members, now: Nanos) {
        if members.as_slice().is_empty() {
            self.emptied.store(now, Ordering::Relaxed);
        }
        self.members.store(Arc::new(members));
    }

    /// When it lost its last endpoint, if it is empty.
    pub(super) fn emptied_at(&self) -> Nanos {
        self.emptied.load(Ordering::Relaxed)
    }

    /// A pool of the same route with other settings and endpoints.
    pub(super) fn succeeded(&self, settings: Arc<PoolSettings>, members: Members) -> Self {
        let cursor = self.cursor.load(Ordering::Relaxed);
        Self::new(&self.key, settings, Arc::new(members), cursor)
    }

    /// Where round robin goes on; `steps` further for who comes next.
    pub(crate) fn advance(&self, steps: u32) -> u32 {
        self.cursor.fetch_add(steps, Ordering::Relaxed)
    }
}
