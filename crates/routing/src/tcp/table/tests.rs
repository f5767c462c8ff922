use std::collections::BTreeMap;
use std::net::IpAddr;

use proptest::prelude::*;
use routing_api::model::ModificationTag;

use super::*;

const SECOND: Nanos = 1_000_000_000;

fn all_capabilities() -> Capabilities {
    Capabilities {
        termination: true,
        backend_tls: true,
        own_authority: true,
        client_certificate: true,
    }
}

fn table() -> Table {
    Table::new(all_capabilities(), Duration::from_secs(120))
}

fn mapping(port: u16, backend: u8) -> TcpMapping {
    TcpMapping {
        port,
        backend_ip: format!("10.0.0.{backend}"),
        backend_port: 8080,
        modification_tag: tag("g", 0),
        ..TcpMapping::default()
    }
}

fn tag(guid: &str, index: u32) -> ModificationTag {
    ModificationTag {
        guid: guid.into(),
        index,
    }
}

fn apply(table: &mut Table, change: Change, now: Nanos) -> Effects {
    let mut effects = Effects::default();
    table.apply(change, now, &mut effects);
    effects
}

/// Why the only mapping was skipped.
fn skipped(mapping: TcpMapping, capabilities: Capabilities) -> Option<SkipCause> {
    let mut table = Table::new(capabilities, Duration::from_secs(120));
    let mut effects = apply(&mut table, Change::Upsert(mapping), 0);
    assert_eq!(table.backends(), 1 - effects.skipped.len());
    effects.skipped.pop().map(|skipped| skipped.cause)
}

fn addresses(pool: &Pool) -> Vec<String> {
    let addresses = pool
        .backends()
        .iter()
        .filter_map(|backend| backend.address());
    addresses.map(|address| address.to_string()).collect()
}

#[test]
fn an_upsert_is_seen_and_a_heartbeat_is_not() {
    let mut table = table();
    let mut one = mapping(1024, 1);
    assert_eq!(
        apply(&mut table, Change::Upsert(one.clone()), 0).ports,
        [1024].into()
    );
    one.modification_tag.index = 1;
    let effects = apply(&mut table, Change::Upsert(one.clone()), 90 * SECOND);
    assert!(effects.ports.is_empty() && effects.skipped.is_empty());
    // The heartbeat renewed it.
    let mut effects = Effects::default();
    table.prune(130 * SECOND, &mut effects);
    assert_eq!((effects.pruned, table.backends()), (0, 1));
    table.prune(211 * SECOND, &mut effects);
    assert_eq!((effects.pruned, table.routes()), (1, 0));
    assert_eq!(effects.ports, [1024].into());
    assert!(table.port(1024).is_none());
}

#[test]
fn older_news_change_nothing() {
    let mut table = table();
    let mut one = mapping(1024, 1);
    one.modification_tag = tag("g", 5);
    apply(&mut table, Change::Upsert(one.clone()), 0);
    one.modification_tag = tag("g", 4);
    apply(&mut table, Change::Upsert(one.clone()), 100 * SECOND);
    assert!(
        apply(&mut table, Change::Delete(one.clone()), 0)
            .ports
            .is_empty()
    );
    let mut effects = Effects::default();
    table.prune(121 * SECOND, &mut effects);
    assert_eq!(effects.pruned, 1, "an old upsert renewed it");
    one.modification_tag = tag("g", 5);
    apply(&mut table, Change::Upsert(one.clone()), 0);
    assert_eq!(
        apply(&mut table, Change::Delete(one), 0).ports,
        [1024].into()
    );
}

#[test]
fn a_list_replaces_everything_and_renews_what_it_names() {
    let mut table = table();
    apply(&mut table, Change::Upsert(mapping(1024, 1)), 0);
    apply(&mut table, Change::Upsert(mapping(1024, 2)), 0);
    apply(&mut table, Change::Upsert(mapping(1025, 1)), 0);
    let list = vec![mapping(1024, 2), mapping(1026, 1)];
    let effects = apply(&mut table, Change::Full(list), 100 * SECOND);
    assert_eq!(effects.ports, [1024, 1025, 1026].into());
    assert_eq!(table.ports(), [1024, 1026]);
    let mut effects = Effects::default();
    table.prune(150 * SECOND, &mut effects);
    assert_eq!((effects.pruned, table.backends()), (0, 2));
}

