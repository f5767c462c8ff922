//! Two processes' worth of a graph over real sockets: the spans of both meet in one store,
//! and the counters of both in one page.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use crate::running::graph;
use bytes::Bytes;
use graph::admin::{Admin, AdminConfig, Control, Instance, Peer};
use graph::metrics::Metrics;
use graph::service::{Directory, Host, HostConfig, Hosted};
use graph::topology::Topology;
use graph::trace::{Export, Format, Tracer};
use graph::work::{Calibration, SharedResources};
use http::{HeaderMap, Request, StatusCode};
use http_body_util::Full;
use net::{Client, ClientOptions};
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use traces::{Span, SpanKind, StoreLimits};
use traces::{SpanId, TraceId};

const GRAPH: &str = r#"
name = "pair"
[services.root]
entry = true
steps = [ { cpu = "20us" }, { call = "the-leaf" } ]
[services.the-leaf]
steps = [ { sleep = "1ms" } ]
"#;

const TRACE: TraceId = TraceId(0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736);
const SPAN: SpanId = SpanId(0x00f0_67aa_0ba9_02b7);

struct Graph(Arc<Topology>);

impl Control for Graph {
    fn topology(&self) -> (Arc<Topology>, u32) {
        (Arc::clone(&self.0), 1)
    }
    fn instances(&self) -> Vec<Instance> {
        Vec::new()
    }
    fn deployment(&self) -> Value {
        Value::Null
    }
    fn profile(&self) -> String {
        GRAPH.to_owned()
    }
    fn put_profile(&self, _: &str) -> Result<u32, String> {
        Err("it stays".to_owned())
    }
    fn analysis(&self, traces: Vec<Vec<Span>>) -> Result<Value, String> {
        Ok(traces.len().into())
    }
}

/// One service with all that a process has.
struct Process {
    host: Option<Host>,
    tracer: Tracer,
    admin: Arc<Admin>,
    address: SocketAddr,
    control: SocketAddr,
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
    _folder: tempfile::TempDir,
}

impl Process {
    async fn start(service: &str, directory: Directory, parent: Option<SocketAddr>) -> Self {
        let topology = graph(GRAPH);
        let metrics = Arc::new(Metrics::new());
        let exports = parent.map(|parent| Export {
            format: Format::Otlp,
            target: format!("http://{parent}/v1/traces").parse().unwrap(),
        });
        let tracer = Tracer::new(StoreLimits::default(), exports.into_iter().collect());
        let folder = tempfile::tempdir().unwrap();
        let calibration = Calibration {
            op_ns: 1.0,
            op_best_ns: 1.0,
            clock_ns: 400.0,
        };
        let host = Host::start(HostConfig {
            topology: Arc::clone(&topology),
            hosted: vec![Hosted {
                service: topology.find(service).unwrap(),
                replica: 0,
                listen: (Ipv4Addr::LOCALHOST, 0).into(),
            }],
            directory,
            threads: 1,
            resources: SharedResources::open(calibration, folder.path()).unwrap(),
            metrics: Arc::clone(&metrics),
            tracer: tracer.clone(),
            run: traces::ids::Run::default(),
        });
        let host = host.map_err(|wrong| wrong.to_string()).unwrap();
        let address = host.directory().get(service, 0).unwrap();
        let admin = Admin::new(AdminConfig {
            control: Arc::new(Graph(topology)),
            metrics,
            tracer: tracer.clone(),
            page: None,
            testapi_names: false,
        });
        let listener = net::bind((Ipv4Addr::LOCALHOST, 0).into()).await.unwrap();
        let control = listener.local_addr().unwrap();
        let (stop, shutdown) = net::shutdown();
        let tasks = vec![
            tokio::spawn(Arc::clone(&admin).serve(listener, shutdown.clone())),
            tokio::spawn(tracer.clone().run(shutdown)),
        ];
        Self {
            host: Some(host),
            tracer,
            admin,
            address,
            control,
            stop,
            tasks,
            _folder: folder,
        }
    }

    /// Ends it in the order in which a program does.
    async fn end(mut self) {
        if let Some(host) = self.host.take() {
            assert!(host.drain(Duration::from_secs(10)));
            host.stop();
        }
        self.stop.send(true).unwrap();
        for task in self.tasks {
            task.await.unwrap();
        }
    }
}

