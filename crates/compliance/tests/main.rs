//! The server against peers that a test plays: over sockets, with processes that are killed.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

#[path = "../../../tests/end_to_end/free_port.rs"]
mod free_port;
mod killed;
mod outage;
mod peers;
#[path = "../../commit/src/postgres/cluster.rs"]
mod postgres_cluster;
mod refused;
mod relays;
mod rest;
mod syslog;
