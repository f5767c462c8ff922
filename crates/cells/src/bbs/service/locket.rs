//! Locket's calls as plain HTTP: the message as body, gRPC's code as headers.

use http::header::{HeaderName, HeaderValue};
use http::{Response, StatusCode};
use net::{Body, Incoming};

use super::{Answered, Service, answer};
use crate::answers;
use crate::bbs::presence::Refusal;

impl Service {
    pub(super) async fn locket(&self, path: &str, body: Incoming) -> Answered {
        let bytes = self.bytes(body).await?;
        Ok(match self.locket.call(path, bytes).await {
            Ok(message) => answer::encoded(message),
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
    let mut response = answers::bare(status);
    let headers = response.headers_mut();
    let code = HeaderValue::from(refusal.code);
    headers.insert(HeaderName::from_static("grpc-status"), code);
    let text = HeaderValue::from_static(refusal.text);
    headers.insert(HeaderName::from_static("grpc-message"), text);
    response
}
