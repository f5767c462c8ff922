//! Where the emitter says how it is.

use std::sync::Arc;

use diego::Bbs;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Request, Response, StatusCode};
use net::{Body, ConnectionFailure, Handler, Incoming, full};
use telemetry::{Fields, Logger, prometheus};

use super::metrics::Metrics;

/// Answers 200 to everything, as health checks of Diego's ask, but for `/ready`, which waits for
/// the first sync and for NATS.
pub(super) struct Api {
    pub(super) metrics: Arc<Metrics>,
    pub(super) bbs: Bbs,
    pub(super) logger: Logger,
}

impl Handler for Api {
    fn connection_failed(&self, failure: &ConnectionFailure) {
        self.logger.error("no-connection", failure, Fields::new());
    }

    async fn handle(&self, request: Request<Incoming>) -> Response<Body> {
        let mut response = Response::new(full(String::new()));
        match request.uri().path() {
            "/metrics" => {
                *response.body_mut() = full(self.metrics.text(self.bbs.counts()));
                let text = HeaderValue::from_static(prometheus::CONTENT_TYPE);
                response.headers_mut().insert(CONTENT_TYPE, text);
            }
            "/ready" if !self.metrics.is_ready() => {
                *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            }
            _ => {}
        }
        response
    }
}
