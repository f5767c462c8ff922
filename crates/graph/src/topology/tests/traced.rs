//! Graphs from traces.

use proptest::prelude::*;

use super::super::budget::{self, Costs, Simulation};
use super::super::import::{Imported, RowError, RowLimits, rows, spans};
use super::super::*;
use super::reading::{CHECKOUT, source};
use traces::{Span, SpanKind};
use traces::{SpanId, TraceId};

fn named(graph: &Topology) -> Vec<&str> {
    graph.services.iter().map(|one| one.name.as_str()).collect()
}

fn reads_back(imported: &Imported) {
    let text = imported.topology.to_toml();
    assert_eq!(read(&source(&text)).unwrap(), imported.topology, "{text}");
}

/// The calls of a service's endpoint: who, the path asked for, probability, whether waited for.
fn calls<'a>(
    graph: &'a Topology,
    service: &str,
    path: &str,
) -> Vec<(&'a str, Option<&'a str>, f64, bool)> {
    let service = graph.service(graph.find(service).unwrap()).unwrap();
    let (_, endpoint) = service.endpoint(path).unwrap();
    let calls = endpoint.calls().into_iter().map(|(_, call)| {
        let to = graph.edge(call.edge).unwrap().to;
        let name = graph.service(to).unwrap().name.as_str();
        (name, call.path.as_deref(), call.probability, call.wait)
    });
    calls.collect()
}

/// Four requests, as Alibaba's files have them: an index in front, both sides of RPCs,
/// names that are missing.
const ROWS: &str = "\
,timestamp,traceid,rpcid,um,rpctype,dm,interface,rt
0,1000,T1,0,(?),http,MS_1,/buy,30
1,1002,T1,0.1,MS_1,rpc,MS_2,price,10
2,1003,T1,0.1,MS_1,rpc,MS_2,price,-8
3,1014,T1,0.2,MS_1,rpc,(?),stock,12
4,1015,T1,0.2.1,MS_3,db,DB_1,,4
5,1027,T1,0.3,MS_1,mq,MS_4,,200
6,2000,T2,0,(?),http,MS_1,/buy,20
7,2001,T2,0.1,MS_1,rpc,MS_2,price,10
8,2012,T2,0.2,MS_1,rpc,MS_3,stock,5
9,3000,T3,0,,http,MS_1,/buy,10
10,4000,T4,0,NAN,http,MS_1,/buy,10
11,4001,T4,0.1,,rpc,MS_2,price,4
12,4001,T4,0.2,,rpc,,,4
13,4001,T4,zero,MS_1,rpc,MS_2,,4
";

fn from_rows(text: &str) -> Result<Imported, RowError> {
    rows("calls.csv", text.as_bytes(), RowLimits::default())
}

#[test]
fn rows_become_trees_and_trees_one_graph() {
    let imported = from_rows(ROWS).unwrap();
    reads_back(&imported);
    let graph = &imported.topology;
    assert_eq!(named(graph), ["ms-1", "ms-2", "ms-3", "db-1", "ms-4"]);
    assert_eq!(graph.entry, ServiceId(0));
    // Of four visits three asked for the price, two for the stock, one told of it.
    assert_eq!(
        calls(graph, "ms-1", "/buy"),
        [
            ("ms-2", Some("/price"), 0.75, true),
            ("ms-3", Some("/stock"), 0.5, true),
            ("ms-4", Some("/"), 0.25, false),
        ]
    );
    assert_eq!(
        calls(graph, "ms-3", "/stock"),
        [("db-1", Some("/"), 0.5, true)]
    );
    // One after the other, so nothing is parallel.
    let (_, buy) = graph.services[0].endpoint("/buy").unwrap();
    assert!(
        buy.steps
            .iter()
            .all(|step| !matches!(step.action, Action::Parallel { .. }))
    );
    // Own time: 30 - 10 - 12, 20 - 10 - 5, 10, 10 - 4.
    let own = Amount::Uniform { from: 5e6, to: 1e7 };
    assert_eq!(buy.steps[0].action, Action::Work(Work::Sleep(own)));
    // The callee's record counts, not the way: 8, 10, 4.
    let (_, price) = graph.services[1].endpoint("/price").unwrap();
    let own = Amount::Uniform { from: 4e6, to: 1e7 };
    assert_eq!(price.steps[0].action, Action::Work(Work::Sleep(own)));
    assert_eq!(
        imported.warnings,
        [
            "calls.csv: 1 of 14 rows are left out; line 15: its rpcid is no dotted path such as 0.1.2",
            "calls.csv: 1 calls are left out: no row names who was called",
        ]
    );
}

