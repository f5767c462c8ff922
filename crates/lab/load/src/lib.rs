//! What load is asked for, and what was seen of it.
//!
//! Pure: no socket, no file, no clock. A [`Workload`] and its [`Segment`]s say what a
//! generator shall do; [`Recorded`] is what it saw; everything between the two that
//! touches the machine stands in `lab/generator`, behind [`Generate`].

pub mod arrivals;
mod draw;
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
    Connections, GuardLimits, Pace, Protocol, Share, Target, TlsSettings, Workload,
};
