//! The driver against a small BBS over real sockets, and its books by property.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use diego::models::{self, task};
use diego::sse;
use http::{Request, Response};
use hyper::body::Incoming;
use proptest::prelude::*;
use prost::Message;
use tokio::sync::mpsc;

use super::*;

mod books;
mod conversation;

/// A BBS that runs every task at once and starts every instance at once.
#[derive(Default)]
struct FakeBbs {
    state: Mutex<FakeState>,
    /// Requests that were refused so far; the first `refuse` tasks are.
    refuse: AtomicU64,
    /// Streams break after each event while it is set.
    breaking: AtomicBool,
    /// Lists are refused while it is set.
    unlisted: AtomicBool,
    client: Option<net::Client>,
}

#[derive(Default)]
struct FakeState {
    tasks: BTreeMap<String, models::Task>,
    instances: BTreeMap<(String, i32), models::ActualLrp>,
    task_streams: Vec<mpsc::Sender<Bytes>>,
    instance_streams: Vec<mpsc::Sender<Bytes>>,
    clock: i64,
    ids: u64,
}

struct Fake(Arc<FakeBbs>);

impl net::Handler for Fake {
    async fn handle(&self, request: Request<Incoming>) -> Response<net::Body> {
        let path = request.uri().path().to_owned();
        let body = net::read_body(request.into_body(), 1 << 20, OPEN_WITHIN)
            .await
            .unwrap();
        self.0.answer(&path, &body)
    }
}

fn protobuf(message: &impl Message) -> Response<net::Body> {
    let mut response = Response::new(net::full(message.encode_to_vec()));
    let headers = response.headers_mut();
    headers.insert(http::header::CONTENT_TYPE, diego::PROTOBUF.parse().unwrap());
    response
}

impl FakeBbs {
    fn answer(self: &Arc<Self>, path: &str, body: &[u8]) -> Response<net::Body> {
        match path {
            path::TASK_EVENTS => self.stream(|state| &mut state.task_streams),
            path::INSTANCE_EVENTS => self.stream(|state| &mut state.instance_streams),
            path::DESIRE_TASK => {
                let request = models::DesireTaskRequest::decode(body).unwrap();
                let error = self.desire_task(request);
                protobuf(&TaskLifecycleResponse { error })
            }
            path::DESIRE_LRP => {
                let desired = models::DesireLrpRequest::decode(body)
                    .unwrap()
                    .desired_lrp
                    .unwrap();
                assert!(!desired.metric_tags.is_empty());
                self.scale(&desired.process_guid, desired.instances);
                protobuf(&DesiredLrpLifecycleResponse::default())
            }
            path::UPDATE_DESIRED_LRP => {
                let request = models::UpdateDesiredLrpRequest::decode(body).unwrap();
                self.scale(
                    &request.process_guid,
                    request.update.unwrap().instances.unwrap(),
                );
                protobuf(&DesiredLrpLifecycleResponse::default())
            }
            path::REMOVE_DESIRED_LRP => {
                let request = models::RemoveDesiredLrpRequest::decode(body).unwrap();
                self.scale(&request.process_guid, 0);
                protobuf(&DesiredLrpLifecycleResponse::default())
            }
            path::TASKS if self.unlisted.load(Ordering::SeqCst) => {
                protobuf(&models::TasksResponse {
                    error: Some(diego::error::error(diego::error::Type::UnknownError)),
                    tasks: Vec::new(),
                })
            }
            path::TASKS => protobuf(&models::TasksResponse {
                error: None,
                tasks: lock(&self.state).tasks.values().cloned().collect(),
            }),
            path::ACTUAL_LRPS => protobuf(&models::ActualLrPsResponse {
                error: None,
                actual_lrps: lock(&self.state).instances.values().cloned().collect(),
            }),
            path::UPSERT_DOMAIN => protobuf(&UpsertDomainResponse::default()),
            other => panic!("unexpected call of {other}"),
        }
    }

