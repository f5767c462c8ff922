//! What an agent says to its server.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ETAG, IF_NONE_MATCH};
use http::{Method, Request, StatusCode, Uri};
use http_body_util::Full;
use jiff::Timestamp;
use net::{Answer, Client, ClientError, ClientOptions};

use super::Error;
use super::identity::AgentIdentity;
use crate::inventory::{InventorySignature, NodeFacts, write};
use crate::trust::{self, ServerPin};

/// Bytes of a policy, packed.
const POLICY_BYTES: usize = 64 << 20;
/// Longest wait for an answer.
const WITHIN: Duration = Duration::from_secs(30);

/// The way to the server.
pub(super) struct Wire {
    client: Client,
    url: String,
}

/// What an agent is told of its policy.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// It is another: its configuration, and the packed document.
    New(String, Bytes),
    /// It is the one that the agent has.
    Same,
    /// There is none, and why.
    None(String),
}

/// Why something was not said.
#[derive(Debug, thiserror::Error)]
pub(super) enum WireError {
    /// The server is not there, or not the one that is known.
    #[error("{0}; the server may be away, or another than was trusted first")]
    Away(#[from] ClientError),
    /// The server is too busy; later it may take the same.
    #[error("the server does not take it now: {0}")]
    Later(String),
    /// The server will never take it.
    #[error("the server refuses ({status}): {why}")]
    Refused {
        /// The status.
        status: StatusCode,
        /// What it says.
        why: String,
    },
    /// It could not be made.
    #[error("{0}")]
    Made(String),
}

impl Wire {
    pub(super) fn new(
        url: &str,
        pin: Arc<ServerPin>,
        identity: &AgentIdentity,
    ) -> Result<Self, Error> {
        let url = url.trim_end_matches('/').to_owned();
        let uri = url.parse::<Uri>().ok();
        if uri.is_none_or(|uri| uri.scheme_str() != Some("https")) {
            return Err(Error::Address(url));
        }
        let client = Client::new(ClientOptions {
            connections_per_host: 1,
            answer_within: WITHIN,
            answer_bytes: POLICY_BYTES,
            tls: Some(trust::client(pin, Some(&identity.pems))?),
            ..ClientOptions::default()
        });
        Ok(Self { client, url })
    }

    async fn request(
        &self,
        method: Method,
        path: &str,
        tag: Option<&str>,
        body: Bytes,
    ) -> Result<Answer, WireError> {
        let made = |error: http::Error| WireError::Made(error.to_string());
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.url));
        if let Some(tag) = tag {
            request = request.header(IF_NONE_MATCH, tag);
        }
        let request = request.body(Full::new(body)).map_err(made)?;
        Ok(self.client.request(request).await?)
    }

    /// Sends a file; gives what the server says.
    pub(super) async fn put(&self, path: &str, body: Bytes) -> Result<String, WireError> {
        let answer = self.request(Method::PUT, path, None, body).await?;
        let why = String::from_utf8_lossy(&answer.body).trim().to_owned();
        match answer.status {
            status if status.is_success() => Ok(why),
            status if status.is_server_error() => Err(WireError::Later(why)),
            StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => {
                Err(WireError::Later(why))
            }
            status => Err(WireError::Refused { status, why }),
        }
    }

    /// Signs and sends an inventory.
    pub(super) async fn inventory(
        &self,
        identity: &AgentIdentity,
        facts: &NodeFacts,
        now: Timestamp,
    ) -> Result<String, WireError> {
        let xml = write(facts);
        let hostname = &facts.node.hostname;
        let date = now.to_string();
        let signature = InventorySignature::sign(
            xml.as_bytes(),
            &identity.key,
            &identity.certificate,
            hostname,
            &date,
        );
        let signature = signature.map_err(|error| WireError::Made(error.to_string()))?;
        let name = format!("/inventories/{}_{}.ocs", identity.id, now.as_second());
        let packed = crate::server::pack(xml.as_bytes());
        self.put(&format!("{name}.sign"), signature.to_file().into())
            .await?;
        self.put(&format!("{name}.gz"), packed.into()).await
    }

    /// Asks for the policy, if it is another than `known`.
    pub(super) async fn policy(&self, node: &str, known: Option<&str>) -> Result<Asked, WireError> {
        let path = format!("/policies/{node}/rules/policy.json.gz");
        let tag = known.map(|config_id| format!("\"{config_id}\""));
        let answer = self
            .request(Method::GET, &path, tag.as_deref(), Bytes::new())
            .await?;
        let why = || String::from_utf8_lossy(&answer.body).trim().to_owned();
        match answer.status {
            StatusCode::OK => {
                let tag = answer.headers.get(ETAG);
                let tag = tag.and_then(|tag| tag.to_str().ok());
                let config_id = tag.unwrap_or_default().trim_matches('"').to_owned();
                Ok(Asked::New(config_id, answer.body))
            }
            StatusCode::NOT_MODIFIED => Ok(Asked::Same),
            StatusCode::FORBIDDEN | StatusCode::NOT_FOUND => Ok(Asked::None(why())),
            status if status.is_server_error() => Err(WireError::Later(why())),
            status => {
                let why = why();
                Err(WireError::Refused { status, why })
            }
        }
    }
}
