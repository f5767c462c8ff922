//! Whatever is printed reads back to the same.

use std::path::PathBuf;

use proptest::prelude::*;

use super::super::draft::{Draft, endpoint, step};
use super::super::*;
use super::reading::{CHECKOUT, source};

fn any_time() -> impl Strategy<Value = Amount> {
    any_amount((0_u64..3_600_000_000_000).prop_map(|nanos| nanos as f64))
}

fn any_size() -> impl Strategy<Value = Amount> {
    any_amount((0_u64..=1 << 30).prop_map(|bytes| bytes as f64))
}

fn any_count() -> impl Strategy<Value = Amount> {
    any_amount((0_u32..1_000_000).prop_map(|thousandths| f64::from(thousandths) / 1e3))
}

/// Amounts of values of one kind.
fn any_amount(
    value: impl Strategy<Value = f64> + Clone + 'static,
) -> impl Strategy<Value = Amount> {
    let (one, two, three) = (value.clone(), value.clone(), value.clone());
    let four = value.clone();
    prop_oneof![
        4 => value.prop_map(Amount::Constant),
        1 => (one.clone(), one).prop_map(|(a, b)| Amount::Uniform { from: a.min(b), to: a.max(b) }),
        1 => two.prop_map(|mean| Amount::Exponential { mean }),
        1 => (three.clone(), three).prop_map(|(a, b)| {
            // The text of a size or a time is whole.
            let median = a.min(b).max(1.0);
            Amount::LogNormal { median, p99: a.max(b).max(median) }
        }),
        1 => prop::collection::btree_map(1_u32..=100_000, four, 1..5).prop_map(|points| {
            let mut values: Vec<f64> = points.values().copied().collect();
            values.sort_by(f64::total_cmp);
            let places = points.keys().map(|place| f64::from(*place) / 1e5);
            Amount::Quantiles(places.zip(values).collect())
        }),
    ]
}

fn any_work() -> impl Strategy<Value = Work> {
    let job = "[a-z/]{1,9}".prop_map(PathBuf::from);
    prop_oneof![
        any_time().prop_map(Work::Cpu),
        any_count().prop_map(Work::Ops),
        (0_u64..4_000_000_000).prop_map(Work::Primes),
        (1_u64..1 << 36, any_count()).prop_map(|(set, touches)| Work::Memory { set, touches }),
        prop::collection::vec("\\PC{1,8}", 1..4).prop_map(Work::Fork),
        (any_size(), any_size(), any::<bool>()).prop_map(|(read, write, sync)| Work::Disk {
            read,
            write,
            sync
        }),
        ("\\PC{1,12}", any_time()).prop_map(|(name, hold)| Work::Lock { name, hold }),
        any_time().prop_map(Work::Sleep),
        job.clone().prop_map(|job| Work::StressNg { job }),
        job.prop_map(|job| Work::StressNgBackground { job }),
        Just(Work::StressNgStatus),
    ]
}

/// A step; a call names another service by any number.
#[derive(Debug, Clone)]
enum Sketch {
    Work(Work),
    Call(usize, Box<Call>),
    Sequence(Vec<Sketch>),
    Parallel(Vec<Sketch>, usize),
}

fn any_call() -> impl Strategy<Value = Call> {
    (
        prop_oneof![Just(1.0), 0.0..=1.0],
        prop_oneof![Just(Amount::Constant(1.0)), any_count()],
        any_size(),
        0_u32..=100,
        0_u64..1_000_000_000,
        any::<bool>(),
    )
        .prop_map(
            |(probability, count, request, retries, backoff, wait)| Call {
                edge: EdgeId(0),
                path: None,
                probability,
                count,
                request,
                timeout: TIMEOUT,
                retries,
                backoff,
                wait,
            },
        )
}

fn any_sketch() -> impl Strategy<Value = Sketch> {
    let leaf = prop_oneof![
        any_work().prop_map(Sketch::Work),
        (any::<usize>(), any_call()).prop_map(|(to, call)| Sketch::Call(to, Box::new(call))),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Sketch::Sequence),
            (prop::collection::vec(inner, 1..4), any::<usize>())
                .prop_map(|(branches, join)| Sketch::Parallel(branches, join)),
        ]
    })
}

type SketchedEndpoint = (Vec<Sketch>, Response, Amount);

fn any_endpoint() -> impl Strategy<Value = SketchedEndpoint> {
    let response = prop_oneof![
        Just(RESPONSE),
        Just(Response::Echo),
        any_size().prop_map(Response::Bytes)
    ];
    (
        prop::collection::vec(any_sketch(), 0..4),
        response,
        any_time(),
    )
}

prop_compose! {
    fn any_service()(
        protocol in prop_oneof![Just(Protocol::Http1), Just(Protocol::Http2), Just(Protocol::Grpc)],
        replicas in 1_u32..=MOST_REPLICAS,
        workers in 0_u32..=MOST_WORKERS,
        queue in 0_u32..=MOST_QUEUE,
        endpoints in prop::collection::vec(any_endpoint(), 1..4),
        rates in (0.0..=1.0, 0.0..=1.0, 0.0..=1.0),
        status in 400_u16..=599,
        delay in any_time(),
        cpus in prop::collection::btree_set(0_u32..1024, 0..6),
        cpu_limit in prop::option::of(0.01..64.0),
        memory_limit in prop::option::of(any::<u64>()),
        labels in prop::collection::btree_map("\\PC{1,6}", "\\PC{0,6}", 0..3),
    ) -> (Service, Vec<SketchedEndpoint>) {
        let faults = Faults { error: rates.0, status, drop: rates.1, delay_rate: rates.2, delay };
        let placement = Placement { cpus: cpus.into_iter().collect(), cpu_limit, memory_limit };
        let labels = labels.into_iter().collect();
        let service = Service {
            name: String::new(), protocol, replicas, workers, queue, endpoints: Vec::new(),
            faults, placement, labels,
        };
        (service, endpoints)
    }
}