    fn stream(
        &self,
        streams: impl Fn(&mut FakeState) -> &mut Vec<mpsc::Sender<Bytes>>,
    ) -> Response<net::Body> {
        let (sender, pieces) = mpsc::channel(4096);
        streams(&mut lock(&self.state)).push(sender);
        Response::new(net::stream(pieces))
    }

    fn tell(&self, streams: &mut Vec<mpsc::Sender<Bytes>>, name: &str, event: &impl Message) {
        let text = format!("id: 0\n{}", sse::encode(name, &event.encode_to_vec()));
        streams.retain(|stream| stream.try_send(Bytes::from(text.clone())).is_ok());
        if self.breaking.load(Ordering::SeqCst) {
            streams.clear();
        }
    }

    fn desire_task(self: &Arc<Self>, request: models::DesireTaskRequest) -> Option<models::Error> {
        let refusals = self
            .refuse
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
        if refusals.is_ok() {
            return Some(diego::error::error(diego::error::Type::ResourceExists));
        }
        let task = models::Task {
            task_guid: request.task_guid.clone(),
            task_definition: request.task_definition,
            domain: request.domain,
            ..models::Task::default()
        };
        assert_eq!(task.domain, DOMAIN);
        self.task(task, task::State::Pending);
        let fake = Arc::clone(self);
        tokio::spawn(async move { fake.run_task(&request.task_guid).await });
        None
    }

    /// Stores a task in a state and tells it.
    fn task(&self, mut task: models::Task, to: task::State) {
        let mut state = lock(&self.state);
        state.clock += 1;
        task.state = to.into();
        task.updated_at = state.clock;
        let before = state.tasks.insert(task.task_guid.clone(), task.clone());
        let streams = &mut state.task_streams;
        match before {
            None => {
                let event = models::TaskCreatedEvent { task: Some(task) };
                self.tell(streams, "task_created", &event);
            }
            Some(before) => {
                let event = models::TaskChangedEvent {
                    before: Some(before),
                    after: Some(task),
                };
                self.tell(streams, "task_changed", &event);
            }
        }
    }

    async fn run_task(&self, guid: &str) {
        let mut task = lock(&self.state).tasks[guid].clone();
        tokio::task::yield_now().await;
        self.task(task.clone(), task::State::Running);
        tokio::task::yield_now().await;
        task.failed = guid.ends_with('7');
        self.task(task.clone(), task::State::Completed);
        let url = task
            .task_definition
            .clone()
            .unwrap()
            .completion_callback_url;
        let result = serde_json::json!({ "task_guid": guid, "failed": task.failed });
        let client = self.client.clone().unwrap();
        let body = Bytes::from(result.to_string());
        let headers = http::HeaderMap::new();
        let answer = client
            .post(&url.parse().unwrap(), "application/json", headers, body)
            .await;
        assert_eq!(answer.unwrap().status, 200);
        self.task(task.clone(), task::State::Resolving);
        let mut state = lock(&self.state);
        state.tasks.remove(guid);
        let event = models::TaskRemovedEvent { task: Some(task) };
        self.tell(&mut state.task_streams, "task_removed", &event);
    }

