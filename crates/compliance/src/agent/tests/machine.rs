//! Methods on a machine in memory: what each finds, changes and tells.

use super::*;

pub(super) fn machine() -> OnSystem<Memory> {
    let mut system = Memory::default();
    system.write("/etc/motd", b"hello\n").unwrap();
    system.make_directory("/srv/old").unwrap();
    system.write("/srv/old/x", b"").unwrap();
    let package = |installed: Option<&str>, known: &[&str]| MemoryPackage {
        installed: installed.map(Into::into),
        known: known.iter().map(|version| (*version).to_owned()).collect(),
    };
    for (name, of) in [
        ("telnet", package(Some("1.0"), &["1.0"])),
        ("ntp", package(Some("4.2-1"), &["4.2-1", "4.3-1"])),
        ("nginx", package(None, &["1.0"])),
    ] {
        system.packages.insert(name.into(), of);
    }
    for (name, active, at_boot) in [
        ("rpcbind", "active", "enabled"),
        ("nginx", "inactive", "disabled"),
        ("dbus", "active", "static"),
        ("flaky", "failed", "disabled"),
    ] {
        let service = Service {
            loaded: "loaded".into(),
            active: active.into(),
            at_boot: at_boot.into(),
        };
        system.services.insert(name.into(), service);
    }
    system.add_user("games");
    system.add_group("log");
    system.add_group("www");
    system.kernel.insert("vm.swappiness".into(), "60".into());
    system.modules.insert("pcspkr".into());
    system.resources.insert("motd".into(), b"shared\n".into());
    system.statuses.insert("http://up/".into(), 200);
    for (command, code, output) in [("true", 0, ""), ("three", 3, ""), ("echo", 0, "out\n")] {
        let how = (code, output.to_owned());
        system.commands.insert(command.into(), how);
    }
    let mut machine = OnSystem::new(system, Duration::from_secs(1));
    machine.conditions.push("linux".into());
    machine
}

fn apply(machine: &mut OnSystem<Memory>, call: &Call, mode: PolicyMode) -> Applied {
    carry_out(machine, call, mode)
}

/// What is not in order, and what an audit says of it.
const REPAIRED: &[&str] = &[
    "file_content path=/etc/motd|lines=other => its content is another one",
    "file_lines_present path=/etc/hosts|lines=a\nb => there is no such file",
    "file_lines_present path=/etc/motd|text=a => it lacks 1 line",
    "file_lines_absent path=/etc/motd|lines=hello => it has lines that it should not have",
    "file_key_value_present path=/etc/motd|key=k|value=v|separator=  => its k has another value",
    "file_absent path=/etc/motd => it is there",
    "directory_present path=/srv/new => there is no such directory",
    "directory_absent path=/srv/old|recursive=true => it is there",
    "file_symlink_present path=/etc/link|target=/etc/motd => there is no such link",
    "file_symlink_present_force source=/srv/old|path=/etc/motd => it is a file",
    "permissions path=/etc/motd|mode=0600|owner=games|group=1002 => it has mode 0644, user 0 and group 0",
    "permissions_recursive path=/srv/old|mode=0700 => 2 of what is there have other permissions",
    "file_from_shared_folder source=motd|path=/etc/motd => its content is another one",
    "file_from_local_source_recursion source=/srv/old|path=/srv/copy|recursion=inf => 2 files, directories and links of /srv/old are missing or different",
    "file_from_local_source_with_check source=/etc/motd|path=/etc/copy|check_command=never|rc_ok=127 => it is not as /etc/motd",
    "package_present name=nginx|version=any => it is not installed",
    "package_present name=ntp|version=4.3-1 => version 4.2-1 is installed; expected 4.3-1",
    "package_present name=ntp|version=latest => version 4.2-1 is installed, 4.3-1 is newer",
    "package_absent name=telnet => version 1.0 is installed",
    "package_state name=telnet|version=1.0|state=absent => version 1.0 is installed",
    "service_started name=nginx => it is inactive",
    "service_started name=flaky => it is failed",
    "service_stopped name=rpcbind => it is active",
    "service_enabled name=nginx => it is disabled",
    "service_disabled name=rpcbind => it is enabled",
    "service_action name=nginx|action=start => it is inactive",
    "user_present login=web => it is not there",
    "user_absent login=games => it is there",
    "user_shell login=games|shell=/bin/false => its shell is /bin/sh",
    "user_home login=games|home=/srv => its home is /home/games",
    "user_uid login=games|uid=5 => its uid is 1000",
    "user_fullname login=games|fullname=G => its full name is \"\"",
    "user_primary_group login=games|primary_group=log => its primary group is that of gid 1000",
    "user_secondary_groups login=games|groups=log,www => it is not in log, www",
    "user_group login=games|group_name=log => it is not in log",
    "user_password_hash login=games|password=$6$salt$hash => its password is another one",
    "group_present name=web => it is not there",
    "group_absent name=www => it is there",
    "sysctl_value key=vm.swappiness|value=10|filename=10-swap => its value is \"60\"",
    "sysctl_value key=vm.swappiness|value=80|option=Min => its value is \"60\"",
    "kernel_module_loaded name=loop => it is not loaded",
    "kernel_module_not_loaded name=pcspkr => it is loaded",
    "environment_variable_present name=A|value=b => there is no such file",
];

