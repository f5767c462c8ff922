//! Service graphs: any directed acyclic graph of services, each of which does calibrated
//! work and calls others; and the analysis of where the latency of a request goes.
//!
//! ```text
//! file ──topology──▶ Topology ──script──▶ Program (one for each endpoint)
//!                                            │ actions      ▲ outcomes
//! client ──▶ service (thread per core, many services a thread) ──▶ other services
//!               │ work (calibrated)          │ spans
//!               ▼                            ▼
//!            workers                 trace (store, OTLP, Zipkin) ──▶ analysis
//! ```
//!
//! `topology`, `script`, `trace`'s formats and `analysis` do no I/O: time and randomness
//! come in as arguments. What a request does follows from the seed and its trace context
//! alone (see [`draw`]), whatever runs beside it.

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
