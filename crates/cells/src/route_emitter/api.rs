//! Where the emitter says how it is.

use std::sync::Arc;

use diego::Bbs;
use http::{Request, Response, StatusCode};
use net::{Body, ConnectionFailure, Handler, Incoming};
use telemetry::{Fields, Logger, prometheus};

use super::metrics::Metrics;
use crate::answers;

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
        match request.uri().path() {
            "/metrics" => {
                let text = self.metrics.text(self.bbs.counts());
                net::response(StatusCode::OK, prometheus::CONTENT_TYPE, text)
            }
            "/ready" if !self.metrics.is_ready() => answers::bare(StatusCode::SERVICE_UNAVAILABLE),
            _ => answers::bare(StatusCode::OK),
        }
    }
}
