use std::sync::Arc;

use crate::amount::Amount;
use crate::topology::{
    Action, Call, Connections, Edge, EdgeId, Endpoint, Faults, Placement, Protocol, Response,
    Service, ServiceId, Step, StepId, Topology, Tracing, Work,
};

use super::*;
use crate::trace::{Export, ExportCounts, Format, TracerCounts};
use traces::StoreCounts;

const MS: u64 = 1_000_000;

fn service(name: &str, steps: Vec<Step>) -> Service {
    Service {
        name: name.to_owned(),
        protocol: Protocol::Http1,
        replicas: 1,
        workers: 0,
        queue: 0,
        endpoints: vec![Endpoint {
            path: "/".to_owned(),
            steps,
            response: Response::Bytes(Amount::ZERO),
            latency: Amount::ZERO,
            step: StepId(100),
        }],
        faults: Faults::default(),
        placement: Placement::default(),
        labels: Vec::new(),
    }
}

/// `the-root`, which works and calls `leaf`.
pub(crate) fn topology() -> Topology {
    let work = Step {
        id: StepId(2),
        action: Action::Work(Work::Cpu(Amount::Constant(1e6))),
    };
    let call = Step {
        id: StepId(3),
        action: Action::Call(Call {
            edge: EdgeId(0),
            path: None,
            probability: 1.0,
            count: Amount::Constant(1.0),
            request: Amount::ZERO,
            timeout: 1000 * MS,
            retries: 0,
            backoff: 0,
            wait: true,
        }),
    };
    let inner = Step {
        id: StepId(1),
        action: Action::Sequence(vec![work, call]),
    };
    Topology {
        name: "two".to_owned(),
        seed: 1,
        services: vec![
            service("the-root", vec![inner]),
            service("leaf", Vec::new()),
        ],
        edges: vec![Edge {
            from: ServiceId(0),
            to: ServiceId(1),
            connections: Connections::Warm(4),
        }],
        entry: ServiceId(0),
        tracing: Tracing::default(),
        background: Vec::new(),
    }
}

/// Counters of a request that worked for 10 ms and called for 2 ms.
fn counted() -> Metrics {
    let metrics = Metrics::new();
    let root = metrics.instance(&topology(), ServiceId(0), 0);
    root.accepted();
    let server = root.server(Some(0));
    server.began(1000);
    root.work(StepId(2)).done(10 * MS, 9 * MS, MS / 2, 3000);
    let client = root.client(EdgeId(0));
    client.opened();
    client.began(0);
    client.ended(0, MS, 0);
    client.failed("timeout");
    client.began(1);
    client.ended(200, 2 * MS, 500);
    server.answered(200, 13 * MS);
    root.server(None).began(0);
    metrics
}

fn line<'a>(page: &'a str, start: &str) -> &'a str {
    let found = page.lines().find_map(|line| line.strip_prefix(start));
    found
        .unwrap_or_else(|| panic!("no line {start} in\n{page}"))
        .trim()
}

#[test]
fn the_page_says_what_was_counted_by_service_path_edge_and_status() {
    let page = page(&counted().snapshot(), None).into_text();
    let of = "{service=\"the-root\",path=\"/\",status=\"2xx\"";
    for (bound, count) in [("0.008", "0"), ("0.013", "1"), ("+Inf", "1")] {
        let start = format!("headroom_graph_server_request_seconds_bucket{of},le=\"{bound}\"}}");
        assert_eq!(line(&page, &start), count, "{bound}");
    }
    let sum = format!("headroom_graph_server_request_seconds_sum{of}}}");
    assert_eq!(line(&page, &sum), "0.013");
    let edge = "service=\"the-root\",edge=\"the-root>leaf\"";
    for (start, value) in [
        (format!("headroom_graph_client_attempts_total{{{edge}}}"), "2"),
        (format!("headroom_graph_client_retries_total{{{edge}}}"), "1"),
        (format!("headroom_graph_client_failures_total{{{edge},cause=\"timeout\"}}"), "1"),
        (format!("headroom_graph_client_request_seconds_count{{{edge},status=\"none\"}}"), "1"),
        (format!("headroom_graph_client_connections{{{edge}}}"), "1"),
        (format!("headroom_graph_client_in_flight{{{edge}}}"), "0"),
        ("headroom_graph_work_cpu_seconds_total{service=\"the-root\",work=\"cpu\",step=\"2\"}".to_owned(), "0.009"),
        ("headroom_graph_work_stolen_seconds_total{service=\"the-root\",work=\"cpu\",step=\"2\"}".to_owned(), "0.0005"),
        ("headroom_graph_server_in_flight{service=\"the-root\",path=\"other\"}".to_owned(), "1"),
        ("headroom_graph_server_connections{service=\"the-root\"}".to_owned(), "1"),
    ] {
        assert_eq!(line(&page, &start), value, "{start}");
    }
    // The smallest bounds tell requests of tens of microseconds apart.
    assert!(page.contains("le=\"0.00001\"") && page.contains("le=\"0.00005\""));
}

