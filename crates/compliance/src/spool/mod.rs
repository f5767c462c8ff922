//! What waits on the disk until a server takes it: runs of an agent, uploads of the nodes behind
//! a relay.

mod backoff;
mod folder;
mod queue;

pub(crate) use backoff::Backoff;
pub(crate) use folder::Folder;
pub use queue::Bounds;
pub(crate) use queue::{Admitted, Done, Entry, Full, Outcome, Queue};
