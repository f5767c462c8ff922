//! Examples; histories against a slow model; readers beside a writer.

mod concurrent;
mod histories;
mod lookups;
mod model;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use super::*;

const SECOND: Nanos = 1_000_000_000;

fn table() -> Table {
    Table::new(TableSettings::default())
}

fn key(uri: &str) -> RouteKey<'_> {
    RouteKey::new(uri).unwrap()
}

fn at(identity: &str) -> Registration<'_> {
    Registration {
        identity,
        ..Registration::default()
    }
}

fn add(table: &Table, uri: &str, identity: &str) -> Registered {
    table.register_with(&key(uri), &at(identity), 0)
}

/// The key that a lookup found; the key of an empty pool in brackets; or a dash.
fn found(table: &Table, host: &str, path: &str) -> String {
    match table.lookup(host.as_bytes(), path.as_bytes()) {
        Lookup::Found(pool) => pool.key().to_owned(),
        Lookup::Empty(pool) => format!("({})", pool.key()),
        Lookup::Nothing => "-".to_owned(),
    }
}

fn addresses(table: &Table, uri: &str) -> Vec<String> {
    let pools = table.pools();
    let pool = pools.iter().find(|pool| pool.key() == uri).unwrap();
    let endpoints = pool.endpoints();
    endpoints.iter().map(|it| it.identity.to_string()).collect()
}

#[test]
fn endpoints_stay_in_the_order_in_which_they_came() {
    let table = table();
    for port in 1..5 {
        add(&table, "a.ex", &format!("1.1.1.1:{port}"));
    }
    let gone = Modification::default();
    table.unregister(&key("a.ex"), "1.1.1.1:1", &gone, 0);
    let rest = ["1.1.1.1:2", "1.1.1.1:3", "1.1.1.1:4"];
    assert_eq!(addresses(&table, "a.ex"), rest);
}

#[test]
fn the_last_endpoint_takes_its_route_along() {
    let table = table();
    add(&table, "a.ex", "1.1.1.1:1");
    add(&table, "a.ex", "1.1.1.1:2");
    let leave = |identity| table.unregister(&key("a.ex"), identity, &Modification::default(), 0);
    assert_eq!(leave("1.1.1.1:3"), Unregistered::Ignored);
    assert_eq!(leave("1.1.1.1:1"), Unregistered::Removed { route: false });
    assert_eq!(leave("1.1.1.1:1"), Unregistered::Ignored);
    assert_eq!(leave("1.1.1.1:2"), Unregistered::Removed { route: true });
    assert_eq!(leave("1.1.1.1:2"), Unregistered::Ignored);
    assert!(table.is_empty() && table.pools().is_empty());
    assert_eq!(found(&table, "a.ex", "/"), "-");
}

#[test]
fn registrations_add_refresh_and_update() {
    let table = table();
    let tags = |value: &'static str| [(Cow::from("component"), Cow::from(value))];
    let (one, two) = (tags("one"), tags("two"));
    let first = Registration {
        app: "app",
        tags: Some(&one),
        ..at("1.1.1.1:1")
    };
    let register = |it: &Registration<'_>, now| table.register_with(&key("a.ex"), it, now);
    assert_eq!(register(&first, 1), Registered::Added { route: true });
    assert_eq!(
        register(&at("1.1.1.1:2"), 2),
        Registered::Added { route: false }
    );
    assert_eq!(register(&first, 3), Registered::Refreshed);
    let pool = table.pools().remove(0);
    let before = Arc::clone(&pool.endpoints()[0]);
    assert_eq!(before.state.refreshed_at(), 3);
    assert_eq!(before.tags.as_deref().unwrap()[0].1, "one");

    let changes = [
        Registration {
            tags: Some(&two),
            ..first.clone()
        },
        Registration {
            tags: None,
            ..first.clone()
        },
        Registration {
            tags: Some(&[]),
            ..first.clone()
        },
        Registration {
            app: "other",
            ..first.clone()
        },
        Registration {
            instance_id: "other",
            ..first.clone()
        },
        Registration {
            instance_index: "other",
            ..first.clone()
        },
        Registration {
            zone: "other",
            ..first.clone()
        },
        Registration {
            isolation_segment: "other",
            ..first.clone()
        },
        Registration {
            tls: true,
            ..first.clone()
        },
        Registration {
            protocol: BackendProtocol::Http2,
            ..first.clone()
        },
        Registration {
            stale_after: Duration::from_secs(1),
            ..first.clone()
        },
        Registration {
            modification_guid: "other",
            ..first.clone()
        },
    ];
    for change in changes {
        assert_eq!(register(&change, 4), Registered::Updated, "{change:?}");
        assert_eq!(register(&change, 4), Registered::Refreshed, "{change:?}");
        // The same address: what was counted and marked goes on, at the same place.
        assert!(Arc::ptr_eq(&pool.endpoints()[0].state, &before.state));
        assert_eq!(register(&first, 5), Registered::Updated);
    }
    let renamed = Registration {
        server_name: "other",
        ..first.clone()
    };
    assert_eq!(register(&renamed, 6), Registered::Updated);
    assert!(!Arc::ptr_eq(&pool.endpoints()[0].state, &before.state));
    assert_eq!((table.len(), table.updated_at()), (1, 6));
}

