//! What a TCP router can be told. Plain data; who reads it from a file is elsewhere.
//!
//! The name of the cf-tcp-router or HAProxy setting that means the same stands behind
//! each one.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use document::Secret;
use routing_api::client::{ClientSettings, PeerTls};

/// Settings of a TCP router.
#[derive(Debug, Clone, PartialEq)]
pub struct TcpSettings {
    /// Address on which external ports are opened (`bind :port`, all addresses there).
    pub listen: IpAddr,
    /// Where health and metrics are served; `None`: nowhere (`health_check_port`, 80).
    pub status: Option<SocketAddr>,
    /// The same within TLS (`tls_health_check_port`).
    pub status_tls: Option<StatusTlsSettings>,
    /// Threads; `None`: one for each processor that the process may use.
    pub threads: Option<usize>,
    /// Connections of clients at once; above it, they wait in the kernel's queue
    /// (`maxconn`, 64,000). Threads that accept in the same moment may exceed it by one each.
    pub connections: usize,
    /// The same for each port.
    pub port_connections: usize,
    /// Connections that the kernel keeps for a port until they are accepted.
    pub backlog: u32,
    /// Backends tried for one connection (HAProxy: one attempt and 3 more).
    pub attempts: u32,
    /// A backend that could not be reached is passed over for so long when there are
    /// others; 0: never.
    pub failed_for: Duration,
    /// Carry long transfers through the kernel's pipes (`splice`) instead of copying.
    pub splice: bool,
    /// Longest wait for a connection to a backend (`timeout connect`, 30 s).
    pub connect_timeout: Duration,
    /// Longest silence in both directions; zero: no limit (`request_timeout_in_seconds`,
    /// 300 s).
    pub idle_timeout: Duration,
    /// Longest wait for a whole ClientHello where routes depend on it; then the port's
    /// route without a name is taken (`inspect-delay`, 5 s).
    pub hello_timeout: Duration,
    /// Longest wait for a TLS handshake, with clients and with backends.
    pub handshake_timeout: Duration,
    /// Age at which a mapping without its own TTL is pruned (120 s). One of the routing API is
    /// as old as when the API last told something.
    pub stale_after: Duration,
    /// How often stale mappings are looked for (30 s).
    pub prune_every: Duration,
    /// How often a port that could not be opened is tried again.
    pub bind_again: Duration,
    /// How long connections are still accepted after drain began (`drain_wait`, 20 s).
    pub drain_wait: Duration,
    /// How long established connections go on after that; then they are closed.
    pub drain_timeout: Duration,
    /// Where the client's TLS ends here; `None`: such routes are skipped.
    pub termination: Option<TerminationSettings>,
    /// TLS to backends (`backend_tls.enabled`, `ca_cert`, `client_cert_and_key`); `None`: those
    /// that want it are skipped.
    pub backend_tls: Option<PeerTls>,
    /// The routing API that routes come from; `None`: they come from elsewhere
    /// (`routing_api`, `oauth`).
    pub routing_api: Option<ClientSettings>,
    /// Isolation segments whose mappings are served, `""` for those without one; none named:
    /// all (`isolation_segments`).
    pub isolation_segments: Vec<String>,
}

/// Health and metrics within TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusTlsSettings {
    /// Where they are served.
    pub listen: SocketAddr,
    /// The certificate with its chain, PEM.
    pub certificate: String,
    /// Its key, PEM.
    pub key: Secret,
}

impl Default for StatusTlsSettings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8443)),
            certificate: String::new(),
            key: Secret::default(),
        }
    }
}

/// TLS with clients.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct TerminationSettings {
    /// Certificates with their keys, as PEM: the one whose name fits best is shown.
    pub certificates: Vec<(String, String)>,
}

impl std::fmt::Debug for TerminationSettings {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("TerminationSettings")
            .field("certificates", &self.certificates.len())
            .finish_non_exhaustive()
    }
}

impl Default for TcpSettings {
    fn default() -> Self {
        Self {
            listen: IpAddr::V4(Ipv4Addr::LOCALHOST),
            status: None,
            status_tls: None,
            threads: None,
            connections: 64_000,
            port_connections: 64_000,
            backlog: 4096,
            attempts: 4,
            failed_for: Duration::from_secs(5),
            splice: true,
            connect_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(300),
            hello_timeout: Duration::from_secs(5),
            handshake_timeout: Duration::from_secs(10),
            stale_after: Duration::from_secs(120),
            prune_every: Duration::from_secs(30),
            bind_again: Duration::from_secs(5),
            drain_wait: Duration::from_secs(20),
            drain_timeout: Duration::from_secs(900),
            termination: None,
            backend_tls: None,
            routing_api: None,
            isolation_segments: Vec::new(),
        }
    }
}
