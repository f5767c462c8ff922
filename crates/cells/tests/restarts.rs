//! BBS, auctioneer and cells together, when some of them restart or there are two of one.

use std::collections::BTreeMap;
use std::time::Duration;

use cells::{auctioneer, bbs, rep};
use diego::auction::{CellState, Work};
use diego::locket::*;
use diego::models::*;
use diego::{Bbs, path};
use net::{Client, ClientOptions};
use prost::Message;
use tokio::sync::watch;

use crate::desired::{action, tags};
use crate::own_address::own_address;
use crate::patience::{PATIENCE, until_some};
use crate::quiet::logger;

struct System {
    config: bbs::Config,
    server: Option<bbs::Running>,
    bbs: Bbs,
    _ask: watch::Sender<bool>,
    _folder: tempfile::TempDir,
}

/// A rep that runs, and how to end it.
struct Rep {
    running: rep::Running,
    ask: watch::Sender<bool>,
}

impl System {
    async fn start() -> Self {
        Self::start_with(|_| ()).await
    }

    async fn start_with(change: impl FnOnce(&mut bbs::Config)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (ask, shutdown) = net::shutdown();
        let (address, auctioneer) = (own_address(), own_address());
        let mut config = bbs::Config::new(address, folder.path());
        config.auctioneer_url = Some(format!("http://{auctioneer}"));
        change(&mut config);
        let server = bbs::start(config.clone(), logger("bbs")).await.unwrap();
        let url = format!("http://{address}");
        let settings = auctioneer::Config::new(auctioneer, &*url);
        auctioneer::start(settings, logger("auctioneer"), shutdown)
            .await
            .unwrap();
        Self {
            config,
            server: Some(server),
            bbs: Bbs::new(Client::new(ClientOptions::default()), url),
            _ask: ask,
            _folder: folder,
        }
    }

    async fn cells(&self, count: u32, change: impl FnOnce(&mut rep::Config)) -> Rep {
        let any = "127.0.0.1:0".parse().unwrap();
        let url = self.config.listen;
        let mut config = rep::Config::new(count, any, format!("http://{url}"));
        config.bulk_interval = Duration::from_millis(50);
        change(&mut config);
        let (ask, shutdown) = net::shutdown();
        let running = rep::start(config, logger("rep"), shutdown).await.unwrap();
        Rep { running, ask }
    }

    async fn stop_bbs(&mut self) {
        self.server.take().unwrap().stop().await.unwrap();
    }

    async fn start_bbs(&mut self) {
        self.server = Some(
            bbs::start(self.config.clone(), logger("bbs"))
                .await
                .unwrap(),
        );
    }

    async fn desire(&self, process: &str, instances: i32) {
        let request = DesireLrpRequest {
            desired_lrp: Some(DesiredLrp {
                process_guid: process.into(),
                domain: "d".into(),
                root_fs: "preloaded:cflinuxfs4".into(),
                instances,
                action: action(),
                metric_tags: tags("p"),
                ..DesiredLrp::default()
            }),
        };
        type Answer = DesiredLrpLifecycleResponse;
        self.bbs
            .call::<Answer>(path::DESIRE_LRP, &request)
            .await
            .unwrap();
    }

    /// Instances that run, by cell.
    async fn running(&self) -> BTreeMap<String, usize> {
        let all = ActualLrPsRequest::default();
        let all: ActualLrPsResponse = self.bbs.call(path::ACTUAL_LRPS, &all).await.unwrap();
        let mut cells = BTreeMap::new();
        for row in all.actual_lrps.iter().filter(|row| row.state == "RUNNING") {
            let key = row.actual_lrp_instance_key.as_ref().unwrap();
            *cells.entry(key.cell_id.clone()).or_default() += 1;
        }
        cells
    }

    async fn until_running(&self, count: usize) -> BTreeMap<String, usize> {
        until_some("all instances run", async || {
            let cells = self.running().await;
            (cells.values().sum::<usize>() == count).then_some(cells)
        })
        .await
    }

