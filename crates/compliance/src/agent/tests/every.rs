//! What holds of every method, whatever its parameters, on a machine in memory.

use super::*;
use crate::model::methods::METHODS;

fn machine() -> Memory {
    let mut system = Memory::default();
    system.write("/f", b"a\n[s]\nk=1\n").unwrap();
    system.make_directory("/d").unwrap();
    system.write("/d/x", b"x").unwrap();
    system.link("/l", "/f").unwrap();
    system.resources.insert("/f".into(), b"shared\n".into());
    for (name, installed) in [("a", Some("1-1")), ("b", None)] {
        let package = MemoryPackage {
            installed: installed.map(Into::into),
            known: vec!["1-1".into(), "2-1".into()],
        };
        system.packages.insert(name.into(), package);
        let service = Service {
            loaded: "loaded".into(),
            active: installed.map_or("inactive", |_| "active").into(),
            at_boot: installed.map_or("disabled", |_| "enabled").into(),
        };
        system.services.insert(name.into(), service);
        system.commands.insert(name.into(), (0, "out".into()));
    }
    system.add_user("a");
    system.add_group("b");
    system.kernel.insert("a".into(), "1".into());
    system.modules.insert("a".into());
    system.statuses.insert("a".into(), 200);
    system
}

/// Values that parameters of these names have.
fn values(name: &str) -> &'static [&'static str] {
    match name {
        "path" | "source" | "target" | "source_template" | "file_name" => {
            &["/f", "/d", "/l", "/d/x", "/new", "/new/y"]
        }
        "enforce" | "recursive" | "force" => &["true", "false", "x"],
        "version" => &["any", "latest", "1", "2-1", "3"],
        "state" => &["present", "absent"],
        "action" => &["start", "stop", "enable", "disable", "restart", "is-active"],
        "mode" => &["0600", "0755", "x", "nodups", "stateless"],
        "type" => &["all", "files", "directories"],
        "recursion" => &["0", "1", "inf"],
        "option" => &["strict", "lax", "min", "max", "default"],
        "separator" => &["=", " ", " = "],
        "section_start" => &["[s]", "<"],
        "section_end" => &["k=1", ">"],
        "uid" | "expected_status" | "agent_periodicity" | "periodicity_minutes" => {
            &["1", "5", "200"]
        }
        "password" => &["$1$a$b", "clear"],
        "shell" | "home" => &["/bin/sh", "/srv", "x"],
        "ok_codes" | "rc_ok" | "kept_codes" | "repaired_codes" => &["0", "1", "0,127", "x"],
        "template" => &["plain", "{{#classes.any}}x{{/classes.any}}", "{{"],
        "template_type" => &["mustache", "jinja2"],
        "method" => &["GET", "POST"],
        _ => &["a", "b", "none", "s", "k", "a\nb", "", "(", "-x"],
    }
}

#[rustfmt::skip]
const NAMES: [&str; 53] = [
    "path", "source", "target", "lines", "enforce", "key", "value", "separator", "option",
    "section", "line", "block", "section_start", "section_end", "replacement", "recursive", "mode",
    "owner", "group", "type", "recursion", "version", "state", "action", "name", "login", "shell",
    "home", "uid", "fullname", "primary_group", "group_name", "groups", "force", "password",
    "command", "kept_codes", "ok_codes", "until", "condition", "expression", "variable_name",
    "expected_match", "regex", "prefix", "url", "expected_status", "method", "job_id",
    "agent_periodicity", "periodicity_minutes", "check_command", "template",
];

/// A call of any method; it may have parameters of others, which are left alone.
fn any_call() -> impl Strategy<Value = Call> {
    let chosen = NAMES.map(|name| proptest::option::weighted(0.9, 0..values(name).len()));
    (0..METHODS.len(), Vec::from(chosen)).prop_map(|(method, chosen)| {
        let params = NAMES.iter().zip(chosen);
        let params = params.filter_map(|(name, chosen)| Some((*name, values(name)[chosen?])));
        let params: Vec<_> = params.collect();
        call("1", METHODS[method].name, &params)
    })
}

#[test]
fn every_known_method_is_there() {
    for method in METHODS {
        let mut methods = OnSystem::new(machine(), Duration::from_secs(1));
        let params = NAMES.map(|name| (name, values(name)[0]));
        let applied = carry_out(&mut methods, &call("1", method.name, &params), Enforce);
        let message = applied.message;
        assert!(
            !message.contains("has no method"),
            "{}: {message}",
            method.name
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    #[test]
    fn audits_tell_what_enforcing_does_and_change_nothing(
        calls in proptest::collection::vec(any_call(), 1..6),
    ) {
        let mut methods = OnSystem::new(machine(), Duration::from_secs(1));
        for call in &calls {
            // Commands that an audit may run are noted, and change nothing.
            methods.system.ran.clear();
            let before = methods.system.clone();
            let audited = carry_out(&mut methods, call, Audit);
            methods.system.ran.clear();
            prop_assert_eq!(&methods.system, &before, "{:?} changed something in audit", call);
            let enforced = carry_out(&mut methods, call, Enforce);
            let said = format!("{call:?}: {audited:?}, then {enforced:?}");
            match (audited.outcome, enforced.outcome) {
                (Outcome::Success, Outcome::Success) => {
                    methods.system.ran.clear();
                    prop_assert_eq!(&methods.system, &before, "{}", said);
                }
                (Outcome::NonCompliant, Outcome::Repaired) => {
                    for mode in [Audit, Enforce] {
                        let again = carry_out(&mut methods, call, mode);
                        prop_assert_eq!(again.outcome, Outcome::Success, "{} {:?}", said, again);
                    }
                }
                (Outcome::NonCompliant, Outcome::NonCompliant | Outcome::Error)
                | (Outcome::Error, Outcome::Error)
                | (Outcome::NotApplicable, _) => {}
                _ => prop_assert!(false, "{}", said),
            }
        }
    }
}