async fn ask(client: &Client, address: SocketAddr, fields: &[(&'static str, &str)]) -> StatusCode {
    let mut request = Request::get(format!("http://{address}/"));
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    let request = request.body(Full::new(Bytes::new())).unwrap();
    client.request(request).await.unwrap().status
}

/// Waits until a trace has so many spans. A test that waits for ever is stopped by its
/// runner.
async fn spans_of(process: &Process, trace: TraceId, count: usize) -> Vec<Span> {
    loop {
        let spans = process.tracer.store().trace(trace);
        if spans.len() >= count {
            return spans;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn spans_and_counters_of_two_processes_meet() {
    let leaf = Process::start("the-leaf", Directory::default(), None).await;
    let mut directory = Directory::default();
    directory.set("the-leaf", 0, leaf.address);
    let root = Process::start("root", directory, Some(leaf.control)).await;
    let client = Client::new(ClientOptions::default());

    let parent = format!("00-{:032x}-{:016x}-01", TRACE.0, SPAN.0);
    let status = ask(&client, root.address, &[("traceparent", &parent)]).await;
    assert_eq!(status, StatusCode::OK);
    // What the caller does not want is recorded nowhere.
    let denied = "1".repeat(32);
    let b3 = format!("{denied}-{:016x}-0", SPAN.0);
    assert_eq!(
        ask(&client, root.address, &[("b3", &b3)]).await,
        StatusCode::OK
    );
    // Zipkin's form, with ids of 64 bits.
    let (trace, span) = ("00000000000000ab", "00000000000000cd");
    let fields = [
        ("x-b3-traceid", trace),
        ("x-b3-spanid", span),
        ("x-b3-sampled", "1"),
    ];
    assert_eq!(ask(&client, root.address, &fields).await, StatusCode::OK);

    for (trace, parent) in [(TRACE, SPAN), (TraceId(0xab), SpanId(0xcd))] {
        let spans = spans_of(&leaf, trace, 5).await;
        let find = |service: &str, kind| {
            let found = spans
                .iter()
                .find(|span| &*span.service == service && span.kind == kind);
            found.unwrap_or_else(|| panic!("no {kind:?} of {service} in {spans:#?}"))
        };
        let entry = find("root", SpanKind::Server);
        let call = find("root", SpanKind::Client);
        let callee = find("the-leaf", SpanKind::Server);
        assert_eq!(
            (entry.parent, call.parent, callee.parent),
            (parent, entry.id, call.id)
        );
        for work in ["root", "the-leaf"].map(|service| find(service, SpanKind::Work)) {
            assert_eq!(work.parent, find(&work.service, SpanKind::Server).id);
        }
        assert_eq!(
            (&*call.peer, call.status, &*call.name),
            ("the-leaf", 200, "/")
        );
        // One clock: the callee's time lies within the call's.
        assert!(
            call.start <= callee.start && callee.end <= call.end,
            "{spans:#?}"
        );
        assert!(
            entry.start <= call.start && call.end <= entry.end,
            "{spans:#?}"
        );
        assert!(callee.end - callee.start >= 1_000_000);
    }
    let denied = TraceId(u128::from_str_radix(&denied, 16).unwrap());
    root.tracer.collect();
    leaf.tracer.collect();
    assert!(root.tracer.store().trace(denied).is_empty());
    assert!(leaf.tracer.store().trace(denied).is_empty());

    leaf.admin.follow(vec![Peer {
        name: "root/0".to_owned(),
        counters: format!("http://{}/counters", root.control).parse().unwrap(),
    }]);
    let edge = "headroom_graph_client_request_seconds_count{service=\"root\",edge=\"root>the-leaf\",status=\"2xx\"} 3";
    let own = "headroom_graph_server_request_seconds_count{service=\"the-leaf\",path=\"/\",status=\"2xx\"} 3";
    let uri = format!("http://{}/metrics", leaf.control).parse().unwrap();
    loop {
        let page = client.get(&uri).await.unwrap();
        let page = String::from_utf8(page.body.to_vec()).unwrap();
        if [edge, own]
            .iter()
            .all(|line| page.lines().any(|found| found == *line))
        {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    root.end().await;
    leaf.end().await;
}

#[tokio::test]
async fn the_last_spans_are_sent_before_a_process_ends() {
    let leaf = Process::start("the-leaf", Directory::default(), None).await;
    let collector = Process::start("the-leaf", Directory::default(), None).await;
    let mut directory = Directory::default();
    directory.set("the-leaf", 0, leaf.address);
    let root = Process::start("root", directory, Some(collector.control)).await;
    let client = Client::new(ClientOptions::default());
    for _ in 0..50 {
        assert_eq!(ask(&client, root.address, &[]).await, StatusCode::OK);
    }
    root.end().await;
    // Server, client and work of each.
    assert_eq!(collector.tracer.store().counts().received, 150);
    collector.end().await;
    leaf.end().await;
}

#[tokio::test]
async fn a_posted_trace_is_shown_as_it_was() {
    let leaf = Process::start("the-leaf", Directory::default(), None).await;
    let client = Client::new(ClientOptions::default());
    let recorded = include_bytes!("../../traces/tests/data/otlp-python-1.45.2.bin.gz");
    let mut headers = HeaderMap::new();
    headers.insert("content-encoding", "gzip".parse().unwrap());
    let uri = format!("http://{}/v1/traces", leaf.control)
        .parse()
        .unwrap();
    let body = Bytes::from_static(recorded);
    let answer = client
        .post(&uri, "application/x-protobuf", headers, body)
        .await
        .unwrap();
    assert_eq!(answer.status, StatusCode::OK);
    let uri = format!("http://{}/traces/{:x}", leaf.control, TRACE.0);
    let answer = client.get(&uri.parse().unwrap()).await.unwrap();
    let trace: Value = serde_json::from_slice(&answer.body).unwrap();
    let spans = trace["spans"].as_array().unwrap();
    let lengths = spans
        .iter()
        .map(|span| span["end_ns"].as_u64().unwrap() - span["start_ns"].as_u64().unwrap());
    let mut lengths: Vec<_> = lengths.collect();
    lengths.sort_unstable();
    assert_eq!(lengths, [1_250_000, 1_999_500, 5_000_000]);
    leaf.end().await;
}
