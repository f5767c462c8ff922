//! What a registration costs: `cargo run --release -p routing --example registration_cost`.
//!
//! First on one thread, from the bytes of NATS to the table. Then the whole way over a
//! nats-server (or, without one, our own endpoint): from the first message that is
//! published until every route answers a lookup.

use std::error::Error;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nats::client::{Client, ClientConfig, QueueLimits};
use nats::codec::{Frame, Limits, Scanner, encode};
use nats::server::{Server, ServerConfig};
use routing::registry::message::Message;
use routing::registry::{Announcement, Feed, FeedSettings, Intake, MESSAGES, RegistryCounters};
use routing::table::{Lookup, Table, TableSettings};
use telemetry::{Level, Logger, Sink};

const ROUTES: usize = 100_000;

fn main() -> Result<(), Box<dyn Error>> {
    let messages: Vec<String> = (0..ROUTES).map(registration).collect();
    println!(
        "{ROUTES} routes; a message has {} bytes",
        messages[ROUTES / 2].len()
    );
    on_one_thread(&messages);
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(whole_way(&messages))
}

/// As route-emitter sends it.
fn registration(number: usize) -> String {
    format!(
        r#"{{"host":"10.0.{}.{}","port":{},"tls_port":{},"uris":["app-{number}.example.com"],"app":"6c2f84c0-4b1e-4b0e-9d0b-{number:012}","private_instance_id":"0c1b8b1e-6a1c-4f7a-7c5e-{number:012}","private_instance_index":"0","server_cert_domain_san":"0c1b8b1e-6a1c-4f7a-7c5e-{number:012}","tags":{{"app_id":"6c2f84c0-4b1e-4b0e-9d0b-{number:012}","component":"route-emitter","source_id":"6c2f84c0-4b1e-4b0e-9d0b-{number:012}"}},"availability_zone":"z1","endpoint_updated_at_ns":1763742000000000000,"options":{{}}}}"#,
        number / 250 % 250,
        number % 250,
        1024 + number % 60_000,
        1025 + number % 60_000,
    )
}

fn on_one_thread(messages: &[String]) {
    let mut stream = bytes::BytesMut::new();
    for message in messages {
        encode::publish(&mut stream, b"router.register", b"", message.as_bytes());
    }
    let table = Arc::new(Table::new(TableSettings::default()));
    let counters = Arc::new(RegistryCounters::default());
    let logger = Logger::new("registry", Sink::nothing(), Level::Info);
    let mut intake = Intake::new(Arc::clone(&table), counters, true, u64::MAX, logger);
    let parse = best(|| {
        for message in messages {
            std::hint::black_box(Message::parse(message.as_bytes()).is_ok());
        }
    });
    let start = wire::clock::thread_cpu();
    feed(&stream, &mut intake);
    let first = wire::clock::thread_cpu() - start;
    let again = best(|| feed(&stream, &mut intake));
    assert_eq!(table.len(), messages.len());
    for (what, cost) in [
        ("parse alone", parse),
        ("first registration: codec, parse, table", first),
        ("unchanged heartbeat: codec, parse, table", again),
    ] {
        println!("{what:42}{:7} ns", cost.as_nanos() / messages.len() as u128);
    }
}

/// Bytes as a client of NATS reads them, in pieces of 256 KiB.
fn feed(stream: &[u8], intake: &mut Intake) {
    let mut scanner = Scanner::new(Limits::default());
    let (mut start, mut end) = (0, 0);
    let mut found = Vec::new();
    while end < stream.len() {
        end = stream.len().min(end + 256 * 1024);
        while let Ok(Some(scanned)) = scanner.scan(&stream[start..end]) {
            start += scanned.consumed;
            if let Frame::Pub(message) = scanned.frame {
                found.push((message.subject, message.payload));
            }
        }
        intake.take(found.drain(..), wire::clock::now());
    }
}

/// The least CPU time of several rounds, which other load disturbs least.
fn best(mut call: impl FnMut()) -> Duration {
    let round = |_| {
        let start = wire::clock::thread_cpu();
        call();
        wire::clock::thread_cpu() - start
    };
    (0..7).map(round).min().unwrap_or_default()
}

async fn whole_way(messages: &[String]) -> Result<(), Box<dyn Error>> {
    let own = Server::start(ServerConfig {
        listen: "127.0.0.1:0".parse()?,
        ..ServerConfig::default()
    })
    .await?;
    let address = own.address().to_string();
    register("our endpoint", &address, None, messages).await?;
    register("it, embedded", &address, Some(&own), messages).await?;
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
    match child {
        Ok(child) => {
            let _child = Killed(child);
            register("nats-server", &free.to_string(), None, messages).await
        }
        Err(_) => {
            println!("nats-server is not installed: left out");
            Ok(())
        }
    }
}

/// From the first message until every route answers, five times. `embedded`: the feed is in
/// the server's own process.
async fn register(
    name: &str,
    server: &str,
    embedded: Option<&Server>,
    messages: &[String],
) -> Result<(), Box<dyn Error>> {
    let config = ClientConfig {
        servers: vec![server.parse()?],
        attempts: 50,
        outgoing_bytes: 128 * 1024 * 1024,
        ..ClientConfig::default()
    };
    let publisher = Client::connect(config.clone()).await?;
    let mut times = Vec::new();
    for _ in 0..5 {
        let table = Arc::new(Table::new(TableSettings::default()));
        let settings = FeedSettings {
            announcement: Announcement {
                id: "0-cost".to_owned(),
                address: [127, 0, 0, 1].into(),
                minimum_interval: Duration::from_secs(20),
                threshold: Duration::from_secs(120),
            },
            http2: true,
            prune_interval: Duration::from_secs(30),
            suspend_pruning: true,
            latency_muzzle: Duration::from_secs(20),
        };
        let client = Client::connect(config.clone()).await?;
        let logger = Logger::new("registry", Sink::nothing(), Level::Info);
        let (table_of_feed, counters) = (Arc::clone(&table), Arc::default());
        let limits = QueueLimits::default();
        let heard = match embedded {
            Some(server) => server.subscribe(MESSAGES, limits)?,
            None => client.subscribe(MESSAGES, limits)?,
        };
        let feed = Feed::start(
            client.clone(),
            heard,
            table_of_feed,
            settings,
            counters,
            logger,
        )?;
        client.flush().await?;
        let start = Instant::now();
        for message in messages {
            publisher.publish(b"router.register", message.as_bytes())?;
        }
        while table.len() < messages.len() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        for number in 0..messages.len() {
            let host = format!("app-{number}.example.com");
            if !matches!(table.lookup(host.as_bytes(), b"/"), Lookup::Found(_)) {
                return Err(format!("{host} does not answer").into());
            }
        }
        times.push(start.elapsed());
        let dropped = feed.stats().dropped_messages;
        if dropped > 0 {
            return Err(format!("{dropped} messages were dropped").into());
        }
    }
    times.sort();
    println!(
        "whole way over {name:12} until all answer {:7.0} ms (median of 5; best {:.0}, worst {:.0})",
        times[2].as_secs_f64() * 1e3,
        times[0].as_secs_f64() * 1e3,
        times[4].as_secs_f64() * 1e3,
    );
    Ok(())
}

/// A process that ends with this value.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
