//! The endpoints of one route.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use arc_swap::{ArcSwap, Guard};

use super::key::{KeyText, RouteKey};
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
    /// How far callers may be from an endpoint: `any`, `org` or `space`; empty: anyone may
    /// call.
    pub policy_scope: Box<str>,
    /// Who may call, if there is a scope: `cf:any`, `cf:app:<guid>`, `cf:space:<guid>` and
    /// `cf:org:<guid>`, with commas between them.
    pub policies: Box<str>,
}

impl PoolSettings {
    /// Whether endpoints are chosen by hash.
    pub(super) fn hashes(&self) -> bool {
        self.algorithm == Some(Algorithm::Hash)
    }
}

/// The endpoints of one route. One pool stays while endpoints come and go; only when what
/// is said about the whole route changes does another one take its place.
// In this order, most lookups read one or two lines of the cache.
#[derive(Debug)]
#[repr(C)]
pub struct Pool {
    key: KeyText,
    /// When it lost its last endpoint, or that it has one.
    emptied: AtomicU64,
    members: ArcSwap<Members>,
    settings: Arc<PoolSettings>,
    /// Where round robin goes on.
    cursor: AtomicU32,
    /// The path as it was first registered, where the key has another one.
    path: Option<Box<str>>,
}

/// A pool is not empty.
const NOT_EMPTY: Nanos = Nanos::MAX;

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
        key: &RouteKey<'_>,
        settings: Arc<PoolSettings>,
        members: Arc<Members>,
        cursor: u32,
    ) -> Self {
        let (key, path) = (key.as_str(), key.path());
        let known = key.find('/').map_or("/", |slash| &key[slash..]);
        Self {
            path: (path != known).then(|| path.into()),
            key: KeyText::new(key),
            settings,
            emptied: AtomicU64::new(NOT_EMPTY),
            members: ArcSwap::new(members),
            cursor: AtomicU32::new(cursor),
        }
    }

    /// The route's key.
    pub fn key(&self) -> &str {
        self.key.as_str()
    }

    /// The route's key as bytes, which costs less.
    pub(crate) fn key_bytes(&self) -> &[u8] {
        self.key.as_bytes()
    }

    /// The route's host.
    pub fn host(&self) -> &str {
        let key = self.key();
        key.find('/').map_or(key, |slash| &key[..slash])
    }

    /// The path behind the host as it was first registered, or `/`.
    pub fn context_path(&self) -> &str {
        if let Some(path) = &self.path {
            return path;
        }
        let key = self.key();
        key.find('/').map_or("/", |slash| &key[slash..])
    }

    /// What the latest registration said about the route.
    pub fn settings(&self) -> &PoolSettings {
        &self.settings
    }

    /// The endpoints as they are now.
    pub fn endpoints(&self) -> Endpoints {
        Endpoints(self.members.load())
    }

    /// Whether it has no endpoint.
    pub fn is_empty(&self) -> bool {
        self.emptied.load(Ordering::Relaxed) != NOT_EMPTY
    }

    /// Puts other endpoints in place of all.
    pub(super) fn set_members(&self, members: Members, now: Nanos) {
        let emptied = if members.as_slice().is_empty() {
            now.min(NOT_EMPTY - 1)
        } else {
            NOT_EMPTY
        };
        self.members.store(Arc::new(members));
        self.emptied.store(emptied, Ordering::Relaxed);
    }

    /// When it lost its last endpoint; `None`: it has one.
    pub(super) fn emptied_at(&self) -> Option<Nanos> {
        Some(self.emptied.load(Ordering::Relaxed)).filter(|at| *at != NOT_EMPTY)
    }

    /// Entries of its lists: what it takes in memory beside itself.
    pub(super) fn entries(&self) -> usize {
        let members = self.members.load();
        members.as_slice().len() + members.maglev().map_or(0, <[u32]>::len)
    }

    /// A pool of the same route with other settings and endpoints.
    pub(super) fn succeeded(&self, settings: Arc<PoolSettings>, members: Members) -> Self {
        Self {
            key: KeyText::new(self.key()),
            settings,
            emptied: AtomicU64::new(NOT_EMPTY),
            members: ArcSwap::from_pointee(members),
            cursor: AtomicU32::new(self.cursor.load(Ordering::Relaxed)),
            path: self.path.clone(),
        }
    }

    /// Where round robin goes on; `steps` further for who comes next.
    pub(crate) fn advance(&self, steps: u32) -> u32 {
        self.cursor.fetch_add(steps, Ordering::Relaxed)
    }
}
