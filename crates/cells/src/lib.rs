//! A container scheduler that speaks Diego's protocols.
//!
//! Three processes: the [`bbs`] keeps what is desired and what is actual, the
//! [`auctioneer`] decides which cell runs what, and the [`rep`] of each cell runs
//! it. They meet only over sockets. The [`driver`] makes and counts work for experiments.

pub mod auctioneer;
pub mod bbs;
pub mod driver;
pub mod rep;
