//! The tests of this crate through its public interface: one program, linked once.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod crashes;
mod faults;
mod going_on;
mod loads;
mod logs;
mod programs;
mod simulated;
mod steps;
mod support;
mod systems;
mod your_own_system;