#[test]
fn what_the_latest_endpoint_says_about_its_route_counts() {
    let table = table();
    add(&table, "a.ex", "1.1.1.1:1");
    add(&table, "a.ex", "1.1.1.1:2");
    let held = table.pools().remove(0);
    let special = Registration {
        route_service_url: "https://rs.ex",
        algorithm: Some(Algorithm::Hash),
        hash_header: "X-User",
        hash_balance: 1.5,
        ..at("1.1.1.1:2")
    };
    let register = |it: &Registration<'_>| table.register_with(&key("a.ex"), it, 0);
    assert_eq!(register(&special), Registered::Updated);
    assert_eq!(register(&special), Registered::Refreshed);
    let pool = table.pools().remove(0);
    assert_eq!(&*pool.settings().route_service_url, "https://rs.ex");
    assert_eq!(&*pool.settings().hash_header, "X-User");
    assert!(pool.endpoints().members().maglev().is_some());
    assert_eq!(addresses(&table, "a.ex"), ["1.1.1.1:1", "1.1.1.1:2"]);
    // Who holds the pool of before goes on with it.
    assert_eq!(held.settings(), &PoolSettings::default());
    assert_eq!(held.endpoints().len(), 2);
    assert_eq!(register(&at("1.1.1.1:1")), Registered::Updated);
    let pool = table.pools().remove(0);
    assert_eq!(pool.settings(), &PoolSettings::default());
    assert!(pool.endpoints().members().maglev().is_none());
    assert_eq!(table.len(), 1);
}

#[test]
fn an_older_modification_changes_nothing() {
    let table = table();
    let tagged = |guid: &'static str, index, app: &'static str| Registration {
        modification_guid: guid,
        modification_index: index,
        app,
        ..at("1.1.1.1:1")
    };
    let register = |it: Registration<'_>| table.register_with(&key("a.ex"), &it, 0);
    let modification = |guid: &str, index| Modification {
        guid: guid.into(),
        index,
    };
    let leave = |it: Modification| table.unregister(&key("a.ex"), "1.1.1.1:1", &it, 0);
    assert_eq!(
        register(tagged("g", 5, "a")),
        Registered::Added { route: true }
    );
    assert_eq!(register(tagged("g", 4, "b")), Registered::Ignored);
    assert_eq!(register(tagged("g", 5, "b")), Registered::Ignored);
    assert_eq!(register(tagged("g", 5, "a")), Registered::Refreshed);
    assert_eq!(register(tagged("g", 6, "b")), Registered::Updated);
    assert_eq!(register(tagged("h", 1, "b")), Registered::Updated);
    assert_eq!(leave(modification("h", 0)), Unregistered::Ignored);
    assert_eq!(
        leave(modification("h", 1)),
        Unregistered::Removed { route: true }
    );
    register(tagged("g", 5, "a"));
    assert_eq!(
        leave(modification("", 0)),
        Unregistered::Removed { route: true }
    );
}

#[test]
fn stale_endpoints_are_pruned_unless_they_speak_tls() {
    let table = table();
    let stale_after = |seconds| Duration::from_secs(seconds);
    for (identity, tls, seconds) in [
        ("1.1.1.1:1", false, 10),
        ("1.1.1.1:2", false, 0),
        ("1.1.1.1:3", false, 9999),
        ("1.1.1.1:4", true, 10),
    ] {
        let registration = Registration {
            tls,
            stale_after: stale_after(seconds),
            ..at(identity)
        };
        table.register_with(&key("a.ex"), &registration, 0);
        table.register_with(&key(&format!("{}.ex", &identity[8..])), &registration, 0);
    }
    assert_eq!(table.prune(10 * SECOND), Pruned::default());
    assert_eq!(
        table.prune(10 * SECOND + 1),
        Pruned {
            routes: 1,
            endpoints: 2
        }
    );
    assert_eq!(
        addresses(&table, "a.ex"),
        ["1.1.1.1:2", "1.1.1.1:3", "1.1.1.1:4"]
    );
    assert_eq!(table.prune(120 * SECOND), Pruned::default());
    table.refresh_all(100 * SECOND);
    assert_eq!(table.prune(220 * SECOND), Pruned::default());
    assert_eq!(
        table.prune(220 * SECOND + 1),
        Pruned {
            routes: 2,
            endpoints: 4
        }
    );
    assert_eq!(addresses(&table, "a.ex"), ["1.1.1.1:4"]);
    assert_eq!(table.len(), 2);
}

