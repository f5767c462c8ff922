//! What fills the table: registrations that come over NATS, and routes from a file. And
//! the other side: [`populate()`], which registers routes as a platform does.
//!
//! ```text
//! NATS ──feed──▶ message (pure) ──▶ intake ──▶ table
//! file ────────▶ message ─────────────────────▶ table
//! ```

pub mod announcement;
pub mod counters;
pub mod feed;
pub mod file;
pub mod intake;
pub(crate) mod line_budget;
pub mod message;
pub mod populate;

pub use announcement::Announcement;
pub use counters::{RegistryCounters, RegistryTotals};
pub use feed::{Feed, FeedSettings, MESSAGES};
pub use intake::Intake;
pub use populate::{PopulateSettings, populate};
