//! `router.register` and `router.unregister`: one instance and its routes. Pure.
//!
//! Field names and rules are gorouter's (a602bb6; `hash` and its options from later
//! versions). Unknown fields are ignored, `null` is as good as nothing.

mod partial;
#[cfg(test)]
mod tests;
mod text;

use std::fmt::Write as _;
use std::time::Duration;

use serde::Deserialize;

pub use partial::PartialMessage;
pub use text::{Tags, Text};

use crate::table::{Algorithm, BackendProtocol, Fingerprint, Registration};

/// Why a message has no effect.
#[derive(Debug, thiserror::Error)]
pub enum MessageError {
    /// It is not JSON, or a field has a value of another kind.
    #[error("read a registration: {0}")]
    Json(#[from] serde_json::Error),
    /// It is another JSON value.
    #[error("read a registration: expected a JSON object")]
    Object,
    /// Requests would leave the platform unencrypted.
    #[error("read a registration: route_service_url is {0:?}; expected one that begins with https")]
    RouteService(String),
    /// Every endpoint keeps its texts.
    #[error("read a registration: its texts and tags have {0} bytes; expected at most {MOST_TEXT}")]
    TooLarge(usize),
}

/// Bytes that the texts of an endpoint may have together, its routes not counted.
const MOST_TEXT: usize = 16 * 1024;

/// A registration as it came.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Message<'a> {
    /// The backend's address or name.
    #[serde(borrow)]
    pub host: Text<'a>,
    /// Its plain port.
    pub port: Option<u16>,
    /// Its port for TLS; if it is not 0, it is the one that counts.
    pub tls_port: Option<u16>,
    /// Its routes: `host[/path]`.
    #[serde(borrow)]
    pub uris: Option<Vec<Text<'a>>>,
    /// Guid of the application.
    #[serde(borrow)]
    pub app: Text<'a>,
    /// Guid of the instance.
    #[serde(borrow)]
    pub private_instance_id: Text<'a>,
    /// Its number.
    #[serde(borrow)]
    pub private_instance_index: Text<'a>,
    /// `http2`; anything else is HTTP/1.1.
    #[serde(borrow)]
    pub protocol: Text<'a>,
    /// The name that its certificate must have.
    #[serde(borrow)]
    pub server_cert_domain_san: Text<'a>,
    /// Seconds without a refresh after which it is stale; 0 or less: the router's.
    pub stale_threshold_in_seconds: Option<i64>,
    /// Labels for metrics.
    #[serde(borrow)]
    pub tags: Tags<'a>,
    /// Where requests go first; begins with https.
    #[serde(borrow)]
    pub route_service_url: Text<'a>,
    /// Which routers take it.
    #[serde(borrow)]
    pub isolation_segment: Text<'a>,
    /// Where the instance is.
    #[serde(borrow)]
    pub availability_zone: Text<'a>,
    /// When the platform changed the instance, nanoseconds since 1970; 0: unknown.
    pub endpoint_updated_at_ns: Option<i64>,
    /// What concerns the whole route.
    #[serde(borrow)]
    pub options: Option<Options<'a>>,
}

/// What a registration says about the whole route.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Options<'a> {
    /// `round-robin`, `least-connection` or `hash`; anything else: as the router does.
    #[serde(borrow)]
    pub loadbalancing: Text<'a>,
    /// The header to hash.
    #[serde(borrow)]
    pub hash_header: Text<'a>,
    /// How uneven the endpoints' load may be: a number, or a text that is one; absent, `null` or
    /// an empty text: 0.
    #[serde(deserialize_with = "text::factor")]
    pub hash_balance: f64,
    /// How far callers may be from the endpoint: `any`, `org` or `space`; empty: anyone may
    /// call.
    #[serde(borrow)]
    pub route_policy_scope: Text<'a>,
    /// Who may call, if there is a scope: policies with commas between them, sent as such a text
    /// or as a list.
    #[serde(borrow, deserialize_with = "text::policies")]
    pub route_policies: Text<'a>,
}

impl<'a> Message<'a> {
    /// Reads a payload.
    ///
    /// # Errors
    /// When it is no registration, or one that must have no effect.
    pub fn parse(payload: &'a [u8]) -> Result<Self, MessageError> {
        // An array would be read as the fields in their order.
        if payload
            .trim_ascii_start()
            .first()
            .is_some_and(|first| *first == b'[')
        {
            return Err(MessageError::Object);
        }
        let message: Self = serde_json::from_slice(payload)?;
        message.check()?;
        Ok(message)
    }

    /// What must hold beyond the form.
    ///
    /// # Errors
    /// When the whole message must have no effect.
    pub fn check(&self) -> Result<(), MessageError> {
        let texts = self.text_bytes();
        if texts > MOST_TEXT {
            return Err(MessageError::TooLarge(texts));
        }
        let url = &*self.route_service_url;
        if url.is_empty() || url.starts_with("https") {
            Ok(())
        } else {
            let shown = url.chars().take(200).collect();
            Err(MessageError::RouteService(shown))
        }
    }

