//! A whole router on real sockets: a client of NATS that is not ours registers routes, and
//! requests go through.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use backend::{BackendSettings, Behaviour, StaticBackend};
use futures_util::StreamExt as _;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use routing::http::router::{
    DrainSettings, NatsSettings, PeerTls, Router, RouterError, RouterSettings, Signal, run,
};
use telemetry::{Level, Logger, Sink};
use tempfile::TempDir;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use wire::tls::{TlsClient, TlsOptions};

use crate::free_port::free_port;

/// Longest wait for something that is sure to come.
const PATIENCE: Duration = Duration::from_secs(60);

fn any_port() -> Option<SocketAddr> {
    Some(SocketAddr::from(([127, 0, 0, 1], 0)))
}

fn settings(folder: &Path) -> RouterSettings {
    let mut settings = RouterSettings::default();
    settings.http.listen = any_port();
    settings.http.threads = Some(1);
    settings.http.access_log.file = Some(folder.join("access.log"));
    settings.nats = Some(NatsSettings {
        embedded: any_port(),
        ..NatsSettings::default()
    });
    settings.start_delay = Duration::ZERO;
    settings.status.listen = any_port();
    settings.status.routes_listen = any_port();
    settings.status.user = "u".to_owned();
    settings.status.password = "p".into();
    settings.metrics_listen = any_port();
    settings.drain = DrainSettings {
        wait: Duration::ZERO,
        timeout: PATIENCE,
    };
    settings
}

struct Running {
    at: Router,
    signals: mpsc::Sender<Signal>,
    task: JoinHandle<Result<(), RouterError>>,
    log: Sink,
}

async fn start(settings: RouterSettings) -> Running {
    let (signals, told) = mpsc::channel(4);
    let (running, mut addresses) = watch::channel(Router::default());
    let log = Sink::memory();
    let logger = Logger::new("router", log.clone(), Level::Debug);
    let task = tokio::spawn(run(settings, logger, told, running));
    let started = addresses.wait_for(|at| at.http.is_some());
    let at = tokio::time::timeout(PATIENCE, started)
        .await
        .unwrap()
        .unwrap_or_else(|_| panic!("the router did not start: {}", log.kept()))
        .clone();
    Running {
        at,
        signals,
        task,
        log,
    }
}

impl Running {
    async fn client(&self) -> async_nats::Client {
        async_nats::connect(self.at.nats.unwrap().to_string())
            .await
            .unwrap()
    }

    async fn end(self, signal: Signal) {
        self.signals.send(signal).await.unwrap();
        let ended = tokio::time::timeout(PATIENCE, self.task).await.unwrap();
        ended.unwrap().unwrap();
    }

