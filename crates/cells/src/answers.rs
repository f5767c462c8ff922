//! Answers over HTTP that are alike in all processes.

use http::{Response, StatusCode};
use net::Body;

/// A status without a body.
pub(crate) fn bare(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(net::empty());
    *response.status_mut() = status;
    response
}

/// No such path.
pub(crate) fn no_such_path() -> Response<Body> {
    net::plain_text(StatusCode::NOT_FOUND, "404 page not found\n")
}

/// The path wants another method.
pub(crate) fn wrong_method() -> Response<Body> {
    net::plain_text(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed\n")
}