#[test]
fn only_segments_that_are_served_are_taken() {
    let of = |segments: Segments| {
        let table = Table::new(TableSettings {
            segments,
            ..TableSettings::default()
        });
        ["", "one", "two"].map(|isolation_segment| {
            let registration = Registration {
                isolation_segment,
                ..at("1.1.1.1:1")
            };
            let registered = table.register_with(&key("a.ex"), &registration, 0);
            registered != Registered::Ignored
        })
    };
    assert_eq!(of(Segments::All), [true, true, true]);
    assert_eq!(
        of(Segments::Only(vec!["one".to_owned()])),
        [false, true, false]
    );
    assert_eq!(
        of(Segments::SharedAnd(vec!["two".to_owned()])),
        [true, false, true]
    );
}

#[test]
fn an_endpoint_that_is_not_what_its_route_says_is_removed_until_it_registers_again() {
    let table = table();
    let registration = Registration {
        tls: true,
        server_name: "one",
        ..at("1.1.1.1:1")
    };
    table.register_with(&key("a.ex/p"), &registration, 0);
    let pool = table.pools().remove(0);
    let endpoint = Arc::clone(&pool.endpoints()[0]);
    assert!(table.remove(&pool, &endpoint, SECOND));
    assert!(!table.remove(&pool, &endpoint, SECOND));
    // 503 while the pool is there, 404 after the walk.
    assert_eq!(found(&table, "a.ex", "/p"), "(a.ex/p)");
    assert_eq!(
        table.prune(SECOND),
        Pruned {
            routes: 1,
            endpoints: 0
        }
    );
    assert_eq!(found(&table, "a.ex", "/p"), "-");

    table.register_with(&key("a.ex/p"), &registration, 0);
    assert!(
        !table.remove(&pool, &endpoint, SECOND),
        "a new one at the same address"
    );
    assert_eq!(found(&table, "a.ex", "/p"), "a.ex/p");
}

#[test]
fn an_endpoint_can_be_given_as_a_whole() {
    let table = table();
    let tags = [("b", "2"), ("a", "1")].map(|(name, value)| (name.into(), value.into()));
    let endpoint = Endpoint {
        identity: "1.1.1.1:1".into(),
        app: "app".into(),
        tags: Some(tags.into_iter().collect()),
        ..Endpoint::default()
    };
    let register = || {
        let pool = PoolSettings::default();
        table.register(&key("a.ex/Ctx"), endpoint.clone(), &pool, 7)
    };
    assert_eq!(register(), Registered::Added { route: true });
    assert_eq!(register(), Registered::Refreshed);
    let Lookup::Found(pool) = table.lookup(b"a.ex", b"/ctx") else {
        panic!("the route is not there");
    };
    let stored = &pool.endpoints()[0];
    // Browsers compare a cookie's path with case.
    assert_eq!((pool.context_path(), stored.app.as_str()), ("/Ctx", "app"));
    assert_eq!(stored.stale_after, Duration::from_secs(120));
    assert_eq!(stored.tags.as_deref().unwrap()[0].0, "a");
}

#[test]
fn instances_are_found_by_their_id_and_address() {
    let table = table();
    for port in 1..=20 {
        let (identity, instance_id) = (format!("1.1.1.1:{port}"), format!("instance-{port}"));
        let registration = Registration {
            instance_id: &instance_id,
            ..at(&identity)
        };
        table.register_with(&key("a.ex"), &registration, 0);
        let pool = table.pools().remove(0);
        let endpoints = pool.endpoints();
        for known in 1..=port {
            for id in [format!("1.1.1.1:{known}"), format!("instance-{known}")] {
                let found = endpoints.members().instance(id.as_bytes()).unwrap();
                assert_eq!(found.instance_id, format!("instance-{known}"));
            }
        }
        assert!(endpoints.members().instance(b"").is_none());
        assert!(endpoints.members().instance(b"\xff").is_none());
        assert!(endpoints.members().instance(b"instance-21").is_none());
    }
}

