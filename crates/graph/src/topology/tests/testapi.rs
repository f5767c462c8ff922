//! testapi's environment variables.

use super::super::testapi::*;
use super::super::*;

fn configured(variables: &[(&str, &str)]) -> Result<Configured, String> {
    let find = |name: &str| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    from_env(find, Some("Node_7.example.net"), 4).map_err(|error| error.to_string())
}

#[test]
fn a_leaf_needs_an_address_alone() {
    let leaf = configured(&[("UPSTREAM_URI", ":8888"), ("SERVICE_NAME", "")]).unwrap();
    let address = Address {
        host: String::new(),
        port: 8888,
    };
    assert_eq!(
        (leaf.listen, leaf.downstream, leaf.metrics_port),
        (address, None, 8887)
    );
    assert_eq!(leaf.topology.services.len(), 1);
    let service = &leaf.topology.services[0];
    assert_eq!((service.name.as_str(), service.workers), ("node-7", 4));
    let steps: Vec<(&str, Vec<&Action>)> = service
        .endpoints
        .iter()
        .map(|one| {
            (
                one.path.as_str(),
                one.steps.iter().map(|step| &step.action).collect(),
            )
        })
        .collect();
    let cpu = Action::Work(Work::Cpu(Amount::Constant(1e7)));
    let fork = Action::Work(Work::Fork(vec!["date".to_owned()]));
    let status = Action::Work(Work::StressNgStatus);
    assert_eq!(
        steps,
        [
            ("/", vec![]),
            ("/busywork", vec![&cpu]),
            ("/prime", vec![]),
            ("/fork", vec![&fork]),
            ("/stress-ng", vec![]),
            ("/load", vec![]),
            ("/load-status", vec![&status]),
        ]
    );
    assert!(
        service
            .endpoints
            .iter()
            .all(|one| one.response == Response::Echo)
    );
    let tracing = &leaf.topology.tracing;
    assert_eq!((tracing.sample, tracing.b3), (0.01, true));
    let reporter = tracing.zipkin.as_ref().unwrap().as_str();
    assert_eq!(reporter, "http://localhost:9411/api/v2/spans");
}

#[test]
fn every_variable_has_its_meaning() {
    let root = configured(&[
        ("UPSTREAM_URI", "[::1]:0"),
        ("DOWNSTREAM_URI", "http://10.0.0.2:8889/base"),
        ("SERVICE_NAME", "Root-1_a"),
        ("PRIME_MAX", "250000"),
        ("JOBFILE", "/etc/stress.cfg"),
        ("LOADFILE", "load.cfg"),
        ("METRICS_PORT", "9000"),
        ("REPORTER_URI", "http://10.0.0.9:9411/api/v2/spans"),
        ("GOGC", "off"),
    ])
    .unwrap();
    assert_eq!(root.listen.to_string(), "[::1]:0");
    let (other, address) = root.downstream.unwrap();
    assert_eq!(
        (other, address.to_string().as_str()),
        (ServiceId(1), "10.0.0.2:8889")
    );
    assert_eq!(root.metrics_port, 9000);
    let topology = &root.topology;
    assert_eq!((topology.edges.len(), topology.entry), (1, ServiceId(0)));
    assert_eq!(topology.services[0].name, "Root-1_a");
    let (_, called) = topology.services[1].endpoint("/anything").unwrap();
    assert_eq!(called.path, "*");
    let mut works = Vec::new();
    for endpoint in &topology.services[0].endpoints {
        let last = endpoint.steps.last().unwrap();
        let Action::Call(call) = &last.action else {
            panic!("{last:?}")
        };
        // Appended as it is.
        assert_eq!(call.path, Some(format!("/base{}", endpoint.path)));
        let long = ["/stress-ng", "/load-status"].contains(&endpoint.path.as_str());
        assert_eq!(
            call.timeout,
            if long { LONG_TIMEOUT } else { testapi::TIMEOUT }
        );
        if let [step, _] = endpoint.steps.as_slice() {
            works.push((endpoint.path.as_str(), &step.action));
        }
    }
    assert!(works.contains(&("/prime", &Action::Work(Work::Primes(250_000)))));
    let job = "/etc/stress.cfg".into();
    assert!(works.contains(&("/stress-ng", &Action::Work(Work::StressNg { job }))));
    let job = "load.cfg".into();
    assert!(works.contains(&("/load", &Action::Work(Work::StressNgBackground { job }))));
    assert_eq!(works.len(), 6);
    // Steps are numbered through.
    let ids: Vec<u32> = topology.services[0]
        .endpoints
        .iter()
        .map(|one| one.step.0)
        .collect();
    assert_eq!(ids, [1, 3, 6, 9, 12, 15, 18]);
}

