//! Locks and presences of a Locket, over gRPC.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use diego::json::shapes;
use diego::locket::{FetchAllRequest, LockRequest, ReleaseRequest, Resource, TypeCode};
use diego::path;
use http_body_util::Full;
use net::ClientError;
use net::tls::ClientConfig;
use prost::Message;
use wire::http2::{Answer, grpc};

use super::failure::no_connection;
use super::{Failure, Rows};

/// Longest answer: more than 100,000 cells.
const ANSWER_BYTES: usize = 256 << 20;

/// gRPC's codes by their number.
const CODES: [&str; 17] = [
    "OK",
    "Canceled",
    "Unknown",
    "InvalidArgument",
    "DeadlineExceeded",
    "NotFound",
    "AlreadyExists",
    "PermissionDenied",
    "ResourceExhausted",
    "FailedPrecondition",
    "Aborted",
    "OutOfRange",
    "Unimplemented",
    "Internal",
    "Unavailable",
    "DataLoss",
    "Unauthenticated",
];
const DEADLINE_EXCEEDED: u16 = 4;
const INTERNAL: u16 = 13;
const UNAVAILABLE: u16 = 14;

/// What a Locket keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Of those that may run once only.
    Lock,
    /// Of those that are there.
    Presence,
}

impl Kind {
    fn code(self) -> i32 {
        match self {
            Self::Lock => TypeCode::Lock.into(),
            Self::Presence => TypeCode::Presence.into(),
        }
    }
}

/// Asks a Locket.
pub struct LocketCaller {
    pub(super) host: String,
    pub(super) tls: Option<Arc<ClientConfig>>,
    pub(super) within: Duration,
}

/// `FetchAllResponse`, its resources undecoded.
#[derive(Clone, PartialEq, Message)]
struct Fetched {
    #[prost(bytes = "bytes", repeated, tag = "1")]
    resources: Vec<Bytes>,
}

impl LocketCaller {
    /// Everything of a kind.
    ///
    /// # Errors
    /// See [`Failure`], as for everything that a Locket is asked.
    pub async fn list(&self, kind: Kind) -> Result<Rows, Failure> {
        let request = FetchAllRequest {
            r#type: String::new(),
            type_code: kind.code(),
        };
        let answer = self.call(path::LOCKET_FETCH_ALL, &request).await?;
        let fetched = Fetched::decode(answer);
        let fetched = fetched.map_err(|error| refused(INTERNAL, &error.to_string()))?;
        Ok(Rows {
            shape: &shapes::RESOURCE,
            rows: fetched.resources,
        })
    }

    /// Takes or renews a key for so many seconds.
    ///
    /// # Errors
    /// See [`Failure`]; also when another owner has it.
    pub async fn claim(
        &self,
        kind: Kind,
        key: &str,
        owner: &str,
        value: &str,
        seconds: i64,
    ) -> Result<(), Failure> {
        let resource = Resource {
            key: key.to_owned(),
            owner: owner.to_owned(),
            value: value.to_owned(),
            r#type: String::new(),
            type_code: kind.code(),
        };
        let request = LockRequest {
            resource: Some(resource),
            ttl_in_seconds: seconds,
        };
        self.call(path::LOCKET_LOCK, &request).await.map(drop)
    }

    /// Gives a key up for its owner.
    ///
    /// # Errors
    /// See [`Failure`]; also when another owner has it.
    pub async fn release(&self, key: &str, owner: &str) -> Result<(), Failure> {
        let resource = Resource {
            key: key.to_owned(),
            owner: owner.to_owned(),
            ..Resource::default()
        };
        let request = ReleaseRequest {
            resource: Some(resource),
        };
        self.call(path::LOCKET_RELEASE, &request).await.map(drop)
    }

    async fn call(&self, path: &str, request: &impl Message) -> Result<Bytes, Failure> {
        let internal = |error: grpc::GrpcError| refused(INTERNAL, &error.to_string());
        let framed = grpc::frame(&request.encode_to_vec()).map_err(internal)?;
        let request = grpc::request(self.tls.is_some(), &self.host, path).map_err(internal)?;
        let request = request.map(|()| Full::new(framed));
        let exchange = net::http2_exchange(&self.host, self.tls.as_ref(), request, ANSWER_BYTES);
        let answer = tokio::time::timeout(self.within, exchange).await;
        let answer = answer.map_err(|_| {
            let text = format!("no answer from {} within {:?}", self.host, self.within);
            refused(DEADLINE_EXCEEDED, &text)
        })?;
        let answer = answer.map_err(|cause: ClientError| {
            refused(UNAVAILABLE, &no_connection("connection error", &cause))
        })?;
        let body = answer.body;
        let status = grpc::status(&Answer {
            status: answer.status.as_u16(),
            headers: answer.headers,
            trailers: answer.trailers,
            body_bytes: body.len() as u64,
            body: Vec::new(),
        });
        match status.code {
            0 => Ok(body.slice_ref(grpc::message(&body).map_err(internal)?)),
            code => Err(refused(code, &status.message)),
        }
    }
}

/// As Go's gRPC tells a status.
fn refused(code: u16, text: &str) -> Failure {
    let name = match CODES.get(usize::from(code)) {
        Some(name) => (*name).to_owned(),
        None => format!("Code({code})"),
    };
    Failure::Component(format!("rpc error: code = {name} desc = {text}"))
}
