use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    Assigned, CompileError, Ids, Matcher, NodeExpected, Received, ShapePool, Types, ValueTree,
    directive_tree,
};
use crate::reports::expected::ExpectedReports;
use crate::reports::level::ComplianceLevel;
use crate::reports::run_info::RunInfo;
use crate::reports::runlog::{Limits, RunLog};
use crate::reports::status::Status;
use Status::{
    AuditCompliant, Disabled, EnforceError as Error, EnforceRepaired as Repaired,
    EnforceSuccess as Success, Missing, NoAnswer, Unexpected,
};

pub(super) fn expected(components: Value, mode: &str) -> ExpectedReports {
    let json = json!({
        "ms": {"gpm": {"m": "enforce", "o": true}, "gcm": mode,
               "gar": {"i": 5, "sm": 0, "sh": 0, "st": 4}},
        "rs": [{"rid": "r", "ds": [{"did": "d", "cs": components}]}],
    });
    ExpectedReports::from_json(&json.to_string(), 16 << 20).unwrap()
}

pub(super) fn compile(components: Value, mode: &str) -> NodeExpected {
    let (mut ids, mut shapes) = (Ids::default(), ShapePool::default());
    NodeExpected::compile(&expected(components, mode), &mut ids, &mut shapes).unwrap()
}

pub(super) type Sent<'a> = (&'a str, &'a str, &'a str, Status);

