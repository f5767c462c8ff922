//! Logs whose lifecycles are known, and logs in which there is none.

use std::fmt::Write as _;

use proptest::prelude::*;
use stats::SplitMix;

use super::*;

/// The points of a task in fezzik, in order, with the field that names it there.
const TASK: [(&str, &str); 9] = [
    ("bbs.request.desire-task.starting", "task-guid"),
    (
        "bbs.request.desire-task.succeeded-persisting-task",
        "task-guid",
    ),
    ("bbs.request.desire-task.finished", "task-guid"),
    (
        "rep.auction-delegate.allocating-container",
        "container-guid",
    ),
    ("bbs.request.start-task.finished", "task-guid"),
    ("rep.executor.succeeded-creating-garden-container", "guid"),
    ("rep.executor.process-exit", "handle"),
    (
        "rep.task-processor.succeeded-completing-task",
        "container-guid",
    ),
    ("bbs.task-callback.resolved-task", "task-guid"),
];
/// The points of an instance; cells write some of a task's messages about it too.
const INSTANCE: [(&str, &str); 7] = [
    ("bbs.request.claim-actual-lrp.starting", "instance-guid"),
    ("bbs.request.claim-actual-lrp.complete", "instance-guid"),
    (
        "rep.auction-delegate.allocating-container",
        "container-guid",
    ),
    ("rep.executor.succeeded-creating-garden-container", "guid"),
    ("bbs.request.start-actual-lrp.complete", "instance-guid"),
    ("rep.lrp-stopper.stop.stopping", "guid"),
    ("bbs.request.remove-actual-lrp.complete", "instance-guid"),
];

