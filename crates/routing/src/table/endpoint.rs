//! One instance of an application, as a router reaches it.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use routing_api::model::ModificationTag;

use super::{Nanos, Tags, Text};

/// What an endpoint speaks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BackendProtocol {
    /// HTTP/1.1.
    #[default]
    Http1,
    /// HTTP/2, agreed on within TLS.
    Http2,
}

/// Which of two states of an endpoint is newer (routing API). Endpoints from NATS have
/// an empty one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Modification {
    /// Changes when the route is made anew.
    pub guid: Text,
    /// Rises with every change.
    pub index: u32,
}

impl Modification {
    /// Whether `other` replaces this: either guid is empty, the guids differ, or its index
    /// is higher.
    pub fn succeeded_by(&self, other: &Self) -> bool {
        self.is_before(&other.guid, other.index)
    }

    /// The same, of one that is not stored yet.
    pub(super) fn is_before(&self, guid: &str, index: u32) -> bool {
        self.guid.is_empty() || guid.is_empty() || self.guid != guid || self.index < index
    }
}

impl From<&ModificationTag> for Modification {
    fn from(tag: &ModificationTag) -> Self {
        Self {
            guid: tag.guid.as_str().into(),
            index: tag.index,
        }
    }
}

/// One instance of an application. Immutable but for its [`state`](Self::state).
#[derive(Debug, Clone, Default)]
pub struct Endpoint {
    /// `host:port`, where the port is the one that is used: that for TLS wins.
    pub identity: Text,
    /// Whether to speak TLS to it.
    pub tls: bool,
    /// The name that its certificate must have (`server_cert_domain_san`); also sent as SNI.
    pub server_name: Text,
    /// What it speaks.
    pub protocol: BackendProtocol,
    /// Guid of the application; empty: none.
    pub app: Text,
    /// `private_instance_id`; empty: none.
    pub instance_id: Text,
    /// `private_instance_index`; empty: none.
    pub instance_index: Text,
    /// Availability zone; empty: none.
    pub zone: Text,
    /// Isolation segment; empty: the shared one.
    pub isolation_segment: Text,
    /// Tags for metrics and `/routes`, in the order of their names; `None`: none were sent.
    pub tags: Option<Tags>,
    /// Time without a refresh after which it is pruned, unless it speaks TLS.
    pub stale_after: Duration,
    /// Which state of it this is.
    pub modification: Modification,
    /// The message that would change nothing about it.
    pub last_fingerprint: LastFingerprint,
    /// What changes while it serves. Survives an update that leaves the address alike.
    pub state: std::sync::Arc<EndpointState>,
}

/// A hash of all bytes of a message, with a key that nobody else has. Two messages with the
/// same one are taken for the same message.
pub type Fingerprint = NonZeroU64;

/// The fingerprint of the message that said all there is to say about an endpoint and its
/// route, if it was a message and nothing changed since. Written by those who hold the
/// shard's writer. A copy of an endpoint was not heard of.
#[derive(Debug, Default)]
pub struct LastFingerprint(AtomicU64);

impl LastFingerprint {
    pub(super) fn of(message: Option<Fingerprint>) -> Self {
        Self(AtomicU64::new(message.map_or(0, Fingerprint::get)))
    }

    pub(super) fn is(&self, message: Fingerprint) -> bool {
        self.0.load(Ordering::Relaxed) == message.get()
    }

    pub(super) fn set(&self, message: Option<Fingerprint>) {
        let fingerprint = message.map_or(0, Fingerprint::get);
        self.0.store(fingerprint, Ordering::Relaxed);
    }
}

impl Clone for LastFingerprint {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Endpoint {
    /// The component that registered it, as its tags say; empty: unknown.
    pub fn component(&self) -> Text {
        let mut tags = self.tags.as_deref().unwrap_or_default().iter();
        let found = tags.find(|(name, _)| name == "component");
        found.map_or_else(Text::new, |(_, value)| value.clone())
    }

    /// `host:port`.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Whether nobody refreshed it for too long. Endpoints that speak TLS never are: what
    /// answers in their place is found out by its certificate.
    pub fn is_stale(&self, now: Nanos) -> bool {
        let age = now.saturating_sub(self.state.refreshed_at());
        !self.tls && u128::from(age) > self.stale_after.as_nanos()
    }
}

/// What changes while an endpoint serves.
#[derive(Debug, Default)]
pub struct EndpointState {
    refreshed: AtomicU64,
    failed_until: AtomicU64,
    in_flight: AtomicU32,
}

impl EndpointState {
    /// Its age begins anew.
    pub fn refreshed(&self, now: Nanos) {
        self.refreshed.store(now, Ordering::Relaxed);
    }

    /// When it was last refreshed.
    pub fn refreshed_at(&self) -> Nanos {
        self.refreshed.load(Ordering::Relaxed)
    }

    /// Leaves it out of choices until `until`.
    pub fn fail_until(&self, until: Nanos) {
        self.failed_until.store(until, Ordering::Relaxed);
    }

    /// Whether it is left out of choices.
    pub fn has_failed(&self, now: Nanos) -> bool {
        self.failed_until.load(Ordering::Relaxed) > now
    }

    /// It is offered again.
    pub fn forgive(&self) {
        self.failed_until.store(0, Ordering::Relaxed);
    }

    /// Requests that wait for the head of its answer.
    pub fn in_flight(&self) -> u32 {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// One more request waits for it.
    pub fn begin(&self) {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
    }

    /// One of them has its answer's head, or failed.
    pub fn end(&self) {
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}
