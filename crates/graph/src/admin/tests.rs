use std::io::Write;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use http_body_util::Full;
use net::{Answer, Client, ClientOptions};
use serde_json::{Value, json};

use super::*;
use crate::metrics::Metrics;
use crate::topology::{EdgeId, StepId};
use crate::trace::samples::server;
use crate::trace::{Origin, StoreLimits, Tracer, otlp, zipkin};

const MS: u64 = 1_000_000;

/// A graph that takes any profile but `bad`, and panics at `panic`.
struct Graph {
    profile: Mutex<(String, u32)>,
}

impl Control for Graph {
    fn topology(&self) -> (Arc<Topology>, u32) {
        let topology = Arc::new(crate::metrics::tests::topology());
        (topology, self.profile.lock().unwrap().1)
    }

    fn instances(&self) -> Vec<Instance> {
        vec![Instance {
            service: ServiceId(1),
            replica: 0,
            address: ([127, 0, 0, 1], 8888).into(),
            pid: 7,
            admin: None,
        }]
    }

    fn deployment(&self) -> Value {
        json!({ "mode": "test" })
    }

    fn profile(&self) -> String {
        self.profile.lock().unwrap().0.clone()
    }

    fn put_profile(&self, text: &str) -> Result<u32, String> {
        assert!(text != "panic", "as asked");
        if text == "bad" {
            return Err("profile.toml:1:1: bad".to_owned());
        }
        let mut profile = self.profile.lock().unwrap();
        *profile = (text.to_owned(), profile.1 + 1);
        Ok(profile.1)
    }

    fn analysis(&self, traces: Vec<Vec<Span>>) -> Result<Value, String> {
        match traces.len() {
            0 => Err("no trace has ended yet".to_owned()),
            count => Ok(json!({ "traces": count })),
        }
    }
}

struct Running {
    admin: Arc<Admin>,
    address: SocketAddr,
    metrics: Arc<Metrics>,
    tracer: Tracer,
    client: Client,
    _stop: tokio::sync::watch::Sender<bool>,
}

impl Running {
    async fn start() -> Self {
        let metrics = Arc::new(Metrics::new());
        let tracer = Tracer::new(StoreLimits::default(), Vec::new());
        let admin = Admin::new(AdminConfig {
            control: Arc::new(Graph {
                profile: Mutex::new(("first".to_owned(), 1)),
            }),
            metrics: Arc::clone(&metrics),
            tracer: tracer.clone(),
            page: Some(AdminPage {
                html: Bytes::from_static(b"<!doctype html>"),
                policy: HeaderValue::from_static("default-src 'none'"),
            }),
        });
        let listener = net::bind(([127, 0, 0, 1], 0).into()).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, shutdown) = net::shutdown();
        tokio::spawn(Arc::clone(&admin).serve(listener, shutdown));
        Self {
            admin,
            address,
            metrics,
            tracer,
            client: Client::new(ClientOptions::default()),
            _stop: stop,
        }
    }

    async fn ask(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("http://{}{path}", self.address));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = Full::new(Bytes::copy_from_slice(body));
        self.client
            .request(request.body(body).unwrap())
            .await
            .unwrap()
    }

    async fn get(&self, path: &str) -> Answer {
        self.ask(Method::GET, path, &[], b"").await
    }

    async fn json(&self, path: &str) -> Value {
        let answer = self.get(path).await;
        assert_eq!(answer.status, StatusCode::OK, "{:?}", answer.body);
        serde_json::from_slice(&answer.body).unwrap()
    }
}

