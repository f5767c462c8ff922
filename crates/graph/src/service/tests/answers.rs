//! What services answer when all goes well.

use super::stage::{Client, Stage, graph};
use traces::SpanKind;

/// The seed's chain.
pub(super) const CHAIN: &str = r#"
name = "chain"
seed = 1
[defaults]
timeout = "60s"
response = "echo"
[services.broot]
entry = true
[services.broot.endpoints."/"]
steps = [{ call = "bbranch" }]
[services.broot.endpoints."/fork"]
steps = [{ call = "bbranch" }]
[services.bbranch]
[services.bbranch.endpoints."/"]
steps = [{ call = "bleaf" }]
[services.bbranch.endpoints."/fork"]
steps = [{ call = "bleaf" }]
[services.bleaf]
[services.bleaf.endpoints."/"]
steps = []
[services.bleaf.endpoints."/fork"]
steps = [{ fork = ["true"] }]
"#;

#[test]
fn a_chain_echoes_as_testapi_does() {
    let stage = Stage::new(CHAIN);
    let mut client = stage.client("broot");
    for path in ["/", "/fork"] {
        for _ in 0..3 {
            let answer = client.get(path);
            let expected = format!("hello:broot:{path}:hello:bbranch:{path}:hello:bleaf:{path}");
            assert_eq!((answer.status, answer.body), (200, expected));
        }
    }
    let answer = client.get("/?query=/");
    assert_eq!(answer.body.len(), 43);
    assert_eq!(client.get("/none").status, 404);
    stage.drain();
}

#[test]
fn heads_and_posts_and_what_is_neither() {
    let stage = Stage::new(CHAIN);
    let mut client = stage.client("broot");
    let answer = client.ask("HEAD", "/", "");
    assert_eq!(answer.field("content-length"), Some("43"));
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab");
    client.send("cde");
    assert_eq!(client.answer(true).body.len(), 43);
    client.send(
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
    );
    assert_eq!(client.answer(true).body.len(), 43);
    client.send("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n");
    assert_eq!(client.answer(false).status, 100);
    client.send("x");
    assert_eq!(client.answer(true).status, 200);
    let answer = client.ask("DELETE", "/", "");
    assert_eq!(
        (answer.status, answer.field("allow")),
        (405, Some("GET, HEAD, POST"))
    );
    assert!(client.is_closed());

    for (request, status) in [
        ("GET /\r\n\r\n".to_owned(), 400),
        ("GET / HTTP/2.5\r\nHost: a\r\n\r\n".to_owned(), 505),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(), 400),
        (
            format!(
                "GET / HTTP/1.1\r\nHost: a\r\nx: {}\r\n\r\n",
                "y".repeat(40_000)
            ),
            431,
        ),
        (
            format!(
                "GET / HTTP/1.1\r\nHost: a\r\n{}\r\n",
                "x: y\r\n".repeat(200)
            ),
            431,
        ),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999\r\n\r\n".to_owned(),
            413,
        ),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n".to_owned(),
            400,
        ),
    ] {
        let mut client = stage.client("broot");
        client.send(&request);
        assert_eq!(client.answer(true).status, status, "{request:.60}");
        assert!(client.is_closed(), "{request:.60}");
    }
    stage.drain();
}

#[test]
fn requests_one_behind_the_other_are_answered_in_order() {
    let stage = Stage::new(CHAIN);
    let mut client = stage.client("broot");
    let mut text = String::new();
    for number in 0..200 {
        let path = if number % 3 == 0 { "/none" } else { "/" };
        text.push_str(&format!(
            "GET {path} HTTP/1.1\r\nHost: a\r\nx: {}\r\n\r\n",
            "y".repeat(number * 7)
        ));
    }
    client.send(&text);
    for number in 0..200 {
        let expected = if number % 3 == 0 { 404 } else { 200 };
        assert_eq!(client.answer(true).status, expected);
    }
    // One by one, byte by byte.
    for byte in "GET / HTTP/1.1\r\nHost: a\r\n\r\n".chars() {
        client.send(&byte.to_string());
    }
    assert_eq!(client.answer(true).status, 200);
    stage.drain();
}

