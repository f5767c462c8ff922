//! The tests of this crate through its public interface: one program, linked once.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod client;
#[path = "../../../tests/end_to_end/free_port.rs"]
mod free_port;
mod local;
mod server;
mod support;
