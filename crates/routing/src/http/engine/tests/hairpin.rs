//! Route services that are routes of the router that calls them.

use std::io::{BufReader, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, OnceLock};

use super::bench::{Asked, Backend, Bench, PATIENCE, nobody, ok, read_message};
use crate::http::settings::HttpSettings;
use crate::table::{Endpoint, PoolSettings, RouteKey, Table};

const PROOF: [&str; 3] = [
    "X-Cf-Proxy-Signature",
    "X-Cf-Proxy-Metadata",
    "X-Cf-Forwarded-Url",
];

fn route(table: &Table, host: &str, backend: SocketAddr, service: &str) {
    let endpoint = Endpoint {
        identity: backend.to_string().into(),
        instance_id: format!("instance-of-{host}").into(),
        ..Endpoint::default()
    };
    let pool = PoolSettings {
        route_service_url: service.into(),
        ..PoolSettings::default()
    };
    table.register(&RouteKey::new(host).unwrap(), endpoint, &pool, 0);
}

fn hairpin(settings: &mut HttpSettings) {
    settings.route_services.secret = "shared".into();
    settings.route_services.hairpin = true;
}

/// A router where `svc.test` is a route, and the route service of `app.test`.
fn bench(service: &Backend, app: SocketAddr, change: impl FnOnce(&mut HttpSettings)) -> Bench {
    let bench = Bench::with(&[], |settings| {
        hairpin(settings);
        change(settings);
    });
    route(&bench.table, "svc.test", service.address, "");
    route(
        &bench.table,
        "app.test",
        app,
        "https://svc.test/inspect?x=1",
    );
    bench
}

#[test]
fn no_service_is_called_in_a_network_where_none_may_be() {
    let service = Backend::answering(|_| ok(b"inspected"));
    let bench = Bench::with(&[], |settings| {
        settings.route_services.secret = "shared".into();
        settings.route_services.blocked_networks = vec!["127.0.0.0/8".to_owned()];
    });
    let url = format!("https://{}/inspect", service.address);
    route(&bench.table, "app.test", nobody(), &url);
    let seen = bench.client().get("/");
    let told = format!(
        "endpoint_failure (dial tcp {}: connection to 127.0.0.1 not allowed)",
        service.address
    );
    let error = seen.field("x-cf-routererror");
    assert_eq!((seen.status, error), (502, Some(told.as_str())));
    assert_eq!(service.connections(), 0);
}

/// Sends what came on to where it belongs, as route services do.
fn passed_on(asked: &Asked, router: SocketAddr) -> Vec<u8> {
    let stream = TcpStream::connect(router).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut request = "GET /from-service HTTP/1.1\r\nHost: app.test\r\n".to_owned();
    for name in PROOF {
        request += &format!("{name}: {}\r\n", asked.message.field(name).unwrap());
    }
    (&stream)
        .write_all(format!("{request}\r\n").as_bytes())
        .unwrap();
    let answer = read_message(&mut BufReader::new(stream), false).unwrap();
    let cookies = "Set-Cookie: JSESSIONID=of-service\r\n";
    let length = answer.body.len();
    let head = format!("HTTP/1.1 200 OK\r\n{cookies}Content-Length: {length}\r\n\r\n");
    [head.as_bytes(), &answer.body].concat()
}

#[test]
fn a_service_of_the_own_routes_is_called_through_the_router() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("access.log");
    let router = Arc::new(OnceLock::<SocketAddr>::new());
    let heads = Arc::new(Mutex::new(Vec::new()));
    let service = Backend::answering({
        let (router, heads) = (Arc::clone(&router), Arc::clone(&heads));
        move |asked| {
            heads.lock().unwrap().push(format!("{asked:?}"));
            passed_on(asked, *router.get().unwrap())
        }
    });
    let app = Backend::answering(|asked| {
        let proof = PROOF.iter().any(|name| asked.message.field(name).is_some());
        ok(format!("{} {proof}", asked.line).as_bytes())
    });
    let bench = bench(&service, app.address, |settings| {
        settings.access_log.file = Some(log.clone());
    });
    router.set(bench.engine.address().unwrap()).unwrap();
    let mut client = bench.client();
    for _ in 0..2 {
        let seen = client.get("/p?q=1");
        assert_eq!(seen.status, 200);
        assert_eq!(seen.body, b"GET /from-service HTTP/1.1 false");
        // The service's cookie binds nobody to an instance of the service.
        let cookies: Vec<_> = seen
            .fields
            .iter()
            .filter(|(name, _)| name == "Set-Cookie")
            .collect();
        assert_eq!(cookies.len(), 1, "{cookies:?}");
    }
    let head = heads.lock().unwrap()[0].clone();
    for expected in [
        "\"GET /inspect?x=1 HTTP/1.1\"",
        "(\"Host\", \"svc.test\")",
        "(\"X-Cf-Forwarded-Url\", \"https://app.test/p?q=1\")",
        "(\"X-Forwarded-For\", \"127.0.0.1, 127.0.0.1\")",
        "(\"X-Forwarded-Proto\", \"http\")",
        "(\"X-Cf-Instanceid\", \"instance-of-svc.test\")",
    ] {
        assert!(head.contains(expected), "{head}\nlacks {expected}");
    }
    assert_eq!(bench.totals().requests, 6);
    // The way through the router is kept for the second request.
    assert_eq!(service.connections(), 1);
    bench.engine.stop();
    let log = std::fs::read_to_string(&log).unwrap();
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(lines.len(), 6, "{log}");
    // Who ends first is logged first: the application, the service, the client's request.
    assert!(lines[0].starts_with("app.test - ") && lines[0].contains("GET /from-service"));
    assert!(lines[1].starts_with("svc.test - ") && lines[1].contains("GET /inspect?x=1"));
    let to_service = format!("\"127.0.0.1:0\" \"{}\"", service.address);
    assert!(lines[1].contains(&to_service), "{}", lines[1]);
    assert!(lines[2].starts_with("app.test - ") && lines[2].contains("GET /p?q=1"));
    assert!(
        lines[2].contains("\" \"-\" x_forwarded_for"),
        "{}",
        lines[2]
    );
}

