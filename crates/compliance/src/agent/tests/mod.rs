use std::collections::HashSet;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use proptest::prelude::*;

use super::condition::{canonify, holds};
use super::policy::{Call, DirectivePolicy};
use super::*;
use crate::model::mode::ComplianceMode;
use crate::reports::moment::Moment;
use crate::reports::runlog::{Limits, RunLog};
use PolicyMode::{Audit, Enforce};
use memory::{Memory, MemoryPackage};

mod at_once;
mod commands;
mod disk;
mod every;
mod machine;
mod memory;
mod packages;
mod programs;
mod stage;
mod variables;

/// Carries out a call while no conditions hold.
fn carry_out(methods: &mut impl Methods, call: &Call, mode: PolicyMode) -> Applied {
    let invocation = Invocation {
        id: &call.id,
        method: &call.method,
        params: &call.params,
        known: &HashSet::new(),
        properties: &serde_json::Map::new(),
    };
    methods.apply(&invocation, mode)
}

#[track_caller]
fn assert_told(applied: &Applied, outcome: Outcome, said: &str) {
    assert_eq!(applied.outcome, outcome, "{}", applied.message);
    assert!(applied.message.contains(said), "{}", applied.message);
}

/// A call of a method with these parameters.
fn call(id: &str, method: &str, params: &[(&str, &str)]) -> Call {
    let text = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    Call {
        id: id.into(),
        method: method.into(),
        component: format!("{method} of {id}"),
        condition: String::new(),
        mode: None,
        reported: true,
        params: params.iter().map(text).collect(),
    }
}

/// A call by a line: the method, and after a blank its parameters with `|` between.
fn call_of(line: &str) -> Call {
    let (method, params) = line.split_once(' ').unwrap();
    let params = params.split('|').map(|one| one.split_once('=').unwrap());
    let params: Vec<_> = params.collect();
    call("1", method, &params)
}

fn policy(mode: PolicyMode, calls: Vec<Call>) -> AgentPolicy {
    AgentPolicy {
        config_id: "c1".into(),
        node_id: "n1".into(),
        compliance_mode: ComplianceMode::FullCompliance,
        schedule: crate::agent::RunTimes {
            interval: 5,
            first_run: 0,
        },
        conditions: vec!["group_web".into()],
        properties: serde_json::Map::new(),
        policies: vec![DirectivePolicy {
            rule: "r".into(),
            directive: "d".into(),
            technique: "t".into(),
            mode,
            schedule: None,
            calls,
        }],
    }
}

fn start() -> Moment {
    Moment::from_rfc3339("2026-03-01T12:00:00+00:00").unwrap()
}

fn run_on(policy: &AgentPolicy, methods: &mut impl Methods) -> RunOutcome {
    run(policy, methods, &RunSettings::default(), start(), || {
        Duration::ZERO
    })
}

/// Type, report id and key of each report but the markers.
fn told(outcome: &RunOutcome) -> Vec<(String, String, String)> {
    let log = RunLog::parse(outcome.info.clone(), &outcome.log, &Limits::default()).unwrap();
    assert!(log.is_run());
    assert_eq!((log.broken, log.config_id.as_deref()), (0, Some("c1")));
    assert_eq!(u64::try_from(log.reports.len()), Ok(outcome.reports));
    let (first, rest) = log.reports.split_first().unwrap();
    let (last, between) = rest.split_last().unwrap();
    assert_eq!((&*first.component, &*last.component), ("start", "end"));
    let text = |one: &str| one.to_owned();
    between
        .iter()
        .map(|one| {
            (
                text(one.event_type),
                text(one.report_id),
                text(&one.key_value),
            )
        })
        .collect()
}

fn kinds(outcome: &RunOutcome) -> Vec<String> {
    told(outcome).into_iter().map(|(kind, ..)| kind).collect()
}

/// Ends as the first parameter says.
struct AsTold(Vec<(String, PolicyMode)>);

impl Methods for AsTold {
    fn apply(&mut self, call: &Invocation<'_>, mode: PolicyMode) -> Applied {
        self.0.push((call.id.to_owned(), mode));
        let outcome = match call.key() {
            "repaired" => Outcome::Repaired,
            "noncompliant" => Outcome::NonCompliant,
            "error" => Outcome::Error,
            "na" => Outcome::NotApplicable,
            _ => Outcome::Success,
        };
        Applied::new(outcome, "told")
    }

    fn conditions(&self) -> Vec<String> {
        vec!["linux".into()]
    }
}

const KEYS: [&str; 5] = ["kept", "repaired", "noncompliant", "error", "na"];

fn all_keys() -> Vec<Call> {
    KEYS.map(|key| call(key, "m", &[("name", key)])).into()
}

