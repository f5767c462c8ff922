//! What the BBS asks of others comes about in the end: whoever is away, whatever restarts.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use cells::bbs::{self, Config, Running};
use diego::locket::{LockRequest, Resource, TypeCode};
use diego::models::*;
use diego::{Bbs, TRACE_HEADER, path};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use net::{Body, Client, ClientOptions, Handler, Incoming};
use prost::Message;
use telemetry::{Level, Logger, Sink};
use tokio::sync::watch;

use crate::desired::{action, tags};
use crate::fake_bbs::eventually;

/// A rep or a receiver of results: keeps the paths of what it is asked, with their trace ids.
struct Peer {
    asked: Mutex<Vec<(String, String)>>,
    heads: Mutex<Vec<HeaderMap>>,
    bodies: Mutex<Vec<Vec<u8>>>,
    status: Mutex<StatusCode>,
    /// How long it takes to answer; who waits already learns of a change.
    takes: Mutex<Duration>,
}

impl Handler for Peer {
    async fn handle(&self, request: Request<Incoming>) -> Response<Body> {
        let trace = request.headers().get(TRACE_HEADER);
        let trace = trace.map_or("", |trace| trace.to_str().unwrap()).to_owned();
        let path = request.uri().path().to_owned();
        let head = request.headers().clone();
        self.heads.lock().unwrap().push(head);
        self.asked.lock().unwrap().push((path, trace));
        let body = request.into_body().collect().await.unwrap().to_bytes();
        self.bodies.lock().unwrap().push(body.to_vec());
        let began = tokio::time::Instant::now();
        while began.elapsed() < *self.takes.lock().unwrap() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let mut response = Response::new(net::empty());
        *response.status_mut() = *self.status.lock().unwrap();
        response
    }
}

impl Peer {
    async fn start() -> (Arc<Self>, String, watch::Sender<bool>) {
        let peer = Arc::new(Self {
            asked: Mutex::default(),
            heads: Mutex::default(),
            bodies: Mutex::default(),
            status: Mutex::new(StatusCode::ACCEPTED),
            takes: Mutex::default(),
        });
        let listener = net::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (ask, asked) = net::shutdown();
        let limits = net::Limits::default();
        tokio::spawn(net::serve(listener, None, limits, Arc::clone(&peer), asked));
        (peer, url, ask)
    }

    fn count(&self, part: &str) -> usize {
        let asked = self.asked.lock().unwrap();
        asked.iter().filter(|(path, _)| path.contains(part)).count()
    }

    fn trace(&self, part: &str) -> String {
        let asked = self.asked.lock().unwrap();
        let found = asked.iter().find(|(path, _)| path.contains(part));
        found.map(|(_, trace)| trace.clone()).unwrap_or_default()
    }
}

struct World {
    config: Config,
    running: Running,
    client: Bbs,
    sink: Sink,
    _folder: tempfile::TempDir,
}

impl World {
    async fn start() -> Self {
        Self::start_with(|_| ()).await
    }

    async fn start_with(edit: impl FnOnce(&mut bbs::Limits)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut config = Config::new("127.0.0.1:0".parse().unwrap(), folder.path());
        config.limits.again_after = Duration::from_millis(100);
        config.limits.converge_interval = Duration::from_millis(100);
        edit(&mut config.limits);
        let sink = Sink::memory();
        let running = bbs::start(config.clone(), logger(&sink)).await.unwrap();
        let client = client(&running);
        Self {
            config,
            running,
            client,
            sink,
            _folder: folder,
        }
    }

    async fn restart(self) -> Self {
        self.running.stop().await.unwrap();
        let running = bbs::start(self.config.clone(), logger(&self.sink))
            .await
            .unwrap();
        let client = client(&running);
        Self {
            running,
            client,
            ..self
        }
    }

    async fn do_traced(&self, path: &str, request: &impl Message, trace: &str) {
        type Answer = ActualLrpLifecycleResponse;
        let call = self.client.call_traced::<Answer>(path, request, trace);
        call.await.unwrap();
    }

