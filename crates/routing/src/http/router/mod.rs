//! A whole HTTP router: data path, feeds, status and metrics.
//!
//! ```text
//! settings ─▶ run: status ─▶ feeds ─▶ gather routes ─▶ engine ─▶ healthy ─▶ signals
//!                   503        NATS, file, API           threads    200      drain, stop
//! ```
//!
//! The data path has threads of its own. Everything else shares the caller's tokio runtime
//! and is idle most of the time.

mod component;
mod drain;
mod feeds;
mod log_losses;
mod run;
mod servers;
mod settings;
mod shrink_detector;

pub use crate::peer_tls::TlsPartError;
pub use feeds::FeedError;
pub use routing_api::client::{ClientSettings as RoutingApiSettings, PeerTls, TokenSettings};
pub use run::{Router, RouterError, Signal, run};
pub use settings::{DrainSettings, NatsSettings, RouterSettings, StatusSettings};