#[test]
fn audits_change_nothing_and_enforcing_repairs_once() {
    for line in REPAIRED {
        let (call, why) = line.split_once(" => ").unwrap();
        let call = call_of(call);
        let method = &call.method;
        let mut machine = machine();
        let before = machine.system.clone();
        let audited = apply(&mut machine, &call, Audit);
        let known = HashSet::new();
        let invocation = Invocation {
            id: "1",
            method,
            params: &call.params,
            known: &known,
            properties: &serde_json::Map::new(),
        };
        let key = invocation.key();
        let said = format!("{method} {key} was not correct: {why}");
        assert_eq!(
            (audited.outcome, audited.message),
            (Outcome::NonCompliant, said)
        );
        assert_eq!(machine.system, before, "{method}");
        let applied = apply(&mut machine, &call, Enforce);
        let said = format!("{method} {key} was repaired: {why}");
        assert_eq!(
            (applied.outcome, applied.message),
            (Outcome::Repaired, said)
        );
        assert_ne!(machine.system, before, "{method}");
        let after = machine.system.clone();
        for mode in [Audit, Enforce] {
            let again = apply(&mut machine, &call, mode);
            assert_eq!(
                again.outcome,
                Outcome::Success,
                "{method}: {}",
                again.message
            );
            assert_eq!(again.message, format!("{method} {key} was correct"));
        }
        assert_eq!(machine.system, after, "{method}");
        // What cannot be changed is an error, and is told.
        let mut broken = self::machine();
        let names = [key, "/srv/copy", "/etc/environment", "/srv/old/x"];
        broken.system.broken.extend(names.map(Into::into));
        broken.system.broken.push("sysctl.d".into());
        let applied = apply(&mut broken, &call, Enforce);
        assert_eq!(applied.outcome, Outcome::Error, "{method}");
        let begins = format!("{method} {key} could not be repaired: ");
        assert!(applied.message.starts_with(&begins), "{}", applied.message);
        assert!(applied.message.contains("broken"), "{}", applied.message);
    }
}

#[test]
fn a_program_that_only_says_that_it_changed_something_is_found_out() {
    for (method, params, name) in [
        ("package_present", &[("name", "nginx")][..], "nginx"),
        ("service_started", &[("name", "nginx")], "nginx"),
        ("user_present", &[("login", "web")], "web"),
        ("kernel_module_loaded", &[("name", "loop")], "loop"),
        (
            "sysctl_value",
            &[("key", "vm.swappiness"), ("value", "1")],
            "sysctl.d",
        ),
    ] {
        let mut machine = machine();
        machine.system.feigned.push(name.into());
        let applied = apply(&mut machine, &call("1", method, params), Enforce);
        assert_eq!(applied.outcome, Outcome::Error, "{method}");
        let message = applied.message;
        assert!(
            message.contains("it was changed, and still it"),
            "{message}"
        );
        assert_eq!(machine.system.ran.len(), 1, "{method}");
    }
}

