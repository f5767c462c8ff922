//! Kills a BBS, or its database, under load, over and over: what it had confirmed is still there.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use cells::bbs::{self, Config, PostgresSettings};
use diego::models::{self, error::Type};
use diego::{Bbs, path};
use net::{Client, ClientOptions};
use prost::Message;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use telemetry::{Level, Logger, Sink};

use crate::desired::{action, tags};
use crate::killed_process::{Process, serve};
use crate::postgres_cluster::Cluster;

const FOLDER: &str = "BBS_KILL_FOLDER";
/// The address of PostgreSQL, where that is the store.
const STORE: &str = "BBS_KILL_STORE";
const ROUNDS: usize = 50;
const WORKERS: usize = 24;

/// What a worker knows of a task or process.
#[derive(Debug, Clone)]
struct Entity {
    confirmed: &'static str,
    /// The state that it has if the last call arrived after all.
    pending: Option<&'static str>,
}

type Entities = Arc<Mutex<BTreeMap<String, Entity>>>;

async fn started(folder: &Path, store: Option<&str>) -> Process {
    let mut variables = vec![(FOLDER, folder.to_str().unwrap())];
    variables.extend(store.map(|store| (STORE, store)));
    Process::start("bbs_kill::child_process", folder, &variables).await
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
        let running = bbs::start(config(folder, store.as_deref()), logger());
        let running = running.await.unwrap();
        serve(folder, running.address()).await;
    });
}

fn logger() -> Logger {
    Logger::new("bbs", Sink::nothing(), Level::Error)
}

