//! HTTP/2 and gRPC: between services, and with another implementation's client.

use std::net::TcpListener;
use std::time::Duration;

use bytes::Bytes;
use h2::client::SendRequest;
use http::{HeaderMap, Method, Request};

use super::answers::CHAIN;
use super::callers::{accepted, load};
use super::stage::{Stage, listener};
use traces::SpanKind;

const BOTH: [&str; 2] = ["http2", "grpc"];

/// A graph whose root speaks HTTP/1.1 with the test, and whose others speak something else.
fn speaking(protocol: &str, text: &str) -> String {
    assert!(text.contains("[defaults]"));
    text.replace(
        "[defaults]",
        &format!("[defaults]\nprotocol = \"{protocol}\""),
    )
    .replace("entry = true", "entry = true\nprotocol = \"http1\"")
}

#[test]
fn a_chain_says_the_same_in_every_protocol() {
    for protocol in BOTH {
        let stage = Stage::new(&speaking(protocol, CHAIN));
        let mut client = stage.client("broot");
        for path in ["/", "/fork", "/"] {
            let answer = client.get(path);
            let expected = format!("hello:broot:{path}:hello:bbranch:{path}:hello:bleaf:{path}");
            assert_eq!((answer.status, answer.body), (200, expected), "{protocol}");
        }
        // Three servers and two calls each, and the fork.
        let spans = stage.wait_for_spans(3 * 5 + 1);
        for span in spans.iter().filter(|span| span.kind == SpanKind::Server) {
            let is_root = &*span.service == "broot";
            let parent = spans.iter().find(|one| one.id == span.parent);
            assert_eq!(is_root, parent.is_none());
            assert_eq!(span.status, 200);
        }
        stage.drain();
    }
}

#[test]
fn one_connection_carries_all_calls() {
    for protocol in BOTH {
        let stage = Stage::on(&speaking(protocol, CHAIN), 2);
        load(&stage, 16, 50);
        for service in ["bbranch", "bleaf"] {
            assert_eq!(accepted(&stage, service), 1, "{service} {protocol}");
        }
        stage.drain();
    }
}

#[test]
fn a_cold_edge_makes_one_for_each_call() {
    let cold = CHAIN.replace("[defaults]", "[defaults]\nconnections = \"cold\"");
    let stage = Stage::new(&speaking("http2", &cold));
    load(&stage, 4, 25);
    assert_eq!(accepted(&stage, "bbranch"), 100);
    assert_eq!(accepted(&stage, "bleaf"), 100);
    stage.drain();
}

#[test]
fn calls_beyond_what_an_edge_may_carry_wait() {
    let text = r#"
[defaults]
connections = 2
[services.root]
entry = true
steps = [{ call = "leaf", count = 7 }]
[services.leaf]
steps = [{ sleep = "5ms" }]
"#;
    for protocol in BOTH {
        let stage = Stage::new(&speaking(protocol, text));
        load(&stage, 3, 2);
        let spans = stage.wait_for_spans(6 * 22);
        let mut changes = Vec::new();
        for span in spans.iter().filter(|span| &*span.service == "leaf") {
            if span.kind == SpanKind::Work {
                changes.push((span.start, 1));
                changes.push((span.end, -1));
            }
        }
        changes.sort_unstable();
        let mut at_once = 0;
        for (_, change) in changes {
            at_once += change;
            assert!(at_once <= 2, "{protocol}");
        }
        stage.drain();
    }
}

#[test]
fn long_bodies_pass() {
    let text = r#"
[defaults]
[services.root]
entry = true
steps = [{ call = "leaf", request = "3MiB", timeout = "60s" }]
[services.leaf]
response = "5MiB"
"#;
    for protocol in BOTH {
        let stage = Stage::new(&speaking(protocol, text));
        let mut client = stage.client("root");
        assert_eq!(client.get("/").status, 200);
        stage.drain();
    }
}

/// A root here; its leaf is played by the test.
fn with_leaf(protocol: &str, leaf: &TcpListener, call: &str) -> Stage {
    let text = format!(
        r#"
[services.root]
entry = true
steps = [{{ call = "leaf"{call} }}]
[services.leaf]
protocol = "{protocol}"
"#
    );
    Stage::without_leaf(&text, leaf)
}

