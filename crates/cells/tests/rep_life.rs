//! Lives of tasks and instances on simulated cells, against a BBS in memory.

use std::time::Duration;

use cells::rep::{Config, ExecutorKind, Simulation, start};
use diego::auction::{Lrp, Work};
use diego::error::Type;
use diego::models::{self, DesiredLrp, TaskDefinition, actual_lrp_net_info::PreferredAddress};
use diego::path;
use net::{Client, ClientOptions};

use crate::fake_bbs::{self, FakeBbs, eventually, logger, messages};
use crate::own_address::own_address;
use crate::rep_fleet::{Fleet, desired, lrp, task, work};

#[tokio::test]
async fn a_task_goes_through_its_life_and_every_point_is_logged() {
    let fleet = Fleet::simulated(|_| ()).await;
    fleet
        .bbs
        .records()
        .add_task("t-1", TaskDefinition::default());
    let refused = fleet.give(&work(vec![], vec![task("t-1")])).await;
    assert_eq!(refused, Work::default());
    fleet
        .bbs
        .until("the task completes", |records| records.completed() == 1)
        .await;
    fleet.is_empty().await;
    assert!(!fleet.bbs.records().tasks["t-1"].failed);
    let expected = [
        "rep.auction-delegate.allocate-containers.allocating-container",
        "rep.event-consumer.processing-reserved-container",
        "rep.task-processor.start-task.succeeded",
        "rep.executor.run-container.create-in-garden.succeeded-creating-garden-container",
        "rep.executor.run-container.run.run-step-process.succeeded-transitioning-to-running",
        "rep.executor.run-container.run.run-step-process.process-exit",
        "rep.executor.run-container.run.run-step-process.succeeded-transitioning-to-complete",
        "rep.task-processor.completing-task",
        "rep.task-processor.succeeded-completing-task",
    ];
    assert_eq!(messages(&fleet.sink, "task-guid", "t-1"), expected);
}

#[tokio::test]
async fn an_instance_runs_with_its_address_until_it_is_stopped() {
    let fleet = Fleet::simulated(|_| ()).await;
    let guid = fleet.run_instance().await;
    assert_eq!(guid.len(), 28);
    let start = fleet.bbs.records().starts[0].clone();
    assert_eq!(start.availability_zone, "z1");
    assert_eq!(start.routable, Some(true));
    let net = start.actual_lrp_net_info.unwrap();
    assert_eq!(net.address, "127.0.0.1");
    assert_eq!(net.preferred_address(), PreferredAddress::Host);
    let ports: Vec<u32> = net.ports.iter().map(|port| port.container_port).collect();
    assert_eq!(ports, [8080, 2222]);
    assert_ne!(net.ports[0].host_port, net.ports[1].host_port);
    let state = fleet.state().await;
    assert_eq!(state.lrps[0].state, "RUNNING");
    assert_eq!(state.lrps[0].instance_guid, guid);

    let answer = fleet
        .post(&format!("/v1/lrps/p/instances/{guid}/stop"), vec![])
        .await;
    assert_eq!(answer.status, 202);
    fleet
        .bbs
        .until("its record goes", |records| records.lrps.is_empty())
        .await;
    fleet.is_empty().await;
    let expected = [
        "rep.auction-delegate.allocate-containers.allocating-container",
        "rep.event-consumer.processing-reserved-container",
        "rep.ordinary-lrp-processor.claim-actual-lrp.succeeded",
        "rep.executor.run-container.create-in-garden.succeeded-creating-garden-container",
        "rep.executor.run-container.run.run-step-process.succeeded-transitioning-to-running",
        "rep.ordinary-lrp-processor.start-actual-lrp.succeeded",
        "rep.lrp-stopper.stop.stopping",
        "rep.executor.run-container.run.run-step-process.process-exit",
        "rep.executor.run-container.run.run-step-process.step-cancelled",
        "rep.executor.run-container.run.run-step-process.succeeded-transitioning-to-complete",
        "rep.ordinary-lrp-processor.remove-actual-lrp.succeeded",
    ];
    assert_eq!(messages(&fleet.sink, "instance-guid", &guid), expected);
}

