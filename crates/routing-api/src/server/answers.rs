//! Answers in the form of the wire.

use http::header::{ALLOW, CONNECTION, HeaderName, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use http::{Response, StatusCode};
use net::Body;
use serde::Serialize;

use crate::model::ApiError;

/// What clients are told whenever a group's ports change, escaped as in a query.
const PORT_WARNING: &str = "Warning%3A+if+routes+are+registered+for+ports+that+are+not+in+the+\
    new+range%2C+modifying+your+load+balancer+to+remove+these+ports+will+result+in+backends+for+\
    those+routes+becoming+inaccessible.";

/// An answer without a body.
pub(super) fn bare(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(net::empty());
    *response.status_mut() = status;
    response
}

/// There is no such call: what Go's router writes, with the methods that the path has.
pub(super) fn no_call(allowed: &str) -> Response<Body> {
    let (status, reason) = match allowed {
        "" => (StatusCode::NOT_FOUND, "404 page not found\n"),
        _ => (StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed\n"),
    };
    let mut response = net::plain_text(status, reason);
    let headers = response.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if let (false, Ok(allowed)) = (allowed.is_empty(), HeaderValue::from_str(allowed)) {
        headers.insert(ALLOW, allowed);
    }
    response
}

/// JSON.
pub(super) fn json(status: StatusCode, value: &impl Serialize) -> Response<Body> {
    // Plain data always has a JSON form.
    let body = serde_json::to_string(value).unwrap_or_default();
    net::response(status, "application/json", body)
}

/// An error, with the status of its name.
pub(super) fn error(error: &ApiError) -> Response<Body> {
    let status = StatusCode::from_u16(error.name.status());
    json(status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), error)
}

/// The connection cannot be used any more: the rest of a body is on it.
pub(super) fn closing(mut response: Response<Body>) -> Response<Body> {
    let close = HeaderValue::from_static("close");
    response.headers_mut().insert(CONNECTION, close);
    response
}

/// The answer to a change of a group.
pub(super) fn warned(mut response: Response<Body>) -> Response<Body> {
    let name = HeaderName::from_static("x-cf-warnings");
    let warning = HeaderValue::from_static(PORT_WARNING);
    response.headers_mut().insert(name, warning);
    response
}
