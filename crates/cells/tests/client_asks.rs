//! What people ask of a BBS, its cells and its Locket, over mutual TLS.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use cells::client::{
    ActualLrPsRequest, ActualLrpGroupsRequest, BbsAccess, Caller, Identity, Kind, LocketAccess,
    Rows, Spec, TasksRequest, Trust,
};
use cells::{auctioneer, bbs, rep};
use net::tls::Files;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::watch;

use crate::mutual_tls::certificates;
use crate::own_address::own_address;
use crate::patience::{PATIENCE, until};
use crate::quiet::logger;

/// A BBS with a Locket, an auctioneer and one cell that runs nothing, all with certificates.
pub(crate) struct World {
    pub(crate) own: Files,
    pub(crate) bbs: bbs::Running,
    _parts: (auctioneer::Running, rep::Running),
    _ask: watch::Sender<bool>,
    pub(crate) folder: TempDir,
}

impl World {
    pub(crate) async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let own = certificates(folder.path());
        let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let (ask, shutdown) = net::shutdown();
        let free = own_address();

        let mut config = bbs::Config::new(any, folder.path().join("data"));
        config.auctioneer_url = Some(format!("https://{free}"));
        config.locket_listen = Some(any);
        (config.server_tls, config.client_tls) = (Some(own.clone()), Some(own.clone()));
        let bbs = bbs::start(config, logger("bbs")).await.unwrap();
        let url = format!("https://{}", bbs.address());

        let mut config = auctioneer::Config::new(free, &*url);
        (config.server_tls, config.client_tls) = (Some(own.clone()), Some(own.clone()));
        let auctioneer = auctioneer::start(config, logger("auctioneer"), shutdown.clone());
        let auctioneer = auctioneer.await.unwrap();

        let mut config = rep::Config::new(1, any, &*url);
        (config.server_tls, config.client_tls) = (Some(own.clone()), Some(own.clone()));
        let rep = rep::start(config, logger("rep"), shutdown).await.unwrap();
        rep.registered().await;
        Self {
            own,
            bbs,
            _parts: (auctioneer, rep),
            _ask: ask,
            folder,
        }
    }

    pub(crate) fn identity(&self) -> Identity {
        Identity {
            certificate: self.own.certificate.clone(),
            key: self.own.key.clone(),
            trust: Trust::Authority(self.own.authority.clone()),
        }
    }

    pub(crate) fn caller(&self) -> Caller {
        self.caller_as(self.identity())
    }

    pub(crate) fn caller_as(&self, identity: Identity) -> Caller {
        let access = BbsAccess {
            url: format!("https://{}", self.bbs.address()),
            identity: Some(identity),
            within: None,
        };
        access.caller().unwrap()
    }
}

fn values(rows: &Rows) -> Vec<Value> {
    rows.lines()
        .map(|line| serde_json::from_str(&line.unwrap()).unwrap())
        .collect()
}

fn spec(value: &Value) -> Spec {
    Spec::from_argument(&value.to_string()).unwrap()
}

fn lrp(guid: &str, instances: i32) -> Spec {
    spec(&json!({
        "process_guid": guid,
        "domain": "trial",
        "rootfs": "preloaded:cflinuxfs4",
        "instances": instances,
        "action": {"run": {"path": "/bin/true", "user": "vcap"}},
        "metric_tags": {"source_id": {"static": guid}},
    }))
}

/// Lines that a command writes in the background.
#[derive(Clone, Default)]
pub(crate) struct Lines(Arc<Mutex<Vec<Value>>>);

impl Lines {
    pub(crate) fn add(&self, line: &str) -> std::io::Result<()> {
        let line = serde_json::from_str(line).unwrap();
        self.0.lock().unwrap().push(line);
        Ok(())
    }

