//! A client of the REST API, for those who administer.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Uri};
use http_body_util::Full;
use net::{Client, ClientError, ClientOptions};
use serde_json::Value;

use crate::server::files;
use crate::trust::{self, ServerPin, TrustError};

/// Why a call has no data.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The folder of a server's data cannot be used.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// There is no server.
    #[error(
        "call the compliance server at {url}: {cause}; start it with headroom compliance server"
    )]
    Unreachable {
        /// Its address.
        url: String,
        /// What happened.
        cause: ClientError,
    },
    /// The server refuses.
    #[error("{0}")]
    Refused(String),
    /// The server did a part.
    #[error("{details}")]
    InPart {
        /// What it says of the rest.
        details: String,
        /// What it did, and what not.
        data: Value,
    },
    /// The answer is none of such a server.
    #[error("call {url}: the answer is {status} and no JSON of a compliance server")]
    Answer {
        /// What was called.
        url: String,
        /// The status.
        status: u16,
    },
}

/// Calls one server.
pub struct ApiClient {
    client: Client,
    url: String,
    token: String,
}

impl ApiClient {
    /// A client for the server whose data is in this folder: there stand its address, its
    /// certificate and the token. Another address may be given.
    ///
    /// # Errors
    /// The files are not there.
    pub fn of_data(data: &Path, url: Option<&str>) -> Result<Self, CallError> {
        let read = |name: &str| {
            let path = data.join(name);
            std::fs::read_to_string(&path).map_err(|error| TrustError::file("read", &path, error))
        };
        let pin = ServerPin::of_pem(read(files::CERTIFICATE)?.as_bytes())?;
        let token = read(files::TOKEN)?.trim().to_owned();
        let url = match url {
            Some(url) => url.to_owned(),
            None => read(files::ADDRESS)?,
        };
        let client = Client::new(ClientOptions {
            // A plan for a large fleet takes its time.
            answer_within: Duration::from_secs(600),
            tls: Some(trust::client(Arc::new(pin), None)?),
            ..ClientOptions::default()
        });
        let url = url.trim_end_matches('/').to_owned();
        Ok(Self { client, url, token })
    }

    /// Calls `path` below `/rudder/api/latest`, and gives the data of the answer.
    ///
    /// # Errors
    /// The server is not there, refuses, or did a part.
    pub async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, CallError> {
        let url = format!("{}/rudder/api/latest/{path}", self.url);
        let refused = |why: &dyn std::fmt::Display| CallError::Refused(format!("{url}: {why}"));
        let uri: Uri = url.parse().map_err(|error| refused(&error))?;
        let body = body.map_or_else(Bytes::new, |body| body.to_string().into());
        let request = Request::builder()
            .method(method)
            .uri(uri)
            .header("X-API-Token", &self.token)
            .body(Full::new(body))
            .map_err(|error| refused(&error))?;
        let answer = self.client.request(request).await;
        let answer = answer.map_err(|cause| CallError::Unreachable {
            url: self.url.clone(),
            cause,
        })?;
        let status = answer.status.as_u16();
        let mut json: Value =
            serde_json::from_slice(&answer.body).map_err(|_| CallError::Answer { url, status })?;
        match json["errorDetails"].take() {
            Value::String(details) => match json["data"].take() {
                Value::Null => Err(CallError::Refused(details)),
                data => Err(CallError::InPart { details, data }),
            },
            _ => Ok(json["data"].take()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    #[test]
    fn what_happened_is_said_once() {
        let error = CallError::Unreachable {
            url: "https://host:1".into(),
            cause: ClientError::Connect {
                host: "host:1".into(),
                cause: "refused".into(),
                lasts: false,
            },
        };
        let told = error.to_string();
        assert!(told.contains("connect to host:1: refused; start"), "{told}");
        assert!(error.source().is_none());
    }
}
