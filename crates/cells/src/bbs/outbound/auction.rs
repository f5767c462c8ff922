//! Requests to the auctioneer. What waits goes out in one call.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use commit::View;
use diego::TRACE_HEADER;
use diego::auction::{LrpStartRequest, Task};
use diego::models::actual_lrp::Presence;
use diego::models::task::State as TaskState;
use diego::models::{self, ActualLrp, DesiredLrpSchedulingInfo};
use http::header::{HeaderMap, HeaderValue};
use http::{StatusCode, Uri};
use net::Client;
use prost::Message;
use serde::Serialize;
use telemetry::{Fields, Logger};

use super::super::apply::placement;
use super::super::metrics::Metrics;
use super::super::model::desired;
use super::super::model::slot::UNCLAIMED;
use super::super::state::State;
use super::waiting::Due;
use super::{Instances, Outbound};

/// Most records in one call.
const MERGED: usize = 1000;
/// Times that a call is made that gets a wrong answer before others have their turn.
const ATTEMPTS: u32 = 5;
/// Pause after the first failed call; it doubles each time.
const PAUSE: Duration = Duration::from_millis(100);
/// Longest pause.
const PAUSE_MOST: Duration = Duration::from_secs(1);

#[derive(Clone)]
pub(super) struct Auctioneer {
    pub(super) url: Option<String>,
    pub(super) client: Client,
    pub(super) state: View<State>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) logger: Logger,
}

/// Asks for cells for instances.
pub(super) async fn place_lrps(auctioneer: Auctioneer, outbound: Arc<Outbound>) {
    loop {
        let waiting = outbound.lrps.take(MERGED).await;
        let _worker = outbound.pools.lrp_creates.worker(since(&waiting)).await;
        // Requests of different traces cannot share a call, which has one header.
        for group in waiting.chunk_by(|left, right| left.value.trace == right.value.trace) {
            let trace = group.first().map_or("", |due| &due.value.trace);
            let requests = || {
                let requests = group.iter();
                let requests =
                    requests.filter_map(|due| auctioneer.of_process(&due.guid, &due.value));
                requests.collect::<Vec<_>>()
            };
            if !auctioneer.post("/v1/lrps", requests, |_| (), trace).await {
                for Due { guid, value, .. } in group.iter().cloned() {
                    outbound.place(guid, value.indices, value.trace);
                }
            }
        }
    }
}

/// Asks for cells for tasks.
pub(super) async fn place_tasks(auctioneer: Auctioneer, outbound: Arc<Outbound>) {
    let logger = auctioneer.logger.session("request").session("desire-task");
    loop {
        let waiting = outbound.tasks.take(MERGED).await;
        let _worker = outbound.pools.task_creates.worker(since(&waiting)).await;
        let mut asked = Vec::new();
        let requests = || {
            let guids = waiting.iter();
            guids
                .filter_map(|due| auctioneer.of_task(&due.guid))
                .collect::<Vec<_>>()
        };
        let first = |tasks: &[Task]| {
            asked = tasks.iter().map(|task| task.task_guid.clone()).collect();
            lines(&logger, "requesting-task-auction", &asked);
        };
        if auctioneer.post("/v1/tasks", requests, first, "").await {
            lines(&logger, "finished", &asked);
        } else {
            for due in waiting {
                outbound.tasks.put(due.guid, (), |(), ()| ());
            }
        }
    }
}

/// Since when the first of them has waited.
fn since<V>(waiting: &[Due<V>]) -> Instant {
    let first = waiting.iter().map(|due| due.since).min();
    first.unwrap_or_else(Instant::now)
}

fn lines(logger: &Logger, event: &str, guids: &[String]) {
    for guid in guids {
        logger.info(event, Fields::new().and("task-guid", guid));
    }
}

impl Auctioneer {
    /// What a task asks for; `None` when it waits for no cell any more.
    fn of_task(&self, guid: &str) -> Option<Task> {
        let bytes = {
            let state = self.state.read();
            let task = state.tasks.get(guid)?;
            // One that a cell rejected keeps its name.
            (task.state == TaskState::Pending).then(|| Arc::clone(&task.bytes))?
        };
        let task = models::Task::decode(&*bytes).ok()?;
        Some(placement(&task, task.task_definition.as_ref()?))
    }

