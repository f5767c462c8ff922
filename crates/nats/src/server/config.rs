//! What an embedded endpoint is told.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::Password;
use crate::codec::Limits;

/// How an endpoint behaves. The defaults are those of nats-server, but for the address:
/// loopback.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Where it listens.
    pub listen: SocketAddr,
    /// The name under which it introduces itself.
    pub name: String,
    /// Who may connect; `None`: anybody who reaches the address.
    pub user: Option<(String, Password)>,
    /// TLS, which then every client must speak, once it was greeted.
    pub tls: Option<Arc<rustls::ServerConfig>>,
    /// Bounds of lines and payloads (`max_control_line`, `max_payload`).
    pub limits: Limits,
    /// Clients at once; one more is refused (`max_connections`).
    pub max_connections: usize,
    /// Subscriptions of one client; one more is refused (`max_subscriptions`, which has no bound
    /// there).
    pub max_subscriptions: usize,
    /// Bytes that may wait for one client; with more, it is cut off (`max_pending`).
    pub pending_bytes: usize,
    /// Longest time until a client proved itself, TLS included. Without a user nobody has
    /// to say anything.
    pub auth_timeout: Duration,
    /// Every client is sent a PING this often; two without an answer end its connection.
    pub ping_interval: Duration,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 4222)),
            name: "headroom".to_owned(),
            user: None,
            tls: None,
            limits: Limits::default(),
            max_connections: 65_536,
            max_subscriptions: 10_000,
            pending_bytes: 64 * 1024 * 1024,
            auth_timeout: Duration::from_secs(2),
            ping_interval: Duration::from_secs(120),
        }
    }
}
