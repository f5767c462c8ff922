//! What one request is offered, and how many requests are shared out.

mod hash;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::table::{BackendProtocol, Nanos, Pool, Registration, RouteKey, Table, TableSettings};
use hash::hashed;

/// A pool with the endpoints that `describe` gives to ports.
fn pool_of(ports: &[u16], describe: impl Fn(u16, &mut Registration<'static>)) -> Arc<Pool> {
    let table = Table::new(TableSettings::default());
    for port in ports {
        let mut registration = Registration {
            identity: leak(format!("1.1.1.1:{port}")),
            instance_id: leak(format!("instance-{port}")),
            instance_index: leak(port.to_string()),
            app: "app",
            protocol: BackendProtocol::Http1,
            ..Registration::default()
        };
        describe(*port, &mut registration);
        let key = RouteKey::new("a.ex").unwrap();
        table.register_with(&key, &registration, 0);
    }
    table.pools().remove(0)
}

/// Tests are short.
fn leak(text: String) -> &'static str {
    text.leak()
}

fn plain(ports: &[u16]) -> Arc<Pool> {
    pool_of(ports, |_, _| {})
}

fn with_algorithm(ports: &[u16], algorithm: Algorithm, balance: f64) -> Arc<Pool> {
    pool_of(ports, |_, it| {
        it.algorithm = Some(algorithm);
        it.hash_balance = balance;
    })
}

fn choice(
    pool: &Arc<Pool>,
    settings: &SelectionSettings,
    selection_request: SelectionRequest<'_>,
    random: u64,
) -> Choice {
    Choice::new(Arc::clone(pool), settings, &selection_request, random)
}

/// The port of what is offered next; 0: overloaded; -1: none.
fn next(choice: &mut Choice, settings: &SelectionSettings, now: Nanos) -> i32 {
    match choice.next(settings, now) {
        Next::Endpoint(endpoint) => port(&endpoint).into(),
        Next::Overloaded => 0,
        Next::None => -1,
    }
}

fn port(endpoint: &Endpoint) -> u16 {
    endpoint.instance_index.parse().unwrap()
}

/// The first offers to so many requests.
fn first_offers(pool: &Arc<Pool>, settings: &SelectionSettings, requests: u64) -> Vec<i32> {
    let offer = |request: u64| {
        let random = request.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        next(
            &mut choice(pool, settings, SelectionRequest::default(), random),
            settings,
            0,
        )
    };
    (0..requests).map(offer).collect()
}

fn counts(offers: &[i32]) -> BTreeMap<i32, usize> {
    let mut counts = BTreeMap::new();
    for offer in offers {
        *counts.entry(*offer).or_default() += 1;
    }
    counts
}

fn endpoint(pool: &Pool, port: u16) -> Arc<Endpoint> {
    let endpoints = pool.endpoints();
    let found = endpoints.iter().find(|it| self::port(it) == port);
    Arc::clone(found.unwrap())
}

fn load(pool: &Pool, port: u16, requests: u32) {
    (0..requests).for_each(|_| endpoint(pool, port).state.begin());
}

#[test]
fn round_robin_offers_one_after_the_other() {
    let settings = SelectionSettings::default();
    let offers = first_offers(&plain(&[1, 2, 3]), &settings, 9);
    for pair in offers.windows(2) {
        assert_eq!(pair[1], pair[0] % 3 + 1, "{offers:?}");
    }
    // Where it begins differs from pool to pool.
    let begins: BTreeSet<_> = (0..100)
        .map(|_| first_offers(&plain(&[1, 2, 3]), &settings, 1)[0])
        .collect();
    assert_eq!(begins.len(), 3);
}

#[test]
fn a_retry_takes_the_next_one_whatever_other_requests_take() {
    let settings = SelectionSettings::default();
    let pool = plain(&[1, 2, 3, 4]);
    let mut one = choice(&pool, &settings, SelectionRequest::default(), 0);
    let first = next(&mut one, &settings, 0);
    first_offers(&pool, &settings, 5);
    let retries: Vec<_> = (0..3).map(|_| next(&mut one, &settings, 0)).collect();
    let expected: Vec<_> = (0..3).map(|step| (first + step) % 4 + 1).collect();
    assert_eq!(retries, expected);
}

#[test]
fn failed_endpoints_are_left_out_until_all_failed() {
    let settings = SelectionSettings::default();
    let pool = plain(&[1, 2, 3]);
    endpoint(&pool, 2).state.fail_until(10);
    // Its share goes to both others.
    let counts = counts(&first_offers(&pool, &settings, 300));
    assert_eq!(counts, BTreeMap::from([(1, 150), (3, 150)]));
    for port in [1, 3] {
        endpoint(&pool, port).state.fail_until(10);
    }
    assert!(first_offers(&pool, &settings, 1)[0] > 0);
    let failed = pool.endpoints().iter().any(|it| it.state.has_failed(0));
    assert!(!failed, "the marks of all are gone");
    endpoint(&pool, 2).state.fail_until(10);
    let mut late = choice(&pool, &settings, SelectionRequest::default(), 0);
    let offers: BTreeSet<_> = (0..3).map(|_| next(&mut late, &settings, 10)).collect();
    assert_eq!(offers, BTreeSet::from([1, 2, 3]), "marks end");
}

