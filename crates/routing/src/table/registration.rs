//! What a feed says about one route and one of its endpoints.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use super::text::{TextCache, alike};
use super::{
    Algorithm, BackendProtocol, Endpoint, EndpointState, Fingerprint, LastFingerprint,
    Modification, PoolSettings, Text,
};

/// An endpoint and what it says about its route, as a message names them. The fields mean
/// what those of [`Endpoint`] and [`PoolSettings`] do.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Registration<'a> {
    /// `host:port`, where the port is the one that is used.
    pub identity: &'a str,
    /// Whether to speak TLS to it.
    pub tls: bool,
    /// The name that its certificate must have.
    pub server_name: &'a str,
    /// What it speaks.
    pub protocol: BackendProtocol,
    /// Guid of the application.
    pub app: &'a str,
    /// `private_instance_id`.
    pub instance_id: &'a str,
    /// `private_instance_index`.
    pub instance_index: &'a str,
    /// Availability zone.
    pub zone: &'a str,
    /// Isolation segment.
    pub isolation_segment: &'a str,
    /// Tags, in the order of their names: in another order they count as changed.
    pub tags: Option<&'a [(Cow<'a, str>, Cow<'a, str>)]>,
    /// Time without a refresh after which it is stale; 0, or more than the table's: the
    /// table's.
    pub stale_after: Duration,
    /// Guid of its modification tag; empty: it has none.
    pub modification_guid: &'a str,
    /// Index of its modification tag.
    pub modification_index: u32,
    /// Where requests go first.
    pub route_service_url: &'a str,
    /// How to choose.
    pub algorithm: Option<Algorithm>,
    /// The header to hash.
    pub hash_header: &'a str,
    /// See [`PoolSettings::hash_balance`].
    pub hash_balance: f64,
    /// How far callers may be from it.
    pub policy_scope: &'a str,
    /// Who may call.
    pub policies: &'a str,
    /// The message that says this; `None`: it must be read again whenever it comes.
    pub fingerprint: Option<Fingerprint>,
}

impl<'a> Registration<'a> {
    /// What `endpoint` and `pool` say, but for tags.
    pub(super) fn of(endpoint: &'a Endpoint, pool: &'a PoolSettings) -> Self {
        Self {
            identity: &endpoint.identity,
            tls: endpoint.tls,
            server_name: &endpoint.server_name,
            protocol: endpoint.protocol,
            app: &endpoint.app,
            instance_id: &endpoint.instance_id,
            instance_index: &endpoint.instance_index,
            zone: &endpoint.zone,
            isolation_segment: &endpoint.isolation_segment,
            tags: None,
            stale_after: endpoint.stale_after,
            modification_guid: &endpoint.modification.guid,
            modification_index: endpoint.modification.index,
            route_service_url: &pool.route_service_url,
            algorithm: pool.algorithm,
            hash_header: &pool.hash_header,
            hash_balance: pool.hash_balance,
            policy_scope: &pool.policy_scope,
            policies: &pool.policies,
            fingerprint: None,
        }
    }

    /// Whether `endpoint` is what this says, if it says `stale_after`. The identity is
    /// known to be the same.
    pub(super) fn describes(&self, endpoint: &Endpoint, stale_after: Duration) -> bool {
        let tags = match (&endpoint.tags, self.tags) {
            (None, None) => true,
            (Some(stored), Some(tags)) => alike(stored, tags),
            _ => false,
        };
        tags && endpoint.tls == self.tls
            && endpoint.protocol == self.protocol
            && endpoint.stale_after == stale_after
            && endpoint.modification.index == self.modification_index
            && same(&endpoint.modification.guid, self.modification_guid)
            && same(&endpoint.server_name, self.server_name)
            && same(&endpoint.app, self.app)
            && same(&endpoint.instance_id, self.instance_id)
            && same(&endpoint.instance_index, self.instance_index)
            && same(&endpoint.zone, self.zone)
            && same(&endpoint.isolation_segment, self.isolation_segment)
    }

    /// Whether `pool` is what this says about the route.
    pub(super) fn agrees_with(&self, pool: &PoolSettings) -> bool {
        pool.algorithm == self.algorithm
            && same(&pool.route_service_url, self.route_service_url)
            && same(&pool.hash_header, self.hash_header)
            && pool.hash_balance == self.hash_balance
            && same(&pool.policy_scope, self.policy_scope)
            && same(&pool.policies, self.policies)
    }

    /// The endpoint that this describes.
    pub(super) fn endpoint(
        &self,
        texts: &mut TextCache,
        stale_after: Duration,
        state: Arc<EndpointState>,
    ) -> Endpoint {
        Endpoint {
            identity: texts.text(self.identity),
            tls: self.tls,
            server_name: texts.text(self.server_name),
            protocol: self.protocol,
            app: texts.text(self.app),
            instance_id: texts.text(self.instance_id),
            instance_index: texts.text(self.instance_index),
            zone: texts.text(self.zone),
            isolation_segment: texts.text(self.isolation_segment),
            tags: self.tags.map(|tags| texts.tags(tags)),
            stale_after,
            modification: Modification {
                guid: texts.text(self.modification_guid),
                index: self.modification_index,
            },
            last_fingerprint: LastFingerprint::of(self.fingerprint),
            state,
        }
    }

    /// What this says about the route.
    pub(super) fn pool_settings(&self) -> PoolSettings {
        PoolSettings {
            route_service_url: self.route_service_url.into(),
            algorithm: self.algorithm,
            hash_header: self.hash_header.into(),
            hash_balance: self.hash_balance,
            policy_scope: self.policy_scope.into(),
            policies: self.policies.into(),
        }
    }
}

/// Whether two texts are equal. Most are empty, and comparing nothing is dear: processors
/// with AVX-512 take 50 ns to load no bytes from the address that Rust gives to an empty text.
fn same(stored: &str, said: &str) -> bool {
    stored.len() == said.len() && (said.is_empty() || stored == said)
}

/// Borrowed tags of an endpoint, as a registration has them.
pub(super) fn borrowed(tags: &[(Text, Text)]) -> Vec<(Cow<'_, str>, Cow<'_, str>)> {
    tags.iter()
        .map(|(name, value)| (name.as_str().into(), value.as_str().into()))
        .collect()
}
