//! The load generator: everything between a [`Workload`](lab_load::Workload) and what
//! was [`Recorded`](lab_load::Recorded) that touches the machine.

mod compose;
mod engine;
mod local;

pub use local::{Local, Stopper};
