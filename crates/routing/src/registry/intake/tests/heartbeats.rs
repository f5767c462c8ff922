//! Heartbeats that are known by their bytes change the same as those that are read.

use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::table::{Algorithm, Fingerprint, Registration};

const SECOND: Nanos = 1_000_000_000;
const URIS: [&str; 5] = ["a.ex", "A.ex", "b.ex", "b.ex/p", "/bad"];
const HOSTS: [&str; 3] = ["h", "i", "j"];

/// One step of a history.
#[derive(Debug, Clone)]
enum Step {
    Register(String),
    Unregister(String),
    /// Another feed registers an endpoint: `app` and `url` may be new.
    Other {
        uri: &'static str,
        host: &'static str,
        app: &'static str,
        url: &'static str,
    },
    /// Another feed unregisters one.
    OtherLeaves(&'static str, &'static str),
    /// A request found that an endpoint is not what it should be.
    Impostor(&'static str),
    Wait(Nanos),
    Prune,
    RefreshAll,
}

fn message() -> impl Strategy<Value = String> {
    let uris = prop::collection::vec(select(&URIS), 0..3);
    let apps = select(&["", r#""app":"one","#, r#""app":"two","#]);
    let tls = select(&["", r#""tls_port":1,"#, r#""tls_port":0,"#]);
    let rest = select(&[
        "",
        r#","tags":{"component":"c"}"#,
        r#","options":{"loadbalancing":"least-connection"}"#,
        r#","route_service_url":"https://rs.ex""#,
        r#","route_service_url":"http://rs.ex""#,
        r#","stale_threshold_in_seconds":5"#,
        r#","endpoint_updated_at_ns":7"#,
        r#","isolation_segment":"unknown""#,
    ]);
    (select(&HOSTS), apps, tls, uris, rest).prop_map(|(host, app, tls, uris, rest)| {
        let uris = uris.join("\",\"");
        let uris = if uris.is_empty() {
            uris
        } else {
            format!("\"{uris}\"")
        };
        format!(r#"{{"host":"{host}",{app}{tls}"port":1,"uris":[{uris}]{rest}}}"#)
    })
}

fn step(messages: Vec<String>) -> impl Strategy<Value = Step> {
    let uri = || select(&URIS[..4]);
    let url = select(&["", "https://rs.ex"]);
    let app = select(&["", "one"]);
    prop_oneof![
        12 => select(messages.clone()).prop_map(Step::Register),
        2 => select(messages).prop_map(Step::Unregister),
        1 => (uri(), select(&HOSTS), app, url)
            .prop_map(|(uri, host, app, url)| Step::Other { uri, host, app, url }),
        1 => (uri(), select(&HOSTS)).prop_map(|(uri, host)| Step::OtherLeaves(uri, host)),
        1 => uri().prop_map(Step::Impostor),
        2 => (0..100 * SECOND).prop_map(Step::Wait),
        1 => Just(Step::Prune),
        1 => Just(Step::RefreshAll),
    ]
}

fn histories() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(message(), 1..5)
        .prop_flat_map(|messages| prop::collection::vec(step(messages), 1..60))
}

struct Side {
    intake: Intake,
    table: Arc<Table>,
    counters: Arc<RegistryCounters>,
    /// Blanks behind each message make its bytes new, so that it is read.
    blanks: Option<usize>,
}

impl Side {
    fn new(blanks: Option<usize>) -> Self {
        let table = Arc::new(Table::new(TableSettings {
            most_endpoints: 2,
            segments: Segments::SharedAnd(Vec::new()),
            ..TableSettings::default()
        }));
        let counters = Arc::new(RegistryCounters::default());
        let logger = Logger::new("registry", Sink::nothing(), Level::Error);
        Self {
            intake: Intake::new(Arc::clone(&table), Arc::clone(&counters), true, 0, logger),
            table,
            counters,
            blanks,
        }
    }

    fn take(&mut self, subject: &[u8], message: &str, now: Nanos) {
        let mut payload = message.to_owned();
        if let Some(blanks) = &mut self.blanks {
            *blanks += 1;
            payload.push_str(&" ".repeat(*blanks));
        }
        self.intake.take([(subject, payload.as_bytes())], now);
    }

    fn play(&mut self, step: &Step, now: &mut Nanos) {
        match step {
            Step::Register(message) => self.take(REGISTER, message, *now),
            Step::Unregister(message) => self.take(b"router.unregister", message, *now),
            Step::Other {
                uri,
                host,
                app,
                url,
            } => {
                let registration = Registration {
                    identity: &format!("{host}:1"),
                    app,
                    route_service_url: url,
                    ..Registration::default()
                };
                let key = RouteKey::new(uri).unwrap();
                self.table.register_with(&key, &registration, *now);
            }
            Step::OtherLeaves(uri, host) => {
                let (key, tag) = (RouteKey::new(uri).unwrap(), Modification::default());
                let identity = format!("{host}:1");
                self.table.unregister(&key, &identity, &tag, *now);
            }
            Step::Impostor(uri) => {
                let (host, path) = uri.split_once('/').unwrap_or((uri, ""));
                let path = format!("/{path}");
                if let Lookup::Found(pool) = self.table.lookup(host.as_bytes(), path.as_bytes()) {
                    let endpoint = pool.endpoints().first().cloned();
                    self.table.remove(&pool, &endpoint.unwrap(), *now);
                }
            }
            Step::Wait(time) => *now += time,
            Step::Prune => {
                self.table.prune(*now);
            }
            Step::RefreshAll => self.table.refresh_all(*now),
        }
    }

    /// All that the table says, in order.
    fn said(&self) -> Vec<String> {
        let endpoint = |it: &Arc<Endpoint>| {
            let seen = Endpoint {
                state: Arc::default(),
                ..Endpoint::clone(it)
            };
            format!("{seen:?} at {}", it.state.refreshed_at())
        };
        let pool = |pool: Arc<crate::table::Pool>| {
            let endpoints: Vec<_> = pool.endpoints().iter().map(endpoint).collect();
            format!("{} {:?} {endpoints:?}", pool.key(), pool.settings())
        };
        let mut said: Vec<_> = self.table.pools().into_iter().map(pool).collect();
        said.sort();
        said.push(format!("updated at {}", self.table.updated_at()));
        said
    }

    /// What was counted, but for times that depend on the clock.
    fn counted(&self) -> RegistryTotals {
        let mut totals = self.counters.totals();
        totals.latency.buckets.clear();
        totals.latency.sum = 0;
        totals
    }
}

proptest! {
    #[test]
    fn what_is_known_by_its_bytes_changes_what_it_would_if_read(steps in histories()) {
        let (mut quick, mut slow) = (Side::new(None), Side::new(Some(0)));
        let (mut now, mut also_now) = (SECOND, SECOND);
        for (number, step) in steps.iter().enumerate() {
            quick.play(step, &mut now);
            slow.play(step, &mut also_now);
            // Each look walks the whole table.
            if number % 16 == 15 {
                prop_assert_eq!(quick.said(), slow.said(), "after {:?}", step);
            }
        }
        prop_assert_eq!(quick.said(), slow.said());
        prop_assert_eq!(quick.counted(), slow.counted());
        let endpoints: usize = quick.table.pools().iter().map(|pool| pool.endpoints().len()).sum();
        prop_assert_eq!(quick.table.endpoints(), endpoints);
    }
}

/// Whether `payload` would be known without being read.
fn known(intake: &Intake, payload: &[u8]) -> bool {
    let partial = PartialMessage::of(payload).unwrap();
    let mut totals = RegistryTotals::default();
    let fingerprint = || intake.fingerprint(payload);
    intake
        .recognise_heartbeat(&partial, fingerprint, 5, &mut totals)
        .is_some()
}

#[test]
fn any_change_makes_a_heartbeat_unknown() {
    let (mut intake, table, ..) = intake();
    let payload = br#"{"host":"h","port":1,"uris":["a.ex","b.ex"]}"#;
    let key = RouteKey::new("b.ex").unwrap();
    let other = Registration {
        identity: "i:1",
        ..Registration::default()
    };
    let changes: [&dyn Fn(); 5] = [
        &|| {
            let tag = Modification::default();
            table.unregister(&key, "h:1", &tag, 5);
        },
        &|| {
            let Lookup::Found(pool) = table.lookup(b"b.ex", b"/") else {
                panic!("no route");
            };
            let endpoints = pool.endpoints();
            let own = endpoints.iter().find(|it| it.identity() == "h:1");
            assert!(table.remove(&pool, own.unwrap(), 5));
        },
        &|| {
            let changed = Registration {
                identity: "h:1",
                app: "another",
                ..Registration::default()
            };
            table.register_with(&key, &changed, 5);
        },
        &|| {
            let changed = Registration {
                algorithm: Some(Algorithm::LeastConnection),
                ..other.clone()
            };
            table.register_with(&key, &changed, 5);
        },
        &|| {
            table.prune(1000 * SECOND);
        },
    ];
    assert!(!known(&intake, payload));
    for (number, change) in changes.iter().enumerate() {
        // New, then known by what it says, then by its bytes.
        intake.take([(REGISTER, &payload[..]); 2], 5);
        assert!(known(&intake, payload), "before change {number}");
        // Others come and go without touching what this says.
        table.register_with(&key, &other, 5);
        intake.take([(REGISTER, &payload[..])], 5);
        assert!(known(&intake, payload), "beside another, {number}");
        change();
        assert!(!known(&intake, payload), "change {number}");
    }
}

#[test]
fn heartbeats_behind_a_flood_of_new_routes_are_known() {
    let (mut intake, table, counters, _) = intake();
    let message = |number: u32| format!(r#"{{"host":"h","port":1,"uris":["{number}.ex"]}}"#);
    let messages: Vec<String> = (0..2 * FLOOD).map(message).collect();
    for _ in 0..3 {
        for message in &messages {
            intake.take([(REGISTER, message.as_bytes())], 5);
        }
    }
    assert_eq!(table.len(), messages.len());
    let refreshed = counters.totals().components[0].refreshed;
    assert_eq!(refreshed, 2 * messages.len() as u64);
    for message in &messages {
        assert!(known(&intake, message.as_bytes()), "{message}");
    }
}

#[test]
fn many_endpoints_are_found_by_their_address() {
    let (mut intake, table, counters, _) = intake();
    let message = |port: u16| format!(r#"{{"host":"h","port":{port},"uris":["a.ex"]}}"#);
    for round in 0..2 {
        for port in 1..=17 {
            intake.take([(REGISTER, message(port).as_bytes())], 5 + round);
        }
    }
    assert!(!known(&intake, message(1).as_bytes()));
    assert_eq!(counters.totals().components[0].refreshed, 17);
    let pool = table.pools().pop().unwrap();
    assert!(
        pool.endpoints()
            .iter()
            .all(|it| it.state.refreshed_at() == 6)
    );
}

#[test]
fn fingerprints_are_those_of_one_intake() {
    let (one, ..) = intake();
    let (other, ..) = intake();
    let of = |intake: &Intake| -> Vec<Fingerprint> {
        (0..4_u8).map(|byte| intake.fingerprint(&[byte])).collect()
    };
    assert_eq!(of(&one), of(&one));
    assert_ne!(of(&one), of(&other));
}