#[tokio::test]
async fn an_update_is_reported_to_the_bbs() {
    let fleet = Fleet::simulated(|_| ()).await;
    let guid = fleet.run_instance().await;
    let uri = fleet.uri(&format!("/v2/lrps/p/instances/{guid}"));
    let body = r#"{"internal_routes":[{"hostname":"a.internal"}],"metric_tags":null}"#;
    let request = http::Request::put(uri)
        .body(http_body_util::Full::from(body))
        .unwrap();
    let answer = fleet.client.request(request).await.unwrap();
    assert_eq!(answer.status, 202);
    fleet
        .bbs
        .until("a second start", |records| records.starts.len() == 2)
        .await;
    let routes = fleet.bbs.records().starts[1]
        .actual_lrp_internal_routes
        .clone();
    assert_eq!(routes[0].hostname, "a.internal");
}

#[tokio::test]
async fn a_container_that_cannot_be_created_gives_its_work_back() {
    let fleet = Fleet::simulated(|simulation| simulation.fail_create = 1.0).await;
    fleet
        .bbs
        .records()
        .add_task("t-1", TaskDefinition::default());
    fleet.bbs.records().desire(desired("p", 1));
    fleet
        .give(&work(vec![lrp("p", 0)], vec![task("t-1")]))
        .await;
    let reason = "failed to create container: simulated failure";
    fleet
        .bbs
        .until("both are told", |r| {
            r.rejections.len() + r.crashes.len() == 2
        })
        .await;
    assert_eq!(fleet.bbs.records().rejections[0].rejection_reason, reason);
    assert_eq!(fleet.bbs.records().crashes[0].error_message, reason);
    fleet.is_empty().await;
}

#[tokio::test]
async fn a_task_whose_process_fails_completes_as_failed() {
    let fleet = Fleet::simulated(|simulation| simulation.fail_run = 1.0).await;
    let definition = TaskDefinition {
        log_source: "APP".into(),
        ..TaskDefinition::default()
    };
    fleet.bbs.records().add_task("t-1", definition);
    fleet.give(&work(vec![], vec![task("t-1")])).await;
    fleet
        .bbs
        .until("the task completes", |records| records.completed() == 1)
        .await;
    let task = fleet.bbs.records().tasks["t-1"].clone();
    assert!(task.failed);
    assert_eq!(task.failure_reason, "APP: Exited with status 1");
}

#[tokio::test]
async fn a_cancelled_task_ends_without_a_word_to_the_bbs() {
    let fleet = Fleet::simulated(|simulation| simulation.run = "1h".parse().unwrap()).await;
    fleet
        .bbs
        .records()
        .add_task("t-1", TaskDefinition::default());
    fleet.give(&work(vec![], vec![task("t-1")])).await;
    let running = "succeeded-transitioning-to-running";
    eventually("it runs", || fleet.sink.kept().contains(running)).await;
    assert_eq!(fleet.post("/v1/tasks/t-1/cancel", vec![]).await.status, 202);
    fleet.is_empty().await;
    assert_eq!(fleet.bbs.records().count(path::COMPLETE_TASK), 0);
}

#[tokio::test]
async fn work_that_is_not_this_cells_is_dropped() {
    let fleet = Fleet::simulated(|_| ()).await;
    {
        let mut records = fleet.bbs.records();
        records.desire(desired("p", 1));
        records.refuse(path::CLAIM_ACTUAL_LRP, Type::ActualLrpCannotBeClaimed);
    }
    fleet
        .give(&work(vec![lrp("p", 0)], vec![task("unknown")]))
        .await;
    fleet
        .bbs
        .until("both are asked for", |records| {
            records.count(path::CLAIM_ACTUAL_LRP) == 1 && records.count(path::START_TASK) == 1
        })
        .await;
    fleet.is_empty().await;
    let records = fleet.bbs.records();
    assert_eq!(records.count(path::DESIRED_LRP_BY_PROCESS_GUID), 0);
    assert_eq!(records.count(path::COMPLETE_TASK), 0);
}

#[tokio::test]
async fn a_bbs_that_is_away_for_a_while_loses_nothing() {
    let fleet = Fleet::simulated(|_| ()).await;
    fleet.rep.registered().await;
    {
        let mut records = fleet.bbs.records();
        records.down = true;
        records.desire(desired("p", 1));
        for n in 0..20 {
            records.add_task(&format!("t-{n}"), TaskDefinition::default());
        }
    }
    let tasks = (0..20).map(|n| task(&format!("t-{n}"))).collect();
    fleet.give(&work(vec![lrp("p", 0)], tasks)).await;
    eventually("calls fail", || {
        fleet.sink.kept().contains("start-task.failed")
    })
    .await;
    fleet.bbs.records().down = false;
    fleet
        .bbs
        .until("all complete", |r| r.completed() == 20 && r.running() == 1)
        .await;
}

