//! A caller's connection.

use wire::http1::{Limits, RequestScanner};
use wire::slab::Key;
use wire::stream::Stream;

use super::outbox::Outbox;
use crate::Nanos;
use wire::deadlines::NEVER;

/// Bounds of a request's head.
pub(super) const LIMITS: Limits = Limits {
    head_bytes: 32 * 1024,
    fields: 128,
    chunk_line_bytes: 1024,
    interim: 0,
};
/// Most bytes of a request's body; they are read and thrown away.
pub(super) const MOST_BODY: u64 = 1 << 30;
/// Bytes that may wait behind a request that is not answered yet; then nothing is read.
pub(super) const MOST_AHEAD: usize = 64 * 1024;
/// Bytes that are still taken from a caller after a refusal, so that it can read that.
pub(super) const LINGER_BYTES: usize = 256 * 1024;
/// How long those may take.
pub(super) const LINGER: Nanos = 1_000_000_000;
/// How long a head, a body or the taking of an answer may take.
pub(super) const PATIENCE: Nanos = 60_000_000_000;
/// How long a connection may be without a request.
pub(super) const IDLE: Nanos = 600_000_000_000;

/// See the module.
pub(super) struct Session {
    pub(super) key: Key,
    /// Place of the instance in its thread.
    pub(super) instance: usize,
    pub(super) stream: Stream,
    pub(super) scanner: RequestScanner,
    /// Bytes that came and are not used yet.
    pub(super) rest: Vec<u8>,
    pub(super) outbox: Outbox,
    pub(super) phase: Phase,
    /// Reading waits until the answer is sent, since too much came ahead.
    pub(super) paused: bool,
    /// The poller tells when it can be written.
    pub(super) writing: bool,
    /// It ends behind the answer at hand.
    pub(super) last: bool,
    pub(super) deadline: Nanos,
}

/// What a connection is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Before or in the head of a request.
    Head,
    /// In the body of this one; so many bytes came.
    Body(Key, u64),
    /// This one is in hand.
    Flight(Key),
    /// Its answer is being sent.
    Answering(Key),
    /// A refusal is being sent.
    Refusing,
    /// Nothing more is said; so many bytes are still taken.
    Lingering(usize),
    /// To be forgotten.
    Closed,
}

impl Session {
    pub(super) fn new(key: Key, instance: usize, stream: Stream) -> Self {
        Self {
            key,
            instance,
            stream,
            scanner: RequestScanner::new(LIMITS),
            rest: Vec::new(),
            outbox: Outbox::default(),
            phase: Phase::Head,
            paused: false,
            writing: false,
            last: false,
            deadline: NEVER,
        }
    }
}
