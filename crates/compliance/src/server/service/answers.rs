//! Answers: plain texts for agents, Rudder's envelope for the REST API.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Method, Response, StatusCode};
use net::{Body, full};
use serde_json::{Value, json as value};

/// Why a call of the API is not answered.
#[derive(Debug)]
pub(super) struct ApiError {
    status: StatusCode,
    details: String,
}

impl ApiError {
    pub(super) fn new(status: StatusCode, details: impl ToString) -> Self {
        let details = details.to_string();
        Self { status, details }
    }

    /// What was asked about is not there.
    pub(super) fn not_found(kind: &str, id: &str) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            format!("there is no {kind} \"{id}\""),
        )
    }

    pub(super) fn bad(details: impl ToString) -> Self {
        Self::new(StatusCode::BAD_REQUEST, details)
    }

    pub(super) fn conflict(details: impl ToString) -> Self {
        Self::new(StatusCode::CONFLICT, details)
    }

    /// The server cannot say, now.
    pub(super) fn unavailable(details: impl ToString) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, details)
    }

    pub(super) fn no_such_call(method: &Method, path: &[&str]) -> Self {
        let details = format!(
            "there is no call {method} /{}; /openapi.json lists all",
            path.join("/")
        );
        Self::new(StatusCode::NOT_FOUND, details)
    }

    pub(super) fn answer(&self, action: &str) -> Response<Body> {
        let body = value!({
            "action": action,
            "result": "error",
            "errorDetails": self.details,
        });
        answer(self.status, "application/json", body.to_string())
    }
}

/// An answer with data, in Rudder's envelope.
pub(super) fn json(status: StatusCode, action: &str, data: Value) -> Response<Body> {
    let body = value!({"action": action, "result": "success", "data": data});
    answer(status, "application/json", body.to_string())
}

pub(super) fn text(status: StatusCode, told: impl Into<Bytes>) -> Response<Body> {
    answer(status, "text/plain; charset=utf-8", told)
}

pub(super) fn answer(
    status: StatusCode,
    content_type: &'static str,
    body: impl Into<Bytes>,
) -> Response<Body> {
    let mut response = Response::new(full(body));
    *response.status_mut() = status;
    let content_type = HeaderValue::from_static(content_type);
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}
