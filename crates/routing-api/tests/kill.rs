//! Kills a routing API under load, over and over: what it had confirmed is still there.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::running_api::{Api, client, mapping, settings, sqlite};
use routing_api::client::ApiClient;
use routing_api::model::TcpMapping;

const FOLDER: &str = "API_KILL_FOLDER";
const ROUNDS: u16 = 12;
const WORKERS: u16 = 8;

/// Not a test by itself: the body of the process that gets killed.
#[test]
fn child_process() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let folder = Path::new(&folder);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let api = Api::start(&settings(sqlite(folder))).await;
        let temporary = folder.join("address.new");
        std::fs::write(&temporary, &api.url).unwrap();
        std::fs::rename(temporary, folder.join("address")).unwrap();
        std::future::pending::<()>().await;
    });
}

/// This test process again, as a routing API on `folder`.
struct Process(Child);

impl Process {
    async fn start(folder: &Path) -> (Self, ApiClient) {
        let address = folder.join("address");
        let _ = std::fs::remove_file(&address);
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "kill::child_process", "--nocapture"])
            .env(FOLDER, folder)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let process = Self(child);
        for _ in 0..6000 {
            if let Ok(url) = std::fs::read_to_string(&address) {
                return (process, client(&url));
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the child does not start");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // SIGKILL: it gets no chance to write anything.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Confirmed upserts of each port: the index that its row has at least, and one more if
/// the last call arrived after all.
type Confirmed = BTreeMap<u16, u32>;

async fn work(client: ApiClient, port: u16) -> (u16, u32) {
    let mut confirmed = 0;
    while client.upsert(&[mapping(port)]).await.is_ok() {
        confirmed += 1;
    }
    (port, confirmed)
}

async fn check(client: &ApiClient, confirmed: &mut Confirmed) {
    let rows = client.list::<TcpMapping>().await.unwrap();
    let mut seen: BTreeMap<u16, u32> = rows
        .iter()
        .map(|row| (row.port, row.modification_tag.index + 1))
        .collect();
    for (port, upserts) in confirmed.iter_mut() {
        let seen = seen.remove(port).unwrap_or(0);
        assert!(
            seen == *upserts || seen == *upserts + 1,
            "port {port}: {upserts} upserts were confirmed, {seen} are there"
        );
        *upserts = seen;
    }
    assert!(seen.is_empty(), "rows from nowhere: {seen:?}");
}

#[tokio::test]
async fn confirmed_rows_survive_kills() {
    let folder = tempfile::tempdir().unwrap();
    let mut confirmed = Confirmed::new();
    for round in 0..ROUNDS {
        let (process, client) = Process::start(folder.path()).await;
        check(&client, &mut confirmed).await;
        let mut workers = tokio::task::JoinSet::new();
        for worker in 0..WORKERS {
            // Half of the ports are new in each round.
            let port = if worker % 2 == 0 {
                3000 + worker
            } else {
                4000 + round * WORKERS + worker
            };
            workers.spawn(work(client.clone(), port));
        }
        tokio::time::sleep(Duration::from_millis(30 + u64::from(round) * 7)).await;
        drop(process);
        while let Some(done) = workers.join_next().await {
            let (port, more) = done.unwrap();
            *confirmed.entry(port).or_default() += more;
        }
    }
    let (_process, client) = Process::start(folder.path()).await;
    check(&client, &mut confirmed).await;
    let all: u32 = confirmed.values().sum();
    assert!(
        all > u32::from(ROUNDS),
        "only {all} calls were confirmed: no load"
    );
}