    fn scale(&self, guid: &str, to: i32) {
        let mut state = lock(&self.state);
        let state = &mut *state;
        for index in 0..to {
            let key = (guid.to_owned(), index);
            if state.instances.contains_key(&key) {
                continue;
            }
            state.ids += 1;
            let tag = |index| {
                Some(models::ModificationTag {
                    epoch: format!("e{}", state.ids),
                    index,
                })
            };
            let lrp_key = models::ActualLrpKey {
                process_guid: guid.to_owned(),
                index,
                domain: DOMAIN.to_owned(),
            };
            let mut lrp = models::ActualLrp {
                actual_lrp_key: Some(lrp_key.clone()),
                state: "UNCLAIMED".into(),
                modification_tag: tag(0),
                ..models::ActualLrp::default()
            };
            let created = models::ActualLrpInstanceCreatedEvent {
                actual_lrp: Some(lrp.clone()),
                ..Default::default()
            };
            let changed = models::ActualLrpInstanceChangedEvent {
                actual_lrp_key: Some(lrp_key),
                after: Some(models::ActualLrpInfo {
                    state: "RUNNING".into(),
                    modification_tag: tag(1),
                    ..Default::default()
                }),
                ..Default::default()
            };
            lrp.state = "RUNNING".into();
            lrp.modification_tag = tag(1);
            state.instances.insert(key, lrp);
            let streams = &mut state.instance_streams;
            // The protocol does not promise an order.
            self.tell(streams, "actual_lrp_instance_changed", &changed);
            self.tell(streams, "actual_lrp_instance_created", &created);
        }
        let surplus = |key: &(String, i32)| key.0 == guid && key.1 >= to;
        let gone: Vec<_> = state
            .instances
            .keys()
            .filter(|key| surplus(key))
            .cloned()
            .collect();
        for key in gone {
            let event = models::ActualLrpInstanceRemovedEvent {
                actual_lrp: state.instances.remove(&key),
                ..Default::default()
            };
            self.tell(
                &mut state.instance_streams,
                "actual_lrp_instance_removed",
                &event,
            );
        }
    }
}

/// A fake BBS that listens, and its address.
async fn fake_bbs() -> (Arc<FakeBbs>, String, watch::Sender<bool>) {
    let fake = Arc::new(FakeBbs {
        client: Some(net::Client::new(net::ClientOptions::default())),
        ..FakeBbs::default()
    });
    let listener = net::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
        .await
        .unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let (stop, shutdown) = net::shutdown();
    let handler = Arc::new(Fake(Arc::clone(&fake)));
    tokio::spawn(net::serve(
        listener,
        None,
        net::Limits::default(),
        handler,
        shutdown,
    ));
    (fake, base, stop)
}

/// A fake BBS and a driver that is open on it.
struct Pair {
    fake: Arc<FakeBbs>,
    cells: Driver,
    losses: Mutex<mpsc::Receiver<String>>,
    _stop: watch::Sender<bool>,
}

impl Pair {
    async fn open() -> Self {
        let (fake, base, stop) = fake_bbs().await;
        let hello = Hello {
            protocol: PROTOCOL,
            seed: 42,
            talk_to: Some(base),
            in_flight: 50,
            tls: None,
            reach_at: None,
        };
        let (lost, losses) = mpsc::channel(1);
        let cells = Driver::open(hello, lost).await.unwrap();
        Self {
            fake,
            cells,
            losses: Mutex::new(losses),
            _stop: stop,
        }
    }

    fn count(&self, what: &str, state: &str) -> Option<u64> {
        self.cells.counts()[what][state]
    }