#[test]
fn names_choose_the_pool() {
    let mut table = table();
    let mut named = mapping(1024, 2);
    named.backend_sni_hostname = Some("Db.Example.com".into());
    apply(&mut table, Change::Upsert(mapping(1024, 1)), 0);
    apply(&mut table, Change::Upsert(named.clone()), 0);
    let routes = table.port(1024).unwrap();
    assert!(routes.depend_on_name());
    let find = |name| addresses(routes.find(name).unwrap());
    assert_eq!(find(Some("db.EXAMPLE.com")), ["10.0.0.2:8080"]);
    assert_eq!(find(Some("other.example.com")), ["10.0.0.1:8080"]);
    assert_eq!(find(None), ["10.0.0.1:8080"]);
    apply(&mut table, Change::Delete(mapping(1024, 1)), 0);
    assert!(table.port(1024).unwrap().find(None).is_none());
    assert_eq!(table.routes(), 1);
}

#[test]
fn round_robin_goes_on_when_backends_change() {
    let mut table = table();
    for backend in 1..=3 {
        apply(&mut table, Change::Upsert(mapping(1024, backend)), 0);
    }
    let first = |table: &Table, now| {
        let routes = table.port(1024).unwrap();
        let pool = routes.find(None).unwrap();
        let backend = pool.next(&mut pool.turn(), now).unwrap();
        backend.address().unwrap().to_string()
    };
    assert_eq!(first(&table, 0), "10.0.0.1:8080");
    assert_eq!(first(&table, 0), "10.0.0.2:8080");
    apply(&mut table, Change::Upsert(mapping(1024, 4)), 0);
    assert_eq!(first(&table, 0), "10.0.0.3:8080");
    // One that failed is passed over, even when the pool is built anew, and then tried again.
    let routes = table.port(1024).unwrap();
    routes.find(None).unwrap().backends()[3].fail_until(10);
    apply(&mut table, Change::Delete(mapping(1024, 2)), 0);
    assert_eq!(first(&table, 9), "10.0.0.1:8080");
    assert_eq!(first(&table, 9), "10.0.0.3:8080");
    assert_eq!(first(&table, 9), "10.0.0.1:8080");
    assert_eq!(first(&table, 10), "10.0.0.1:8080");
    assert_eq!(first(&table, 10), "10.0.0.3:8080");
    assert_eq!(first(&table, 10), "10.0.0.4:8080");
}

#[test]
fn a_turn_tries_each_backend_once() {
    let mut table = table();
    for backend in 1..=3 {
        apply(&mut table, Change::Upsert(mapping(1024, backend)), 0);
    }
    let routes = table.port(1024).unwrap();
    let pool = routes.find(None).unwrap();
    let mut turn = pool.turn();
    let mut seen = Vec::new();
    while let Some(backend) = pool.next(&mut turn, 0) {
        backend.fail_until(5);
        seen.push(backend.address().unwrap().to_string());
    }
    assert_eq!(seen, ["10.0.0.1:8080", "10.0.0.2:8080", "10.0.0.3:8080"]);
    // All failed: the next in turn is tried nevertheless.
    assert!(pool.next(&mut pool.turn(), 1).is_some());
}

#[test]
fn each_address_of_a_name_is_tried_in_turn() {
    let mut table = table();
    let mut named = mapping(1024, 1);
    named.backend_ip = "db.example".into();
    apply(&mut table, Change::Upsert(named), 0);
    let routes = table.port(1024).unwrap();
    let pool = routes.find(None).unwrap();
    let backend = &pool.backends()[0];
    let list = |last: &[u8]| {
        let addresses = last.iter().map(|last| IpAddr::from([10, 0, 1, *last]));
        let addresses: Arc<[IpAddr]> = addresses.collect();
        backend.found_at(&addresses);
    };
    let used = || backend.address().unwrap().to_string();
    // The addresses of one connection's attempts, all of which fail.
    let attempts = || {
        let (mut turn, mut seen) = (pool.turn(), Vec::new());
        while let Some(backend) = pool.next(&mut turn, 0) {
            seen.push(used());
            backend.failed_at(backend.address().unwrap());
        }
        seen
    };
    assert!(pool.next(&mut pool.turn(), 0).unwrap().address().is_none());
    list(&[1, 2, 3]);
    let all = ["10.0.1.1:8080", "10.0.1.2:8080", "10.0.1.3:8080"];
    assert_eq!(attempts(), all);
    assert_eq!(used(), all[0]);
    // While nothing fails, the first of each answer is the one to connect to.
    list(&[2, 1, 3]);
    assert_eq!(used(), all[1]);
    // Of connections that fail at once only one goes on, and later answers change nothing.
    for _ in 0..2 {
        backend.failed_at("10.0.1.2:8080".parse().unwrap());
    }
    list(&[2, 3, 1]);
    assert_eq!(used(), all[0]);
    list(&[3, 2]);
    assert_eq!(used(), all[2]);
    // A backend without a name has one attempt, and the one with two addresses another.
    apply(&mut table, Change::Upsert(mapping(1024, 2)), 0);
    let routes = table.port(1024).unwrap();
    let pool = routes.find(None).unwrap();
    let mut turn = pool.turn();
    let attempts = std::iter::from_fn(|| pool.next(&mut turn, 0));
    assert_eq!(attempts.count(), 3);
}

