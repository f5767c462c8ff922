//! Requests to the auctioneer. What waits goes out in one call.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use diego::TRACE_HEADER;
use diego::auction::{LrpStartRequest, Task};
use http::header::{HeaderMap, HeaderValue};
use http::{StatusCode, Uri};
use net::Client;
use serde::Serialize;
use telemetry::{Fields, Logger};
use tokio::sync::mpsc::Receiver;

use super::super::metrics::Metrics;
use super::lines;

/// Most requests in one call.
const MERGED: usize = 1000;
/// Times that a call is made that gets a wrong answer before its requests are given up.
const ATTEMPTS: u32 = 5;
/// Pause after the first failed call; it doubles each time.
const PAUSE: Duration = Duration::from_millis(100);
/// Longest pause.
const PAUSE_MOST: Duration = Duration::from_secs(1);
/// How long requests are kept for an auctioneer that cannot be reached or has no room:
/// until a task that waits has waited too long anyway.
const KEEP: Duration = Duration::from_secs(1800);

#[derive(Clone)]
pub(super) struct Auctioneer {
    pub(super) url: Option<String>,
    pub(super) client: Client,
    pub(super) metrics: Arc<Metrics>,
    pub(super) logger: Logger,
}

pub(super) async fn place_lrps(
    auctioneer: Auctioneer,
    mut queue: Receiver<(LrpStartRequest, Arc<str>)>,
) {
    let mut waiting = Vec::new();
    while queue.recv_many(&mut waiting, MERGED).await > 0 {
        // Requests of different traces cannot share a call, which has one header.
        for group in waiting.chunk_by(|left, right| left.1 == right.1) {
            let requests: Vec<&LrpStartRequest> =
                group.iter().map(|(request, _)| request).collect();
            let trace = group.first().map_or("", |(_, trace)| trace);
            auctioneer.post("/v1/lrps", &requests, trace).await;
        }
        waiting.clear();
    }
}

pub(super) async fn place_tasks(auctioneer: Auctioneer, mut queue: Receiver<Task>) {
    let logger = auctioneer.logger.session("request").session("desire-task");
    let mut waiting = Vec::new();
    while queue.recv_many(&mut waiting, MERGED).await > 0 {
        let guids = || waiting.iter().map(|task: &Task| task.task_guid.clone());
        lines(&logger, "requesting-task-auction", guids());
        if auctioneer.post("/v1/tasks", &waiting, "").await {
            lines(&logger, "finished", guids());
        }
        waiting.clear();
    }
}

impl Auctioneer {
    /// Posts the requests until they are accepted. What follows waits meanwhile, in a
    /// bounded queue.
    async fn post<T: Serialize>(&self, path: &str, requests: &[T], trace: &str) -> bool {
        let logger = self.logger.session("auctioneer-client");
        let fields = || {
            Fields::new()
                .and("path", path)
                .and("requests", requests.len())
        };
        let Some(url) = &self.url else {
            logger.info("no-auctioneer", fields());
            return false;
        };
        let (uri, body) = match (
            format!("{url}{path}").parse::<Uri>(),
            serde_json::to_vec(requests),
        ) {
            (Ok(uri), Ok(body)) => (uri, Bytes::from(body)),
            (Err(cause), _) => {
                logger.error("bad-auctioneer-address", &cause, fields());
                return false;
            }
            (_, Err(cause)) => {
                logger.error("failed-to-encode", &cause, fields());
                return false;
            }
        };
        let mut headers = HeaderMap::new();
        if let Ok(trace) = HeaderValue::from_str(trace)
            && !trace.is_empty()
        {
            headers.insert(TRACE_HEADER, trace);
        }
        let (mut pause, first) = (PAUSE, Instant::now());
        for attempt in 1_u32.. {
            Metrics::count(&self.metrics.auction_posts);
            let answer = self
                .client
                .post(&uri, "application/json", headers.clone(), body.clone())
                .await;
            let (cause, passes) = match answer {
                Ok(answer) if answer.status.is_success() => return true,
                Ok(answer) => {
                    let full = answer.status == StatusCode::SERVICE_UNAVAILABLE;
                    (format!("status code {}", answer.status), full)
                }
                Err(error) => (error.to_string(), true),
            };
            Metrics::count(&self.metrics.failed_auction_posts);
            logger.error("failed", &cause, fields().and("attempt", attempt));
            if passes && first.elapsed() > KEEP || !passes && attempt >= ATTEMPTS {
                break;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MOST);
        }
        false
    }
}