    async fn until(&self, what: &str, state: &str, count: u64) {
        for _ in 0..3000 {
            if self.count(what, state) == Some(count) {
                return;
            }
            assert!(lock(&self.losses).try_recv().is_err());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!(
            "{what}.{state} is {:?}, not {count}",
            self.count(what, state)
        );
    }
}

fn make(what: &str, count: u64, shape: Option<&str>) -> Make {
    Make {
        id: 1,
        what: what.into(),
        count,
        rate: None,
        in_flight: 50,
        shape: shape.map(Into::into),
        options: BTreeMap::new(),
    }
}

#[tokio::test]
async fn tasks_are_followed_to_their_end() {
    let pair = Pair::open().await;
    for round in 1..=2 {
        let made = pair.cells.make(&make(TASK, 200, None)).await.unwrap();
        assert_eq!((made.accepted, made.refused), (200, 0));
        pair.until(TASK, "resolved", 200 * round).await;
        assert_eq!(pair.count(TASK, "desired"), Some(200 * round));
        assert_eq!(pair.count(TASK, "completed"), Some(200 * round));
        assert_eq!(pair.count(TASK, "failed"), Some(20 * round));
        assert_eq!(pair.count(TASK, "alive"), Some(0));
        assert_eq!(pair.count(TASK, "running"), Some(0));
    }
    pair.cells.close().await;
}

#[tokio::test]
async fn refused_tasks_are_told_and_not_counted() {
    let pair = Pair::open().await;
    pair.fake.refuse.store(3, Ordering::SeqCst);
    let made = pair.cells.make(&make(TASK, 10, None)).await.unwrap();
    assert_eq!((made.accepted, made.refused), (7, 3));
    assert!(
        made.errors
            .keys()
            .all(|text| text.contains("already exists")),
        "{made:?}"
    );
    pair.until(TASK, "resolved", 7).await;
    assert_eq!(pair.count(TASK, "desired"), Some(7));
}

#[tokio::test]
async fn instances_grow_shrink_and_go() {
    let pair = Pair::open().await;
    for count in [100, 130, 40, 0] {
        let shape = (count > 0).then_some("one desired");
        let made = pair.cells.make(&make(LRP, count, shape)).await.unwrap();
        assert_eq!((made.accepted, made.refused), (1, 0));
        pair.until(LRP, "running", count).await;
        assert_eq!(pair.count(LRP, "desired"), Some(count));
        pair.until(LRP, "alive", count).await;
    }
    pair.cells.make(&make(LRP, 30, Some("many"))).await.unwrap();
    pair.until(LRP, "running", 30).await;
    assert_eq!(lock(&pair.fake.state).instances.len(), 30);
}

#[tokio::test]
async fn a_broken_stream_is_opened_again_and_everything_counted_anew() {
    let pair = Pair::open().await;
    pair.fake.breaking.store(true, Ordering::SeqCst);
    pair.cells.make(&make(TASK, 100, None)).await.unwrap();
    pair.cells.make(&make(LRP, 100, None)).await.unwrap();
    pair.fake.breaking.store(false, Ordering::SeqCst);
    pair.until(TASK, "resolved", 100).await;
    pair.until(LRP, "running", 100).await;
    assert!(lock(&pair.losses).try_recv().is_err());
}

#[tokio::test]
async fn settings_that_make_no_sense_are_refused() {
    let pair = Pair::open().await;
    let mut tasks = make(TASK, 1, Some("many"));
    assert!(
        pair.cells
            .make(&tasks)
            .await
            .unwrap_err()
            .contains("one by one")
    );
    tasks.shape = None;
    tasks.options.insert("memory".into(), "much".into());
    assert!(
        pair.cells
            .make(&tasks)
            .await
            .unwrap_err()
            .contains("memory = \"much\"")
    );
    tasks.options = BTreeMap::from([("colour".to_owned(), "red".to_owned())]);
    assert!(
        pair.cells
            .make(&tasks)
            .await
            .unwrap_err()
            .contains("\"colour\" is no setting")
    );
    let error = pair
        .cells
        .make(&make(LRP, 1, Some("heap")))
        .await
        .unwrap_err();
    assert!(error.contains("not \"heap\""), "{error}");
    let error = pair
        .cells
        .make(&make(LRP, 1 << 40, None))
        .await
        .unwrap_err();
    assert!(error.contains("too many"), "{error}");
}

#[test]
fn names_are_read_back_and_foreign_ones_are_not_ours() {
    let names = Names { seed: 42 };
    assert_eq!(names.task_number(&names.task(7)), Some(7));
    assert_eq!(names.lrp_number(&names.lrp(0)), Some(0));
    for foreign in [
        "task-41-7",
        "task-42-",
        "task-42-x",
        "lrp-42-7",
        "",
        "task-42",
        "task-42-7-1",
    ] {
        assert_eq!(names.task_number(foreign), None, "{foreign:?}");
    }
}
