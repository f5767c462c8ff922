//! Kills a relay while nodes upload, over and over: every run that it answered reaches the server.

use std::ffi::OsStr;

use super::*;
use crate::killed::{Answered, FIRST, Process, upload};

const FOLDER: &str = "COMPLIANCE_RELAY_FOLDER";
const UPSTREAM: &str = "COMPLIANCE_RELAY_UPSTREAM";
const ROUNDS: i64 = 8;
const NODES: usize = 6;

/// This test program again, as a relay on `folder`.
async fn relay_process(folder: &Path, upstream: &str) -> Process {
    let envs = [
        (FOLDER, folder.as_os_str()),
        (UPSTREAM, OsStr::new(upstream)),
    ];
    let address = folder.join("relay/address");
    Process::of("relays::killed::child_process", envs, &address).await
}

/// What the child does; nothing when tests run.
#[tokio::test(flavor = "multi_thread")]
async fn child_process() {
    let (Some(folder), Ok(upstream)) = (std::env::var_os(FOLDER), std::env::var(UPSTREAM)) else {
        return;
    };
    let (_ask, shutdown) = net::shutdown();
    let config = relay_config(Path::new(&folder), &upstream);
    relay::run(config, logger(), shutdown).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_a_relay_answered_is_lost() {
    let (folder, relay_folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = server::start(config(folder.path()), logger())
        .await
        .unwrap();
    let upstream = url(&server);
    let admin = Admin::of(folder.path(), &upstream).await;
    let mut process = relay_process(relay_folder.path(), &upstream).await;
    let relay = as_peer(relay_folder.path(), &upstream).id;
    promote(&admin, &relay).await;
    let mut nodes = Vec::new();
    for number in 0..NODES {
        let id = format!("00000000-0000-4000-8000-{number:012}");
        let node = Node::new(&id, &process.url);
        assert_eq!(node.enrol_behind(&relay).await, 201);
        until(async || fetched(&node, &id).await == 200, "a policy").await;
        nodes.push(node);
    }
    let mut answered: Vec<(usize, i64)> = Vec::new();
    for round in 0..ROUNDS {
        let told = Answered::default();
        let mut uploads = upload(&nodes, &process.url, FIRST + round * 100_000, &told);
        // At other moments of its work each time.
        let wanted = 10 + usize::try_from(round).unwrap() * 5;
        until(async || told.lock().await.len() >= wanted, "uploads").await;
        process.kill();
        while let Some(ended) = uploads.join_next().await {
            ended.unwrap();
        }
        answered.extend(told.lock().await.iter());
        process = relay_process(relay_folder.path(), &upstream).await;
    }
    let peer = as_peer(relay_folder.path(), &process.url);
    let drained = async || metric(&peer, "compliance_relay_spool_items").await == "0";
    until(drained, "the spool to be empty").await;
    assert_eq!(metric(&peer, &reports("forward_error")).await, "0");
    for (number, second) in &answered {
        let node = &nodes[*number];
        let direct = Node::with(&node.id, node.identity.clone(), &upstream);
        let status = direct.run(*second, "c", &[REPORT]).await;
        assert_eq!(status, 200, "the run of {second} is lost");
    }
    // Each counted once; what was not answered may be there too.
    let store = admin.get("system/store").await;
    assert!(store["runs"].as_u64().unwrap() >= answered.len() as u64);
    process.kill();
    server.stop().await.unwrap();
}
