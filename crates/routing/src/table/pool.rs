//! The endpoints of one route.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use super::Endpoint;

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

/// The endpoints of one route.
#[derive(Debug)]
pub struct Pool {
    key: Box<str>,
    settings: PoolSettings,
    endpoints: Vec<Arc<Endpoint>>,
    /// Where round robin goes on.
    pub(crate) cursor: AtomicU32,
}

impl Pool {
    pub(super) fn new(key: &str, settings: PoolSettings, endpoints: Vec<Arc<Endpoint>>) -> Self {
        Self {
            key: key.into(),
            settings,
            endpoints,
            cursor: AtomicU32::new(0),
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
    pub fn endpoints(&self) -> &[Arc<Endpoint>] {
        &self.endpoints
    }
}
