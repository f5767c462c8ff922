use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::varz::Fixed;
use super::*;
use crate::http::counters::Counters;
use crate::table::{Endpoint, PoolSettings, RouteKey, Table, TableSettings};

/// A status server on a runtime of its own.
struct Running {
    address: SocketAddr,
    health: Arc<Health>,
    table: Arc<Table>,
    _ask: watch::Sender<bool>,
    _runtime: tokio::runtime::Runtime,
}

fn start(endpoints: Endpoints) -> Running {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let table = Arc::new(Table::new(TableSettings::default()));
    let health = Arc::new(Health::default());
    let fixed = Fixed {
        index: 3,
        host: "127.0.0.1:18082".to_owned(),
        credentials: ("u".to_owned(), "p".into()),
        uuid: "3-x".to_owned(),
        started: Instant::now(),
        start: "2026-11-21 08:17:18 +0000".to_owned(),
    };
    let counters = Arc::new(Counters::new(1));
    let server = StatusServer {
        endpoints,
        health: Arc::clone(&health),
        table: Arc::clone(&table),
        varz: Some(Arc::new(Varz::new(Arc::clone(&table), counters, fixed))),
        user: "u".to_owned(),
        password: "p".into(),
    };
    let (ask, shutdown) = net::shutdown();
    let listener = runtime
        .block_on(net::bind("127.0.0.1:0".parse().unwrap()))
        .unwrap();
    let address = listener.local_addr().unwrap();
    runtime.spawn(net::serve(
        listener,
        None,
        net::Limits::default(),
        Arc::new(server),
        shutdown,
    ));
    Running {
        address,
        health,
        table,
        _ask: ask,
        _runtime: runtime,
    }
}

impl Running {
    /// The bytes of an answer, its date replaced.
    fn ask(&self, path: &str, more: &str) -> String {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{more}\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text.replace("\r\n", "\n")
            .lines()
            // The test asks for the close that lets it read to the end.
            .filter(|line| *line != "connection: close" && *line != "Connection: close")
            .map(|line| match line.starts_with("Date: ") {
                true => "Date: now",
                false => line,
            })
            .collect::<Vec<_>>()
            .join("\n")
    }
}

/// `u:p`.
const ALLOWED: &str = "Authorization: Basic dTpw\r\n";

const HEALTHY: &str = "HTTP/1.1 200 OK\nCache-Control: private, max-age=0\nExpires: 0\nDate: now\n\
    Content-Length: 3\nContent-Type: text/plain; charset=utf-8\n\nok";

const UNAUTHORIZED: &str = "HTTP/1.1 401 Unauthorized\nWww-Authenticate: Basic\nDate: now\n\
    Content-Length: 17\nContent-Type: text/plain; charset=utf-8\n\n401 Unauthorized";

const NOT_FOUND: &str = "HTTP/1.1 404 Not Found\nContent-Type: text/plain; charset=utf-8\n\
    X-Content-Type-Options: nosniff\nDate: now\nContent-Length: 19\n\n404 page not found";

// Recorded from gorouter a602bb6.
#[test]
fn health_follows_the_phase_byte_for_byte() {
    let running = start(Endpoints::Health);
    let unhealthy = "HTTP/1.1 503 Service Unavailable\nCache-Control: private, max-age=0\n\
        Expires: 0\nDate: now\nContent-Length: 0\n";
    assert_eq!(running.ask("/health", "").trim_end(), unhealthy.trim_end());
    running.health.reach(Phase::Healthy);
    assert_eq!(running.ask("/health", ""), HEALTHY);
    let alive = "/is-process-alive-do-not-use-for-loadbalancing";
    let expected = "HTTP/1.1 200 OK\nDate: now\nContent-Length: 3\n\
        Content-Type: text/plain; charset=utf-8\n\nok";
    assert_eq!(running.ask(alive, ""), expected);
    assert_eq!(running.ask("/routes", ALLOWED), NOT_FOUND);
    running.health.reach(Phase::Degraded);
    running.health.reach(Phase::Healthy);
    assert_eq!(running.ask("/health", "").trim_end(), unhealthy.trim_end());
    assert_eq!(running.ask(alive, ""), expected);
}

