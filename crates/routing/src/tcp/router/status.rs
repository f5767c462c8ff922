//! Health and metrics over plain HTTP.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use http::{Method, Request, Response, StatusCode};
use net::{Body, Handler, Incoming, plain_text};
use telemetry::prometheus;

use super::control::Shown;
use super::metrics;
use crate::tcp::counters::Counters;

/// Answers `GET /health` (200; 503 while the router drains, and before the routing API told
/// its routes for the first time) and `GET /metrics`.
pub(super) struct Status {
    draining: Arc<AtomicBool>,
    /// Whether routes are to be waited for.
    fed: bool,
    counters: Arc<Counters>,
    shown: Arc<Shown>,
}

impl Status {
    pub(super) fn new(
        draining: Arc<AtomicBool>,
        fed: bool,
        counters: Arc<Counters>,
        shown: Arc<Shown>,
    ) -> Self {
        Self {
            draining,
            fed,
            counters,
            shown,
        }
    }
}

impl Handler for Status {
    async fn handle(&self, request: Request<Incoming>) -> Response<Body> {
        if ![Method::GET, Method::HEAD].contains(request.method()) {
            return plain_text(StatusCode::METHOD_NOT_ALLOWED, "expected GET\n");
        }
        match request.uri().path() {
            "/health" if self.draining.load(Relaxed) => {
                plain_text(StatusCode::SERVICE_UNAVAILABLE, "draining\n")
            }
            "/health" if self.fed && self.shown.changes.load(Relaxed) == 0 => {
                let text = "waiting for the routing API\n";
                plain_text(StatusCode::SERVICE_UNAVAILABLE, text)
            }
            "/health" => plain_text(StatusCode::OK, "ok\n"),
            "/metrics" => {
                let page = metrics::page(&self.counters, &self.shown);
                net::response(StatusCode::OK, prometheus::CONTENT_TYPE, page)
            }
            _ => plain_text(StatusCode::NOT_FOUND, "expected /health or /metrics\n"),
        }
    }
}
