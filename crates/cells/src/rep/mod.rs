//! The rep: a process that carries one cell or a thousand.
//!
//! A cell takes work from the auctioneer, runs it in containers and tells the BBS
//! what became of it. With the simulated executor nothing runs, but every message
//! on the wire is the real one: a hollow cell is this rep with its last layer
//! swapped.
//!
//! With the process executor a container is a child process and nothing more: it
//! has the rep's user, network, file system and limits. There is no isolation of
//! any kind between containers, or between a container and the rep.

mod api;
mod bulk;
mod calls;
mod cell;
mod config;
pub mod container;
mod desired;
mod distribution;
mod evacuation;
mod executor;
mod ledger;
mod logs;
mod metrics;
mod ports;
mod presence;
mod residual;
mod room;
mod settings;
mod size;
mod start;
mod steps;
mod update;
mod work;

pub use config::{
    Capacity, Config, ExecutorKind, IdentitySettings, ProcessSettings, Simulation, TransferSettings,
};
pub use distribution::{BadDistribution, Distribution};
pub use evacuation::Evacuation;
pub use executor::unpack_archive;
pub use room::{CapacityError, Room};
pub use settings::Error;
pub use size::{BadSize, Mebibytes};
pub use start::{Running, run, start};
