//! Results of tasks to where their owners want them.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use commit::View;
use diego::models::Task;
use diego::models::task::State as TaskState;
use http::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use http::{StatusCode, Uri};
use net::{Client, ClientError};
use serde::Serialize;
use telemetry::{Fields, Logger};
use tokio::task::JoinSet;

use super::super::apply::Command;
use super::super::ledger::Commands;
use super::super::metrics::Metrics;
use super::super::state::State;
use super::Outbound;
use super::waiting::Due;
use crate::basic::authorization;
use crate::mutex::lock;

/// Times that a result is sent before convergence sends it again.
const ATTEMPTS: u32 = 3;
/// Pause between attempts.
const PAUSE: Duration = Duration::from_millis(500);
#[derive(Clone)]
pub(super) struct Callbacks {
    pub(super) client: Client,
    pub(super) state: View<State>,
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

/// Sends results, so many at a time; the others wait.
pub(super) async fn call_back(callbacks: Callbacks, outbound: Arc<Outbound>) {
    let mut under_way = JoinSet::new();
    loop {
        for Due { guid, since, .. } in outbound.callbacks.take(1).await {
            let Some(task) = callbacks.task(&guid) else {
                continue;
            };
            // Only then may it be sent again.
            let Some(call) = CallUnderWay::begin(&outbound, &guid) else {
                continue;
            };
            let worker = outbound.pools.callbacks.worker(since).await;
            while under_way.try_join_next().is_some() {}
            let callbacks = callbacks.clone();
            under_way.spawn(net::boxed(async move {
                callbacks.resolve(&task).await;
                drop((worker, call));
            }));
        }
    }
}

/// A result that is being sent.
struct CallUnderWay {
    outbound: Arc<Outbound>,
    guid: Arc<str>,
}

impl CallUnderWay {
    /// `None` when it is being sent already.
    fn begin(outbound: &Arc<Outbound>, guid: &Arc<str>) -> Option<Self> {
        let new = lock(&outbound.called_back).insert(Arc::clone(guid));
        new.then(|| Self {
            outbound: Arc::clone(outbound),
            guid: Arc::clone(guid),
        })
    }
}

impl Drop for CallUnderWay {
    fn drop(&mut self) {
        lock(&self.outbound.called_back).remove(&self.guid);
    }
}

/// A result as JSON, letter for letter as Diego's BBS sends it.
fn result_json(task: &Task) -> serde_json::Result<String> {
    let annotation = task.task_definition.as_ref().map(|task| &*task.annotation);
    let body = Body {
        task_guid: &task.task_guid,
        failed: task.failed,
        failure_reason: &task.failure_reason,
        result: &task.result,
        annotation: annotation.unwrap_or_default(),
        created_at: task.created_at,
    };
    diego::json::compact(&serde_json::to_vec(&body)?)
}

fn fields(guid: &str) -> Fields {
    Fields::new().and("task-guid", guid)
}

impl Callbacks {
    /// The task, if it has a result and an address to send it to.
    fn task(&self, guid: &str) -> Option<Task> {
        let task = self.state.read().tasks.get(guid)?.clone();
        let task = task.decode().ok()?;
        let definition = task.task_definition.as_ref()?;
        let done = task.state() == TaskState::Completed;
        (done && !definition.completion_callback_url.is_empty()).then_some(task)
    }

    /// Sends the result, unless somebody else has claimed it. One that its receiver did not
    /// take stays claimed until convergence offers it again.
    async fn resolve(&self, task: &Task) {
        let (logger, guid) = (&self.logger, &task.task_guid);
        let resolving = Command::ResolveTask(guid.clone());
        if let Err(error) = self.commands.run(resolving).await {
            let message = &error.message;
            logger.error("marking-task-as-resolving-failed", message, fields(guid));
            return;
        }
        let status = match self.send(task).await {
            Ok(status) => status,
            Err(cause) => return logger.error("callback-failed", &cause, fields(guid)),
        };
        match self.commands.run(Command::DeleteTask(guid.clone())).await {
            Ok(_) => {
                let fields = fields(guid).and("status-code", status.as_u16());
                logger.info("resolved-task", fields);
            }
            Err(error) => logger.error("resolving-task-failed", &error.message, fields(guid)),
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
        let before = uri.authority().and_then(|it| it.as_str().rsplit_once('@'));
        let who = before.and_then(|(who, _)| HeaderValue::from_str(&authorization(who)).ok());
        let headers: HeaderMap = who.map(|who| (AUTHORIZATION, who)).into_iter().collect();
        let body = Bytes::from(result_json(task).map_err(|error| error.to_string())?);
        let mut cause = String::new();
        for attempt in 1..=ATTEMPTS {
            self.metrics.callbacks.add(1);
            let post = self
                .client
                .post(&uri, "application/json", headers.clone(), body.clone());
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

#[cfg(test)]
mod tests {
    use diego::models::TaskDefinition;

    use super::*;

    /// As recorded in `tests/data/bbs/task_callback.json`.
    #[test]
    fn a_result_is_told_with_gos_escapes() {
        let task = Task {
            task_guid: "ok".into(),
            result: "result text".into(),
            created_at: 1_795_254_564_279_748_394,
            task_definition: Some(TaskDefinition {
                annotation: r#"{"note":"<&>"}"#.into(),
                ..TaskDefinition::default()
            }),
            ..Task::default()
        };
        let expected = r#"{"task_guid":"ok","failed":false,"failure_reason":"","result":"result text","annotation":"{\"note\":\"\u003c\u0026\u003e\"}","created_at":1795254564279748394}"#;
        assert_eq!(result_json(&task).unwrap(), expected);
    }
}