#[test]
fn texts_that_come_again_are_stored_once() {
    let table = table();
    for (uri, zone) in [("a.ex", "z1"), ("b.ex", "z2"), ("c.ex", "z1")] {
        let registration = Registration {
            zone,
            app: "app",
            ..at("1.1.1.1:1")
        };
        table.register_with(&key(uri), &registration, 0);
    }
    let mut pools = table.pools();
    pools.sort_by(|one, other| one.key().cmp(other.key()));
    let endpoint = |at: usize| Arc::clone(&pools[at].endpoints()[0]);
    assert!(Text::ptr_eq(&endpoint(0).zone, &endpoint(2).zone));
    assert!(Text::ptr_eq(&endpoint(0).app, &endpoint(1).app));
    assert!(!Text::ptr_eq(&endpoint(0).zone, &endpoint(1).zone));
    assert_eq!(pools[0].settings(), &PoolSettings::default());
}

#[test]
fn routes_that_come_and_go_leave_nothing_behind() {
    let table = table();
    let (host, _) = table.hasher.ends("one.host");
    for route in 0..10_000_u32 {
        let uri = format!("one.host/{route}");
        add(&table, &uri, "1.1.1.1:1");
        if let Some(before) = route.checked_sub(10) {
            let uri = format!("one.host/{before}");
            table.unregister(&key(&uri), "1.1.1.1:1", &Modification::default(), 0);
        }
        assert!(table.shard(host).room() <= 32);
    }
    assert_eq!(table.len(), 10);
}

#[test]
fn a_route_whose_settings_change_again_and_again_is_there_once() {
    let table = table();
    let (host, _) = table.hasher.ends("one.host");
    for round in 0..100 {
        let url = format!("https://rs-{round}.ex");
        let registration = Registration {
            route_service_url: &url,
            ..at("1.1.1.1:1")
        };
        table.register_with(&key("one.host"), &registration, 0);
        let Lookup::Found(pool) = table.lookup(b"one.host", b"/") else {
            panic!("the route is gone in round {round}");
        };
        assert_eq!(*pool.settings().route_service_url, *url);
        assert_eq!((table.len(), table.pools().len()), (1, 1));
        assert_eq!(table.shard(host).room(), 4);
    }
}

#[test]
fn long_lists_of_a_route_whose_settings_change_do_not_pile_up() {
    let table = table();
    // So many that there are unused slots for every round.
    for route in 0..200 {
        add(&table, &format!("one.host/{route}"), "1.1.1.1:1");
    }
    let identities: Vec<String> = (0..50).map(|port| format!("1.1.1.2:{port}")).collect();
    let mut pools = Vec::new();
    for round in 0..100 {
        let url = format!("https://rs-{round}.ex");
        for identity in &identities {
            let registration = Registration {
                route_service_url: &url,
                ..at(identity)
            };
            table.register_with(&key("one.host"), &registration, 0);
        }
        let Lookup::Found(pool) = table.lookup(b"one.host", b"/") else {
            panic!("the route is gone in round {round}");
        };
        pools.push(Arc::downgrade(&pool));
    }
    let kept = pools.iter().filter(|pool| pool.strong_count() > 0).count();
    assert!((1..10).contains(&kept), "{kept}");
    assert_eq!((table.len(), table.endpoints()), (201, 250));
}

#[test]
fn a_host_whose_routes_are_gone_gives_its_room_back() {
    let table = table();
    let (host, _) = table.hasher.ends("one.host");
    let uri = |route: u32| format!("one.host/{route}/deep");
    for route in 0..10_000 {
        add(&table, &uri(route), "1.1.1.1:1");
    }
    assert!(table.shard(host).room() >= 10_000);
    for route in 0..10_000_u32 {
        let gone = Modification::default();
        table.unregister(&key(&uri(route)), "1.1.1.1:1", &gone, 0);
        let left = 9_999 - route as usize;
        assert!(table.shard(host).room() <= (8 * left).max(8), "{left}");
        // What is left is still found.
        if route % 1000 == 0 && left > 0 {
            let last = format!("/{}/deep", 9_999);
            let found = table.lookup(b"one.host", last.as_bytes());
            assert!(matches!(found, Lookup::Found(_)), "{left}: {found:?}");
        }
    }
    assert_eq!(table.len(), 0);
    add(&table, &uri(1), "1.1.1.1:1");
    assert_eq!(table.shard(host).room(), 4);
}

