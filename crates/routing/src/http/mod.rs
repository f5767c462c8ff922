//! The HTTP router.
//!
//! ```text
//! engine (sockets, a thread per core) ──▶ pipeline (pure): may it pass, what is sent on,
//!        │                                 what comes back, which line is logged
//!        └── selection, table: which endpoint
//! ```

pub mod access_log;
pub mod pipeline;
mod route_service;
pub mod settings;