#[test]
fn the_columns_of_2022_are_known_by_their_names() {
    let graph = from_rows(
        "timestamp,traceid,service,rpc_id,rpctype,um,uminstanceid,interface,dm,dminstanceid,rt\n\
         1,T_1,S_1,0,http,,,/buy,MS_1,MS_1_POD_0,9.0\n\
         2,T_1,S_1,0.1,rpc,MS_1,MS_1_POD_0,price,MS_2,MS_2_POD_4,2.0\n",
    )
    .unwrap()
    .topology;
    assert_eq!(named(&graph), ["ms-1", "ms-2"]);
    assert_eq!(
        calls(&graph, "ms-1", "/buy"),
        [("ms-2", Some("/price"), 1.0, true)]
    );
}

#[test]
fn calls_that_run_at_the_same_time_are_parallel() {
    let graph = from_rows(
        "traceid,rpcid,um,dm,rt,timestamp\n\
         a,0,,front,50,0\na,0.1,front,x,20,1\na,0.2,front,y,20,5\na,0.3,front,z,5,40\n\
         b,0,,front,50,0\nb,0.1,front,x,20,1\nb,0.2,front,y,20,5\nb,0.3,front,z,5,40\n",
    )
    .unwrap()
    .topology;
    let steps = &graph.services[0].endpoints[0].steps;
    let Action::Parallel {
        branches,
        join: Join::All,
    } = &steps[1].action
    else {
        panic!("{steps:?}");
    };
    assert_eq!((steps.len(), branches.len()), (3, 2));
    assert_eq!(
        steps[0].action,
        Action::Work(Work::Sleep(Amount::Constant(21e6)))
    );
}

#[test]
fn repeated_calls_are_steps_with_falling_probability() {
    let mut text = "traceid,rpcid,um,dm,rt,timestamp\n".to_owned();
    for (trace, calls) in [("a", 1), ("b", 2), ("c", 20), ("d", 0)] {
        text += &format!("{trace},0,,front,500,0\n");
        for call in 1..=calls {
            text += &format!("{trace},0.{call},front,db,1,{}\n", call * 10);
        }
    }
    let graph = from_rows(&text).unwrap().topology;
    let calls = calls(&graph, "front", "/");
    let probabilities: Vec<f64> = calls
        .iter()
        .map(|(_, _, probability, _)| *probability)
        .collect();
    assert_eq!(probabilities[..3], [0.75, 0.5, 0.25]);
    assert_eq!(probabilities.len(), 16);
    let visits: f64 = demand::visits(&graph, 0)[1].iter().sum();
    assert!((visits - 23.0 / 4.0).abs() < 1e-9, "{visits}");
}

#[test]
fn what_is_beyond_the_bounds_of_a_file_is_cut_to_them() {
    let mut text = "traceid,rpcid,um,dm,rt,timestamp\n1,0,,a,9000000,0\n".to_owned();
    for call in 1..=1_500 {
        text += &format!("1,0.{call},a,b,1,{call}\n");
    }
    let imported = from_rows(&text).unwrap();
    reads_back(&imported);
    let (_, first) = imported.topology.services[0].endpoint("/").unwrap();
    let hour = Amount::Constant(3_600e9);
    assert_eq!(first.steps[0].action, Action::Work(Work::Sleep(hour)));
    assert_eq!(
        imported.warnings,
        ["1 visits take longer than an hour beside their calls; a step takes an hour at most"]
    );
}

#[test]
fn a_circle_of_services_loses_its_rarest_call() {
    let imported = from_rows(
        "traceid,rpcid,um,dm,rt\n1,0,,a,9\n1,0.1,a,b,5\n1,0.1.1,b,a,1\n2,0,,a,9\n2,0.1,a,b,5\n",
    )
    .unwrap();
    reads_back(&imported);
    assert_eq!(imported.topology.edges.len(), 1);
    assert_eq!(
        imported.warnings,
        ["calls of \"a\" by \"b\" are left out (1 of them): they lead back in a circle"]
    );
}

