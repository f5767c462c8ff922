//! What HTTP/2 and gRPC say at both edges, many streams to a connection.
//!
//! ```text
//! caller ══▶ http2_callers: a request for each stream      channel ══▶ callee
//! ```
//!
//! A service that speaks HTTP/2 or gRPC does so from the first byte (RFC 9113 section
//! 3.3). Its callers keep one connection to each of its instances, a channel, which
//! carries as many calls at a time as the edge has connections; a cold edge makes a
//! channel for each call.

mod grpc;
pub(super) mod message;

/// Bytes of a message that stand before its body, at most.
pub(super) const MESSAGE_PREFIX: usize = 16;
