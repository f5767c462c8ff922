//! Locket's calls as plain HTTP: the message as body, gRPC's code as headers.

use std::time::Instant;

use diego::locket::{
    FetchAllRequest, FetchAllResponse, FetchRequest, FetchResponse, LockRequest, LockResponse,
    ReleaseRequest, ReleaseResponse,
};
use http::header::{HeaderName, HeaderValue};
use http::{Response, StatusCode};
use net::{Body, Incoming};
use prost::Message;

use super::{Answered, Service, answer};
use crate::bbs::presence::Refusal;

impl Service {
    pub(super) async fn lock(&self, body: Incoming) -> Answered {
        self.locket(body, |request: LockRequest| {
            self.presences.lock(request, Instant::now())?;
            Ok(LockResponse {})
        })
        .await
    }

    pub(super) async fn release(&self, body: Incoming) -> Answered {
        self.locket(body, |request: ReleaseRequest| {
            self.presences.release(request.resource, Instant::now())?;
            Ok(ReleaseResponse {})
        })
        .await
    }

    pub(super) async fn fetch(&self, body: Incoming) -> Answered {
        self.locket(body, |request: FetchRequest| {
            let resource = self.presences.fetch(&request.key, Instant::now())?;
            Ok(FetchResponse {
                resource: Some(resource),
            })
        })
        .await
    }

    pub(super) async fn fetch_all(&self, body: Incoming) -> Answered {
        self.locket(body, |request: FetchAllRequest| {
            let resources = self.presences.fetch_all(&request, Instant::now())?;
            Ok(FetchAllResponse { resources })
        })
        .await
    }

    async fn locket<Q: Message + Default, A: Message>(
        &self,
        body: Incoming,
        call: impl FnOnce(Q) -> Result<A, Refusal>,
    ) -> Answered {
        const UNREADABLE: Refusal = Refusal {
            code: 3,
            text: "unreadable-message",
        };
        let bytes = self.bytes(body).await?;
        let done = Q::decode(bytes).map_err(|_| UNREADABLE).and_then(call);
        Ok(match done {
            Ok(message) => answer::message(&message),
            Err(refusal) => refused(refusal),
        })
    }
}

fn refused(refusal: Refusal) -> Response<Body> {
    let status = match refusal.code {
        3 => StatusCode::BAD_REQUEST,
        5 => StatusCode::NOT_FOUND,
        6 => StatusCode::CONFLICT,
        _ => StatusCode::INSUFFICIENT_STORAGE,
    };
    let mut response = answer::bare(status);
    let headers = response.headers_mut();
    let code = HeaderValue::from(refusal.code);
    headers.insert(HeaderName::from_static("grpc-status"), code);
    let text = HeaderValue::from_static(refusal.text);
    headers.insert(HeaderName::from_static("grpc-message"), text);
    response
}
