//! The auctioneer with simulated cells, against a BBS in memory.

use crate::fake_bbs;
use std::collections::BTreeSet;
use std::time::Duration;

use crate::fake_bbs::{FakeBbs, eventually, logger};
use cells::{auctioneer, rep};
use diego::auction::{LrpStartRequest, Placement, Resource, Task};
use diego::models::{DesiredLrp, TaskDefinition};
use net::{Client, ClientOptions};
use telemetry::Sink;
use tokio::sync::watch;

struct System {
    bbs: FakeBbs,
    auctioneer: auctioneer::Running,
    client: Client,
    sink: Sink,
    _ask: watch::Sender<bool>,
}

impl System {
    async fn start(cells: u32, edit: impl FnOnce(&mut auctioneer::Config)) -> Self {
        let bbs = FakeBbs::start().await;
        let any = "127.0.0.1:0".parse().unwrap();
        let (ask, shutdown) = net::shutdown();
        if cells > 0 {
            let config = rep::Config::new(cells, any, &*bbs.url);
            let rep = rep::start(config, logger("rep").0, shutdown.clone())
                .await
                .unwrap();
            rep.registered().await;
            tokio::spawn(rep.stopped());
        }
        let mut config = auctioneer::Config::new(any, &*bbs.url);
        edit(&mut config);
        let (logger, sink) = logger("auctioneer");
        let auctioneer = auctioneer::start(config, logger, shutdown).await.unwrap();
        let client = Client::new(ClientOptions::default());
        Self {
            bbs,
            auctioneer,
            client,
            sink,
            _ask: ask,
        }
    }

    async fn post(&self, path: &str, body: Vec<u8>) -> net::Answer {
        let uri: http::Uri = format!("http://{}{path}", self.auctioneer.address())
            .parse()
            .unwrap();
        let headers = http::HeaderMap::new();
        self.client
            .post(&uri, "application/json", headers, body.into())
            .await
            .unwrap()
    }

    async fn ask_tasks(&self, tasks: &[Task]) {
        let answer = self
            .post("/v1/tasks", serde_json::to_vec(tasks).unwrap())
            .await;
        assert_eq!(answer.status, 202);
        assert_eq!(answer.body, "{}");
    }

    async fn ask_lrp(&self, request: LrpStartRequest) {
        let answer = self
            .post("/v1/lrps", serde_json::to_vec(&[request]).unwrap())
            .await;
        assert_eq!(answer.status, 202);
    }
}

fn placement(root_fs: &str) -> Placement {
    Placement {
        root_fs: root_fs.into(),
        ..Placement::default()
    }
}

fn task(guid: String, root_fs: &str) -> Task {
    Task {
        task_guid: guid,
        placement: placement(root_fs),
        resource: Resource {
            memory_mb: 8,
            disk_mb: 8,
            max_pids: 0,
        },
        state: "Invalid".into(),
        ..Task::default()
    }
}

fn lrp(process_guid: &str, indices: Vec<i32>, root_fs: &str) -> LrpStartRequest {
    LrpStartRequest {
        process_guid: process_guid.into(),
        domain: "test".into(),
        indices,
        placement: placement(root_fs),
        ..LrpStartRequest::default()
    }
}

const ROOT_FS: &str = "preloaded:cflinuxfs4";

#[tokio::test]
async fn tasks_spread_over_all_cells_and_complete() {
    let system = System::start(10, |_| ()).await;
    let tasks: Vec<Task> = (0..200).map(|n| task(format!("t-{n}"), ROOT_FS)).collect();
    for task in &tasks {
        system
            .bbs
            .records()
            .add_task(&task.task_guid, TaskDefinition::default());
    }
    system.ask_tasks(&tasks).await;
    system
        .bbs
        .until("all complete", |records| records.completed() == 200)
        .await;
    let records = system.bbs.records();
    for number in 0..10 {
        let id = format!("cell-{number}");
        let share = records
            .tasks
            .values()
            .filter(|task| task.cell_id == id)
            .count();
        assert_eq!(share, 20, "{id}");
    }
}

#[tokio::test]
async fn instances_run_on_different_cells_and_zones() {
    let system = System::start(4, |_| ()).await;
    let desired = DesiredLrp {
        process_guid: "p".into(),
        domain: "test".into(),
        instances: 4,
        ..DesiredLrp::default()
    };
    system.bbs.records().desire(desired);
    system.ask_lrp(lrp("p", vec![0, 1, 2, 3], ROOT_FS)).await;
    system
        .bbs
        .until("all run", |records| records.running() == 4)
        .await;
    let records = system.bbs.records();
    let cells: BTreeSet<String> = records
        .lrps
        .values()
        .map(|lrp| lrp.actual_lrp_instance_key.clone().unwrap().cell_id)
        .collect();
    assert_eq!(cells.len(), 4);
}

#[tokio::test]
async fn work_that_fits_nowhere_is_reported_with_its_reason() {
    let system = System::start(1, |_| ()).await;
    system
        .ask_tasks(&[task("t".into(), "preloaded:nope")])
        .await;
    system.ask_lrp(lrp("p", vec![3], "nope:x")).await;
    system
        .bbs
        .until("both", |r| r.rejections.len() + r.failures.len() == 2)
        .await;
    let records = system.bbs.records();
    let reason = "found no compatible cell for required rootfs";
    assert_eq!(records.rejections[0].rejection_reason, reason);
    assert_eq!(records.failures[0].error_message, reason);
    let key = records.failures[0].actual_lrp_key.clone().unwrap();
    assert_eq!(
        (key.process_guid.as_str(), key.index, key.domain.as_str()),
        ("p", 3, "test")
    );
}