#[tokio::test]
async fn one_fetch_serves_instances_that_start_together() {
    let fleet = Fleet::simulated(|_| ()).await;
    fleet.bbs.records().desire(desired("p", 100));
    fleet
        .give(&work(
            (0..100).map(|index| lrp("p", index)).collect(),
            vec![],
        ))
        .await;
    fleet
        .bbs
        .until("all run", |records| records.running() == 100)
        .await;
    let fetches = fleet.bbs.records().count(path::DESIRED_LRP_BY_PROCESS_GUID);
    assert!(fetches < 50, "{fetches} fetches for 100 instances");
}

/// Both within the second for which what was fetched is shared.
#[tokio::test]
async fn an_lrp_that_takes_the_place_of_another_is_fetched_anew() {
    let fleet = Fleet::simulated(|_| ()).await;
    let guid = fleet.run_instance().await;
    fleet
        .post(&format!("/v1/lrps/p/instances/{guid}/stop"), vec![])
        .await;
    fleet
        .bbs
        .until("its record goes", |records| records.lrps.is_empty())
        .await;
    fleet.bbs.records().desire(DesiredLrp {
        ports: vec![9090],
        ..desired("p", 1)
    });
    fleet.give(&work(vec![lrp("p", 0)], vec![])).await;
    fleet
        .bbs
        .until("the other one runs", |records| records.starts.len() == 2)
        .await;
    let start = fleet.bbs.records().starts[1].clone();
    let ports = start.actual_lrp_net_info.unwrap().ports;
    let ports: Vec<u32> = ports.iter().map(|port| port.container_port).collect();
    assert_eq!(ports, [9090]);
}

#[tokio::test]
async fn a_full_cell_refuses_and_a_repeated_request_does_no_harm() {
    let set = |config: &mut Config| {
        config.capacity.containers = 2;
        config.executor = ExecutorKind::Simulated(Simulation {
            run: "1h".parse().unwrap(),
            ..Simulation::default()
        });
    };
    let fleet = Fleet::start(1, set).await;
    for guid in ["a", "b", "c"] {
        fleet
            .bbs
            .records()
            .add_task(guid, TaskDefinition::default());
    }
    let all = work(vec![], vec![task("a"), task("b"), task("c")]);
    let refused = fleet.give(&all).await;
    assert_eq!(refused.tasks, [task("c")]);
    assert_eq!(fleet.give(&all).await.tasks, [task("c")]);
    let state = fleet.state().await;
    assert_eq!(state.tasks.len(), 2);
    assert_eq!(state.available_resources.containers, 0);

    let answer = fleet.post("/sim/reset", vec![]).await;
    assert_eq!(answer.status, 200);
    fleet.is_empty().await;
}

#[tokio::test]
async fn of_more_than_fits_the_largest_instances_are_taken() {
    let fleet = Fleet::start(1, |config| config.capacity.memory.0 = 128).await;
    let mut large = lrp("large", 0);
    large.resource.memory_mb = 128;
    let refused = fleet
        .give(&work(vec![lrp("small", 0), large], vec![]))
        .await;
    assert_eq!(refused.lrps, [lrp("small", 0)]);
}