#[test]
fn what_cannot_be_used_is_skipped_with_its_cause() {
    let with = |change: fn(&mut TcpMapping)| {
        let mut one = mapping(1024, 1);
        change(&mut one);
        skipped(one, all_capabilities())
    };
    assert_eq!(with(|_| {}), None);
    assert_eq!(with(|one| one.port = 0), Some(SkipCause::Port));
    assert_eq!(
        with(|one| one.backend_port = 0),
        Some(SkipCause::BackendPort)
    );
    let mut one = mapping(1024, 1);
    (one.backend_port, one.backend_tls_port, one.instance_id) = (0, 443, "i".into());
    assert_eq!(skipped(one, all_capabilities()), None);
    assert_eq!(with(|one| one.backend_ip = "db.internal.".into()), None);
    assert_eq!(with(|one| one.backend_ip = "::1".into()), None);
    let bad = Some(SkipCause::Address("a b".into()));
    assert_eq!(with(|one| one.backend_ip = "a b".into()), bad);
    let bad = Some(SkipCause::Name("-a".into()));
    assert_eq!(
        with(|one| one.backend_sni_hostname = Some("-a".into())),
        bad
    );
    let tls = |one: &mut TcpMapping| {
        one.backend_tls_port = 61001;
        one.instance_id = "0a1b-2c".into();
        one.enable_backend_mtls = true;
        one.sni_rewrite_hostname = Some("in.side".into());
    };
    assert_eq!(with(|one| one.backend_tls_port = -1), None);
    let bad = Some(SkipCause::BackendTlsPort(65536));
    assert_eq!(with(|one| one.backend_tls_port = 65536), bad);
    assert_eq!(with(|one| one.backend_tls_port = 61001), None);
    let mut one = mapping(1024, 1);
    tls(&mut one);
    assert_eq!(skipped(one.clone(), all_capabilities()), None);
    let without = |change: fn(&mut Capabilities)| {
        let mut capabilities = all_capabilities();
        change(&mut capabilities);
        skipped(one.clone(), capabilities)
    };
    assert_eq!(
        without(|it| it.backend_tls = false),
        Some(SkipCause::BackendTlsOff)
    );
    let cause = Some(SkipCause::NoClientCertificate);
    assert_eq!(without(|it| it.client_certificate = false), cause);
    assert_eq!(without(|it| it.own_authority = false), None);
    // Of the web's authorities anybody has a certificate.
    let nameless = TcpMapping {
        instance_id: String::new(),
        ..one.clone()
    };
    let mut capabilities = all_capabilities();
    capabilities.own_authority = false;
    let cause = Some(SkipCause::InstanceId(String::new()));
    assert_eq!(skipped(nameless, capabilities), cause);
    one.terminate_frontend_tls = true;
    let mut capabilities = all_capabilities();
    capabilities.termination = false;
    assert_eq!(skipped(one, capabilities), Some(SkipCause::NoTermination));
}

#[test]
fn the_own_certificate_is_shown_unless_the_clients_tls_ends_here() {
    for (ends, asked, has_one, shown) in [
        (false, false, true, true),
        (false, true, true, true),
        (true, false, true, false),
        (true, true, true, true),
        (false, false, false, false),
    ] {
        let mut capabilities = all_capabilities();
        capabilities.client_certificate = has_one;
        let mut table = Table::new(capabilities, Duration::from_secs(120));
        let tls = TcpMapping {
            backend_tls_port: 61001,
            instance_id: "i".into(),
            terminate_frontend_tls: ends,
            enable_backend_mtls: asked,
            ..mapping(1024, 1)
        };
        let effects = apply(&mut table, Change::Upsert(tls), 0);
        assert!(effects.skipped.is_empty(), "{:?}", effects.skipped);
        let routes = table.port(1024).unwrap();
        let backend = &routes.find(None).unwrap().backends()[0];
        let certificate = backend.tls().unwrap().certificate;
        assert_eq!(certificate, shown, "{ends} {asked} {has_one}");
    }
}

