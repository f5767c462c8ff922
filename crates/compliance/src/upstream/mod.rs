//! The way to the server, or relay, that a node has its policies from: who it is there, and what it
//! says.

mod identity;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ETAG, IF_NONE_MATCH, RETRY_AFTER};
use http::{Method, Request, StatusCode, Uri};
use http_body_util::Full;
use jiff::Timestamp;
use net::{Answer, Client, ClientError, ClientOptions};

use crate::inventory::{InventorySignature, NodeFacts, write};
use crate::model::check_id;
use crate::model::node::ROOT;
use crate::policy::signature::PolicyKey;
use crate::trust::{self, ServerPin, TrustError};

pub(crate) use identity::{
    NodeIdentity, inventory_is_due, keep_pin, keep_policy_key, keep_sent, policy_key, random_id,
    server_pin,
};

/// Bytes of an answer: of a policy, packed, or of a list of nodes.
const ANSWER_BYTES: usize = 64 << 20;
/// Relays that a file came over, from the first, with commas between.
pub(crate) const RELAYS: &str = "x-compliance-relays";
/// Longest wait for an answer.
const WITHIN: Duration = Duration::from_secs(30);

/// Why there is no way to a server.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// The node's key or certificate cannot be used.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// Its folder cannot be used.
    #[error("use the node's folder {}: {cause}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// The server's address is none.
    #[error("the server is {0:?}; expected https://HOST:PORT")]
    Address(String),
}

/// The way to the server.
pub(crate) struct Wire {
    client: Client,
    url: String,
}

/// The answer to a conditional request, for something that changes at times.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ConditionalAnswer {
    /// It is another: its tag, and the document.
    New(String, Bytes),
    /// It is the one that the node has.
    Same,
    /// There is none, and why.
    None {
        /// The status.
        status: StatusCode,
        /// What the server says.
        why: String,
    },
}

