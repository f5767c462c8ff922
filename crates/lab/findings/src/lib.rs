//! What a run says beyond its charts: how a system came back from a fault, as numbers, and
//! what limited it, named.
//!
//! Everything here is a function of what was recorded: no clock, no randomness but from a
//! seed, no I/O. What must always hold: noise is not called an effect. A series in which
//! nothing happened is said to show an effect about once in a hundred times, and a run in which
//! nothing is wrong accuses anybody in at most one of twenty; the tests count both.

pub mod detect;
mod finding;
pub mod profile;
mod ranking;
pub mod recovery;

pub use finding::{Chart, Finding, Kind, Number, Share, ShareOf};
pub use ranking::{Ranked, rank};
