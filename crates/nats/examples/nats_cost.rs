//! What a message costs on its way through a server and our client:
//! `cargo run --release -p nats --example nats_cost`.
//!
//! A publisher sends registrations of routes as fast as it can; a subscriber takes them.
//! CPU time is that of the threads of each part, wall time that of the whole way. With
//! nats-server in another process, its CPU time is read from `/proc`.

use std::error::Error;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nats::client::{Client, ClientConfig, QueueLimits, Subscription};
use nats::server::{Server, ServerConfig};
use tokio::runtime::Runtime;

const SIZES: [u64; 2] = [100_000, 1_000_000];

/// Bytes of a message: as many as in a registration that route-emitter sends. The server
/// does not look at them.
const BYTES: usize = 426;

fn main() -> Result<(), Box<dyn Error>> {
    println!("a message has {BYTES} bytes; CPU and wall in ns a message");
    println!("server        messages   publisher   server   subscriber   wall");
    for count in SIZES {
        ours(count)?;
        theirs(count)?;
    }
    Ok(())
}

/// A runtime of one thread, so that its CPU time can be told from that of others.
fn runtime(name: &str) -> std::io::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name(name)
        .enable_all()
        .build()
}

fn ours(count: u64) -> Result<(), Box<dyn Error>> {
    let serving = runtime("server")?;
    let config = ServerConfig {
        listen: "127.0.0.1:0".parse()?,
        ..ServerConfig::default()
    };
    let server = serving.block_on(Server::start(config))?;
    let costs = through(count, &server.address().to_string(), || threads("server"))?;
    report("ours", count, costs);
    serving.block_on(server.stop());
    Ok(())
}

fn theirs(count: u64) -> Result<(), Box<dyn Error>> {
    let free = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let debian = "/usr/sbin/nats-server";
    let program = if std::path::Path::new(debian).exists() {
        debian
    } else {
        "nats-server"
    };
    let child = Command::new(program)
        .args(["--addr", "127.0.0.1", "--port", &free.port().to_string()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(child) = child else {
        println!("nats-server is not installed: left out");
        return Ok(());
    };
    let child = Killed(child);
    let folder = format!("/proc/{}/task", child.0.id());
    let costs = through(count, &free.to_string(), || cpu(&folder, None))?;
    report("nats-server", count, costs);
    Ok(())
}

/// Publisher, server, subscriber and wall.
fn through(
    count: u64,
    server: &str,
    server_cpu: impl Fn() -> Duration,
) -> Result<[Duration; 4], Box<dyn Error>> {
    let (publishing, subscribing) = (runtime("publisher")?, runtime("subscriber")?);
    let config = ClientConfig {
        servers: vec![server.parse()?],
        attempts: 50,
        ..ClientConfig::default()
    };
    let publisher = publishing.block_on(Client::connect(config.clone()))?;
    let subscriber = subscribing.block_on(Client::connect(config))?;
    // Whoever is slower here is measured, and nothing is dropped.
    let limits = QueueLimits {
        messages: usize::MAX,
        bytes: usize::MAX,
    };
    let subscription = subscriber.subscribe("router.*", limits)?;
    subscribing.block_on(subscriber.flush())?;
    let read = || [threads("publisher"), server_cpu(), threads("subscriber")];
    let (before, start) = (read(), Instant::now());
    let taking = subscribing.spawn(take(subscription, count));
    let published = publishing.spawn(async move {
        for _ in 0..count {
            publisher
                .publish_when_room(b"router.register", &[b'x'; BYTES])
                .await?;
        }
        Ok::<_, nats::client::PublishError>(publisher)
    });
    let bytes = subscribing.block_on(taking)?;
    let wall = start.elapsed();
    let after = read();
    drop(publishing.block_on(published)??);
    if bytes != count * BYTES as u64 {
        return Err(format!("{bytes} bytes of {count} messages came").into());
    }
    let [one, two, three] = [0, 1, 2].map(|at| after[at].saturating_sub(before[at]));
    Ok([one, two, three, wall])
}

/// Bytes of all payloads.
async fn take(mut subscription: Subscription, count: u64) -> u64 {
    let (mut messages, mut bytes) = (0, 0);
    while messages < count {
        let Some(batch) = subscription.next().await else {
            break;
        };
        messages += batch.len() as u64;
        bytes += batch
            .iter()
            .map(|message| message.payload.len() as u64)
            .sum::<u64>();
    }
    bytes
}

fn report(name: &str, count: u64, costs: [Duration; 4]) {
    let [publisher, server, subscriber, wall] = costs.map(|cost| cost.as_nanos() as u64 / count);
    println!("{name:12}{count:>10}{publisher:>12}{server:>9}{subscriber:>13}{wall:>7}");
}

/// CPU time of the threads of this process that have this name.
fn threads(name: &str) -> Duration {
    cpu("/proc/self/task", Some(name))
}

/// CPU time of threads; those that ended are left out.
fn cpu(folder: &str, name: Option<&str>) -> Duration {
    let read = |path: std::path::PathBuf| std::fs::read_to_string(path).unwrap_or_default();
    let tasks = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let nanoseconds = tasks
        .map(|task| task.path())
        .filter(|task| name.is_none_or(|name| read(task.join("comm")).trim() == name))
        .filter_map(|task| {
            read(task.join("schedstat"))
                .split(' ')
                .next()?
                .parse::<u64>()
                .ok()
        })
        .sum();
    Duration::from_nanos(nanoseconds)
}

/// A process that ends with this value.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