#[test]
fn a_service_that_calls_itself_still_does() {
    let imported = from_rows(
        "traceid,rpcid,um,dm,rt,interface,timestamp\n\
         1,0,,a,90,buy,0\n1,0.1,a,a,50,price,10\n1,0.1.1,a,b,20,get,20\n\
         2,0,,a,90,fib,0\n2,0.1,a,a,50,fib,10\n2,0.1.1,a,a,20,fib,20\n",
    )
    .unwrap();
    reads_back(&imported);
    assert_eq!(imported.warnings, Vec::<String>::new());
    let graph = &imported.topology;
    for (path, callee, asked) in [
        ("/buy", "a", "/price"),
        ("/price", "b", "/get"),
        ("/fib", "a", "/fib~2"),
        ("/fib~2", "a", "/fib~3"),
    ] {
        let expected = [(callee, Some(asked), 1.0, true)];
        assert_eq!(calls(graph, "a", path), expected, "{path}");
    }
    assert!(calls(graph, "a", "/fib~3").is_empty());

    let json = br#"[
        {"traceId":"01","id":"01","kind":"SERVER","name":"/buy","timestamp":1000,"duration":900,"localEndpoint":{"serviceName":"front"}},
        {"traceId":"01","id":"02","parentId":"01","kind":"CLIENT","name":"call","timestamp":1100,"duration":400,"localEndpoint":{"serviceName":"front"}},
        {"traceId":"01","id":"03","parentId":"02","kind":"SERVER","name":"/price","timestamp":1200,"duration":200,"localEndpoint":{"serviceName":"front"}}
    ]"#;
    let read = traces::read(json, &traces::Origin::unix()).unwrap();
    let imported = spans("shop", &read).unwrap();
    reads_back(&imported);
    let called = calls(&imported.topology, "front", "/buy");
    assert_eq!(called, [("front", Some("/price"), 1.0, true)]);
}

#[test]
fn a_recursion_that_is_too_deep_is_cut_and_told() {
    let mut text = "traceid,rpcid,um,dm,rt,interface\n1,0,,a,100,fib\n".to_owned();
    let mut rpc = "0".to_owned();
    for depth in 1..12 {
        rpc += ".1";
        text += &format!("1,{rpc},a,a,{},fib\n", 100 - depth);
    }
    let imported = from_rows(&text).unwrap();
    reads_back(&imported);
    assert_eq!(imported.topology.services[0].endpoints.len(), 9);
    assert_eq!(
        imported.warnings,
        [
            "calls of \"/fib~9\" of \"a\" by \"/fib~9\" of \"a\" are left out (3 of them): they lead back in a circle"
        ]
    );
}

#[test]
fn foreign_names_become_names_that_differ() {
    let imported = from_rows(
        "traceid,rpcid,um,dm,rt,interface\n1,0,USER,a_b,9,\"x,\"\"y\"\"\"\n1,0.1,a_b,a.b,5,GET /p?q=1\n1,0.2,a_b,---,5,é è\n",
    )
    .unwrap();
    reads_back(&imported);
    let graph = &imported.topology;
    assert_eq!(named(graph), ["a-b", "a-b-2", "service", "user"]);
    assert_eq!(graph.entry, ServiceId(3));
    assert_eq!(
        calls(graph, "user", "/"),
        [("a-b", Some("/x,\"y\""), 1.0, true)]
    );
    let paths = |at: usize| graph.services[at].endpoints[0].path.as_str();
    assert_eq!((paths(1), paths(2)), ("/p", "/---"));
}

#[test]
fn rows_that_make_no_graph_are_refused() {
    let said = |text: &str| from_rows(text).unwrap_err().to_string();
    assert_eq!(
        said(""),
        "the first line names no column \"traceid\"; found \"\""
    );
    assert_eq!(
        said("traceid,rpcid,um,rt\n"),
        "the first line names no column \"dm\"; found \"traceid,rpcid,um,rt\""
    );
    let head = "traceid,rpcid,um,dm,rt\n";
    assert_eq!(said(head), "no row can be used; line 1: there are no rows");
    assert_eq!(
        said(&format!("{head}a,0,b,c,soon\n")),
        "no row can be used; line 2: its rt is no number of milliseconds of at most a day"
    );
    assert_eq!(
        said(&format!("{head}a,0,,c,1\n")),
        "no trace has a call between two named services; expected at least one"
    );
    let long = format!("{head}a,0,b,c,1\n{}\na,0,b,c,1\n", "x".repeat(200_000));
    assert_eq!(from_rows(&long).unwrap().topology.services.len(), 2);
    let few = RowLimits { rows: 1 };
    let imported = rows(
        "calls.csv",
        ROWS.replace("T1,0,(?)", "T1,0,gate").as_bytes(),
        few,
    )
    .unwrap();
    assert_eq!(
        imported.warnings,
        ["calls.csv: the rows from line 3 on are left out; 1 were read"]
    );
}

