//! Which endpoint of a pool serves a request, and which one its retries.
//!
//! Pure: time and randomness are arguments. Round robin and least connection allocate
//! nothing.

mod choice;
mod instance;
#[cfg(test)]
mod tests;

pub use choice::{Choice, Next};
pub use instance::Instance;

use crate::table::{Algorithm, Endpoint, Pool};

/// How endpoints are chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelectionSettings {
    /// Algorithm of pools that ask for none. By hash only a pool can ask for; here it means
    /// round robin.
    pub algorithm: Algorithm,
    /// Requests in flight to one endpoint at which it is left out; 0: no limit.
    pub in_flight: u32,
    /// This router's zone.
    pub zone: Box<str>,
    /// The first attempt prefers endpoints of the own zone.
    pub prefer_zone: bool,
}

impl Default for SelectionSettings {
    fn default() -> Self {
        Self {
            algorithm: Algorithm::RoundRobin,
            in_flight: 0,
            zone: Box::default(),
            prefer_zone: false,
        }
    }
}

/// What a request asks for beside any endpoint of its pool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SelectionRequest<'a> {
    /// The instance that served this client before.
    pub sticky: Option<Sticky<'a>>,
    /// The only instances that will do.
    pub instance: Option<Instance<'a>>,
    /// The value of the header that the pool hashes; `None`: the request has none.
    pub hash: Option<&'a [u8]>,
}

/// The instance that served a client before (`__VCAP_ID__`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sticky<'a> {
    /// Its `private_instance_id`.
    pub id: &'a [u8],
    /// No other will do, as in the middle of `Authorization: Negotiate`.
    pub must: bool,
}

/// Whether every endpoint has as many requests in flight as it may have. A pool without
/// endpoints is not overloaded.
pub fn is_overloaded(pool: &Pool, limit: u32) -> bool {
    let endpoints = pool.endpoints();
    !endpoints.is_empty() && endpoints.iter().all(|it| is_full(it, limit))
}

/// Whether an endpoint has as many requests in flight as it may have.
fn is_full(endpoint: &Endpoint, limit: u32) -> bool {
    limit > 0 && endpoint.state.in_flight() >= limit
}
