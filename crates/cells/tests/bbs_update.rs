//! What updating a desired LRP does to its instances.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

use cells::bbs::{self, Config, Running};
use diego::{Bbs, models, path};
use net::{Client, ClientOptions};
use prost::Message;
use telemetry::{Level, Logger, Sink};
use tempfile::TempDir;

struct World {
    _bbs: Running,
    client: Bbs,
    _folder: TempDir,
}

async fn world() -> World {
    let folder = tempfile::tempdir().unwrap();
    let config = Config::new("127.0.0.1:0".parse().unwrap(), folder.path());
    let logger = Logger::new("bbs", Sink::nothing(), Level::Info);
    let bbs = bbs::start(config, logger).await.unwrap();
    let address = format!("http://{}", bbs.address());
    World {
        client: Bbs::new(Client::new(ClientOptions::default()), address),
        _bbs: bbs,
        _folder: folder,
    }
}

impl World {
    async fn lifecycle(&self, path: &str, request: &impl Message) {
        let call = self
            .client
            .call::<models::ActualLrpLifecycleResponse>(path, request);
        call.await.unwrap();
    }
}

fn desired_lrp(guid: &str, instances: i32) -> models::DesireLrpRequest {
    let source = models::MetricTagValue {
        r#static: guid.into(),
        ..Default::default()
    };
    models::DesireLrpRequest {
        desired_lrp: Some(models::DesiredLrp {
            process_guid: guid.into(),
            domain: "d".into(),
            root_fs: "preloaded:x".into(),
            instances,
            action: Some(models::Action {
                run_action: Some(models::RunAction {
                    path: "/bin/true".into(),
                    user: "vcap".into(),
                    ..Default::default()
                }),
                ..Default::default()
            }),
            metric_tags: [("source_id".to_owned(), source)].into(),
            ..Default::default()
        }),
    }
}

fn actual_key(index: i32, domain: &str) -> models::ActualLrpKey {
    models::ActualLrpKey {
        process_guid: "p".into(),
        index,
        domain: domain.into(),
    }
}

/// An instance beyond the desired count is left alone by an update that does not
/// lower the count, and goes with one that does.
#[tokio::test]
async fn only_a_lower_count_stops_instances_and_retiring_ignores_the_domain() {
    let world = world().await;
    world
        .lifecycle(path::DESIRE_LRP, &desired_lrp("p", 2))
        .await;
    let instance = models::ActualLrpInstanceKey {
        instance_guid: "extra".into(),
        cell_id: "c".into(),
    };
    let start = models::StartActualLrpRequest {
        actual_lrp_key: Some(actual_key(5, "d")),
        actual_lrp_instance_key: Some(instance.clone()),
        actual_lrp_net_info: Some(models::ActualLrpNetInfo {
            address: "1.2.3.4".into(),
            ..Default::default()
        }),
        ..Default::default()
    };
    world.lifecycle(path::START_ACTUAL_LRP, &start).await;
    let crash = models::CrashActualLrpRequest {
        actual_lrp_key: start.actual_lrp_key.clone(),
        actual_lrp_instance_key: Some(instance),
        error_message: String::new(),
    };
    world.lifecycle(path::CRASH_ACTUAL_LRP, &crash).await;

    let indices = async || {
        let all = models::ActualLrPsRequest::default();
        let list: models::ActualLrPsResponse =
            world.client.call(path::ACTUAL_LRPS, &all).await.unwrap();
        let index = |row: models::ActualLrp| row.actual_lrp_key.unwrap().index;
        let mut indices: Vec<i32> = list.actual_lrps.into_iter().map(index).collect();
        indices.sort_unstable();
        indices
    };
    let update = |update: models::DesiredLrpUpdate| models::UpdateDesiredLrpRequest {
        process_guid: "p".into(),
        update: Some(update),
    };
    let annotation = update(models::DesiredLrpUpdate {
        annotation: Some("a".into()),
        ..Default::default()
    });
    world.lifecycle(path::UPDATE_DESIRED_LRP, &annotation).await;
    let same = update(models::DesiredLrpUpdate {
        instances: Some(2),
        ..Default::default()
    });
    world.lifecycle(path::UPDATE_DESIRED_LRP, &same).await;
    assert_eq!(indices().await, [0, 1, 5]);
    let fewer = update(models::DesiredLrpUpdate {
        instances: Some(1),
        ..Default::default()
    });
    world.lifecycle(path::UPDATE_DESIRED_LRP, &fewer).await;
    assert_eq!(indices().await, [0]);

    let retire = models::RetireActualLrpRequest {
        actual_lrp_key: Some(actual_key(0, "another")),
    };
    world.lifecycle(path::RETIRE_ACTUAL_LRP, &retire).await;
    assert!(indices().await.is_empty());
}
