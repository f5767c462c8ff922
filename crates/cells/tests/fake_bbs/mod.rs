//! A BBS in memory with just what reps and the auctioneer call. It keeps tasks and
//! instances, writes down every call, and refuses calls when a test says so.

// Each test file uses its own part of it.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::expect_used)]

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use diego::error::{Type, error};
use diego::locket::{LockRequest, ReleaseRequest};
use diego::models::*;
use diego::{PROTOBUF, path};
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Request, Response, StatusCode};
use net::{Body, Handler, Limits, full, read_body};
use prost::Message;
use telemetry::{Level, Logger, Sink};

/// Longest wait of a test for anything.
pub const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Default)]
pub struct Records {
    pub tasks: BTreeMap<String, Task>,
    pub lrps: BTreeMap<(String, i32), ActualLrp>,
    pub desired: HashMap<String, DesiredLrp>,
    /// Values of presences by cell.
    pub presences: BTreeMap<String, String>,
    /// Paths of all calls, in order.
    pub calls: Vec<String>,
    /// Errors to answer with, by path; each once.
    pub refusals: HashMap<String, VecDeque<Type>>,
    /// Answer nothing but status 503.
    pub down: bool,
    pub rejections: Vec<RejectTaskRequest>,
    pub failures: Vec<FailActualLrpRequest>,
    pub crashes: Vec<CrashActualLrpRequest>,
    pub starts: Vec<StartActualLrpRequest>,
}

impl Records {
    pub fn count(&self, path: &str) -> usize {
        self.calls.iter().filter(|call| *call == path).count()
    }

    pub fn refuse(&mut self, path: &str, kind: Type) {
        self.refusals
            .entry(path.into())
            .or_default()
            .push_back(kind);
    }

    pub fn add_task(&mut self, guid: &str, definition: TaskDefinition) {
        let task = Task {
            task_guid: guid.into(),
            domain: "test".into(),
            state: task::State::Pending.into(),
            task_definition: Some(definition),
            ..Task::default()
        };
        self.tasks.insert(guid.into(), task);
    }

    pub fn completed(&self) -> usize {
        let completed = |task: &&Task| task.state() == task::State::Completed;
        self.tasks.values().filter(completed).count()
    }

    pub fn running(&self) -> usize {
        self.lrps
            .values()
            .filter(|lrp| lrp.state == "RUNNING")
            .count()
    }

    pub fn desire(&mut self, lrp: DesiredLrp) {
        for index in 0..lrp.instances {
            let key = ActualLrpKey {
                process_guid: lrp.process_guid.clone(),
                index,
                domain: lrp.domain.clone(),
            };
            let actual = ActualLrp {
                actual_lrp_key: Some(key),
                state: "UNCLAIMED".into(),
                ..ActualLrp::default()
            };
            self.lrps.insert((lrp.process_guid.clone(), index), actual);
        }
        self.desired.insert(lrp.process_guid.clone(), lrp);
    }

