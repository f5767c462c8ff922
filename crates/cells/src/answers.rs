//! Answers over HTTP that are alike in all processes.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use net::Body;

/// What Go names a body that says no type itself: text, and JSON too.
pub(crate) const SNIFFED: &str = "text/plain; charset=utf-8";

/// A body of this content type.
pub(crate) fn typed(
    status: StatusCode,
    kind: &'static str,
    body: impl Into<Bytes>,
) -> Response<Body> {
    let mut response = Response::new(net::full(body));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static(kind);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// A status without a body.
pub(crate) fn bare(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(net::empty());
    *response.status_mut() = status;
    response
}

/// No such path.
pub(crate) fn no_such_path() -> Response<Body> {
    typed(StatusCode::NOT_FOUND, SNIFFED, "404 page not found\n")
}

/// The path wants another method.
pub(crate) fn wrong_method() -> Response<Body> {
    let status = StatusCode::METHOD_NOT_ALLOWED;
    typed(status, SNIFFED, "Method Not Allowed\n")
}