#[test]
fn the_old_endpoints_want_to_know_who_asks() {
    let running = start(Endpoints::Deprecated);
    running.health.reach(Phase::Healthy);
    assert_eq!(running.ask("/healthz", ""), HEALTHY);
    for path in [
        "/varz",
        "/routes",
        "/is-process-alive-do-not-use-for-loadbalancing",
    ] {
        assert_eq!(running.ask(path, ""), UNAUTHORIZED);
    }
    for wrong in [
        "Authorization: Basic dTpx\r\n",
        "Authorization: Bearer dTpw\r\n",
        "Authorization: Basic !\r\n",
    ] {
        assert_eq!(running.ask("/varz", wrong), UNAUTHORIZED);
    }
    let varz = running.ask("/varz", ALLOWED);
    let document: serde_json::Value =
        serde_json::from_str(varz.rsplit("\n\n").next().unwrap()).unwrap();
    assert_eq!(document["type"], "Router");
    assert_eq!(document["credentials"], serde_json::json!(["u", "p"]));
    assert_eq!(document["latency"]["99"], 0.0);
    assert_eq!(document["latency"]["samples"], 0);
    assert!(document["ms_since_last_registry_update"].is_u64());
    // What is not counted is not there, rather than empty.
    assert_eq!(document.get("tags"), None);
    assert_eq!(document.get("top10_app_requests"), None);
}

fn register(table: &Table, uri: &str, endpoint: Endpoint) {
    let key = RouteKey::new(uri).unwrap();
    table.register(&key, endpoint, &PoolSettings::default(), wire::clock::now());
}

// Recorded from gorouter a602bb6, but for the second instance of the address.
#[test]
fn routes_read_as_gorouter_writes_them() {
    let running = start(Endpoints::Routes);
    assert_eq!(running.ask("/routes", ""), UNAUTHORIZED);
    for (name, port, uri) in [
        ("i-tlsplain", 9101, "tlsplain.ex.com"),
        ("i-tlsok", 9111, "tlsok.ex.com"),
    ] {
        register(
            &running.table,
            uri,
            Endpoint {
                identity: format!("127.0.0.1:{port}").into(),
                tls: true,
                stale_after: Duration::from_secs(6),
                tags: Some(Default::default()),
                instance_id: name.into(),
                server_name: "inst-guid-1".into(),
                ..Endpoint::default()
            },
        );
    }
    let expected = "HTTP/1.1 200 OK\nContent-Type: application/json\nDate: now\nContent-Length: 384\n\n\
        {\"tlsok.ex.com\":[{\"address\":\"127.0.0.1:9111\",\"availability_zone\":\"\",\"protocol\":\"http1\",\
        \"tls\":true,\"ttl\":6,\"tags\":{},\"private_instance_id\":\"i-tlsok\",\
        \"server_cert_domain_san\":\"inst-guid-1\"}],\"tlsplain.ex.com\":[{\"address\":\"127.0.0.1:9101\",\
        \"availability_zone\":\"\",\"protocol\":\"http1\",\"tls\":true,\"ttl\":6,\"tags\":{},\
        \"private_instance_id\":\"i-tlsplain\",\"server_cert_domain_san\":\"inst-guid-1\"}]}";
    assert_eq!(running.ask("/routes", ALLOWED), expected);
}

#[test]
fn many_routes_come_in_pieces_and_are_json() {
    let running = start(Endpoints::Routes);
    assert!(running.ask("/routes", ALLOWED).ends_with("\n\n{}"));
    for index in 0..5_000 {
        register(
            &running.table,
            &format!("app-{index}.<ex>.com"),
            Endpoint {
                identity: "127.0.0.1:9101".into(),
                ..Endpoint::default()
            },
        );
    }
    let mut stream = TcpStream::connect(running.address).unwrap();
    let request = format!("GET /routes HTTP/1.0\r\n{ALLOWED}\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let body = text.split("\r\n\r\n").nth(1).unwrap();
    assert!(body.contains("\"app-0.\\u003cex\\u003e.com\":[{"));
    let routes: serde_json::Value = serde_json::from_str(body).unwrap();
    assert_eq!(routes.as_object().unwrap().len(), 5_000);
}
