//! Health and metrics over plain HTTP.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use net::{Body, Handler, Incoming, full};
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
        const TEXT: &str = "text/plain; charset=utf-8";
        if ![Method::GET, Method::HEAD].contains(request.method()) {
            return answer(
                StatusCode::METHOD_NOT_ALLOWED,
                TEXT,
                "expected GET\n".into(),
            );
        }
        match request.uri().path() {
            "/health" if self.draining.load(Relaxed) => {
                answer(StatusCode::SERVICE_UNAVAILABLE, TEXT, "draining\n".into())
            }
            "/health" if self.fed && self.shown.changes.load(Relaxed) == 0 => {
                let text = "waiting for the routing API\n".into();
                answer(StatusCode::SERVICE_UNAVAILABLE, TEXT, text)
            }
            "/health" => answer(StatusCode::OK, TEXT, "ok\n".into()),
            "/metrics" => {
                let page = metrics::page(&self.counters, &self.shown);
                answer(StatusCode::OK, prometheus::CONTENT_TYPE, page)
            }
            _ => {
                let text = "expected /health or /metrics\n".into();
                answer(StatusCode::NOT_FOUND, TEXT, text)
            }
        }
    }
}

fn answer(status: StatusCode, kind: &'static str, text: String) -> Response<Body> {
    let mut response = Response::new(full(text));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static(kind);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}
