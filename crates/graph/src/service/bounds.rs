//! What callers may ask for, and how long they may take.

use wire::http1::Limits;

use crate::Nanos;

/// Bounds of a request's head.
pub(super) const LIMITS: Limits = Limits {
    head_bytes: 32 * 1024,
    fields: 128,
    chunk_line_bytes: 1024,
    interim: 0,
    ..Limits::DEFAULT
};
/// Most bytes of a request's body; they are read and thrown away.
pub(super) const MOST_BODY: u64 = 1 << 30;
/// How long a head, a body or the taking of an answer may take.
pub(super) const PATIENCE: Nanos = 60_000_000_000;
/// How long a connection may be without a request.
pub(super) const IDLE: Nanos = 600_000_000_000;
