//! Work that services do, calibrated to this machine.
//!
//! A piece of work is defined by what it takes from the machine, never by the time it
//! may last: a spin that looks at the wall clock ends on time whoever took the processor
//! meanwhile, and so hides exactly what is to be seen. Here the processor time is what was
//! asked for, and the time that passed shows the interference.
//!
//! ```text
//! SharedResources (process: calibration, named locks) ─▶ Equipment (instance: memory, file, load)
//!                                                  │ task(&Work), once for each step
//!                                                  ▼
//! event loop ── submit(Job) ─▶ Workers ── Worker::perform(&Task) ─▶ Done
//!      ▲                                                             │
//!      └────────────── drain ── Inbox ◀── Ended ─────────────────────┘
//! ```
//!
//! What keeps an event loop no longer than [`CHEAP`] is done by its own [`Worker`];
//! [`Task::fits_event_loop`] says which.

pub(crate) mod affinity;
mod calibration;
mod disk;
mod equipment;
mod error;
mod inbox;
mod lock;
mod memory;
mod program;
mod sieve;
pub(crate) mod spin;
pub(crate) mod stop;
mod stress_ng;
mod task;
mod worker;
mod workers;

use crate::Nanos;

pub use affinity::pin;
pub use calibration::{Calibration, Drift};
pub(crate) use equipment::Memory;
pub use equipment::{Equipment, SharedResources};
pub use error::WorkError;
pub use inbox::{Ended, Inbox};
pub(crate) use stress_ng::Load;
pub use stress_ng::LoadStatus;
pub use task::{CHEAP, Task};
pub use worker::Worker;
pub use workers::{Job, Refused, Workers, WorkersConfig};

/// How a piece of work went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Done {
    /// Time that passed.
    pub wall: Nanos,
    /// Processor time of the thread and of programs it waited for.
    pub cpu: Nanos,
    /// Time in which the work itself had to wait: for a lock, the disk, a program, a
    /// sleep. 0 for work that only computes.
    pub waited: Nanos,
    /// What was done: operations, primes found, cache lines touched, bytes read and
    /// written; 0 for other kinds.
    pub count: u64,
}

impl Done {
    /// Time in which the work could run and did not: what others took of the processor.
    pub fn stolen(&self) -> Nanos {
        self.wall
            .saturating_sub(self.cpu)
            .saturating_sub(self.waited)
    }
}

#[cfg(test)]
mod tests;
