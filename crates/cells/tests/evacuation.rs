//! Emptying a cell, with a real BBS and auctioneer and two reps.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use cells::rep::{self, ExecutorKind, Simulation};
use cells::{auctioneer, bbs};
use diego::auction::{CellState, Lrp, Resource, Work};
use diego::models::actual_lrp::Presence;
use diego::models::*;
use diego::{Bbs, path};
use net::{Client, ClientOptions};
use tokio::sync::watch;

use crate::desired::{action, tags};
use crate::own_address::own_address;
use crate::patience::{PATIENCE, until_some};
use crate::quiet::logger;

/// A BBS and an auctioneer, for cells to come to.
pub(crate) struct System {
    pub(crate) url: String,
    pub(crate) bbs: Bbs,
    _server: bbs::Running,
    _ask: watch::Sender<bool>,
    _folder: tempfile::TempDir,
}

/// A rep of one cell.
struct Rep {
    running: rep::Running,
    admin: SocketAddr,
    _ask: watch::Sender<bool>,
}

impl System {
    pub(crate) async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (ask, shutdown) = net::shutdown();
        let auctioneer = own_address();
        let mut config = bbs::Config::new("127.0.0.1:0".parse().unwrap(), folder.path());
        config.auctioneer_url = Some(format!("http://{auctioneer}"));
        // What could not be placed is soon tried again.
        config.limits.converge_interval = Duration::from_millis(200);
        let server = bbs::start(config, logger("bbs")).await.unwrap();
        let url = format!("http://{}", server.address());
        let settings = auctioneer::Config::new(auctioneer, &*url);
        auctioneer::start(settings, logger("auctioneer"), shutdown)
            .await
            .unwrap();
        Self {
            bbs: Bbs::new(Client::new(ClientOptions::default()), &*url),
            url,
            _server: server,
            _ask: ask,
            _folder: folder,
        }
    }

    async fn rep(&self, name: &str, change: impl FnOnce(&mut rep::Config)) -> Rep {
        let (any, admin) = ("127.0.0.1:0".parse().unwrap(), own_address());
        let mut config = rep::Config::new(1, any, &*self.url);
        config.id_prefix = name.into();
        config.admin_listen = Some(admin);
        config.evacuation_interval = Duration::from_millis(50);
        change(&mut config);
        let (ask, shutdown) = net::shutdown();
        let running = rep::start(config, logger("rep"), shutdown).await.unwrap();
        running.registered().await;
        Rep {
            running,
            admin,
            _ask: ask,
        }
    }

    async fn desire(&self, process: &str, instances: i32, strategy: desired_lrp::UpdateStrategy) {
        let request = DesireLrpRequest {
            desired_lrp: Some(DesiredLrp {
                process_guid: process.into(),
                domain: "d".into(),
                root_fs: "preloaded:cflinuxfs4".into(),
                instances,
                action: action(),
                metric_tags: tags("p"),
                update_strategy: strategy.into(),
                ..DesiredLrp::default()
            }),
        };
        type Answer = DesiredLrpLifecycleResponse;
        let desired = self.bbs.call::<Answer>(path::DESIRE_LRP, &request).await;
        desired.unwrap();
    }

    async fn rows(&self) -> Vec<ActualLrp> {
        let all = ActualLrPsRequest::default();
        let all: ActualLrPsResponse = self.bbs.call(path::ACTUAL_LRPS, &all).await.unwrap();
        all.actual_lrps
    }

    /// Waits for records that are as `holds` wants, and returns them.
    async fn until(&self, what: &str, holds: impl Fn(&[ActualLrp]) -> bool) -> Vec<ActualLrp> {
        until_some(what, async || {
            let rows = self.rows().await;
            holds(&rows).then_some(rows)
        })
        .await
    }

    /// Cells that the BBS knows.
    async fn cells(&self) -> Vec<String> {
        let cells: CellsResponse = self.bbs.call(path::CELLS, &()).await.unwrap();
        cells.cells.into_iter().map(|cell| cell.cell_id).collect()
    }
}

