//! The auctioneer's HTTP API.

use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use net::{Body, ConnectionFailure, Handler, read_body};
use serde_json::json;
use telemetry::{Fields, Logger, prometheus};

use super::intake;
use super::metrics::{Gauges, Metrics};
use super::queue::Queue;
use crate::answers;
use crate::pool::{self, Pool};

/// Where the numbers of the auctioneer can be read.
const METRICS: &str = "/metrics";
const BODY_BYTES: usize = 256 << 20;
const BODY_WITHIN: Duration = Duration::from_secs(60);

pub(super) struct Api {
    pub(super) queue: Arc<Queue>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) workers: Pool,
    pub(super) logger: Logger,
}

impl Api {
    fn lrps(&self, body: &[u8]) -> Response<Body> {
        match intake::lrps(body) {
            Err(error) => self.refuse(StatusCode::BAD_REQUEST, &error),
            Ok((requests, left_out)) => {
                self.report(left_out, "lrps");
                self.answer(self.queue.add_lrps(requests))
            }
        }
    }

    fn tasks(&self, body: &[u8]) -> Response<Body> {
        match intake::tasks(body) {
            Err(error) => self.refuse(StatusCode::BAD_REQUEST, &error),
            Ok((tasks, left_out)) => {
                self.report(left_out, "tasks");
                self.answer(self.queue.add_tasks(tasks))
            }
        }
    }

    fn report(&self, left_out: usize, what: &str) {
        if left_out > 0 {
            let cause = "guid, domain, rootfs or indices are empty, or a resource is negative";
            self.metrics.invalid_entries.add(left_out);
            let fields = Fields::new().and("kind", what).and("count", left_out);
            self.logger.error("invalid-entries-dropped", &cause, fields);
        }
    }

    fn refuse(&self, status: StatusCode, error: &dyn std::fmt::Display) -> Response<Body> {
        self.metrics.refused_requests.add(1);
        json(status, json!({"error": error.to_string()}).to_string())
    }

    fn metrics(&self) -> Response<Body> {
        let (lrps, tasks, most) = self.queue.lengths();
        let mut page = self.metrics.page(Gauges {
            lrps,
            tasks,
            most,
            workers: self.workers.busy(),
        });
        pool::write(&mut page, "auctioneer", &[self.workers.counts(0, None)]);
        let text = page.into_text();
        net::response(StatusCode::OK, prometheus::CONTENT_TYPE, text)
    }

    fn answer(&self, queued: Result<(), impl std::fmt::Display>) -> Response<Body> {
        match queued {
            Ok(()) => json(StatusCode::ACCEPTED, "{}".into()),
            Err(full) => {
                self.logger.error("queue-full", &full, Fields::new());
                self.refuse(StatusCode::SERVICE_UNAVAILABLE, &full)
            }
        }
    }
}

impl Handler for Api {
    fn connection_failed(&self, failure: &ConnectionFailure) {
        self.logger.error("no-connection", failure, Fields::new());
    }

    async fn handle(&self, request: Request<Incoming>) -> Response<Body> {
        let (head, body) = request.into_parts();
        let path = head.uri.path();
        let wanted = match path {
            "/v1/lrps" | "/v1/tasks" => Method::POST,
            METRICS => Method::GET,
            _ => return answers::no_such_path(),
        };
        if head.method != wanted {
            return answers::wrong_method();
        }
        if path == METRICS {
            return self.metrics();
        }
        let body = match read_body(body, BODY_BYTES, BODY_WITHIN).await {
            Ok(body) => body,
            Err(error) => return self.refuse(StatusCode::BAD_REQUEST, &error),
        };
        if path == "/v1/lrps" {
            self.lrps(&body)
        } else {
            self.tasks(&body)
        }
    }
}

fn json(status: StatusCode, body: String) -> Response<Body> {
    net::response(status, "application/json", body)
}
