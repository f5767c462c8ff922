//! Registrations over a real nats-server, its absence, and the registrar.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use nats::client::{Client, ClientConfig, QueueLimits, Subscription};
use nats::server::{Server, ServerConfig};
use routing::registry::populate::Progress;
use routing::registry::{
    Announcement, Feed, FeedSettings, MESSAGES, PopulateSettings, RegistryCounters, file, populate,
};
use routing::table::{Lookup, Registration, RouteKey, Table, TableSettings};
use telemetry::{Level, Logger, Sink};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, oneshot, watch};

use crate::free_port::free_port;

const START: &str = r#"{"id":"1-uuid","hosts":["192.0.2.2"],"minimumRegisterIntervalInSeconds":20,"pruneThresholdInSeconds":120}"#;

/// A nats-server that ends with this value.
struct NatsServer(Child, u16);

impl NatsServer {
    /// At a port that is free, or at one that was.
    fn start(port: u16) -> Self {
        let debian = Path::new("/usr/sbin/nats-server");
        let program = if debian.exists() {
            debian
        } else {
            Path::new("nats-server")
        };
        let port = match port {
            0 => free_port(),
            port => port,
        };
        let child = Command::new(program)
            .args(["--addr", "127.0.0.1", "--port", &port.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("nats-server starts; scripts/install-test-tools installs it");
        Self(child, port)
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn config(port: u16) -> ClientConfig {
    ClientConfig {
        servers: vec![format!("127.0.0.1:{port}").parse().unwrap()],
        // A server that was just started takes a moment.
        attempts: 300,
        pause: Duration::from_millis(20),
        longest_pause: Duration::from_millis(100),
        ..ClientConfig::default()
    }
}

struct Fed {
    table: Arc<Table>,
    counters: Arc<RegistryCounters>,
    client: Client,
    feed: Feed,
    log: Sink,
}

async fn feed(port: u16, settings: TableSettings, prune_interval: Duration) -> Fed {
    let (table, counters) = (Arc::new(Table::new(settings)), Arc::default());
    let client = Client::connect(config(port)).await.unwrap();
    let settings = FeedSettings {
        announcement: Announcement {
            id: "1-uuid".into(),
            address: "192.0.2.2".parse().unwrap(),
            minimum_interval: Duration::from_secs(20),
            threshold: Duration::from_secs(120),
        },
        http2: true,
        prune_interval,
        suspend_pruning: true,
        latency_muzzle: Duration::ZERO,
    };
    let log = Sink::memory();
    let logger = Logger::new("registry", log.clone(), Level::Info);
    let (to, count) = (Arc::clone(&table), Arc::clone(&counters));
    let messages = client.subscribe(MESSAGES, QueueLimits::default()).unwrap();
    let feed = Feed::start(client.clone(), messages, to, settings, count, logger).unwrap();
    client.flush().await.unwrap();
    Fed {
        table,
        counters,
        client,
        feed,
        log,
    }
}

async fn until(what: &str, mut check: impl FnMut() -> bool) {
    for _ in 0..6000 {
        if check() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("{what} did not happen");
}

async fn listen(client: &Client, subject: &str) -> Subscription {
    let subscription = client.subscribe(subject, QueueLimits::default()).unwrap();
    client.flush().await.unwrap();
    subscription
}

async fn payload(subscription: &mut Subscription) -> String {
    let batch = tokio::time::timeout(Duration::from_secs(30), subscription.next()).await;
    let batch = batch.expect("a message").expect("the client lives");
    assert_eq!(batch.len(), 1);
    let message = batch.iter().next().unwrap();
    String::from_utf8(message.payload.to_vec()).unwrap()
}

fn answers(table: &Table, host: &str) -> bool {
    matches!(table.lookup(host.as_bytes(), b"/"), Lookup::Found(_))
}

#[tokio::test]
async fn routes_register_and_routers_say_who_they_are() {
    let server = NatsServer::start(0);
    let other = Client::connect(config(server.1)).await.unwrap();
    let mut starts = listen(&other, "router.start").await;
    let fed = feed(server.1, TableSettings::default(), Duration::from_secs(30)).await;
    assert_eq!(payload(&mut starts).await, START);
    let register = br#"{"host":"10.0.0.1","port":80,"uris":["a.ex.com","*.w.ex.com/x"],"tags":{"component":"c"}}"#;
    other.publish(b"router.register", b"{broken").unwrap();
    other.publish(b"router.register", register).unwrap();
    other.publish(b"router.register", register).unwrap();
    until("all are taken", || {
        fed.counters.totals().all_components().refreshed == 2
    })
    .await;
    assert!(answers(&fed.table, "a.ex.com"));
    assert!(matches!(
        fed.table.lookup(b"y.w.ex.com", b"/x/y"),
        Lookup::Found(_)
    ));
    let totals = fed.counters.totals();
    assert_eq!(
        (totals.invalid_messages, totals.all_components().added),
        (1, 2)
    );
    assert!(fed.log.kept().contains("validation-error"));
    other.publish(b"router.unregister", register).unwrap();
    until("all are gone", || fed.table.is_empty()).await;
    // An own subscription, since ours sends no replies.
    let mut answers = listen(&other, "inbox.1").await;
    let mut asker = TcpStream::connect(("127.0.0.1", server.1)).await.unwrap();
    let sent = b"CONNECT {\"verbose\":false}\r\nPUB router.greet inbox.1 0\r\n\r\n";
    asker.write_all(sent).await.unwrap();
    assert_eq!(payload(&mut answers).await, START);
    let stats = fed.feed.stats();
    assert!(stats.connected && stats.dropped_messages == 0 && stats.buffered_messages == 0);
}

#[tokio::test]
async fn nothing_is_pruned_while_nats_is_away() {
    let server = NatsServer::start(0);
    let settings = TableSettings {
        stale_after: Duration::from_millis(1),
        ..TableSettings::default()
    };
    let fed = feed(server.1, settings, Duration::from_millis(20)).await;
    let port = server.1;
    drop(server);
    let suspended = || fed.log.kept().matches("prune-suspended").count();
    until("pruning is suspended", || suspended() >= 1).await;
    let key = RouteKey::new("a.ex.com").unwrap();
    let registration = Registration {
        identity: "h:1",
        ..Registration::default()
    };
    fed.table
        .register_with(&key, &registration, wire::clock::now());
    // Stale by then, and looked at.
    let before = suspended();
    until("it could have been pruned", || suspended() >= before + 3).await;
    assert!(answers(&fed.table, "a.ex.com"));
    let server = NatsServer::start(port);
    assert_eq!(server.1, port);
    until("it is back", || fed.feed.stats().reconnects == 1).await;
    until("it is stale now", || fed.table.is_empty()).await;
    assert_eq!(fed.counters.totals().endpoints_pruned, 1);
    assert!(fed.log.kept().contains("nats-connection-restored"));
}

#[tokio::test]
async fn routers_announce_themselves_again_after_a_reconnect() {
    let listen_at = "127.0.0.1:0".parse().unwrap();
    let own = |listen| {
        Server::start(ServerConfig {
            listen,
            ..ServerConfig::default()
        })
    };
    let server = own(listen_at).await.unwrap();
    let address = server.address();
    let fed = feed(
        address.port(),
        TableSettings::default(),
        Duration::from_secs(30),
    )
    .await;
    server.stop().await;
    until("it is away", || !fed.feed.stats().connected).await;
    let server = own(address).await.unwrap();
    // Whoever connects first hears the router that comes later, or was there before it.
    until("it said so", || server.gauge().read().in_messages >= 1).await;
    until("it subscribed", || server.gauge().read().subscriptions >= 2).await;
    fed.client.clone().close().await;
    assert!(!fed.feed.lost().await.is_empty());
}

/// A server of NATS that lets nobody subscribe to registrations.
async fn forbidding_server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let (read, mut write) = stream.into_split();
        write.write_all(b"INFO {}\r\n").await.unwrap();
        let mut lines = BufReader::new(read).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let answer = match line.as_str() {
                "PING" => "PONG\r\n",
                line if line.starts_with("SUB router.* ") => {
                    "-ERR 'Permissions Violation for Subscription to \"router.*\"'\r\n"
                }
                _ => continue,
            };
            write.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    port
}

#[tokio::test]
async fn what_nats_forbids_is_told() {
    let port = forbidding_server().await;
    let fed = feed(port, TableSettings::default(), Duration::from_secs(30)).await;
    until("it is told", || fed.log.kept().contains("nats-error")).await;
    let log = fed.log.kept();
    assert!(log.contains("Permissions Violation for Sub"), "{log}");
    assert!(fed.feed.stats().connected);
}

#[tokio::test]
async fn the_registrar_registers_refreshes_and_unregisters() {
    let server = NatsServer::start(0);
    let fed = feed(server.1, TableSettings::default(), Duration::from_secs(30)).await;
    let mut settings = PopulateSettings {
        client: config(server.1),
        routes: 1000,
        prefix: "app".into(),
        domain: "ex.com".into(),
        backends: vec![
            "10.0.0.1:80".parse().unwrap(),
            "10.0.0.2:80".parse().unwrap(),
        ],
        pause: Duration::from_micros(10),
        every: Duration::from_millis(50),
        once: false,
    };
    let (progress, seen) = watch::channel(Progress::default());
    let (stop, stopped) = oneshot::channel::<()>();
    let running = {
        let settings = settings.clone();
        tokio::spawn(
            async move { populate(settings, &progress, async { drop(stopped.await) }).await },
        )
    };
    until("they were refreshed", || {
        fed.counters.totals().all_components().refreshed >= 1000
    })
    .await;
    assert_eq!(fed.table.len(), 1000);
    assert!(seen.borrow().rounds >= 1 && seen.borrow().messages >= 2000);
    let Lookup::Found(pool) = fed.table.lookup(b"app-999.ex.com", b"/") else {
        panic!("the last one answers");
    };
    assert_eq!(&*pool.endpoints()[0].identity, "10.0.0.2:80");
    stop.send(()).unwrap();
    running.await.unwrap().unwrap();
    until("all are gone", || fed.table.is_empty()).await;
    // Once: they stay.
    settings.once = true;
    settings.pause = Duration::ZERO;
    let (progress, _) = watch::channel(Progress::default());
    populate(settings.clone(), &progress, std::future::pending())
        .await
        .unwrap();
    until("all are there", || fed.table.len() == 1000).await;
    settings.backends.clear();
    let none = populate(settings, &progress, std::future::pending()).await;
    assert!(none.unwrap_err().to_string().contains("no backend"));
}

#[tokio::test]
async fn a_file_is_followed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("routes.toml");
    let write = |host: &str| {
        let text = format!("[[route]]\nuris = [\"{host}\"]\nhost = \"h\"\nport = 1\n");
        std::fs::write(&path, text).unwrap();
    };
    write("a.ex.com");
    let table = Arc::new(Table::new(TableSettings::default()));
    let routes = file::Routes::read(&path).unwrap();
    let (reload, log) = (Arc::new(Notify::new()), Sink::memory());
    let follower = file::Follower {
        path: path.clone(),
        table: Arc::clone(&table),
        counters: Arc::default(),
        http2: true,
        logger: Logger::new("routes", log.clone(), Level::Info),
    };
    follower.take(&routes, None);
    assert!(answers(&table, "a.ex.com"));
    let following = tokio::spawn(follower.follow(routes, Arc::clone(&reload)));
    write("b.ex.com");
    reload.notify_one();
    until("it was read again", || answers(&table, "b.ex.com")).await;
    assert!(!answers(&table, "a.ex.com"));
    std::fs::write(&path, "[[route]]\nport = 1\n").unwrap();
    reload.notify_one();
    until("the error is logged", || {
        log.kept().contains("routes-not-read")
    })
    .await;
    assert!(log.kept().contains("routes.toml:1: ") && answers(&table, "b.ex.com"));
    following.abort();
}