    async fn locket<A: Message + Default>(&self, path: &str, request: &impl Message) -> A {
        let body = request.encode_to_vec().into();
        A::decode(self.bbs.send(path, body, "").await.unwrap()).unwrap()
    }
}

#[tokio::test]
async fn a_bbs_that_starts_again_knows_its_cells_at_once() {
    let mut system = System::start().await;
    // They renew so seldom that they do not come back by themselves within this test.
    let slow = |config: &mut rep::Config| {
        config.heartbeat = Duration::from_secs(600);
        config.presence_ttl = Duration::from_secs(1200);
        config.heartbeat_jitter = 0.0;
    };
    let cells = system.cells(4, slow).await;
    cells.running.registered().await;
    system.stop_bbs().await;
    system.start_bbs().await;
    system.desire("p", 20).await;
    let spread = system.until_running(20).await;
    assert!(
        spread.len() == 4 && spread.values().all(|count| *count == 5),
        "{spread:?}"
    );
}

#[tokio::test]
async fn work_that_waited_is_placed_on_all_cells_and_not_on_the_first_to_come_back() {
    let mut system = System::start().await;
    let with = |prefix: &'static str| {
        move |config: &mut rep::Config| {
            config.id_prefix = prefix.into();
            config.heartbeat = Duration::from_millis(200);
            config.presence_ttl = Duration::from_secs(5);
        }
    };
    let first = system.cells(2, with("a")).await;
    let second = system.cells(2, with("b")).await;
    first.running.registered().await;
    second.running.registered().await;
    system.desire("p", 4).await;
    system.until_running(4).await;
    // Work comes while no auctioneer is there to ask.
    let auctioneer = system.config.auctioneer_url.take();
    system.stop_bbs().await;
    system.start_bbs().await;
    system.desire("q", 16).await;
    system.stop_bbs().await;
    // What the disk knows of cells is lost, as with a folder of an older version.
    let database = system.config.data_dir.join("bbs.sqlite");
    let database = rusqlite::Connection::open(database).unwrap();
    database.execute("DELETE FROM presences", []).unwrap();
    drop(database);
    system.config.auctioneer_url = auctioneer;
    system.start_bbs().await;
    let spread = system.until_running(20).await;
    assert!(
        spread.len() == 4 && spread.values().all(|count| *count == 5),
        "{spread:?}"
    );
}

#[tokio::test]
async fn a_second_rep_of_the_same_id_does_nothing_until_the_first_has_ended() {
    let system = System::start().await;
    let first = system.cells(1, |_| ()).await;
    first.running.registered().await;
    system.desire("p", 12).await;
    system.until_running(12).await;
    let second = system.cells(1, |_| ()).await;
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_millis(25)).await;
        assert_eq!(system.running().await.values().sum::<usize>(), 12);
    }
    let client = Client::new(ClientOptions::default());
    let uri = |path| {
        format!("http://{}{path}", second.running.addresses()[0])
            .parse()
            .unwrap()
    };
    let work = Work {
        tasks: vec![diego::auction::Task {
            task_guid: "t".into(),
            ..diego::auction::Task::default()
        }],
        cell_id: "cell-0".into(),
        ..Work::default()
    };
    let work = serde_json::to_vec(&work).unwrap();
    let headers = http::HeaderMap::new();
    let answer = client
        .post(&uri("/work"), "application/json", headers, work.into())
        .await;
    let refused: Work = serde_json::from_slice(&answer.unwrap().body).unwrap();
    assert_eq!(refused.tasks.len(), 1, "it takes no work");
    first.ask.send(true).unwrap();
    first.running.stopped().await;
    tokio::time::timeout(PATIENCE, second.running.registered())
        .await
        .unwrap();
}