fn simulated(graph: &Topology, requests: u64) -> Vec<Span> {
    let costs = Costs::default();
    let mut simulation = Simulation::new(graph, "/", &costs).unwrap();
    let mut spans = Vec::new();
    for number in 0..requests {
        simulation.request(number, &mut spans).unwrap();
    }
    spans
}

#[test]
fn a_graph_from_the_spans_of_another_behaves_as_that_one() {
    let text = CHECKOUT
        .replace(
            "latency = { p50 = \"1ms\", p90 = \"3ms\", p99 = \"9ms\" }",
            "",
        )
        .replace(
            "delay = { rate = \"1%\", by = \"50ms\" }",
            "delay = { rate = 0, by = \"0\" }",
        );
    let graph = read(&source(&text)).unwrap();
    let imported = spans("again", &simulated(&graph, 5000)).unwrap();
    reads_back(&imported);
    assert_eq!(imported.warnings, Vec::<String>::new());
    let again = &imported.topology;
    let pairs = |graph: &Topology| {
        let name = |id| graph.service(id).unwrap().name.clone();
        let edges = graph
            .edges
            .iter()
            .map(|edge| (name(edge.from), name(edge.to)));
        edges.collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(pairs(again), pairs(&graph));
    let costs = Costs::default();
    let expected = budget::expect(&graph, "/", &costs, 5000).unwrap();
    let found = budget::expect(again, "/", &costs, 5000).unwrap();
    let near = |found: f64, expected: f64| (found / expected - 1.0).abs() < 0.05;
    assert!(
        near(found.client.mean, expected.client.mean),
        "{found}\n{expected}"
    );
    assert!(
        near(found.client.p50 as f64, expected.client.p50 as f64),
        "{found}\n{expected}"
    );
    for one in &expected.parts.services {
        let mut all = found.parts.services.iter();
        let other = all.find(|other| other.service == one.service).unwrap();
        assert!(near(other.visits, one.visits), "{found}\n{expected}");
        assert!(
            near(other.cpu.max(1.0), one.cpu.max(1.0)),
            "{found}\n{expected}"
        );
    }
}

#[test]
fn spans_of_others_are_understood() {
    // Client and server share their ids; a database tells nothing; a local span is between.
    let json = br#"[
        {"traceId":"01","id":"01","kind":"SERVER","name":"GET /buy","timestamp":1000,"duration":900,"localEndpoint":{"serviceName":"Front End"}},
        {"traceId":"01","id":"02","parentId":"01","kind":"CLIENT","name":"price","timestamp":1100,"duration":400,"localEndpoint":{"serviceName":"Front End"},"remoteEndpoint":{"serviceName":"price"}},
        {"traceId":"01","id":"02","parentId":"01","kind":"SERVER","shared":true,"name":"/price","timestamp":1200,"duration":200,"localEndpoint":{"serviceName":"price"}},
        {"traceId":"01","id":"03","parentId":"02","name":"lookup","timestamp":1210,"duration":150,"localEndpoint":{"serviceName":"price"}},
        {"traceId":"01","id":"04","parentId":"03","kind":"CLIENT","name":"select","timestamp":1220,"duration":100,"localEndpoint":{"serviceName":"price"},"remoteEndpoint":{"serviceName":"postgres"}}
    ]"#;
    let read = traces::read(json, &traces::Origin::here()).unwrap();
    let imported = spans("shop", &read).unwrap();
    reads_back(&imported);
    let graph = &imported.topology;
    assert_eq!(named(graph), ["front-end", "price", "postgres"]);
    assert_eq!(
        calls(graph, "front-end", "/buy"),
        [("price", Some("/price"), 1.0, true)]
    );
    assert_eq!(
        calls(graph, "price", "/price"),
        [("postgres", Some("/select"), 1.0, true)]
    );
    let own = |at: usize| graph.services[at].endpoints[0].steps[0].action.clone();
    let sleep = |nanos| Action::Work(Work::Sleep(Amount::Constant(nanos)));
    assert_eq!(own(0), sleep(500e3));
    assert_eq!(own(1), sleep(100e3));
    assert_eq!(own(2), sleep(100e3));
}

