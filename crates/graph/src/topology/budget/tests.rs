use super::*;
use crate::topology::{demand, generate, of_text as graph};
use traces::SpanKind;

const FREE: Costs = Costs {
    hop: 0,
    handling: 0,
    handoff: 0,
    connect: 0,
    op: 1.0,
    touch: 1.0,
    fork: 7,
    byte: 1.0,
    sync: 11,
    stress_ng: 13,
};

/// root → price (10 ms), stock (20 ms) → store.
fn diamond(calls: &str) -> Topology {
    graph(&format!(
        "[services.root]\nentry = true\nsteps = [{calls}]\n\
         [services.price]\nsteps = [{{ sleep = \"10ms\" }}, {{ call = \"store\" }}]\n\
         [services.stock]\nsteps = [{{ sleep = \"20ms\" }}, {{ call = \"store\" }}]\n\
         [services.store]\nsteps = [{{ cpu = \"1ms\" }}]\n"
    ))
}

#[test]
fn branches_at_once_take_the_longer_and_steps_in_order_the_sum() {
    const MS: u64 = 1_000_000;
    let both = "{ call = \"price\" }, { call = \"stock\" }";
    let at_once = |join| format!("{{ parallel = [{both}], join = {join} }}");
    for (calls, expected) in [
        (at_once("\"all\""), 21 * MS),
        (at_once("\"any\""), 11 * MS),
        (both.to_owned(), 32 * MS),
    ] {
        let graph = diamond(&calls);
        let budget = expect(&graph, "/", &FREE, 100).unwrap();
        assert_eq!((budget.requests, budget.failed), (100, 0));
        assert_eq!((budget.client.count, budget.client.p50), (100, expected));
        assert_eq!(budget.client.p99, expected);
        let store = &budget.parts.services[3];
        assert_eq!((store.service.as_str(), store.visits), ("store", 2.0));
        assert_eq!((store.work.p50, store.cpu), (MS, 1e6));
        let costs = Costs { hop: 1000, ..FREE };
        let budget = expect(&graph, "/", &costs, 10).unwrap();
        // The client's hop, and two hops on each way through the graph.
        let hops = if calls == both { 5 } else { 3 };
        assert_eq!(budget.client.p50, expected + hops * 1000);
        let edge = &budget.parts.edges[0];
        assert_eq!(
            (edge.from.as_str(), edge.to.as_str(), edge.calls),
            ("root", "price", 1.0)
        );
        assert_eq!(edge.latency.p50, 11 * MS + 2000);
    }
}

#[test]
fn a_connection_of_its_own_costs_a_call_more() {
    let chain = |connections| {
        graph(&format!(
            "[defaults]\nconnections = {connections}\n[services.a]\nentry = true\n\
             steps = [{{ call = \"b\" }}]\n[services.b]"
        ))
    };
    let costs = Costs {
        hop: 1000,
        connect: 300,
        ..FREE
    };
    for (connections, expected) in [("8", 2000), ("\"cold\"", 2300)] {
        let budget = expect(&chain(connections), "/", &costs, 3).unwrap();
        assert_eq!(budget.client.p50, expected);
    }
}

#[test]
fn every_kind_of_work_takes_what_it_costs() {
    let graph = graph(
        "[services.a]\nentry = true\nsteps = [\n\
         { cpu = \"100ns\" }, { ops = 200 }, { primes = 300 }, { memory = \"1KiB\", touches = 400 },\n\
         { fork = [\"date\"] }, { disk = { read = \"10B\", write = \"20B\", sync = true } },\n\
         { lock = \"x\", cpu = \"500ns\" }, { sleep = \"600ns\" }, { stress-ng = \"job\" },\n\
         { stress-ng = \"job\", wait = false }, { stress-ng-status = true }]",
    );
    let mut spans = Vec::new();
    let mut simulation = Simulation::new(&graph, "/", &FREE).unwrap();
    let ended = simulation.request(0, &mut spans).unwrap();
    let expected = [
        ("cpu", 100, 100),
        ("ops", 200, 200),
        ("primes", 300, 300),
        ("memory", 400, 400),
        ("fork", 7, 7),
        ("disk", 41, 30),
        ("lock", 500, 500),
        ("sleep", 600, 0),
        ("stress-ng", 13, 13),
        ("stress-ng-background", 0, 0),
        ("stress-ng-status", 0, 0),
    ];
    let works = spans.iter().filter(|span| span.kind == SpanKind::Work);
    let seen: Vec<_> = works
        .map(|span| (&*span.name, span.end - span.start, span.cpu))
        .collect();
    assert_eq!(seen, expected);
    let total = expected.iter().map(|(_, wall, _)| wall).sum::<u64>();
    assert_eq!((ended.status, ended.latency, ended.calls), (200, total, 0));
    // All belong to the one server span.
    let server = spans
        .iter()
        .find(|span| span.kind == SpanKind::Server)
        .unwrap();
    assert!(
        spans
            .iter()
            .all(|span| span.id == server.id || span.parent == server.id)
    );
}

