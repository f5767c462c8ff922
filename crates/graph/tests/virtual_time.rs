//! Requests in virtual time are those of the real thing: the same spans, but for times.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use document::Source;
use graph::metrics::Metrics;
use graph::service::{Directory, Host, HostConfig, Hosted};
use graph::topology::budget::{Costs, Simulation};
use graph::topology::{ServiceId, Topology, read};
use graph::trace::{Span, StoreLimits, Tracer};
use graph::work::{Calibration, Site};

/// Chances, repeats, branches, attempts and faults; no time-out is near.
const GRAPH: &str = r#"
seed = 11
[defaults]
timeout = "60s"
response = "64B"
[services.root]
entry = true
steps = [
  { cpu = "lognormal 5us p99=20us" },
  { parallel = [
      { call = "price", count = "uniform 0 3" },
      { steps = [{ ops = 100 }, { call = "stock", probability = 0.3, retries = 2, backoff = "100us" }] },
    ] },
  { call = "store", path = "/cold", probability = 0.5 },
]
[services.price]
faults = { delay = { rate = 0.2, by = "200us" } }
steps = [{ call = "store" }, { sleep = "50us" }]
[services.stock]
faults = { error = 0.4, status = 500 }
steps = [{ call = "store", probability = 0.7 }]
[services.store]
steps = [{ cpu = "2us" }]
[services.store.endpoints."/cold"]
steps = [{ cpu = "4us" }]
"#;

const REQUESTS: u64 = 300;

/// What of a span does not depend on time.
type Fact = (u128, u64, u64, String, String, String, String, u16, u8);

fn facts(spans: &[Span]) -> BTreeSet<Fact> {
    let fact = |span: &Span| {
        (
            span.trace.0,
            span.id.0,
            span.parent.0,
            format!("{:?}", span.kind),
            span.service.to_string(),
            span.name.to_string(),
            span.peer.to_string(),
            span.status,
            span.attempt,
        )
    };
    spans.iter().map(fact).collect()
}

fn topology() -> Topology {
    let source = Source {
        name: "graph.toml".to_owned(),
        text: GRAPH.to_owned(),
    };
    read(&source).unwrap()
}

fn virtual_spans(topology: &Topology) -> Vec<Span> {
    let costs = Costs::default();
    let mut simulation = Simulation::new(topology, "/", &costs).unwrap();
    let mut spans = Vec::new();
    for number in 0..REQUESTS {
        simulation.request(number, &mut spans).unwrap();
    }
    spans
}

/// One request after the other over one connection.
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

#[test]
fn virtual_requests_have_the_spans_of_real_ones() {
    let topology = Arc::new(topology());
    let expected = facts(&virtual_spans(&topology));
    assert!(expected.len() > 3000, "{}", expected.len());

    let folder = tempfile::tempdir().unwrap();
    let calibration = Calibration {
        op_ns: 1.0,
        op_best_ns: 1.0,
        clock_ns: 400.0,
    };
    let tracer = Tracer::new(StoreLimits::default(), Vec::new());
    let ids = (0..).map(ServiceId).take(topology.services.len());
    let hosted = ids.map(|service| Hosted {
        service,
        replica: 0,
        listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
    });
    let host = Host::start(HostConfig {
        hosted: hosted.collect(),
        topology: Arc::clone(&topology),
        directory: Directory::default(),
        threads: 1,
        site: Site::open(calibration, folder.path()).unwrap(),
        metrics: Arc::new(Metrics::new()),
        tracer: tracer.clone(),
    });
    let host = host.unwrap();
    ask(host.directory().get("root", 0).unwrap());
    assert!(host.drain(Duration::from_secs(60)));
    host.stop();
    tracer.collect();
    let store = tracer.store();
    let mut seen = BTreeSet::new();
    for trace in store.recent(REQUESTS as usize) {
        seen.extend(facts(&store.trace(trace.trace)));
    }
    let missing: Vec<_> = expected.difference(&seen).take(5).collect();
    let more: Vec<_> = seen.difference(&expected).take(5).collect();
    assert!(
        missing.is_empty() && more.is_empty(),
        "missing {missing:#?}\nmore {more:#?}"
    );
}
