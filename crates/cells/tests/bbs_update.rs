//! What updating a desired LRP does to its instances.

use cells::bbs::{self, Config, Running};
use diego::{Bbs, models, path};
use net::{Client, ClientOptions};
use prost::Message;
use tempfile::TempDir;

use crate::desired::{action, tags};
use crate::quiet::logger;

struct World {
    _bbs: Running,
    client: Bbs,
    _folder: TempDir,
}

async fn world() -> World {
    let folder = tempfile::tempdir().unwrap();
    let config = Config::new("127.0.0.1:0".parse().unwrap(), folder.path());
    let bbs = bbs::start(config, logger("bbs")).await.unwrap();
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
    models::DesireLrpRequest {
        desired_lrp: Some(models::DesiredLrp {
            process_guid: guid.into(),
            domain: "d".into(),
            root_fs: "preloaded:x".into(),
            instances,
            action: action(),
            metric_tags: tags(guid),
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

impl World {
    /// What is wrong with a request; empty when nothing is.
    async fn wrong(&self, path: &str, request: &impl Message) -> String {
        let call = self
            .client
            .call::<models::DesiredLrpLifecycleResponse>(path, request);
        match call.await {
            Ok(_) => String::new(),
            Err(diego::CallError::Refused { error, .. }) => error.message,
            Err(other) => panic!("{other}"),
        }
    }

    async fn rows(&self) -> Vec<models::ActualLrp> {
        let all = models::ActualLrPsRequest::default();
        let list: models::ActualLrPsResponse =
            self.client.call(path::ACTUAL_LRPS, &all).await.unwrap();
        list.actual_lrps
    }

    async fn start(&self, index: i32, guid: &str) {
        let start = models::StartActualLrpRequest {
            actual_lrp_key: Some(actual_key(index, "d")),
            actual_lrp_instance_key: Some(instance(guid)),
            actual_lrp_net_info: Some(at("1.2.3.4")),
            actual_lrp_internal_routes: vec![models::ActualLrpInternalRoute {
                hostname: "h1".into(),
            }],
            metric_tags: [("app".to_owned(), "x".to_owned())].into(),
            ..Default::default()
        };
        self.lifecycle(path::START_ACTUAL_LRP, &start).await;
    }

    /// Reports that an instance runs on a cell that is being emptied, without routes and tags;
    /// is its container to be kept?
    async fn evacuate(&self, path: &str, index: i32, guid: &str, address: &str) -> bool {
        let evacuate = models::EvacuateRunningActualLrpRequest {
            actual_lrp_key: Some(actual_key(index, "d")),
            actual_lrp_instance_key: Some(instance(guid)),
            actual_lrp_net_info: Some(at(address)),
            ..Default::default()
        };
        let call = self
            .client
            .call::<models::EvacuationResponse>(path, &evacuate);
        call.await.unwrap().keep_container
    }
}

fn instance(guid: &str) -> models::ActualLrpInstanceKey {
    models::ActualLrpInstanceKey {
        instance_guid: guid.into(),
        cell_id: "c".into(),
    }
}

fn at(address: &str) -> models::ActualLrpNetInfo {
    models::ActualLrpNetInfo {
        address: address.into(),
        ..Default::default()
    }
}

fn with_routes(value: &[u8]) -> models::UpdateDesiredLrpRequest {
    let routes = [("cf-router".to_owned(), value.to_vec())].into();
    models::UpdateDesiredLrpRequest {
        process_guid: "p".into(),
        update: Some(models::DesiredLrpUpdate {
            routes: Some(models::ProtoRoutes { routes }),
            ..Default::default()
        }),
    }
}

#[tokio::test]
async fn routes_that_are_no_json_are_not_stored() {
    const INVALID: &str = "the request received is invalid";
    let world = world().await;
    let mut desire = desired_lrp("p", 0);
    let broken = with_routes(b"bad").update.unwrap().routes;
    desire.desired_lrp.as_mut().unwrap().routes = broken;
    assert_eq!(world.wrong(path::DESIRE_LRP, &desire).await, INVALID);
    let (update, bad) = (path::UPDATE_DESIRED_LRP, with_routes(b"bad"));
    let missing = world.wrong(update, &bad).await;
    assert_eq!(missing, "the requested resource could not be found");

    let good = desired_lrp("p", 0);
    assert_eq!(world.wrong(path::DESIRE_LRP, &good).await, "");
    assert_eq!(world.wrong(update, &with_routes(b"[1]")).await, "");
    assert_eq!(world.wrong(update, &bad).await, INVALID);
    let request = models::DesiredLrpByProcessGuidRequest {
        process_guid: "p".into(),
    };
    let call = world
        .client
        .call::<models::DesiredLrpResponse>(path::DESIRED_LRP_BY_PROCESS_GUID, &request);
    let stored = call.await.unwrap().desired_lrp.unwrap();
    assert_eq!(stored.routes.unwrap().routes["cf-router"], b"[1]");
    assert_eq!(stored.modification_tag.unwrap().index, 1);
}

#[tokio::test]
async fn a_cell_of_an_older_version_leaves_routes_and_tags_of_an_evacuating_instance() {
    let world = world().await;
    let desire = desired_lrp("p", 1);
    world.lifecycle(path::DESIRE_LRP, &desire).await;
    world.start(0, "i").await;
    let (new, old) = (
        path::EVACUATE_RUNNING_ACTUAL_LRP,
        path::EVACUATE_RUNNING_ACTUAL_LRP_R0,
    );
    assert!(world.evacuate(new, 0, "i", "1.2.3.4").await);
    let before = world.rows().await;
    for path in [old, new] {
        assert!(world.evacuate(path, 0, "i", "1.2.3.4").await);
        assert_eq!(world.rows().await, before, "{path}");
    }
    let evacuating = |rows: &[models::ActualLrp]| {
        let mut rows = rows.iter();
        let row = rows.find(|row| row.presence() == models::actual_lrp::Presence::Evacuating);
        row.unwrap().clone()
    };
    let row = evacuating(&before);
    assert_eq!(row.actual_lrp_internal_routes[0].hostname, "h1");
    assert_eq!(row.metric_tags["app"], "x");
    assert!(world.evacuate(old, 0, "i", "5.6.7.8").await);
    let row = evacuating(&world.rows().await);
    assert_eq!(row.actual_lrp_net_info.unwrap().address, "5.6.7.8");
    assert!(row.actual_lrp_internal_routes.is_empty() && row.metric_tags.is_empty());
}

/// Whatever has its index beyond the count runs for now, and one on its way down does not.
#[tokio::test]
async fn instances_that_are_recreated_go_as_soon_as_enough_run() {
    for (others, kept) in [
        (&[][..], true),
        (&[0], false),
        (&[5], false),
        (&[0, 5], false),
    ] {
        let world = world().await;
        let mut desire = desired_lrp("p", 2);
        let strategy = models::desired_lrp::UpdateStrategy::Recreate;
        desire.desired_lrp.as_mut().unwrap().update_strategy = strategy.into();
        world.lifecycle(path::DESIRE_LRP, &desire).await;
        world.start(1, "i").await;
        for index in others {
            world.start(*index, "another").await;
        }
        let path = path::EVACUATE_RUNNING_ACTUAL_LRP;
        let found = world.evacuate(path, 1, "i", "1.2.3.4").await;
        assert_eq!(found, kept, "{others:?}");
    }
}