#[test]
fn callees_that_are_gone_or_stopped_or_speak_something_else() {
    for protocol in BOTH {
        let leaf = listener();
        let stage = with_leaf(protocol, &leaf, ", timeout = \"50ms\"");
        let mut client = stage.client("root");
        let mut silent = Vec::new();
        for _ in 0..2 {
            assert_eq!(client.get("/").failed(), (504, "root>leaf timeout"));
            // Who says nothing at all is not asked over the same connection again.
            silent.push(leaf.accept().unwrap());
        }
        drop(leaf);
        // A busy machine may be late even to refuse.
        let mut answers = (0..100).map(|_| client.get("/"));
        let refused = answers.find(|answer| answer.status != 504).unwrap();
        assert_eq!(refused.failed(), (502, "root>leaf refused"));
        drop(answers);
        stage.drain();

        let leaf = listener();
        let stage = with_leaf(protocol, &leaf, "");
        let mut client = stage.client("root");
        let answers = std::thread::scope(|scope| {
            let answer = scope.spawn(|| client.get("/"));
            let (mut stream, _) = leaf.accept().unwrap();
            std::io::Write::write_all(&mut stream, b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
            answer.join().unwrap()
        });
        assert_eq!(answers.failed(), (502, "root>leaf malformed"));
        stage.drain();
    }
}

#[test]
fn failures_and_faults_of_callees() {
    let text = r#"
[defaults]
[services.root]
entry = true
[services.root.endpoints."/error"]
steps = [{ call = "error" }]
[services.root.endpoints."/drop"]
steps = [{ call = "drop" }]
[services.root.endpoints."/slow"]
steps = [{ call = "branch", timeout = "20s" }]
[services.root.endpoints."/none"]
steps = [{ call = "error", path = "/none" }]
[services.branch]
[services.branch.endpoints."/slow"]
steps = [{ call = "slow", timeout = "20ms" }]
[services.error]
faults = { error = "100%", status = 503 }
endpoints."*" = { steps = [] }
[services.drop]
faults = { drop = "100%" }
endpoints."*" = { steps = [] }
[services.slow]
endpoints."*" = { steps = [{ sleep = "500ms" }] }
"#;
    for protocol in BOTH {
        let stage = Stage::new(&speaking(protocol, text));
        let mut client = stage.client("root");
        for (path, expected) in [
            ("/error", (502, "error fault")),
            ("/drop", (502, "root>drop reset")),
            ("/slow", (504, "branch>slow timeout")),
            ("/none", (502, "error fault")),
        ] {
            assert_eq!(client.get(path).failed(), expected, "{path} {protocol}");
        }
        stage.drain();
    }
}

#[test]
fn a_request_in_hand_is_answered_though_the_graph_drains() {
    let text = r#"
[defaults]
[services.root]
entry = true
steps = [{ call = "leaf" }]
[services.leaf]
steps = [{ sleep = "300ms" }]
"#;
    for protocol in BOTH {
        let stage = Stage::new(&speaking(protocol, text));
        let mut client = stage.client("root");
        let status = std::thread::scope(|scope| {
            let answer = scope.spawn(move || client.get("/").status);
            while accepted(&stage, "leaf") == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
            assert!(stage.host.drain(Duration::from_secs(20)));
            answer.join().unwrap()
        });
        assert_eq!(status, 200, "{protocol}");
        stage.host.stop();
    }
}

/// What another implementation's client got.
struct Got {
    status: u16,
    fields: HeaderMap,
    trailers: HeaderMap,
    body: Vec<u8>,
}

async fn ask(client: &SendRequest<Bytes>, request: Request<()>, body: &[u8]) -> Got {
    let mut client = client.clone().ready().await.unwrap();
    let (answer, mut send) = client.send_request(request, body.is_empty()).unwrap();
    if !body.is_empty() {
        send.send_data(Bytes::copy_from_slice(body), true).unwrap();
    }
    let (head, mut stream) = answer.await.unwrap().into_parts();
    let mut body = Vec::new();
    while let Some(part) = stream.data().await {
        let part = part.unwrap();
        let _ = stream.flow_control().release_capacity(part.len());
        body.extend_from_slice(&part);
    }
    Got {
        status: head.status.as_u16(),
        fields: head.headers,
        trailers: stream.trailers().await.unwrap().unwrap_or_default(),
        body,
    }
}

/// Runs a client of a service.
fn with_client<F: Future<Output = ()>>(
    stage: &Stage,
    service: &str,
    test: impl FnOnce(SendRequest<Bytes>) -> F,
) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let socket = tokio::net::TcpStream::connect(stage.address(service)).await;
        let (client, connection) = h2::client::handshake(socket.unwrap()).await.unwrap();
        tokio::spawn(async move {
            let _ = connection.await;
        });
        test(client).await;
    });
}

fn request(method: Method, path: &str) -> http::request::Builder {
    Request::builder()
        .method(method)
        .uri(format!("http://test{path}"))
}