fn any_background() -> impl Strategy<Value = Background> {
    let times = (0_u64..1 << 40, prop::option::of(0_u64..1 << 40));
    ("\\PC{0,9}", 0.0..=1.0, 1_u32..9, any::<u64>(), times).prop_map(
        |(name, cpu_share, threads, memory, (from, lasts))| Background {
            name,
            cpus: vec![3, 4, 5, 9],
            cpu_share,
            threads,
            memory,
            from,
            lasts,
        },
    )
}

prop_compose! {
    fn any_graph()(
        name in "\\PC{0,12}",
        seed in any::<u64>(),
        services in prop::collection::vec(any_service(), 1..6),
        sample in 0.0..=1.0,
        (w3c, b3) in any::<(bool, bool)>(),
        zipkin in prop::option::of(Just("http://host:9411/api/v2/spans")),
        background in prop::collection::vec(any_background(), 0..3),
        cold in 1_u32..100,
    ) -> Topology {
        let mut draft = Draft::new(&name, seed);
        let ids: Vec<ServiceId> = (1..=services.len()).map(|n| draft.service(format!("s-{n}"))).collect();
        for (at, (mut service, endpoints)) in services.into_iter().enumerate() {
            service.name = format!("s-{}", at + 1);
            // Every service is called by the one before it, and all answer the same paths.
            for (place, (sketches, response, latency)) in endpoints.into_iter().enumerate() {
                let mut steps: Vec<Step> = Vec::new();
                for sketch in sketches {
                    steps.extend(drawn(&mut draft, &ids, at, sketch));
                }
                if let Some(next) = ids.get(at + 1).filter(|_| place == 0) {
                    let timeout = TIMEOUT - 1_000_000 * at as u64;
                    let call = Call { timeout, ..draft.call(ids[at], *next) };
                    steps.push(step(Action::Call(call)));
                }
                let path = ["/", "/b", "*"][place];
                service.endpoints.push(Endpoint { steps, response, latency, ..endpoint(path) });
            }
            if at % 2 == 1 {
                service.endpoints.push(endpoint("/last"));
            }
            if service.endpoints.iter().all(|one| one.path != "*") {
                service.endpoints.push(endpoint("*"));
            }
            if at % 3 == 2 {
                service.endpoints.reverse();
            }
            draft.topology.services[at] = service;
        }
        for (edge, at) in draft.topology.edges.iter_mut().zip(0..) {
            edge.connections = match at % 3 {
                0 => Connections::Warm(64),
                1 => Connections::Cold(cold),
                _ => Connections::Warm(cold),
            };
        }
        draft.topology.tracing = Tracing {
            sample, w3c, b3, zipkin: zipkin.map(|url| url::Url::parse(url).unwrap()), otlp: None,
        };
        draft.topology.background = background;
        draft.finish(ids[0])
    }
}

/// A step of service `at`, which calls only those behind it.
fn drawn(draft: &mut Draft, ids: &[ServiceId], at: usize, sketch: Sketch) -> Option<Step> {
    let all = |draft: &mut Draft, sketches: Vec<Sketch>| -> Vec<Step> {
        let each = sketches.into_iter();
        each.filter_map(|one| drawn(draft, ids, at, one)).collect()
    };
    Some(step(match sketch {
        Sketch::Work(work) => Action::Work(work),
        Sketch::Call(to, call) => {
            let behind = &ids[at + 1..];
            let to = *behind.get(to.checked_rem(behind.len())?)?;
            let edge = draft.call(ids[at], to).edge;
            // Nobody waits for longer than those above.
            let timeout = TIMEOUT - 1_000_000 * at as u64;
            Action::Call(Call {
                edge,
                timeout,
                ..*call
            })
        }
        Sketch::Sequence(inner) => Action::Sequence(all(draft, inner)),
        Sketch::Parallel(inner, join) => {
            let branches = all(draft, inner);
            let join = match join.checked_rem(branches.len() + 1)? {
                0 => Join::All,
                number => Join::Quorum(u32::try_from(number).unwrap()),
            };
            if branches.is_empty() {
                return None;
            }
            Action::Parallel { branches, join }
        }
    }))
}

proptest! {
    #[test]
    fn what_is_printed_reads_back(graph in any_graph()) {
        let text = graph.to_toml();
        match read(&source(&text)) {
            Ok(back) => prop_assert_eq!(back, graph, "{}", text),
            Err(problems) => prop_assert!(false, "{problems}\n{text}"),
        }
    }
}

#[test]
fn a_file_says_the_same_after_it_was_printed() {
    let graph = read(&source(CHECKOUT)).unwrap();
    let text = graph.to_toml();
    assert_eq!(read(&source(&text)).unwrap(), graph, "{text}");
    // And is as short as a person would write it.
    assert!(
        text.contains("{ call = \"stock\", probability = 0.3, timeout = \"20ms\", retries = 1 }"),
        "{text}"
    );
    assert!(
        text.contains("latency = { p50 = \"1ms\", p90 = \"3ms\", p99 = \"9ms\" }"),
        "{text}"
    );
}