#[test]
fn the_backends_of_a_route_agree_on_tls_with_clients() {
    let mut table = table();
    let ends = |backend, alpns: &str| TcpMapping {
        terminate_frontend_tls: true,
        alpns: alpns.into(),
        ..mapping(1024, backend)
    };
    apply(&mut table, Change::Upsert(ends(1, "h2, http/1.1")), 0);
    let effects = apply(&mut table, Change::Upsert(mapping(1024, 2)), 0);
    assert_eq!(effects.skipped[0].cause, SkipCause::Disagrees(false));
    let text = effects.skipped[0].cause.to_string();
    assert!(
        text.starts_with("terminate_frontend_tls is false, but the other"),
        "{text}"
    );
    assert!(text.contains("have true"), "{text}");
    apply(&mut table, Change::Upsert(ends(3, "http/1.1")), 0);
    let routes = table.port(1024).unwrap();
    let termination = routes.find(None).unwrap().termination().unwrap();
    assert_eq!(termination.protocols, ["http/1.1".into()].into());
    // The only backend may change its mind.
    apply(&mut table, Change::Delete(ends(3, "")), 0);
    let mut plain = mapping(1024, 1);
    plain.modification_tag.index = 1;
    let effects = apply(&mut table, Change::Upsert(plain), 0);
    assert!(effects.skipped.is_empty() && effects.ports == [1024].into());
    let routes = table.port(1024).unwrap();
    assert!(routes.find(None).unwrap().termination().is_none());
}

#[test]
fn names_of_dns_are_told_from_others() {
    let long = "a".repeat(63);
    let valid = [
        "a",
        "a.b",
        "_x.y-z",
        "0",
        "a.",
        "a_",
        "a._.",
        "A-",
        &long,
        &format!("{long}_"),
    ];
    for name in valid {
        assert!(backend::is_dns_name(name), "{name}");
    }
    let longer = "a".repeat(65);
    let total = vec!["a".repeat(63); 5].join(".");
    let invalid = [
        "", ".", "-a", "a..b", "a b", "a/b", "é", "a..", &longer, &total, "*.a",
    ];
    for name in invalid {
        assert!(!backend::is_dns_name(name), "{name}");
    }
}

/// The table as a list that is searched from end to end.
#[derive(Default)]
struct Naive(BTreeMap<(u16, String, u8), (u32, Nanos, Nanos)>);

#[derive(Debug, Clone)]
enum Step {
    Upsert {
        port: u16,
        name: u8,
        backend: u8,
        index: u32,
        ttl: u32,
    },
    Delete {
        port: u16,
        name: u8,
        backend: u8,
        index: u32,
    },
    Full(Vec<(u16, u8, u8, u32)>),
    Wait(u64),
    Prune,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let place = || (1..4_u16, 0..3_u8, 1..4_u8, 0..6_u32);
    let step = prop_oneof![
        4 => (place(), 0..200_u32).prop_map(|((port, name, backend, index), ttl)| {
            Step::Upsert { port, name, backend, index, ttl }
        }),
        2 => place().prop_map(|(port, name, backend, index)| {
            Step::Delete { port, name, backend, index }
        }),
        1 => proptest::collection::vec(place(), 0..6).prop_map(Step::Full),
        1 => (0..100_u64).prop_map(Step::Wait),
        1 => Just(Step::Prune),
    ];
    proptest::collection::vec(step, 0..60)
}

fn described(port: u16, name: u8, backend: u8, index: u32) -> TcpMapping {
    TcpMapping {
        backend_sni_hostname: (name > 0).then(|| format!("N{name}.example")),
        modification_tag: tag("g", index),
        ..mapping(port, backend)
    }
}

