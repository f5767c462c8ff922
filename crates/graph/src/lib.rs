//! Service graphs: any directed acyclic graph of services, each of which does calibrated
//! work and calls others. Where the latency of a request goes is for [`traces`] to say.
//!
//! ```text
//! file ──topology──▶ Topology ──script──▶ Program (one for each endpoint)
//!                                            │ actions      ▲ outcomes
//! client ──▶ service (thread per core, many services a thread) ──▶ other services
//!               │ work (calibrated)          │ spans
//!               ▼                            ▼
//!            workers                 trace (recorded, sent on) ──▶ crate traces
//! ```
//!
//! `topology` and `script` do no I/O: time and randomness
//! come in as arguments. What a request does follows from the seed and its trace context
//! alone (see [`draw`]), whatever runs beside it.
//!
//! # What always holds
//!
//! - What a request does follows from the seed and its trace context, and from nothing else; virtual
//!   time makes the very spans of the real run.
//! - An instance lives on one thread: its listener, connections and requests take no lock. Long work
//!   goes to its workers through bounded queues and comes back through an inbox.
//! - One request, one revision: the entry decides which profile a request runs under and the wire
//!   carries it on; a profile is swapped whole, and the newest four are kept.
//! - Work is what it takes, never how long it lasts: no work looks at the wall clock to know when it
//!   is done; what passed beyond its processor time is reported.

pub mod admin;
pub mod amount;
pub mod analysis;
pub mod background;
pub mod draw;
pub mod kubernetes;
pub mod metrics;
pub mod noise;
pub mod placement;
pub mod probe;
pub mod processes;
pub mod profile;
#[cfg(test)]
#[path = "../../traces/src/samples.rs"]
mod samples;
pub mod script;
pub mod service;
pub mod topology;
pub mod trace;
pub mod work;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks, whoever panicked with the lock held: no change is made by halves under one.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Nanoseconds of the monotonic clock that all processes of a machine share
/// (`wire::clock::now`), or a length of time on it.
pub use traces::Nanos;
