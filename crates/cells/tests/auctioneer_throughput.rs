//! How fast auctioneer and cells take 4,000 tasks and as many instances over 100
//! cells, with a BBS in memory in the same process. Prints figures and judges
//! nothing but completeness: `cargo test --release -p cells --test
//! auctioneer_throughput -- --ignored --nocapture`.

// A test may panic anywhere, in its helpers too.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod fake_bbs;

use std::collections::HashMap;
use std::time::Instant;

use cells::auctioneer::placement::{Options, Problem, solve};
use cells::{auctioneer, rep};
use diego::auction::{
    CellState, Lrp, LrpStartRequest, Placement, Resource, Resources, RootFsProvider, Task,
};
use diego::models::{Action, DesiredLrp, RunAction, TaskDefinition};
use fake_bbs::FakeBbs;
use net::{Client, ClientOptions};
use nix::sys::resource::{UsageWho, getrusage};
use telemetry::{Level, Logger, Sink};

const CELLS: u32 = 100;
const COUNT: usize = 4000;

fn cpu_seconds() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_SELF).unwrap();
    let seconds =
        |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    seconds(usage.user_time()) + seconds(usage.system_time())
}

fn placement() -> Placement {
    Placement {
        root_fs: "preloaded:cflinuxfs4".into(),
        ..Placement::default()
    }
}

fn resource() -> Resource {
    Resource {
        memory_mb: 32,
        disk_mb: 32,
        max_pids: 0,
    }
}

fn task(guid: String) -> Task {
    let (placement, resource) = (placement(), resource());
    Task {
        task_guid: guid,
        placement,
        resource,
        state: "Invalid".into(),
        ..Task::default()
    }
}

#[test]
#[ignore = "a measurement"]
fn placement_of_4000_tasks_on_100_cells() {
    let total = Resources {
        memory_mb: 1 << 14,
        disk_mb: 1 << 16,
        containers: 250,
    };
    let cell = |number: u32| CellState {
        cell_id: format!("cell-{number}"),
        root_fs_providers: [("preloaded".into(), RootFsProvider::Arbitrary)].into(),
        available_resources: total,
        total_resources: total,
        zone: format!("z{}", number % 2),
        ..CellState::default()
    };
    let problem = Problem {
        cells: (0..CELLS).map(cell).collect(),
        lrps: Vec::new(),
        tasks: (0..COUNT).map(|n| task(format!("t-{n}"))).collect(),
        options: Options::default(),
    };
    let began = Instant::now();
    let solution = solve(problem);
    println!(
        "placement of {COUNT} tasks on {CELLS} cells: {:?}",
        began.elapsed()
    );
    assert_eq!(solution.failed_tasks.len(), 0);
}

#[test]
#[ignore = "a measurement"]
fn reading_and_writing_the_state_of_a_full_cell() {
    let lrp = |index| Lrp {
        instance_guid: "b9b8f1e0-7f9b-4b3a-8e61-4d5e".into(),
        process_guid: "0c1f6a52-8a0e-4d8c-9d57-0d2f0a1b2c3d".into(),
        index,
        domain: "cf-apps".into(),
        placement: placement(),
        resource: resource(),
        state: "RUNNING".into(),
    };
    let state = CellState {
        lrps: (0..250).map(lrp).collect(),
        ..CellState::default()
    };
    let began = Instant::now();
    let mut text = String::new();
    for _ in 0..200 {
        text = serde_json::to_string(&state).unwrap();
    }
    println!(
        "write the state of 250 instances: {:?}",
        began.elapsed() / 200
    );
    let began = Instant::now();
    for _ in 0..200 {
        let read: CellState = serde_json::from_str(&text).unwrap();
        assert_eq!(read.lrps.len(), 250);
    }
    println!(
        "read the state of 250 instances: {:?}",
        began.elapsed() / 200
    );
}

/// Runs it all with this executor and returns the seconds for tasks and instances.
async fn run(executor: rep::ExecutorKind, instances: usize) {
    let bbs = FakeBbs::start().await;
    let any = "127.0.0.1:0".parse().unwrap();
    let (_ask, shutdown) = net::shutdown();
    let logger = |source| Logger::new(source, Sink::to(std::io::sink()).unwrap(), Level::Info);
    let mut config = rep::Config::new(CELLS, any, &*bbs.url);
    config.executor = executor;
    let cells = rep::start(config, logger("rep"), shutdown.clone())
        .await
        .unwrap();
    cells.registered().await;
    let config = auctioneer::Config::new(any, &*bbs.url);
    let auctioneer = auctioneer::start(config, logger("auctioneer"), shutdown)
        .await
        .unwrap();
    let client = Client::new(ClientOptions::default());
    let base = format!("http://{}", auctioneer.address());

    let tasks: Vec<Task> = (0..COUNT).map(|n| task(format!("t-{n}"))).collect();
    let run = RunAction {
        path: "/bin/true".into(),
        ..RunAction::default()
    };
    let definition = TaskDefinition {
        action: Some(Action {
            run_action: Some(run),
            ..Action::default()
        }),
        ..TaskDefinition::default()
    };
    for task in &tasks {
        bbs.records().add_task(&task.task_guid, definition.clone());
    }
    let (began, cpu) = (Instant::now(), cpu_seconds());
    // One request per task, as a BBS sends them.
    for task in &tasks {
        let uri = format!("{base}/v1/tasks").parse().unwrap();
        let body = serde_json::to_vec(&[task]).unwrap();
        let headers = http::HeaderMap::new();
        client
            .post(&uri, "application/json", headers, body.into())
            .await
            .unwrap();
    }
    println!("asked after {:?}", began.elapsed());
    bbs.until("all complete", |records| records.completed() == COUNT)
        .await;
    let used = cpu_seconds() - cpu;
    println!(
        "{COUNT} tasks: {:?}, {used:.2} s of CPU in all",
        began.elapsed()
    );
    let mut calls: HashMap<String, usize> = HashMap::new();
    for call in &bbs.records().calls {
        *calls.entry(call.clone()).or_default() += 1;
    }
    println!("calls: {calls:?}");
    assert!(bbs.records().tasks.values().all(|task| !task.failed));
    if instances == 0 {
        return;
    }
    let desired = DesiredLrp {
        process_guid: "p".into(),
        domain: "d".into(),
        instances: instances as i32,
        ..DesiredLrp::default()
    };
    bbs.records().desire(desired);
    let request = LrpStartRequest {
        process_guid: "p".into(),
        domain: "d".into(),
        indices: (0..instances as i32).collect(),
        placement: placement(),
        resource: resource(),
    };
    let (began, cpu) = (Instant::now(), cpu_seconds());
    let uri = format!("{base}/v1/lrps").parse().unwrap();
    let body = serde_json::to_vec(&[request]).unwrap();
    client
        .post(
            &uri,
            "application/json",
            http::HeaderMap::new(),
            body.into(),
        )
        .await
        .unwrap();
    bbs.until("all run", |records| records.running() == instances)
        .await;
    let used = cpu_seconds() - cpu;
    println!(
        "{instances} instances: {:?}, {used:.2} s of CPU in all",
        began.elapsed()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement"]
async fn simulated_tasks_and_instances() {
    run(
        rep::ExecutorKind::Simulated(rep::Simulation::default()),
        COUNT,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement"]
async fn process_tasks() {
    run(
        rep::ExecutorKind::Process(rep::ProcessSettings::default()),
        0,
    )
    .await;
}
