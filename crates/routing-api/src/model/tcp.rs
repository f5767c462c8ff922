//! TCP mappings: an external port leads to a backend.

use std::fmt::{self, Display};

use serde::{Deserialize, Serialize};

use super::{ApiError, ErrorName, MOST_TEXT, ModificationTag, can_be_kept, is_default, or_default};

/// One backend of an external port. Fields stand in the order of the JSON.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpMapping {
    /// The router group that listens.
    #[serde(default, deserialize_with = "or_default")]
    pub router_group_guid: String,
    /// Port of the backend without TLS.
    #[serde(default, deserialize_with = "or_default")]
    pub backend_port: u16,
    /// Port of the backend with TLS; 0: none, -1: none on purpose.
    #[serde(default, deserialize_with = "or_default")]
    pub backend_tls_port: i64,
    /// Address of the backend.
    #[serde(default, deserialize_with = "or_default")]
    pub backend_ip: String,
    /// Only connections that name this server (SNI) are meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend_sni_hostname: Option<String>,
    /// The server name to send to a backend with TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sni_rewrite_hostname: Option<String>,
    /// Guid of the instance: the name that its certificate must have.
    #[serde(default, deserialize_with = "or_default")]
    pub instance_id: String,
    /// The external port.
    #[serde(default, deserialize_with = "or_default")]
    pub port: u16,
    /// Which state of the row this is. What a request says here is ignored.
    #[serde(default, deserialize_with = "or_default")]
    pub modification_tag: ModificationTag,
    /// Seconds until the row expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<i64>,
    /// Isolation segment; empty: the shared one.
    #[serde(default, deserialize_with = "or_default")]
    pub isolation_segment: String,
    /// Whether the router ends the client's TLS.
    #[serde(
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "is_default"
    )]
    pub terminate_frontend_tls: bool,
    /// Protocols to offer within it, separated by commas; empty: none.
    #[serde(
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "is_default"
    )]
    pub alpns: String,
    /// Whether the router shows its own certificate to the backend.
    #[serde(
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "is_default"
    )]
    pub enable_backend_mtls: bool,
}

/// What makes two mappings the same row. Its order brings the backends of one port and
/// server name together. An empty server name means what a missing one means.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TcpKey {
    /// The external port.
    pub port: u16,
    /// The server name; empty: any.
    pub sni: String,
    /// The router group.
    pub router_group_guid: String,
    /// Address of the backend.
    pub backend_ip: String,
    /// Port of the backend without TLS.
    pub backend_port: u16,
    /// Port of the backend with TLS.
    pub backend_tls_port: i64,
    /// Whether the router shows its certificate.
    pub enable_backend_mtls: bool,
}

impl TcpMapping {
    /// Which row it is.
    pub fn key(&self) -> TcpKey {
        TcpKey {
            port: self.port,
            sni: self.backend_sni_hostname.clone().unwrap_or_default(),
            router_group_guid: self.router_group_guid.clone(),
            backend_ip: self.backend_ip.clone(),
            backend_port: self.backend_port,
            backend_tls_port: self.backend_tls_port,
            enable_backend_mtls: self.enable_backend_mtls,
        }
    }

    /// Checks a mapping that is to be written. Without a time to live it gets the longest.
    ///
    /// # Errors
    /// `TcpRouteMappingInvalidError` with the text of the first rule that it breaks.
    pub fn check_upsert(&mut self, max_ttl: i64) -> Result<(), ApiError> {
        let ttl = *self.ttl.get_or_insert(max_ttl);
        self.check_places()?;
        self.check_texts()?;
        if ttl > max_ttl {
            let rule = format!("requires TTL to be less than or equal to {max_ttl}");
            return Err(self.breaks(&rule));
        }
        if ttl <= 0 {
            let message = "Each tcp route mapping requires a ttl greater than 0";
            return Err(ApiError::new(
                ErrorName::TcpRouteMappingInvalidError,
                message,
            ));
        }
        self.check_alpns()
    }

    /// Checks a mapping that is to be deleted.
    ///
    /// # Errors
    /// As for one that is to be written, but for the time to live.
    pub fn check_delete(&self) -> Result<(), ApiError> {
        self.check_places()?;
        self.check_texts()?;
        self.check_alpns()
    }

    fn check_places(&self) -> Result<(), ApiError> {
        if self.router_group_guid.is_empty() {
            return Err(self.breaks("requires a non empty router group guid"));
        }
        if self.port == 0 {
            return Err(self.breaks("requires a positive external port"));
        }
        if self.backend_ip.is_empty() {
            return Err(self.breaks("requires a non empty backend ip"));
        }
        if self.backend_port == 0 && self.backend_tls_port <= 0 {
            return Err(self.breaks("requires a positive backend port"));
        }
        if self.backend_tls_port > 65535 {
            return Err(self.breaks(
                "with a backend TLS port requires that port to be less than or equal to 65535",
            ));
        }
        Ok(())
    }

    fn check_texts(&self) -> Result<(), ApiError> {
        let names = [&self.backend_sni_hostname, &self.sni_rewrite_hostname];
        let texts = [
            &self.router_group_guid,
            &self.backend_ip,
            &self.instance_id,
            &self.isolation_segment,
            &self.alpns,
        ];
        let mut all = texts.into_iter().chain(names.into_iter().flatten());
        if all.all(|text| can_be_kept(text)) {
            return Ok(());
        }
        let message = format!(
            "Each tcp mapping requires texts of at most {MOST_TEXT} bytes without control characters"
        );
        Err(ApiError::new(
            ErrorName::TcpRouteMappingInvalidError,
            message,
        ))
    }

    fn check_alpns(&self) -> Result<(), ApiError> {
        if !self.alpns.is_empty() && !self.terminate_frontend_tls {
            return Err(self.breaks("can define ALPNs only when TerminateFrontendTLS is enabled"));
        }
        Ok(())
    }

    fn breaks(&self, rule: &str) -> ApiError {
        let message = format!("Each tcp mapping {rule}. RouteMapping=[{self}]");
        ApiError::new(ErrorName::TcpRouteMappingInvalidError, message)
    }

    /// What becomes of this row when `wanted` is written over it: only some fields follow.
    #[must_use]
    pub fn renewed(&self, wanted: &Self) -> Self {
        let mut row = self.clone();
        row.modification_tag.index = row.modification_tag.index.wrapping_add(1);
        row.ttl = wanted.ttl.or(row.ttl);
        row.isolation_segment.clone_from(&wanted.isolation_segment);
        row.sni_rewrite_hostname
            .clone_from(&wanted.sni_rewrite_hostname);
        row
    }
}

impl Display for TcpMapping {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (group, port) = (&self.router_group_guid, self.port);
        let (ip, backend_port) = (&self.backend_ip, self.backend_port);
        write!(formatter, "{group}:{port}<->{ip}:{backend_port}")
    }
}