#[test]
fn a_long_text_is_kept_by_its_endpoint_only() {
    let mut texts = TextCache::default();
    let (short, long) = ("t".repeat(256), "t".repeat(257));
    assert!(Text::ptr_eq(&texts.text(&short), &texts.text(&short)));
    assert!(!Text::ptr_eq(&texts.text(&long), &texts.text(&long)));
    assert_eq!(texts.text(&long), long);
}

#[test]
fn routes_and_their_endpoints_have_bounds() {
    let table = Table::new(TableSettings {
        most_routes: 2,
        most_endpoints: 3,
        ..TableSettings::default()
    });
    let register = |uri: &str, port: usize| {
        let endpoint = Endpoint {
            identity: format!("h:{port}").into(),
            ..Endpoint::default()
        };
        let key = RouteKey::new(uri).unwrap();
        table.register(&key, endpoint, &PoolSettings::default(), 1)
    };
    for port in 0..3 {
        let added = Registered::Added { route: port == 0 };
        assert_eq!(register("a", port), added);
    }
    let refused = Registered::Refused(Bound::EndpointsOfRoute(3));
    assert_eq!(register("a", 3), refused);
    assert_eq!(register("a", 2), Registered::Refreshed);
    assert_eq!(register("b", 0), Registered::Added { route: true });
    let refused = Registered::Refused(Bound::Routes(2));
    assert_eq!(register("c", 0), refused);
    table.unregister(
        &RouteKey::new("b").unwrap(),
        "h:0",
        &Modification::default(),
        2,
    );
    assert_eq!(register("c", 0), Registered::Added { route: true });
    assert_eq!(table.len(), 2);
}

#[test]
fn endpoints_of_all_routes_have_a_bound_together() {
    let table = Table::new(TableSettings {
        most_endpoints_in_all: 3,
        ..TableSettings::default()
    });
    let add = |uri, identity| add(&table, uri, identity);
    let refused = Registered::Refused(Bound::Endpoints(3));
    assert_eq!(add("a", "h:1"), Registered::Added { route: true });
    assert_eq!(add("a", "h:2"), Registered::Added { route: false });
    assert_eq!(add("b", "h:1"), Registered::Added { route: true });
    assert_eq!(add("b", "h:2"), refused);
    assert_eq!(add("c", "h:1"), refused);
    // What is there is heard of as before.
    assert_eq!(add("b", "h:1"), Registered::Refreshed);
    assert_eq!((table.len(), table.endpoints()), (2, 3));
    let Lookup::Found(pool) = table.lookup(b"a", b"/") else {
        panic!("no route");
    };
    assert!(table.remove(&pool, &pool.endpoints()[0], 2));
    assert_eq!(add("c", "h:1"), Registered::Added { route: true });
    table.unregister(&key("c"), "h:1", &Modification::default(), 2);
    assert_eq!(table.endpoints(), 2);
    assert_eq!(table.prune(1000 * SECOND).endpoints, 2);
    assert_eq!((table.len(), table.endpoints()), (0, 0));
}

/// As long as the route is there, also when others register it in other letters.
#[test]
fn the_path_of_cookies_is_that_of_the_first_registration() {
    let table = table();
    let endpoint = |port: u16| Endpoint {
        identity: format!("10.0.0.1:{port}").into(),
        ..Endpoint::default()
    };
    let path = || {
        let Lookup::Found(pool) = table.lookup(b"a.ex", b"/shop/x") else {
            panic!("the route is not there");
        };
        pool.context_path().to_owned()
    };
    let pool = PoolSettings::default();
    table.register(&key("A.ex/Shop/?x=1"), endpoint(1), &pool, 7);
    assert_eq!(path(), "/Shop/");
    table.register(&key("a.ex/shop"), endpoint(2), &pool, 8);
    let other = PoolSettings {
        hash_header: "x".into(),
        algorithm: Some(Algorithm::Hash),
        ..PoolSettings::default()
    };
    table.register(&key("a.ex/shop"), endpoint(1), &other, 9);
    assert_eq!(path(), "/Shop/");
    table.register(&key("b.ex"), endpoint(1), &pool, 7);
    let Lookup::Found(pool) = table.lookup(b"b.ex", b"/shop/x") else {
        panic!("the route is not there");
    };
    assert_eq!(pool.context_path(), "/");
    assert!(!matches!(table.lookup(b"b.ex", b"*"), Lookup::Found(_)));
    // A browser would not send a cookie for `/Shop/` to `/Shop`.
    let settings = PoolSettings::default();
    table.register(&key("c.ex/Shop/"), endpoint(1), &settings, 7);
    let Lookup::Found(pool) = table.lookup(b"c.ex", b"/shop") else {
        panic!("the route is not there");
    };
    assert_eq!(pool.context_path(), "/Shop");
}
