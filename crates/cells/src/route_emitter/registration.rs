//! What is said about one instance and one of its routes, and to whom.
//!
//! Keys of messages, their order and what is left out are those of route-emitter 26f4ea3.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

/// One route to one instance: what a router is told of.
#[derive(Debug, Clone, PartialEq)]
pub enum Registration {
    /// For HTTP routers, over NATS.
    Http(RegistryMessage),
    /// For service discovery, over NATS.
    Internal(RegistryMessage),
    /// For TCP routers, through the routing API.
    Tcp(TcpMapping),
}

/// What makes two registrations the same one to whoever receives them: the later replaces the
/// earlier, and an unregistration removes both.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// A route, and the endpoint as a router identifies it.
    Http {
        /// The route as routers compare it.
        route: String,
        /// Address of the endpoint.
        host: String,
        /// Its port: that of TLS if it has one.
        port: u32,
    },
    /// A name, and the container.
    Internal {
        /// The name with its index: of a cell without networks all containers have one address.
        hostname: String,
        /// Address of the container.
        host: String,
    },
    /// A row of the routing API.
    Tcp {
        /// Guid of the router group.
        group: String,
        /// The external port.
        port: u16,
        /// The server name that connections must ask for; empty: any.
        sni: String,
        /// Address of the backend.
        host: String,
        /// Its port.
        backend_port: u16,
        /// Its port for TLS.
        tls_port: i32,
    },
}

/// `router.register` and `router.unregister`, and their twins of service discovery.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RegistryMessage {
    /// Address of the endpoint.
    pub host: String,
    /// Its port without TLS; 0 for service discovery.
    pub port: u32,
    /// Its port for TLS; 0: none.
    #[serde(skip_serializing_if = "is_zero")]
    pub tls_port: u32,
    /// The routes.
    pub uris: Vec<String>,
    /// `http2`; empty: HTTP/1.1.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub protocol: String,
    /// Guid of the application: the process's log guid.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub app: String,
    /// Where requests go first.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub route_service_url: String,
    /// Guid of the instance.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub private_instance_id: String,
    /// Its index.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub private_instance_index: String,
    /// The name that its certificate must have.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub server_cert_domain_san: String,
    /// Which routers take it; empty: the shared ones.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub isolation_segment: String,
    /// When the instance changed, nanoseconds since 1970. Said once, with the first registration of
    /// an instance, so that routers can tell how long it took; 0: not said.
    #[serde(skip_serializing_if = "is_zero_i64")]
    pub endpoint_updated_at_ns: i64,
    /// Labels for metrics.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    /// Where the instance is.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub availability_zone: String,
    /// What concerns the whole route, as the desired LRP has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub options: Option<Value>,
}

/// A backend of an external port.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TcpMapping {
    /// Guid of the router group that listens.
    pub router_group_guid: String,
    /// The external port.
    pub external_port: u16,
    /// Address of the backend.
    pub backend_ip: String,
    /// Its port without TLS.
    pub backend_port: u16,
    /// Its port for TLS; 0: none, -1: TLS is not to be used.
    pub backend_tls_port: i32,
    /// Guid of the instance, which its certificate must have; empty without TLS.
    pub instance_id: String,
    /// Only connections that ask for this server (SNI) are meant.
    pub backend_sni_hostname: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_zero_i64(number: &i64) -> bool {
    *number == 0
}

impl RegistryMessage {
    /// The JSON text that is sent.
    pub fn json(&self) -> Vec<u8> {
        // Texts, numbers and maps of texts always have a JSON form.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

impl Registration {
    /// Which one it is to whoever receives it.
    pub fn key(&self) -> Key {
        match self {
            Self::Http(message) => Key::Http {
                route: message
                    .uris
                    .first()
                    .map(|uri| route(uri))
                    .unwrap_or_default(),
                host: message.host.clone(),
                port: match message.tls_port {
                    0 => message.port,
                    port => port,
                },
            },
            Self::Internal(message) => Key::Internal {
                hostname: message.uris.last().cloned().unwrap_or_default(),
                host: message.host.clone(),
            },
            Self::Tcp(mapping) => Key::Tcp {
                group: mapping.router_group_guid.clone(),
                port: mapping.external_port,
                sni: mapping.backend_sni_hostname.clone().unwrap_or_default(),
                host: mapping.backend_ip.clone(),
                backend_port: mapping.backend_port,
                tls_port: mapping.backend_tls_port,
            },
        }
    }

    /// As [`Self`], with the time of the instance's change.
    #[must_use]
    pub(super) fn changed_at(mut self, nanoseconds: i64) -> Self {
        if let Self::Http(message) | Self::Internal(message) = &mut self {
            message.endpoint_updated_at_ns = nanoseconds;
        }
        self
    }

    /// How many routes it names.
    pub fn routes(&self) -> usize {
        match self {
            Self::Http(message) | Self::Internal(message) => message.uris.len(),
            Self::Tcp(_) => 1,
        }
    }
}

/// A route as gorouter compares it: without case, query and slash at the end.
fn route(uri: &str) -> String {
    let uri = uri.split('?').next().unwrap_or_default();
    uri.trim_end_matches('/').to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_the_keys_of_the_original_in_its_order() {
        let message = RegistryMessage {
            host: "10.0.0.1".into(),
            port: 61_000,
            tls_port: 61_001,
            uris: vec!["a.example".into()],
            protocol: "http2".into(),
            app: "app".into(),
            route_service_url: "https://rs.example".into(),
            private_instance_id: "guid".into(),
            private_instance_index: "0".into(),
            server_cert_domain_san: "guid".into(),
            isolation_segment: "seg".into(),
            endpoint_updated_at_ns: 7,
            tags: [("component".into(), "route-emitter".into())].into(),
            availability_zone: "z1".into(),
            options: Some(serde_json::json!({"loadbalancing": "least-connection"})),
        };
        assert_eq!(
            String::from_utf8(message.json()).unwrap(),
            r#"{"host":"10.0.0.1","port":61000,"tls_port":61001,"uris":["a.example"],"protocol":"http2","app":"app","route_service_url":"https://rs.example","private_instance_id":"guid","private_instance_index":"0","server_cert_domain_san":"guid","isolation_segment":"seg","endpoint_updated_at_ns":7,"tags":{"component":"route-emitter"},"availability_zone":"z1","options":{"loadbalancing":"least-connection"}}"#
        );
        let least = RegistryMessage {
            host: "h".into(),
            uris: vec!["a".into()],
            ..RegistryMessage::default()
        };
        assert_eq!(least.json(), br#"{"host":"h","port":0,"uris":["a"]}"#);
    }

    #[test]
    fn routes_are_compared_as_routers_do() {
        let key = |uri: &str| {
            Registration::Http(RegistryMessage {
                uris: vec![uri.into()],
                ..RegistryMessage::default()
            })
            .key()
        };
        assert_eq!(key("A.Example/Path/"), key("a.example/path"));
        assert_eq!(key("a.example/?x"), key("a.example"));
        assert_ne!(key("a.example/path"), key("a.example"));
    }
}