    fn answer(&mut self, path: &str, body: Bytes) -> Option<Vec<u8>> {
        self.calls.push(path.to_owned());
        let refusal = self.refusals.get_mut(path).and_then(VecDeque::pop_front);
        if let Some(kind) = refusal {
            return Some(failed(kind));
        }
        let answer = match path {
            path::CELLS => self.cells().encode_to_vec(),
            path::START_TASK => self.start_task(&decode(body)),
            path::TASK_BY_GUID => {
                let request: TaskByGuidRequest = decode(body);
                let task = self.tasks.get(&request.task_guid).cloned();
                if task.is_none() {
                    return Some(failed(Type::ResourceNotFound));
                }
                TaskResponse { error: None, task }.encode_to_vec()
            }
            path::COMPLETE_TASK => self.complete_task(decode(body)),
            path::REJECT_TASK => {
                self.rejections.push(decode(body));
                Vec::new()
            }
            path::DESIRED_LRP_BY_PROCESS_GUID => {
                let request: DesiredLrpByProcessGuidRequest = decode(body);
                let desired_lrp = self.desired.get(&request.process_guid).cloned();
                if desired_lrp.is_none() {
                    return Some(failed(Type::ResourceNotFound));
                }
                DesiredLrpResponse {
                    error: None,
                    desired_lrp,
                }
                .encode_to_vec()
            }
            path::CLAIM_ACTUAL_LRP => {
                let request: ClaimActualLrpRequest = decode(body);
                let place = (request.process_guid, request.index);
                self.become_state(place, request.actual_lrp_instance_key, "CLAIMED")
            }
            path::START_ACTUAL_LRP => {
                let request: StartActualLrpRequest = decode(body);
                self.starts.push(request.clone());
                let key = request.actual_lrp_key.unwrap_or_default();
                let place = (key.process_guid, key.index);
                if let Some(lrp) = self.lrps.get_mut(&place) {
                    lrp.actual_lrp_net_info = request.actual_lrp_net_info;
                    lrp.actual_lrp_internal_routes = request.actual_lrp_internal_routes;
                    lrp.metric_tags = request.metric_tags;
                    lrp.routable = request.routable;
                    lrp.availability_zone = request.availability_zone;
                }
                self.become_state(place, request.actual_lrp_instance_key, "RUNNING")
            }
            path::REMOVE_ACTUAL_LRP => {
                let request: RemoveActualLrpRequest = decode(body);
                match self.lrps.remove(&(request.process_guid, request.index)) {
                    Some(_) => Vec::new(),
                    None => failed(Type::ResourceNotFound),
                }
            }
            path::CRASH_ACTUAL_LRP => {
                let request: CrashActualLrpRequest = decode(body);
                self.crashes.push(request.clone());
                let key = request.actual_lrp_key.unwrap_or_default();
                let place = (key.process_guid, key.index);
                self.become_state(place, request.actual_lrp_instance_key, "CRASHED")
            }
            path::FAIL_ACTUAL_LRP => {
                self.failures.push(decode(body));
                Vec::new()
            }
            path::ACTUAL_LRPS => {
                let request: ActualLrPsRequest = decode(body);
                let here = |lrp: &&ActualLrp| {
                    let key = lrp.actual_lrp_instance_key.as_ref();
                    key.is_some_and(|key| key.cell_id == request.cell_id)
                };
                let actual_lrps = self.lrps.values().filter(here).cloned().collect();
                ActualLrPsResponse {
                    error: None,
                    actual_lrps,
                }
                .encode_to_vec()
            }
            path::TASKS => {
                let request: TasksRequest = decode(body);
                let here = |task: &&Task| task.cell_id == request.cell_id;
                let tasks = self.tasks.values().filter(here).cloned().collect();
                TasksResponse { error: None, tasks }.encode_to_vec()
            }
            path::LOCKET_LOCK => {
                let resource = decode::<LockRequest>(body).resource.unwrap_or_default();
                self.presences.insert(resource.key, resource.value);
                Vec::new()
            }
            path::LOCKET_RELEASE => {
                let resource = decode::<ReleaseRequest>(body).resource.unwrap_or_default();
                self.presences.remove(&resource.key);
                Vec::new()
            }
            _ => return None,
        };
        Some(answer)
    }

    fn cells(&self) -> CellsResponse {
        let cell = |(cell_id, value): (&String, &String)| {
            let value: serde_json::Value = serde_json::from_str(value).unwrap();
            CellPresence {
                cell_id: cell_id.clone(),
                rep_url: value["rep_url"].as_str().unwrap().into(),
                ..CellPresence::default()
            }
        };
        CellsResponse {
            error: None,
            cells: self.presences.iter().map(cell).collect(),
        }
    }

    fn start_task(&mut self, request: &StartTaskRequest) -> Vec<u8> {
        let Some(task) = self.tasks.get_mut(&request.task_guid) else {
            return failed(Type::ResourceNotFound);
        };
        let should_start = task.state() == task::State::Pending;
        if !should_start
            && (task.state() != task::State::Running || task.cell_id != request.cell_id)
        {
            return failed(Type::InvalidStateTransition);
        }
        task.set_state(task::State::Running);
        task.cell_id.clone_from(&request.cell_id);
        StartTaskResponse {
            error: None,
            should_start,
        }
        .encode_to_vec()
    }