#[test]
fn outcomes_become_reports_by_mode() {
    let outcome = run_on(&policy(Enforce, all_keys()), &mut AsTold(Vec::new()));
    let enforced = [
        "result_success",
        "result_repaired",
        "result_error",
        "result_error",
        "result_na",
    ];
    assert_eq!(kinds(&outcome), enforced);
    assert_eq!(outcome.counts, [1; 5]);
    let audited = [
        "audit_compliant",
        "audit_noncompliant",
        "audit_noncompliant",
        "audit_error",
        "audit_na",
    ];
    let outcome = run_on(&policy(Audit, all_keys()), &mut AsTold(Vec::new()));
    assert_eq!(kinds(&outcome), audited);
    // Whatever the policy says.
    let settings = RunSettings {
        force_audit: true,
        ..RunSettings::default()
    };
    let mut methods = AsTold(Vec::new());
    let outcome = run(
        &policy(Enforce, all_keys()),
        &mut methods,
        &settings,
        start(),
        || Duration::ZERO,
    );
    assert_eq!(kinds(&outcome), audited);
    assert!(methods.0.iter().all(|(_, mode)| *mode == Audit));
}

#[test]
fn a_variable_in_a_condition_is_a_part_of_a_name() {
    let path = ("value", "/etc/my.conf");
    let later = |condition: &str| Call {
        condition: condition.to_owned(),
        ..call("later", "file_present", &[("path", "/later")])
    };
    let calls = vec![
        call(
            "1",
            "variable_string",
            &[("prefix", "p"), ("name", "path"), path],
        ),
        call("2", "file_present", &[("path", "${p.path}")]),
        later("file_present_${p.path}_repaired.any"),
        later("file_present_$(p.path)_kept"),
        later("file_present_${p.none}_repaired"),
    ];
    let mut methods = OnSystem::new(Memory::default(), Duration::from_secs(1));
    let outcome = run_on(&policy(Enforce, calls), &mut methods);
    let expected = [
        "result_success",
        "result_repaired",
        "result_repaired",
        "result_na",
        "result_error",
    ];
    assert_eq!(kinds(&outcome), expected);
}

#[test]
fn a_call_of_a_long_command_is_reported_by_its_beginning() {
    let command = "é".repeat(40_000);
    let calls = vec![call("i", "m", &[("name", &*command)])];
    let outcome = run_on(&policy(Enforce, calls), &mut AsTold(Vec::new()));
    let found = told(&outcome);
    assert_eq!(found.len(), 1);
    let key = found[0].2.as_str();
    assert!(command.starts_with(key) && key.len() > 30_000);
}

#[test]
fn conditions_decide_and_outcomes_set_them() {
    let mut calls = all_keys();
    for (id, condition) in [
        ("c1", "linux.group_web"),
        ("c2", "windows|group_web"),
        ("c3", "m_repaired_repaired.m_repaired_ok.m_repaired_reached"),
        ("c4", "m_kept_repaired|m_error_ok|m_na_reached|later_kept"),
        ("c5", "linux.("),
        ("c6", "!windows & (m_error_error || nothing)"),
    ] {
        let condition = condition.to_owned();
        calls.push(Call {
            condition,
            ..call(id, "x", &[("name", id)])
        });
    }
    let mut methods = AsTold(Vec::new());
    let outcome = run_on(&policy(Enforce, calls), &mut methods);
    let found = kinds(&outcome)[5..].to_vec();
    let success = "result_success";
    assert_eq!(
        found,
        [
            success,
            success,
            success,
            "result_na",
            "result_error",
            success
        ]
    );
    let made: Vec<_> = methods.0[5..].iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(made, ["c1", "c2", "c3", "c6"]);
}

#[test]
fn conditions_are_read_as_they_are_written() {
    let known: HashSet<String> = ["a", "b"].map(Into::into).into();
    for (text, value) in [
        ("", true),
        ("any", true),
        ("a.c|b", true),
        ("a.(c|b)", true),
        ("!a|c", false),
        ("!(a.c).b", true),
        ("!!a", true),
        (" a & b ", true),
        ("a && c || b", true),
        ("c.!any", false),
    ] {
        assert_eq!(holds(text, &known), Ok(value), "{text}");
    }
    let deep = "(".repeat(10_000);
    for text in ["a.", "(a", "a)", "a b", "${x}", "!", "é", &deep] {
        assert!(holds(text, &known).is_err(), "{text}");
    }
    assert_eq!(
        canonify("package_present_/etc/é-1"),
        "package_present__etc____1"
    );
}

#[test]
fn what_is_not_full_compliance_reports_less() {
    let mut policy = policy(Enforce, all_keys());
    policy.compliance_mode = ComplianceMode::ChangesOnly;
    let outcome = run_on(&policy, &mut AsTold(Vec::new()));
    assert_eq!(
        kinds(&outcome),
        ["result_repaired", "result_error", "result_error"]
    );
    policy.compliance_mode = ComplianceMode::ReportsDisabled;
    let outcome = run_on(&policy, &mut AsTold(Vec::new()));
    assert_eq!(kinds(&outcome), [""; 0]);
    assert_eq!(outcome.counts, [1; 5]);
}

