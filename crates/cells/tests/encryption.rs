//! A BBS with keys shows nothing of what it stores, and keys change under it while it is killed.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use cells::bbs::{self, Config, EncryptionKeys, PostgresSettings};
use diego::locket::{LockRequest, Resource, TypeCode};
use diego::models::*;
use diego::{Bbs, path};
use http::HeaderMap;
use net::{Client, ClientOptions};
use prost::Message;
use rand::RngExt as _;
use telemetry::{Level, Logger, Sink};
use tokio::task::JoinSet;

use crate::killed_process::{Process, serve};
use crate::postgres_cluster::Cluster;

const FOLDER: &str = "BBS_KEYS_FOLDER";
const STORE: &str = "BBS_KEYS_STORE";

const SECRET: &str = "planted-where-nobody-may-see-it";
const PASSPHRASE: &str = "passphrase-that-nobody-may-see";

/// A file with these keys, the first of which is active.
fn write_keys(folder: &Path, labels: &[&str]) -> PathBuf {
    let keys = labels.iter().map(|label| {
        let key = format!("{PASSPHRASE}-{label}");
        ((*label).to_owned(), serde_json::Value::from(key))
    });
    let keys: serde_json::Map<String, serde_json::Value> = keys.collect();
    let file = serde_json::json!({"active_key_label": labels[0], "encryption_keys": keys});
    let path = folder.join("keys.json");
    std::fs::write(&path, file.to_string()).unwrap();
    path
}

fn config(folder: &Path, store: Option<&str>, keys: bool) -> Config {
    let mut config = Config::new("127.0.0.1:0".parse().unwrap(), folder.join("data"));
    config.postgres = store.map(|store| PostgresSettings::at(store).unwrap());
    // PostgreSQL may notice a moment later that the one before is gone.
    config.standby = true;
    let keys = keys.then(|| EncryptionKeys::read(&folder.join("keys.json")).unwrap());
    config.encryption = keys;
    config
}

fn client(url: &str) -> Bbs {
    Bbs::new(Client::new(ClientOptions::default()), url)
}

fn run() -> Action {
    Action {
        run_action: Some(RunAction {
            path: "/bin/true".into(),
            user: "vcap".into(),
            env: vec![EnvironmentVariable {
                name: "PASSWORD".into(),
                value: SECRET.into(),
            }],
            ..RunAction::default()
        }),
        ..Action::default()
    }
}

