use serde_json::Value;

use super::*;
use crate::planted_run::planted_run;

fn traced(most: usize) -> (Vec<Value>, Vec<LeftOut>) {
    let folder = tempfile::tempdir().unwrap();
    let mut out = Vec::new();
    let left_out = perfetto(&planted_run(folder.path()), most, &mut out).unwrap();
    let trace: Value = serde_json::from_slice(&out).unwrap();
    (trace["traceEvents"].as_array().unwrap().clone(), left_out)
}

/// Begin and length of each slice of a name, in microseconds.
fn slices(events: &[Value], name: &str) -> Vec<(f64, f64)> {
    let named = events
        .iter()
        .filter(|event| event["ph"] == "X" && event["name"] == name);
    named
        .map(|event| {
            (
                event["ts"].as_f64().unwrap(),
                event["dur"].as_f64().unwrap(),
            )
        })
        .collect()
}

#[test]
fn what_was_planted_stands_where_it_happened() {
    let (events, left_out) = traced(10);
    assert_eq!(left_out, []);
    assert_eq!(slices(&events, "up"), [(1e6, 2.5e6)]);
    // A step and a fault without an end last until the run's.
    assert_eq!(slices(&events, "cut \"short\""), [(3.5e6, 1.5e6)]);
    assert_eq!(slices(&events, "kill bbs"), [(1.5e6, 3.5e6)]);
    assert_eq!(
        slices(&events, "desired → started"),
        [(1e6, 1e3), (1.2e6, 0.0)]
    );
    // A point that nobody saw is passed over.
    assert_eq!(slices(&events, "desired → resolved"), [(1.1e6, 1e6)]);
    let backwards = events
        .iter()
        .filter(|event| event["args"]["backwards_s"].is_number());
    assert_eq!(backwards.count(), 1);
    let cores = events
        .iter()
        .find(|event| event["name"] == "processors")
        .unwrap();
    assert_eq!(
        (&cores["ts"], &cores["args"]["cores"]),
        (&json!(2e6), &json!(0.25))
    );
    let named = |name: &str| events.iter().any(|event| event["args"]["name"] == name);
    for name in ["run", "steps", "task", "bbs", "quick", "slow", "odd"] {
        assert!(named(name), "{name}");
    }
    assert!(!named("loads") && !named("probes") && !named("loops"));
}

#[test]
fn of_many_entities_the_slowest_stay_and_the_others_are_counted() {
    let (events, left_out) = traced(1);
    assert!(events.iter().any(|event| event["args"]["name"] == "slow"));
    assert!(!events.iter().any(|event| event["args"]["name"] == "quick"));
    assert_eq!(
        left_out,
        [LeftOut {
            lifecycle: "task".to_owned(),
            entities: 2
        }]
    );
}
