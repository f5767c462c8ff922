//! What does not change over a generator's life.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::request::Mix;

/// A target, what is asked of it, and how its generator behaves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Workload {
    /// Where requests go.
    pub target: Target,
    /// The requests, by kind.
    pub mix: Mix,
    /// How connections are held.
    pub connections: Connections,
    /// Longest wait for a whole answer, from the moment the request was sent; and before it, of
    /// an open loop, for a connection that is free, from the moment it was due.
    pub timeout: Duration,
    /// How closely sends follow the schedule.
    pub pace: Pace,
    /// Threads, each with its own connections and its share of the schedule; 1 to 256.
    pub threads: u32,
    /// Which arrivals are this generator's own, when several work together.
    pub share: Share,
    /// Processors the threads are pinned to, in turn; empty: not pinned.
    pub cpus: Vec<u32>,
    /// Seed of arrivals, of the choice of kinds and of variables.
    pub seed: u64,
    /// How the target proves who it is.
    pub tls: TlsSettings,
    /// When a run is INVALID.
    pub guard: GuardLimits,
}

/// A generator's part of a schedule that several generators carry out together. Arrival
/// `k` (from 0 in each segment) belongs to the thread whose number over all generators
/// is `k % threads`; so what is sent, and when, does not depend on who sends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// Number of this generator's first thread, over all generators.
    pub first: u32,
    /// Threads of all generators together.
    pub threads: u32,
}

/// Where requests go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// What is spoken.
    pub protocol: Protocol,
    /// Inside TLS.
    pub tls: bool,
    /// Name or address to connect to; an IPv6 address without brackets.
    pub host: String,
    /// Port to connect to.
    pub port: u16,
    /// Name and port as the target is told (`Host`, `:authority`), when requests do
    /// not say otherwise. Its name is also asked of the certificate.
    pub authority: String,
    /// Who we are, for databases.
    #[serde(default)]
    pub login: Login,
}

/// How a connection to a database begins. Empty texts are not told.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Login {
    /// Name of the user; empty: the target's default user.
    pub user: String,
    /// Never shown.
    pub password: String,
    /// The database, which Redis numbers; empty: the user's default.
    pub database: String,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login")
            .field("user", &self.user)
            .field("database", &self.database)
            .finish_non_exhaustive()
    }
}

/// A way to exchange one request for one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// HTTP/1.1, one request at a time on a connection.
    Http1,
    /// HTTP/2, many at a time on a connection; without TLS by prior knowledge.
    Http2,
    /// A unary call of gRPC over HTTP/2.
    Grpc,
    /// One message out, one message in, over an upgraded HTTP/1.1 connection.
    WebSocket,
    /// Bytes out, an answer of known form in.
    Tcp,
    /// One datagram out, one in.
    Udp,
    /// Commands of Redis or Valkey, replies in their order.
    Redis,
    /// Statements of PostgreSQL, one at a time on a connection.
    Postgres,
}

impl Protocol {
    /// Whether a connection may carry several requests at a time.
    pub const fn carries_several(self) -> bool {
        matches!(self, Self::Http2 | Self::Grpc | Self::Redis)
    }

    /// The variable of the environment that the password of a database stands in: that which its
    /// own tools read. `None`: there is no password.
    pub const fn password_variable(self) -> Option<&'static str> {
        match self {
            Self::Redis => Some("REDISCLI_AUTH"),
            Self::Postgres => Some("PGPASSWORD"),
            _ => None,
        }
    }

    /// Whether answers have rows, as those of databases do.
    pub const fn has_rows(self) -> bool {
        matches!(self, Self::Redis | Self::Postgres)
    }

    /// Whether answers have a status and header fields.
    pub const fn has_fields(self) -> bool {
        matches!(self, Self::Http1 | Self::Http2 | Self::Grpc)
    }
}

/// How connections are held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connections {
    /// Opened before the first request and kept open; 1 to 1,000,000 over all threads.
    pub held: u32,
    /// Most that may be open at once. An open-loop request that finds every connection
    /// busy opens another until this is reached; then it waits, which counts as
    /// latency from its intended time. Equal to `held`: the number never changes.
    pub most: u32,
    /// Requests after which a connection is closed and replaced; `None`: never.
    pub requests_each: Option<u64>,
    /// Exchanges at a time on one connection; above 1 for protocols that
    /// [carry several](Protocol::carries_several) only. Of HTTP/2 fewer, where the target takes
    /// fewer: the connection is busy then. Answers of Redis come in the order of
    /// its commands (pipelining).
    pub streams: u32,
    /// Longest wait for resolving, connecting and the TLS handshake together.
    pub connect_within: Duration,
}

/// How closely sends follow the schedule, and what that costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pace {
    /// Each request at its own time; a thread sleeps until shortly before, and is awake
    /// for that a tenth of the time at most.
    Exact,
    /// Each request at its own time; a thread never sleeps. Halves the floor of
    /// latency, costs a processor.
    Spin,
    /// Requests that fall due within the same tick are sent together at its end; see
    /// [`Pace::TICKS`].
    Tick(Duration),
    /// For closed loops: under load, wait a moment for more answers before reading
    /// any. Up to 100 µs are added to a latency, and two fifths of the work are saved.
    Coalesce,
}

impl Pace {
    /// How long a tick may be.
    pub const TICKS: RangeInclusive<Duration> = Duration::from_micros(10)..=Duration::from_secs(1);
}

/// How the target proves who it is, and we to it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsSettings {
    /// PEM text of authorities to trust; empty: those of the public web.
    pub authorities: String,
    /// PEM text of the own certificate, for targets that ask for one.
    pub certificate: String,
    /// PEM text of the own private key. Never shown.
    pub key: String,
    /// Accept any certificate. Said in every result.
    pub insecure: bool,
}

/// Limits beyond which a run says nothing about its target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GuardLimits {
    /// So much may be the generator's own of a latency that is told.
    pub late_after: Duration,
    /// Smallest share of the planned requests that must have been sent.
    pub sent_share: f64,
    /// Largest share of time that the hypervisor took away (steal).
    pub steal_share: f64,
    /// Largest relative difference between requests seen in flight and X·R.
    pub little: f64,
}

impl Default for GuardLimits {
    fn default() -> Self {
        Self {
            late_after: Duration::from_millis(1),
            sent_share: 0.99,
            steal_share: 0.02,
            little: 0.05,
        }
    }
}
