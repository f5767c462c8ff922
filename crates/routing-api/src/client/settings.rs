//! How the routing API is reached.

use document::Secret;

/// TLS towards a server. All parts are PEM text.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PeerTls {
    /// Authorities of the server; empty: those of the public web.
    pub authorities: String,
    /// The own certificate; empty: none.
    pub certificate: String,
    /// Its key.
    pub key: Secret,
}

/// How to reach the routing API.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClientSettings {
    /// Its address: `https://host:port` (`routing_api.uri`, `routing_api.port`).
    pub url: String,
    /// TLS (`routing_api.ca_certs` and its neighbours).
    pub tls: PeerTls,
    /// Where tokens come from; `None`: calls carry none (`routing_api.auth_disabled`).
    pub tokens: Option<TokenSettings>,
}

/// Where tokens for the routing API come from (`oauth`).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TokenSettings {
    /// The token endpoint: `https://host:port`.
    pub url: String,
    /// Name of the client.
    pub client: String,
    /// Its secret.
    pub secret: Secret,
    /// Authorities of the endpoint, PEM.
    pub authorities: String,
    /// Accept any certificate.
    pub insecure: bool,
}