    async fn act(&self, path: &str, request: &impl Message) {
        self.do_traced(path, request, "").await;
    }

    /// Makes a process with instances that run on cell "c".
    async fn run_instances(&self, count: i32) {
        let lrp = DesiredLrp {
            process_guid: "p".into(),
            domain: "d".into(),
            root_fs: "preloaded:x".into(),
            instances: count,
            action: action(),
            metric_tags: tags("p"),
            ..DesiredLrp::default()
        };
        let desired_lrp = Some(lrp);
        self.act(path::DESIRE_LRP, &DesireLrpRequest { desired_lrp })
            .await;
        for index in 0..count {
            let claim = ClaimActualLrpRequest {
                process_guid: "p".into(),
                index,
                actual_lrp_instance_key: Some(instance(index)),
            };
            self.act(path::CLAIM_ACTUAL_LRP, &claim).await;
        }
    }

    async fn remove(&self, index: i32) {
        let request = RemoveActualLrpRequest {
            process_guid: "p".into(),
            index,
            actual_lrp_instance_key: Some(instance(index)),
        };
        self.act(path::REMOVE_ACTUAL_LRP, &request).await;
    }

    async fn unwant(&self) {
        let process_guid = "p".into();
        self.act(
            path::REMOVE_DESIRED_LRP,
            &RemoveDesiredLrpRequest { process_guid },
        )
        .await;
    }