pub(super) fn matched(node: &NodeExpected, sent: &[Sent<'_>]) -> (Vec<Assigned>, ComplianceLevel) {
    let received: Vec<Received<'_>> = (0..)
        .zip(sent)
        .map(|(report, (report_id, component, key, status))| Received {
            report,
            report_id,
            component,
            key,
            status: *status,
        })
        .collect();
    let mut matcher = Matcher::default();
    let matched = matcher.directive(node, &node.entries()[0], &received);
    (matched.assigned.to_vec(), matched.level)
}

fn level(node: &NodeExpected, sent: &[Sent<'_>]) -> Vec<(Status, u32)> {
    let (_, level) = matched(node, sent);
    let counts = Status::ALL
        .into_iter()
        .map(|status| (status, level[status]));
    counts.filter(|(_, count)| *count > 0).collect()
}

pub(super) const FULL: &str = "full-compliance";

#[test]
fn constants_take_one_report_each() {
    let node = compile(json!([{"vid": "File", "vs": [["/a"], ["/b"], []]}]), FULL);
    let (a, b) = (("0", "File", "/a", Success), ("0", "File", "/b", Repaired));
    assert_eq!(level(&node, &[]), [(Missing, 3)]);
    assert_eq!(
        level(&node, &[a, b]),
        [(Success, 1), (Missing, 1), (Repaired, 1)]
    );
    let none = ("0", "File", "None", Error);
    assert_eq!(
        level(&node, &[none, b, a]),
        [(Success, 1), (Repaired, 1), (Error, 1)]
    );
    // A variable without a value is reported as none, however it was written.
    for empty in [json!([""]), json!(["", "${x}"])] {
        let node = compile(json!([{"vid": "File", "vs": [empty]}]), FULL);
        assert_eq!(level(&node, &[none]), [(Error, 1)]);
    }
    // Twice the same: neither can be trusted.
    let twice = [a, b, none, ("0", "File", "/a", Error)];
    assert_eq!(
        level(&node, &twice),
        [(Repaired, 1), (Error, 1), (Unexpected, 2)]
    );
    let other_key = ("0", "File", "/c", Success);
    assert_eq!(level(&node, &[a, b, none, other_key])[3], (Unexpected, 1));
    let (assigned, _) = matched(&node, &[("0", "Directory", "/a", Success)]);
    assert_eq!(
        (assigned[0].component, assigned[0].status),
        (None, Unexpected)
    );
    // A constant that is expected twice may come twice.
    let node = compile(json!([{"vid": "File", "vs": [["/a"], ["/a"]]}]), FULL);
    assert_eq!(level(&node, &[a, a]), [(Success, 2)]);
    assert_eq!(level(&node, &[a, a, a]), [(Success, 1), (Unexpected, 2)]);
}

#[test]
fn variables_take_any_number() {
    let values = json!([["/etc/${f}", "x"], ["${f}", "y"], ["/etc/hosts"]]);
    let node = compile(json!([{"vid": "File", "vs": values}]), FULL);
    let report = |key: &'static str| ("0", "File", key, Success);
    let (assigned, level) = matched(
        &node,
        &[
            report("/var"),
            report("/etc/hosts"),
            report("/etc/motd"),
            report("/etc/a"),
            report("z"),
        ],
    );
    let of = |report: u32| {
        let found = assigned
            .iter()
            .find(|assigned| assigned.report == Some(report));
        found.unwrap().value
    };
    assert_eq!(
        (of(0), of(1), of(2), of(3), of(4)),
        (Some(1), Some(2), Some(0), Some(1), Some(1))
    );
    assert_eq!(level, ComplianceLevel::of(Success, 5));
}

#[test]
fn a_variable_that_is_taken_hides_no_repetition() {
    let node = compile(json!([{"vid": "A", "vs": [["foo"], ["${param}"]]}]), FULL);
    let report = |key: &'static str| ("0", "A", key, Success);
    let (foo, other) = (report("foo"), report("of the variable"));
    assert_eq!(
        level(&node, &[foo, foo, other]),
        [(Success, 1), (Unexpected, 2)]
    );
    assert_eq!(
        level(&node, &[other, foo, foo, foo, foo]),
        [(Success, 1), (Unexpected, 4)]
    );
    // While it is free, it may stand for the same as the constant.
    let all = [report("bar"), foo, foo, report("baz")];
    assert_eq!(level(&node, &all), [(Success, 4)]);
    assert_eq!(level(&node, &[foo, foo, foo]), [(Success, 3)]);
}

#[test]
fn identifiers_go_before_names() {
    let components = json!([
        {"vid": "A", "vs": [{"id": "i1", "v": "x"}, {"id": "i2", "v": "y"}]},
        {"vid": "A", "vs": [["k"]]},
    ]);
    let node = compile(components, FULL);
    let sent = [
        ("i1", "Other", "z", Success),
        ("i1", "A", "k", Repaired),
        ("9", "A", "k", Error),
    ];
    assert_eq!(
        level(&node, &sent),
        [(Success, 1), (Missing, 1), (Repaired, 1), (Error, 1)]
    );
}

#[test]
fn a_name_in_several_places_is_matched_once() {
    let components = json!([
        {"bid": "b1", "rl": "weighted", "scs": [{"vid": "A", "vs": [["x"]]}]},
        {"bid": "b2", "rl": "weighted", "scs": [{"vid": "A", "vs": [["y"]]}]},
    ]);
    let node = compile(components, FULL);
    let sent = [("0", "A", "y", Success), ("0", "A", "x", Error)];
    assert_eq!(level(&node, &sent), [(Success, 1), (Error, 1)]);
}

#[test]
fn what_no_report_means_depends_on_the_mode() {
    let components = json!([{"vid": "A", "vs": [["x"]]}]);
    assert_eq!(
        level(&compile(components.clone(), "changes-only"), &[]),
        [(Success, 1)]
    );
    assert_eq!(
        level(&compile(components.clone(), "reports-disabled"), &[]),
        [(Disabled, 1)]
    );
    let mut audit = expected(components, "changes-only");
    audit.modes.node = Some(crate::model::mode::PolicyMode::Audit);
    let (mut ids, mut shapes) = (Ids::default(), ShapePool::default());
    let node = NodeExpected::compile(&audit, &mut ids, &mut shapes).unwrap();
    assert_eq!(level(&node, &[]), [(AuditCompliant, 1)]);
}

/// A block with an error, a repair and two successes in it, one of them deeper.
fn block(logic: &str) -> NodeExpected {
    let components = json!([{"bid": "block", "rl": logic, "scs": [
        {"vid": "A", "vs": [["1"], ["2"]]},
        {"vid": "B", "vs": [["1"]]},
        {"bid": "inner", "rl": "weighted", "scs": [{"vid": "A", "vs": [["3"]]}]},
    ]}]);
    compile(components, FULL)
}

#[test]
fn blocks_count_by_their_logic() {
    let sent = [
        ("0", "A", "1", Success),
        ("0", "A", "2", Error),
        ("0", "A", "3", Success),
        ("0", "B", "1", Repaired),
    ];
    let cases: [(&str, &[(Status, u32)]); 8] = [
        ("weighted", &[(Success, 2), (Repaired, 1), (Error, 1)]),
        ("worst-case-weighted-one", &[(Error, 1)]),
        ("worst-case-weighted-sum", &[(Error, 4)]),
        ("focus-worst", &[(Error, 1)]),
        ("focus:A", &[(Success, 2), (Error, 1)]),
        ("focus:B", &[(Repaired, 1)]),
        ("focus:nothing", &[]),
        ("disabled", &[]),
    ];
    for (logic, counts) in cases {
        assert_eq!(level(&block(logic), &sent), counts, "{logic}");
    }
    let mut matcher = Matcher::default();
    let node = block("worst-case-weighted-sum");
    let shape = &node.entries()[0].shape;
    assert_eq!(
        matcher.uniform(shape, NoAnswer),
        ComplianceLevel::of(NoAnswer, 4)
    );
}

#[test]
fn the_worst_case_is_looked_for_in_all_that_is_in_a_block() {
    let sent = [
        ("0", "A", "1", Success),
        ("0", "B", "2", Error),
        ("0", "C", "3", Success),
        ("0", "C", "4", Success),
        ("0", "D", "5", Unexpected),
    ];
    for (logic, counts) in [
        ("worst-case-weighted-one", [(Error, 1)]),
        ("worst-case-weighted-sum", [(Error, 4)]),
    ] {
        let components = json!([{"bid": "outer", "rl": logic, "scs": [
            {"bid": "focused", "rl": "focus:A", "scs": [
                {"vid": "A", "vs": [["1"]]},
                {"vid": "B", "vs": [["2"]]},
            ]},
            {"bid": "one", "rl": "worst-case-weighted-one", "scs": [
                {"vid": "C", "vs": [["3"], ["4"]]},
            ]},
            {"bid": "off", "rl": "disabled", "scs": [{"vid": "D", "vs": [["5"]]}]},
        ]}]);
        assert_eq!(level(&compile(components, FULL), &sent), counts, "{logic}");
    }
}

#[test]
fn nodes_share_shapes_and_have_their_own_values() {
    let (mut ids, mut shapes) = (Ids::default(), ShapePool::default());
    let nodes: Vec<NodeExpected> = ["one", "two"]
        .into_iter()
        .map(|name| {
            let values = json!([[name, "${node.hostname}"], ["same"]]);
            let expected = expected(json!([{"vid": "A", "vs": values}]), FULL);
            NodeExpected::compile(&expected, &mut ids, &mut shapes).unwrap()
        })
        .collect();
    assert_eq!(shapes.size().0, 1);
    let sent = [("0", "A", "two", Success), ("0", "A", "same", Success)];
    assert_eq!(level(&nodes[1], &sent), [(Success, 2)]);
    assert_eq!(
        level(&nodes[0], &sent),
        [(Success, 1), (Missing, 1), (Unexpected, 1)]
    );
    assert!(nodes[0].entries()[0].types.has(Types::USER));
    drop(nodes);
    shapes.sweep();
    assert_eq!(shapes.size(), (0, 0));
}

#[test]
fn deep_blocks_are_refused() {
    let mut components = json!([]);
    for _ in 0..50 {
        components = json!([{"bid": "b", "rl": "weighted", "scs": components}]);
    }
    let expected = expected(components, FULL);
    let (mut ids, mut shapes) = (Ids::default(), ShapePool::default());
    let error = NodeExpected::compile(&expected, &mut ids, &mut shapes).unwrap_err();
    assert_eq!(error, CompileError::TooDeep { limit: 32 });
}

#[test]
fn identifiers_are_bounded() {
    let mut ids = Ids::new(3);
    let numbers = ["a", "b", "c", "a"].map(|text| ids.number(text));
    assert_eq!(numbers, [1, 2, Ids::OTHER, 1]);
    assert_eq!(
        (ids.text(2), ids.text(0), ids.known("c")),
        ("b", "(other)", None)
    );
}

pub(super) fn of_text(text: &str) -> RunLog<'_> {
    let info = RunInfo::from_file_name("n_2018-08-24T15:55:01Z.log")
        .unwrap()
        .0;
    RunLog::parse(info, text, &Limits::default()).unwrap()
}

/// Each message with its value.
fn shown(values: &[ValueTree<'_>]) -> Vec<(String, Status, Option<String>)> {
    let mut shown = Vec::new();
    for value in values {
        for message in &value.messages {
            let text = message.text.map(str::to_owned);
            shown.push((value.value.to_owned(), message.status, text));
        }
    }
    shown
}

#[test]
fn a_tree_shows_what_came_and_what_did_not() {
    let components = json!([
        {"bid": "block", "rl": "worst-case-weighted-one", "scs": [
            {"vid": "A", "vs": [["/home/me", "${home}"], ["x"]]},
            {"vid": "B", "vs": [{"id": "7", "v": "y"}]},
        ]},
    ]);
    let expected = expected(components, FULL);
    let (mut ids, mut shapes) = (Ids::default(), ShapePool::default());
    let node = NodeExpected::compile(&expected, &mut ids, &mut shapes).unwrap();
    let line = |id: &str, component: &str, key: &str, msg: &str| {
        format!(
            "2018-08-24T15:55:01Z R: @@T@@result_success@@r@@d@@{id}@@{component}@@{key}@@\
             2018-08-24 15:55:01+00:00##n@#{msg}\n"
        )
    };
    let text = line("0", "A", "/home/me", "m0")
        + &line("7", "As reported", "z", "m1")
        + &line("0", "A", "other", "m2")
        + &line("0", "C", "c", "m3")
        + &line("0", "C", "d", "m4");
    let run = of_text(&text);
    let received: Vec<Received<'_>> = (0..)
        .zip(&run.reports)
        .map(|(place, report)| Received {
            report: place,
            report_id: report.report_id,
            component: &report.component,
            key: &report.key_value,
            status: Success,
        })
        .collect();
    let entry = &node.entries()[0];
    let mut matcher = Matcher::default();
    let matched = matcher.directive(&node, entry, &received);
    let directive = &expected.rules[0].directives[0];
    let tree = directive_tree(directive, &entry.shape, matched.assigned, &run.reports);
    let mut sum = ComplianceLevel::EMPTY;
    tree.iter().for_each(|component| sum += &component.level);
    assert_eq!(sum, matched.level);
    let row = |value: &str, status, text: &str| {
        (
            value.to_owned(),
            status,
            (!text.is_empty()).then(|| text.to_owned()),
        )
    };
    assert_eq!((tree.len(), tree[0].name, tree[1].name), (2, "block", "C"));
    assert_eq!(tree[0].level, ComplianceLevel::of(Unexpected, 1));
    let [a, b] = &tree[0].components[..] else {
        panic!("two components in the block");
    };
    assert_eq!((a.name, b.name), ("A", "As reported"));
    assert_eq!(a.values[0].unexpanded, Some("${home}"));
    let of_a = [
        row("/home/me", Success, "m0"),
        row("x", Missing, ""),
        row("other", Unexpected, "m2"),
    ];
    assert_eq!(shown(&a.values), of_a);
    assert_eq!(shown(&b.values), [row("z", Success, "m1")]);
    let of_c = [row("c", Unexpected, "m3"), row("d", Unexpected, "m4")];
    assert_eq!(shown(&tree[1].values), of_c);
    let silent = matcher.without_reports(entry, NoAnswer);
    let tree = directive_tree(directive, &entry.shape, silent.assigned, &run.reports);
    assert_eq!(
        shown(&tree[0].components[1].values),
        [row("y", NoAnswer, "")]
    );
}

proptest! {
    #[test]
    fn every_report_and_every_value_is_counted(
        values in prop::collection::vec(prop::sample::select(vec!["x", "y", "${v}", "x${v}"]), 0..6),
        sent in prop::collection::vec((0..3_usize, 0..3_usize), 0..8),
    ) {
        let values: Vec<Value> = values.iter().map(|value| json!([value, "u"])).collect();
        let node = compile(json!([
            {"vid": "A", "vs": values}, {"vid": "B", "vs": [{"id": "1", "v": "x"}]},
        ]), FULL);
        let sent: Vec<Sent<'_>> = sent
            .iter()
            .map(|(key, id)| (["0", "1", "2"][*id], "A", ["x", "y", "xz"][*key], Success))
            .collect();
        let (assigned, level) = matched(&node, &sent);
        for report in 0..sent.len() as u32 {
            let times = assigned.iter().filter(|assigned| assigned.report == Some(report));
            prop_assert_eq!(times.count(), 1);
        }
        for value in 0..values.len() as u32 + 1 {
            prop_assert!(assigned.iter().any(|assigned| assigned.value == Some(value)));
        }
        prop_assert_eq!(level.total() as usize, assigned.len());
        // The order in which reports come does not change what is counted.
        let reversed: Vec<Sent<'_>> = sent.iter().rev().copied().collect();
        prop_assert_eq!(matched(&node, &reversed).1, level);
    }
}
