//! A process for each instance of a graph: started callees first, so that whoever is ready
//! can call; watched; ended with the process that started them, whatever ends that.
//!
//! A child says that it is ready by a line of its log (see [`Announcement`]). Nothing else
//! is agreed on: it is our own program, `headroom graph service`.

mod announcement;
mod child;
mod family;
mod lines;
#[cfg(test)]
mod tests;

use std::io;
use std::time::Duration;

pub use announcement::{Announcement, READY};
pub use child::{Member, State};
pub use family::{Family, Start};

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
        /// What the system says.
        found: io::Error,
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

/// Ends the calling process with the one that started it, even when that is killed. To be
/// called by a child, which was told its parent's number, before it does anything else.
///
/// The kernel watches the thread that started the child, so that must last as long as its
/// process.
///
/// # Errors
/// When the parent has ended already.
pub fn end_with_parent(parent: u32) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    let now = rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get());
    match u32::try_from(now) == Ok(parent) {
        true => Ok(()),
        false => Err(io::Error::other(format!(
            "the process {parent} that started this one has ended"
        ))),
    }
}