#[test]
fn another_client_of_http2() {
    let text = CHAIN.replace("[defaults]", "[defaults]\nprotocol = \"http2\"");
    let stage = Stage::new(&text);
    with_client(&stage, "broot", async |client| {
        let plain = |method, path| request(method, path).body(()).unwrap();
        let got = ask(&client, plain(Method::GET, "/?a"), b"").await;
        assert_eq!(got.status, 200);
        assert_eq!(got.body.len(), 43);
        assert_eq!(got.fields["content-length"], "43");
        let got = ask(&client, plain(Method::HEAD, "/"), b"").await;
        assert_eq!((got.status, got.body.len()), (200, 0));
        assert_eq!(got.fields["content-length"], "43");
        let got = ask(&client, plain(Method::POST, "/"), &[1; 100_000]).await;
        assert_eq!(got.status, 200);
        let got = ask(&client, plain(Method::GET, "/none"), b"").await;
        assert_eq!(got.status, 404);
        let got = ask(&client, plain(Method::DELETE, "/"), b"").await;
        assert_eq!(got.status, 405);
        let got = ask(
            &client,
            request(Method::GET, "/fork")
                .header(
                    "traceparent",
                    "00-0000000000000000000000000000abcd-00000000000000ef-01",
                )
                .body(())
                .unwrap(),
            b"",
        )
        .await;
        assert_eq!(got.status, 200);
        let spans = stage.spans();
        assert!(spans.iter().any(|span| span.trace.0 == 0xabcd));
        let all = (0..100).map(|_| {
            let client = client.clone();
            let request = plain(Method::GET, "/");
            tokio::spawn(async move { ask(&client, request, b"").await.status })
        });
        for one in all.collect::<Vec<_>>() {
            assert_eq!(one.await.unwrap(), 200);
        }
    });
    stage.drain();
}

#[test]
fn another_client_of_grpc() {
    let text = r#"
[defaults]
protocol = "grpc"
[services.root]
entry = true
endpoints."/" = { response = "10B" }
endpoints."/slow" = { steps = [{ sleep = "10s" }] }
endpoints."/echo" = { response = "echo" }
"#;
    let stage = Stage::new(text);
    with_client(&stage, "root", async |client| {
        let call = |method: &str| {
            request(Method::POST, method)
                .header("content-type", "application/grpc+proto")
                .header("te", "trailers")
        };
        let method = "/headroom.graph.Service/Call";
        let message = [0, 0, 0, 0, 5, 0x0a, 3, b'a', b'b', b'c'];
        let got = ask(&client, call(method).body(()).unwrap(), &message).await;
        assert_eq!(
            (got.status, got.trailers["grpc-status"].to_str().unwrap()),
            (200, "0")
        );
        assert_eq!(got.fields["content-type"], "application/grpc");
        assert_eq!(got.body[..7], [0, 0, 0, 0, 12, 0x0a, 10]);
        assert_eq!(got.body.len(), 17);

        let echo = call(method).header("x-headroom-path", "/echo");
        let got = ask(&client, echo.body(()).unwrap(), &[0; 5]).await;
        assert_eq!(got.body[7..], *b"hello:root:/echo");

        let wrong = call("/other.Service/Call").body(()).unwrap();
        let got = ask(&client, wrong, &[0; 5]).await;
        assert_eq!(
            (got.status, &got.fields["grpc-status"]),
            (200, &"12".parse().unwrap())
        );

        let nowhere = call(method).header("x-headroom-path", "/none");
        let got = ask(&client, nowhere.body(()).unwrap(), &[0; 5]).await;
        assert_eq!(got.fields["grpc-status"], "5");
        assert_eq!(got.fields["grpc-message"], "root path");

        let slow = call(method)
            .header("x-headroom-path", "/slow")
            .header("grpc-timeout", "20m");
        let got = ask(&client, slow.body(()).unwrap(), &[0; 5]).await;
        assert_eq!(got.fields["grpc-status"], "4");
        assert_eq!(got.fields["x-headroom-failed"], "root timeout");

        let plain = request(Method::POST, method).body(()).unwrap();
        assert_eq!(ask(&client, plain, b"").await.status, 415);
    });
    stage.drain();
}

#[test]
fn a_client_that_gives_up_is_forgotten() {
    let text = r#"
[services.root]
entry = true
protocol = "http2"
steps = [{ sleep = "60s" }]
"#;
    let stage = Stage::new(text);
    with_client(&stage, "root", async |client| {
        let mut ready = client.ready().await.unwrap();
        let request = request(Method::GET, "/").body(()).unwrap();
        let (answer, mut stream) = ready.send_request(request, true).unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
        stream.send_reset(h2::Reason::CANCEL);
        drop(answer);
        tokio::time::sleep(Duration::from_millis(1)).await;
    });
    // It does not wait for the sleep.
    let spans = stage.wait_for_spans(1);
    assert_eq!(spans[0].cause, "gone");
    stage.drain();
}

#[test]
fn a_caller_that_goes_takes_its_calls_along() {
    for protocol in BOTH {
        let stage = Stage::new(&format!(
            r#"
[services.root]
entry = true
steps = [{{ call = "leaf" }}]
[services.leaf]
protocol = "{protocol}"
steps = [{{ sleep = "50s" }}]
"#
        ));
        let mut client = stage.client("root");
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        // The request at each service, and the call between them.
        let under_way = || {
            let all = stage.metrics.snapshot().0.into_values();
            all.filter(|totals| totals.in_flight > 0).count()
        };
        while under_way() < 3 {
            std::thread::sleep(Duration::from_millis(1));
        }
        drop(client);
        // Nobody waits for the sleep, and nobody's failure is told.
        let spans = stage.wait_for_spans(3);
        assert!(spans.iter().all(|span| span.cause == "gone"), "{spans:#?}");
        stage.drain();
    }
}