#[tokio::test]
async fn without_cells_everything_fails() {
    let system = System::start(0, |_| ()).await;
    system.ask_tasks(&[task("t".into(), ROOT_FS)]).await;
    system
        .bbs
        .until("it is rejected", |records| records.rejections.len() == 1)
        .await;
    let records = system.bbs.records();
    assert_eq!(
        records.rejections[0].rejection_reason,
        "unable to communicate to compatible cells"
    );
    assert_eq!(
        records.count(diego::path::CELLS),
        4,
        "it asked again before it gave up"
    );
}

#[tokio::test]
async fn a_cell_that_does_not_answer_takes_no_part() {
    let system = System::start(1, |config| {
        config.cell_state_timeout = Duration::from_secs(2);
    })
    .await;
    // Presences of a cell that is gone, and of one that is not who it says.
    let other = system.bbs.records().presences["cell-0"].clone();
    let gone = r#"{"rep_url":"http://127.0.0.1:1"}"#.to_owned();
    system
        .bbs
        .records()
        .presences
        .insert("cell-gone".into(), gone);
    system
        .bbs
        .records()
        .presences
        .insert("cell-liar".into(), other);
    system
        .bbs
        .records()
        .add_task("t", TaskDefinition::default());
    system.ask_tasks(&[task("t".into(), ROOT_FS)]).await;
    system
        .bbs
        .until("it completes", |records| records.completed() == 1)
        .await;
    let kept = system.sink.kept();
    assert_eq!(kept.matches("failed-to-get-state").count(), 2, "{kept}");
}

#[tokio::test]
async fn each_round_is_logged_with_what_it_did() {
    let system = System::start(1, |_| ()).await;
    system
        .bbs
        .records()
        .add_task("t", TaskDefinition::default());
    system
        .ask_tasks(&[task("t".into(), ROOT_FS), task("u".into(), "no:x")])
        .await;
    eventually("the round ends", || {
        system.sink.kept().contains("auction.scheduled")
    })
    .await;
    let kept = system.sink.kept();
    let line = kept
        .lines()
        .find(|line| line.contains("auction.scheduled"))
        .unwrap();
    let line: serde_json::Value = serde_json::from_str(line).unwrap();
    assert_eq!(line["message"], "auctioneer.auction.scheduled");
    assert_eq!(line["data"]["successful-task-auctions"], 1);
    assert_eq!(line["data"]["failed-task-auctions"], 1);
    assert!(kept.contains(r#""message":"auctioneer.auction.scheduling""#));
    assert!(kept.contains(r#""message":"auctioneer.auction.fetching-cell-reps""#));
}

#[tokio::test]
async fn more_than_the_queue_holds_is_refused() {
    let system = System::start(0, |config| {
        config.queue_max = 1;
        config.round_interval = fake_bbs::PATIENCE * 10;
    })
    .await;
    // The first round takes what is there, and the next one does not come.
    let mut number = 0;
    let answer = loop {
        let tasks = [task(format!("t-{number}"), ROOT_FS)];
        let body = serde_json::to_vec(&tasks).unwrap();
        let answer = system.post("/v1/tasks", body).await;
        if answer.status == 503 {
            break answer;
        }
        number += 1;
        assert!(number < 3, "{number} were taken");
    };
    let body: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
    assert!(body["error"].as_str().unwrap().contains("try again later"));
}

/// With a timeout that no test waits for, only leaving the cell behind lets the
/// task complete.
#[tokio::test]
async fn a_cell_that_does_not_answer_holds_nobody_up() {
    let system = System::start(3, |config| {
        config.cell_state_timeout = fake_bbs::PATIENCE * 10;
        config.state_grace = Duration::from_millis(20);
    })
    .await;
    let silent = net::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let address = silent.local_addr().unwrap();
    let stuck = format!(r#"{{"cell_id":"cell-stuck","rep_url":"http://{address}"}}"#);
    {
        let mut records = system.bbs.records();
        records.presences.insert("cell-stuck".into(), stuck);
        records.add_task("t", TaskDefinition::default());
    }
    system.ask_tasks(&[task("t".into(), ROOT_FS)]).await;
    system
        .bbs
        .until("it completes", |records| records.completed() == 1)
        .await;
    let line = async |line: &str| {
        let uri = format!("http://{}/metrics", system.auctioneer.address());
        let page = system.client.get(&uri.parse().unwrap()).await.unwrap();
        let page = String::from_utf8(page.body.to_vec()).unwrap();
        assert!(page.lines().any(|found| found == line), "{line} in {page}");
    };
    line("auctioneer_states_total 3").await;
    line("auctioneer_states_late_total 1").await;
    line("auctioneer_placements_total{kind=\"task\"} 1").await;
    line("auctioneer_queued{kind=\"task\"} 0").await;
    line("auctioneer_queue_limit 1000000").await;
}
