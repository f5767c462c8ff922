//! What is generated for a node is what compliance is computed from.

use super::*;
use crate::agent::{self, AgentPolicy, Hollow, Outcome, Rates, RunOutcome, RunSettings};
use crate::reports::expected::{self, Component};
use crate::reports::level::{ComplianceLevel, FleetLevel};
use crate::reports::matching::{Ids, Matcher, NodeExpected, Received, ShapePool};
use crate::reports::moment::Moment;
use crate::reports::run_info::RunInfo;
use crate::reports::runlog::{Limits, Report, ReportKind, RunLog, write_report};
use crate::reports::status::Status;

/// One report that an agent would send: rule, directive, technique, type, report id, component,
/// key.
#[derive(Debug, Clone)]
struct Sent {
    rule: String,
    directive: String,
    kind: ReportKind,
    report_id: String,
    component: String,
    key: String,
}

/// All values of components, blocks opened: component, report id, key.
fn values(components: &[Component], out: &mut Vec<(String, String, String)>) {
    for component in components {
        match component {
            Component::Block { components, .. } => values(components, out),
            Component::Values { name, values } => {
                out.extend(values.iter().map(|value| match value {
                    expected::ExpectedValue::Id { id, value } => {
                        (name.clone(), id.clone(), value.clone())
                    }
                    expected::ExpectedValue::Key { expanded, .. } => {
                        (name.clone(), "0".into(), expanded.clone())
                    }
                }));
            }
        }
    }
}

struct Reported {
    document: String,
    expected: expected::ExpectedReports,
    config_id: String,
    all: Vec<Sent>,
}

/// Web servers with methods, blocks, `foreach`, sections, merged directives and an audited one.
fn reported(node: &str) -> Reported {
    let mut engine = engine();
    let mut audited = directive("audited", "instances", &["/etc/audited"]);
    audited.policy_mode = Some(PolicyMode::Audit);
    let time = directive("time", "ntp", &["${rudder.node.policyserver.hostname}"]);
    let merged = [
        directive("m1", "merged", &["/m1"]),
        directive("m2", "merged", &["/m2"]),
    ];
    let names = ["audited", "time", "m1", "m2"];
    let mut changes: Vec<_> = [audited, time].map(Change::SetDirective).into();
    changes.extend(merged.map(Change::SetDirective));
    changes.push(Change::SetRule(rule("more", &names, Target::All)));
    engine.apply(changes).unwrap();
    generate(&mut engine);
    let policy = &policy(&engine, node).unwrap();
    let json = serde_json::to_string(&ExpectedReports(policy)).unwrap();
    let expected = expected::ExpectedReports::from_json(&json, 1 << 20).unwrap();
    assert_eq!(
        expected::tests::written(&expected),
        serde_json::to_value(ExpectedReports(policy)).unwrap()
    );
    let mut all = Vec::new();
    for rule in &expected.rules {
        for directive in &rule.directives {
            let system = directive.types.iter().any(|name| name == "rudderSystem");
            let mode = expected.modes.policy_mode(directive.policy_mode, system);
            let kind = match mode {
                PolicyMode::Audit => ReportKind::AuditCompliant,
                PolicyMode::Enforce => ReportKind::ResultSuccess,
            };
            let mut found = Vec::new();
            values(&directive.components, &mut found);
            all.extend(found.into_iter().map(|(component, report_id, key)| Sent {
                rule: rule.id.clone(),
                directive: directive.id.clone(),
                kind,
                report_id,
                component,
                key,
            }));
        }
    }
    let config_id = policy.config_id.to_string();
    assert_eq!(all.len() as u64, policy.value_count());
    Reported {
        document: serde_json::to_string(&PolicyDocument(policy)).unwrap(),
        expected,
        config_id,
        all,
    }
}

fn start() -> Moment {
    Moment::from_rfc3339("2018-08-24T13:00:10+00:00").unwrap()
}

/// Writes the run log of these reports, reads it, matches it, and sums up the node.
fn level(reported: &Reported, node: &str, sent: &[Sent]) -> ComplianceLevel {
    let start = start();
    let marker = |component: &str| Sent {
        rule: "rudder".into(),
        directive: "run".into(),
        kind: ReportKind::Control,
        report_id: "0".into(),
        component: component.into(),
        key: reported.config_id.clone(),
    };
    let (first, last) = (marker("start"), marker("end"));
    let mut text = String::new();
    for one in [&first].into_iter().chain(sent).chain([&last]) {
        let report = Report {
            start_datetime: start,
            execution_datetime: start,
            rule_id: &one.rule,
            directive_id: &one.directive,
            component: one.component.as_str().into(),
            key_value: one.key.as_str().into(),
            event_type: one.kind.name(),
            msg: "told".into(),
            policy: "technique",
            node_id: node,
            report_id: &one.report_id,
        };
        write_report(&mut text, &report).unwrap();
    }
    level_of_log(reported, node, &text)
}