#[test]
fn connections_end_when_they_should() {
    let stage = Stage::new(CHAIN);
    let mut client = stage.client("broot");
    let answer = client.ask("GET", "/", "Connection: close\r\n");
    assert_eq!(answer.field("connection"), Some("close"));
    assert!(client.is_closed());
    let mut old = stage.client("broot");
    old.send("GET / HTTP/1.0\r\n\r\n");
    assert_eq!(old.answer(true).body.len(), 43);
    assert!(old.is_closed());
    let mut kept = stage.client("broot");
    for _ in 0..2 {
        kept.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
        assert_eq!(kept.answer(true).field("connection"), Some("keep-alive"));
    }
    stage.drain();
    assert!(kept.is_closed());
}

#[test]
fn a_diamond_is_walked_at_once_or_in_turn() {
    let of = |root: &str| {
        Stage::new(&format!(
            r#"
[services.root]
entry = true
response = "echo"
steps = [{root}]
[services.price]
response = "echo"
steps = [{{ sleep = "10ms" }}, {{ call = "store" }}]
[services.stock]
response = "echo"
steps = [{{ sleep = "20ms" }}, {{ call = "store" }}]
[services.store]
response = "echo"
"#
        ))
    };
    let expected = "hello:root:/:hello:price:/:hello:store:/:hello:stock:/:hello:store:/";
    for (root, shortest) in [
        (
            r#"{ parallel = [{ call = "price" }, { call = "stock" }] }"#,
            20,
        ),
        (r#"{ call = "price" }, { call = "stock" }"#, 30),
    ] {
        let stage = of(root);
        assert_eq!(stage.client("root").get("/").body, expected);
        // Five servers, four calls, two sleeps.
        let spans = stage.wait_for_spans(11);
        let server = |name: &str| {
            let is = |span: &&traces::Span| span.kind == SpanKind::Server && &*span.service == name;
            spans.iter().filter(is).collect::<Vec<_>>()
        };
        assert_eq!(server("store").len(), 2);
        let root = server("root")[0];
        // Sleeps never end early; how late they end is the machine's matter.
        assert!(root.end - root.start >= shortest * 1_000_000);
        let sleeps = spans.iter().filter(|span| &*span.name == "sleep");
        for sleep in sleeps {
            let length = if &*sleep.service == "price" { 10 } else { 20 };
            assert!(sleep.end - sleep.start >= length * 1_000_000);
        }
        // Every span but the first is below one that is there.
        for span in &spans {
            let parent = spans.iter().find(|one| one.id == span.parent);
            assert_eq!(parent.is_none(), span.id == root.id, "{span:?}");
            assert_eq!(span.trace, root.trace);
            assert!(span.start <= span.end);
        }
        stage.drain();
    }
}

#[test]
fn bodies_are_as_long_as_asked() {
    let stage = Stage::new(
        r#"
[services.root]
entry = true
response = "300KiB"
steps = [{ call = "store", request = "5MiB" }]
[services.store]
response = "20MiB"
"#,
    );
    let mut client = stage.client("root");
    for _ in 0..3 {
        assert_eq!(client.get("/").body.len(), 300 * 1024);
    }
    assert_eq!(stage.client("store").get("/").body.len(), 20 * 1024 * 1024);
    stage.drain();
}

#[test]
fn work_is_done_here_and_by_workers() {
    let stage = Stage::new(
        r#"
[services.root]
entry = true
workers = 1
queue = 2
steps = [{ cpu = "20us" }, { cpu = "2ms" }, { ops = 1000 }, { call = "alone" }]
[services.alone]
workers = 0
steps = [{ cpu = "2ms" }]
"#,
    );
    let mut client = stage.client("root");
    for _ in 0..3 {
        assert_eq!(client.get("/").status, 200);
    }
    // For each: two servers, a call, four pieces of work.
    let spans = stage.wait_for_spans(3 * 7);
    let work = |name: &str| {
        let is = |span: &&traces::Span| span.kind == SpanKind::Work && &*span.name == name;
        spans.iter().filter(is).collect::<Vec<_>>()
    };
    assert_eq!((work("cpu").len(), work("ops").len()), (9, 3));
    for span in work("cpu") {
        assert!(span.cpu >= 20_000, "{span:?}");
    }
    stage.drain();
}

#[test]
fn a_random_graph_of_two_hundred_services_answers() {
    // Each service calls up to three later ones.
    let mut text = String::from("seed = 7\n[defaults]\nresponse = \"16B\"\ntimeout = \"60s\"\n");
    let mut random = stats::SplitMix::new(3);
    for number in 0..200_u64 {
        let entry = if number == 0 { "entry = true\n" } else { "" };
        text.push_str(&format!("[services.s{number}]\n{entry}"));
        let mut calls = Vec::new();
        let later = 199 - number;
        for turn in 0..3.min(later) {
            let share = if turn == 0 { 1.0 } else { 0.2 };
            // The first call makes sure that every service is reached.
            let to = if turn == 0 {
                number + 1
            } else {
                number + 1 + (random.uniform() * later as f64) as u64
            };
            calls.push(format!("{{ call = \"s{to}\", probability = {share} }}"));
        }
        if number > 20 {
            calls.truncate(1);
        }
        text.push_str(&format!(
            "steps = [{{ parallel = [{}] }}]\n",
            calls.join(", ")
        ));
        if calls.is_empty() {
            let last = text.rfind("steps").unwrap();
            text.truncate(last);
        }
    }
    let graph = graph(&text);
    assert_eq!(graph.services.len(), 200);
    let stage = Stage::on(&text, 2);
    let mut client = stage.client("s0");
    let answer = client.ask("GET", "/", "x-envoy-expected-rq-timeout-ms: 30000\r\n");
    assert_eq!(answer.status, 200, "{}", answer.body);
    stage.drain();
}

#[test]
fn what_a_client_says_of_its_trace_is_kept() {
    let stage = Stage::new(CHAIN);
    let mut client = stage.client("broot");
    let trace = "0af7651916cd43dd8448eb211c80319c";
    client.ask(
        "GET",
        "/",
        &format!("traceparent: 00-{trace}-b7ad6b7169203331-01\r\n"),
    );
    let spans = stage.wait_for_spans(5);
    for span in &spans {
        assert_eq!(format!("{:032x}", span.trace.0), trace);
    }
    client.ask(
        "GET",
        "/",
        &format!("traceparent: 00-{trace}-b7ad6b7169203331-00\r\n"),
    );
    assert_eq!(stage.spans().len(), 0);
    // The same request again makes the same calls.
    client.ask(
        "GET",
        "/",
        &format!("traceparent: 00-{trace}-b7ad6b7169203331-01\r\n"),
    );
    let ids = |spans: &[traces::Span]| {
        let mut ids: Vec<_> = spans.iter().map(|span| span.id).collect();
        ids.sort();
        ids
    };
    assert_eq!(ids(&stage.wait_for_spans(5)), ids(&spans));
    // Other clients do not matter.
    let _other = Client::new(stage.address("bleaf")).get("/");
    stage.drain();
}

/// Asks so many times over each of so many connections at once, and gives the requests whose
/// leaf was called.
fn called(connections: usize, each: usize) -> std::collections::BTreeSet<u128> {
    let stage = Stage::new(
        r#"
seed = 42
[defaults]
response = "echo"
[services.root]
entry = true
steps = [{ call = "leaf", probability = 0.3 }, { call = "never", probability = 0 }]
[services.leaf]
[services.never]
"#,
    );
    let asked: usize = std::thread::scope(|scope| {
        let clients = (0..connections).map(|_| {
            scope.spawn(|| {
                let mut client = stage.client("root");
                let bodies = (0..each).map(|_| client.get("/").body);
                bodies.filter(|body| body.contains("leaf")).count()
            })
        });
        let clients: Vec<_> = clients.collect();
        clients.into_iter().map(|one| one.join().unwrap()).sum()
    });
    let spans = stage.wait_for_spans(connections * each + 2 * asked);
    assert!(spans.iter().all(|span| &*span.service != "never"));
    stage.drain();
    let leaves = spans.iter().filter(|span| &*span.service == "leaf");
    leaves.map(|span| span.trace.0).collect()
}

#[test]
fn the_same_requests_call_whoever_asks() {
    let one = called(1, 10_000);
    // Three standard deviations.
    assert!((2862..=3138).contains(&one.len()), "{}", one.len());
    assert_eq!(one, called(8, 1250));
}
