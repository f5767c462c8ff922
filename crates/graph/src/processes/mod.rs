//! A process for each instance of a graph: started callees first, so that whoever is ready
//! can call; watched; ended with the process that started them, whatever ends that.
//!
//! A child says that it is ready by a line of its log (see [`Announcement`]). Nothing else
//! is agreed on: it is our own program, `headroom graph service`.

mod announcement;
mod child;
mod group;
mod published;
#[cfg(test)]
mod tests;

use std::time::Duration;

pub use announcement::{Announcement, READY};
pub use child::{Child, State};
pub use group::{ProcessGroup, Start};
pub use published::Published;

/// Longest wait for a child to be ready.
pub const READY_WITHIN: Duration = Duration::from_secs(30);

/// Children that start at once.
const AT_ONCE: usize = 16;

/// Why the processes of a graph did not start. Those that had are ended.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// There is no such program, or there are no processes left.
    #[error("start the process of {name}: {found}")]
    Start {
        /// The instance.
        name: String,
        /// What went wrong.
        found: processes::StartError,
    },
    /// It ended before it was ready.
    #[error(
        "start the process of {name}: it ended before it was ready ({how}); what it said stands above"
    )]
    Ended {
        /// The instance.
        name: String,
        /// How it ended.
        how: String,
    },
    /// It was not ready in time.
    #[error(
        "start the process of {name}: it was not ready within {} s; the machine may be too busy",
        READY_WITHIN.as_secs()
    )]
    Late {
        /// The instance.
        name: String,
    },
}
