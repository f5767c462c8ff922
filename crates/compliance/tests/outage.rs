//! The database goes away and comes back while nodes upload: what was answered with success is there
//! once, what was not is taken when it comes again, and what is read from memory goes on.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use compliance::server::{self, Config, Error, PostgresSettings};
use http::Method;
use tokio::sync::Mutex;

use crate::peers::{Node, REPORT, config, logger, metric, until, url};
use crate::postgres_cluster::Cluster;

const NODES: usize = 6;
const FIRST: i64 = 1_780_000_000;

fn on(folder: &Path, store: &str) -> Config {
    Config {
        postgres: Some(PostgresSettings::at(store).unwrap()),
        ..config(folder)
    }
}

/// What a node was answered for each of its runs: the second, and whether it was kept.
type Answers = Vec<(usize, i64, bool)>;

/// Uploads without end until `stop`.
async fn upload(
    node: Node,
    number: usize,
    round: i64,
    stop: Arc<AtomicBool>,
    told: Arc<Mutex<Answers>>,
) {
    let mut run = 0;
    while !stop.load(Relaxed) {
        let second = FIRST + round * 100_000 + run;
        run += 1;
        let message = node.signed(node.log(second, "c", &[REPORT]).as_bytes());
        let path = node.path(second);
        // The server is there all the time: it always answers.
        let sent = node.request(Method::PUT, &path, &[], message).await;
        let status = sent.unwrap().status.as_u16();
        assert!(matches!(status, 201 | 503), "{status}");
        told.lock().await.push((number, second, status == 201));
        if status == 503 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_of_postgresql_refuses_and_loses_nothing_and_reads_go_on() {
    let mut cluster = Cluster::start();
    let store = cluster.database("compliance");
    let folder = tempfile::tempdir().unwrap();
    let running = server::start(on(folder.path(), &store), logger())
        .await
        .unwrap();
    let at = url(&running);
    let mut nodes = Vec::new();
    for number in 0..NODES {
        let node = Node::new(&format!("00000000-0000-4000-8000-{number:012}"), &at);
        assert_eq!(node.enrol().await, 201);
        nodes.push(node);
    }
    let again = |node: &Node, at: &str| Node::with(&node.id, node.identity.clone(), at);
    let told = Arc::new(Mutex::new(Answers::new()));
    let kept = async || told.lock().await.iter().filter(|(.., kept)| *kept).count();
    for round in 0..3 {
        let stop = Arc::new(AtomicBool::new(false));
        let mut uploads = tokio::task::JoinSet::new();
        for (number, node) in nodes.iter().enumerate() {
            let (stop, told) = (Arc::clone(&stop), Arc::clone(&told));
            uploads.spawn(upload(again(node, &at), number, round, stop, told));
        }
        let before = kept().await;
        until(async || kept().await > before + 30, "uploads").await;
        cluster.kill();
        let first = &nodes[0];
        if round > 0 {
            let away = async || metric(first, "compliance_store_up").await == "0";
            until(away, "the loss to be seen").await;
            // What is in memory goes on being read, and what is not is said to be away.
            let token = std::fs::read_to_string(folder.path().join("api-token")).unwrap();
            let token = [("x-api-token", &*token)];
            let (status, _) = first.get("/rudder/api/latest/compliance", &token).await;
            assert_eq!(status, 200);
            assert!(!first.policy().await.0.is_empty());
            let refused = async || {
                let second = FIRST - 5;
                let message = first.signed(first.log(second, "c", &[REPORT]).as_bytes());
                first.put(&first.path(second), message).await == 503
            };
            until(refused, "an upload to be refused").await;
            let history = "/rudder/api/latest/compliance/history";
            assert_eq!(first.get(history, &token).await.0, 503);
        }
        cluster.resume();
        let after = kept().await;
        until(
            async || kept().await > after + 30,
            "uploads to be taken again",
        )
        .await;
        stop.store(true, Relaxed);
        while let Some(ended) = uploads.join_next().await {
            ended.unwrap();
        }
        assert_eq!(metric(first, "compliance_store_up").await, "1");
    }
    // The one that was sent until it was refused may have been kept all the same.
    let probe = nodes[0].run(FIRST - 5, "c", &[REPORT]).await;
    assert!(matches!(probe, 200 | 201), "{probe}");
    let told = told.lock().await.clone();
    for (number, second, kept) in &told {
        let status = nodes[*number].run(*second, "c", &[REPORT]).await;
        match kept {
            true => assert_eq!(status, 200, "the run of {second} is lost"),
            // It may have been kept all the same.
            false => assert!(matches!(status, 200 | 201), "{status}"),
        }
    }
    // Each is there once, and compliance is what it was in the next server.
    let token = std::fs::read_to_string(folder.path().join("api-token")).unwrap();
    let seen = async |at: &str| {
        let (node, token) = (again(&nodes[0], at), [("x-api-token", &*token)]);
        let (_, stored) = node.get("/rudder/api/latest/system/store", &token).await;
        let stored: serde_json::Value = serde_json::from_str(&stored).unwrap();
        let path = "/rudder/api/latest/nodes/compliance?level=6";
        let (status, compliance) = node.get(path, &token).await;
        assert_eq!(status, 200, "{compliance}");
        let (_, metrics) = node.get("/metrics", &[]).await;
        let nodes = metrics
            .lines()
            .find(|line| line.starts_with("rudder_relayd_managed"));
        (stored, compliance, nodes.map(str::to_owned))
    };
    let before = seen(&at).await;
    assert_eq!(before.0["data"]["runs"], told.len() + 1);
    running.stop().await.unwrap();
    let running = server::start(on(folder.path(), &store), logger())
        .await
        .unwrap();
    assert_eq!(seen(&url(&running)).await, before);
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_has_one_server_and_who_is_displaced_ends() {
    let cluster = Cluster::start();
    let store = cluster.database("compliance");
    let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let (_ask, shutdown) = net::shutdown();
    let config = on(folders[0].path(), &store);
    let first = tokio::spawn(server::run(config, logger(), shutdown));
    let address = folders[0].path().join("address");
    until(async || address.exists(), "the first server").await;
    let config = on(folders[1].path(), &store);
    let second = tokio::spawn(server::start(config, logger()));
    // The first may be back before the other has seen its chance.
    let end = "SELECT pg_terminate_backend(pid) FROM pg_locks
        WHERE locktype = 'advisory' AND granted";
    while !second.is_finished() {
        assert!(cluster.psql("compliance", end).status.success());
        tokio::time::sleep(Duration::from_millis(400)).await;
    }
    let second = second.await.unwrap().unwrap();
    let ended = first.await.unwrap().unwrap_err();
    assert!(matches!(ended, Error::Displaced), "{ended}");
    let node = Node::new("00000000-0000-4000-8000-000000000001", &url(&second));
    assert_eq!(node.enrol().await, 201);
    second.stop().await.unwrap();
}