#[test]
fn time_and_campaigns_bound_a_run() {
    let policy_of =
        |count: usize| policy(Enforce, (0..count).map(|_| all_keys().remove(0)).collect());
    let mut ticks = 0;
    let clock = || {
        ticks += 1;
        Duration::from_secs(ticks)
    };
    let settings = RunSettings {
        budget: Duration::from_secs(10),
        ..RunSettings::default()
    };
    let outcome = run(
        &policy_of(20),
        &mut AsTold(Vec::new()),
        &settings,
        start(),
        clock,
    );
    // Each call asks twice for the time, one that is left out once.
    assert_eq!((outcome.counts[0], outcome.skipped), (5, 15));
    assert_eq!(told(&outcome).len(), 5);
    let mut scheduled = policy_of(1);
    scheduled.policies[0].schedule = Some("sunday".into());
    assert_eq!(told(&run_on(&scheduled, &mut AsTold(Vec::new()))).len(), 0);
    let settings = RunSettings {
        open_schedules: ["sunday".to_owned()].into(),
        ..RunSettings::default()
    };
    let outcome = run(
        &scheduled,
        &mut AsTold(Vec::new()),
        &settings,
        start(),
        || Duration::ZERO,
    );
    assert_eq!(told(&outcome).len(), 1);
}

#[test]
fn one_run_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    // One of an older version, which others might write to.
    let path = folder.path().join("run.lock");
    std::fs::write(&path, "").unwrap();
    std::fs::set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
    let lock = RunLock::take(folder.path()).unwrap();
    let mode = path.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(matches!(RunLock::take(folder.path()), Err(LockError::Busy)));
    drop(lock);
    drop(RunLock::take(folder.path()).unwrap());
    std::fs::write(folder.path().join("disable-agent"), "").unwrap();
    assert!(matches!(
        RunLock::take(folder.path()),
        Err(LockError::Disabled)
    ));
}

#[test]
fn hollow_agents_follow_their_rates() {
    let rates = Rates {
        error: 0.02,
        non_compliant: 0.1,
        repaired: 0.05,
        not_applicable: 0.03,
    };
    let calls: Vec<_> = (0..20_000)
        .map(|id| call(&id.to_string(), "m", &[("name", "x")]))
        .collect();
    let counts = |mode, node, number| {
        let mut hollow = Hollow::new(rates, node, number).unwrap();
        run_on(&policy(mode, calls.clone()), &mut hollow).counts
    };
    let near = |found: u64, rate: f64| (found as f64 / 20_000.0 - rate).abs() < 0.01;
    let [success, repaired, non_compliant, error, not_applicable] = counts(Enforce, 1, 1);
    assert!(
        near(error, 0.02) && near(not_applicable, 0.03),
        "{error} {not_applicable}"
    );
    assert!(
        near(repaired, 0.05) && near(success, 0.9),
        "{repaired} {success}"
    );
    assert_eq!(non_compliant, 0);
    let audited = counts(Audit, 1, 1);
    assert!(near(audited[2], 0.1) && audited[1] == 0, "{audited:?}");
    assert_eq!(counts(Enforce, 1, 1), counts(Enforce, 1, 1));
    // Errors last, repairs do not.
    let next = counts(Enforce, 1, 2);
    assert_eq!((next[3], next[4]), (error, not_applicable));
    assert_ne!(next[1], repaired);
    assert_ne!(counts(Enforce, 2, 1)[3], error);
    for wrong in [-0.1, 1.1, f64::NAN] {
        assert!(
            Hollow::new(
                Rates {
                    error: wrong,
                    ..Rates::NONE
                },
                1,
                1
            )
            .is_err()
        );
    }
}

proptest! {
    #[test]
    fn each_call_is_one_report_whatever_its_texts(
        texts in proptest::collection::vec(("[ -~é\r\n@#]{0,12}", "(2026-03-01T12:00:00Z |R: @@|CRITICAL: |   error)?[ -~@#\r\n]{0,12}"), 1..6),
    ) {
        let calls: Vec<_> = texts
            .iter()
            .zip(0..)
            .map(|((component, key), id)| Call {
                component: component.clone(),
                ..call(&format!("id-{id}"), "m", &[("name", key)])
            })
            .collect();
        let outcome = run_on(&policy(Enforce, calls), &mut AsTold(Vec::new()));
        let ids: Vec<_> = told(&outcome).into_iter().map(|(_, id, _)| id).collect();
        let expected: Vec<_> = (0..texts.len()).map(|id| format!("id-{id}")).collect();
        prop_assert_eq!(ids, expected, "{}", outcome.log);
    }

    #[test]
    fn a_condition_and_its_negation_differ(text in "[a-c_.&|!() $]{0,20}") {
        let known = ["a".to_owned()].into();
        if let Ok(value) = holds(&text, &known) && !text.trim().is_empty() {
            prop_assert_eq!(holds(&format!("!({text})"), &known), Ok(!value));
            prop_assert_eq!(holds(&format!("c|({text}).any"), &known), Ok(value));
        }
    }
}
