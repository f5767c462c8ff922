//! Simulated cells and a BBS in memory, for the tests of what cells do.

use std::time::Duration;

use cells::rep::{Config, ExecutorKind, Running, Simulation, start};
use diego::auction::{CellState, Lrp, Placement, Resource, Task, Work};
use diego::models::DesiredLrp;
use net::{Client, ClientOptions};
use telemetry::Sink;
use tokio::sync::watch;

use crate::fake_bbs::{FakeBbs, logger};

pub(crate) struct Fleet {
    pub(crate) bbs: FakeBbs,
    pub(crate) rep: Running,
    pub(crate) sink: Sink,
    pub(crate) client: Client,
    pub(crate) ask: watch::Sender<bool>,
}

impl Fleet {
    pub(crate) async fn start(count: u32, edit: impl FnOnce(&mut Config)) -> Self {
        let bbs = FakeBbs::start().await;
        let mut config = Config::new(count, "127.0.0.1:0".parse().unwrap(), &*bbs.url);
        edit(&mut config);
        let (ask, shutdown) = net::shutdown();
        let (logger, sink) = logger("rep");
        let rep = start(config, logger, shutdown).await.unwrap();
        rep.registered().await;
        let client = Client::new(ClientOptions::default());
        Self {
            bbs,
            rep,
            sink,
            client,
            ask,
        }
    }

    pub(crate) async fn simulated(edit: impl FnOnce(&mut Simulation)) -> Self {
        let mut simulation = Simulation::default();
        edit(&mut simulation);
        let set = |config: &mut Config| config.executor = ExecutorKind::Simulated(simulation);
        Self::start(1, set).await
    }

    pub(crate) fn uri(&self, path: &str) -> http::Uri {
        format!("http://{}{path}", self.rep.addresses()[0])
            .parse()
            .unwrap()
    }

    pub(crate) async fn post(&self, path: &str, body: Vec<u8>) -> net::Answer {
        let headers = http::HeaderMap::new();
        self.client
            .post(&self.uri(path), "application/json", headers, body.into())
            .await
            .unwrap()
    }

    pub(crate) async fn give(&self, work: &Work) -> Work {
        let answer = self.post("/work", serde_json::to_vec(work).unwrap()).await;
        assert_eq!(answer.status, 200);
        serde_json::from_slice(&answer.body).unwrap()
    }

    pub(crate) async fn state(&self) -> CellState {
        let answer = self.client.get(&self.uri("/state")).await.unwrap();
        serde_json::from_slice(&answer.body).unwrap()
    }

    pub(crate) async fn is_empty(&self) {
        loop {
            let state = self.state().await;
            if state.lrps.is_empty() && state.tasks.is_empty() {
                assert_eq!(state.available_resources, state.total_resources);
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Gives the only instance of the LRP "p" to the cell and waits until it runs.
    pub(crate) async fn run_instance(&self) -> String {
        self.bbs.records().desire(desired("p", 1));
        self.give(&work(vec![lrp("p", 0)], vec![])).await;
        self.bbs
            .until("the instance runs", |records| records.running() == 1)
            .await;
        let records = self.bbs.records();
        let key = records.lrps[&("p".into(), 0)]
            .actual_lrp_instance_key
            .clone();
        key.unwrap().instance_guid
    }
}

pub(crate) fn work(lrps: Vec<Lrp>, tasks: Vec<Task>) -> Work {
    Work {
        lrps,
        tasks,
        cell_id: "cell-0".into(),
    }
}

pub(crate) fn resource() -> Resource {
    Resource {
        memory_mb: 64,
        disk_mb: 64,
        max_pids: 0,
    }
}

pub(crate) fn task(guid: &str) -> Task {
    let placement = Placement {
        root_fs: "preloaded:cflinuxfs4".into(),
        ..Placement::default()
    };
    Task {
        task_guid: guid.into(),
        placement,
        resource: resource(),
        ..Task::default()
    }
}

pub(crate) fn lrp(process: &str, index: i32) -> Lrp {
    Lrp {
        process_guid: process.into(),
        index,
        domain: "test".into(),
        resource: resource(),
        ..Lrp::default()
    }
}

pub(crate) fn desired(process: &str, instances: i32) -> DesiredLrp {
    DesiredLrp {
        process_guid: process.into(),
        domain: "test".into(),
        instances,
        ports: vec![8080, 2222],
        ..DesiredLrp::default()
    }
}
