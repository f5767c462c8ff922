//! The tests of this crate through its public interface: one program, linked once.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod accepting;
mod calibrate;
mod exact;
mod faults;
#[path = "../../../../tests/end_to_end/free_port.rs"]
mod free_port;
mod grpc;
mod postgres;
#[path = "../../../commit/src/postgres/cluster.rs"]
mod postgres_cluster;
mod protocols;
mod rate;
mod redis;
mod redis_server;
mod samples;
mod stalls;
mod streams;
mod support;
mod target;
mod unanswered;
mod workers;
mod workers_under_load;
mod workload;