    /// Waits until the metrics have a line.
    async fn until_metric(&self, line: &str) {
        let address = self.at.metrics.unwrap();
        let until = tokio::time::Instant::now() + PATIENCE;
        loop {
            let page = ask(address, "/metrics", "x", "").await;
            if page.lines().any(|found| found == line) {
                return;
            }
            assert!(tokio::time::Instant::now() < until, "no {line} in {page}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn register(&self, client: &async_nats::Client, uri: &str, to: SocketAddr) {
        let routes = format!(
            r#"{{"host":"{}","port":{},"uris":["{uri}"]}}"#,
            to.ip(),
            to.port()
        );
        client
            .publish("router.register", routes.into())
            .await
            .unwrap();
        client.flush().await.unwrap();
    }
}

/// A connection that gives up after a while.
fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// The whole answer to a GET, off the runtime's threads.
async fn ask(address: SocketAddr, path: &str, host: &str, more: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{more}\r\n");
    tokio::task::spawn_blocking(move || {
        let mut stream = connect(address);
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    })
    .await
    .unwrap()
}

fn backend(id: &str) -> StaticBackend {
    StaticBackend::start(&BackendSettings {
        listen: "127.0.0.1:0".parse().unwrap(),
        body_bytes: 3,
        threads: Some(1),
        id: id.to_owned(),
        control: None,
        tls: None,
    })
    .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn two_routers_do_not_share_an_address() {
    let folder = TempDir::new().unwrap();
    let first = start(settings(folder.path())).await;
    let mut second = settings(folder.path());
    second.http.listen = first.at.http;
    let (_signals, told) = mpsc::channel(1);
    let (running, _addresses) = watch::channel(Router::default());
    let logger = Logger::new("router", Sink::memory(), Level::Debug);
    let started = run(second, logger, told, running);
    let refused = tokio::time::timeout(PATIENCE, started).await.unwrap();
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("in use"), "{refused}");
    first.end(Signal::Stop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_route_lives_from_its_registration_to_its_end() {
    let folder = TempDir::new().unwrap();
    let (one, router) = (backend("one"), start(settings(folder.path())).await);
    let http = router.at.http.unwrap();
    assert!(
        ask(http, "/", "a.test", "")
            .await
            .starts_with("HTTP/1.1 404 Not Found\r\n")
    );
    let client = router.client().await;
    router.register(&client, "a.test/x", one.address()).await;
    router.until_metric("total_routes 1").await;
    let answer = ask(http, "/x/y", "A.test:80", "").await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("\r\nX-Backend: one\r\n") && answer.ends_with("\r\n\r\nZZZ"));
    let allowed = "Authorization: Basic dTpw\r\n";
    let routes = ask(router.at.routes.unwrap(), "/routes", "x", allowed).await;
    assert!(routes.contains(&format!(
        "{{\"a.test/x\":[{{\"address\":\"{}\"",
        one.address()
    )));
    client
        .publish(
            "router.unregister",
            format!(
                r#"{{"host":"127.0.0.1","port":{},"uris":["a.test/x"]}}"#,
                one.address().port()
            )
            .into(),
        )
        .await
        .unwrap();
    client.flush().await.unwrap();
    router.until_metric("total_routes 0").await;
    assert!(
        ask(http, "/x", "a.test", "")
            .await
            .starts_with("HTTP/1.1 404 ")
    );
    router.until_metric("router_requests_total 3").await;
    router.until_metric("total_requests 1").await;
    router.end(Signal::Stop).await;
    let log = std::fs::read_to_string(folder.path().join("access.log")).unwrap();
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(lines.len(), 3, "{log}");
    assert!(lines[1].starts_with("A.test:80 - ["), "{log}");
    assert!(lines[1].contains("\"GET /x/y HTTP/1.1\" 200 0 3 "), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn components_that_greet_learn_when_to_register() {
    let folder = TempDir::new().unwrap();
    let mut settings = settings(folder.path());
    settings.index = 3;
    settings.http.address = "192.0.2.2".parse().unwrap();
    settings.table.stale_after = Duration::from_secs(6);
    let router = start(settings).await;
    let client = router.client().await;
    let answer = client.request("router.greet", "".into()).await.unwrap();
    let text = String::from_utf8(answer.payload.to_vec()).unwrap();
    // Recorded from gorouter a602bb6, but for the id, and the least interval, which there is 0.
    let rest = r#""hosts":["192.0.2.2"],"minimumRegisterIntervalInSeconds":1,"pruneThresholdInSeconds":6}"#;
    assert!(
        text.starts_with(r#"{"id":"3-"#) && text.ends_with(rest),
        "{text}"
    );
    router.end(Signal::Stop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn applications_that_were_called_are_published() {
    let folder = TempDir::new().unwrap();
    let mut settings = settings(folder.path());
    settings.http.active_apps = Duration::from_millis(50);
    let (app, router) = (backend("app"), start(settings).await);
    let client = router.client().await;
    let mut told = client.subscribe("router.active_apps").await.unwrap();
    client.flush().await.unwrap();
    let message = format!(
        r#"{{"uris":["app.test"],"host":"127.0.0.1","port":{},"app":"guid"}}"#,
        app.address().port()
    );
    client
        .publish("router.register", message.into())
        .await
        .unwrap();
    router.until_metric("total_routes 1").await;
    let mut lists = Vec::new();
    let answer = ask(router.at.http.unwrap(), "/", "app.test", "").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    while lists.last().map(String::as_str) != Some(r#"["guid"]"#) {
        lists.push(list(&mut told).await);
    }
    // Nobody was called before, and nobody since.
    assert!(
        lists.iter().rev().skip(1).all(|list| list == "[]"),
        "{lists:?}"
    );
    assert_eq!(list(&mut told).await, "[]");
    router.end(Signal::Stop).await;
}

async fn list(told: &mut async_nats::Subscriber) -> String {
    let message = tokio::time::timeout(PATIENCE, told.next()).await;
    let message = message.unwrap().unwrap();
    let mut text = String::new();
    flate2::read::ZlibDecoder::new(&*message.payload)
        .read_to_string(&mut text)
        .unwrap();
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_ends_with_the_last_request() {
    let folder = TempDir::new().unwrap();
    let (slow, router) = (backend("slow"), start(settings(folder.path())).await);
    let (http, status) = (router.at.http.unwrap(), router.at.status.unwrap());
    let client = router.client().await;
    router.register(&client, "slow.test", slow.address()).await;
    router.until_metric("total_routes 1").await;
    assert!(
        ask(status, "/health", "x", "")
            .await
            .starts_with("HTTP/1.1 200 OK\r\n")
    );
    slow.behave(Behaviour::from_json(br#"{"mode":"slow","delay":"300ms"}"#).unwrap());
    let mut idle = connect(http);
    let under_way = tokio::spawn(async move { ask(http, "/", "slow.test", "").await });
    while slow.requests() == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    router.signals.send(Signal::Drain).await.unwrap();
    // A connection without a request is closed; the one with a request has its answer.
    let end = tokio::task::spawn_blocking(move || idle.read(&mut [0; 9]).unwrap_or(0));
    assert_eq!(end.await.unwrap(), 0);
    assert!(under_way.await.unwrap().ends_with("\r\n\r\nZZZ"));
    let ended = tokio::time::timeout(PATIENCE, router.task).await.unwrap();
    ended.unwrap().unwrap();
    assert!(TcpStream::connect(http).is_err());
    assert!(
        router.log.kept().contains("router.drained"),
        "{}",
        router.log.kept()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draining_router_is_unhealthy_and_serves_and_can_be_stopped() {
    let folder = TempDir::new().unwrap();
    let mut settings = settings(folder.path());
    settings.drain.wait = Duration::from_secs(3600);
    let router = start(settings).await;
    router.signals.send(Signal::Drain).await.unwrap();
    let status = router.at.status.unwrap();
    while ask(status, "/health", "x", "")
        .await
        .starts_with("HTTP/1.1 200 ")
    {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let served = ask(router.at.http.unwrap(), "/", "none.test", "").await;
    assert!(served.starts_with("HTTP/1.1 404 "), "{served}");
    router.signals.send(Signal::Drain).await.unwrap();
    router.end(Signal::Stop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_reads_routes_and_opens_the_log_anew() {
    let folder = TempDir::new().unwrap();
    let (one, path) = (backend("one"), folder.path().join("routes.jsonl"));
    let route = |name: &str| {
        let port = one.address().port();
        format!(r#"{{"host":"127.0.0.1","port":{port},"uris":["{name}"]}}"#)
    };
    std::fs::write(&path, route("first.test")).unwrap();
    let mut settings = settings(folder.path());
    settings.nats = None;
    settings.routes_file = Some(path.clone());
    let router = start(settings).await;
    let http = router.at.http.unwrap();
    assert!(ask(http, "/", "first.test", "").await.ends_with("ZZZ"));
    // Lines are written soon, not at once.
    let access_log = folder.path().join("access.log");
    while !std::fs::read_to_string(&access_log)
        .unwrap()
        .contains("first.test")
    {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    std::fs::rename(
        folder.path().join("access.log"),
        folder.path().join("old.log"),
    )
    .unwrap();
    std::fs::write(
        &path,
        format!("{}\n{}\n", route("first.test"), route("second.test")),
    )
    .unwrap();
    router.signals.send(Signal::Reload).await.unwrap();
    router.until_metric("total_routes 2").await;
    // The writer opens the new file on its own time.
    while !folder.path().join("access.log").exists() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(ask(http, "/", "second.test", "").await.ends_with("ZZZ"));
    router.end(Signal::Stop).await;
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    assert!(
        read("old.log").contains("first.test"),
        "{}",
        read("old.log")
    );
    assert!(
        read("access.log").contains("second.test"),
        "{}",
        read("access.log")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_for_those_who_prove_themselves() {
    let folder = TempDir::new().unwrap();
    let mut settings = settings(folder.path());
    let own = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let key = KeyPair::generate().unwrap();
    let (own, key) = (own.self_signed(&key).unwrap().pem(), key.serialize_pem());
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let reader_key = KeyPair::generate().unwrap();
    let reader = CertificateParams::new(vec!["reader".to_owned()]).unwrap();
    let reader = reader.signed_by(&reader_key, &issuer).unwrap().pem();
    settings.metrics_tls = Some(PeerTls {
        authorities: issuer.pem(),
        certificate: own.clone(),
        key: key.clone().into(),
    });
    let router = start(settings).await;
    let url = format!("https://{}/metrics", router.at.metrics.unwrap());
    let get = async |certificate: &str, key: &str| {
        let options = TlsOptions {
            authorities: &own,
            certificate,
            key,
            ..TlsOptions::default()
        };
        let client = net::Client::new(net::ClientOptions {
            tls: Some(TlsClient::new("127.0.0.1", &options).unwrap().config()),
            ..net::ClientOptions::default()
        });
        let request = http::Request::get(&url).body(http_body_util::Full::default());
        client.request(request.unwrap()).await
    };
    let page = get(&reader, &reader_key.serialize_pem()).await.unwrap();
    assert_eq!(page.status, 200);
    assert!(String::from_utf8_lossy(&page.body).contains("\ntotal_routes 0\n"));
    // Without a certificate, and with one of somebody else.
    assert!(get("", "").await.is_err());
    assert!(get(&own, &key).await.is_err());
    router.end(Signal::Stop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn new_settings_are_taken_and_what_needs_a_restart_is_named() {
    let folder = TempDir::new().unwrap();
    let one = backend("one");
    let mut settings = settings(folder.path());
    let router = start(settings.clone()).await;
    let client = router.client().await;
    router.register(&client, "one.test", one.address()).await;
    router.until_metric("total_routes 1").await;
    let http = router.at.http.unwrap();
    settings.http.headers.add = vec![("X-New".to_owned(), "yes".to_owned())];
    settings.drain.timeout = Duration::from_millis(1);
    settings.index = 7;
    let told = Signal::Settings(Box::new(settings.clone()));
    router.signals.send(told).await.unwrap();
    while !ask(http, "/", "one.test", "")
        .await
        .contains("X-New: yes\r\n")
    {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let named = r#""restart-needed-for":["index"]"#;
    assert!(router.log.kept().contains(named), "{}", router.log.kept());
    // Settings of no use change nothing, and say so.
    settings.http.backends.authorities = "hush".to_owned();
    settings.http.headers.add.clear();
    let told = Signal::Settings(Box::new(settings));
    router.signals.send(told).await.unwrap();
    while !router.log.kept().contains("settings-not-reloaded") {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(
        ask(http, "/", "one.test", "")
            .await
            .contains("X-New: yes\r\n")
    );
    router.end(Signal::Stop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_router_that_gathers_is_not_healthy_and_can_be_stopped() {
    let folder = TempDir::new().unwrap();
    let mut settings = settings(folder.path());
    settings.start_delay = Duration::from_secs(3600);
    // The one address that is asked before it is told.
    let status = SocketAddr::from(([127, 0, 0, 1], free_port()));
    settings.status.listen = Some(status);
    let (signals, told) = mpsc::channel(4);
    let (running, _) = watch::channel(Router::default());
    let logger = Logger::new("router", Sink::nothing(), Level::Info);
    let task = tokio::spawn(run(settings, logger, told, running));
    while TcpStream::connect(status).is_err() {
        assert!(!task.is_finished());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let answer = ask(status, "/health", "x", "").await;
    assert!(
        answer.starts_with("HTTP/1.1 503 Service Unavailable\r\n"),
        "{answer}"
    );
    signals.send(Signal::Drain).await.unwrap();
    tokio::time::timeout(PATIENCE, task)
        .await
        .unwrap()
        .unwrap()
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_had_is_named() {
    let folder = TempDir::new().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().map(|address| (taken, address)).unwrap();
    let refused = |change: &dyn Fn(&mut RouterSettings)| {
        let mut settings = settings(folder.path());
        change(&mut settings);
        async {
            let (_signals, told) = mpsc::channel(1);
            let (running, _) = watch::channel(Router::default());
            let logger = Logger::new("router", Sink::nothing(), Level::Info);
            run(settings, logger, told, running)
                .await
                .unwrap_err()
                .to_string()
        }
    };
    let address = taken.1.to_string();
    let error = refused(&|settings| settings.status.listen = Some(taken.1)).await;
    assert!(error.contains(&format!("listen on {address}")), "{error}");
    let error = refused(&|settings| settings.http.listen = Some(taken.1)).await;
    assert!(error.contains(&format!("listen on {address}")), "{error}");
    let error = refused(&|settings| settings.routes_file = Some("none.toml".into())).await;
    assert!(error.contains("none.toml"), "{error}");
    let error = refused(&|settings| settings.pid_file = Some("/nonexistent/pid".into())).await;
    assert!(
        error.contains("write the process id to /nonexistent/pid"),
        "{error}"
    );
    let error = refused(&|settings| {
        settings.nats = Some(NatsSettings {
            servers: vec!["127.0.0.1:1".to_owned()],
            ..NatsSettings::default()
        });
    })
    .await;
    assert!(error.contains("127.0.0.1:1"), "{error}");
    let error = refused(&|settings| {
        settings.status.listen_tls = any_port();
    })
    .await;
    assert!(error.contains("TLS of [status]"), "{error}");
}