#[tokio::test]
async fn cells_register_and_release_their_presences() {
    let fleet = Fleet::start(5, |config| config.zones = 2).await;
    fleet.rep.registered().await;
    let zones: Vec<String> = fleet
        .bbs
        .records()
        .presences
        .values()
        .map(|value| {
            let value: serde_json::Value = serde_json::from_str(value).unwrap();
            value["zone"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(zones, ["z1", "z2", "z1", "z2", "z1"]);
    fleet.ask.send(true).unwrap();
    fleet.rep.stopped().await;
    assert!(fleet.bbs.records().presences.is_empty());
}

#[tokio::test]
async fn the_admin_api_answers_once_all_cells_are_registered() {
    let bbs = FakeBbs::start().await;
    bbs.records().down = true;
    let free = own_address();
    let mut config = Config::new(3, "127.0.0.1:0".parse().unwrap(), &*bbs.url);
    config.admin_listen = Some(free);
    config.heartbeat = Duration::from_millis(20);
    let (_ask, shutdown) = net::shutdown();
    let rep = start(config, logger("rep").0, shutdown).await.unwrap();
    let client = Client::new(ClientOptions::default());
    let ping: http::Uri = format!("http://{free}/ping").parse().unwrap();
    assert!(
        client.get(&ping).await.is_err(),
        "not before the cells are known"
    );
    bbs.records().down = false;
    rep.registered().await;
    let answered = async {
        loop {
            if let Ok(answer) = client.get(&ping).await {
                return answer.status;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert_eq!(
        tokio::time::timeout(fake_bbs::PATIENCE, answered)
            .await
            .unwrap(),
        200
    );
    let metrics: http::Uri = format!("http://{free}/metrics").parse().unwrap();
    let page = client.get(&metrics).await.unwrap();
    let page = String::from_utf8(page.body.to_vec()).unwrap();
    for line in [
        "rep_cells 3",
        "rep_cells_registered 3",
        "rep_containers{state=\"running\"} 0",
    ] {
        assert!(page.lines().any(|found| found == line), "{line} in {page}");
    }
}

#[tokio::test]
async fn settings_that_cannot_work_are_refused_at_the_start() {
    type Edit = fn(&mut Config);
    let cases: [(Edit, &str); 6] = [
        (|c| c.capacity.containers = -1, "containers is -1"),
        (|c| c.capacity.memory.0 = -5, "memory in MiB is -5"),
        (
            |c| c.capacity.disk.0 = i32::MIN,
            "disk in MiB is -2147483648",
        ),
        // Locket knows whole seconds: it would live for one.
        (
            |c| {
                c.presence_ttl = Duration::from_millis(1900);
                c.heartbeat = Duration::from_millis(1200);
            },
            "the life of a presence, in whole seconds is 1s",
        ),
        (
            |c| c.bbs = "127.0.0.1:8889".into(),
            "the address of the BBS",
        ),
        (
            |c| c.bbs = "https://127.0.0.1:8889".into(),
            "needs a certificate",
        ),
    ];
    for (edit, expected) in cases {
        let mut config = Config::new(1, "127.0.0.1:0".parse().unwrap(), "http://127.0.0.1:1");
        edit(&mut config);
        let (_ask, shutdown) = net::shutdown();
        let refused = start(config, logger("rep").0, shutdown).await.unwrap_err();
        assert!(refused.to_string().contains(expected), "{refused}");
    }
}

#[tokio::test]
async fn checks_are_simulated_and_told_to_the_bbs() {
    let check = || models::Check {
        tcp_check: Some(models::TcpCheck {
            port: 8080,
            ..models::TcpCheck::default()
        }),
        http_check: None,
    };
    let checked = |guid: &str, readiness: bool| DesiredLrp {
        process_guid: guid.into(),
        domain: "test".into(),
        instances: 1,
        check_definition: Some(models::CheckDefinition {
            checks: vec![check()],
            readiness_checks: readiness.then(check).into_iter().collect(),
            ..models::CheckDefinition::default()
        }),
        start_timeout_ms: 1,
        ..DesiredLrp::default()
    };
    let give = async |fleet: &Fleet, guid: &str, readiness| {
        fleet.bbs.records().desire(checked(guid, readiness));
        let lrp = Lrp {
            process_guid: guid.into(),
            domain: "test".into(),
            ..Lrp::default()
        };
        let work = Work {
            lrps: vec![lrp],
            ..Work::default()
        };
        let body = serde_json::to_vec(&work).unwrap();
        assert_eq!(fleet.post("/work", body).await.status, 200);
    };
    let fleet = Fleet::simulated(|_| ()).await;
    give(&fleet, "ready", true).await;
    let routable = |records: &fake_bbs::Records| {
        let starts = records.starts.iter();
        starts.map(|start| start.routable).collect::<Vec<_>>()
    };
    fleet
        .bbs
        .until("it is routed to", |records| {
            routable(records).last() == Some(&Some(true))
        })
        .await;
    let told = routable(&fleet.bbs.records());
    // Both may have come to pass before the first report was sent.
    assert!(told.len() <= 2 && told.iter().rev().skip(1).all(|told| *told == Some(false)));

    let fleet = Fleet::simulated(|simulation| simulation.fail_check = 1.0).await;
    give(&fleet, "sick", false).await;
    fleet
        .bbs
        .until("it crashes", |records| !records.crashes.is_empty())
        .await;
    let reason = fleet.bbs.records().crashes[0].error_message.clone();
    assert_eq!(
        reason,
        "Instance never healthy after 1ms: simulated failure"
    );
    assert!(fleet.bbs.records().starts.is_empty(), "it never ran");
}
