//! A container scheduler that speaks Diego's protocols.
//!
//! Three processes: the [`bbs`] keeps what is desired and what is actual, the
//! [`auctioneer`] decides which cell runs what, and the [`rep`] of each cell runs
//! it; the [`route_emitter`] tells routers where it runs. They meet only over sockets. The [`driver`] makes
//! and counts work for experiments, the [`client`] asks and orders what people want to know and to have, the
//! [`auction_sim`] places drawn work without any of them, and the [`benchmark`] measures a BBS as Diego's was.
//!
//! # What always holds
//!
//! - Cores do no I/O: `bbs::model`, the auctioneer's placement and the rep's container states take
//!   time and randomness as arguments.
//! - A simulated cell is the real rep with another executor behind the same trait.
//! - A call that the BBS answered with success is on disk. One writer applies commands in batches; a
//!   batch is one transaction with one sync; answers and events go out after it.

mod answers;
pub mod auction_sim;
pub mod auctioneer;
mod basic;
pub mod bbs;
pub mod benchmark;
pub mod client;
mod counters;
mod descriptors;
pub mod driver;
mod lock;
mod locket_client;
mod mutex;
pub mod pool;
pub mod rep;
pub mod route_emitter;
