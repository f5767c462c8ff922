//! Several Lockets on one database in PostgreSQL are one.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cells::bbs::locket;
use diego::locket::*;
use diego::path;
use prost::Message;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use telemetry::{Level, Logger, Sink};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::killed_process::{Process, serve};
use crate::locket::{call, config};
use crate::postgres_cluster::Cluster;

const FOLDER: &str = "LOCKET_KILL_FOLDER";
const STORE: &str = "LOCKET_KILL_STORE";

const TAKEN: u32 = 0;
const COLLISION: u32 = 6;
const UNAVAILABLE: u32 = 14;

struct Server {
    address: SocketAddr,
    log: Sink,
    _ask: watch::Sender<bool>,
}

async fn server(store: &str) -> Server {
    let log = Sink::memory();
    let logger = Logger::new("locket", log.clone(), Level::Info);
    let (ask, shutdown) = net::shutdown();
    let config = config(Path::new(""), Some(store));
    let running = locket::start(config, logger, shutdown).await.unwrap();
    Server {
        address: running.address(),
        log,
        _ask: ask,
    }
}

fn resource(key: &str, owner: &str) -> Resource {
    Resource {
        key: key.into(),
        owner: owner.into(),
        value: format!("value of {owner}"),
        type_code: TypeCode::Lock.into(),
        ..Resource::default()
    }
}

/// The code of a Lock, if there was an answer.
async fn lock(at: SocketAddr, key: &str, owner: &str) -> Option<u32> {
    let request = LockRequest {
        resource: Some(resource(key, owner)),
        ttl_in_seconds: 3600,
    };
    let answer = call(at, None, path::LOCKET_LOCK, &request.encode_to_vec()).await;
    answer.ok().map(|answer| answer.0)
}

async fn release(at: SocketAddr, key: &str, owner: &str) -> Option<u32> {
    let request = ReleaseRequest {
        resource: Some(resource(key, owner)),
    };
    let answer = call(at, None, path::LOCKET_RELEASE, &request.encode_to_vec()).await;
    answer.ok().map(|answer| answer.0)
}

async fn owner(at: SocketAddr, key: &str) -> Option<String> {
    let request = FetchRequest { key: key.into() }.encode_to_vec();
    let (code, _, message) = call(at, None, path::LOCKET_FETCH, &request).await.unwrap();
    let found = FetchResponse::decode(&*message).unwrap();
    assert!(code == 0 || code == 5, "{code}");
    found.resource.map(|resource| resource.owner)
}

/// All locks, each with its owner.
async fn all(at: SocketAddr) -> Vec<(String, String)> {
    let request = FetchAllRequest {
        type_code: TypeCode::Lock.into(),
        ..FetchAllRequest::default()
    };
    let answer = call(at, None, path::LOCKET_FETCH_ALL, &request.encode_to_vec()).await;
    let found = FetchAllResponse::decode(&*answer.unwrap().2).unwrap();
    let found = found.resources.into_iter();
    let mut all: Vec<_> = found.map(|held| (held.key, held.owner)).collect();
    all.sort();
    all
}

