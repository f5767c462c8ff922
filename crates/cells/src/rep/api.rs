//! The HTTP API of a cell, and the one of the process that carries cells.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use diego::Bbs;
use diego::auction::Work;
use fleet::Silence;
use http::header::{CONNECTION, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use net::{Body, ConnectionFailure, Handler, read_body};
use serde::Serialize;
use telemetry::{Fields, prometheus};
use tokio::sync::watch;

use super::cell::Cell;
use super::container::Kind;
use super::evacuation::Evacuation;
use super::executor::Executor;
use super::metrics::{self, Containers};
use super::presence::Hold;
use super::update::Update;
use crate::answers::{bare, no_such_path, wrong_method};

const BODY_BYTES: usize = 64 << 20;
const BODY_WITHIN: Duration = Duration::from_secs(60);

/// The API that the auctioneer and the BBS call.
pub(super) struct CellApi<E> {
    pub(super) cell: Arc<Cell<E>>,
    /// May the cell be cleared from outside? Only a simulated one.
    pub(super) resettable: bool,
}

impl<E: Executor> CellApi<E> {
    fn work(&self, body: &[u8]) -> Response<Body> {
        let work: Work = match serde_json::from_slice(body) {
            Ok(work) => work,
            Err(error) => {
                self.failed("failed-to-read-work", &error);
                return bare(StatusCode::BAD_REQUEST);
            }
        };
        if !work.cell_id.is_empty() && work.cell_id != self.cell.id() {
            let cause = format!("the work is for cell {:?}", work.cell_id);
            self.failed("refused-work", &cause);
            return bare(StatusCode::INTERNAL_SERVER_ERROR);
        }
        let cell_id = work.cell_id.clone();
        let mut refused = self.cell.accept(work);
        if !refused.lrps.is_empty() || !refused.tasks.is_empty() {
            refused.cell_id = cell_id;
        }
        json(&refused)
    }

    fn update(&self, guid: &str, body: &[u8]) -> Response<Body> {
        match serde_json::from_slice::<Update>(body) {
            Ok(update) => {
                self.cell.update(guid, update);
                bare(StatusCode::ACCEPTED)
            }
            Err(error) => {
                self.failed("failed-to-read-update", &error);
                bare(StatusCode::BAD_REQUEST)
            }
        }
    }

    fn failed(&self, event: &str, cause: &dyn Display) {
        self.cell.logs.cell.error(event, cause, Fields::new());
    }

    fn reset(&self) -> Response<Body> {
        if !self.resettable {
            return bare(StatusCode::INTERNAL_SERVER_ERROR);
        }
        self.cell.reset();
        bare(StatusCode::OK)
    }
}

impl<E: Executor> Handler for CellApi<E> {
    fn connection_failed(&self, failure: &ConnectionFailure) {
        self.failed("no-connection", failure);
    }

    async fn handle(&self, request: Request<Incoming>) -> Response<Body> {
        // Whoever asks a cell that is cut off waits for as long as it likes.
        self.cell.identity.agent.may_speak().await;
        let (head, body) = request.into_parts();
        let path: Vec<&str> = head.uri.path().split('/').skip(1).collect();
        match (&head.method, path.as_slice()) {
            (&Method::GET, ["state"]) => json(&self.cell.state()),
            (&Method::GET, ["container_metrics"]) => json(&Metrics::of(&self.cell)),
            (&Method::POST, ["v1", "lrps", _, "instances", guid, "stop"]) => {
                self.cell.stop(guid, Kind::Lrp);
                bare(StatusCode::ACCEPTED)
            }
            (&Method::POST, ["v1", "tasks", guid, "cancel"]) => {
                self.cell.stop(guid, Kind::Task);
                bare(StatusCode::ACCEPTED)
            }
            (&Method::POST, ["sim", "reset"]) => self.reset(),
            (&Method::POST, ["work"]) => match read_body(body, BODY_BYTES, BODY_WITHIN).await {
                Ok(body) => self.work(&body),
                Err(_) => bare(StatusCode::BAD_REQUEST),
            },
            (&Method::PUT, ["v1" | "v2", "lrps", _, "instances", guid]) => {
                match read_body(body, BODY_BYTES, BODY_WITHIN).await {
                    Ok(body) => self.update(guid, &body),
                    Err(_) => bare(StatusCode::BAD_REQUEST),
                }
            }
            (
                _,
                ["state" | "container_metrics" | "work"]
                | ["sim", "reset"]
                | ["v1", "lrps", _, "instances", _, "stop"]
                | ["v1", "tasks", _, "cancel"]
                | ["v1" | "v2", "lrps", _, "instances", _],
            ) => wrong_method(),
            _ => no_such_path(),
        }
    }
}

/// The API for whoever operates the process.
pub(super) struct AdminApi<E> {
    pub(super) cells: Vec<Arc<Cell<E>>>,
    /// Whether each cell's presence is held.
    pub(super) held: Vec<watch::Receiver<Hold>>,
    pub(super) bbs: Bbs,
    pub(super) metrics: Arc<metrics::Metrics>,
    pub(super) evacuation: Evacuation,
    /// Which cells are to be silent.
    pub(super) silence: Silence,
}

impl<E: Executor> AdminApi<E> {
    /// Begins the evacuation and says what to ask until nobody answers any more.
    fn evacuate(&self) -> Response<Body> {
        self.evacuation.begin();
        let body = r#"{"ping_path":"/ping"}"#;
        let mut response = net::response(StatusCode::ACCEPTED, "application/json", body);
        // A connection that is kept would hold the end up.
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(CONNECTION, close);
        response
    }

    /// Takes or lifts an order to be silent.
    async fn order(&self, request: Request<Incoming>) -> Response<Body> {
        let (head, body) = request.into_parts();
        let Ok(body) = read_body(body, fleet::LONGEST_BODY, BODY_WITHIN).await else {
            return bare(StatusCode::BAD_REQUEST);
        };
        let (status, text) = self.silence.answer(&head.method, head.uri.path(), &body);
        net::plain_text(status, text)
    }

    fn metrics(&self) -> Response<Body> {
        let mut containers = Containers::default();
        for cell in &self.cells {
            cell.count_containers(&mut containers);
        }
        let held = self
            .held
            .iter()
            .filter(|held| *held.borrow() == Hold::Held)
            .count();
        let cells = [self.cells.len() as u64, held as u64, self.silence.silent()];
        let text = self.metrics.text(cells, containers, self.bbs.counts());
        net::response(StatusCode::OK, prometheus::CONTENT_TYPE, text)
    }
}

impl<E: Executor> Handler for AdminApi<E> {
    async fn handle(&self, request: Request<Incoming>) -> Response<Body> {
        match (request.method(), request.uri().path()) {
            (&Method::GET, "/ping") => bare(StatusCode::OK),
            (&Method::GET, "/metrics") => self.metrics(),
            (&Method::POST, "/evacuate") => self.evacuate(),
            (_, path) if path.starts_with(fleet::PATH) => self.order(request).await,
            (_, "/ping" | "/metrics" | "/evacuate") => wrong_method(),
            _ => no_such_path(),
        }
    }
}

/// Answer of `GET /container_metrics`. Nothing is measured here, so all is zero.
#[derive(Debug, Default, Serialize)]
struct Metrics {
    cell_id: String,
    lrps: Vec<LrpMetrics>,
    tasks: Vec<TaskMetrics>,
}

#[derive(Debug, Default, Serialize)]
struct LrpMetrics {
    instance_guid: String,
    process_guid: String,
    index: i32,
    #[serde(flatten)]
    usage: Usage,
}

#[derive(Debug, Default, Serialize)]
struct TaskMetrics {
    task_guid: String,
    #[serde(flatten)]
    usage: Usage,
}

#[derive(Debug, Default, Serialize)]
struct Usage {
    metric_guid: String,
    cpu_usage_fraction: f64,
    disk_usage_bytes: u64,
    disk_quota_bytes: u64,
    memory_usage_bytes: u64,
    memory_quota_bytes: u64,
}

impl Usage {
    fn of(resource: diego::auction::Resource) -> Self {
        let bytes = |mebibytes: i32| u64::try_from(mebibytes).unwrap_or(0) << 20;
        Self {
            disk_quota_bytes: bytes(resource.disk_mb),
            memory_quota_bytes: bytes(resource.memory_mb),
            ..Self::default()
        }
    }
}

impl Metrics {
    fn of<E: Executor>(cell: &Cell<E>) -> Self {
        let state = cell.state();
        let lrp = |lrp: diego::auction::Lrp| LrpMetrics {
            usage: Usage::of(lrp.resource),
            instance_guid: lrp.instance_guid,
            process_guid: lrp.process_guid,
            index: lrp.index,
        };
        let task = |task: diego::auction::Task| TaskMetrics {
            usage: Usage::of(task.resource),
            task_guid: task.task_guid,
        };
        Self {
            cell_id: state.cell_id,
            lrps: state.lrps.into_iter().map(lrp).collect(),
            tasks: state.tasks.into_iter().map(task).collect(),
        }
    }
}

/// JSON as text: Go names that type for what is written without naming one.
fn json(value: &impl Serialize) -> Response<Body> {
    match serde_json::to_vec(value) {
        Ok(mut body) => {
            body.push(b'\n');
            net::plain_text(StatusCode::OK, body)
        }
        Err(_) => bare(StatusCode::INTERNAL_SERVER_ERROR),
    }
}