#[test]
fn what_is_in_order_or_cannot_be_is_told() {
    for line in [
        "package_present name=ntp => Success: was correct",
        "package_present name=ntp|version=4.2 => Success: was correct",
        "package_absent name=nginx => Success: was correct",
        "package_absent name=ntp|version=9 => Success: was correct",
        "package_present name=--all => Error: no name of a package",
        "package_present name=a b => Error: no name of a package",
        "package_present name=/tmp/a.deb => Error: repository",
        "package_present name=a|version=1 2 => Error: is no version",
        "package_present name=a|provider=snap => Error: no provider",
        "package_state name=a|state=new => Error: present or absent",
        "service_started name=nothing => Error: has no service nothing",
        "service_enabled name=nothing => Error: has no service nothing",
        "service_stopped name=nothing => Success: was correct",
        "service_disabled name=nothing => Success: was correct",
        "service_enabled name=dbus => Success: was correct",
        "service_disabled name=dbus => Success: was correct",
        "service_started name=a/b => Error: no name of a service",
        "service_action name=nginx|action=fly => Error: no method",
        "service_action name=dbus|action=is-active => Success: was correct",
        "user_shell login=none|shell=/x => Error: there is no user none",
        "user_shell login=games|shell=x => Error: an absolute path",
        "user_home login=games|home=/a:b => Error: a colon",
        "user_uid login=games|uid=x => Error: expected a number",
        "user_present login=a:b => Error: no name of a user",
        "user_group login=games|group_name=none => Error: no group none",
        "user_group login=games|group_name=games => Success: was correct",
        "user_locked login=games => Success: was correct",
        "user_password_hash login=games|password=clear => Error: no hash",
        "sysctl_value key=vm.swappiness => Error: no parameter \"value\"",
        "sysctl_value key=no.such|value=1 => Error: no parameter of this name",
        "sysctl_value key=vm.swappiness|value=60 => Success: was correct",
        "sysctl_value key=vm.swappiness|value=80|option=max => Success: was correct",
        "sysctl_value key=vm.swappiness|value=1|filename=../x => Error: filename",
        "file_absent path=/srv/old => Error: a directory; expected a file",
        "directory_present path=/etc/motd => Error: no directory",
        "directory_absent path=/etc/motd => Error: no directory",
        "file_symlink_present path=/etc/motd|target=/x => Error: no link",
        "permissions path=/etc/motd|mode=rw => Error: not octal",
        "permissions path=/nothing|mode=0600 => Error: nothing at /nothing",
        "permissions path=/etc/motd|owner=nobody-such => Error: there is no user \"nobody-such\"",
        "file_content path=/srv/old|lines=a => Error: it is no file",
        "file_content path=/etc/motd => Error: no parameter \"lines\"",
        "file_content path=/etc/motd|lines=a|enforce=yes => Error: expected true or false",
        "file_key_value_present path=/c|key=a|value=b\nc => Error: takes one line",
        "file_from_local_source source=/none|path=/c => Error: nothing at /none",
        "file_from_template source_template=/etc/motd|path=/c => Error: mustache's language",
        "no_such_method name=x => Error: no method \"no_such_method\"",
        " key=x => Error: no method",
    ] {
        let (call, said) = line.split_once(" => ").unwrap();
        let call = call_of(call);
        for mode in [Audit, Enforce] {
            let mut machine = machine();
            let before = machine.system.clone();
            let applied = apply(&mut machine, &call, mode);
            let (outcome, said) = said.split_once(": ").unwrap();
            let message = applied.message;
            assert_eq!(
                format!("{:?}", applied.outcome),
                outcome,
                "{line}: {message}"
            );
            assert!(message.contains(said), "{line}: {message}");
            assert_eq!(machine.system, before, "{line}");
        }
    }
}
