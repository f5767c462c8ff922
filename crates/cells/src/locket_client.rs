//! Calls to the Locket of a BBS, over plain HTTP or HTTPS.

use std::time::Duration;

use bytes::Bytes;
use diego::locket::{LockRequest, ReleaseRequest, Resource};
use diego::{PROTOBUF, path};
use http::header::HeaderMap;
use http::{StatusCode, Uri};
use net::Client;
use prost::Message;

/// Why a key was not taken, renewed or given up.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refused {
    /// Somebody else holds it.
    #[error("another {0} holds it; this one does nothing until that one ends")]
    Taken(&'static str),
    /// The call failed.
    #[error("{0}")]
    Other(String),
}

/// A Locket.
pub(crate) struct LocketClient {
    pub(crate) client: Client,
    /// Where it answers.
    pub(crate) base: String,
    /// What its keys are held by, for errors.
    pub(crate) holder: &'static str,
}

impl LocketClient {
    /// Takes or renews a key for at least a second.
    pub(crate) async fn lock(&self, resource: Resource, ttl: Duration) -> Result<(), Refused> {
        let request = LockRequest {
            resource: Some(resource),
            ttl_in_seconds: i64::try_from(ttl.as_secs()).unwrap_or(i64::MAX).max(1),
        };
        self.post(path::LOCKET_LOCK, &request).await
    }

    /// Gives a key up.
    pub(crate) async fn release(&self, resource: Resource) -> Result<(), Refused> {
        let request = ReleaseRequest {
            resource: Some(resource),
        };
        self.post(path::LOCKET_RELEASE, &request).await
    }

    async fn post(&self, path: &str, request: &impl Message) -> Result<(), Refused> {
        let uri: Uri = format!("{}{path}", self.base)
            .parse()
            .map_err(|_| Refused::Other(format!("{:?} is not the address of a BBS", self.base)))?;
        let body = Bytes::from(request.encode_to_vec());
        let answer = self
            .client
            .post(&uri, PROTOBUF, HeaderMap::new(), body)
            .await;
        let answer = answer.map_err(|error| Refused::Other(error.to_string()))?;
        match answer.status {
            StatusCode::OK => return Ok(()),
            StatusCode::CONFLICT => return Err(Refused::Taken(self.holder)),
            _ => {}
        }
        let text = answer
            .headers
            .get("grpc-message")
            .and_then(|text| text.to_str().ok());
        Err(Refused::Other(format!(
            "status {} from {path}: {}",
            answer.status.as_u16(),
            text.unwrap_or("no message")
        )))
    }
}