#[test]
fn a_base_without_a_path_leaves_paths_as_they_are() {
    for (uri, address, path) in [
        ("http://leaf:8890", "leaf:8890", None),
        ("http://leaf", "leaf:80", None),
        ("http://[::1]:80", "[::1]:80", None),
        ("http://[::1]", "[::1]:80", None),
        ("http://leaf:8890/", "leaf:8890", Some("//")),
    ] {
        let root = configured(&[("UPSTREAM_URI", "localhost:1"), ("DOWNSTREAM_URI", uri)]).unwrap();
        let (_, found) = root.downstream.unwrap();
        assert_eq!(found.to_string(), address, "{uri}");
        let calls = root.topology.services[0].endpoints[0].calls();
        assert_eq!(calls[0].1.path.as_deref(), path, "{uri}");
    }
    let named = [
        ("UPSTREAM_URI", ":1"),
        ("DOWNSTREAM_URI", "http://b:2"),
        ("SERVICE_NAME", "downstream"),
    ];
    let names = configured(&named).unwrap().topology.services;
    assert_eq!(names[1].name, "downstream-2");
}

#[test]
fn a_variable_that_cannot_be_used_is_named() {
    let listen = "expected an address to listen on, without a scheme, such as \"127.0.0.1:8888\"";
    let base = "expected a base such as \"http://127.0.0.1:8889\", to which paths are appended";
    assert_eq!(
        configured(&[]).unwrap_err(),
        format!("UPSTREAM_URI is not set; {listen}")
    );
    for value in [
        "http://127.0.0.1:8888",
        "127.0.0.1",
        "127.0.0.1:http",
        "a b:1",
        "[x]:1",
        "::1:80",
    ] {
        let said = configured(&[("UPSTREAM_URI", value)]).unwrap_err();
        assert_eq!(said, format!("UPSTREAM_URI is \"{value}\"; {listen}"));
    }
    for value in [
        "https://b:1",
        "b:1",
        "http://",
        "http://:1",
        "http://b:1?x",
        "http://b:1/x?y",
        "http://u@b:1",
        "http://b:port",
    ] {
        let said = configured(&[("UPSTREAM_URI", ":1"), ("DOWNSTREAM_URI", value)]).unwrap_err();
        assert_eq!(said, format!("DOWNSTREAM_URI is \"{value}\"; {base}"));
    }
    for (name, value, expected) in [
        (
            "SERVICE_NAME",
            "a b",
            "expected a name of 1 to 63 letters, digits, and inner dashes and underscores",
        ),
        (
            "PRIME_MAX",
            "-1",
            "expected a whole number from 0 to 4000000000",
        ),
        (
            "PRIME_MAX",
            "18446744073709551615",
            "expected a whole number from 0 to 4000000000",
        ),
        ("METRICS_PORT", "65536", "expected a port from 0 to 65535"),
        (
            "REPORTER_URI",
            "localhost",
            "expected a URL such as \"http://localhost:9411/api/v2/spans\"",
        ),
    ] {
        let said = configured(&[("UPSTREAM_URI", ":1"), (name, value)]).unwrap_err();
        assert_eq!(said, format!("{name} is \"{value}\"; {expected}"));
    }
}