    fn complete_task(&mut self, request: CompleteTaskRequest) -> Vec<u8> {
        let Some(task) = self.tasks.get_mut(&request.task_guid) else {
            return failed(Type::ResourceNotFound);
        };
        if task.state() != task::State::Running {
            return failed(Type::InvalidStateTransition);
        }
        if task.cell_id != request.cell_id {
            return failed(Type::RunningOnDifferentCell);
        }
        task.set_state(task::State::Completed);
        task.failed = request.failed;
        task.failure_reason = request.failure_reason;
        task.result = request.result;
        Vec::new()
    }

    fn become_state(
        &mut self,
        place: (String, i32),
        key: Option<ActualLrpInstanceKey>,
        state: &str,
    ) -> Vec<u8> {
        let Some(lrp) = self.lrps.get_mut(&place) else {
            return failed(Type::ResourceNotFound);
        };
        lrp.state = state.into();
        lrp.actual_lrp_instance_key = key;
        Vec::new()
    }
}

/// Every answer has its error in the first field, so one message serves for all.
fn failed(kind: Type) -> Vec<u8> {
    TaskLifecycleResponse {
        error: Some(error(kind)),
    }
    .encode_to_vec()
}

fn decode<M: Message + Default>(body: Bytes) -> M {
    M::decode(body).expect("the caller sends what the path takes")
}

#[derive(Clone)]
pub struct FakeBbs {
    pub url: String,
    records: Arc<Mutex<Records>>,
}

impl FakeBbs {
    /// Starts one that lives as long as the test's runtime.
    pub async fn start() -> Self {
        let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let listener = net::bind(any).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let bbs = Self {
            url,
            records: Arc::default(),
        };
        let handler = Arc::new(bbs.clone());
        tokio::spawn(async move {
            let (_never_asked, shutdown) = net::shutdown();
            net::serve(listener, None, Limits::default(), handler, shutdown).await;
        });
        bbs
    }

    pub fn records(&self) -> MutexGuard<'_, Records> {
        self.records.lock().unwrap()
    }

    /// Waits until `holds` of the records.
    pub async fn until(&self, what: &str, mut holds: impl FnMut(&Records) -> bool) {
        eventually(what, || holds(&self.records())).await;
    }
}

/// Waits until `holds`, and fails the test when it never does.
pub async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let wait = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    if tokio::time::timeout(PATIENCE, wait).await.is_err() {
        panic!("waited in vain: {what}");
    }
}

impl Handler for FakeBbs {
    async fn handle(&self, request: Request<hyper::body::Incoming>) -> Response<Body> {
        let path = request.uri().path().to_owned();
        let body = read_body(request.into_body(), 1 << 24, PATIENCE)
            .await
            .unwrap();
        let answer = {
            let mut records = self.records();
            if records.down {
                None
            } else {
                records.answer(&path, body)
            }
        };
        let mut response = Response::new(full(answer.clone().unwrap_or_default()));
        if answer.is_none() {
            *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        }
        let kind = HeaderValue::from_static(PROTOBUF);
        response.headers_mut().insert(CONTENT_TYPE, kind);
        response
    }
}

/// A logger and the sink that keeps its lines.
pub fn logger(source: &str) -> (Logger, Sink) {
    let sink = Sink::memory();
    (Logger::new(source, sink.clone(), Level::Info), sink)
}

/// Messages of kept lines that carry `value` under `key`.
pub fn messages(sink: &Sink, key: &str, value: &str) -> Vec<String> {
    let parse = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap();
    sink.kept()
        .lines()
        .map(parse)
        .filter(|line| line["data"][key] == value)
        .map(|line| line["message"].as_str().unwrap().to_owned())
        .collect()
}
