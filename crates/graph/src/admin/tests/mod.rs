mod spans;
mod stats;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use http_body_util::Full;
use net::{Answer, Client, ClientOptions};
use serde_json::{Value, json};

use super::*;
use crate::metrics::Metrics;
use crate::samples::server;
use crate::topology::{EdgeId, StepId};
use crate::trace::Tracer;
use traces::{Origin, StoreLimits, otlp, zipkin};

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

    fn metrics(&self, page: &mut Page) {
        page.counter("headroom_graph_own_total", "Of the test.", 5);
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
            testapi_names: false,
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
    let mut topology = running.json("/topology").await;
    let fingerprint = topology.as_object_mut().unwrap().remove("fingerprint");
    assert_eq!(fingerprint.unwrap().as_str().unwrap().len(), 16);
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