fn config(folder: &Path, store: Option<&str>) -> Config {
    let mut config = Config::new("127.0.0.1:0".parse().unwrap(), folder);
    config.postgres = store.map(|store| PostgresSettings::at(store).unwrap());
    // PostgreSQL may notice a moment later that the one before is gone.
    config.standby = true;
    config
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn confirmed_changes_survive_fifty_kills() {
    survive_kills(None, ROUNDS).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn confirmed_changes_in_postgresql_survive_kills() {
    let cluster = Cluster::start();
    let store = cluster.database("bbs");
    survive_kills(Some(&store), ROUNDS / 4).await;
}

fn random() -> StdRng {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let seed = std::env::var("BBS_KILL_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seed: u64 = seed.unwrap_or(now.as_nanos() as u64);
    // Shown when the test fails.
    println!("BBS_KILL_SEED={seed}");
    StdRng::seed_from_u64(seed)
}

async fn survive_kills(store: Option<&str>, rounds: usize) {
    let mut random = random();
    let folder = tempfile::tempdir().unwrap();
    let entities = Entities::default();
    let mut calls = 0;
    for round in 0..rounds {
        let process = started(folder.path(), store).await;
        check(&process.url(), &entities, round).await;
        let until = Arc::default();
        let mut workers = at_work(&process.url(), round, &entities, &mut random, &until);
        tokio::time::sleep(Duration::from_millis(random.random_range(40..300))).await;
        drop(process);
        while let Some(done) = workers.join_next().await {
            calls += done.unwrap();
        }
    }
    let process = started(folder.path(), store).await;
    check(&process.url(), &entities, rounds).await;
    assert!(
        calls > rounds * WORKERS,
        "only {calls} calls were confirmed: no load"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn confirmed_changes_survive_kills_of_postgresql_and_reads_go_on() {
    let mut random = random();
    let mut cluster = Cluster::start();
    let store = cluster.database("bbs");
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(folder.path(), Some(&store));
    // Some changes wait until it is back, others are refused.
    config.limits.database_within = Duration::from_millis(300);
    let running = bbs::start(config.clone(), logger()).await.unwrap();
    let url = format!("http://{}", running.address());
    let entities = Entities::default();
    let mut calls = 0;
    for round in 0..6 {
        let until = Arc::default();
        let mut workers = at_work(&url, round, &entities, &mut random, &until);
        tokio::time::sleep(Duration::from_millis(random.random_range(40..300))).await;
        cluster.kill();
        if round % 2 == 0 {
            // Once they are refused all is read as before.
            until_answered(&url, &format!("refused-{round}"), false).await;
            observe(&client(&url)).await;
            assert_eq!(metric(&url, "bbs_database_up").await, 0);
            assert!(metric(&url, "bbs_database_attempts_failed_total").await > 0);
        }
        cluster.resume();
        until_answered(&url, &format!("taken-{round}"), true).await;
        assert_eq!(metric(&url, "bbs_database_up").await, 1);
        let losses = metric(&url, "bbs_database_losses_total").await;
        assert!(losses > round, "{losses} in round {round}");
        until.store(true, Relaxed);
        while let Some(done) = workers.join_next().await {
            calls += done.unwrap();
        }
        check(&url, &entities, round).await;
    }
    assert!(calls > WORKERS, "only {calls} calls were confirmed");
    running.stop().await.unwrap();
    let running = bbs::start(config, logger()).await.unwrap();
    let url = format!("http://{}", running.address());
    check(&url, &entities, usize::MAX).await;
    running.stop().await.unwrap();
}

/// A number of the BBS's metrics.
async fn metric(url: &str, name: &str) -> usize {
    let client = Client::new(ClientOptions::default());
    let uri = format!("{url}/metrics").parse().unwrap();
    let answer = client.get(&uri).await.unwrap();
    let text = String::from_utf8(answer.body.to_vec()).unwrap();
    let mut values = text
        .lines()
        .filter_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    values.next().expect(name).parse().unwrap()
}

/// Sets domains until that is answered as it should be.
async fn until_answered(url: &str, domain: &str, well: bool) {
    let upsert = models::UpsertDomainRequest {
        domain: domain.into(),
        ttl: 0,
    };
    let answered = async {
        loop {
            let body = upsert.encode_to_vec().into();
            let answer = client(url).send(path::UPSERT_DOMAIN, body, "").await;
            let answer = models::UpsertDomainResponse::decode(answer.unwrap()).unwrap();
            let error = answer.error.map(|error| error.message);
            match error {
                None if well => return,
                Some(error) if !well => {
                    assert!(error.starts_with("the change was not stored"), "{error}");
                    return;
                }
                _ => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    };
    let answered = tokio::time::timeout(Duration::from_secs(60), answered).await;
    answered.expect("changes are taken or refused");
}

/// Everybody at work, until the BBS is gone or `until` is set.
fn at_work(
    url: &str,
    round: usize,
    entities: &Entities,
    random: &mut StdRng,
    until: &Arc<AtomicBool>,
) -> tokio::task::JoinSet<usize> {
    let mut workers = tokio::task::JoinSet::new();
    for worker in 0..WORKERS {
        let bbs = client(url);
        let random = StdRng::seed_from_u64(random.random());
        let name = format!("{round}-{worker}");
        let until = Arc::clone(until);
        workers.spawn(work(bbs, name, Arc::clone(entities), random, until));
    }
    workers
}

fn client(url: &str) -> Bbs {
    Bbs::new(Client::new(ClientOptions::default()), url)
}

/// Takes tasks and processes through their lives until the BBS is gone; returns
/// the number of confirmed calls.
async fn work(
    bbs: Bbs,
    name: String,
    entities: Entities,
    mut random: StdRng,
    until: Arc<AtomicBool>,
) -> usize {
    let mut calls = 0;
    for number in 0.. {
        if until.load(Relaxed) {
            break;
        }
        let guid = format!("{name}-{number}");
        let steps = if random.random_bool(0.5) {
            task(&guid)
        } else {
            process(&guid)
        };
        let steps_wanted = random.random_range(1..=steps.len());
        for (path, body, state) in steps.into_iter().take(steps_wanted) {
            {
                let mut entities = entities.lock().unwrap();
                let absent = Entity {
                    confirmed: "absent",
                    pending: None,
                };
                entities.entry(guid.clone()).or_insert(absent).pending = Some(state);
            }
            let Ok(answer) = bbs.send(path, body, "").await else {
                return calls;
            };
            let answer = models::TaskLifecycleResponse::decode(answer).unwrap();
            if let Some(error) = answer.error {
                // It may have arrived after all.
                let text = "the change was not stored: ";
                assert!(
                    error.message.starts_with(text),
                    "{path} of {guid}: {error:?}"
                );
                tokio::time::sleep(Duration::from_millis(10)).await;
                break;
            }
            let confirmed = Entity {
                confirmed: state,
                pending: None,
            };
            entities.lock().unwrap().insert(guid.clone(), confirmed);
            calls += 1;
        }
    }
    calls
}

type Step = (&'static str, Bytes, &'static str);

fn step(path: &'static str, request: &impl Message, state: &'static str) -> Step {
    (path, request.encode_to_vec().into(), state)
}

fn task(guid: &str) -> Vec<Step> {
    let task_guid = guid.to_owned();
    let by_guid = models::TaskGuidRequest {
        task_guid: task_guid.clone(),
    };
    let desire = models::DesireTaskRequest {
        task_guid: task_guid.clone(),
        domain: "tasks".into(),
        task_definition: Some(models::TaskDefinition {
            root_fs: "preloaded:x".into(),
            action: action(),
            ..Default::default()
        }),
    };
    let cell_id = String::from("c");
    let start = models::StartTaskRequest {
        task_guid: task_guid.clone(),
        cell_id: cell_id.clone(),
    };
    let complete = models::CompleteTaskRequest {
        task_guid,
        cell_id,
        ..Default::default()
    };
    vec![
        step(path::DESIRE_TASK, &desire, "Pending"),
        step(path::START_TASK, &start, "Running"),
        step(path::COMPLETE_TASK, &complete, "Completed"),
        step(path::RESOLVING_TASK, &by_guid, "Resolving"),
        step(path::DELETE_TASK, &by_guid, "absent"),
    ]
}

fn process(guid: &str) -> Vec<Step> {
    let process_guid = guid.to_owned();
    let instance = models::ActualLrpInstanceKey {
        instance_guid: format!("i-{guid}"),
        cell_id: "c".into(),
    };
    let desire = models::DesireLrpRequest {
        desired_lrp: Some(models::DesiredLrp {
            process_guid: process_guid.clone(),
            domain: "lrps".into(),
            root_fs: "preloaded:x".into(),
            instances: 1,
            action: action(),
            metric_tags: tags("x"),
            ..Default::default()
        }),
    };
    let claim = models::ClaimActualLrpRequest {
        process_guid: process_guid.clone(),
        index: 0,
        actual_lrp_instance_key: Some(instance.clone()),
    };
    let start = models::StartActualLrpRequest {
        actual_lrp_key: Some(models::ActualLrpKey {
            process_guid: process_guid.clone(),
            index: 0,
            domain: "lrps".into(),
        }),
        actual_lrp_instance_key: Some(instance.clone()),
        actual_lrp_net_info: Some(models::ActualLrpNetInfo {
            address: "1.2.3.4".into(),
            ..Default::default()
        }),
        ..Default::default()
    };
    let remove = models::RemoveActualLrpRequest {
        process_guid: process_guid.clone(),
        index: 0,
        actual_lrp_instance_key: Some(instance),
    };
    let forget = models::RemoveDesiredLrpRequest { process_guid };
    vec![
        step(path::DESIRE_LRP, &desire, "UNCLAIMED"),
        step(path::CLAIM_ACTUAL_LRP, &claim, "CLAIMED"),
        step(path::START_ACTUAL_LRP, &start, "RUNNING"),
        step(path::REMOVE_ACTUAL_LRP, &remove, "desired"),
        step(path::REMOVE_DESIRED_LRP, &forget, "absent"),
    ]
}

/// Compares what the BBS has with what it confirmed, and learns what became of
/// the calls that were under way.
async fn check(url: &str, entities: &Entities, round: usize) {
    let found = observe(&client(url)).await;
    let mut entities = entities.lock().unwrap();
    for (guid, entity) in entities.iter_mut() {
        let state = found.get(guid).map_or("absent", String::as_str);
        if Some(state) == entity.pending {
            entity.confirmed = entity.pending.unwrap();
        }
        entity.pending = None;
        assert_eq!(state, entity.confirmed, "{guid} in round {round}");
    }
    let strangers = found
        .keys()
        .filter(|guid| !entities.contains_key(*guid))
        .count();
    assert_eq!(strangers, 0, "records that nobody made in round {round}");
}

async fn observe(bbs: &Bbs) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let all = models::TasksRequest::default();
    let tasks: models::TasksResponse = bbs.call(path::TASKS, &all).await.unwrap();
    for task in tasks.tasks {
        let state = task.state().as_str_name().to_owned();
        assert_eq!(found.insert(task.task_guid, state), None, "a task twice");
    }
    let all = models::DesiredLrPsRequest::default();
    let desired: models::DesiredLrPsResponse = bbs.call(path::DESIRED_LRPS, &all).await.unwrap();
    for lrp in desired.desired_lrps {
        assert_eq!(
            found.insert(lrp.process_guid, "desired".into()),
            None,
            "a process twice"
        );
    }
    let all = models::ActualLrPsRequest::default();
    let actual: models::ActualLrPsResponse = bbs.call(path::ACTUAL_LRPS, &all).await.unwrap();
    for lrp in actual.actual_lrps {
        let key = lrp.actual_lrp_key.unwrap();
        let before = found.insert(key.process_guid, lrp.state);
        assert_eq!(
            before.as_deref(),
            Some("desired"),
            "an instance without or beside another"
        );
    }
    found
}

#[tokio::test]
async fn the_same_call_again_says_that_it_was_done() {
    let folder = tempfile::tempdir().unwrap();
    let process = started(folder.path(), None).await;
    let bbs = client(&process.url());
    for expected in [None, Some(Type::ResourceExists)] {
        let (path, body, _) = task("t").swap_remove(0);
        let answer = bbs.send(path, body, "").await.unwrap();
        let answer = models::TaskLifecycleResponse::decode(answer).unwrap();
        assert_eq!(answer.error.map(|error| error.r#type()), expected);
    }
}
