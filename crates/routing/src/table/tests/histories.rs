//! Random histories, played on the table and on the model.

use proptest::prelude::*;
use proptest::sample::select;

use super::model::{Known, Model};
use super::*;

const HOSTS: [&str; 9] = [
    "a.b.c", "A.b.C", "b.c", "*.b.c", "*.c", "x.b.c", "x.y.b.c", "c", "*",
];
const PATHS: [&str; 9] = [
    "", "/", "/p", "/P/q", "/p/q/r/", "/p%2Fq", "//p", "/p//q", "/pq?x=/p",
];

/// One step of a history.
#[derive(Debug, Clone)]
enum Step {
    Register(String, Known, &'static str),
    Unregister(String, &'static str, (&'static str, u32)),
    Wait(Nanos),
    Prune,
}

fn uri() -> impl Strategy<Value = String> {
    (select(&HOSTS), select(&PATHS)).prop_map(|(host, path)| format!("{host}{path}"))
}

fn identity() -> impl Strategy<Value = &'static str> {
    select(&["1.1.1.1:1", "1.1.1.1:2", "1.1.1.1:3", "1.1.1.1:4"])
}

fn modification() -> impl Strategy<Value = (&'static str, u32)> {
    prop_oneof![
        4 => Just(("", 0)),
        1 => (select(&["g", "h"]), 0_u32..3),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let app = select(&["", "app"]);
    let seconds = 1_u64..20;
    let known = (identity(), any::<bool>(), app, modification(), seconds).prop_map(
        |(identity, tls, app, modification, seconds)| Known {
            identity,
            tls,
            app,
            modification,
            stale_after: seconds * SECOND,
        },
    );
    let url = select(&["", "", "", "https://rs.ex"]);
    prop_oneof![
        6 => (uri(), known, url).prop_map(|(uri, known, url)| Step::Register(uri, known, url)),
        3 => (uri(), identity(), modification())
            .prop_map(|(uri, identity, tag)| Step::Unregister(uri, identity, tag)),
        1 => (0..15 * SECOND).prop_map(Step::Wait),
        1 => Just(Step::Prune),
    ]
}

fn play(table: &Table, model: &mut Model, step: Step, now: &mut Nanos) {
    match step {
        Step::Register(uri, known, url) => {
            let registration = Registration {
                tls: known.tls,
                app: known.app,
                modification_guid: known.modification.0,
                modification_index: known.modification.1,
                stale_after: Duration::from_nanos(known.stale_after),
                route_service_url: url,
                ..at(known.identity)
            };
            let registered = table.register_with(&key(&uri), &registration, *now);
            assert_eq!(registered, model.register(&uri, known, url, *now));
        }
        Step::Unregister(uri, identity, (guid, index)) => {
            let modification = Modification {
                guid: guid.into(),
                index,
            };
            let left = table.unregister(&key(&uri), identity, &modification, *now);
            assert_eq!(left, model.unregister(&uri, identity, (guid, index), *now));
        }
        Step::Wait(time) => *now += time,
        Step::Prune => assert_eq!(table.prune(*now), model.prune(*now)),
    }
}

/// Both know the same routes, endpoints and times.
fn compare(table: &Table, model: &Model) {
    assert_eq!(table.len(), model.routes.len());
    let pools = table.pools();
    assert_eq!(pools.len(), model.routes.len());
    for pool in pools {
        let route = &model.routes[pool.key()];
        assert_eq!(&*pool.settings().route_service_url, route.url);
        let endpoints = pool.endpoints();
        let stored = endpoints.iter().map(|it| {
            let known = Known {
                identity: route
                    .endpoints
                    .iter()
                    .map(|known| known.0.identity)
                    .find(|identity| *identity == &*it.identity)
                    .unwrap_or("unknown"),
                tls: it.tls,
                app: if it.app.is_empty() { "" } else { "app" },
                modification: (
                    match &*it.modification.guid {
                        "g" => "g",
                        "h" => "h",
                        _ => "",
                    },
                    it.modification.index,
                ),
                stale_after: it.stale_after.as_nanos() as Nanos,
            };
            (known, it.state.refreshed_at())
        });
        assert_eq!(stored.collect::<Vec<_>>(), route.endpoints);
    }
    for host in HOSTS {
        for path in PATHS {
            assert_eq!(
                found(table, host, path),
                model.found(host, path),
                "{host} {path}"
            );
        }
    }
}

proptest! {
    #[test]
    fn histories_lead_to_what_the_model_says(
        steps in prop::collection::vec(step(), 1..60),
        empty_pool_stays in select(&[0, 10 * SECOND]),
    ) {
        let table = Table::new(TableSettings {
            empty_pool_stays: Duration::from_nanos(empty_pool_stays),
            ..TableSettings::default()
        });
        let mut model = Model { empty_pool_stays, ..Model::default() };
        let mut now = 1000 * SECOND;
        for step in steps {
            play(&table, &mut model, step, &mut now);
        }
        compare(&table, &model);
    }

    /// Many routes below one host are all in one shard, which grows and is rebuilt.
    #[test]
    fn a_crowded_shard_loses_nothing(steps in prop::collection::vec((any::<bool>(), 0_u32..200), 1..600)) {
        let table = table();
        let mut model = Model::default();
        let endpoint = Known {
            identity: "1.1.1.1:1",
            tls: false,
            app: "",
            modification: ("", 0),
            stale_after: SECOND,
        };
        let mut now = 0;
        for (registers, path) in steps {
            let uri = format!("one.host/{}", path);
            let step = if registers {
                Step::Register(uri, endpoint.clone(), "")
            } else {
                Step::Unregister(uri, "1.1.1.1:1", ("", 0))
            };
            play(&table, &mut model, step, &mut now);
        }
        compare(&table, &model);
        for path in 0..200 {
            let path = format!("/{path}/below");
            prop_assert_eq!(found(&table, "one.host", &path), model.found("one.host", &path));
        }
    }

    /// No bytes of a request do harm.
    #[test]
    fn any_bytes_may_be_looked_up(
        host in prop::collection::vec(any::<u8>(), 0..80),
        path in prop::collection::vec(any::<u8>(), 0..600),
    ) {
        let table = table();
        add(&table, "*.c/p", "1.1.1.1:1");
        let lookup = table.lookup(&host, &path);
        if let Lookup::Found(pool) = lookup {
            prop_assert_eq!(pool.key(), "*.c/p");
        }
    }
}
