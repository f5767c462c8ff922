//! What the routing API says about TCP routes.

use serde::{Deserialize, Serialize};

use crate::table::Modification;

/// A change of the TCP routes, as a feed tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A mapping is new, changed or still there.
    Upsert(TcpMapping),
    /// A mapping is gone.
    Delete(TcpMapping),
    /// These are all mappings there are: others are gone. A feed sends what happened
    /// while it listed them behind it.
    Full(Vec<TcpMapping>),
}

/// One backend of an external port, with the names of the routing API's JSON.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpMapping {
    /// The router group that owns the port; not looked at here.
    #[serde(default)]
    pub router_group_guid: String,
    /// The external port, that clients connect to.
    pub port: u16,
    /// Address of the backend: an IP address or a DNS name.
    pub backend_ip: String,
    /// Its port for plain TCP.
    pub backend_port: u16,
    /// Its port for TLS. 0: none is known; -1: switched off explicitly.
    #[serde(default)]
    pub backend_tls_port: i32,
    /// The name that its certificate must have when TLS is spoken to it; empty: any that an
    /// authority of the settings signed.
    #[serde(default)]
    pub instance_id: String,
    /// Only connections whose ClientHello names this host; none: every other one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend_sni_hostname: Option<String>,
    /// The name sent as SNI to the backend; none: `instance_id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sni_rewrite_hostname: Option<String>,
    /// Seconds after which the mapping is pruned when nobody refreshes it; none or 0: 120.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<u32>,
    /// Which state of the mapping this is.
    #[serde(default)]
    pub modification_tag: Modification,
    /// Isolation segment; not looked at here: the feed asked for the right ones.
    #[serde(default)]
    pub isolation_segment: String,
    /// Whether the client's TLS ends at this router.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub terminate_frontend_tls: bool,
    /// Protocols to agree on with the client (ALPN) when its TLS ends here, with commas
    /// between them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alpns: Option<String>,
    /// Whether this router shows its certificate to the backend although the client's TLS ends
    /// here; where that does not, it shows the one that it has in any case.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub enable_backend_mtls: bool,
}
