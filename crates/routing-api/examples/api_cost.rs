//! What calls of the routing API cost: heartbeats of 1,000 TCP mappings, a list of 10,000,
//! and events to 100 subscribers.
//!
//! ```text
//! cargo run --release -p routing --example api_cost [FOLDER]
//! ```
//!
//! The SQLite file is made in FOLDER, by default in a temporary one: what a commit costs
//! depends on the disk below it.

#![allow(clippy::unwrap_used, reason = "an example may panic")]

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use routing_api::client::{ApiClient, ClientSettings};
use routing_api::model::{RouterGroup, TcpMapping};
use routing_api::{self as api, ApiSettings, Database};
use telemetry::{Level, Logger, Sink};

const GROUP: &str = "group";
const HEARTBEATS: usize = 100;
const LISTS: usize = 50;
const SUBSCRIBERS: usize = 100;
const TOLD_HEARTBEATS: usize = 10;

#[tokio::main]
async fn main() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = std::env::args_os().nth(1);
    let folder = folder.map_or(temporary.path().to_owned(), Into::into);
    let settings = ApiSettings {
        listen: Some(SocketAddr::from(([127, 0, 0, 1], 0))),
        database: Database::Sqlite(folder.join("api_cost.sqlite")),
        router_groups: vec![RouterGroup {
            guid: GROUP.into(),
            name: GROUP.into(),
            kind: "tcp".into(),
            reservable_ports: "1024-65535".into(),
        }],
        ..ApiSettings::default()
    };
    let logger = Logger::new("api", Sink::nothing(), Level::Error);
    let running = api::start(settings, logger).await.unwrap();
    let client = ApiClient::new(&ClientSettings {
        url: format!("http://{}", running.address().unwrap()),
        ..ClientSettings::default()
    })
    .unwrap();
    let mappings: Vec<_> = (2000..12_000).map(mapping).collect();

    let (wall, cpu) = spent(heartbeats(&client, &mappings[..1000], HEARTBEATS)).await;
    tell("heartbeat of 1,000 mappings", HEARTBEATS, wall, cpu);
    let rows = (HEARTBEATS * 1000) as f64;
    println!("  {:.0} upserts/s", rows / wall.as_secs_f64());

    client.upsert(&mappings).await.unwrap();
    let (wall, cpu) = spent(async {
        for _ in 0..LISTS {
            assert_eq!(client.list::<TcpMapping>().await.unwrap().len(), 10_000);
        }
    })
    .await;
    tell("list of 10,000 mappings", LISTS, wall, cpu);

    let (wall, cpu) = spent(tell_subscribers(&client, &mappings[..1000])).await;
    tell(
        "heartbeat told to 100 subscribers",
        TOLD_HEARTBEATS,
        wall,
        cpu,
    );
    let events = (TOLD_HEARTBEATS * 1000 * SUBSCRIBERS) as f64;
    println!("  {:.0} events/s", events / wall.as_secs_f64());
    running.stop().await.unwrap();
}

fn mapping(port: u16) -> TcpMapping {
    TcpMapping {
        router_group_guid: GROUP.into(),
        port,
        backend_ip: "10.0.0.1".into(),
        backend_port: 8080,
        instance_id: "6b8a3c5e-2f0d-4d0f-9d5a-0123456789ab".into(),
        ..TcpMapping::default()
    }
}

async fn heartbeats(client: &ApiClient, mappings: &[TcpMapping], times: usize) {
    for _ in 0..times {
        client.upsert(mappings).await.unwrap();
    }
}

/// Each heartbeat is read by everybody before the next begins.
async fn tell_subscribers(client: &ApiClient, mappings: &[TcpMapping]) {
    let mut streams = Vec::new();
    for _ in 0..SUBSCRIBERS {
        streams.push(client.events::<TcpMapping>().await.unwrap());
    }
    for _ in 0..TOLD_HEARTBEATS {
        let count = mappings.len();
        let mut readers = tokio::task::JoinSet::new();
        for mut stream in streams.drain(..) {
            readers.spawn(async move {
                for _ in 0..count {
                    stream.next().await.unwrap();
                }
                stream
            });
        }
        client.upsert(mappings).await.unwrap();
        streams.extend(readers.join_all().await);
    }
}

/// Wall time, and processor time of server and client together.
async fn spent(work: impl Future<Output = ()>) -> (Duration, Duration) {
    let (start, before) = (Instant::now(), process_cpu());
    work.await;
    (start.elapsed(), process_cpu().saturating_sub(before))
}

fn process_cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn tell(what: &str, times: usize, wall: Duration, cpu: Duration) {
    let each = |of: Duration| of.as_secs_f64() * 1e3 / times as f64;
    let (wall, cpu) = (each(wall), each(cpu));
    println!("{what}: {wall:.2} ms, {cpu:.2} ms of processor time (server and client)");
}
