//! Methods that do something at once, on a machine in memory: commands, requests, jobs, passwords.

use super::machine::machine;
use super::*;

fn apply(machine: &mut OnSystem<Memory>, call: &Call, mode: PolicyMode) -> Applied {
    carry_out(machine, call, mode)
}

#[test]
fn commands_are_not_run_in_audit() {
    let in_mode = |method, params: &[(&str, &str)], mode| {
        let mut machine = machine();
        let applied = apply(&mut machine, &call("1", method, params), mode);
        (
            applied.outcome,
            machine.system.ran.len(),
            applied.conditions,
        )
    };
    let none = Vec::<String>::new;
    for (method, command, enforced) in [
        ("command_execution", "true", Outcome::Repaired),
        ("command_execution", "three", Outcome::Error),
        ("command_execution_result", "three", Outcome::Success),
        ("command_execution_result", "true", Outcome::Repaired),
        ("command_execution_once", "true", Outcome::Repaired),
    ] {
        let params = [("command", command), ("kept_codes", "2,3")];
        assert_eq!(
            in_mode(method, &params, Audit),
            (Outcome::NotApplicable, 0, none())
        );
        assert_eq!(in_mode(method, &params, Enforce), (enforced, 1, none()));
    }
    for (method, params) in [
        ("service_restart", &[("name", "nginx")][..]),
        ("service_reload", &[("name", "nginx")]),
        (
            "service_action",
            &[("name", "nginx"), ("action", "restart")],
        ),
    ] {
        let done = in_mode(method, params, Audit);
        assert_eq!(done, (Outcome::NotApplicable, 0, none()), "{method}");
        let done = in_mode(method, params, Enforce);
        assert_eq!(done, (Outcome::Repaired, 1, none()), "{method}");
    }
    let missing = in_mode("service_restart", &[("name", "nothing")], Enforce);
    assert_eq!(missing, (Outcome::Error, 0, none()));
    for (command, found) in [("true", Outcome::Success), ("three", Outcome::NonCompliant)] {
        for mode in [Audit, Enforce] {
            let params = [("command", command)];
            assert_eq!(
                in_mode("audit_from_command", &params, mode),
                (found, 1, none())
            );
        }
    }
    let params = [
        ("condition", "up"),
        ("command", "three"),
        ("false_codes", "3"),
    ];
    let set = vec!["up_false".to_owned()];
    assert_eq!(
        in_mode("condition_from_command", &params, Audit),
        (Outcome::Success, 1, set)
    );
    let wrong = [("command", "true"), ("repaired_codes", "zero")];
    let done = in_mode("command_execution_result", &wrong, Enforce);
    assert_eq!(
        done,
        (Outcome::Error, 0, none()),
        "a wrong code is no other"
    );
}

#[test]
fn what_is_done_once_is_remembered() {
    let mut machine = machine();
    let mut done = |command: &str, until: &str, id: &str| {
        let params = [("command", command), ("until", until), ("unique_id", id)];
        let call = call("1", "command_execution_once", &params);
        apply(&mut machine, &call, Enforce).outcome
    };
    assert_eq!(done("true", "", ""), Outcome::Repaired);
    assert_eq!(done("true", "", ""), Outcome::Success);
    assert_eq!(done("true", "", "other"), Outcome::Repaired);
    assert_eq!(done("three", "any", "a"), Outcome::Error);
    assert_eq!(done("three", "any", "a"), Outcome::Success);
    for _ in 0..2 {
        assert_eq!(done("three", "ok", "b"), Outcome::Error);
    }
    assert_eq!(done("true", "ok", "b"), Outcome::Repaired);
    assert_eq!(done("three", "ok", "b"), Outcome::Success);
    let mut once = |mode| {
        let call = call("1", "condition_once", &[("condition", "first")]);
        let applied = apply(&mut machine, &call, mode);
        (applied.outcome, applied.conditions)
    };
    assert_eq!(once(Audit), (Outcome::NotApplicable, vec![]));
    assert_eq!(once(Enforce), (Outcome::Repaired, vec!["first".into()]));
    assert_eq!(once(Enforce), (Outcome::Success, vec![]));
}

#[test]
fn a_job_runs_once_in_its_period() {
    let mut machine = machine();
    let params = [
        ("job_id", "j"),
        ("agent_periodicity", "5"),
        ("periodicity_minutes", "30"),
        ("mode", "catchup"),
    ];
    let scheduled = call("1", "schedule_simple", &params);
    let mut at = |hour: i8, minute: i8, mode| {
        machine.now = jiff::civil::date(2026, 3, 2).at(hour, minute, 0, 0);
        apply(&mut machine, &scheduled, mode).outcome
    };
    assert_eq!(at(1, 0, Audit), Outcome::NotApplicable);
    assert_eq!(at(1, 10, Enforce), Outcome::Repaired);
    assert_eq!(at(1, 15, Enforce), Outcome::Success);
    assert_eq!(at(1, 30, Enforce), Outcome::Repaired);
    let wrong = call("1", "schedule_simple", &params[..2]);
    let applied = apply(&mut machine, &wrong, Enforce);
    assert_told(&applied, Outcome::Error, "periodicity is 0");
}

#[test]
fn an_answer_has_the_status_that_is_expected() {
    let mut machine = machine();
    let mut status = |url: &str, method: &str, expected: &str, mode| {
        let params = [
            ("method", method),
            ("url", url),
            ("expected_status", expected),
        ];
        let call = call("1", "http_request_check_status_headers", &params);
        apply(&mut machine, &call, mode).outcome
    };
    for mode in [Audit, Enforce] {
        assert_eq!(status("http://up/", "GET", "200", mode), Outcome::Success);
        assert_eq!(
            status("http://up/", "GET", "404", mode),
            Outcome::NonCompliant
        );
        assert_eq!(status("http://down/", "GET", "200", mode), Outcome::Error);
        assert_eq!(status("http://up/", "GET", "fine", mode), Outcome::Error);
    }
    assert_eq!(
        status("http://up/", "POST", "200", Audit),
        Outcome::NotApplicable
    );
    assert_eq!(
        status("http://up/", "POST", "200", Enforce),
        Outcome::Success
    );
}

#[test]
fn no_message_has_a_password_or_its_hash() {
    let mut machine = machine();
    let secret = "$6$salt$secret";
    for (login, broken) in [
        ("games", true),
        ("games", false),
        ("games", false),
        ("none", false),
    ] {
        machine.system.broken.clear();
        machine
            .system
            .broken
            .extend(broken.then(|| login.to_owned()));
        for mode in [Audit, Enforce] {
            let params = [("login", login), ("password", secret)];
            let call = call("1", "user_password_hash", &params);
            let applied = apply(&mut machine, &call, mode);
            assert!(!applied.message.contains("secret"), "{}", applied.message);
        }
    }
    assert_eq!(machine.system.users["games"].password.0, secret);
    assert!(machine.system.ran.iter().all(|one| !one.contains("secret")));
}
