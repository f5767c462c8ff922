//! Results of tasks to where their owners want them.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use diego::models::Task;
use http::header::HeaderMap;
use http::{StatusCode, Uri};
use net::{Client, ClientError};
use serde::Serialize;
use telemetry::{Fields, Logger};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::Receiver;
use tokio::task::JoinSet;

use super::super::apply::Command;
use super::super::ledger::Commands;
use super::super::metrics::Metrics;

/// Times that a result is sent before its task is left to convergence.
const ATTEMPTS: u32 = 3;
/// Pause between attempts.
const PAUSE: Duration = Duration::from_millis(500);

#[derive(Clone)]
pub(super) struct Callbacks {
    pub(super) client: Client,
    pub(super) commands: Commands,
    pub(super) metrics: Arc<Metrics>,
    pub(super) logger: Logger,
}

#[derive(Serialize)]
struct Body<'a> {
    task_guid: &'a str,
    failed: bool,
    failure_reason: &'a str,
    result: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    annotation: &'a str,
    created_at: i64,
}

/// Sends results, so many at a time; the others wait in the queue.
pub(super) async fn call_back(
    callbacks: Callbacks,
    mut queue: Receiver<Arc<Task>>,
    workers: usize,
) {
    let places = Arc::new(Semaphore::new(workers.max(1)));
    let mut under_way = JoinSet::new();
    while let Some(task) = queue.recv().await {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        while under_way.try_join_next().is_some() {}
        let callbacks = callbacks.clone();
        under_way.spawn(net::boxed(async move {
            callbacks.resolve(&task).await;
            drop(place);
        }));
    }
}

impl Callbacks {
    async fn resolve(&self, task: &Task) {
        let logger = self.logger.session("task-callback");
        let guid = &task.task_guid;
        let fields = || Fields::new().and("task-guid", guid);
        // Somebody else may have claimed the result: then it is theirs.
        let resolving = Command::ResolveTask(guid.clone());
        if let Err(error) = self.commands.run(resolving).await {
            logger.error("marking-task-as-resolving-failed", &error.message, fields());
            return;
        }
        match self.send(task).await {
            Ok(status) => {
                let delete = Command::DeleteTask(guid.clone());
                match self.commands.run(delete).await {
                    Ok(_) => {
                        logger.info(
                            "resolved-task",
                            fields().and("status-code", status.as_u16()),
                        );
                    }
                    Err(error) => {
                        logger.error("resolving-task-failed", &error.message, fields());
                    }
                }
            }
            Err(cause) => logger.error("callback-failed", &cause, fields()),
        }
    }

    /// Posts the result. A receiver that is not ready for it is asked again; any
    /// other answer means that it has been read.
    async fn send(&self, task: &Task) -> Result<StatusCode, String> {
        let definition = task.task_definition.as_ref();
        let url = definition.map_or("", |definition| &definition.completion_callback_url);
        let uri: Uri = url
            .parse()
            .map_err(|error| format!("address {url:?}: {error}"))?;
        let body = Body {
            task_guid: &task.task_guid,
            failed: task.failed,
            failure_reason: &task.failure_reason,
            result: &task.result,
            annotation: definition.map_or("", |definition| &definition.annotation),
            created_at: task.created_at,
        };
        let body = Bytes::from(serde_json::to_vec(&body).map_err(|error| error.to_string())?);
        let mut cause = String::new();
        for attempt in 1..=ATTEMPTS {
            Metrics::count(&self.metrics.callbacks);
            let post = self
                .client
                .post(&uri, "application/json", HeaderMap::new(), body.clone());
            cause = match post.await {
                Ok(answer) => match answer.status {
                    StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT => {
                        format!("status code {}", answer.status)
                    }
                    status => return Ok(status),
                },
                Err(error @ (ClientError::Broken { .. } | ClientError::TooSlow { .. })) => {
                    error.to_string()
                }
                Err(error) => return Err(error.to_string()),
            };
            if attempt < ATTEMPTS {
                tokio::time::sleep(PAUSE).await;
            }
        }
        Err(cause)
    }
}
