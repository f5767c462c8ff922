//! Methods on a machine in memory.

use super::*;

fn machine() -> OnSystem<Memory> {
    let mut system = Memory::default();
    system.write("/etc/motd", b"hello\n").unwrap();
    system.make_directory("/srv/old").unwrap();
    system.write("/srv/old/x", b"").unwrap();
    system
        .set_state(Resource::Package, "telnet", Some("1.0"))
        .unwrap();
    system
        .set_state(Resource::Package, "ntp", Some("4.2"))
        .unwrap();
    system
        .set_state(Resource::ServiceRunning, "rpcbind", Some("running"))
        .unwrap();
    system
        .set_state(Resource::User, "games", Some("present"))
        .unwrap();
    system.commands.insert("true".into(), 0);
    system.commands.insert("three".into(), 3);
    OnSystem {
        system,
        command_limit: Duration::from_secs(1),
        conditions: vec!["linux".into()],
    }
}

fn apply(machine: &mut OnSystem<Memory>, call: &Call, mode: PolicyMode) -> Applied {
    let (id, method, params) = (&*call.id, &*call.method, &*call.params);
    machine.apply(&Invocation { id, method, params }, mode)
}

#[test]
fn audits_change_nothing_and_enforcing_repairs_once() {
    for (method, params) in [
        (
            "file_content",
            &[("path", "/etc/motd"), ("lines", "other")][..],
        ),
        (
            "file_lines_present",
            &[("path", "/etc/hosts"), ("lines", "a\nb")],
        ),
        (
            "file_lines_present",
            &[("path", "/etc/hosts"), ("text", "a")],
        ),
        (
            "file_lines_absent",
            &[("path", "/etc/motd"), ("lines", "hello")],
        ),
        (
            "file_key_value_present",
            &[("path", "/etc/conf"), ("key", "k"), ("value", "v")],
        ),
        ("file_absent", &[("path", "/etc/motd")]),
        ("directory_present", &[("path", "/srv/new")]),
        (
            "directory_absent",
            &[("path", "/srv/old"), ("recursive", "true")],
        ),
        (
            "file_symlink_present",
            &[("path", "/etc/link"), ("target", "/etc/motd")],
        ),
        (
            "permissions",
            &[
                ("path", "/etc/motd"),
                ("mode", "0600"),
                ("owner", "web"),
                ("group", "web"),
            ],
        ),
        ("package_present", &[("name", "nginx"), ("version", "any")]),
        ("package_present", &[("name", "ntp"), ("version", "4.3")]),
        ("package_absent", &[("name", "telnet")]),
        ("service_started", &[("name", "nginx")]),
        ("service_stopped", &[("name", "rpcbind")]),
        ("service_enabled", &[("name", "nginx")]),
        ("user_present", &[("login", "web")]),
        ("user_absent", &[("login", "games")]),
        ("group_present", &[("name", "web")]),
        ("sysctl_value", &[("key", "vm.swappiness"), ("value", "10")]),
    ] {
        let call = call("1", method, params);
        let mut machine = machine();
        let before = machine.system.clone();
        assert_eq!(
            apply(&mut machine, &call, Audit).outcome,
            Outcome::NonCompliant,
            "{method}"
        );
        assert_eq!(machine.system, before, "{method}");
        let applied = apply(&mut machine, &call, Enforce);
        assert_eq!(
            applied.outcome,
            Outcome::Repaired,
            "{method}: {}",
            applied.message
        );
        assert_ne!(machine.system, before, "{method}");
        let after = machine.system.clone();
        for mode in [Audit, Enforce] {
            assert_eq!(
                apply(&mut machine, &call, mode).outcome,
                Outcome::Success,
                "{method}"
            );
        }
        assert_eq!(machine.system, after, "{method}");
        // What cannot be changed is an error, and is told.
        let mut broken = self::machine();
        broken.system.broken.push(call.params[0].1.clone());
        let applied = apply(&mut broken, &call, Enforce);
        assert_eq!(applied.outcome, Outcome::Error, "{method}");
        assert!(applied.message.contains("broken"), "{}", applied.message);
    }
}

#[test]
fn what_is_in_order_or_cannot_be_is_told() {
    for (method, params, outcome) in [
        (
            "package_present",
            &[("name", "ntp"), ("version", "latest")][..],
            Outcome::Success,
        ),
        ("package_absent", &[("name", "nginx")], Outcome::Success),
        ("file_absent", &[("path", "/srv/old")], Outcome::Error),
        (
            "directory_present",
            &[("path", "/etc/motd")],
            Outcome::Error,
        ),
        ("directory_absent", &[("path", "/etc/motd")], Outcome::Error),
        (
            "file_symlink_present",
            &[("path", "/etc/motd"), ("target", "/x")],
            Outcome::Error,
        ),
        (
            "permissions",
            &[("path", "/etc/motd"), ("mode", "rw")],
            Outcome::Error,
        ),
        (
            "permissions",
            &[("path", "/nothing"), ("mode", "0600")],
            Outcome::Error,
        ),
        (
            "file_content",
            &[("path", "/srv/old"), ("lines", "a")],
            Outcome::Error,
        ),
        ("file_content", &[("path", "/etc/motd")], Outcome::Error),
        ("sysctl_value", &[("key", "vm.swappiness")], Outcome::Error),
        (
            "file_key_value_present",
            &[("path", "/c"), ("key", "a"), ("value", "b\nc")],
            Outcome::Error,
        ),
        ("no_such_method", &[("name", "x")], Outcome::Error),
        ("", &[("key", "x")], Outcome::Error),
    ] {
        let call = call("1", method, params);
        for mode in [Audit, Enforce] {
            let mut machine = machine();
            let before = machine.system.clone();
            let applied = apply(&mut machine, &call, mode);
            assert_eq!(applied.outcome, outcome, "{method}: {}", applied.message);
            assert_eq!(machine.system, before, "{method}");
        }
    }
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
        ("service_restart", "ntp", Outcome::Error),
    ] {
        let params = [("command", command), ("kept_codes", "2,3")];
        assert_eq!(
            in_mode(method, &params, Audit),
            (Outcome::NotApplicable, 0, none())
        );
        assert_eq!(in_mode(method, &params, Enforce), (enforced, 1, none()));
    }
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
}
