//! How exchanges fail.

use serde::{Deserialize, Serialize};

/// Cause of a connection that could not be opened for want of a local port.
pub const NO_PORTS: &str = "no ports left";
/// Cause of a connection that could not be opened for want of a file descriptor.
pub const NO_DESCRIPTORS: &str = "no descriptors left";

/// Cause of a request that found every connection busy for as long as its user waits, or until
/// after the end of the load.
pub const NONE_FREE: &str = "every connection busy";

/// The same, where users who pause within their journeys kept most of them: that is the load's own
/// doing, and not the target's.
pub const KEPT: &str = "every connection kept by a pausing journey";

/// Cause of a request whose values do not make one: it was never sent, though its connection was
/// there.
pub const UNFIT: &str = "no request";

/// How an exchange failed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Failure {
    /// Where it stood.
    pub phase: Phase,
    /// What happened: a short constant text such as `refused`, `reset`, `timeout`,
    /// `closed early`, [`NO_PORTS`], [`NO_DESCRIPTORS`], `certificate unknown`.
    pub cause: String,
}

impl Failure {
    /// Whether a request that failed so was never handed to the kernel, unless it was in a try
    /// before.
    #[must_use]
    pub fn before_send(&self) -> bool {
        self.phase.before_send() || (self.phase == Phase::Write && self.cause == UNFIT)
    }
}

/// Where an exchange stood when it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// The name of the target.
    Resolve,
    /// TCP.
    Connect,
    /// The handshake of TLS.
    Tls,
    /// Beginning to speak: a login, an upgrade, the settings of HTTP/2.
    Open,
    /// Sending the request.
    Write,
    /// Waiting for the answer or reading it.
    Read,
    /// No whole answer within the timeout.
    Timeout,
    /// The answer broke the protocol.
    Protocol,
}

impl Phase {
    /// Its name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Resolve => "resolve",
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::Open => "open",
            Self::Write => "write",
            Self::Read => "read",
            Self::Timeout => "timeout",
            Self::Protocol => "protocol",
        }
    }

    /// Whether a request that failed here was never handed to the kernel.
    pub const fn before_send(self) -> bool {
        matches!(self, Self::Resolve | Self::Connect | Self::Tls | Self::Open)
    }
}

/// Counts by failure, as a list: a key of JSON is a text.
pub(super) mod counts {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serializer};

    use super::Failure;

    pub(in crate::recording) fn serialize<S: Serializer>(
        counts: &BTreeMap<Failure, u64>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(counts)
    }

    pub(in crate::recording) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<Failure, u64>, D::Error> {
        let list = Vec::<(Failure, u64)>::deserialize(deserializer)?;
        Ok(list.into_iter().collect())
    }
}
