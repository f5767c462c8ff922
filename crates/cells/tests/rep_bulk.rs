//! What the bulk pass of simulated cells finds, against a BBS in memory.

use std::time::Duration;

use cells::rep::{Config, ExecutorKind, Simulation};
use diego::models::TaskDefinition;
use diego::path;

use crate::rep_fleet::{Fleet, desired, lrp, task, work};

#[tokio::test]
async fn records_without_containers_are_cleared_by_the_bulk_pass() {
    let set = |config: &mut Config| config.bulk_interval = Duration::from_millis(50);
    let fleet = Fleet::start(1, set).await;
    {
        let mut records = fleet.bbs.records();
        records.desire(desired("p", 1));
        let lrp = records.lrps.get_mut(&("p".to_owned(), 0)).unwrap();
        lrp.state = "RUNNING".into();
        lrp.actual_lrp_instance_key = Some(diego::models::ActualLrpInstanceKey {
            instance_guid: "lost".into(),
            cell_id: "cell-0".into(),
        });
        records.add_task("lost-task", TaskDefinition::default());
        let task = records.tasks.get_mut("lost-task").unwrap();
        task.set_state(diego::models::task::State::Running);
        task.cell_id = "cell-0".into();
    }
    fleet
        .bbs
        .until("both go", |r| r.lrps.is_empty() && r.completed() == 1)
        .await;
    let task = fleet.bbs.records().tasks["lost-task"].clone();
    assert_eq!(task.failure_reason, "task container does not exist");
}

#[tokio::test]
async fn the_bulk_pass_repeats_no_report_that_the_bbs_has_and_those_that_it_lost() {
    let set = |config: &mut Config| config.bulk_interval = Duration::from_millis(10);
    let fleet = Fleet::start(1, set).await;
    fleet.bbs.records().desire(desired("p", 50));
    let instances = (0..50).map(|index| lrp("p", index)).collect();
    fleet.give(&work(instances, vec![])).await;
    let passes = |count: usize| {
        let what = format!("{count} passes");
        let bbs = fleet.bbs.clone();
        async move {
            let before = bbs.records().count(path::TASKS);
            bbs.until(&what, |records| {
                records.count(path::TASKS) >= before + count
            })
            .await;
        }
    };
    fleet
        .bbs
        .until("all run", |records| records.running() == 50)
        .await;
    passes(5).await;
    assert_eq!(fleet.bbs.records().starts.len(), 50);
    // The record has lost what was reported.
    let change = |records: &mut crate::fake_bbs::Records| {
        let lrp = records.lrps.get_mut(&("p".to_owned(), 7)).unwrap();
        lrp.metric_tags.insert("foreign".into(), "tag".into());
    };
    change(&mut fleet.bbs.records());
    fleet
        .bbs
        .until("it is reported again", |records| records.starts.len() > 50)
        .await;
    passes(5).await;
    assert_eq!(fleet.bbs.records().starts.len(), 51);
    assert_eq!(fleet.bbs.records().count(path::REMOVE_ACTUAL_LRP), 0);
}

#[tokio::test]
async fn containers_that_end_during_a_pass_are_not_taken_for_lost() {
    let set = |config: &mut Config| config.bulk_interval = Duration::from_millis(1);
    let fleet = Fleet::start(1, set).await;
    for round in 0..20 {
        let process = format!("p-{round}");
        fleet.bbs.records().desire(desired(&process, 5));
        let instances = (0..5).map(|index| lrp(&process, index)).collect();
        fleet.give(&work(instances, vec![])).await;
        fleet
            .bbs
            .until("all run", |records| records.running() == 5)
            .await;
        for lrp in fleet.state().await.lrps {
            let path = format!("/v1/lrps/{process}/instances/{}/stop", lrp.instance_guid);
            fleet.post(&path, vec![]).await;
        }
        fleet
            .bbs
            .until("all are gone", |records| records.lrps.is_empty())
            .await;
    }
    fleet.is_empty().await;
    assert_eq!(fleet.bbs.records().count(path::REMOVE_ACTUAL_LRP), 100);
    assert!(!fleet.sink.kept().contains("residual"));
}

#[tokio::test]
async fn a_task_whose_cancellation_got_lost_is_ended_by_the_bulk_pass() {
    let set = |config: &mut Config| {
        config.bulk_interval = Duration::from_millis(20);
        config.executor = ExecutorKind::Simulated(Simulation {
            run: "600s".parse().unwrap(),
            ..Simulation::default()
        });
    };
    let fleet = Fleet::start(1, set).await;
    for guid in ["cancelled", "stays"] {
        fleet
            .bbs
            .records()
            .add_task(guid, TaskDefinition::default());
    }
    let tasks = vec![task("cancelled"), task("stays")];
    fleet.give(&work(vec![], tasks)).await;
    let running = |records: &crate::fake_bbs::Records| {
        let tasks = records.tasks.values();
        tasks
            .filter(|task| task.state() == diego::models::task::State::Running)
            .count()
    };
    fleet
        .bbs
        .until("both run", |records| running(records) == 2)
        .await;
    {
        let mut records = fleet.bbs.records();
        let task = records.tasks.get_mut("cancelled").unwrap();
        task.set_state(diego::models::task::State::Completed);
        task.cell_id.clear();
    }
    while fleet.state().await.tasks.len() > 1 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(fleet.state().await.tasks[0].task_guid, "stays");
    assert_eq!(fleet.bbs.records().count(path::COMPLETE_TASK), 0);
}