    pub(crate) fn types(&self) -> Vec<String> {
        let lines = self.0.lock().unwrap();
        let types = lines.iter().map(|line| line["type"].as_str().unwrap());
        types.map(str::to_owned).collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_can_be_asked_and_ordered() {
    let world = World::start().await;
    let caller = world.caller();

    let (tasks, lrps) = (Lines::default(), Lines::default());
    let streams = {
        let (tasks, lrps) = (tasks.clone(), lrps.clone());
        let (first, second) = (world.caller(), world.caller());
        let tasks = tokio::spawn(async move {
            let mut add = |line: &str| tasks.add(line);
            first.task_events(&mut add).await
        });
        let lrps = tokio::spawn(async move {
            let mut add = |line: &str| lrps.add(line);
            second.lrp_events("", true, &mut add).await
        });
        [tasks, lrps]
    };
    // Only what happens after a stream has begun is told in it.
    let mut number = 0;
    until("both streams", async || {
        number += 1;
        let guid = format!("probe-{number}");
        caller
            .create_desired_lrp(lrp(&guid, 0).desired_lrp().unwrap())
            .await
            .unwrap();
        let task = spec(&json!({
            "task_guid": guid, "domain": "trial", "rootfs": "preloaded:cflinuxfs4",
            "action": {"run": {"path": "/bin/true", "user": "vcap"}},
        }));
        caller.create_task(task.task().unwrap()).await.unwrap();
        !tasks.types().is_empty() && !lrps.types().is_empty()
    })
    .await;

    caller.set_domain("trial", 0).await.unwrap();
    caller.set_domain("soon \"over\"", 1000).await.unwrap();
    let mut domains = caller.domains().await.unwrap();
    domains.sort();
    assert_eq!(domains, [r#""soon \"over\"""#, r#""trial""#]);

    let cells = values(&caller.cells().await.unwrap());
    let cell_id = cells[0]["cell_id"].as_str().unwrap();
    assert_eq!(cells.len(), 1);
    assert_eq!(values(&caller.cell(cell_id).await.unwrap()), cells);
    let missing = caller.cell("nowhere").await.unwrap_err();
    assert_eq!(
        (missing.to_string().as_str(), missing.exit_code()),
        ("Cell not found", 5)
    );

    caller
        .create_desired_lrp(lrp("web", 2).desired_lrp().unwrap())
        .await
        .unwrap();
    let of_web = |index| ActualLrPsRequest {
        process_guid: "web".into(),
        index,
        ..ActualLrPsRequest::default()
    };
    let running = async |wanted: usize| {
        let found = values(&caller.actual_lrps(&of_web(None)).await.unwrap());
        let run = found.iter().filter(|lrp| lrp["state"] == "RUNNING");
        run.count() == wanted && found.len() == wanted
    };
    until("two instances", async || running(2).await).await;
    let one = values(&caller.actual_lrps(&of_web(Some(1))).await.unwrap());
    assert_eq!((one.len(), &one[0]["index"]), (1, &json!(1)));

    let state: Value = serde_json::from_str(&caller.cell_state(cell_id).await.unwrap()).unwrap();
    assert_eq!(
        (&state["cell_id"], state["LRPs"].as_array().unwrap().len()),
        (&json!(cell_id), 2)
    );
    let mut states = Vec::new();
    let mut add = |line: &str| {
        states.push(serde_json::from_str::<Value>(line).unwrap());
        Ok(())
    };
    caller.cell_states(&mut add).await.unwrap();
    assert_eq!((states.len(), &states[0]["cell_id"]), (1, &json!(cell_id)));

    let desired = values(&caller.desired_lrp("web").await.unwrap());
    assert_eq!(desired[0]["instances"], 2);
    let in_domain = values(&caller.desired_lrps("trial").await.unwrap());
    assert!(
        in_domain.contains(&desired[0]) && in_domain.len() > 1,
        "{in_domain:?}"
    );
    assert!(values(&caller.desired_lrps("other").await.unwrap()).is_empty());
    let infos = values(&caller.desired_lrp_scheduling_infos("").await.unwrap());
    assert_eq!(infos.len(), in_domain.len());
    let groups = ActualLrpGroupsRequest::default();
    assert_eq!(
        values(&caller.actual_lrp_groups(&groups).await.unwrap()).len(),
        2
    );
    let groups = caller
        .actual_lrp_groups_for_guid("web", None)
        .await
        .unwrap();
    assert_eq!(values(&groups).len(), 2);
    let group = caller
        .actual_lrp_groups_for_guid("web", Some(1))
        .await
        .unwrap();
    assert_eq!(values(&group)[0]["instance"]["index"], 1);

    let before = one[0]["instance_guid"].clone();
    caller.retire_actual_lrp("web", 1).await.unwrap();
    until("another instance", async || {
        let found = values(&caller.actual_lrps(&of_web(Some(1))).await.unwrap());
        found
            .iter()
            .any(|lrp| lrp["state"] == "RUNNING" && lrp["instance_guid"] != before)
    })
    .await;
    let update = spec(&json!({"instances": 1, "annotation": "fewer"}));
    caller
        .update_desired_lrp("web", update.update().unwrap())
        .await
        .unwrap();
    until("one instance", async || running(1).await).await;

    let of_trial = TasksRequest {
        domain: "trial".into(),
        cell_id: String::new(),
    };
    until("all tasks are completed", async || {
        let found = values(&caller.tasks(&of_trial).await.unwrap());
        assert!(!found.is_empty());
        found.iter().all(|task| task["state"] == "Completed")
    })
    .await;
    assert_eq!(
        values(&caller.task("probe-1").await.unwrap())[0]["failed"],
        false
    );
    caller.cancel_task("probe-1").await.unwrap_err();
    caller.delete_task("probe-1").await.unwrap();
    let gone = caller.task("probe-1").await.unwrap_err();
    assert!(
        gone.to_string()
            .starts_with("BBS error\nType 13: ResourceNotFound\n"),
        "{gone}"
    );
    caller.delete_desired_lrp("web").await.unwrap();
    caller.desired_lrp("web").await.unwrap_err();

    let told = |lines: &Lines, kind: &str| lines.types().iter().any(|known| known == kind);
    until("every kind of event", async || {
        let of_lrps = [
            "desired_lrp_created",
            "desired_lrp_changed",
            "desired_lrp_removed",
            "actual_lrp_instance_created",
            "actual_lrp_instance_changed",
            "actual_lrp_instance_removed",
            "actual_lrp_created",
            "actual_lrp_changed",
            "actual_lrp_removed",
        ];
        of_lrps.iter().all(|kind| told(&lrps, kind))
            && ["task_created", "task_changed", "task_removed"]
                .iter()
                .all(|kind| told(&tasks, kind))
    })
    .await;
    let told = lrps.types();
    let removed = told.iter().filter(|kind| *kind == "desired_lrp_removed");
    assert_eq!(removed.count(), 1, "what both streams tell is written once");

    // The server goes: streams end, and say how.
    world.bbs.stop().await.unwrap();
    for stream in streams {
        let ended = tokio::time::timeout(PATIENCE, stream).await;
        match ended.expect("the stream ends").unwrap() {
            Ok(()) => {}
            Err(failure) => assert!(
                failure.to_string().contains("stream of events broke"),
                "{failure}"
            ),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn locks_and_presences_are_listed_taken_and_given_up() {
    let world = World::start().await;
    let location = world.bbs.locket().unwrap().to_string();
    let access = LocketAccess {
        location: location.clone(),
        identity: Some(world.identity()),
    };
    let locket = access.caller().unwrap();
    locket
        .claim(Kind::Lock, "key", "me", "-v", 60)
        .await
        .unwrap();
    locket
        .claim(Kind::Presence, "there", "me", "", 60)
        .await
        .unwrap();
    let keys = |rows: &Rows| -> Vec<Value> {
        values(rows)
            .into_iter()
            .map(|mut row| row["key"].take())
            .collect()
    };
    let locks = locket.list(Kind::Lock).await.unwrap();
    let expected =
        json!({"key": "key", "owner": "me", "value": "-v", "type": "lock", "type_code": 1});
    assert!(values(&locks).contains(&expected), "{:?}", values(&locks));
    let presences = keys(&locket.list(Kind::Presence).await.unwrap());
    assert!(
        presences.contains(&json!("there")) && presences.len() == 2,
        "{presences:?}"
    );
    let taken = "rpc error: code = AlreadyExists desc = lock-collision";
    let refused = locket
        .claim(Kind::Lock, "key", "you", "", 60)
        .await
        .unwrap_err();
    assert_eq!(
        (refused.to_string().as_str(), refused.exit_code()),
        (taken, 4)
    );
    assert_eq!(
        locket.release("key", "you").await.unwrap_err().to_string(),
        taken
    );
    locket.release("key", "me").await.unwrap();
    assert!(!keys(&locket.list(Kind::Lock).await.unwrap()).contains(&json!("key")));
    let refused = locket
        .claim(Kind::Lock, "key", "me", "", 0)
        .await
        .unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("code = InvalidArgument desc = invalid-ttl"),
        "{refused}"
    );

    for location in [
        "",
        "localhost",
        "https://127.0.0.1:1",
        "127.0.0.1:x",
        "http://127.0.0.1:1/x",
    ] {
        let identity = Some(world.identity());
        let access = LocketAccess {
            location: location.into(),
            identity,
        };
        assert_eq!(
            access.caller().err().map(|failure| failure.exit_code()),
            Some(3),
            "{location}"
        );
    }
    // Without certificates where they are asked for.
    let access = LocketAccess {
        location: format!("http://{location}"),
        identity: None,
    };
    let failure = access.caller().unwrap().list(Kind::Lock).await.unwrap_err();
    assert!(
        failure.to_string().contains("code = Unavailable"),
        "{failure}"
    );
    assert_eq!(failure.exit_code(), 4);
}