#[test]
fn full_endpoints_are_left_out_and_stay_out() {
    for algorithm in [Algorithm::RoundRobin, Algorithm::LeastConnection] {
        let settings = SelectionSettings {
            algorithm,
            in_flight: 2,
            ..SelectionSettings::default()
        };
        let pool = plain(&[1, 2, 3]);
        load(&pool, 1, 2);
        load(&pool, 2, 1);
        assert_eq!(counts(&first_offers(&pool, &settings, 50)).get(&1), None);
        load(&pool, 2, 1);
        // A failed one with room is better than a full one.
        endpoint(&pool, 3).state.fail_until(10);
        assert_eq!(first_offers(&pool, &settings, 2), [3, 3]);
        assert!(!is_overloaded(&pool, 2));
        load(&pool, 3, 2);
        assert_eq!(first_offers(&pool, &settings, 2), [0, 0]);
        assert!(is_overloaded(&pool, 2) && !is_overloaded(&pool, 3) && !is_overloaded(&pool, 0));
        let one = plain(&[1]);
        load(&one, 1, 2);
        assert_eq!(first_offers(&one, &settings, 1), [0]);
    }
}

#[test]
fn a_pool_without_endpoints_has_none_and_is_not_overloaded() {
    let settings = SelectionSettings::default();
    let table = Table::new(TableSettings::default());
    let registration = Registration {
        identity: "1.1.1.1:1",
        ..Registration::default()
    };
    table.register_with(&RouteKey::new("a.ex").unwrap(), &registration, 0);
    let pool = table.pools().remove(0);
    let mut one = choice(&pool, &settings, SelectionRequest::default(), 0);
    assert!(matches!(one.next(&settings, 0), Next::Endpoint(_)));
    assert!(table.remove(&pool, &pool.endpoints()[0].clone(), 0));
    assert_eq!(next(&mut one, &settings, 0), -1);
    assert!(!is_overloaded(&pool, 1));
}

#[test]
fn least_connection_takes_the_least_and_any_of_equals() {
    let settings = SelectionSettings {
        algorithm: Algorithm::LeastConnection,
        ..SelectionSettings::default()
    };
    let pool = plain(&[1, 2, 3, 4]);
    load(&pool, 2, 1);
    let counts = counts(&first_offers(&pool, &settings, 3000));
    assert_eq!(counts.keys().copied().collect::<Vec<_>>(), [1, 3, 4]);
    assert!(
        counts.values().all(|count| (850..1150).contains(count)),
        "{counts:?}"
    );
    load(&pool, 1, 5);
    load(&pool, 4, 5);
    // The one that just failed has the fewest, and the next best is tried then.
    let mut one = choice(&pool, &settings, SelectionRequest::default(), 7);
    let offers = [(); 3].map(|()| next(&mut one, &settings, 0));
    assert_eq!(offers, [3, 2, 3]);
    // A route may ask for another algorithm than the router's.
    let pool = with_algorithm(&[1, 2], Algorithm::RoundRobin, 0.0);
    load(&pool, 1, 9);
    assert_eq!(self::counts(&first_offers(&pool, &settings, 10))[&1], 5);
}

#[test]
fn the_first_attempt_prefers_the_own_zone() {
    for algorithm in [Algorithm::RoundRobin, Algorithm::LeastConnection] {
        let settings = SelectionSettings {
            algorithm,
            zone: "z1".into(),
            prefer_zone: true,
            ..SelectionSettings::default()
        };
        let zones = |port: u16, it: &mut Registration<'static>| {
            it.zone = if port.is_multiple_of(2) { "z1" } else { "z2" };
        };
        let pool = pool_of(&[1, 2, 3, 4, 5], zones);
        let offers = counts(&first_offers(&pool, &settings, 100));
        assert_eq!(offers.keys().copied().collect::<Vec<_>>(), [2, 4]);
        // Retries go anywhere.
        let second: BTreeSet<_> = (1..200)
            .map(|random| {
                let mut one = choice(&pool, &settings, SelectionRequest::default(), random);
                next(&mut one, &settings, 0);
                next(&mut one, &settings, 0)
            })
            .collect();
        assert!(second.iter().any(|port| port % 2 == 1), "{second:?}");
        let elsewhere = pool_of(&[1, 3], zones);
        let offers = counts(&first_offers(&elsewhere, &settings, 100));
        assert_eq!(offers.len(), 2, "no endpoint is in the own zone");
    }
}

