//! What a message costs on its way through a server and a client, ours or async-nats:
//! `cargo run --release -p nats --example nats_cost`.
//!
//! A publisher sends registrations of routes as fast as it can; a subscriber takes them.
//! CPU time is that of the threads of each part, wall time that of the whole way. With
//! nats-server in another process, its CPU time is read from `/proc`. Clients take turns,
//! so that other load disturbs both alike.

use std::error::Error;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use nats::client::{Client, ClientConfig, QueueLimits, Subscription};
use nats::server::{Server, ServerConfig};
use tokio::runtime::Runtime;

const SIZES: [u64; 2] = [100_000, 1_000_000];

/// Times that each is measured; medians are shown.
const ROUNDS: usize = 5;

/// Bytes of a message: as many as in a registration that route-emitter sends. The server
/// does not look at them.
const BYTES: usize = 426;

/// Publisher, server, subscriber and wall.
type Costs = [Duration; 4];

/// Whose client subscribes.
#[derive(Debug, Clone, Copy)]
enum Subscriber {
    Ours,
    AsyncNats,
}

fn main() -> Result<(), Box<dyn Error>> {
    println!("a message has {BYTES} bytes; CPU and wall in ns a message, medians of {ROUNDS}");
    println!("server      client       messages   publisher   server   subscriber   wall");
    for count in SIZES {
        for (name, measure) in [
            ("ours", ours as fn(u64, Subscriber) -> Result<Costs, _>),
            ("nats-server", theirs),
        ] {
            let clients = [Subscriber::Ours, Subscriber::AsyncNats];
            let mut costs = [Vec::new(), Vec::new()];
            for _ in 0..ROUNDS {
                for (client, costs) in clients.iter().zip(&mut costs) {
                    costs.push(measure(count, *client)?);
                }
            }
            for (client, costs) in clients.iter().zip(&costs) {
                report(name, *client, count, costs);
            }
        }
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

fn ours(count: u64, client: Subscriber) -> Result<Costs, Box<dyn Error>> {
    let serving = runtime("server")?;
    let config = ServerConfig {
        listen: "127.0.0.1:0".parse()?,
        ..ServerConfig::default()
    };
    let server = serving.block_on(Server::start(config))?;
    let address = server.address().to_string();
    let costs = through(count, client, &address, || threads("server"))?;
    serving.block_on(server.stop());
    Ok(costs)
}

fn theirs(count: u64, client: Subscriber) -> Result<Costs, Box<dyn Error>> {
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
        .spawn()
        .map_err(|error| format!("start nats-server: {error}"))?;
    let child = Killed(child);
    let folder = format!("/proc/{}/task", child.0.id());
    through(count, client, &free.to_string(), || cpu(&folder, None))
}

fn through(
    count: u64,
    client: Subscriber,
    server: &str,
    server_cpu: impl Fn() -> Duration,
) -> Result<Costs, Box<dyn Error>> {
    let (publishing, subscribing) = (runtime("publisher")?, runtime("subscriber")?);
    let config = ClientConfig {
        servers: vec![server.parse()?],
        attempts: 50,
        ..ClientConfig::default()
    };
    let publisher = publishing.block_on(Client::connect(config.clone()))?;
    let read = || [threads("publisher"), server_cpu(), threads("subscriber")];
    // Whoever is slower here is measured, and nothing is dropped.
    let (before, start, taking) = match client {
        Subscriber::Ours => {
            let subscriber = subscribing.block_on(Client::connect(config))?;
            let limits = QueueLimits {
                messages: usize::MAX,
                bytes: usize::MAX,
            };
            let subscription = subscriber.subscribe("router.*", limits)?;
            subscribing.block_on(subscriber.flush())?;
            let (before, start) = (read(), Instant::now());
            (before, start, subscribing.spawn(take(subscription, count)))
        }
        Subscriber::AsyncNats => {
            let capacity = usize::try_from(count)?;
            let subscription = subscribing.block_on(async {
                let options = async_nats::ConnectOptions::new().subscription_capacity(capacity);
                let subscriber = options.connect(server).await?;
                let subscription = subscriber.subscribe("router.*").await?;
                subscriber.flush().await?;
                Ok::<_, Box<dyn Error>>(subscription)
            })?;
            let (before, start) = (read(), Instant::now());
            let taking = subscribing.spawn(take_theirs(subscription, count));
            (before, start, taking)
        }
    };
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

/// Bytes of all payloads.
async fn take_theirs(mut subscription: async_nats::Subscriber, count: u64) -> u64 {
    let mut bytes = 0;
    for _ in 0..count {
        let Some(message) = subscription.next().await else {
            break;
        };
        bytes += message.payload.len() as u64;
    }
    bytes
}

fn report(server: &str, client: Subscriber, count: u64, costs: &[Costs]) {
    let [publisher, server_cpu, subscriber, wall] = [0, 1, 2, 3].map(|at| {
        let mut of: Vec<_> = costs.iter().map(|costs| costs[at]).collect();
        of.sort();
        of[of.len() / 2].as_nanos() as u64 / count
    });
    let client = format!("{client:?}");
    println!(
        "{server:12}{client:11}{count:>10}{publisher:>12}{server_cpu:>9}{subscriber:>13}{wall:>7}"
    );
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
