//! The tests of this crate through its public interface: one program, linked once.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod analysis;
mod formats;
mod running;
mod telemetry;
mod virtual_time;