#[test]
fn the_seeds_names_are_there_and_valid() {
    let page = testapi_page(&counted().snapshot());
    let server = "the_root_opencensus_io_http_server_latency";
    for (start, value) in [
        (format!("{server}_bucket{{le=\"0\"}}"), "0"),
        (format!("{server}_bucket{{le=\"10\"}}"), "0"),
        (format!("{server}_bucket{{le=\"13\"}}"), "1"),
        (format!("{server}_bucket{{le=\"100000\"}}"), "1"),
        (format!("{server}_sum"), "13"),
        (
            "the_root_opencensus_io_http_client_latency_count".to_owned(),
            "2",
        ),
        (
            "the_root_prime_latency_bucket{method=\"busyHandler\",le=\"9\"}".to_owned(),
            "0",
        ),
        (
            "the_root_prime_latency_bucket{method=\"busyHandler\",le=\"10\"}".to_owned(),
            "1",
        ),
    ] {
        assert_eq!(line(&page, &start), value, "{start}");
    }
    assert!(!page.contains("primeHandler") && !page.contains("leaf"));
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        let name = line.split(['{', ' ']).next().unwrap();
        let rest = |c: char| c.is_ascii_alphanumeric() || c == '_';
        assert!(name.chars().all(rest) && !name.starts_with(|c: char| c.is_ascii_digit()));
    }
}

#[test]
fn names_that_become_one_stay_two() {
    let metrics = Metrics::new();
    let mut topology = topology();
    topology.services[1].name = "the.root".to_owned();
    for id in [0, 1] {
        let service = metrics.instance(&topology, ServiceId(id), 0);
        service.server(Some(0)).began(0);
        service.server(Some(0)).answered(200, 1);
    }
    let page = testapi_page(&metrics.snapshot());
    let types = page.lines().filter(|line| line.starts_with("# TYPE"));
    let types: std::collections::HashSet<_> = types.collect();
    assert_eq!(types.len(), 2);
}

#[test]
fn instances_add_up_and_a_new_profile_goes_on() {
    let metrics = Metrics::new();
    let mut topology = topology();
    for replica in 0..3 {
        let counters = metrics.instance(&topology, ServiceId(0), replica);
        counters.server(Some(0)).began(0);
        counters.server(Some(0)).answered(503, MS);
    }
    topology.services[0].endpoints[0].steps.clear();
    let again = metrics.instance(&topology, ServiceId(0), 2);
    again.server(Some(0)).began(0);
    again.server(Some(0)).answered(200, MS);
    let snapshot = metrics.snapshot();
    let key = Key::Server {
        service: "the-root".into(),
        path: Some("/".into()),
    };
    let totals = &snapshot.0[&key];
    assert_eq!((totals.good().count(), totals.bad().count()), (1, 3));
    assert_eq!(totals.in_flight, 0);
}

#[test]
fn what_is_not_there_counts_for_nothing() {
    let metrics = Metrics::new();
    let counters = metrics.instance(&topology(), ServiceId(1), 0);
    counters.client(EdgeId(0)).began(0);
    counters.work(StepId(2)).failed("late");
    counters.work(StepId(2)).failed("no such cause");
    let elsewhere = metrics.instance(&topology(), ServiceId(9), 0);
    elsewhere.server(Some(0)).answered(200, 1);
    assert!(
        !page(&metrics.snapshot(), None)
            .into_text()
            .contains("the-root")
    );
    let again = metrics.instance(&topology(), ServiceId(0), 0);
    assert!(Arc::ptr_eq(
        again.client(EdgeId(7)),
        again.client(EdgeId(8))
    ));
}

#[test]
fn a_snapshot_survives_json() {
    let snapshot = counted().snapshot();
    let json = serde_json::to_string(&snapshot).unwrap();
    assert_eq!(serde_json::from_str::<Snapshot>(&json).unwrap(), snapshot);
    let mut twice = snapshot.clone();
    twice.add(&snapshot);
    let attempts =
        |snapshot: &Snapshot| -> u64 { snapshot.0.values().map(|totals| totals.attempts).sum() };
    assert_eq!(attempts(&twice), 2 * attempts(&snapshot));
}

#[test]
fn the_page_says_what_became_of_spans() {
    let export = |format, target: &str| Export {
        format,
        target: target.parse().unwrap(),
    };
    let counts = TracerCounts {
        recorded: 5,
        dropped: 1,
        store: StoreCounts::default(),
        exports: vec![
            ExportCounts {
                export: export(Format::Otlp, "http://o:1/x"),
                sent: 3,
                dropped: 2,
                failures: 0,
            },
            ExportCounts {
                export: export(Format::Zipkin, "http://o:1/x"),
                sent: 4,
                dropped: 0,
                failures: 7,
            },
        ],
    };
    let page = page(&Snapshot::default(), Some(&counts)).into_text();
    assert_eq!(line(&page, "headroom_graph_spans_recorded_total"), "5");
    let sent = "headroom_graph_spans_exported_total{format=\"otlp\",target=\"http://o:1/x\"}";
    assert_eq!(line(&page, sent), "3");
    let failed =
        "headroom_graph_spans_export_failures_total{format=\"zipkin\",target=\"http://o:1/x\"}";
    assert_eq!(line(&page, failed), "7");
}
