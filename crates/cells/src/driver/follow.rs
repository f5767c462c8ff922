//! Event streams, and what to do when one breaks.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use diego::models::{ActualLrPsRequest, EventsByCellId, TasksRequest};
use diego::sse::Event;
use diego::{Bbs, CallError, Subscription, path};
use prost::Message;
use tokio::time::Instant;

use super::lrps::{self, LrpBook};
use super::tasks::{self, TaskBook};
use super::wire::{
    InstanceChanged, InstanceEvent, InstanceHead, InstanceList, Key, TaskChanged, TaskEvent,
    TaskHead, TaskList,
};
use super::{DOMAIN, Names, lock};

/// Longest wait for the head of a stream.
const SUBSCRIBED_WITHIN: Duration = Duration::from_secs(10);
/// Pause between attempts to get a broken stream back.
const PAUSE: Duration = Duration::from_millis(200);
/// Time after which a stream that does not come back ends the run.
const BACK_WITHIN: Duration = Duration::from_secs(600);

/// A stream of events about one kind of entity.
pub(super) trait Stream: Send + Sync + 'static {
    /// Opens it; events from then on are seen.
    fn subscribe(&self) -> impl Future<Output = Result<Subscription, CallError>> + Send;
    /// Takes in one event.
    fn take(&self, event: &Event) -> Result<(), prost::DecodeError>;
    /// Counts anew from a list.
    fn recount(&self) -> impl Future<Output = Result<(), CallError>> + Send;
    /// Says whether events are being missed.
    fn set_blind(&self, blind: bool);
}

