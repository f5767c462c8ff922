//! Matching beside the plain search that it must agree with, and with as many reports as a run
//! may have: a search for each of them among all others would not end.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::pattern::{is_pattern, literal_bytes, matches};
use super::tests::{FULL, Sent, compile, expected, matched, of_text};
use super::{
    Assigned, ComponentTree, Ids, Matcher, NodeExpected, Received, ShapePool, ValueTree,
    directive_tree,
};
use crate::reports::level::ComplianceLevel;
use crate::reports::runlog::Report;
use crate::reports::status::Status;

/// Reports of one directive in one run.
const MANY: usize = 190_000;

/// Values of components with one name, as they are written, and for each report, sorted as
/// matching does it, which of them it takes: by looking at all of them each time.
fn plain(values: &[&str], keys: &[&str]) -> Vec<(u32, Option<u32>)> {
    let numbered = || (0_u32..).zip(values);
    let mut patterns: Vec<_> = numbered().filter(|(_, text)| is_pattern(text)).collect();
    patterns.sort_by_key(|(_, text)| std::cmp::Reverse(literal_bytes(text)));
    let mut sorted: Vec<_> = (0_u32..).zip(keys).collect();
    sorted.sort_by_key(|(_, key)| (std::cmp::Reverse(key.len()), !values.contains(key), **key));
    let mut used = vec![0; values.len()];
    let mut taken = Vec::new();
    let mut last: Option<(&str, u32)> = None;
    for (report, key) in sorted {
        let equal = || {
            let constants = numbered().filter(|(_, text)| !is_pattern(text));
            constants.filter(|(_, text)| *text == key)
        };
        let fitting = || {
            patterns
                .iter()
                .copied()
                .filter(|(_, text)| matches(text, key))
        };
        let free = |(value, _): &(u32, &&str)| used[*value as usize] == 0;
        let same = last.filter(|(before, _)| before == key);
        let found = equal()
            .find(free)
            .or_else(|| fitting().find(free))
            .map(|(value, _)| value)
            .or(same.map(|(_, value)| value))
            .or_else(|| fitting().next().map(|(value, _)| value));
        if let Some(value) = found {
            used[value as usize] += 1;
        }
        last = found.map(|value| (*key, value));
        taken.push((report, found));
    }
    taken.sort_unstable();
    taken
}

/// What nobody expected, appended to a tree by looking through all that is there.
fn append_plainly<'a>(
    components: &mut Vec<ComponentTree<'a>>,
    expected: usize,
    assigned: &[Assigned],
    reports: &'a [Report<'a>],
) {
    for assigned in assigned.iter().filter(|one| one.component.is_none()) {
        let Some(report) = assigned.report.and_then(|at| reports.get(at as usize)) else {
            continue;
        };
        let place = components
            .iter()
            .rposition(|one| one.name == report.component && one.components.is_empty());
        let value = ValueTree {
            value: &report.key_value,
            unexpanded: None,
            messages: vec![super::Message {
                status: assigned.status,
                text: Some(&report.msg),
            }],
        };
        let level = ComplianceLevel::of(assigned.status, 1);
        match place.filter(|place| *place >= expected) {
            Some(place) => {
                components[place].level += &level;
                components[place].values.push(value);
            }
            None => components.push(ComponentTree {
                name: &report.component,
                level,
                components: Vec::new(),
                values: vec![value],
            }),
        }
    }
}

fn text_of(sent: &[(String, &str)]) -> String {
    let lines = sent.iter().map(|(component, key)| {
        format!(
            "2018-08-24T15:55:01Z R: @@T@@result_success@@r@@d@@0@@{component}@@{key}@@\
             2018-08-24 15:55:01+00:00##n@#m\n"
        )
    });
    lines.collect()
}