fn sql(cluster: &Cluster, statement: &str) -> String {
    let done = cluster.psql("locket", statement);
    assert!(done.status.success(), "{done:?}");
    String::from_utf8(done.stdout).unwrap().trim().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_has_expired_is_taken_over_once_and_by_one() {
    const KEYS: usize = 10;
    let cluster = Cluster::start();
    let store = cluster.database("locket");
    let servers = [server(&store).await, server(&store).await];
    let addresses = [servers[0].address, servers[1].address];
    let mut holders: Vec<String> = vec!["first".into(); KEYS];
    for (key, holder) in holders.iter().enumerate() {
        let taken = lock(addresses[key % 2], &key.to_string(), holder).await;
        assert_eq!(taken, Some(TAKEN));
    }
    for round in 0..4 {
        let winners: Arc<Vec<AtomicUsize>> =
            Arc::new((0..KEYS).map(|_| AtomicUsize::new(0)).collect());
        let mut contenders = JoinSet::new();
        for key in 0..KEYS {
            for at in addresses {
                for number in 0..3 {
                    let winners = Arc::clone(&winners);
                    let name = format!("{round}-{key}-{at}-{number}");
                    contenders.spawn(async move {
                        let mut won = Vec::new();
                        while winners[key].load(SeqCst) == 0 {
                            match lock(at, &key.to_string(), &name).await {
                                Some(TAKEN) => {
                                    winners[key].fetch_add(1, SeqCst);
                                    won.push((key, name.clone()));
                                }
                                other => assert!(
                                    matches!(other, Some(COLLISION | UNAVAILABLE)),
                                    "{other:?}"
                                ),
                            }
                        }
                        won
                    });
                }
            }
        }
        // Those of before lapse, again where a standstill of this machine gave them time anew.
        let before: Vec<String> = holders.iter().map(|holder| format!("'{holder}'")).collect();
        let lapse = format!(
            "UPDATE locket_keys SET expires = clock_timestamp() WHERE owner IN ({})",
            before.join(",")
        );
        while winners.iter().any(|winners| winners.load(SeqCst) == 0) {
            sql(&cluster, &lapse);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let mut won: Vec<(usize, String)> = Vec::new();
        while let Some(done) = contenders.join_next().await {
            won.extend(done.unwrap());
        }
        won.sort();
        assert_eq!(won.len(), KEYS, "each once: {won:?}");
        holders = won.into_iter().map(|(_, name)| name).collect();
        let keys = (0..KEYS).map(|key| key.to_string());
        let expected: Vec<_> = keys.zip(holders.iter().cloned()).collect();
        for at in addresses {
            assert_eq!(all(at).await, expected);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_has_expired_is_told_by_one() {
    let cluster = Cluster::start();
    let store = cluster.database("locket");
    let servers = [server(&store).await, server(&store).await];
    assert_eq!(lock(servers[0].address, "k", "o").await, Some(TAKEN));
    while sql(&cluster, "SELECT count(*) FROM locket_keys") != "0" {
        sql(
            &cluster,
            "UPDATE locket_keys SET expires = clock_timestamp()",
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let lines = || {
        let logs = servers.iter().map(|server| server.log.kept());
        let lines = logs.map(|log| log.matches("locket.database.expired").count());
        lines.sum::<usize>()
    };
    while lines() == 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(lines(), 1);
    assert_eq!(owner(servers[1].address, "k").await, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_expires_while_nobody_was_there_to_renew_it() {
    let cluster = Cluster::start();
    let store = cluster.database("locket");
    let server = server(&store).await;
    let at = server.address;
    assert_eq!(lock(at, "k", "o").await, Some(TAKEN));
    // As after a standstill of two hours, or when the clock is put forward.
    sql(
        &cluster,
        "BEGIN; UPDATE locket_pulse SET seen = seen - interval '2 hours';
         UPDATE locket_keys SET expires = expires - interval '2 hours'; COMMIT",
    );
    assert_eq!(lock(at, "k", "other").await, Some(COLLISION));
    assert_eq!(owner(at, "k").await.as_deref(), Some("o"));
    let left = "SELECT count(*) FROM locket_keys, locket_pulse
        WHERE expires > clock_timestamp() + interval '50 minutes'
            AND seen > clock_timestamp() - interval '1 minute'";
    while sql(&cluster, left) != "1" {
        assert_eq!(lock(at, "k", "other").await, Some(COLLISION));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(lock(at, "k", "other").await, Some(COLLISION));
    assert_eq!(lock(at, "k", "o").await, Some(TAKEN));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_held_for_longer_when_the_clock_is_put_back() {
    let cluster = Cluster::start();
    let store = cluster.database("locket");
    let server = server(&store).await;
    assert_eq!(lock(server.address, "k", "o").await, Some(TAKEN));
    sql(
        &cluster,
        "BEGIN; UPDATE locket_pulse SET seen = seen + interval '2 hours';
         UPDATE locket_keys SET expires = expires + interval '2 hours'; COMMIT",
    );
    let longer = "SELECT count(*) FROM locket_keys
        WHERE expires > clock_timestamp() + interval '1 hour'";
    for _ in 0..1500 {
        if sql(&cluster, longer) == "0" {
            assert_eq!(lock(server.address, "k", "other").await, Some(COLLISION));
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("it is held for more than its hour");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_comes_back_has_what_was_held() {
    let mut cluster = Cluster::start();
    let store = cluster.database("locket");
    let server = server(&store).await;
    let at = server.address;
    assert_eq!(lock(at, "k", "o").await, Some(TAKEN));
    cluster.crash();
    let renewing = tokio::spawn(async move {
        loop {
            match lock(at, "k", "o").await {
                Some(TAKEN) => return,
                other => assert_ne!(other, Some(COLLISION)),
            }
        }
    });
    cluster.resume();
    renewing.await.unwrap();
    assert_eq!(lock(at, "k", "other").await, Some(COLLISION));
    assert_eq!(owner(at, "k").await.as_deref(), Some("o"));
}

async fn started(store: &str) -> Process {
    let folder = tempfile::tempdir().unwrap();
    let variables = [(FOLDER, folder.path().to_str().unwrap()), (STORE, store)];
    Process::start("locket_shared::child_process", folder.path(), &variables).await
}

/// Not a test by itself: the body of the process that gets killed.
#[test]
fn child_process() {
    let (Some(folder), Ok(store)) = (std::env::var_os(FOLDER), std::env::var(STORE)) else {
        return;
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let server = server(&store).await;
        serve(Path::new(&folder), server.address).await;
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_survives_the_server_that_gave_it() {
    let cluster = Cluster::start();
    let store = cluster.database("locket");
    let steady = server(&store).await;
    let other = steady.address;
    for round in 0..3 {
        let process = started(&store).await;
        let key = |number: usize| format!("{round}-{number}");
        for number in 0..20 {
            assert_eq!(lock(process.address, &key(number), "o").await, Some(TAKEN));
        }
        drop(process);
        for number in 0..20 {
            assert_eq!(lock(other, &key(number), "thief").await, Some(COLLISION));
            assert_eq!(owner(other, &key(number)).await.as_deref(), Some("o"));
        }
        assert_eq!(lock(other, &key(0), "o").await, Some(TAKEN));
        assert_eq!(all(other).await.len(), 20 * (round + 1));
    }
}

/// Workers that take keys in turn through two servers, one of which is killed again and again. Of
/// each key one is inside at a time, whatever call got lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_is_inside_at_a_time_while_servers_are_killed() {
    const KEYS: usize = 3;
    const WORKERS: usize = 9;
    const TURNS: usize = 8;
    let seed: u64 = rand::random();
    println!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let cluster = Cluster::start();
    let store = cluster.database("locket");
    let steady = server(&store).await;
    let mut process = started(&store).await;
    let (moved, address) = watch::channel(process.address);
    let inside: Arc<Vec<AtomicUsize>> = Arc::new((0..KEYS).map(|_| AtomicUsize::new(0)).collect());
    let over = Over::default();
    let enough = Arc::new(AtomicBool::new(false));
    let mut workers = JoinSet::new();
    for worker in 0..WORKERS {
        let mut random = StdRng::seed_from_u64(random.random());
        let (inside, address) = (Arc::clone(&inside), address.clone());
        let (over, enough) = (Arc::clone(&over), Arc::clone(&enough));
        let steady = steady.address;
        workers.spawn(async move {
            for turn in 0.. {
                if turn >= TURNS && enough.load(SeqCst) {
                    break;
                }
                let name = format!("{worker}-{turn}");
                let number = random.random_range(0..KEYS);
                let key = format!("key-{number}");
                let at = |random: &mut StdRng| match random.random_bool(0.5) {
                    true => steady,
                    false => *address.borrow(),
                };
                // An answer that got lost may have been a yes: it is asked again, as the same.
                loop {
                    match lock(at(&mut random), &key, &name).await {
                        Some(TAKEN) => break,
                        Some(COLLISION) => free_of_late(steady, &key, &over).await,
                        _ => {}
                    }
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
                assert_eq!(inside[number].fetch_add(1, SeqCst), 0, "two hold {key}");
                tokio::time::sleep(Duration::from_millis(random.random_range(0..4))).await;
                assert_eq!(inside[number].fetch_sub(1, SeqCst), 1);
                // A collision: a call whose answer got lost gave it up, and it was taken since.
                while !matches!(
                    release(at(&mut random), &key, &name).await,
                    Some(TAKEN | COLLISION)
                ) {
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
                over.lock().unwrap().insert(name);
            }
        });
    }
    for _ in 0..4 {
        let wait = Duration::from_millis(random.random_range(20..200));
        tokio::time::sleep(wait).await;
        drop(process);
        process = started(&store).await;
        moved.send(process.address).unwrap();
    }
    enough.store(true, SeqCst);
    while let Some(done) = workers.join_next().await {
        done.unwrap();
    }
    for key in 0..KEYS {
        free_of_late(steady.address, &format!("key-{key}"), &over).await;
    }
    assert_eq!(all(steady.address).await, []);
}

/// Names that no worker has any more.
type Over = Arc<Mutex<HashSet<String>>>;

/// A call of a server that was killed may reach the database after its caller was done. What it
/// took would be held until it expires.
async fn free_of_late(at: SocketAddr, key: &str, over: &Over) {
    if let Some(owner) = owner(at, key).await
        && over.lock().unwrap().contains(&owner)
    {
        release(at, key, &owner).await;
    }
}