/// Reads a run log, matches it, and sums up the node.
fn level_of_log(reported: &Reported, node: &str, text: &str) -> ComplianceLevel {
    let info = RunInfo {
        node_id: node.into(),
        timestamp: start(),
    };
    let log = RunLog::parse(info, text, &Limits::default()).unwrap();
    assert_eq!((log.is_run(), log.broken), (true, 0));
    assert_eq!(log.config_id.as_deref(), Some(&*reported.config_id));
    let (mut ids, mut shapes) = (Ids::default(), ShapePool::default());
    let compiled = NodeExpected::compile(&reported.expected, &mut ids, &mut shapes).unwrap();
    let (mut matcher, mut sum) = (Matcher::default(), ComplianceLevel::EMPTY);
    for entry in compiled.entries() {
        let of_entry = |report: &&Report<'_>| {
            ids.known(report.rule_id) == Some(entry.rule)
                && ids.known(report.directive_id) == Some(entry.directive)
        };
        let received: Vec<_> = (0..)
            .zip(log.reports.iter().filter(of_entry))
            .filter_map(|(place, report)| {
                Some(Received {
                    report: place,
                    report_id: report.report_id,
                    component: &report.component,
                    key: &report.key_value,
                    status: Status::of_report(report.kind())?,
                })
            })
            .collect();
        sum += &matcher.directive(&compiled, entry, &received).level;
    }
    sum
}

fn counts(level: &ComplianceLevel) -> Vec<(Status, u32)> {
    let all = Status::ALL
        .into_iter()
        .map(|status| (status, level[status]));
    all.filter(|(_, count)| *count > 0).collect()
}

#[test]
fn a_node_that_reports_all_that_is_generated_is_wholly_compliant() {
    for node in ["root", "web1", "web2", "db1"] {
        let reported = reported(node);
        let level = level(&reported, node, &reported.all);
        assert_eq!(FleetLevel::from(level).global_percent(), Some(100));
        let worst = level.worst();
        assert!(worst.is_compliant(), "{node}: {:?}", counts(&level));
        assert_eq!(level[Status::AuditCompliant], 1);
    }
}

#[test]
fn an_error_a_missing_and_an_unexpected_component_are_told_apart() {
    let reported = reported("web1");
    let before = level(&reported, "web1", &reported.all);
    let place = |id: &str| {
        let mut all = reported.all.iter();
        all.position(|sent| sent.report_id == id).unwrap()
    };
    let mut sent = reported.all.clone();
    // The package fails, the message of the day says nothing, and someone adds a component.
    sent[place("c1")].kind = ReportKind::ResultError;
    let quiet = sent.iter().position(|one| one.key == "/etc/motd").unwrap();
    let extra = Sent {
        component: "Nobody's".into(),
        key: "/nowhere".into(),
        ..sent[quiet].clone()
    };
    sent[quiet] = extra;
    let after = level(&reported, "web1", &sent);
    assert_eq!(after[Status::EnforceError], 1);
    assert_eq!(after[Status::Missing], 1);
    assert_eq!(after[Status::Unexpected], 1);
    assert_eq!(
        after[Status::EnforceSuccess],
        before[Status::EnforceSuccess] - 2
    );
    assert_eq!(after.total(), before.total() + 1);
    // Of a focused block only what it names counts, and all of that.
    let mut sent = reported.all.clone();
    sent[place("c2-1")].kind = ReportKind::ResultError;
    let focused = level(&reported, "web1", &sent);
    assert_eq!(focused[Status::EnforceError], 1, "{:?}", counts(&focused));
}

/// What a hollow agent with these rates makes of what is generated for a node.
fn run_hollow(node: &str, rates: Rates) -> (ComplianceLevel, RunOutcome) {
    let reported = reported(node);
    let policy = AgentPolicy::from_json(&reported.document, 1 << 20).unwrap();
    let mut methods = Hollow::new(rates, 7, 1).unwrap();
    let settings = RunSettings::default();
    let outcome = agent::run(&policy, &mut methods, &settings, start(), || Duration::ZERO);
    (level_of_log(&reported, node, &outcome.log), outcome)
}

#[test]
fn an_agent_that_runs_what_is_generated_is_as_compliant_as_it_is_in_order() {
    for node in ["root", "web1", "web2", "db1"] {
        let (level, outcome) = run_hollow(node, Rates::NONE);
        let all = outcome.count(Outcome::Success) + outcome.count(Outcome::NotApplicable);
        assert_eq!(
            FleetLevel::from(level).global_percent(),
            Some(100),
            "{:?}",
            counts(&level)
        );
        assert_eq!(level[Status::Missing] + level[Status::Unexpected], 0);
        // One call of them is made and not reported.
        assert_eq!(all, reported(node).all.len() as u64 + 1);
    }
    let failing = Rates {
        error: 1.0,
        ..Rates::NONE
    };
    let (level, _) = run_hollow("web1", failing);
    assert_eq!(level[Status::EnforceSuccess] + level[Status::Missing], 0);
    assert!(level[Status::EnforceError] > 0 && level[Status::AuditError] == 1);
}