/// The tree of a directive, and the same with what is unexpected appended plainly.
fn trees_of(components: Value, sent: &[(String, &str)], check: impl Fn(&[ComponentTree<'_>])) {
    let expected = expected(components, FULL);
    let (mut ids, mut shapes) = (Ids::default(), ShapePool::default());
    let node = NodeExpected::compile(&expected, &mut ids, &mut shapes).unwrap();
    let text = text_of(sent);
    let run = of_text(&text);
    let received: Vec<Received<'_>> = (0..)
        .zip(&run.reports)
        .map(|(place, report)| Received {
            report: place,
            report_id: report.report_id,
            component: &report.component,
            key: &report.key_value,
            status: Status::EnforceSuccess,
        })
        .collect();
    let entry = &node.entries()[0];
    let directive = &expected.rules[0].directives[0];
    let mut matcher = Matcher::default();
    let assigned = matcher.directive(&node, entry, &received).assigned;
    let tree = directive_tree(directive, &entry.shape, assigned, &run.reports);
    check(&tree);
    if sent.len() < 100 {
        let known: Vec<_> = assigned
            .iter()
            .filter(|one| one.component.is_some())
            .copied()
            .collect();
        let mut plainly = directive_tree(directive, &entry.shape, &known, &run.reports);
        append_plainly(
            &mut plainly,
            directive.components.len(),
            assigned,
            &run.reports,
        );
        assert_eq!(tree, plainly);
    }
}

#[test]
fn a_run_may_make_up_as_many_names_as_it_has_reports() {
    let sent: Vec<_> = (0..MANY)
        .map(|number| (format!("C{number}"), "k"))
        .chain((0..MANY).map(|number| (format!("C{number}"), "l")))
        .take(MANY + 1_000)
        .collect();
    trees_of(json!([{"vid": "A", "vs": [["x"]]}]), &sent, |tree| {
        assert_eq!(tree.len(), MANY + 1);
        let values: usize = tree.iter().map(|one| one.values.len()).sum();
        assert_eq!(values, MANY + 1_000 + 1);
        assert_eq!(tree[1].values.len(), 2);
    });
}

#[test]
fn one_key_may_come_as_often_as_a_run_has_reports() {
    let same = |text: &str| -> Value { (0..MANY / 2).map(|_| json!([text, "u"])).collect() };
    let twice = |value: Value| json!([{"vid": "A", "vs": value}]);
    for text in ["x", "${v}", "x${v}"] {
        let node = compile(twice(same(text)), FULL);
        let sent: Vec<Sent<'_>> = vec![("0", "A", "x", Status::EnforceSuccess); MANY];
        let (assigned, level) = matched(&node, &sent);
        assert_eq!(assigned.len(), MANY);
        let expected = match is_pattern(text) {
            true => Status::EnforceSuccess,
            false => Status::Unexpected,
        };
        assert!(level[expected] > 0, "{text}");
    }
    // As many components of one name, of which none has the value.
    let components: Vec<_> = (0..10_000)
        .map(|_| json!({"vid": "A", "vs": [["x"]]}))
        .collect();
    let node = compile(components.into(), FULL);
    let keys: Vec<String> = (0..MANY).map(|number| format!("k{number}")).collect();
    let sent: Vec<Sent<'_>> = keys
        .iter()
        .map(|key| ("0", "A", &**key, Status::EnforceSuccess))
        .collect();
    let (_, level) = matched(&node, &sent);
    assert_eq!(level[Status::Unexpected] as usize, MANY);
}

proptest! {
    #[test]
    fn values_are_taken_as_by_a_plain_search(
        values in prop::collection::vec(
            prop::sample::select(vec!["x", "y", "xz", "${v}", "x${v}", "${v}z", "$(a)${b}"]), 0..8,
        ),
        keys in prop::collection::vec(prop::sample::select(vec!["x", "y", "xz", "xyz", "z"]), 0..12),
    ) {
        let written: Vec<Value> = values.iter().map(|value| json!([value, "u"])).collect();
        let node = compile(json!([{"vid": "A", "vs": written}]), FULL);
        let sent: Vec<Sent<'_>> = keys
            .iter()
            .map(|key| ("0", "A", *key, Status::EnforceSuccess))
            .collect();
        let (assigned, _) = matched(&node, &sent);
        let mut taken: Vec<_> = assigned
            .iter()
            .filter_map(|one| Some((one.report?, one.value)))
            .collect();
        taken.sort_unstable();
        prop_assert_eq!(taken, plain(&values, &keys));
    }

    #[test]
    fn what_nobody_expected_is_appended_as_by_a_plain_search(
        names in prop::collection::vec(0..4_usize, 1..20),
    ) {
        let components = json!([
            {"vid": "A", "vs": [["x"]]},
            {"bid": "B", "rl": "weighted", "scs": [{"vid": "C", "vs": [["x"]]}]},
        ]);
        let sent: Vec<_> = names
            .iter()
            .map(|name| (["A", "B", "C", "D"][*name].to_owned(), "k"))
            .collect();
        trees_of(components, &sent, |_| {});
    }
}