impl Naive {
    fn step(&mut self, step: &Step, now: Nanos) {
        let key = |port: u16, name: u8, backend: u8| {
            let name = if name > 0 {
                format!("n{name}.example")
            } else {
                String::new()
            };
            (port, name, backend)
        };
        match step {
            Step::Upsert {
                port,
                name,
                backend,
                index,
                ttl,
            } => {
                let ttl = if *ttl == 0 { 120 } else { u64::from(*ttl) } * SECOND;
                let known = self.0.get(&key(*port, *name, *backend));
                if known.is_none_or(|(known, ..)| known < index) {
                    self.0
                        .insert(key(*port, *name, *backend), (*index, now, ttl));
                }
            }
            Step::Delete {
                port,
                name,
                backend,
                index,
            } => {
                let key = key(*port, *name, *backend);
                if self.0.get(&key).is_some_and(|(known, ..)| known <= index) {
                    self.0.remove(&key);
                }
            }
            Step::Full(list) => {
                let listed = |(port, name, backend): &(u16, String, u8)| {
                    list.iter()
                        .any(|it| key(it.0, it.1, it.2) == (*port, name.clone(), *backend))
                };
                self.0.retain(|key, _| listed(key));
                for (port, name, backend, index) in list {
                    let entry = self.0.entry(key(*port, *name, *backend));
                    let known = entry.or_insert((*index, now, 120 * SECOND));
                    known.1 = now;
                    if known.0 < *index {
                        *known = (*index, now, 120 * SECOND);
                    }
                }
            }
            Step::Wait(_) => {}
            Step::Prune => self.0.retain(|_, (_, updated, ttl)| now - *updated <= *ttl),
        }
    }

    fn pools(&self) -> BTreeMap<(u16, String), Vec<String>> {
        let mut pools: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (port, name, backend) in self.0.keys() {
            let pool = pools.entry((*port, name.clone())).or_default();
            pool.push(format!("10.0.0.{backend}:8080"));
        }
        pools
    }
}

proptest! {
    #[test]
    fn the_table_is_a_faster_naive_one(steps in steps()) {
        let (mut table, mut naive, mut now) = (table(), Naive::default(), 1000 * SECOND);
        // What threads would see: only ports that the effects name are looked at again.
        let mut seen: BTreeMap<u16, PortRoutes> = BTreeMap::new();
        for step in &steps {
            let mut effects = Effects::default();
            match step {
                Step::Upsert { port, name, backend, index, ttl } => {
                    let mapping = TcpMapping {
                        ttl: Some(i64::from(*ttl)),
                        ..described(*port, *name, *backend, *index)
                    };
                    table.apply(Change::Upsert(mapping), now, &mut effects);
                }
                Step::Delete { port, name, backend, index } => {
                    let mapping = described(*port, *name, *backend, *index);
                    table.apply(Change::Delete(mapping), now, &mut effects);
                }
                Step::Full(list) => {
                    let list = list.iter().map(|it| described(it.0, it.1, it.2, it.3));
                    table.apply(Change::Full(list.collect()), now, &mut effects);
                }
                Step::Wait(seconds) => now += seconds * SECOND,
                Step::Prune => table.prune(now, &mut effects),
            }
            naive.step(step, now);
            prop_assert!(effects.skipped.is_empty());
            for port in effects.ports {
                match table.port(port) {
                    Some(routes) => seen.insert(port, routes),
                    None => seen.remove(&port),
                };
            }
            let pools = naive.pools();
            prop_assert_eq!(table.routes(), pools.len());
            prop_assert_eq!(table.backends(), naive.0.len());
            let ports: Vec<u16> = seen.keys().copied().collect();
            prop_assert_eq!(table.ports(), ports);
            for port in 1..4 {
                for name in 0..3_u8 {
                    let text = if name > 0 { format!("n{name}.example") } else { String::new() };
                    let asked = (name > 0).then_some(text.as_str());
                    let found = seen.get(&port).and_then(|routes| routes.find(asked));
                    let own = pools.get(&(port, text.clone()));
                    let expected = own.or(pools.get(&(port, String::new())));
                    let found = found.map(|pool| addresses(pool));
                    prop_assert_eq!(found.as_ref(), expected);
                }
            }
        }
    }
}

/// The backends of a route that were made anew while nobody listened, all of them with TLS.
#[test]
fn backends_may_change_how_they_handle_tls_all_at_once() {
    let mut table = Table::new(all_capabilities(), Duration::from_secs(120));
    let both = |guid: &str, terminates| {
        [1, 2].map(|backend| TcpMapping {
            modification_tag: tag(guid, 0),
            terminate_frontend_tls: terminates,
            ..mapping(1024, backend)
        })
    };
    apply(&mut table, Change::Full(both("g", false).to_vec()), SECOND);
    let effects = apply(
        &mut table,
        Change::Full(both("h", true).to_vec()),
        2 * SECOND,
    );
    assert!(effects.skipped.is_empty(), "{:?}", effects.skipped);
    // And what is not newer stays as it is.
    let effects = apply(
        &mut table,
        Change::Full(both("h", false).to_vec()),
        3 * SECOND,
    );
    assert_eq!(effects.skipped.len(), 2);
}
