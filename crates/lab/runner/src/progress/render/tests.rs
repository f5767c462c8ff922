use console::strip_ansi_codes;

use super::super::status::{LifecycleView, StateView, StepView};
use super::*;

fn view() -> View {
    let step = |name: &str, progress, from_s, to_s| StepView {
        name: name.into(),
        progress,
        from_s,
        to_s,
    };
    let state = |name: &str, count, rate| StateView {
        name: name.into(),
        count,
        rate,
    };
    let system = |name: &str, cpu_cores, rss_bytes| SystemView {
        name: name.into(),
        cpu_cores,
        rss_bytes,
    };
    View {
        name: "road-to-100-cells".into(),
        elapsed_s: 12.345,
        steps: vec![
            step("tasks", Progress::Done, 1.0, Some(7.3)),
            step("instances", Progress::Now, 7.3, None),
            step("teardown", Progress::Next, 0.0, None),
        ],
        doing: "wait for lrp.running == 4000 (now 1213)".into(),
        entities: vec![EntityView {
            what: "lrp".into(),
            states: vec![
                state("claimed", Some(310), -12.4),
                state("running", Some(1213), 411.7),
                state("crashed", None, 0.0),
            ],
        }],
        probes: Vec::new(),
        systems: vec![
            system("bbs", 0.8249, 212 << 20),
            system("auctioneer", 0.1, 40 << 20),
        ],
        loads: vec![LoadView {
            name: "traffic".into(),
            due: 501.2,
            good: 499.4,
            p99: Some(0.0123),
            failed: 2,
        }],
        lines: 48_211,
        lifecycles: vec![LifecycleView {
            name: "task".into(),
            entities: 4000,
            reached: vec![("desired".into(), 4000), ("resolved".into(), 3999)],
        }],
    }
}

#[test]
fn a_run_is_shown_as_a_block() {
    let expected = "\
road-to-100-cells  12.3 s
steps      ✔ tasks 6.3 s  ▶ instances 5 s  · teardown
now        wait for lrp.running == 4000 (now 1213)
lrp        claimed 310 (-12/s)  running 1213 (+412/s)  crashed ?
traffic    501 /s due  499 /s good  p99 12.3 ms  2 failed
bbs        cpu 0.82 cores  rss 212 MiB
auctioneer cpu 0.1 cores  rss 40 MiB
logs       48211 lines  task.resolved 3999 of 4000";
    assert_eq!(render(&view(), 100, false).join("\n"), expected);
}

#[test]
fn a_narrow_terminal_shows_every_state() {
    let expected = "\
road-to-100-cells  12.3 s
steps      ✔ tasks 6.3 s
           ▶ instances 5 s  · teardown
now        wait for lrp.running == 4000
           (now 1213)
lrp        claimed 310 (-12/s)
           running 1213 (+412/s)
           crashed ?
traffic    501 /s due  499 /s good
           p99 12.3 ms  2 failed
bbs        cpu 0.82 cores  rss 212 MiB
auctioneer cpu 0.1 cores  rss 40 MiB
logs       48211 lines
           task.resolved 3999 of 4000";
    assert_eq!(render(&view(), 40, false).join("\n"), expected);
}

#[test]
fn of_many_steps_those_near_the_present_are_shown() {
    let mut view = view();
    let step = view.steps.remove(2);
    let done = view.steps.remove(0);
    view.steps.splice(0..0, vec![done; 30]);
    view.steps.extend(vec![step; 30]);
    let lines = render(&view, 60, false);
    let expected = [
        "steps      ✔ 30 done  ▶ instances 5 s  · teardown",
        "           · teardown  · teardown  · teardown  · 26 more",
    ];
    assert_eq!(lines[1..3], expected);
}

#[test]
fn colours_change_no_text() {
    let coloured = render(&view(), 100, true).join("\n");
    assert!(coloured.contains("\u{1b}[32m✔ tasks"), "{coloured}");
    assert_eq!(
        strip_ansi_codes(&coloured),
        render(&view(), 100, false).join("\n")
    );
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for (width, color) in [(1, true), (20, false), (20, true), (60, true)] {
        for line in render(&view(), width, color) {
            assert!(
                console::measure_text_width(&line) <= width,
                "{width}: {line:?}"
            );
        }
    }
}

#[test]
fn of_many_systems_the_busiest_are_shown() {
    let mut view = view();
    view.systems = (0..100)
        .map(|n| SystemView {
            name: format!("cell.{n}"),
            cpu_cores: f64::from(n) / 100.0,
            rss_bytes: 1,
        })
        .collect();
    let lines = render(&view, 100, false);
    assert!(
        lines.iter().any(|line| line.starts_with("cell.99 ")),
        "{lines:#?}"
    );
    assert!(
        !lines.iter().any(|line| line.starts_with("cell.91 ")),
        "{lines:#?}"
    );
    assert!(
        lines
            .iter()
            .any(|line| line.contains("and 92 systems that use less")),
        "{lines:#?}"
    );
}

#[test]
fn before_anything_is_known_little_is_shown() {
    let view = View {
        name: "x".into(),
        doing: "start the systems".into(),
        ..View::default()
    };
    assert_eq!(
        render(&view, 80, false),
        ["x  0 s", "now        start the systems"]
    );
}

#[test]
fn events_and_summaries_are_single_lines() {
    let step = Event {
        t_s: 3.21,
        kind: EventKind::StepEnded,
        name: "tasks".into(),
        text: "1.27 s".into(),
    };
    assert_eq!(event(&step), "[    3.2 s] tasks: done in 1.27 s");
    let shown = summary(&view());
    assert_eq!(
        shown,
        "[   12.3 s] instances: wait for lrp.running == 4000 (now 1213)"
    );
}

#[test]
fn probes_are_shown_by_their_newest_tries() {
    let probe = |name: &str, asked, ok, values: &[&str], error: &str| ProbeView {
        name: name.into(),
        asked,
        ok,
        values: values.iter().map(|value| (*value).to_owned()).collect(),
        error: error.into(),
    };
    let view = View {
        probes: vec![
            probe("leads", 3, 2, &["0", "1"], "connection refused"),
            probe("alive", 1, 1, &[], ""),
            probe("dead", 1, 0, &[], "status 503"),
        ],
        ..View::default()
    };
    let lines = render(&view, 80, false);
    let said = |name: &str| {
        lines
            .iter()
            .find(|line| line.starts_with(name))
            .unwrap()
            .clone()
    };
    assert_eq!(
        said("leads"),
        "leads      2 of 3 ok  value 0 1  connection refused"
    );
    assert_eq!(said("alive"), "alive      ok");
    assert_eq!(said("dead"), "dead       failed  status 503");
}
