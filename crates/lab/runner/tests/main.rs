//! The tests of this crate through its public interface: one program, linked once.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod copies;
mod crashes;
mod custom_faults;
mod faults;
mod going_on;
mod inputs;
mod kept;
mod loads;
mod logs;
mod own_network;
mod parts;
#[path = "../../../commit/src/postgres/cluster.rs"]
mod postgres_cluster;
mod probes;
mod profile;
mod programs;
mod signals;
mod simulated;
mod skipped;
mod starved;
mod steps;
mod stopped;
mod support;
mod systems;
mod through;
mod your_own_system;