    /// Cell "c" says that it is at `url`.
    async fn register(&self, url: &str) {
        let request = LockRequest {
            resource: Some(Resource {
                key: "c".into(),
                owner: "o".into(),
                value: format!(r#"{{"cell_id":"c","rep_url":"{url}"}}"#),
                r#type: "presence".into(),
                type_code: TypeCode::Presence.into(),
            }),
            ttl_in_seconds: 60,
        };
        let body = request.encode_to_vec().into();
        self.client.send(path::LOCKET_LOCK, body, "").await.unwrap();
    }

    async fn instances(&self) -> usize {
        let all = ActualLrPsRequest::default();
        let all: ActualLrPsResponse = self.client.call(path::ACTUAL_LRPS, &all).await.unwrap();
        all.actual_lrps.len()
    }

    async fn desire_task(&self, callback: &str) {
        self.desire_named_task("t", callback).await;
    }

    async fn desire_named_task(&self, guid: &str, callback: &str) {
        let request = DesireTaskRequest {
            task_guid: guid.into(),
            domain: "d".into(),
            task_definition: Some(TaskDefinition {
                root_fs: "preloaded:x".into(),
                action: action(),
                completion_callback_url: callback.into(),
                ..TaskDefinition::default()
            }),
        };
        self.act(path::DESIRE_TASK, &request).await;
    }

    async fn task_state(&self) -> Option<task::State> {
        let task_guid = "t".into();
        let request = TaskByGuidRequest { task_guid };
        let answer = self
            .client
            .call::<TaskResponse>(path::TASK_BY_GUID, &request);
        answer.await.ok()?.task.map(|task| task.state())
    }
}

fn logger(sink: &Sink) -> Logger {
    Logger::new("bbs", sink.clone(), Level::Info)
}

fn client(running: &Running) -> Bbs {
    let client = Client::new(ClientOptions::default());
    Bbs::new(client, format!("http://{}", running.address()))
}

fn instance(index: i32) -> ActualLrpInstanceKey {
    ActualLrpInstanceKey {
        instance_guid: format!("i-{index}"),
        cell_id: "c".into(),
    }
}

fn cancel() -> TaskGuidRequest {
    TaskGuidRequest {
        task_guid: "t".into(),
    }
}

#[tokio::test]
async fn a_stop_is_asked_for_until_its_instance_is_gone_and_no_longer() {
    let world = World::start().await;
    let (rep, url, _ask) = Peer::start().await;
    world.register(&url).await;
    world.run_instances(3).await;
    *rep.status.lock().unwrap() = StatusCode::INTERNAL_SERVER_ERROR;
    world.unwant().await;
    eventually("each was asked twice", || {
        (0..3).all(|n| rep.count(&format!("i-{n}/stop")) >= 2)
    })
    .await;
    *rep.status.lock().unwrap() = StatusCode::ACCEPTED;
    for index in 0..3 {
        world.remove(index).await;
    }
    // What was under way arrives; then nothing follows.
    tokio::time::sleep(Duration::from_millis(150)).await;
    let asked = rep.count("/stop");
    tokio::time::sleep(Duration::from_millis(350)).await;
    assert_eq!(rep.count("/stop"), asked);
}

#[tokio::test]
async fn a_stop_survives_a_restart_of_the_bbs() {
    let world = World::start().await;
    let (rep, url, _ask) = Peer::start().await;
    world.run_instances(2).await;
    // Its cell is not there, so nobody can be told yet.
    world.unwant().await;
    let world = world.restart().await;
    world.register(&url).await;
    eventually("both are stopped", || {
        rep.count("i-0/stop") > 0 && rep.count("i-1/stop") > 0
    })
    .await;
    assert_eq!(world.instances().await, 2, "they are the cell's to remove");
}

#[tokio::test]
async fn instances_to_end_on_a_cell_that_does_not_come_back_are_removed() {
    let world = World::start().await;
    world.run_instances(2).await;
    world.unwant().await;
    while world.instances().await > 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(world.sink.kept().contains("removed-without-cell"));
}

#[tokio::test]
async fn instances_that_are_wanted_again_are_not_stopped_again() {
    let world = World::start().await;
    world.run_instances(3).await;
    let scale = async |instances| {
        let request = UpdateDesiredLrpRequest {
            process_guid: "p".into(),
            update: Some(DesiredLrpUpdate {
                instances: Some(instances),
                ..DesiredLrpUpdate::default()
            }),
        };
        world.act(path::UPDATE_DESIRED_LRP, &request).await;
    };
    scale(1).await;
    scale(2).await;
    let (rep, url, _ask) = Peer::start().await;
    world.register(&url).await;
    eventually("the last is stopped", || rep.count("i-2/stop") >= 2).await;
    assert_eq!(rep.count("i-1/stop"), 0);
    world.remove(2).await;
    assert_eq!(world.instances().await, 2);
}

#[tokio::test]
async fn a_result_that_nobody_took_is_sent_again() {
    let world = World::start().await;
    let (receiver, url, _ask) = Peer::start().await;
    *receiver.status.lock().unwrap() = StatusCode::SERVICE_UNAVAILABLE;
    world.desire_task(&format!("{url}/done")).await;
    world.act(path::CANCEL_TASK, &cancel()).await;
    // Three attempts, then a pause, then the next three.
    eventually("it is sent anew", || receiver.count("/done") > 3).await;
    *receiver.status.lock().unwrap() = StatusCode::OK;
    while world.task_state().await.is_some() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_receiver_learns_who_sends_if_its_address_says_so() {
    let world = World::start().await;
    let (receiver, url, _ask) = Peer::start().await;
    let host = url.replace("http://", "");
    let callback = format!("http://us%40er:pass@{host}/done");
    world.desire_task(&callback).await;
    world.act(path::CANCEL_TASK, &cancel()).await;
    eventually("it is sent", || receiver.count("/done") > 0).await;
    let heads = receiver.heads.lock().unwrap();
    // That is us@er:pass.
    assert_eq!(heads[0]["authorization"], "Basic dXNAZXI6cGFzcw==");
    assert_eq!(heads[0]["host"], host.as_str());
}

/// As many at once as there are workers, though all of them go to one receiver: a pool within
/// the pool would make results wait that nobody sees waiting.
#[tokio::test]
async fn a_slow_receiver_is_told_of_many_results_at_once() {
    let world = World::start().await;
    let (receiver, url, _ask) = Peer::start().await;
    *receiver.takes.lock().unwrap() = Duration::from_secs(600);
    for number in 0..100 {
        let guid = format!("t-{number}");
        world
            .desire_named_task(&guid, &format!("{url}/done-{number}"))
            .await;
        let cancel = TaskGuidRequest { task_guid: guid };
        world.act(path::CANCEL_TASK, &cancel).await;
    }
    eventually("all are under way", || {
        (0..100).all(|number| receiver.count(&format!("/done-{number}")) > 0)
    })
    .await;
}

/// The value of a metric of a pool.
async fn pool_metric(world: &World, name: &str, pool: &str) -> f64 {
    let client = Client::new(ClientOptions::default());
    let uri = format!("http://{}/metrics", world.running.address());
    let answer = client.get(&uri.parse().unwrap()).await.unwrap();
    let text = String::from_utf8(answer.body.to_vec()).unwrap();
    let line = format!("bbs_pool_{name}{{pool=\"{pool}\"}} ");
    let value = text.lines().find_map(|it| it.strip_prefix(&line));
    value
        .unwrap_or_else(|| panic!("no {line} in\n{text}"))
        .parse()
        .unwrap()
}

async fn until_pool(world: &World, name: &str, pool: &str, holds: impl Fn(f64) -> bool) {
    let mut last = f64::NAN;
    for _ in 0..6000 {
        last = pool_metric(world, name, pool).await;
        if holds(last) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{name} of {pool} is {last}");
}

/// A receiver that takes its time is seen in the metrics of the pool: all workers busy, results
/// that wait, and for how long. When it is quick again all of that is over.
#[tokio::test]
async fn a_slow_receiver_is_seen_in_the_pool_of_callbacks() {
    let world = World::start_with(|limits| {
        limits.callback_workers = 2;
        limits.communication_timeout = Duration::from_secs(600);
    })
    .await;
    let (receiver, url, _ask) = Peer::start().await;
    *receiver.takes.lock().unwrap() = Duration::from_secs(600);
    for number in 0..5 {
        let guid = format!("t-{number}");
        let done = format!("{url}/done-{number}");
        world.desire_named_task(&guid, &done).await;
        let cancel = TaskGuidRequest { task_guid: guid };
        world.act(path::CANCEL_TASK, &cancel).await;
    }
    assert_eq!(pool_metric(&world, "workers", "callbacks").await, 2.0);
    until_pool(&world, "busy", "callbacks", |busy| busy == 2.0).await;
    until_pool(&world, "queued", "callbacks", |queued| queued >= 3.0).await;
    let waits = pool_metric(&world, "oldest_wait_seconds", "callbacks").await;
    let longer = |it| it > waits + 0.1;
    until_pool(&world, "oldest_wait_seconds", "callbacks", longer).await;
    assert_eq!(pool_metric(&world, "begun_total", "callbacks").await, 2.0);
    assert_eq!(pool_metric(&world, "queued", "deletes").await, 0.0);

    *receiver.takes.lock().unwrap() = Duration::ZERO;
    until_pool(&world, "begun_total", "callbacks", |begun| begun >= 5.0).await;
    until_pool(&world, "busy", "callbacks", |busy| busy == 0.0).await;
    until_pool(&world, "queued", "callbacks", |queued| queued == 0.0).await;
    let oldest = pool_metric(&world, "oldest_wait_seconds", "callbacks").await;
    assert_eq!(oldest, 0.0);
    for sum in ["wait_seconds_sum", "busy_seconds_sum"] {
        let sum = pool_metric(&world, sum, "callbacks").await;
        assert!(sum > 0.1, "{sum}");
    }
}

#[tokio::test]
async fn a_pool_without_workers_is_refused_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = Config::new("127.0.0.1:0".parse().unwrap(), folder.path());
    config.limits.delete_workers = 0;
    let refused = bbs::start(config, logger(&Sink::memory()))
        .await
        .unwrap_err();
    assert_eq!(
        refused.to_string(),
        "start the BBS: delete_workers: expected a number of workers from 1 to 10000, found 0"
    );
}

#[tokio::test]
async fn a_result_on_its_way_survives_a_restart_of_the_bbs() {
    let world = World::start().await;
    let (receiver, url, _ask) = Peer::start().await;
    *receiver.status.lock().unwrap() = StatusCode::SERVICE_UNAVAILABLE;
    world.desire_task(&format!("{url}/done")).await;
    world.act(path::CANCEL_TASK, &cancel()).await;
    eventually("it is sent", || receiver.count("/done") > 0).await;
    assert_eq!(world.task_state().await, Some(task::State::Resolving));
    let world = world.restart().await;
    *receiver.status.lock().unwrap() = StatusCode::OK;
    while world.task_state().await.is_some() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_claim_on_a_result_that_comes_to_nothing_is_taken_back() {
    let world = World::start().await;
    world.desire_task("").await;
    world.act(path::CANCEL_TASK, &cancel()).await;
    world.act(path::RESOLVING_TASK, &cancel()).await;
    while world.task_state().await != Some(task::State::Completed) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn calls_to_cells_carry_the_trace_of_what_led_to_them() {
    let world = World::start().await;
    let (rep, url, _ask) = Peer::start().await;
    world.register(&url).await;
    world.run_instances(2).await;
    let retire = RetireActualLrpRequest {
        actual_lrp_key: Some(ActualLrpKey {
            process_guid: "p".into(),
            index: 0,
            domain: "d".into(),
        }),
    };
    world
        .do_traced(path::RETIRE_ACTUAL_LRP, &retire, "trace-retire")
        .await;
    assert_eq!(rep.trace("i-0/stop"), "trace-retire");
    let process_guid = "p".into();
    let remove = RemoveDesiredLrpRequest { process_guid };
    world
        .do_traced(path::REMOVE_DESIRED_LRP, &remove, "trace-remove")
        .await;
    eventually("it is stopped", || rep.count("i-1/stop") > 0).await;
    assert_eq!(rep.trace("i-1/stop"), "trace-remove");

    world.desire_task("").await;
    let start = StartTaskRequest {
        task_guid: "t".into(),
        cell_id: "c".into(),
    };
    let _: StartTaskResponse = world.client.call(path::START_TASK, &start).await.unwrap();
    world
        .do_traced(path::CANCEL_TASK, &cancel(), "trace-cancel")
        .await;
    eventually("it is cancelled", || rep.count("/v1/tasks/t/cancel") > 0).await;
    assert_eq!(rep.trace("/v1/tasks/t/cancel"), "trace-cancel");
}

/// Routes of other kinds alone are told too, with nothing in it; an annotation is not.
#[tokio::test]
async fn cells_are_told_of_routes_as_the_original_tells_of_them() {
    let world = World::start().await;
    let (rep, url, _ask) = Peer::start().await;
    world.register(&url).await;
    world.run_instances(1).await;
    let update = async |update: DesiredLrpUpdate| {
        let request = UpdateDesiredLrpRequest {
            process_guid: "p".into(),
            update: Some(update),
        };
        world.act(path::UPDATE_DESIRED_LRP, &request).await;
    };
    let routes = |router: &str, value: &str| {
        let routes = [(router.to_owned(), value.as_bytes().to_vec())].into();
        DesiredLrpUpdate {
            routes: Some(ProtoRoutes { routes }),
            ..DesiredLrpUpdate::default()
        }
    };
    let told = async |count: usize| {
        eventually("the cell is told", || {
            rep.bodies.lock().unwrap().len() >= count
        })
        .await;
        let bodies = rep.bodies.lock().unwrap();
        assert_eq!(bodies.len(), count);
        let body: serde_json::Value = serde_json::from_slice(&bodies[count - 1]).unwrap();
        body["internal_routes"].to_string()
    };
    update(DesiredLrpUpdate {
        annotation: Some("a".into()),
        ..DesiredLrpUpdate::default()
    })
    .await;
    update(routes("cf-router", "[]")).await;
    assert_eq!(told(1).await, "null");
    assert_eq!(rep.count("/v2/lrps/p/instances/i-0"), 1);
    let internal = r#"[{"hostname":"a.internal"}]"#;
    update(routes("internal-router", internal)).await;
    assert_eq!(told(2).await, internal);
    // The same again is nothing new.
    update(routes("internal-router", internal)).await;
    update(routes("cf-router", "[]")).await;
    assert_eq!(told(3).await, "[]");
}
