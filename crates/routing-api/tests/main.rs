//! The tests of this crate through its public interface: one program, linked once.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod databases;
#[path = "../../../tests/end_to_end/free_port.rs"]
mod free_port;
mod kill;
#[path = "../../commit/src/postgres/cluster.rs"]
mod postgres_cluster;
mod running_api;
mod service;