fn desire_lrp(guid: &str) -> DesireLrpRequest {
    let tag = MetricTagValue {
        r#static: SECRET.into(),
        ..MetricTagValue::default()
    };
    let routes = format!(r#"[{{"hostnames":["{SECRET}.example.com"],"port":8080}}]"#);
    DesireLrpRequest {
        desired_lrp: Some(DesiredLrp {
            process_guid: guid.into(),
            domain: "d".into(),
            root_fs: "preloaded:x".into(),
            instances: 1,
            annotation: SECRET.into(),
            action: Some(run()),
            routes: Some(ProtoRoutes {
                routes: BTreeMap::from([("cf-router".into(), routes.into_bytes())]),
            }),
            metric_tags: BTreeMap::from([("source_id".into(), tag)]),
            ..DesiredLrp::default()
        }),
    }
}

/// Everything that a BBS stores, with the secret in it.
async fn plant(url: &str) {
    let bbs = client(url);
    let _: DesiredLrpLifecycleResponse =
        bbs.call(path::DESIRE_LRP, &desire_lrp("p")).await.unwrap();
    let start = StartActualLrpRequest {
        actual_lrp_key: Some(ActualLrpKey {
            process_guid: "p".into(),
            index: 0,
            domain: "d".into(),
        }),
        actual_lrp_instance_key: Some(ActualLrpInstanceKey {
            instance_guid: "i".into(),
            cell_id: "c".into(),
        }),
        actual_lrp_net_info: Some(ActualLrpNetInfo {
            address: SECRET.into(),
            ..ActualLrpNetInfo::default()
        }),
        ..StartActualLrpRequest::default()
    };
    let _: ActualLrpLifecycleResponse = bbs.call(path::START_ACTUAL_LRP, &start).await.unwrap();
    let task = DesireTaskRequest {
        task_guid: "t".into(),
        domain: "d".into(),
        task_definition: Some(TaskDefinition {
            root_fs: "preloaded:x".into(),
            action: Some(run()),
            ..TaskDefinition::default()
        }),
    };
    let _: TaskLifecycleResponse = bbs.call(path::DESIRE_TASK, &task).await.unwrap();
    let lock = LockRequest {
        resource: Some(Resource {
            key: "c".into(),
            owner: "o".into(),
            value: format!(r#"{{"cell_id":"c","rep_url":"http://{SECRET}"}}"#),
            type_code: TypeCode::Presence.into(),
            ..Resource::default()
        }),
        ttl_in_seconds: 3600,
    };
    let uri = format!("{url}{}", path::LOCKET_LOCK).parse().unwrap();
    let body = lock.encode_to_vec().into();
    let client = Client::new(ClientOptions::default());
    let answer = client.post(&uri, "", HeaderMap::new(), body).await.unwrap();
    assert_eq!(answer.status, 200);
}

/// How often the secret is in what the BBS answers about what was planted.
async fn answered(url: &str) -> usize {
    let bbs = client(url);
    let by_guid = DesiredLrpByProcessGuidRequest {
        process_guid: "p".into(),
    };
    let desired: DesiredLrpResponse = bbs
        .call(path::DESIRED_LRP_BY_PROCESS_GUID, &by_guid)
        .await
        .unwrap();
    let actual: ActualLrPsResponse = bbs
        .call(path::ACTUAL_LRPS, &ActualLrPsRequest::default())
        .await
        .unwrap();
    let by_guid = TaskByGuidRequest {
        task_guid: "t".into(),
    };
    let task: TaskResponse = bbs.call(path::TASK_BY_GUID, &by_guid).await.unwrap();
    let cells: CellsResponse = bbs.call(path::CELLS, &()).await.unwrap();
    let all = format!("{desired:?} {actual:?} {task:?} {cells:?}");
    // The value of a route is printed as bytes.
    all.matches(SECRET).count()
}

/// What of these texts is in the files below a folder.
fn found_in(folder: &Path, texts: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            // PostgreSQL may remove one meanwhile.
            let bytes = std::fs::read(&path).unwrap_or_default();
            for text in texts {
                let first = text.as_bytes()[0];
                let mut starts = bytes.iter().enumerate().filter(|(_, byte)| **byte == first);
                if starts.any(|(at, _)| bytes[at..].starts_with(text.as_bytes())) {
                    found.push(format!("{text} in {}", path.display()));
                }
            }
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_that_is_stored_in_a_folder_or_logged_shows_a_secret() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    shows_nothing(folder.path(), None, || {
        assert!(
            data.join("bbs.sqlite-wal").exists(),
            "the log is among the files"
        );
        found_in(&data, &[SECRET, PASSPHRASE])
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_that_is_stored_in_postgresql_or_logged_shows_a_secret() {
    let folder = tempfile::tempdir().unwrap();
    let cluster = Cluster::start();
    let store = cluster.database("bbs");
    shows_nothing(folder.path(), Some(&store), || {
        assert!(cluster.psql("bbs", "CHECKPOINT").status.success());
        found_in(&cluster.data(), &[SECRET, PASSPHRASE])
    })
    .await;
}

async fn shows_nothing(folder: &Path, store: Option<&str>, found: impl Fn() -> Vec<String>) {
    let log = Sink::memory();
    let logger = || Logger::new("bbs", log.clone(), Level::Debug);
    write_keys(folder, &["one"]);
    let running = bbs::start(config(folder, store, true), logger())
        .await
        .unwrap();
    let url = format!("http://{}", running.address());
    plant(&url).await;
    let expected = answered(&url).await;
    assert!(expected >= 5, "{expected}");
    assert_eq!(found(), [] as [String; 0]);
    running.stop().await.unwrap();

    // Without its key nobody starts.
    let refused = bbs::start(config(folder, store, false), logger()).await;
    let refused = refused.unwrap_err().to_string();
    assert!(
        refused.contains("the key \"one\": start with --encryption-keys"),
        "{refused}"
    );
    write_keys(folder, &["two"]);
    let refused = bbs::start(config(folder, store, true), logger()).await;
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("the key \"one\", and"), "{refused}");
    assert!(!refused.contains(PASSPHRASE), "{refused}");

    // Nor is anything lost by trying.
    write_keys(folder, &["two", "one"]);
    let running = bbs::start(config(folder, store, true), logger())
        .await
        .unwrap();
    let url = format!("http://{}", running.address());
    assert_eq!(answered(&url).await, expected);
    all_is_reencrypted(&url).await;
    assert_eq!(found(), [] as [String; 0]);
    running.stop().await.unwrap();
    let log = log.kept();
    assert!(log.contains("encryption.reencryption-done"), "{log}");
    assert!(!log.contains(SECRET) && !log.contains(PASSPHRASE), "{log}");
}

async fn metric(url: &str, name: &str) -> Option<u64> {
    let client = Client::new(ClientOptions::default());
    let uri = format!("{url}/metrics").parse().unwrap();
    let answer = client.get(&uri).await.ok()?;
    let text = String::from_utf8(answer.body.to_vec()).unwrap();
    let mut values = text
        .lines()
        .filter_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    values.next()?.parse().ok()
}

async fn all_is_reencrypted(url: &str) {
    while metric(url, "bbs_reencryption_active").await != Some(0) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn started(folder: &Path, store: Option<&str>) -> Process {
    let mut variables = vec![(FOLDER, folder.to_str().unwrap())];
    variables.extend(store.map(|store| (STORE, store)));
    Process::start("encryption::child_process", folder, &variables).await
}

/// Not a test by itself: the body of the process that gets killed.
#[test]
fn child_process() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let folder = Path::new(&folder);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let store = std::env::var(STORE).ok();
        let logger = Logger::new("bbs", Sink::nothing(), Level::Error);
        let running = bbs::start(config(folder, store.as_deref(), true), logger);
        let running = running.await.unwrap();
        serve(folder, running.address()).await;
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_change_in_a_folder_while_the_bbs_is_killed() {
    keys_change(None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_change_in_postgresql_while_the_bbs_is_killed() {
    let cluster = Cluster::start();
    let store = cluster.database("bbs");
    keys_change(Some(&store)).await;
}

async fn desired(url: &str) -> HashSet<String> {
    let desired: DesiredLrPsResponse = client(url)
        .call(path::DESIRED_LRPS, &DesiredLrPsRequest::default())
        .await
        .unwrap();
    let guids = desired.desired_lrps.into_iter().map(|lrp| {
        assert_eq!(lrp.annotation, SECRET);
        lrp.process_guid
    });
    guids.collect()
}

/// Desires LRPs until all are there or the BBS is gone: guids that were confirmed, and those that
/// may be there.
async fn desire(url: String, prefix: String, count: usize) -> (Vec<String>, Vec<String>) {
    let mut callers = JoinSet::new();
    for caller in 0..16 {
        let bbs = client(&url);
        let prefix = prefix.clone();
        callers.spawn(async move {
            let (mut confirmed, mut tried) = (Vec::new(), Vec::new());
            for number in (caller..count).step_by(16) {
                let guid = format!("{prefix}-{number}");
                let body = desire_lrp(&guid).encode_to_vec().into();
                tried.push(guid.clone());
                let Ok(answer) = bbs.send(path::DESIRE_LRP, body, "").await else {
                    break;
                };
                let answer = DesiredLrpLifecycleResponse::decode(answer).unwrap();
                assert_eq!(answer.error, None);
                confirmed.push(guid);
            }
            (confirmed, tried)
        });
    }
    let (confirmed, tried): (Vec<_>, Vec<_>) = callers.join_all().await.into_iter().unzip();
    (confirmed.concat(), tried.concat())
}

async fn keys_change(store: Option<&str>) {
    const COUNT: usize = 1500;
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write_keys(folder, &["one"]);
    let process = started(folder, store).await;
    let (mut confirmed, mut tried) = desire(process.url(), "p".into(), COUNT).await;
    assert_eq!(confirmed.len(), COUNT);
    all_is_reencrypted(&process.url()).await;
    drop(process);
    let (mut kills, mut cut_off) = (0, 0);
    for labels in [["two", "one"], ["three", "two"]] {
        write_keys(folder, &labels);
        loop {
            let process = started(folder, store).await;
            let prefix = format!("{}-{kills}", labels[0]);
            // What is added makes the next walk longer: on a slow machine there must be an end.
            let count = 4096 / (1 + kills);
            let writing = tokio::spawn(desire(process.url(), prefix, count as usize));
            let patience = rand::rng().random_range(0..150 * (1 + kills));
            tokio::time::sleep(Duration::from_millis(patience)).await;
            let active = metric(&process.url(), "bbs_reencryption_active").await;
            drop(process);
            let (new_confirmed, new_tried) = writing.await.unwrap();
            confirmed.extend(new_confirmed);
            tried.extend(new_tried);
            kills += 1;
            cut_off += usize::from(active == Some(1));
            if active == Some(0) {
                break;
            }
        }
        // The old key may go.
        write_keys(folder, &labels[..1]);
        let process = started(folder, store).await;
        let found = desired(&process.url()).await;
        let lost = confirmed.iter().find(|guid| !found.contains(*guid));
        assert_eq!(lost, None);
        let tried: HashSet<&String> = tried.iter().collect();
        assert!(found.iter().all(|guid| tried.contains(guid)));
        drop(process);
    }
    println!("{kills} kills, {cut_off} of them before all was done");
    let refused = bbs::start(
        config(folder, store, false),
        Logger::new("bbs", Sink::nothing(), Level::Error),
    );
    let refused = refused.await.unwrap_err().to_string();
    assert!(refused.contains("the key \"three\""), "{refused}");
}
