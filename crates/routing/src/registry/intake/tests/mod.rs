mod heartbeats;

use telemetry::Sink;

use super::*;
use crate::table::{Lookup, Segments, TableSettings};

pub(super) fn intake() -> (Intake, Arc<Table>, Arc<RegistryCounters>, Sink) {
    let table = Arc::new(Table::new(TableSettings::default()));
    let counters = Arc::new(RegistryCounters::default());
    let sink = Sink::memory();
    let logger = Logger::new("registry", sink.clone(), Level::Info);
    let intake = Intake::new(Arc::clone(&table), Arc::clone(&counters), true, 0, logger);
    (intake, table, counters, sink)
}

pub(super) const REGISTER: &[u8] = b"router.register";

#[test]
fn routes_come_stay_and_go() {
    let (mut intake, table, counters, sink) = intake();
    let one = br#"{"host":"h","port":1,"uris":["A.ex.com/X/","b.ex.com","/bad"],"tags":{"component":"c"},"endpoint_updated_at_ns":1}"#;
    intake.take([(REGISTER, &one[..]), (REGISTER, &one[..])], 5);
    assert!(matches!(
        table.lookup(b"a.ex.com", b"/x/y"),
        Lookup::Found(_)
    ));
    let totals = counters.totals();
    let component = &totals.components[0];
    assert_eq!((component.added, component.refreshed), (2, 2));
    assert_eq!((&*component.component, totals.invalid_routes), ("c", 2));
    // Once for each route that was added; a repetition says nothing new.
    assert_eq!(totals.latency.count, 2);
    intake.take([(REGISTER, &one[..])], 6);
    assert_eq!(counters.totals().latency.count, 2);
    intake.take([(&b"router.unregister"[..], &one[..])], 6);
    assert!(table.is_empty());
    assert_eq!(counters.totals().removed, 2);
    for event in [
        "route-registered",
        "endpoint-registered",
        "route-unregistered",
    ] {
        assert_eq!(
            sink.kept().matches(&format!(".{event}\"")).count(),
            2,
            "{event}"
        );
    }
}

#[test]
fn what_does_not_parse_is_logged_cut_and_counted() {
    let (mut intake, table, counters, sink) = intake();
    let long = format!("{{\"host\":{}", "x".repeat(5000));
    intake.take(
        [
            (REGISTER, long.as_bytes()),
            (&b"router.other"[..], &b"{"[..]),
        ],
        5,
    );
    // Of other subjects only the form matters; a greeting has none.
    intake.take(
        [
            (&b"router.other"[..], &b"{}"[..]),
            (&b"router.greet"[..], &b""[..]),
        ],
        5,
    );
    assert!(table.is_empty());
    assert_eq!(counters.totals().invalid_messages, 2);
    let kept = sink.kept();
    let first = kept.lines().next().unwrap();
    assert!(first.contains("validation-error") && first.contains("\"payload_bytes\":5008"));
    assert!(first.len() < 1600, "{first}");
    assert_eq!(kept.lines().count(), 2);
}

#[test]
fn a_flood_writes_no_more_than_its_budget() {
    let (mut intake, _, counters, sink) = intake();
    for number in 0..1000 {
        let text = format!(r#"{{"host":"h","port":{number},"uris":["a"]}}"#);
        intake.take([(REGISTER, text.as_bytes()), (REGISTER, &b"x"[..])], 5);
    }
    assert_eq!(sink.kept().lines().count(), 2 * LINES_PER_SECOND as usize);
    intake.take([], 2_000_000_000);
    let totals = counters.totals();
    assert_eq!(totals.lines_left_out, 1001 - 200 + 1000 - 200);
    assert!(sink.kept().contains("lines-left-out"));
}

#[test]
fn what_is_refused_at_a_bound_is_logged_and_counted() {
    let table = Arc::new(Table::new(TableSettings {
        most_endpoints_in_all: 1,
        ..TableSettings::default()
    }));
    let counters = Arc::new(RegistryCounters::default());
    let sink = Sink::memory();
    let logger = Logger::new("registry", sink.clone(), Level::Error);
    let mut intake = Intake::new(table, Arc::clone(&counters), true, 0, logger);
    let message = br#"{"host":"h","port":1,"uris":["a","b"]}"#;
    intake.take([(REGISTER, &message[..]), (REGISTER, &message[..])], 5);
    assert_eq!(counters.totals().refused, 2);
    let kept = sink.kept();
    assert_eq!(kept.matches("registration-refused").count(), 2);
    assert!(kept.contains("routes.most_endpoints_in_all"), "{kept}");
}