#[test]
fn calls_are_as_frequent_as_expected_and_the_same_again() {
    let graph = generate::random(&generate::RandomShape::default(), 5).unwrap();
    let budget = expect(&graph, "/", &Costs::default(), 2000).unwrap();
    assert_eq!(
        budget,
        expect(&graph, "/", &Costs::default(), 2000).unwrap()
    );
    let expected = demand::visits(&graph, 0);
    let (mut seen_calls, mut expected_calls) = (0.0, 0.0);
    for (service, expected) in budget.parts.services.iter().zip(&expected) {
        seen_calls += service.visits;
        expected_calls += expected[0];
    }
    let share = seen_calls / expected_calls;
    assert!(
        (0.95..1.05).contains(&share),
        "{seen_calls} {expected_calls}"
    );
}

#[test]
fn failures_are_counted_and_in_no_latency() {
    let graph = graph(
        "seed = 3\n[services.a]\nentry = true\nsteps = [{ call = \"b\", timeout = \"5ms\", retries = 1 }]\n\
         [services.b]\nfaults = { error = 0.2, delay = { rate = 0.1, by = \"1s\" } }\nsteps = [{ cpu = \"1ms\" }]",
    );
    let budget = expect(&graph, "/", &FREE, 10_000).unwrap();
    // An attempt fails by fault (0.2) or, of the others, late (0.1); a request with two.
    let fails = 1.0 - 0.8 * 0.9_f64;
    let share = budget.failed as f64 / 10_000.0;
    assert!((share - fails * fails).abs() < 0.012, "{share}");
    let edge = &budget.parts.edges[0];
    assert!((edge.calls - 1.0 - fails).abs() < 0.02, "{}", edge.calls);
    assert_eq!(edge.latency.p50, 1_000_000);
    assert!(budget.client.count + budget.failed == 10_000);
    assert_eq!(budget.client.p50, 1_000_000);
}

#[test]
fn a_path_that_is_not_there_is_refused() {
    let graph = graph(
        "[services.a]\nentry = true\n[services.a.endpoints.\"/x\"]\n[services.a.endpoints.\"/y\"]",
    );
    let error = expect(&graph, "/", &FREE, 1).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the entry \"a\" has no endpoint \"/\"; it has /x, /y"
    );
    assert!(expect(&graph, "/y", &FREE, 1).is_ok());
}

#[test]
fn a_request_without_an_end_is_refused_and_many_calls_end_early() {
    let wide = |levels: usize| {
        let mut text = "[defaults]\ntimeout = \"1h\"\n[services.s0]\nentry = true\n".to_owned();
        for at in 0..levels {
            text += &format!(
                "steps = [{{ call = \"s{}\", count = 1000 }}]\n[services.s{}]\n",
                at + 1,
                at + 1
            );
        }
        graph(&text)
    };
    let error = expect(&wide(2), "/", &FREE, 1).unwrap_err();
    assert_eq!(error, BudgetError::TooLarge { number: 0 });
    let budget = expect(&wide(1), "/", &FREE, u64::MAX).unwrap();
    assert_eq!(budget.requests, MOST_CALLS_TOGETHER as u64 / 1000);
}

#[test]
fn a_budget_reads_as_a_table() {
    let graph = diamond("{ call = \"price\" }, { call = \"stock\" }");
    let costs = Costs {
        hop: 25_000,
        ..FREE
    };
    let text = expect(&graph, "/", &costs, 1000).unwrap().to_string();
    assert_eq!(
        text,
        "/: p50 32.1 ms, mean 32.1 ms, p99 32.1 ms without contention, 25 µs a hop\n\
         (1,000 requests in virtual time, 0 of them fail)\n\n\
         service  visits      p50      p99  own work  processor\n\
         root          1  32.1 ms  32.1 ms       0 s        0 s\n\
         price         1    11 ms    11 ms     10 ms        0 s\n\
         stock         1    21 ms    21 ms     20 ms        0 s\n\
         store         2     1 ms     1 ms      1 ms       1 ms\n\n\
         edge         calls      p50      p99\n\
         root>price       1  11.1 ms  11.1 ms\n\
         root>stock       1    21 ms    21 ms\n\
         price>store      1  1.03 ms  1.03 ms\n\
         stock>store      1  1.03 ms  1.03 ms\n"
    );
}

#[test]
fn of_a_large_graph_the_parts_that_weigh_most_are_shown() {
    let graph = generate::random(&generate::RandomShape::default(), 5).unwrap();
    let text = expect(&graph, "/", &Costs::default(), 200)
        .unwrap()
        .to_string();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines.len() < 100, "{text}");
    assert!(lines.contains(&"and 960 more that weigh less"), "{text}");
    // The entry is on every way.
    assert!(lines.iter().any(|line| line.starts_with("s1 ")), "{text}");
}

#[test]
fn calls_that_must_all_time_out_are_said() {
    let text = |timeout: &str| {
        let stock = format!("{{ call = \"stock\", timeout = \"{timeout}\" }}");
        let calls = format!("{{ call = \"price\" }}, {stock}");
        let budget = expect(&diamond(&calls), "/", &FREE, 100).unwrap();
        (budget.failed, budget.to_string())
    };
    let (failed, said) = text("15ms");
    assert_eq!(failed, 100);
    assert!(
        said.contains(
            "every call from root to stock fails without contention already: its timeout"
        ),
        "{said}"
    );
    let (failed, said) = text("25ms");
    assert_eq!(failed, 0);
    assert!(!said.contains("every call"), "{said}");
}
