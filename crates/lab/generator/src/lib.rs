//! The load generator: everything between a [`Workload`](lab_load::Workload) and what
//! was [`Recorded`](lab_load::Recorded) that touches the machine.

pub mod calibrate;
mod engine;
mod local;
mod merge;
pub mod workers;

pub use engine::{Due, Outage, Outages};
pub use local::{Local, SampleCounts, SampleLog, Stopper};