/// Lines of lager, in order of time, of tasks and instances on ten cells.
fn fezzik(entities: u64, seed: u64) -> String {
    let mut random = SplitMix::new(seed);
    let mut lines: Vec<(u64, String)> = Vec::new();
    let mut line = |at: u64, message: &str, data: &str| {
        let source = message.split('.').next().unwrap_or_default();
        let text = format!(
            r#"{{"timestamp":"{}.{:09}","source":"{source}","message":"{message}","log_level":1,"data":{{{data}}}}}"#,
            1_464_900_000 + at / 1_000_000_000,
            at % 1_000_000_000
        );
        lines.push((at, text));
    };
    for (kind, points) in [("task", &TASK[..]), ("instance", &INSTANCE[..])] {
        for number in 0..entities {
            let guid = format!("{kind}-{:08x}", random.bits() as u32);
            let mut at = number * 20_000_000 + random.bits() % 10_000_000;
            // One in ten is cut off by the end of the log.
            let until = match random.bits() % 10 {
                0 => points.len() / 2,
                _ => points.len(),
            };
            for (message, field) in &points[..until] {
                at += 1 + random.bits() % 900_000_000;
                let cell = match message.starts_with("rep") {
                    true => format!(r#","cell-id":"cell-{}""#, number % 10),
                    false => String::new(),
                };
                let session = random.bits() % 50;
                let ports = 60_000 + random.bits() % 5_000;
                let data =
                    format!(r#""session":"{session}","{field}":"{guid}","port":{ports}{cell}"#);
                line(at, message, &data);
                // What is said again and again about an entity is no point of it.
                for beat in 0..3 {
                    let data = format!(r#""{field}":"{guid}"{cell}"#);
                    line(
                        at + beat * 40_000_000,
                        "rep.executor.run.still-there",
                        &data,
                    );
                }
            }
        }
    }
    for beat in 0..entities {
        let data = format!(
            r#""cell-id":"cell-{}","duration":{}"#,
            beat % 10,
            random.bits()
        );
        line(beat * 17_000_000, "rep.bulker.sync.finished", &data);
    }
    lines.sort();
    let mut text = String::from("not a line of a log\n");
    for (_, line) in lines {
        let _ = writeln!(text, "{line}");
    }
    text
}

fn of(text: &str) -> Suggestions {
    suggest(Format::Auto, &[text.as_bytes()])
}

fn matchers(suggested: &Suggested) -> Vec<&str> {
    let points = suggested.definition.points.iter();
    points.map(|(_, matcher)| &**matcher).collect()
}

#[test]
fn the_phases_of_fezzik_are_found_in_order() {
    for seed in 0..10 {
        let found = of(&fezzik(200, seed));
        assert_eq!(found.lines.unreadable, 1);
        assert_eq!(found.lifecycles.len(), 2, "seed {seed}: {found:#?}");
        for suggested in &found.lifecycles {
            let planted = match &*suggested.definition.name {
                "task" => TASK.map(|(message, _)| message).to_vec(),
                "instance" => INSTANCE.map(|(message, _)| message).to_vec(),
                other => panic!("seed {seed}: {other}"),
            };
            assert_eq!(matchers(suggested), planted, "seed {seed}");
            assert_eq!(suggested.definition.group, ["cell-id"], "seed {seed}");
            let whole = suggested.complete as f64 / 200.0;
            assert!((0.8..=1.0).contains(&whole), "seed {seed}: {suggested:#?}");
            let recurs = suggested.left_out.iter().any(|left| {
                left.message.ends_with("still-there")
                    && matches!(left.why, PointRejection::Recurs(_))
            });
            assert!(recurs, "seed {seed}: {:?}", suggested.left_out);
        }
    }
}

#[test]
fn what_is_proposed_is_what_a_run_mines() {
    let found = of(&fezzik(100, 7));
    for suggested in found.lifecycles {
        // Containers of both kinds are called by one field, so the other kind's are rows too.
        assert_eq!(
            (suggested.entities, suggested.others),
            (100, 100),
            "{suggested:#?}"
        );
        let passed: Vec<u64> = suggested
            .points
            .iter()
            .map(|point| point.entities)
            .collect();
        assert!(passed.iter().all(|passed| *passed >= suggested.complete));
        assert_eq!(suggested.points[0].since_before_ns, None);
        assert!(suggested.points[1].since_before_ns.is_some_and(|ns| ns > 0));
    }
}

#[test]
fn ids_in_messages_are_keys_too() {
    let mut random = SplitMix::new(3);
    let mut lines: Vec<(u64, String)> = Vec::new();
    for order in 100..180 {
        let mut at = order * 50;
        for text in [
            format!("order {order} received from shop {}", order % 3),
            format!("payment of order {order} accepted"),
            format!("order {order}: packed in step 1"),
            format!("order {order}: packed in step 2"),
            format!("order {order} sent"),
        ] {
            at += 1 + random.bits() % 2_000;
            lines.push((at, text));
        }
    }
    lines.sort();
    let text = lines.iter().fold(String::new(), |mut all, (at, text)| {
        let _ = writeln!(
            all,
            "ts={}.{:03} level=info msg=\"{text}\"",
            1_700_000_000 + at / 1_000,
            at % 1_000
        );
        all
    });
    let found = of(&text);
    let [orders] = &found.lifecycles[..] else {
        panic!("{found:#?}");
    };
    assert_eq!(orders.definition.name, "order");
    let counts = (orders.entities, orders.complete, orders.others);
    assert_eq!(counts, (80, 80, 0), "{orders:#?}");
    let names: Vec<&str> = orders.points.iter().map(|point| &*point.name).collect();
    assert_eq!(names.len(), 5, "{orders:#?}");
    assert_eq!(names[4], "sent");
}

#[test]
fn where_nothing_goes_on_nothing_is_proposed() {
    let mut random = SplitMix::new(11);
    let mut text = String::new();
    for request in 0..2_000 {
        let _ = writeln!(
            text,
            "time=2026-01-01T00:00:{:02}Z msg=served path=/item/{} status=200 took={} host=h{}",
            request / 40,
            random.bits() % 100,
            random.bits(),
            random.bits() % 4
        );
    }
    let found = of(&text);
    assert!(found.lifecycles.is_empty(), "{found:#?}");
    let why = |path: &str| {
        let field = found.fields.iter().find(|field| field.path == path);
        field.and_then(|field| field.no_key)
    };
    assert_eq!(why("status"), Some(KeyRejection::FewValues));
    assert_eq!(why("took"), Some(KeyRejection::OneMessage));
    assert_eq!(
        found.fields.iter().map(|field| field.lines).max(),
        Some(2_000)
    );
}

#[test]
fn what_fewer_than_five_pass_is_chance() {
    for (orders, why) in [(4, Some(KeyRejection::FewValues)), (5, None)] {
        let mut text = String::new();
        for order in 0..orders {
            let at = 1_700_000_000 + 60 * order;
            let _ = writeln!(text, "ts={at} msg=placed order=o-{order}");
            let _ = writeln!(text, "ts={} msg=paid order=o-{order}", at + 1);
        }
        let found = of(&text);
        assert_eq!(found.lifecycles.is_empty(), why.is_some(), "{found:#?}");
        assert_eq!(found.fields[0].no_key, why);
    }
}

#[test]
fn messages_in_any_order_are_no_lifecycle() {
    let mut random = SplitMix::new(5);
    let mut text = String::new();
    for line in 0..4_000_u64 {
        let said = ["read", "written", "checked", "moved"][(random.bits() % 4) as usize];
        let file = random.bits() % 300;
        let _ = writeln!(
            text,
            "ts={} msg={said} file=f{file:03}",
            1_700_000_000 + line
        );
    }
    let found = of(&text);
    assert!(found.lifecycles.is_empty(), "{found:#?}");
}

#[test]
fn nothing_at_all_is_no_error() {
    assert_eq!(of("").lifecycles, []);
    let garbage = of("\u{0}\u{1}\n{\"a\":\n===\n");
    assert_eq!((garbage.lines.lines, garbage.lines.unreadable), (3, 3));
    assert_eq!(garbage.fields, []);
}

proptest! {
    #[test]
    fn no_log_is_too_strange(
        lines in prop::collection::vec(
            prop_oneof![
                "(ts=[0-9]{1,3} )?(msg=\"?[a-z0-9.=: ()]{0,12}\"? )?(id=[a-z0-9]{1,2})?",
                r#"\{"ts":[0-9]{1,3},"msg":"[a-c ]{0,6}[0-9]?","data":\{"id":"[0-9]","x":[0-9]{1,3}\}\}"#,
                ".{0,40}",
            ],
            0..200,
        ),
    ) {
        let text = lines.join("\n");
        let found = of(&text);
        for suggested in &found.lifecycles {
            prop_assert!(suggested.complete <= suggested.entities);
            prop_assert!(suggested.points.len() >= 2);
        }
    }
}

#[test]
fn fields_are_those_that_a_line_is_read_with() {
    let pairs = br#"ts=1 id=7 body={"a":1}"#;
    assert_eq!(field_names(pairs), ["body", "id", "ts"]);
    let lager = br#"rep: {"timestamp":"1","data":{"guid":"a"}}"#;
    assert_eq!(field_names(lager), ["guid", "timestamp"]);
}
