//! Starts systems, drives entities, watches processes, follows logs, and records the run.
//!
//! [`run`] makes a checked plan happen on this machine and leaves a folder that
//! tells everything about it. The laboratory knows a system by its wire alone: it
//! starts child processes, talks to their sockets, and reads their logs and `/proc`.
//! Whatever happens to the laboratory itself, no process, port, cgroup or work file
//! of the run outlives it; see the crate `processes`.
//!
//! # What always holds
//!
//! - No crate of the laboratory uses one of a system. What it must know of those that come with it
//!   (names, flags, fleets, drivers) reaches it as plain data, the `Catalogue`, which the binary fills
//!   from its own command line.

mod alarm;
mod always;
mod calls;
mod captured;
mod conditions;
mod drivers;
mod entities;
mod environment;
mod faults;
mod findings;
mod inputs;
mod installed;
mod interrupt;
mod judge;
mod lacking;
mod loads;
mod mine;
mod options;
mod probes;
mod processes;
mod profile;
mod progress;
mod proxies;
mod record;
mod recoveries;
mod run;
mod skipped;
mod standstill;
mod steps;
mod store;
mod underway;
mod undoing;
mod usage;
mod watch;

pub use drivers::DriverError;
pub use lacking::lacking;
pub use loads::{FileError, RateError};
pub use options::{Display, Finished, Generator, Options, Relay, RunError, StartGenerator};
pub use processes::{LaunchError, PortError, Ports, StartError};
pub use run::{leave_out, may_have_own_network, run};
pub use underway::{ControlError, Underway};
pub use undoing::guardian_main;
