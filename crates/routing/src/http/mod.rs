//! The HTTP router.
//!
//! ```text
//! engine (sockets, a thread per core) ──▶ pipeline (pure): may it pass, what is sent on,
//!        │                                 what comes back, which line is logged
//!        └── selection, table: which endpoint
//! ```

pub mod access_log;
mod active_apps;
pub mod app_latencies;
pub mod counters;
pub mod engine;
mod envelopes;
pub mod identity;
pub mod metrics;
pub mod pipeline;
mod route_service;
pub mod router;
pub mod settings;
pub mod settings_file;
pub mod status;
