//! Diego's wire: what crosses a socket between its clients, BBS, auctioneer and reps.
//!
//! Facts only: messages and their numbers, paths, error types, JSON bodies, the
//! framing of event streams, and a client that speaks them. What a component does
//! with a message is the business of `cells`; the laboratory uses this crate to
//! drive any server that speaks the protocol, ours or the original.

mod actions;
pub mod auction;
mod client;
pub mod error;
pub mod json;
pub mod list;
pub mod path;
pub mod sse;

pub use client::{Bbs, CallCounts, CallError, Failed, Subscription};

/// Messages of the BBS (package `models`), generated from `proto/bbs.proto`.
#[allow(missing_docs, clippy::all, rustdoc::all)]
pub mod models {
    include!("proto/models.rs");
}

/// Messages of Locket, generated from `proto/locket.proto`.
#[allow(missing_docs, clippy::all, rustdoc::all)]
pub mod locket {
    include!("proto/locket.rs");
}

/// The content type of every protobuf body.
pub const PROTOBUF: &str = "application/x-protobuf";

/// The header that carries a trace id from call to call.
pub const TRACE_HEADER: &str = "x-vcap-request-id";
