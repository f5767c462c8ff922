//! Reading a graph's file.

use std::path::{Path, PathBuf};

use document::Source;

use super::super::*;

pub(super) const CHECKOUT: &str = include_str!("checkout.toml");

pub(super) fn source(text: &str) -> Source {
    Source {
        name: "graph.toml".to_owned(),
        text: text.to_owned(),
    }
}

/// What calls another endpoint of itself ends; what leads back to where it was does not.
#[test]
fn a_service_may_call_another_endpoint_of_its_own() {
    let file = |first: &str, second: &str| {
        format!(
            "[services.a]\nentry = true\nsteps = [{{ call = \"a\", path = \"{first}\" }}]\n\
             [services.a.endpoints.\"/x\"]\nsteps = [{{ call = \"a\"{second} }}]\n\
             [services.a.endpoints.\"/y\"]\nsteps = [{{ cpu = \"1us\" }}, {{ call = \"b\", path = \"/\" }}]\n\
             [services.b]\n"
        )
    };
    let graph = read(&source(&file("/x", ", path = \"/y\""))).unwrap();
    assert_eq!(read(&source(&graph.to_toml())).unwrap(), graph);
    assert_eq!(graph.callers_first(), [ServiceId(0), ServiceId(1)]);
    assert_eq!(demand::visits(&graph, 0), [vec![1.0, 1.0, 1.0], vec![1.0]]);
    for (first, second) in [
        ("/", ""),
        ("/x", ""),
        ("/x", ", path = \"/\""),
        ("/x", ", path = \"/x\""),
    ] {
        let error = read(&source(&file(first, second))).unwrap_err().to_string();
        assert!(
            error.contains("these calls form a cycle: a -> a"),
            "{error}"
        );
    }
}

#[test]
fn a_name_may_have_underscores() {
    let text = "[services.my_front]\nentry = true\nsteps = [{ call = \"my-store_2\" }]\n[services.my-store_2]\n";
    let graph = read(&source(text)).unwrap();
    assert_eq!(read(&source(&graph.to_toml())).unwrap(), graph);
    for wrong in ["_front", "front_", "fr.ont", ""] {
        let text = text.replace("services.my_front", &format!("services.{wrong:?}"));
        assert!(read(&source(&text)).is_err(), "{wrong}");
    }
}

#[test]
fn a_whole_file_becomes_a_graph() {
    let graph = read(&source(CHECKOUT)).unwrap();
    let names: Vec<&str> = graph.services.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["root", "price", "stock", "store", "audit"]);
    assert_eq!(
        (graph.name.as_str(), graph.seed, graph.entry),
        ("checkout", 42, ServiceId(0))
    );
    let edges: Vec<(u32, u32)> = graph
        .edges
        .iter()
        .map(|edge| (edge.from.0, edge.to.0))
        .collect();
    assert_eq!(edges, [(0, 1), (0, 2), (0, 4), (1, 3), (2, 3)]);

    let root = &graph.services[0];
    assert_eq!(root.placement.cpus, [0]);
    assert_eq!(root.endpoints[0].step, StepId(1));
    let calls = root.endpoints[0].calls();
    let ids: Vec<u32> = calls.iter().map(|(step, _)| step.0).collect();
    assert_eq!(ids, [4, 7, 8]);
    assert_eq!(calls[0].1.request, Amount::Constant(256.0));
    assert_eq!(
        (
            calls[1].1.probability,
            calls[1].1.timeout,
            calls[1].1.retries
        ),
        (0.3, 20_000_000, 1)
    );
    assert!(!calls[2].1.wait);
    let Action::Parallel { branches, join } = &root.endpoints[0].steps[1].action else {
        panic!("{:?}", root.endpoints[0].steps[1]);
    };
    assert_eq!((branches.len(), *join), (2, Join::All));

    let price = &graph.services[1];
    assert_eq!(
        price.endpoints[0].latency,
        Amount::Quantiles(vec![(0.5, 1e6), (0.9, 3e6), (0.99, 9e6)])
    );
    let faults = Faults {
        error: 0.005,
        delay_rate: 0.01,
        delay: Amount::Constant(5e7),
        ..Faults::default()
    };
    assert_eq!(price.faults, faults);
    assert_eq!(price.placement.cpu_limit, Some(0.5));
    assert_eq!(price.placement.memory_limit, Some(64 << 20));
    let works: Vec<&Work> = graph
        .services
        .iter()
        .flat_map(|service| &service.endpoints[0].steps)
        .filter_map(|step| match &step.action {
            Action::Work(work) => Some(work),
            _ => None,
        })
        .collect();
    let cpu = |nanos| Work::Cpu(Amount::Constant(nanos));
    let expected = [
        cpu(2e5),
        Work::Cpu(Amount::LogNormal {
            median: 1e6,
            p99: 4e6,
        }),
        Work::Memory {
            set: 4 << 20,
            touches: Amount::Constant(2e4),
        },
        Work::Sleep(Amount::Constant(2e6)),
        Work::Lock {
            name: "row".to_owned(),
            hold: Amount::Constant(3e5),
        },
        Work::Disk {
            read: Amount::Constant(4096.0),
            write: Amount::Constant(4096.0),
            sync: true,
        },
        Work::Primes(250_000),
        Work::Fork(vec!["date".to_owned()]),
        Work::StressNg {
            job: PathBuf::from("stress.cfg"),
        },
    ];
    assert_eq!(works, expected.iter().collect::<Vec<_>>());
    assert_eq!(graph.background.len(), 1);
    assert_eq!(
        (graph.background[0].from, graph.background[0].lasts),
        (10_000_000_000, Some(10_000_000_000))
    );
}

#[test]
fn a_timeout_that_is_not_written_is_no_longer_than_that_of_the_callers() {
    let graph = read(&source(CHECKOUT)).unwrap();
    let timeouts = |name| -> Vec<Nanos> {
        let service = graph.service(graph.find(name).unwrap()).unwrap();
        let calls = service.endpoints[0].calls();
        calls.iter().map(|(_, call)| call.timeout).collect()
    };
    assert_eq!(timeouts("price"), [1_000_000_000]);
    // The root waits 20 ms for it.
    assert_eq!(timeouts("stock"), [20_000_000]);
}

#[test]
fn files_that_a_graph_names_stand_in_its_folder() {
    let folder = Path::new("/folder");
    let text = "[services.a]\nentry = true\nsteps = [{ stress-ng = \"job\" }, { stress-ng = \"/abs\", wait = false }]";
    let graph = check(&source(text), folder, None).unwrap().topology;
    let steps = &graph.services[0].endpoints[0].steps;
    let job = folder.join("job");
    assert_eq!(steps[0].action, Action::Work(Work::StressNg { job }));
    let job = PathBuf::from("/abs");
    assert_eq!(
        steps[1].action,
        Action::Work(Work::StressNgBackground { job })
    );
}

#[test]
fn a_problem_is_shown_at_its_place() {
    let text = "[services.front]\nentry = true\nsteps = [{ call = \"bakc\" }]\n[services.back]\n";
    assert_eq!(
        read(&source(text)).unwrap_err().to_string(),
        "graph.toml:3:19: there is no service \"bakc\"\n   \
            3 | steps = [{ call = \"bakc\" }]\n     \
              |                   ^^^^^^\n     \
              help: did you mean \"back\"?\n\
         graph.toml:4:11: \"back\" is not the entry, and no call leads to it\n   \
            4 | [services.back]\n     \
              |           ^^^^\n     \
              help: call it, make it the entry, or leave it out"
    );
}
