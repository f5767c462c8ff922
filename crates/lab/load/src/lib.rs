//! What load is asked for, and what was seen of it.
//!
//! Pure: no socket, no file, no clock. A [`Workload`] and its [`Segment`]s say what a
//! generator shall do; [`Recorded`] is what it saw; everything between the two that
//! touches the machine stands in `lab/generator`, behind [`Generate`].
//!
//! # What always holds
//!
//! - A schedule is never stretched. The seed fixes when each request is due before the first of
//!   them; every thread of every worker walks the same schedule and takes its own arrivals. What is
//!   due and not sent is the distance between two walks of it: nothing is queued, so nothing is
//!   dropped and memory does not grow ([`arrivals`]).
//! - Numbers add up. A span of one second, thread and kind adds to those of others; a percentile is
//!   taken at the very end and never averaged.
//! - One [`Generate`]: threads of this process, workers on other machines and simulated queues run
//!   the same segments; the search for the knee is tested on queues whose capacity is known.

pub mod arrivals;
#[cfg(test)]
mod example;
mod generate;
pub mod knee;
pub mod kubernetes;
pub mod output;
pub mod recording;
pub mod request;
mod segment;
pub mod slo;
pub mod steady;
pub mod summary;
mod target;
pub mod validity;
mod workload;

pub use generate::{Flow, Generate, GenerateError};
pub use recording::{Recorded, Span};
pub use segment::{Length, Model, Segment};
pub use slo::Slo;
pub use summary::Summary;
pub use workload::{
    Connections, GuardLimits, Login, Pace, Protocol, Share, Target, TlsSettings, Workload,
};
