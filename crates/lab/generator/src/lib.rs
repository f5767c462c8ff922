//! The load generator: everything between a [`Workload`](lab_load::Workload) and what
//! was [`Recorded`](lab_load::Recorded) that touches the machine.

pub mod calibrate;
mod engine;
mod local;
mod merge;
pub mod workers;

pub use engine::{Due, Outage, Outages};
pub use local::{Local, SampleCounts, SampleLog, Stopper};

/// Loads that are simulated, which integration tests have as well.
#[cfg(test)]
#[path = "../tests/support/simulated.rs"]
#[allow(dead_code, unreachable_pub)]
mod simulated;
