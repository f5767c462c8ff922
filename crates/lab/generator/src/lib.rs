//! The load generator.

pub mod calibrate;
pub mod workers;