/// Why something was not said.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WireError {
    /// The server is not there, or not the one that is known.
    #[error("{0}; the server may be away, or another than was trusted first")]
    Away(#[from] ClientError),
    /// The server is too busy; later it may take the same.
    #[error("the server does not take it now ({status}): {why}")]
    Later {
        /// The status.
        status: StatusCode,
        /// When to come again, if it says so.
        after: Option<Duration>,
        /// What it says.
        why: String,
    },
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
    pub(crate) fn new(
        url: &str,
        pin: Arc<ServerPin>,
        identity: &NodeIdentity,
        connections: usize,
    ) -> Result<Self, AccessError> {
        let url = url.trim_end_matches('/').to_owned();
        let uri = url.parse::<Uri>().ok();
        if uri.is_none_or(|uri| uri.scheme_str() != Some("https")) {
            return Err(AccessError::Address(url));
        }
        let client = Client::new(ClientOptions {
            connections_per_host: connections,
            answer_within: WITHIN,
            answer_bytes: ANSWER_BYTES,
            tls: Some(trust::client(pin, Some(&identity.pems))?),
            ..ClientOptions::default()
        });
        Ok(Self { client, url })
    }

    async fn request(
        &self,
        method: Method,
        path: &str,
        header: Option<(&str, &str)>,
        body: Bytes,
    ) -> Result<Answer, WireError> {
        let made = |error: http::Error| WireError::Made(error.to_string());
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.url));
        if let Some((name, value)) = header {
            request = request.header(name, value);
        }
        let request = request.body(Full::new(body)).map_err(made)?;
        Ok(self.client.request(request).await?)
    }

    /// Sends a file; gives what the server says.
    pub(crate) async fn put(&self, path: &str, body: Bytes) -> Result<String, WireError> {
        self.put_over(path, "", body).await.map(|(_, told)| told)
    }

    /// The same for a file that came over these relays, with the status.
    pub(crate) async fn put_over(
        &self,
        path: &str,
        relays: &str,
        body: Bytes,
    ) -> Result<(StatusCode, String), WireError> {
        let header = (!relays.is_empty()).then_some((RELAYS, relays));
        let answer = self.request(Method::PUT, path, header, body).await?;
        match answer.status {
            status if status.is_success() => Ok((status, body_text(&answer))),
            status => Err(refused(status, &answer)),
        }
    }

    /// The identity of the server: that of a relay, or [`ROOT`].
    pub(crate) async fn server_id(&self) -> Result<String, WireError> {
        let answer = self.request(Method::GET, "/uuid", None, Bytes::new());
        let answer = answer.await?;
        let id = body_text(&answer);
        match answer.status {
            StatusCode::OK if check_id("node", &id).is_ok() => Ok(id),
            // One that has no such path has no relays either.
            StatusCode::OK | StatusCode::NOT_FOUND => Ok(ROOT.to_owned()),
            status => Err(refused(status, &answer)),
        }
    }

    /// The key by which policies are known as the server's, as the server says, or a relay of it.
    pub(crate) async fn policy_key(&self) -> Result<PolicyKey, WireError> {
        let answer = self.request(Method::GET, "/policy-key", None, Bytes::new());
        let answer = answer.await?;
        match answer.status {
            StatusCode::OK => PolicyKey::from_pem(&answer.body)
                .map_err(|error| WireError::Made(error.to_string())),
            status => Err(refused(status, &answer)),
        }
    }

    /// Signs and sends an inventory that names the server which is asked as the node's.
    pub(crate) async fn enrol(
        &self,
        identity: &NodeIdentity,
        facts: &mut NodeFacts,
        now: Timestamp,
    ) -> Result<String, WireError> {
        let server = self.server_id().await?;
        // A relay may serve the agent of its own machine.
        let own = server == identity.id;
        facts.node.policy_server_id = if own { ROOT.to_owned() } else { server };
        self.inventory(identity, facts, now).await
    }

    /// Signs and sends an inventory.
    pub(crate) async fn inventory(
        &self,
        identity: &NodeIdentity,
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

    /// Asks for a node's policy, if it is another than `known`.
    pub(crate) async fn policy(
        &self,
        node: &str,
        known: Option<&str>,
    ) -> Result<ConditionalAnswer, WireError> {
        self.get_if_changed(&format!("/policies/{node}/rules/policy.json.gz"), known)
            .await
    }

    /// Asks which nodes are behind a relay, if it are others than in the list `known`.
    pub(crate) async fn nodes(
        &self,
        relay: &str,
        known: Option<&str>,
    ) -> Result<ConditionalAnswer, WireError> {
        self.get_if_changed(&format!("/relays/{relay}/nodes.json"), known)
            .await
    }

    async fn get_if_changed(
        &self,
        path: &str,
        known: Option<&str>,
    ) -> Result<ConditionalAnswer, WireError> {
        let tag = known.map(|known| format!("\"{known}\""));
        let header = tag.as_deref().map(|tag| (IF_NONE_MATCH.as_str(), tag));
        let answer = self.request(Method::GET, path, header, Bytes::new());
        let answer = answer.await?;
        match answer.status {
            StatusCode::OK => {
                let tag = answer.headers.get(ETAG);
                let tag = tag.and_then(|tag| tag.to_str().ok());
                let tag = tag.unwrap_or_default().trim_matches('"').to_owned();
                Ok(ConditionalAnswer::New(tag, answer.body))
            }
            StatusCode::NOT_MODIFIED => Ok(ConditionalAnswer::Same),
            status @ (StatusCode::FORBIDDEN | StatusCode::NOT_FOUND) => {
                Ok(ConditionalAnswer::None {
                    status,
                    why: body_text(&answer),
                })
            }
            status => Err(refused(status, &answer)),
        }
    }
}

/// The body of an answer as text.
fn body_text(answer: &Answer) -> String {
    String::from_utf8_lossy(&answer.body).trim().to_owned()
}

/// An answer that is no success: will the server take the same later?
fn refused(status: StatusCode, answer: &Answer) -> WireError {
    let why = body_text(answer);
    let again = [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_MANY_REQUESTS];
    if !status.is_server_error() && !again.contains(&status) {
        return WireError::Refused { status, why };
    }
    let after = answer.headers.get(RETRY_AFTER);
    let after = after.and_then(|after| after.to_str().ok()?.parse().ok());
    WireError::Later {
        status,
        after: after.map(Duration::from_secs),
        why,
    }
}
