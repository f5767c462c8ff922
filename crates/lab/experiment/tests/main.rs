//! The tests of this crate through its public interface: one program, linked once.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod errors;
mod expressions;
mod left_out;
mod plan;
mod reference;
mod robustness;
mod support;