#[tokio::test]
async fn a_rep_whose_presence_another_one_took_ends_what_it_runs() {
    let system = System::start().await;
    let rep = system
        .cells(1, |config| {
            config.heartbeat = Duration::from_millis(100);
            // Its records are not what this is about.
            config.bulk_interval = Duration::from_secs(600);
        })
        .await;
    rep.running.registered().await;
    system.desire("p", 3).await;
    system.until_running(3).await;
    let fetch = FetchRequest {
        key: "cell-0".into(),
    };
    let held = system
        .locket::<FetchResponse>(path::LOCKET_FETCH, &fetch)
        .await
        .resource;
    let release = ReleaseRequest {
        resource: held.clone(),
    };
    let resource = held.map(|held| Resource {
        owner: "another".into(),
        ..held
    });
    let lock = LockRequest {
        resource,
        ttl_in_seconds: 600,
    };
    // The rep may be back in between: then once more.
    loop {
        system
            .locket::<ReleaseResponse>(path::LOCKET_RELEASE, &release)
            .await;
        let body = lock.encode_to_vec().into();
        if system.bbs.send(path::LOCKET_LOCK, body, "").await.is_ok() {
            break;
        }
    }
    let client = Client::new(ClientOptions::default());
    let uri = format!("http://{}/state", rep.running.addresses()[0])
        .parse()
        .unwrap();
    let ended = async {
        loop {
            let answer = client.get(&uri).await.unwrap();
            let state: CellState = serde_json::from_slice(&answer.body).unwrap();
            if state.lrps.is_empty() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, ended)
        .await
        .expect("its instances end");
    assert_eq!(
        system.running().await.values().sum::<usize>(),
        3,
        "the records are not its own"
    );
}

#[tokio::test]
async fn a_cell_that_is_lost_before_the_first_pass_is_replaced_and_one_not_yet_back_is_not() {
    one_of_two_goes(false).await;
}

#[tokio::test]
async fn a_cell_that_says_goodbye_is_replaced_at_once() {
    one_of_two_goes(true).await;
}

/// Two cells with an instance each, of which neither renews its presence; one goes.
async fn one_of_two_goes(says_so: bool) {
    let system = System::start_with(|config| {
        config.limits.converge_interval = Duration::from_secs(3600);
        config.limits.cells_within = Duration::from_millis(10);
    })
    .await;
    system.desire("p", 2).await;
    for (index, cell_id) in [(0, "doomed"), (1, "not-yet-back")] {
        let start = StartActualLrpRequest {
            actual_lrp_key: Some(ActualLrpKey {
                process_guid: "p".into(),
                index,
                domain: "d".into(),
            }),
            actual_lrp_instance_key: Some(ActualLrpInstanceKey {
                instance_guid: format!("i-{index}"),
                cell_id: cell_id.into(),
            }),
            actual_lrp_net_info: Some(ActualLrpNetInfo {
                address: "1.2.3.4".into(),
                ..ActualLrpNetInfo::default()
            }),
            ..StartActualLrpRequest::default()
        };
        type Answer = ActualLrpLifecycleResponse;
        let started = system.bbs.call::<Answer>(path::START_ACTUAL_LRP, &start);
        started.await.unwrap();
    }
    let rep = system.cells(1, |_| ()).await;
    rep.running.registered().await;
    let lock = LockRequest {
        resource: Some(Resource {
            key: "doomed".into(),
            owner: "nobody".into(),
            value: r#"{"cell_id":"doomed"}"#.into(),
            type_code: TypeCode::Presence.into(),
            ..Resource::default()
        }),
        ttl_in_seconds: if says_so { 3600 } else { 1 },
    };
    system
        .locket::<LockResponse>(path::LOCKET_LOCK, &lock)
        .await;
    if says_so {
        let release = ReleaseRequest {
            resource: lock.resource,
        };
        system
            .locket::<ReleaseResponse>(path::LOCKET_RELEASE, &release)
            .await;
    }
    let replaced = async {
        while !system.running().await.contains_key("cell-0") {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, replaced)
        .await
        .expect("the instance of the lost cell runs elsewhere");
    let expected = [("cell-0".to_owned(), 1), ("not-yet-back".to_owned(), 1)];
    assert_eq!(system.running().await, expected.into());
}
