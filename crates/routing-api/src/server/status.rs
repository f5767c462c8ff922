//! Health and metrics beside the API, for those who have neither token nor certificate.

use std::sync::Arc;

use http::{Request, Response, StatusCode};
use net::{Body, Handler, Incoming};

use super::{HEALTH, METRICS, Service};

/// Answers what the API itself would, and nothing else of it.
pub(crate) struct Status(pub(crate) Arc<Service>);

impl Handler for Status {
    async fn handle(&self, request: Request<Incoming>) -> Response<Body> {
        match request.uri().path() {
            HEALTH | METRICS => self.0.handle(request).await,
            _ => net::plain_text(StatusCode::NOT_FOUND, "expected /health or /metrics\n"),
        }
    }
}