    /// What the wanted instances of a process ask for; `None` when none waits for a cell
    /// any more.
    fn of_process(&self, guid: &str, wanted: &Instances) -> Option<LrpStartRequest> {
        const ORDINARY: i32 = Presence::Ordinary as i32;
        let (info, mut indices, rows) = {
            let state = self.state.read();
            let process = state.processes.get(guid)?;
            let info = Arc::clone(&process.desired.as_ref()?.info);
            let (mut indices, mut rows) = (Vec::new(), Vec::new());
            match &wanted.indices {
                Some(wanted) => {
                    let row = |index: &&i32| process.row((**index, ORDINARY));
                    let waits = |index: &&i32| row(index).is_some_and(|row| row.cell.is_empty());
                    indices.extend(wanted.iter().filter(waits));
                }
                None => {
                    let of = process.rows().filter(|row| row.presence == ORDINARY);
                    let waiting = of.filter(|row| row.cell.is_empty());
                    rows.extend(waiting.map(|row| Arc::clone(&row.bytes)));
                }
            }
            (info, indices, rows)
        };
        // Decoded without the lock, for which the writer waits.
        let rows = rows.iter().filter_map(|row| ActualLrp::decode(&**row).ok());
        let unclaimed = rows.filter(|row| row.state == UNCLAIMED);
        indices.extend(unclaimed.filter_map(|row| Some(row.actual_lrp_key?.index)));
        indices.sort_unstable();
        indices.dedup();
        let info = DesiredLrpSchedulingInfo::decode(&*info).ok()?;
        (!indices.is_empty()).then(|| desired::auction(&info, indices))
    }

    /// Posts the requests until they are accepted, or nothing is left to request. An
    /// auctioneer that cannot be reached, or has no room, is asked for as long as that
    /// lasts; false when it gave another answer too often. What comes meanwhile waits.
    async fn post<T: Serialize>(
        &self,
        path: &str,
        requests: impl Fn() -> Vec<T>,
        first: impl FnOnce(&[T]),
        trace: &str,
    ) -> bool {
        let logger = self.logger.session("auctioneer-client");
        let fields = |count: usize| Fields::new().and("path", path).and("requests", count);
        let mut asked = requests();
        first(&asked);
        let Some(url) = &self.url else {
            logger.info("no-auctioneer", fields(asked.len()));
            return true;
        };
        let uri = match format!("{url}{path}").parse::<Uri>() {
            Ok(uri) => uri,
            Err(cause) => {
                logger.error("bad-auctioneer-address", &cause, fields(asked.len()));
                return true;
            }
        };
        let mut headers = HeaderMap::new();
        if let Ok(trace) = HeaderValue::from_str(trace)
            && !trace.is_empty()
        {
            headers.insert(TRACE_HEADER, trace);
        }
        let (mut pause, mut refused) = (PAUSE, 0);
        for attempt in 1_u32.. {
            if asked.is_empty() {
                break;
            }
            let body = match serde_json::to_vec(&asked) {
                Ok(body) => Bytes::from(body),
                Err(cause) => {
                    logger.error("failed-to-encode", &cause, fields(asked.len()));
                    break;
                }
            };
            self.metrics.auction_posts.add(1);
            let answer = self
                .client
                .post(&uri, "application/json", headers.clone(), body)
                .await;
            let cause = match answer {
                Ok(answer) if answer.status.is_success() => break,
                Ok(answer) => {
                    refused += u32::from(answer.status != StatusCode::SERVICE_UNAVAILABLE);
                    format!("status code {}", answer.status)
                }
                Err(error) => error.to_string(),
            };
            self.metrics.failed_auction_posts.add(1);
            logger.error(
                "failed",
                &cause,
                fields(asked.len()).and("attempt", attempt),
            );
            tokio::time::sleep(pause).await;
            if refused >= ATTEMPTS {
                return false;
            }
            pause = (pause * 2).min(PAUSE_MOST);
            // Some of it may have been settled meanwhile.
            asked = requests();
        }
        true
    }
}