impl Rep {
    async fn post(&self, at: SocketAddr, path: &str, body: Vec<u8>) -> net::Answer {
        let uri = format!("http://{at}{path}").parse().unwrap();
        let client = Client::new(ClientOptions::default());
        let headers = http::HeaderMap::new();
        let answer = client.post(&uri, "application/json", headers, body.into());
        answer.await.unwrap()
    }

    /// Begins the evacuation as a drain script does.
    async fn evacuate(&self) {
        let answer = self.post(self.admin, "/evacuate", Vec::new()).await;
        assert_eq!(answer.status, 202);
        assert_eq!(&*answer.body, br#"{"ping_path":"/ping"}"#);
    }

    async fn state(&self) -> CellState {
        let client = Client::new(ClientOptions::default());
        let uri = format!("http://{}/state", self.running.addresses()[0]);
        let answer = client.get(&uri.parse().unwrap()).await.unwrap();
        serde_json::from_slice(&answer.body).unwrap()
    }

    /// Waits until the rep has ended by itself, after which nobody answers pings.
    async fn gone(self) {
        let stopped = tokio::time::timeout(PATIENCE, self.running.stopped());
        stopped.await.expect("the evacuated rep ends");
        let client = Client::new(ClientOptions::default());
        let ping = format!("http://{}/ping", self.admin).parse().unwrap();
        assert!(client.get(&ping).await.is_err());
    }
}

fn on(row: &ActualLrp, cell: &str) -> bool {
    let key = row.actual_lrp_instance_key.as_ref().unwrap();
    key.cell_id == cell
}

fn runs(row: &ActualLrp) -> bool {
    row.state == "RUNNING" && row.routable == Some(true)
}

/// Indices of which a copy runs and is routable.
fn routable(rows: &[ActualLrp]) -> BTreeSet<i32> {
    let indices = rows.iter().filter(|row| runs(row));
    indices
        .map(|row| row.actual_lrp_key.as_ref().unwrap().index)
        .collect()
}

fn starts_in(create: &str) -> ExecutorKind {
    ExecutorKind::Simulated(Simulation {
        create: create.parse().unwrap(),
        ..Simulation::default()
    })
}

use desired_lrp::UpdateStrategy::{Recreate, Rolling};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_instance_has_a_routable_copy_until_its_cell_is_empty() {
    let system = System::start().await;
    let first = system.rep("first", |_| ()).await;
    system.desire("p", 20, Rolling).await;
    let all = |rows: &[ActualLrp]| rows.len() == 20 && rows.iter().all(runs);
    system.until("all run", all).await;
    // Replacements take their time, so that both copies are seen.
    let second = system.rep("second", |config| {
        config.executor = starts_in("uniform 50ms 500ms")
    });
    let second = second.await;
    first.evacuate().await;
    let both = system
        .until("a copy is evacuating", |rows| {
            rows.iter()
                .any(|row| row.presence() == Presence::Evacuating)
        })
        .await;
    assert_eq!(routable(&both).len(), 20);
    let moved = system
        .until("all have moved", |rows| {
            assert_eq!(routable(rows).len(), 20, "an index without a routable copy");
            rows.len() == 20 && rows.iter().all(|row| on(row, "second-0") && runs(row))
        })
        .await;
    assert!(moved.iter().all(|row| row.presence() == Presence::Ordinary));
    first.gone().await;
    // Nothing of the first cell is left, and nothing is placed again.
    assert_eq!(system.cells().await, ["second-0"]);
    assert_eq!(system.rows().await.len(), 20);
    assert_eq!(second.state().await.lrps.len(), 20);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_evacuated_cell_says_so_and_takes_nothing() {
    let system = System::start().await;
    let only = system.rep("only", |_| ()).await;
    system.desire("p", 3, Rolling).await;
    let all = |rows: &[ActualLrp]| rows.len() == 3 && rows.iter().all(runs);
    system.until("all run", all).await;
    assert!(!only.state().await.evacuating);
    only.evacuate().await;
    let handed_over = |rows: &[ActualLrp]| {
        let evacuating = |row: &&ActualLrp| row.presence() == Presence::Evacuating;
        rows.iter().filter(evacuating).count() == 3 && routable(rows).len() == 3
    };
    // No other cell takes them, so they stay.
    system.until("all are handed over", handed_over).await;
    let state = only.state().await;
    assert!(state.evacuating);
    assert_eq!(state.lrps.len(), 3);
    let lrp = Lrp {
        process_guid: "q".into(),
        domain: "d".into(),
        resource: Resource {
            memory_mb: 1,
            disk_mb: 1,
            max_pids: 0,
        },
        ..Lrp::default()
    };
    let work = Work {
        lrps: vec![lrp],
        cell_id: "only-0".into(),
        ..Work::default()
    };
    let body = serde_json::to_vec(&work).unwrap();
    let at = only.running.addresses()[0];
    let refused: Work = serde_json::from_slice(&only.post(at, "/work", body).await.body).unwrap();
    assert_eq!(refused.lrps, work.lrps);
    // A cell that comes takes them all.
    let _second = system.rep("second", |_| ()).await;
    only.gone().await;
    let rows = system.rows().await;
    assert!(rows.iter().all(|row| on(row, "second-0")), "{rows:?}");
    assert_eq!(routable(&rows).len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_the_time_out_everything_ends_and_the_rep_leaves() {
    let system = System::start().await;
    let only = system
        .rep("only", |config| {
            config.evacuation_timeout = Duration::from_millis(300);
            config.executor = ExecutorKind::Simulated(Simulation {
                run: "1h".parse().unwrap(),
                ..Simulation::default()
            });
        })
        .await;
    system.desire("p", 2, Rolling).await;
    let request = DesireTaskRequest {
        task_guid: "t".into(),
        domain: "d".into(),
        task_definition: Some(TaskDefinition {
            root_fs: "preloaded:cflinuxfs4".into(),
            action: action(),
            metric_tags: tags("p"),
            ..TaskDefinition::default()
        }),
    };
    let desired = system
        .bbs
        .call::<TaskLifecycleResponse>(path::DESIRE_TASK, &request);
    desired.await.unwrap();
    let all = |rows: &[ActualLrp]| rows.len() == 2 && rows.iter().all(runs);
    system.until("all run", all).await;
    while only.state().await.tasks.len() != 1 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let evacuation = only.running.evacuation();
    evacuation.begin();
    only.gone().await;
    // The evacuating records went with the rep; what is desired waits for another cell.
    let rows = system.rows().await;
    assert_eq!(rows.len(), 2, "{rows:?}");
    assert!(rows.iter().all(|row| row.state == "UNCLAIMED"), "{rows:?}");
    let tasks: TasksResponse = {
        let all = TasksRequest::default();
        system.bbs.call(path::TASKS, &all).await.unwrap()
    };
    let [task] = &tasks.tasks[..] else {
        panic!("{tasks:?}");
    };
    assert!(task.failed, "{task:?}");
    let reason = "the cell was evacuated before the task had ended";
    assert_eq!(task.failure_reason, reason);
    assert!(system.cells().await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_recreated_moves_one_at_a_time() {
    let system = System::start().await;
    let first = system.rep("first", |_| ()).await;
    system.desire("p", 4, Recreate).await;
    let all = |rows: &[ActualLrp]| rows.len() == 4 && rows.iter().all(runs);
    system.until("all run", all).await;
    let _second = system.rep("second", |_| ()).await;
    first.evacuate().await;
    let moved = |rows: &[ActualLrp]| {
        assert!(routable(rows).len() >= 3, "two are replaced at once");
        rows.len() == 4 && rows.iter().all(|row| on(row, "second-0") && runs(row))
    };
    system.until("all have moved", moved).await;
    first.gone().await;
}