/// Follows a stream. When it breaks, counts are withheld until a new subscription
/// and a full list have made them right again. Returns why it had to give up.
pub(super) async fn follow(stream: &impl Stream, mut subscription: Subscription) -> String {
    loop {
        let broke = read(stream, subscription).await;
        stream.set_blind(true);
        let deadline = Instant::now() + BACK_WITHIN;
        subscription = loop {
            match back(stream).await {
                Ok(subscription) => break subscription,
                Err(error) if Instant::now() >= deadline => {
                    return format!(
                        "its event stream broke ({broke}) and did not come back within \
                         {BACK_WITHIN:?}: {error}"
                    );
                }
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        };
        stream.set_blind(false);
    }
}

/// Subscribes first: what changes while the list is read comes as an event.
async fn back(stream: &impl Stream) -> Result<Subscription, CallError> {
    let subscription = stream.subscribe().await?;
    stream.recount().await?;
    Ok(subscription)
}

async fn read(stream: &impl Stream, mut subscription: Subscription) -> String {
    loop {
        match subscription.next().await {
            Ok(Some(event)) => {
                if let Err(error) = stream.take(&event) {
                    return format!("event {} cannot be decoded: {error}", event.name);
                }
            }
            Ok(None) => return "the BBS ended it".to_owned(),
            Err(error) => return error.to_string(),
        }
    }
}

async fn subscribe(
    bbs: &Bbs,
    path: &str,
    request: &impl Message,
) -> Result<Subscription, CallError> {
    let opened = tokio::time::timeout(SUBSCRIBED_WITHIN, bbs.subscribe(path, request));
    opened.await.unwrap_or_else(|_| {
        Err(CallError::NotABbs {
            path: path.to_owned(),
            found: format!("no head of an answer within {SUBSCRIBED_WITHIN:?}"),
        })
    })
}

/// Events of tasks.
pub(super) struct Tasks {
    bbs: Bbs,
    names: Names,
    book: Arc<Mutex<TaskBook>>,
}

impl Tasks {
    pub(super) fn new(bbs: Bbs, names: Names, book: Arc<Mutex<TaskBook>>) -> Self {
        Self { bbs, names, book }
    }

    fn report(&self, task: &TaskHead) -> Option<tasks::Report> {
        Some(tasks::Report {
            n: self.names.task_number(&task.task_guid)?,
            state: task.state,
            failed: task.failed,
            updated_at: task.updated_at,
        })
    }
}

impl Stream for Tasks {
    async fn subscribe(&self) -> Result<Subscription, CallError> {
        subscribe(&self.bbs, path::TASK_EVENTS, &()).await
    }

    fn take(&self, event: &Event) -> Result<(), prost::DecodeError> {
        let payload = event.payload.as_slice();
        let task = match event.name.as_str() {
            "task_created" | "task_removed" => TaskEvent::decode(payload)?.task,
            "task_changed" => TaskChanged::decode(payload)?.after,
            _ => None,
        };
        if let Some(report) = task.and_then(|task| self.report(&task)) {
            match event.name.as_str() {
                "task_removed" => lock(&self.book).removed(report.n),
                _ => lock(&self.book).seen(report),
            }
        }
        Ok(())
    }

    async fn recount(&self) -> Result<(), CallError> {
        let expected = lock(&self.book).expected();
        let request = TasksRequest {
            domain: DOMAIN.to_owned(),
            cell_id: String::new(),
        };
        let list: TaskList = self.bbs.call(path::TASKS, &request).await?;
        let listed: Vec<_> = list
            .tasks
            .iter()
            .filter_map(|task| self.report(task))
            .collect();
        lock(&self.book).reconcile(&expected, &listed);
        Ok(())
    }

    fn set_blind(&self, blind: bool) {
        lock(&self.book).set_blind(blind);
    }
}

/// Events of instances.
pub(super) struct Lrps {
    bbs: Bbs,
    names: Names,
    book: Arc<Mutex<LrpBook>>,
}

impl Lrps {
    pub(super) fn new(bbs: Bbs, names: Names, book: Arc<Mutex<LrpBook>>) -> Self {
        Self { bbs, names, book }
    }

    fn report(
        &self,
        key: Option<Key>,
        state: String,
        tag: Option<super::wire::Tag>,
    ) -> Option<lrps::Report> {
        let (key, tag) = (key?, tag.unwrap_or_default());
        Some(lrps::Report {
            lrp: self.names.lrp_number(&key.process_guid)?,
            index: key.index,
            state,
            epoch: tag.epoch,
            change: tag.index,
        })
    }

    fn head(&self, head: InstanceHead) -> Option<lrps::Report> {
        self.report(head.key, head.state, head.tag)
    }
}

impl Stream for Lrps {
    async fn subscribe(&self) -> Result<Subscription, CallError> {
        let all = EventsByCellId::default();
        subscribe(&self.bbs, path::INSTANCE_EVENTS, &all).await
    }

    fn take(&self, event: &Event) -> Result<(), prost::DecodeError> {
        let payload = event.payload.as_slice();
        let report = match event.name.as_str() {
            "actual_lrp_instance_created" => {
                let head = InstanceEvent::decode(payload)?.instance;
                head.and_then(|head| self.head(head))
            }
            "actual_lrp_instance_changed" => {
                let changed = InstanceChanged::decode(payload)?;
                let after = changed.after.unwrap_or_default();
                self.report(changed.key, after.state, after.tag)
            }
            "actual_lrp_instance_removed" => {
                let head = InstanceEvent::decode(payload)?.instance;
                let removed = |head| InstanceHead {
                    state: String::new(),
                    ..head
                };
                head.and_then(|head| self.head(removed(head)))
            }
            _ => None,
        };
        report
            .into_iter()
            .for_each(|report| lock(&self.book).seen(report));
        Ok(())
    }

    async fn recount(&self) -> Result<(), CallError> {
        let expected = lock(&self.book).expected();
        let request = ActualLrPsRequest {
            domain: DOMAIN.to_owned(),
            ..ActualLrPsRequest::default()
        };
        let list: InstanceList = self.bbs.call(path::ACTUAL_LRPS, &request).await?;
        let listed = list
            .instances
            .into_iter()
            .filter_map(|head| self.head(head))
            .collect();
        lock(&self.book).reconcile(&expected, listed);
        Ok(())
    }

    fn set_blind(&self, blind: bool) {
        lock(&self.book).set_blind(blind);
    }
}
