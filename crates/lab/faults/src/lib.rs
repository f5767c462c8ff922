//! Faults: whom they hit, when they recur, how processes are slowed and connections broken, and
//! how all of it is undone.
//!
//! This crate knows no experiment and no system. Whoever runs an experiment gives it names,
//! addresses, process ids and a seed.
//!
//! # What always holds
//!
//! - The same seed and name hit the same things at the same instants, whatever other faults
//!   there are: each fault draws from a stream of its own ([`choose`], [`recur`]).
//! - A toxic on a TCP connection never loses, doubles or reorders a byte; it holds, slows or
//!   ends ([`proxy`]).
//! - A rule of the kernel stands in a network of the run's own, and ends with it ([`kernel`]).
//! - What must be undone is on the disk before it is done ([`undo`]).
//! - What cannot be done is refused, with what would do instead.

pub mod choose;
pub mod duty;
pub mod kernel;
pub mod proxy;
pub mod recur;
pub mod scarcity;
mod seed;
pub mod undo;
