//! The TCP router: ports (and names within TLS) to backends.
//!
//! ```text
//! routing API, file, tests ──Change──▶ router ──▶ table (pure)
//!                                        │ routes of a port, swapped as a whole
//!                                        ▼
//! clients ──▶ listeners ──▶ engine (thread per core) ──▶ backends
//! ```
//!
//! A change swaps what a port's next connections see. Established connections never
//! notice: they hold their backend, not the table.

pub mod counters;
pub mod engine;
pub mod fixed;
mod router;
pub mod routes_file;
mod settings;
pub mod settings_file;
pub mod table;

pub use engine::EngineError;
pub use fixed::FixedRoute;
pub use router::{CHANGES, TcpRouter, TcpRouterError, run};
pub use routing_api::model::TcpMapping;
pub use settings::{StatusTlsSettings, TcpSettings, TerminationSettings};

/// A change of the TCP routes, as a feed tells it. What is written may be there already; behind a
/// whole list, which takes away all others, a feed sends what happened while it was made.
pub type Change = routing_api::client::Update<TcpMapping>;