    /// Bytes of what is kept of it, but for its routes.
    fn text_bytes(&self) -> usize {
        let tags = self.tags.0.iter().flatten();
        let tags: usize = tags.map(|(name, value)| name.len() + value.len()).sum();
        let options = self.options.as_ref();
        let options = options.map_or(0, |it| {
            it.hash_header.len() + it.route_policy_scope.len() + it.route_policies.len()
        });
        tags + options
            + self.host.len()
            + self.app.len()
            + self.private_instance_id.len()
            + self.private_instance_index.len()
            + self.server_cert_domain_san.len()
            + self.route_service_url.len()
            + self.isolation_segment.len()
            + self.availability_zone.len()
    }

    /// The same without a borrow.
    pub fn into_owned(self) -> Message<'static> {
        Message {
            host: self.host.into_owned(),
            port: self.port,
            tls_port: self.tls_port,
            uris: self
                .uris
                .map(|uris| uris.into_iter().map(Text::into_owned).collect()),
            app: self.app.into_owned(),
            private_instance_id: self.private_instance_id.into_owned(),
            private_instance_index: self.private_instance_index.into_owned(),
            protocol: self.protocol.into_owned(),
            server_cert_domain_san: self.server_cert_domain_san.into_owned(),
            stale_threshold_in_seconds: self.stale_threshold_in_seconds,
            tags: self.tags.into_owned(),
            route_service_url: self.route_service_url.into_owned(),
            isolation_segment: self.isolation_segment.into_owned(),
            availability_zone: self.availability_zone.into_owned(),
            endpoint_updated_at_ns: self.endpoint_updated_at_ns,
            options: self.options.map(|options| Options {
                loadbalancing: options.loadbalancing.into_owned(),
                hash_header: options.hash_header.into_owned(),
                hash_balance: options.hash_balance,
                route_policy_scope: options.route_policy_scope.into_owned(),
                route_policies: options.route_policies.into_owned(),
            }),
        }
    }

    /// Its routes, as they came.
    pub fn uris(&self) -> impl Iterator<Item = &str> {
        self.uris.iter().flatten().map(|uri| &**uri)
    }

    /// Whether the endpoint speaks TLS.
    pub fn is_tls(&self) -> bool {
        self.tls_port.is_some_and(|port| port != 0)
    }

    /// Writes the endpoint's `host:port` in place of what `into` holds.
    pub fn identity(&self, into: &mut String) {
        let port = match self.tls_port {
            Some(port) if port != 0 => port,
            _ => self.port.unwrap_or(0),
        };
        into.clear();
        into.push_str(&self.host);
        // Writing to a text cannot fail.
        let _ = write!(into, ":{port}");
    }

    /// The component that sent it, as its tags say; empty: unknown.
    pub fn component(&self) -> &str {
        let tags = self.tags.0.as_deref().unwrap_or_default();
        tags.iter()
            .find(|(name, _)| name == "component")
            .map_or("", |(_, value)| value)
    }

    /// What the table is told. `identity` is what [`identity`](Self::identity) wrote;
    /// `http2` whether the router speaks it with backends; `fingerprint` that of the
    /// message, if it may be known again by it.
    pub fn registration<'m>(
        &'m self,
        identity: &'m str,
        http2: bool,
        fingerprint: Option<Fingerprint>,
    ) -> Registration<'m> {
        let options = self.options.as_ref();
        let seconds = self.stale_threshold_in_seconds.unwrap_or(0);
        Registration {
            identity,
            tls: self.is_tls(),
            server_name: &self.server_cert_domain_san,
            protocol: match &*self.protocol {
                "http2" if http2 => BackendProtocol::Http2,
                _ => BackendProtocol::Http1,
            },
            app: &self.app,
            instance_id: &self.private_instance_id,
            instance_index: &self.private_instance_index,
            zone: &self.availability_zone,
            isolation_segment: &self.isolation_segment,
            tags: self.tags.0.as_deref(),
            stale_after: Duration::from_secs(u64::try_from(seconds).unwrap_or(0)),
            modification_guid: "",
            modification_index: 0,
            route_service_url: &self.route_service_url,
            algorithm: options.and_then(Options::algorithm),
            hash_header: options.map_or("", |it| &it.hash_header),
            hash_balance: options.map_or(0.0, |it| it.hash_balance),
            policy_scope: options.map_or("", |it| &it.route_policy_scope),
            policies: options.map_or("", |it| &it.route_policies),
            fingerprint,
        }
    }
}

impl Options<'_> {
    fn algorithm(&self) -> Option<Algorithm> {
        match &*self.loadbalancing {
            "round-robin" => Some(Algorithm::RoundRobin),
            "least-connection" => Some(Algorithm::LeastConnection),
            // Without a header there is nothing to hash.
            "hash" if !self.hash_header.is_empty() => Some(Algorithm::Hash),
            _ => None,
        }
    }
}
