//! The analysis of requests that were really made.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use document::Source;
use graph::analysis::{Analysis, Cause, analyse, critical_path};
use graph::metrics::Metrics;
use graph::service::{Directory, Host, HostConfig, Hosted};
use graph::topology::{ServiceId, Topology, read};
use graph::trace::{Span, SpanKind, StoreLimits, Tracer};
use graph::work::{Calibration, Site};

/// Branches, work in the loop and on workers, a call without `wait`, failures.
const GRAPH: &str = r#"
seed = 5
[defaults]
timeout = "60s"
response = "64B"
[services.root]
entry = true
steps = [
  { cpu = "300us" },
  { parallel = [
      { call = "price" },
      { steps = [{ cpu = "20us" }, { call = "stock" }] },
    ] },
  { call = "audit", wait = false },
]
[services.price]
steps = [{ sleep = "1ms" }, { call = "store" }]
[services.stock]
steps = [{ sleep = "3ms" }, { call = "store" }]
[services.store]
faults = { error = "2%", status = 503 }
steps = [{ cpu = "200us" }]
[services.audit]
steps = [{ sleep = "2ms" }]
"#;

const REQUESTS: u64 = 300;

fn ask(address: SocketAddr) {
    let mut stream = BufReader::new(TcpStream::connect(address).unwrap());
    let patience = Some(Duration::from_secs(60));
    stream.get_ref().set_read_timeout(patience).unwrap();
    for _ in 0..REQUESTS {
        let request = b"GET / HTTP/1.1\r\nhost: root\r\n\r\n";
        stream.get_mut().write_all(request).unwrap();
        let mut length = 0;
        loop {
            let mut line = String::new();
            assert!(stream.read_line(&mut line).unwrap() > 0);
            let line = line.to_ascii_lowercase();
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).unwrap();
    }
}

/// All spans of the requests, and of what they left behind.
fn spans(topology: &Arc<Topology>) -> Vec<Span> {
    let folder = tempfile::tempdir().unwrap();
    let tracer = Tracer::new(StoreLimits::default(), Vec::new());
    let ids = (0..).map(ServiceId).take(topology.services.len());
    let hosted = ids.map(|service| Hosted {
        service,
        replica: 0,
        listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
    });
    let host = Host::start(HostConfig {
        hosted: hosted.collect(),
        topology: Arc::clone(topology),
        directory: Directory::default(),
        threads: 2,
        site: Site::open(Calibration::measure(), folder.path()).unwrap(),
        metrics: Arc::new(Metrics::new()),
        tracer: tracer.clone(),
    });
    let host = host.unwrap();
    let address = host.directory().get("root", 0).unwrap();
    ask(address);
    assert!(host.drain(Duration::from_secs(60)));
    host.stop();
    tracer.collect();
    let store = tracer.store();
    let traces = store.recent(REQUESTS as usize);
    traces
        .iter()
        .flat_map(|one| store.trace(one.trace))
        .collect()
}

fn typical(analysis: &Analysis, cause: Cause) -> f64 {
    let found = analysis.causes.iter().find(|one| one.cause == cause);
    found.map_or(0.0, |one| one.figures.typical_ns)
}

#[test]
fn real_requests_are_taken_apart_to_the_nanosecond() {
    let source = Source {
        name: "graph.toml".to_owned(),
        text: GRAPH.to_owned(),
    };
    let topology = Arc::new(read(&source).unwrap());
    let spans = spans(&topology);
    let analysis = analyse(&spans, Some(&topology), None);
    println!("{analysis}");
    let counts = &analysis.counts;
    assert_eq!((counts.traces, counts.without_root), (REQUESTS, 0));
    assert_eq!(counts.analysed + counts.failed, REQUESTS);
    assert_eq!(
        (counts.incomplete, counts.moved_spans),
        (0, 0),
        "{counts:?}"
    );
    assert_eq!(analysis.conservation.worst_ns, 0);
    assert_eq!(analysis.failures.len(), 1);
    assert_eq!(analysis.failures[0].place, "store");

    // What was asked for was done, and is seen as what it is.
    assert!(typical(&analysis, Cause::Cpu) >= 500_000.0 * 0.98);
    assert!(typical(&analysis, Cause::Sleep) >= 1_000_000.0);
    assert_eq!(typical(&analysis, Cause::Unseen), 0.0);
    let edge = |id: &str| analysis.edges.iter().find(|one| one.id == id).unwrap();
    assert_eq!(edge("root>audit").on_path, 0.0);
    assert!(edge("root>price").on_path + edge("root>stock").on_path >= 1.0);
    let expected = analysis.expected.as_ref().unwrap();
    assert!(expected.min_ns >= 3_000_000, "{expected:?}");

    // The path of each request covers it and nothing else.
    let roots = spans
        .iter()
        .filter(|span| &*span.service == "root" && span.kind == SpanKind::Server);
    for root in roots {
        let trace = spans.iter().filter(|span| span.trace == root.trace);
        let trace: Vec<Span> = trace.cloned().collect();
        let path = critical_path(&trace, Some(&topology));
        let own = path.iter().flat_map(|one| &one.own);
        let sum: u64 = own.map(|(_, length)| length).sum();
        assert_eq!(sum, root.end - root.start);
    }
}