#[test]
fn a_client_that_is_bound_goes_where_it_was() {
    let settings = SelectionSettings {
        in_flight: 1,
        ..SelectionSettings::default()
    };
    let pool = plain(&[1, 2, 3]);
    let bound = |id: &'static str, must| SelectionRequest {
        sticky: Some(Sticky {
            id: id.as_bytes(),
            must,
        }),
        ..SelectionRequest::default()
    };
    let offers = |selection_request| {
        let mut one = choice(&pool, &settings, selection_request, 0);
        [(); 4].map(|()| next(&mut one, &settings, 0))
    };
    // A mark of failure does not unbind.
    endpoint(&pool, 2).state.fail_until(10);
    assert_eq!(offers(bound("instance-2", true)), [2; 4]);
    let wished = offers(bound("instance-2", false));
    assert_eq!(wished[0], 2);
    assert!(!wished[1..].contains(&2), "{wished:?}");
    assert_eq!(offers(bound("gone", true)), [-1; 4]);
    assert!(offers(bound("gone", false)).iter().all(|port| *port > 0));
    load(&pool, 2, 1);
    assert_eq!(offers(bound("instance-2", true)), [-1; 4]);
    assert!(!offers(bound("instance-2", false)).contains(&2));
}

#[test]
fn a_request_for_an_instance_gets_no_other() {
    let settings = SelectionSettings::default();
    let pool = pool_of(&[1, 2, 3, 4], |port, it| {
        it.app = if port < 3 { "one" } else { "two" };
        it.tags = Some(match port {
            1 => &[],
            _ => {
                const {
                    &[(
                        std::borrow::Cow::Borrowed("process_id"),
                        std::borrow::Cow::Borrowed("web"),
                    )]
                }
            }
        });
    });
    let of_app = |app: &'static str, index: &'static str| Instance::App {
        app: app.as_bytes(),
        index: index.as_bytes(),
    };
    let of_process = |process: &'static str, index: Option<&'static str>| Instance::Process {
        process: process.as_bytes(),
        index: index.map(str::as_bytes),
    };
    for (instance, expected) in [
        (of_app("one", "2"), &[2][..]),
        (of_app("one", "3"), &[]),
        (of_app("none", "1"), &[]),
        (of_process("web", Some("3")), &[3]),
        (of_process("web", Some("1")), &[]),
        (of_process("web", None), &[2, 3, 4]),
        (of_process("worker", None), &[]),
    ] {
        assert_eq!(instance.exists_in(&pool), !expected.is_empty());
        let selection_request = SelectionRequest {
            instance: Some(instance),
            ..SelectionRequest::default()
        };
        let mut one = choice(&pool, &settings, selection_request, 0);
        let mut offers: Vec<_> = (0..expected.len().max(1))
            .map(|_| next(&mut one, &settings, 0))
            .collect();
        offers.sort_unstable();
        assert_eq!(offers, if expected.is_empty() { &[-1] } else { expected });
    }
    // A cookie does not lead away from it.
    let selection_request = SelectionRequest {
        instance: Some(of_app("one", "2")),
        sticky: Some(Sticky {
            id: b"instance-3",
            must: false,
        }),
        ..SelectionRequest::default()
    };
    assert_eq!(
        next(
            &mut choice(&pool, &settings, selection_request, 0),
            &settings,
            0
        ),
        2
    );
}

proptest! {
    /// What is offered has room; something is offered whenever one has; and of three
    /// attempts no two in a row are the same while another one has room.
    #[test]
    fn what_has_room_is_offered(
        ports in 1_u16..8,
        states in prop::collection::vec((0_u32..3, any::<bool>()), 8),
        algorithm in prop::sample::select(&[
            Algorithm::RoundRobin,
            Algorithm::LeastConnection,
            Algorithm::Hash,
        ]),
        balance in prop::sample::select(&[0.0, 1.2]),
        value in any::<u64>(),
    ) {
        let settings = SelectionSettings { in_flight: 2, ..SelectionSettings::default() };
        let ports: Vec<_> = (1..=ports).collect();
        let pool = with_algorithm(&ports, algorithm, balance);
        let mut rooms = 0;
        for port in &ports {
            let (in_flight, failed) = states[usize::from(*port)];
            load(&pool, *port, in_flight);
            rooms += usize::from(in_flight < 2);
            if failed {
                endpoint(&pool, *port).state.fail_until(10);
            }
        }
        let bytes = value.to_le_bytes();
        let mut one = choice(&pool, &settings, hashed(&bytes), value);
        let mut before = None;
        for attempt in 0..3 {
            match one.next(&settings, 0) {
                Next::Endpoint(chosen) => {
                    prop_assert!(chosen.state.in_flight() < 2);
                    let usable = ports.iter().filter(|port| {
                        let it = endpoint(&pool, **port);
                        it.state.in_flight() < 2 && !it.state.has_failed(0)
                    });
                    let usable = usable.count();
                    let alone = if algorithm == Algorithm::RoundRobin { usable } else { rooms };
                    if alone > 1 && attempt > 0 {
                        prop_assert_ne!(before, Some(port(&chosen)));
                    }
                    before = Some(port(&chosen));
                }
                Next::Overloaded => prop_assert_eq!(rooms, 0),
                Next::None => prop_assert!(false, "there are endpoints"),
            }
        }
    }
}