#[test]
fn a_call_that_seems_to_end_a_microsecond_late_was_waited_for() {
    let json = |length: u64| {
        format!(
            r#"[{{"traceId":"01","id":"01","kind":"SERVER","name":"/buy","timestamp":1000,"duration":900,"localEndpoint":{{"serviceName":"front"}}}},
            {{"traceId":"01","id":"02","parentId":"01","kind":"CLIENT","name":"/get","timestamp":1100,"duration":{length},"localEndpoint":{{"serviceName":"front"}},"remoteEndpoint":{{"serviceName":"store"}}}}]"#
        )
    };
    for (length, waits) in [(800, true), (801, true), (850, false)] {
        let read = traces::read(json(length).as_bytes(), &traces::Origin::unix()).unwrap();
        let graph = spans("shop", &read).unwrap().topology;
        assert_eq!(
            calls(&graph, "front", "/buy"),
            [("store", Some("/get"), 1.0, waits)]
        );
    }
}

#[test]
fn spans_that_came_twice_are_those_of_one_request() {
    let graph = generate::chain(3).unwrap();
    let once = simulated(&graph, 20);
    let twice = [once.clone(), once.clone()].concat();
    assert_eq!(spans("chain", &twice), spans("chain", &once));
}

#[test]
fn spans_without_a_call_are_no_graph() {
    let graph = generate::chain(1).unwrap();
    let error = spans("none", &simulated(&graph, 3)).unwrap_err();
    assert_eq!(error, import::TraceError::Nothing);
    assert!(spans("none", &[]).is_err());
}

/// Rows of few names, so that they belong together; some are broken.
fn any_rows() -> impl Strategy<Value = String> {
    let name = prop_oneof![
        Just("a"),
        Just("b"),
        Just("c_1"),
        Just(""),
        Just("NAN"),
        Just("(?)")
    ];
    let rpc = prop_oneof![
        Just("0"),
        Just("0.1"),
        Just("0.2"),
        Just("0.1.1"),
        Just("0.1.1.1"),
        Just("1"),
        Just("x")
    ];
    let kind = prop_oneof![Just("rpc"), Just("mq"), Just("")];
    let row = (0..4, rpc, name.clone(), name, -20..40, 0..100, kind);
    prop::collection::vec(row, 0..40).prop_map(|rows| {
        let mut text = "traceid,rpcid,um,dm,rt,timestamp,rpctype\n".to_owned();
        for (trace, rpc, um, dm, rt, at, kind) in rows {
            text += &format!("{trace},{rpc},{um},{dm},{rt},{at},{kind}\n");
        }
        text
    })
}

prop_compose! {
    fn any_span()(
        (trace, id, parent) in (1_u128..3, 1_u64..8, 0_u64..8),
        kind in prop_oneof![Just(SpanKind::Server), Just(SpanKind::Client), Just(SpanKind::Work)],
        (service, peer) in ("[ab]?", "[abc]?"),
        name in prop_oneof![Just("/"), Just("/x"), Just("sleep"), Just("")],
        (start, end, cpu) in (0_u64..50, 0_u64..50, 0_u64..9),
        (status, attempt) in (prop_oneof![Just(0_u16), Just(200), Just(503)], 0_u8..2),
    ) -> Span {
        Span {
            trace: TraceId(trace), id: SpanId(id), parent: SpanId(parent), kind,
            service: service.into(), name: name.into(), peer: peer.into(),
            start, end, cpu, queue: 0, status, attempt, revision: 0, cause: "",
        }
    }
}

proptest! {
    #[test]
    fn any_rows_make_a_graph_that_can_be_used_or_none(text in any_rows()) {
        if let Ok(imported) = from_rows(&text) {
            reads_back(&imported);
        }
    }

    #[test]
    fn no_text_ends_the_reading_of_rows(text in "\\PC{0,40}(\n\\PC{0,20}){0,4}") {
        let _ = from_rows(&text);
        let _ = from_rows(&format!("traceid,rpcid,um,dm,rt\n{text}"));
    }

    #[test]
    fn any_spans_make_a_graph_that_can_be_used_or_none(all in prop::collection::vec(any_span(), 0..30)) {
        if let Ok(imported) = spans("any", &all) {
            reads_back(&imported);
        }
    }
}
