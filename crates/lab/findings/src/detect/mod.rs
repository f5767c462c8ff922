//! What limited a system: one pure function for each kind of cause.
//!
//! Each looks at what was recorded of one part and says nothing, or one [`Finding`](crate::Finding) with its
//! evidence. Thresholds are such that a run in which nothing is wrong is accused by one of them in one of two
//! hundred; what they rest on stands beside them. Values that are not finite, and series too
//! short to tell, make nothing.

mod beat;
mod connections;
mod drops;
mod exhaustion;
mod generator;
mod growth;
mod pool;
mod processor;
mod queue;
mod resample;
mod retries;
mod stalls;

#[cfg(test)]
mod tests;

pub use connections::{ConnectionCounts, connections, handshakes};
pub use drops::{DatagramCounts, drops};
pub use exhaustion::{ResourceUse, exhaustion};
pub use generator::{GeneratorUse, generator};
pub use growth::{LoopTurns, growth};
pub use pool::{Phase, pool};
pub use processor::{ProcessUse, ThreadUse, processor};
pub use queue::{QueueLevels, queue};
pub use retries::{AttemptCounts, repeats, retries};
pub use stalls::{SlotLatencies, stalls};
