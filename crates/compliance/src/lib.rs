//! Continuous configuration and compliance.
//!
//! Rules say which directives hold on which nodes; a policy is what one node is asked to be;
//! an agent reports what it found; compliance is how reports stand to what was expected.
//! What crosses a wire or is computed follows Rudder, so that its agents and users see what
//! they know.
//!
//! What is computed is pure: time, randomness and I/O come in as arguments. Around it are thin
//! shells: [`server`] with its store and its API, [`relay`] between it and some of its nodes, and
//! [`daemon`], the agent as a process.

pub mod acceptance;
pub mod agent;
pub mod client;
mod cores;
pub mod daemon;
pub mod definitions;
pub mod folder;
pub mod inventory;
pub mod model;
pub mod policy;
mod private;
pub mod relay;
pub mod reports;
pub mod server;
mod spool;
pub mod trust;
mod uploads;
pub mod upstream;
