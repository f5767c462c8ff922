//! Isotope's topologies.

use document::Source;
use proptest::prelude::*;

use super::super::import::{Imported, isotope};
use super::super::*;
use super::reading::source;

fn yaml(text: &str) -> Source {
    Source {
        name: "graph.yaml".to_owned(),
        text: text.to_owned(),
    }
}

fn imported(text: &str) -> Imported {
    let imported = isotope(&yaml(text)).unwrap();
    // What was imported is a file that can be used.
    let printed = imported.topology.to_toml();
    assert_eq!(
        read(&source(&printed)).unwrap(),
        imported.topology,
        "{printed}"
    );
    imported
}

/// Every kind of key, step and default.
const ALL: &str = "
apiVersion: v1alpha1
defaults:
  type: grpc
  requestSize: 1 KB
  responseSize: 2K
  errorRate: 0.5%
  numReplicas: 3
  script: [{sleep: 10ms}]
  numRbacPolicies: 3
services:
- name: a
  responseSize: 128
  errorRate: 0.25
  labels: {tier: back}
- name: b
  type: http
  numReplicas: 1
  script: []
- name: front
  isEntrypoint: true
  namespace: demo
  script:
  - sleep: 1m0.5s
  - call: a
  - - call: {service: a, size: 10, probability: 30}
    - call: {service: b, probability: 0, hostname: \"b.demo:8080\"}
    - sleep: 5us
  - call: {service: b, probability: 100}
";

#[test]
fn every_key_has_its_meaning() {
    let Imported { topology, warnings } = imported(ALL);
    let names: Vec<&str> = topology
        .services
        .iter()
        .map(|one| one.name.as_str())
        .collect();
    assert_eq!(names, ["a", "b", "front"]);
    assert_eq!(topology.entry, ServiceId(2));
    let [a, b, front] = topology.services.as_slice() else {
        panic!()
    };

    assert_eq!(
        (a.protocol, a.replicas, a.faults.error),
        (Protocol::Grpc, 3, 0.25)
    );
    assert_eq!(a.faults.status, 500);
    assert_eq!(a.labels, [("tier".to_owned(), "back".to_owned())]);
    assert_eq!(
        a.endpoints[0].response,
        Response::Bytes(Amount::Constant(128.0))
    );
    let sleep = |nanos| Action::Work(Work::Sleep(Amount::Constant(nanos)));
    assert_eq!(a.endpoints[0].steps.len(), 1);
    assert_eq!(a.endpoints[0].steps[0].action, sleep(1e7));
    assert_eq!(
        (b.protocol, b.replicas, b.faults.error),
        (Protocol::Http1, 1, 0.005)
    );
    assert!(b.endpoints[0].steps.is_empty());
    assert_eq!(
        b.endpoints[0].response,
        Response::Bytes(Amount::Constant(2048.0))
    );

    let steps = &front.endpoints[0].steps;
    assert_eq!(steps[0].action, sleep(60.5e9));
    let Action::Parallel {
        branches,
        join: Join::All,
    } = &steps[2].action
    else {
        panic!()
    };
    assert_eq!(branches.len(), 3);
    let calls: Vec<(&str, f64, f64)> = front.endpoints[0]
        .calls()
        .iter()
        .map(|(_, call)| {
            let to = topology.edge(call.edge).unwrap().to;
            let Amount::Constant(bytes) = call.request else {
                panic!()
            };
            assert_eq!((call.timeout, call.retries), (import::TIMEOUT, 0));
            (
                topology.service(to).unwrap().name.as_str(),
                call.probability,
                bytes,
            )
        })
        .collect();
    // A probability of 0 says nothing there.
    assert_eq!(
        calls,
        [
            ("a", 1.0, 1024.0),
            ("a", 0.3, 10.0),
            ("b", 1.0, 1024.0),
            ("b", 1.0, 1024.0)
        ]
    );
    let heads: Vec<&str> = warnings
        .iter()
        .filter_map(|one| one.lines().next())
        .collect();
    assert_eq!(
        heads,
        [
            "graph.yaml:2:1: unknown key \"apiVersion\"",
            "graph.yaml:10:3: unknown key \"numRbacPolicies\"",
            "graph.yaml:22:3: \"namespace\" has no effect here",
            "graph.yaml:27:42: \"hostname\" has no effect here",
        ]
    );
}

#[test]
fn an_entry_without_a_mark_is_the_one_that_no_other_calls() {
    let graph = imported("services:\n- name: leaf\n- {name: root, script: [{call: leaf}]}\n");
    assert_eq!(graph.topology.entry, ServiceId(1));
    assert_eq!(graph.warnings, Vec::<String>::new());
}

#[test]
fn services_that_no_request_can_reach_are_left_out() {
    let graph = imported(
        "services:\n- {name: alone, script: [{call: b}]}\n- {name: a, isEntrypoint: true, script: [{call: b}]}\n\
         - {name: b}\n- {name: c, isEntrypoint: true}\n",
    );
    let names: Vec<&str> = graph
        .topology
        .services
        .iter()
        .map(|one| one.name.as_str())
        .collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(graph.topology.edges.len(), 1);
    let warnings = graph.warnings.join("\n");
    for expected in [
        "graph.yaml:5:13: \"c\" is no entry here: \"a\" is one already, and a graph has one",
        "graph.yaml: \"alone\" is left out: no call leads to it from the entry",
        "graph.yaml: \"c\" is left out",
    ] {
        assert!(warnings.contains(expected), "{warnings}");
    }
}

#[test]
fn a_tree_of_a_thousand_services_imports() {
    use std::fmt::Write;
    let mut text = "services:\n".to_owned();
    for at in 0..1111 {
        let _ = writeln!(text, "- name: svc-{at}\n  isEntrypoint: {}", at == 0);
        if at < 111 {
            text += "  script:\n  -";
            for branch in 1..=10 {
                let _ = writeln!(
                    text,
                    "{} - call: svc-{}",
                    if branch > 1 { "   " } else { "" },
                    at * 10 + branch
                );
            }
        }
    }
    let graph = imported(&text).topology;
    assert_eq!((graph.services.len(), graph.edges.len()), (1111, 1110));
}

#[test]
fn what_isotope_refuses_and_what_it_runs_into_is_refused_at_its_place() {
    let steps = |script: &str| {
        format!("services:\n- name: a\n  isEntrypoint: true\n  script: {script}\n- name: b\n")
    };
    let cases = [
        (
            steps("[[{call: b}, [{call: b}]]]"),
            "4:24: steps that run at once cannot hold a list of others",
        ),
        (
            steps("[{call: b, sleep: 1s}]"),
            "4:12: expected a command with one key, sleep or call, or a list of those, found a table",
        ),
        (steps("[{call: bb}]"), "4:19: there is no service \"bb\""),
        (
            steps("[{cal: b}]"),
            "4:12: unknown command \"cal\"; expected sleep or call",
        ),
        (
            steps("[{sleep: 10}]"),
            "4:20: expected a length of time such as 10ms, found 10",
        ),
        (
            steps("[{sleep: 2h}]"),
            "4:20: expected a length of time of at most 1h, found \"2h\"",
        ),
        (
            steps("[{call: {service: b, probability: 101}}]"),
            "4:45: expected a whole number from 0 to 100, found 101",
        ),
        (
            steps("[{call: {service: b, probability: 0.5}}]"),
            "4:45: expected a whole number from 0 to 100, found 0.5",
        ),
        (
            steps("[{call: {service: b, size: 1 parsec}}]"),
            "4:38: expected a size such as 128 or \"10K\", to 1G, found \"1 parsec\"",
        ),
        (
            steps("[{call: {size: 1}}]"),
            "4:19: a call needs the name of a service, as \"service\"",
        ),
        (
            steps("[{call: a}]"),
            "4:19: these calls form a cycle: a -> a",
        ),
        (steps("{call: b}"), "4:11: expected a list, found a table"),
        (
            "services: []".to_owned(),
            "1:11: expected a list of services with at least one",
        ),
        (
            "{}".to_owned(),
            "1:1: expected a list of services with at least one",
        ),
        (
            "services:\n- script: []\n".to_owned(),
            "2:3: a service needs a name",
        ),
        (
            "services:\n- name: a\n- name: a\n".to_owned(),
            "3:9: there is a service \"a\" already",
        ),
        (
            "services:\n- name: A_1\n".to_owned(),
            "2:9: expected a name of 1 to 63 lower-case letters, digits, and inner dashes and underscores, found \"A_1\"",
        ),
        (
            "services:\n- name: a\n- name: b\n".to_owned(),
            "2:3: no service is the entry; expected one with isEntrypoint: true",
        ),
        (
            "services:\n- {name: a, errorRate: 5}\n".to_owned(),
            "2:24: expected a share from 0 to 1, found 5",
        ),
        (
            "services:\n- {name: a, type: tcp}\n".to_owned(),
            "2:19: expected http or grpc, found \"tcp\"",
        ),
        (
            "services:\n- {name: a, numReplicas: 0}\n".to_owned(),
            "2:26: expected a whole number from 1 to 1000, found 0",
        ),
        (
            "services:\n- {name: a, script: [{call: b}]}\n- {name: b, script: [{call: a}]}\n"
                .to_owned(),
            "3:29: these calls form a cycle: a -> b -> a",
        ),
    ];
    let mut differences = String::new();
    for (text, expected) in cases {
        let problems = isotope(&yaml(&text)).unwrap_err().to_string();
        let head = format!("graph.yaml:{expected}");
        if problems.lines().all(|line| line != head) {
            differences += &format!("{text}\n{problems}\nexpected: {head}\n\n");
        }
    }
    assert!(differences.is_empty(), "{differences}");
}

#[test]
fn units_of_sizes_are_powers_of_1024_in_any_case() {
    for (text, expected) in [
        ("128", 128.0),
        ("\"128\"", 128.0),
        ("10K", 10_240.0),
        ("1 KB", 1024.0),
        ("1KiB", 1024.0),
        ("1.5 mb", 1_572_864.0),
        ("1g", 1_073_741_824.0),
        ("7b", 7.0),
    ] {
        let text = format!("services:\n- {{name: a, isEntrypoint: true, responseSize: {text}}}\n");
        let graph = isotope(&yaml(&text)).unwrap().topology;
        let response = &graph.services[0].endpoints[0].response;
        assert_eq!(
            *response,
            Response::Bytes(Amount::Constant(expected)),
            "{text}"
        );
    }
    for text in ["-1", "1X", "KB", "1kibb", "2G", "1.5.5K", "\"\"", "1bb"] {
        let text = format!("services:\n- {{name: a, isEntrypoint: true, responseSize: {text}}}\n");
        assert!(isotope(&yaml(&text)).is_err(), "{text}");
    }
}

proptest! {
    #[test]
    fn no_file_with_letters_changed_ends_the_program(at in any::<prop::sample::Index>(), with in "\\PC{0,3}") {
        let mut text = ALL.to_owned();
        let at = at.index(text.len());
        text.replace_range(at..at + 1, &with);
        if let Ok(imported) = isotope(&yaml(&text)) {
            let printed = imported.topology.to_toml();
            prop_assert_eq!(read(&source(&printed)).unwrap(), imported.topology);
        }
    }
}