#[test]
fn what_the_list_does_not_name_leaves_the_router() {
    let service = Backend::answering(|_| ok(b"within"));
    let bench = Bench::with(&[], |settings| {
        hairpin(settings);
        settings.route_services.hairpin_hosts = vec!["*.listed.test".to_owned()];
        settings.route_services.attempts = 1;
    });
    let outside = format!("https://{}", nobody());
    route(&bench.table, "127.0.0.1", service.address, "");
    route(&bench.table, "a.listed.test", service.address, "");
    route(&bench.table, "app.test", nobody(), &outside);
    let seen = bench.client().get("/");
    assert_eq!(seen.status, 502);
    let error = seen.field("x-cf-routererror").unwrap();
    assert!(error.contains("connection refused"), "{error}");
    route(
        &bench.table,
        "app.test",
        nobody(),
        "https://a.listed.test:1",
    );
    assert_eq!(bench.client().get("/").body, b"within");
}

#[test]
fn a_service_whose_route_has_a_service_is_told_so_and_nothing_turns_in_circles() {
    let service = Backend::answering(|_| ok(b"never"));
    let bench = Bench::with(&[], hairpin);
    route(
        &bench.table,
        "svc.test",
        service.address,
        "https://app.test",
    );
    route(&bench.table, "app.test", nobody(), "https://svc.test");
    let seen = bench.client().get("/");
    assert_eq!((seen.status, service.connections()), (502, 0));
    let told = String::from_utf8_lossy(&seen.body).into_owned();
    assert!(told.contains("Failed to validate Route Service"), "{told}");
    assert_eq!(bench.totals().requests, 2);
}

#[test]
fn bodies_go_through_although_no_further_client_is_allowed() {
    let service = Backend::answering(|asked| ok(&asked.message.body));
    let bench = bench(&service, nobody(), |settings| {
        settings.client_connections = 1;
    });
    let body = vec![b'b'; 1_000_000];
    let mut client = bench.client();
    for _ in 0..3 {
        let head = "POST / HTTP/1.1\r\nHost: app.test\r\nContent-Length: 1000000\r\n\r\n";
        client.send(head.as_bytes());
        client.send(&body);
        let seen = client.answer().unwrap();
        assert!(seen.status == 200 && seen.body == body, "{}", seen.status);
    }
    drop(client);
    // Kept for the next: the way through the router, and the connection to the service.
    bench.until("only the way within is left", |totals| {
        totals.open_clients == 1 && totals.open_backends == 2
    });
    bench.engine.drain();
    bench.until("it ends with the router", |totals| totals.open_clients == 0);
}

#[test]
fn a_client_that_goes_takes_its_way_through_the_router_with_it() {
    let service = Backend::new(|mut connection, _| {
        connection.request();
        connection.wait_for_end();
    });
    let bench = bench(&service, nobody(), |_| {});
    let mut client = bench.client();
    client.send(b"GET / HTTP/1.1\r\nHost: app.test\r\n\r\n");
    bench.until("both passes are on their way", |totals| totals.active == 2);
    drop(client);
    bench.until("nobody is left", |totals| {
        totals.open_clients == 0 && totals.open_backends == 0 && totals.active == 0
    });
}

#[test]
fn an_upgrade_goes_through_where_services_may_have_them() {
    let service = Backend::new(|mut connection, _| {
        connection.head().unwrap();
        connection.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
        assert_eq!(connection.read_exact(4), b"ping");
        connection.send(b"pong");
        connection.wait_for_end();
    });
    let bench = bench(&service, nobody(), |settings| {
        settings.route_services.upgrades = true;
    });
    let mut client = bench.client();
    client.send(
        b"GET /ws HTTP/1.1\r\nHost: app.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    );
    assert_eq!(client.answer().unwrap().status, 101);
    client.send(b"ping");
    assert_eq!(client.read_exact(4), b"pong");
    drop(client);
    bench.until("the tunnels end", |totals| {
        totals.open_clients == 0 && totals.open_backends == 0
    });
}