fn error(answer: &Answer) -> String {
    let json: Value = serde_json::from_slice(&answer.body).unwrap();
    json["error"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn it_says_what_runs() {
    let running = Running::start().await;
    let topology = running.json("/topology").await;
    let expected = json!({
        "name": "two", "seed": 1, "revision": 1, "entry": "the-root",
        "services": [
            {
                "name": "the-root", "protocol": "http1", "replicas": 1, "workers": 0,
                "cpus": [], "cpu_limit": null, "memory_limit": null,
                "endpoints": [{ "path": "/", "steps": [{ "id": 1, "sequence": [
                    { "id": 2, "work": "cpu" },
                    { "id": 3, "call": "leaf", "edge": "the-root>leaf", "path": null,
                      "probability": 1.0, "wait": true },
                ] }] }],
            },
            {
                "name": "leaf", "protocol": "http1", "replicas": 1, "workers": 0,
                "cpus": [], "cpu_limit": null, "memory_limit": null,
                "endpoints": [{ "path": "/", "steps": [] }],
            },
        ],
        "edges": [{ "id": "the-root>leaf", "from": "the-root", "to": "leaf",
                    "connections": 4, "cold": false }],
        "instances": [{ "service": "leaf", "replica": 0, "address": "127.0.0.1:8888",
                        "pid": 7, "admin": null }],
        "deployment": { "mode": "test" },
    });
    assert_eq!(topology, expected);
    assert_eq!(&running.get("/ping").await.body[..], b"pong\n");
    let page = running.get("/").await;
    assert_eq!(
        page.headers["content-security-policy"],
        "default-src 'none'"
    );
    assert_eq!(page.headers["cache-control"], "no-store");
}

#[tokio::test]
async fn stats_are_what_came_in_the_last_seconds() {
    let running = Running::start().await;
    let counters = running
        .metrics
        .instance(&crate::metrics::tests::topology(), ServiceId(0), 0);
    let requests = |count: u64, status: u16| {
        for _ in 0..count {
            let server = counters.server(Some(0));
            server.began(1000);
            let client = counters.client(EdgeId(0));
            client.began(0);
            client.ended(status, 2 * MS, 0);
            counters.work(StepId(2)).done(MS, MS, 0, 0);
            server.answered(status, 4 * MS);
        }
    };
    requests(10, 200);
    // What came before the first reading is in no window, only in the page of metrics.
    running.admin.watch.read().await;
    requests(30, 200);
    requests(10, 503);
    counters.server(Some(0)).began(0);
    running.admin.watch.read().await;
    let stats = running.json("/stats?seconds=60").await;
    let seconds = stats["seconds"].as_f64().unwrap();
    assert!(seconds > 0.0);
    let [root] = &stats["services"].as_array().unwrap()[..] else {
        panic!("{stats}");
    };
    let near = |value: &Value, count: f64| {
        let value = value.as_f64().unwrap() * seconds;
        assert!(
            (value - count).abs() < 1e-6 * count.max(1.0),
            "{value} {count}"
        );
    };
    // The ten of before came after the server's own first reading.
    near(&root["rate"], 50.0);
    near(&root["errors"], 10.0);
    assert_eq!(
        (&root["in_flight"], &root["name"]),
        (&json!(1), &json!("the-root"))
    );
    let latency = &root["latency"];
    assert_eq!(
        (&latency["count"], &latency["mean_ns"]),
        (&json!(40), &json!(4 * MS))
    );
    let p99 = latency["p99_ns"].as_u64().unwrap();
    assert!((3 * MS..=4 * MS).contains(&p99), "{p99}");
    near(&root["work"][0]["rate"], 50.0);
    assert_eq!(root["work"][0]["kind"], "cpu");
    let edge = &stats["edges"][0];
    assert_eq!(edge["id"], "the-root>leaf");
    near(&edge["errors"], 10.0);
    let metrics = running.get("/metrics").await;
    let text = String::from_utf8(metrics.body.to_vec()).unwrap();
    let count = "headroom_graph_server_request_seconds_count{service=\"the-root\",path=\"/\",status=\"2xx\"} 40";
    assert!(text.lines().any(|line| line == count), "{text}");
    assert!(text.contains("headroom_graph_spans_recorded_total 0"));
    let seeds = running.get("/metrics?names=testapi").await;
    let text = String::from_utf8(seeds.body.to_vec()).unwrap();
    assert!(text.contains("the_root_opencensus_io_http_server_latency_count 50"));
}

#[tokio::test]
async fn a_parent_counts_what_its_children_count() {
    let (parent, child) = (Running::start().await, Running::start().await);
    let topology = crate::metrics::tests::topology();
    for (running, count) in [(&parent, 1), (&child, 2)] {
        let counters = running.metrics.instance(&topology, ServiceId(1), 0);
        for _ in 0..count {
            counters.accepted();
        }
    }
    let peer = |name: &str, address: SocketAddr| Peer {
        name: name.to_owned(),
        counters: format!("http://{address}/counters").parse().unwrap(),
    };
    let gone: SocketAddr = ([127, 0, 0, 1], 1).into();
    parent
        .admin
        .follow(vec![peer("child", child.address), peer("gone", gone)]);
    parent.admin.watch.read().await;
    let stats = parent.json("/stats").await;
    assert_eq!(stats["services"][0]["connections"], 3);
    let page = parent.get("/metrics").await.body;
    let page = String::from_utf8(page.to_vec()).unwrap();
    let line = "headroom_graph_server_connections_accepted_total{service=\"leaf\"} 3";
    assert!(page.lines().any(|found| found == line), "{page}");
}

#[tokio::test]
async fn traces_are_listed_and_shown() {
    let running = Running::start().await;
    let now = wire::clock::now();
    let mut recorder = running.tracer.recorder();
    for trace in 1..=5_u64 {
        let mut span = server(u128::from(trace), 1, now, now + trace * MS);
        recorder.record(span.clone());
        span.id = crate::draw::SpanId(2);
        span.parent = crate::draw::SpanId(1);
        span.start += 10;
        span.cause = "timeout";
        recorder.record(span);
    }
    let slowest = running.json("/traces?slowest=2&seconds=60").await;
    let traces = slowest["traces"].as_array().unwrap();
    let lengths: Vec<_> = traces
        .iter()
        .map(|one| one["duration_ns"].as_u64().unwrap())
        .collect();
    assert_eq!(lengths, [5 * MS, 4 * MS]);
    assert_eq!(traces[0]["trace"], format!("{:032x}", 5));
    assert_eq!(
        (&traces[0]["spans"], &traces[0]["status"]),
        (&json!(2), &json!(200))
    );
    // Who follows in small steps misses nothing.
    let first = running.json("/traces?since=0&limit=3").await;
    let rest = running
        .json(&format!("/traces?since={}&limit=3", first["next"]))
        .await;
    let end = running
        .json(&format!("/traces?since={}&limit=3", rest["next"]))
        .await;
    let count = |list: &Value| list["traces"].as_array().unwrap().len();
    assert_eq!((count(&first), count(&rest), count(&end)), (3, 2, 0));
    assert_eq!(
        running.json("/traces?recent=1").await["traces"][0]["trace"],
        format!("{:032x}", 5)
    );

    let one = running.json("/traces/0000000000000003").await;
    let spans = one["spans"].as_array().unwrap();
    assert_eq!(
        (&spans[0]["parent"], &spans[1]["parent"]),
        (&Value::Null, &json!("0000000000000001"))
    );
    assert_eq!(
        (&spans[1]["start_ns"], &spans[1]["end_ns"]),
        (&json!(10), &json!(3 * MS))
    );
    assert_eq!(
        (&spans[1]["kind"], &spans[1]["cause"]),
        (&json!("server"), &json!("timeout"))
    );
    let zipkin = running.json("/traces/3?format=zipkin").await;
    assert_eq!(zipkin.as_array().unwrap().len(), 2);
    let otlp = running.json("/traces/3?format=otlp").await;
    assert!(otlp["resourceSpans"].is_array());
    for (path, status) in [
        ("/traces/9", 404),
        ("/traces/xyz", 400),
        ("/traces/3?format=x", 400),
        ("/traces?slowest=0", 400),
        ("/traces?recent=a", 400),
    ] {
        assert_eq!(running.get(path).await.status, status, "{path}");
    }
}

#[tokio::test]
async fn spans_of_others_come_in_and_go_out() {
    let running = Running::start().await;
    let answer = running.get("/analysis").await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(error(&answer), "no trace has ended yet");
    let origin = Origin::here();
    let post = |path: &'static str, headers: &'static [(&str, &str)], body: Vec<u8>| {
        let running = &running;
        async move { running.ask(Method::POST, path, headers, &body).await }
    };
    let json: &[_] = &[("content-type", "application/json")];
    let protobuf: &[_] = &[("content-type", otlp::PROTOBUF)];
    let packed: &[_] = &[
        ("content-type", otlp::PROTOBUF),
        ("content-encoding", "gzip"),
    ];
    let other: &[_] = &[("content-encoding", "br")];
    let answer = post(
        zipkin::PATH,
        json,
        zipkin::write(&[server(1, 1, 1000, 2000)], &origin),
    )
    .await;
    assert_eq!(
        (answer.status, answer.body.len()),
        (StatusCode::ACCEPTED, 0)
    );
    let answer = post(
        otlp::PATH,
        protobuf,
        otlp::write_protobuf(&[server(2, 1, 1, 2)], &origin),
    )
    .await;
    assert_eq!((answer.status, answer.body.len()), (StatusCode::OK, 0));
    assert_eq!(answer.headers["content-type"], otlp::PROTOBUF);
    let answer = post(
        otlp::PATH,
        json,
        otlp::write_json(&[server(3, 1, 1, 2)], &origin),
    )
    .await;
    assert_eq!(&answer.body[..], b"{}");
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&otlp::write_protobuf(&[server(4, 1, 1, 2)], &origin))
        .unwrap();
    let answer = post(otlp::PATH, packed, gzip.finish().unwrap()).await;
    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!(running.tracer.store().counts().traces, 4);

    assert_eq!(running.json("/analysis").await, json!({ "traces": 4 }));
    let spans = running.get("/spans").await.body;
    let names = &mut crate::trace::names::Names::default();
    assert_eq!(otlp::read_json(&spans, &origin, names).unwrap().len(), 4);

    for (path, headers, body, status) in [
        (otlp::PATH, protobuf, b"\xff".to_vec(), 400),
        (zipkin::PATH, json, b"[{}]".to_vec(), 400),
        (otlp::PATH, packed, b"no gzip".to_vec(), 400),
        (otlp::PATH, other, Vec::new(), 415),
    ] {
        let answer = post(path, headers, body).await;
        assert_eq!(answer.status, status);
        assert!(!error(&answer).is_empty());
    }
    // A megabyte of zeros takes a kilobyte, and so on.
    let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    bomb.write_all(&vec![0; super::ingest::BODY_BYTES + 1])
        .unwrap();
    let answer = post(otlp::PATH, packed, bomb.finish().unwrap()).await;
    assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(running.tracer.store().counts().traces, 4);
}

#[tokio::test]
async fn a_profile_is_put_in_force_or_the_old_one_stays() {
    let running = Running::start().await;
    let put = |body: &'static [u8], headers: &'static [(&str, &str)]| {
        let running = &running;
        async move { running.ask(Method::PUT, "/profile", headers, body).await }
    };
    let answer = put(b"second", &[]).await;
    assert_eq!(&answer.body[..], br#"{"revision":2}"#);
    let answer = put(b"bad", &[]).await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
    assert_eq!(error(&answer), "profile.toml:1:1: bad");
    assert_eq!(put(b"\xff", &[]).await.status, StatusCode::BAD_REQUEST);
    // An error of ours does not take the server down.
    assert_eq!(
        put(b"panic", &[]).await.status,
        StatusCode::INTERNAL_SERVER_ERROR
    );
    assert_eq!(&running.get("/profile").await.body[..], b"second");
    // Pages of other sites cannot change anything.
    for origin in [
        &[("origin", "http://evil.example:80")][..],
        &[("origin", "null")],
        &[("origin", "http://127.0.0.1.evil.example")],
    ] {
        let answer = running.ask(Method::PUT, "/profile", origin, b"third").await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{origin:?}");
    }
    for origin in [
        "http://127.0.0.1:9000",
        "http://localhost:1",
        "http://[::1]:5",
    ] {
        let answer = running
            .ask(Method::PUT, "/profile", &[("origin", origin)], b"third")
            .await;
        assert_eq!(answer.status, StatusCode::OK, "{origin}");
    }
}

#[tokio::test]
async fn what_is_not_there_says_what_is() {
    let running = Running::start().await;
    let answer = running.get("/nothing").await;
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
    assert!(error(&answer).contains("/topology"));
    for (method, path, status) in [
        (Method::DELETE, "/profile", 405),
        (Method::POST, "/metrics", 404),
        (Method::GET, "/stats?seconds=0", 400),
        (Method::GET, "/stats?seconds=NaN", 400),
        (Method::GET, "/metrics?names=other", 400),
    ] {
        let answer = running.ask(method, path, &[], b"").await;
        assert_eq!(answer.status, status, "{path}");
    }
    let head = running.ask(Method::HEAD, "/ping", &[], b"").await;
    assert_eq!((head.status, head.body.len()), (StatusCode::OK, 0));
}

#[test]
fn headers_of_an_intake_are_read_leniently() {
    let mut headers = HeaderMap::new();
    let tracer = Tracer::new(StoreLimits::default(), Vec::new());
    let intake = ingest::Intake::new(tracer);
    let take = |headers: &HeaderMap, body: &'static [u8]| {
        intake
            .take(ingest::Form::Otlp, headers, Bytes::from_static(body))
            .map(|answer| answer.status())
    };
    assert_eq!(take(&headers, b""), Ok(StatusCode::OK));
    headers.insert("content-encoding", HeaderValue::from_static("identity"));
    headers.insert(
        "content-type",
        HeaderValue::from_static("application/json; charset=utf-8"),
    );
    assert_eq!(take(&headers, b"{}"), Ok(StatusCode::OK));
}
