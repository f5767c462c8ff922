//! Connections of callers and to callees: how many, and that none is left.

use std::sync::Arc;

use super::answers::CHAIN;
use super::stage::{Client, Stage, listener};

/// Asks over so many connections at once, so often each.
pub(super) fn load(stage: &Stage, connections: usize, requests: usize) {
    let address = stage.address(&stage.topology.services[0].name);
    std::thread::scope(|scope| {
        for _ in 0..connections {
            scope.spawn(|| {
                let mut client = Client::new(address);
                for _ in 0..requests {
                    let answer = client.get("/");
                    assert_eq!(answer.status, 200, "{}", answer.body);
                }
            });
        }
    });
}

/// What was accepted by a service.
pub(super) fn accepted(stage: &Stage, service: &str) -> u64 {
    let id = stage.topology.find(service).unwrap();
    let counters = stage.metrics.instance(&stage.topology, id, 0);
    counters.connections().0
}

#[test]
fn warm_connections_are_no_more_than_calls_at_once() {
    let stage = Stage::new(CHAIN);
    load(&stage, 16, 100);
    for service in ["bbranch", "bleaf"] {
        let count = accepted(&stage, service);
        assert!((1..=16).contains(&count), "{service}: {count}");
    }
    stage.drain();
}

#[test]
fn cold_connections_are_one_for_each_call() {
    let text = CHAIN.replace(
        "response = \"echo\"",
        "response = \"echo\"\nconnections = \"cold\"",
    );
    let stage = Stage::new(&text);
    load(&stage, 4, 25);
    assert_eq!(
        (accepted(&stage, "bbranch"), accepted(&stage, "bleaf")),
        (100, 100)
    );
    stage.drain();
}

#[test]
fn calls_beyond_the_bound_wait_for_a_connection() {
    let text = CHAIN.replace(
        "response = \"echo\"",
        "response = \"echo\"\nconnections = 1",
    );
    let stage = Stage::on(&text, 2);
    load(&stage, 8, 50);
    assert_eq!(
        (accepted(&stage, "bbranch"), accepted(&stage, "bleaf")),
        (1, 1)
    );
    stage.drain();
}

#[test]
fn a_call_waits_no_longer_than_its_deadline() {
    let leaf = listener();
    let text = r#"
[services.root]
entry = true
steps = [{ call = "leaf", count = 3, timeout = "30ms", connections = 1 }]
[services.leaf]
"#;
    let stage = Stage::without_leaf(text, &leaf);
    assert_eq!(
        stage.client("root").get("/").failed(),
        (504, "root>leaf timeout")
    );
    let spans = stage.wait_for_spans(1 + 3);
    let calls = spans.iter().filter(|span| &*span.peer == "leaf");
    assert_eq!(calls.filter(|span| span.cause == "timeout").count(), 3);
    stage.drain();
}

#[test]
fn replicas_take_turns() {
    let stage = Stage::on(
        "[services.root]\nentry = true\nsteps = [{ call = \"leaf\" }]\n[services.leaf]\nreplicas = 3\n",
        2,
    );
    let mut client = stage.client("root");
    for _ in 0..9 {
        assert_eq!(client.get("/").status, 200);
    }
    let id = stage.topology.find("leaf").unwrap();
    for replica in 0..3 {
        let counters = stage.metrics.instance(&stage.topology, id, replica);
        assert_eq!(counters.connections().0, 1);
    }
    stage.drain();
}

#[test]
fn a_caller_that_goes_takes_its_calls_along() {
    let leaf = listener();
    let text = "[services.root]\nentry = true\nsteps = [{ call = \"leaf\", timeout = \"1h\" }]\n[services.leaf]\n";
    let stage = Stage::without_leaf(text, &leaf);
    let mut client = stage.client("root");
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    let (mut called, _) = leaf.accept().unwrap();
    drop(client);
    let mut rest = Vec::new();
    std::io::Read::read_to_end(&mut called, &mut rest).unwrap();
    assert!(rest.starts_with(b"GET / HTTP/1.1\r\nHost: leaf\r\n"));
    stage.drain();
}

#[test]
fn nothing_is_left_behind() {
    // Descriptors are the whole process's, in which other tests run: this graph is told
    // apart by its listeners' ports.
    let stage = Stage::on(CHAIN, 2);
    let ports: Vec<u16> = ["broot", "bbranch", "bleaf"]
        .iter()
        .map(|name| stage.address(name).port())
        .collect();
    load(&stage, 8, 20);
    assert!(sockets_of(&ports) >= 3);
    stage.drain();
    assert_eq!(sockets_of(&ports), 0);
}

/// Open sockets of this process with one of these ports at either end.
fn sockets_of(ports: &[u16]) -> usize {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let port = |text: &str| u16::from_str_radix(text.split(':').nth(1).unwrap(), 16).unwrap();
    let own: std::collections::HashSet<String> = std::fs::read_dir("/proc/self/fd")
        .unwrap()
        .filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok())
        .filter_map(|link| {
            let link = link.to_str()?.to_owned();
            Some(link.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned())
        })
        .collect();
    let rows = table
        .lines()
        .skip(1)
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    rows.filter(|row| own.contains(row[9]))
        .filter(|row| ports.contains(&port(row[1])) || ports.contains(&port(row[2])))
        .count()
}

#[test]
fn who_drains_lets_requests_end_with_all_that_they_call() {
    let stage = Stage::on(
        r#"
[defaults]
response = "echo"
[services.root]
entry = true
steps = [{ sleep = "50ms" }, { call = "branch" }, { call = "leaf", wait = false }]
[services.branch]
steps = [{ sleep = "20ms" }, { call = "leaf" }]
[services.leaf]
"#,
        2,
    );
    // Connections that are idle when the draining begins, and new ones.
    for _ in 0..2 {
        assert_eq!(stage.client("root").get("/").status, 200);
    }
    let mut clients: Vec<_> = (0..4).map(|_| stage.client("root")).collect();
    let mut idle = stage.client("root");
    for client in &mut clients {
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    }
    let metrics = Arc::clone(&stage.metrics);
    stage.drain();
    for client in &mut clients {
        let answer = client.answer(true);
        assert_eq!(answer.body, "hello:root:/:hello:branch:/:hello:leaf:/");
        assert_eq!(answer.field("connection"), Some("close"));
        assert!(client.is_closed());
    }
    assert!(idle.is_closed());
    for (key, totals) in metrics.snapshot().0 {
        let all = (
            totals.in_flight,
            totals.waiting,
            totals.open,
            totals.dropped,
        );
        assert_eq!((all, totals.failures.len()), ((0, 0, 0, 0), 0), "{key:?}");
    }
}

#[test]
fn a_host_that_is_dropped_stops() {
    let stage = Stage::new(CHAIN);
    let address = stage.address("broot");
    let mut client = Client::new(address);
    assert_eq!(client.get("/").status, 200);
    let metrics = Arc::clone(&stage.metrics);
    drop(stage);
    assert!(client.is_closed());
    assert!(std::net::TcpStream::connect(address).is_err());
    drop(metrics);
}
