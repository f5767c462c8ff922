//! Kills a server while nodes upload, over and over: every run that it answered is known to the
//! next.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::task::JoinSet;

use crate::peers::{Node, REPORT, config, logger, until};
use crate::postgres_cluster::Cluster;

const FOLDER: &str = "COMPLIANCE_KILL_FOLDER";
/// The address of PostgreSQL, where that is the store.
const STORE: &str = "COMPLIANCE_KILL_STORE";
const ROUNDS: i64 = 12;
const NODES: usize = 8;
pub(crate) const FIRST: i64 = 1_780_000_000;

/// This test program again, as what one of its tests makes of it.
pub(crate) struct Process {
    child: Child,
    pub(crate) url: String,
}

impl Process {
    /// A server on `folder`.
    pub(crate) async fn start(folder: &Path) -> Self {
        Self::on(folder, None).await
    }

    pub(crate) async fn on(folder: &Path, store: Option<&str>) -> Self {
        let envs = store.map(|store| (STORE, OsStr::new(store)));
        let envs = envs.into_iter().chain([(FOLDER, folder.as_os_str())]);
        Self::of("killed::child_process", envs, &folder.join("address")).await
    }

    /// What this test starts, with these variables, once it has written where it listens.
    pub(crate) async fn of<'a>(
        test: &str,
        envs: impl IntoIterator<Item = (&'a str, &'a OsStr)>,
        address: &Path,
    ) -> Self {
        let _ = std::fs::remove_file(address);
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .envs(envs)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let told = || std::fs::read_to_string(address).unwrap_or_default();
        until(async || !told().is_empty(), "the process to start").await;
        Self { child, url: told() }
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// What the child does; nothing when tests run.
#[tokio::test(flavor = "multi_thread")]
async fn child_process() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let (_ask, shutdown) = net::shutdown();
    let config = compliance::server::Config {
        // As often as the clock ticks.
        history_every: Duration::ZERO,
        postgres: std::env::var(STORE)
            .ok()
            .map(|store| compliance::server::PostgresSettings::at(&store).unwrap()),
        ..config(Path::new(&folder))
    };
    compliance::server::run(config, logger(), shutdown)
        .await
        .unwrap();
}

/// Runs that were answered: the place of the node, and the second of the start.
pub(crate) type Answered = Arc<Mutex<Vec<(usize, i64)>>>;

/// Uploads runs of nodes, of this second and later ones, until nobody is there any more.
pub(crate) fn upload(nodes: &[Node], url: &str, first: i64, told: &Answered) -> JoinSet<()> {
    let mut uploads = JoinSet::new();
    for (number, node) in nodes.iter().enumerate() {
        let node = Node::with(&node.id, node.identity.clone(), url);
        let told = Arc::clone(told);
        uploads.spawn(async move {
            for second in first.. {
                let message = node.signed(node.log(second, "c", &[REPORT]).as_bytes());
                let path = node.path(second);
                match node.request(http::Method::PUT, &path, &[], message).await {
                    Ok(answer) if answer.status == 201 => {
                        told.lock().await.push((number, second));
                    }
                    Ok(answer) => panic!("{}: {:?}", answer.status, answer.body),
                    Err(_) => return,
                }
            }
        });
    }
    uploads
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_was_answered_is_lost() {
    survive_kills(None, ROUNDS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_was_answered_is_lost_in_postgresql() {
    let cluster = Cluster::start();
    let store = cluster.database("compliance");
    survive_kills(Some(&store), ROUNDS / 2).await;
}

async fn survive_kills(store: Option<&str>, rounds: i64) {
    let folder = tempfile::tempdir().unwrap();
    let mut process = Process::on(folder.path(), store).await;
    let mut nodes = Vec::new();
    for number in 0..NODES {
        let id = format!("00000000-0000-4000-8000-{number:012}");
        let node = Node::new(&id, &process.url);
        assert_eq!(node.enrol().await, 201);
        nodes.push(node);
    }
    let mut answered: Vec<(usize, i64)> = Vec::new();
    for round in 0..rounds {
        let told = Answered::default();
        let mut uploads = upload(&nodes, &process.url, FIRST + round * 100_000, &told);
        // At other moments of its work each time.
        while told.lock().await.len() < 20 + usize::try_from(round).unwrap() * 7 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        process.kill();
        while let Some(ended) = uploads.join_next().await {
            ended.unwrap();
        }
        answered.extend(told.lock().await.iter());
        process = Process::on(folder.path(), store).await;
        for node in &mut nodes {
            *node = Node::with(&node.id, node.identity.clone(), &process.url);
        }
        // Known: not taken as new. What was not answered may be either.
        for (number, second) in &answered {
            let node = &nodes[*number];
            let status = node.run(*second, "c", &[REPORT]).await;
            assert_eq!(status, 200, "round {round}: the run of {second} is lost");
        }
    }
    let never = nodes[0].run(FIRST - 1, "c", &[REPORT]).await;
    assert_eq!(never, 201, "one that was never sent is new");
    process.kill();
}
