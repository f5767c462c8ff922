//! The load generator.

pub mod workers;
