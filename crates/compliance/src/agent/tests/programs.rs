//! What programs of the machine are asked, and what becomes of their answers. Package managers,
//! systemd, the programs of accounts and the kernel's are played by a script: the real ones need
//! root's rights, change the machine that the tests run on, and are not all on one machine. What
//! only reads is asked of the real ones too.

use std::fs;
use std::path::Path;

use super::stage::Stage;
use super::*;

/// `systemctl` over files that say whether the service `web` runs and is enabled.
const SYSTEMCTL: (&str, &str) = (
    "systemctl",
    r#"case "$1" in
         show)
           active=inactive; boot=disabled
           [ -s "$here/running" ] && active=active
           [ -s "$here/enabled" ] && boot=enabled
           case "$4" in
             web) echo "LoadState=loaded"; echo "ActiveState=$active"; echo "UnitFileState=$boot" ;;
             old) echo "LoadState=loaded"; echo "ActiveState=inactive"; echo "UnitFileState=generated" ;;
             *) echo "LoadState=not-found"; echo "ActiveState=inactive"; echo "UnitFileState=" ;;
           esac ;;
         is-enabled) exit 1 ;;
         start) echo x > "$here/running" ;;
         stop) : > "$here/running" ;;
         enable) echo x > "$here/enabled" ;;
         disable) : > "$here/enabled" ;;
         reload) echo "Job for web.service failed." >&2; exit 1 ;;
       esac"#,
);

#[test]
fn systemd_is_asked_for_services() {
    let stage = Stage::new(&[SYSTEMCTL]);
    let show = "systemctl|show|--property=LoadState,ActiveState,UnitFileState|--|web";
    let name = [("name", "web")];
    for (method, action) in [
        ("service_started", "start"),
        ("service_enabled", "enable"),
        ("service_stopped", "stop"),
        ("service_disabled", "disable"),
    ] {
        assert_eq!(
            stage.apply(method, &name, Audit).outcome,
            Outcome::NonCompliant
        );
        assert_eq!(stage.asked(), [show]);
        let applied = stage.apply(method, &name, Enforce);
        assert_eq!(applied.outcome, Outcome::Repaired, "{}", applied.message);
        let did = format!("systemctl|{action}|--|web");
        assert_eq!(stage.asked(), [show, &did, show]);
        assert_eq!(
            stage.apply(method, &name, Enforce).outcome,
            Outcome::Success
        );
        stage.asked();
    }
    let applied = stage.apply("service_restart", &name, Enforce);
    assert_eq!(applied.outcome, Outcome::Repaired, "{}", applied.message);
    assert_eq!(stage.asked(), [show, "systemctl|restart|--|web"]);
    let applied = stage.apply("service_reload", &name, Enforce);
    assert_told(&applied, Outcome::Error, "Job for web.service failed.");
    stage.asked();
    // A script of System V.
    let audited = stage.apply("service_enabled", &[("name", "old")], Audit);
    assert_eq!(
        audited.outcome,
        Outcome::NonCompliant,
        "{}",
        audited.message
    );
    assert_eq!(stage.asked()[1], "systemctl|is-enabled|--|old");
}

#[test]
fn a_machine_without_systemd_says_so() {
    let stage = Stage::new(&[SYSTEMCTL]);
    fs::remove_dir(stage.path("run/systemd/system")).unwrap();
    for method in ["service_started", "service_disabled", "service_restart"] {
        let applied = stage.apply(method, &[("name", "web")], Enforce);
        assert_told(&applied, Outcome::Error, "not run by systemd");
    }
    assert_eq!(stage.asked(), [""; 0], "nothing is asked in vain");
}

/// `getent` over lines of a file of the database's name.
const GETENT: (&str, &str) = (
    "getent",
    r#"[ -f "$here/$1" ] || exit 2
       while IFS= read -r line; do
         [ "${line%%:*}" = "$2" ] && echo "$line" && exit 0
       done < "$here/$1"
       exit 2"#,
);

#[test]
fn accounts_are_changed_by_their_programs() {
    let stage = Stage::new(&[
        GETENT,
        ("id", "printf 'games\\0log\\0'"),
        (
            "useradd",
            r#"echo "web:x:1001:1001::/home/web:/bin/sh" >> "$here/passwd""#,
        ),
        ("userdel", ": > \"$here/passwd\""),
        ("usermod", ""),
        ("groupadd", "echo 'web:x:7:' >> \"$here/group\""),
        ("groupdel", "exit 8"),
        (
            "chpasswd",
            r#"echo "games:${asked##*:}:1::::::" > "$here/shadow""#,
        ),
    ]);
    fs::write(
        stage.path("bin/passwd"),
        "games:x:5:60:Games:/usr/games:/bin/sh\n",
    )
    .unwrap();
    fs::write(
        stage.path("bin/group"),
        "games:x:60:\nlog:x:4:games\nwww:x:33:\n",
    )
    .unwrap();
    fs::write(stage.path("bin/shadow"), "games:*:1::::::\n").unwrap();
    let done = |method: &str, params: &[(&str, &str)]| {
        let applied = stage.apply(method, params, Enforce);
        let changes = stage.asked();
        let changes = changes
            .into_iter()
            .filter(|one| !one.starts_with("getent") && !one.starts_with("id|"));
        (
            applied.outcome,
            changes.collect::<Vec<_>>(),
            applied.message,
        )
    };
    let (outcome, asked, message) = done("user_present", &[("login", "web")]);
    assert_eq!(outcome, Outcome::Repaired, "{message}");
    assert_eq!(asked, ["useradd|--no-create-home|--|web"]);
    let (outcome, asked, message) = done("group_present", &[("name", "web")]);
    assert_eq!(outcome, Outcome::Repaired, "{message}");
    assert_eq!(asked, ["groupadd|--|web"]);
    let (outcome, asked, message) = done("group_absent", &[("name", "web")]);
    assert_eq!(outcome, Outcome::Error);
    assert_eq!(asked, ["groupdel|--|web"]);
    assert!(message.ends_with("groupdel: exit status: 8"), "{message}");
    for (method, param, value, argument) in [
        ("user_shell", "shell", "/bin/false", "--shell|/bin/false"),
        ("user_home", "home", "/srv", "--home|/srv"),
        ("user_uid", "uid", "6", "--uid|6"),
        (
            "user_fullname",
            "fullname",
            "G; rm -rf / $(x)",
            "--comment|G; rm -rf / $(x)",
        ),
        ("user_primary_group", "primary_group", "www", "--gid|www"),
        ("user_group", "group_name", "www", "--append|--groups|www"),
        (
            "user_secondary_groups",
            "groups",
            "log,www",
            "--append|--groups|www",
        ),
        ("user_locked", "x", "", "--lock"),
    ] {
        let (outcome, asked, message) = done(method, &[("login", "games"), (param, value)]);
        // This usermod does nothing, which is found out.
        assert_eq!(outcome, Outcome::Error);
        assert!(message.contains("and still"), "{message}");
        assert_eq!(asked, [format!("usermod|{argument}|--|games")]);
    }
    let only = [("login", "games"), ("groups", "www"), ("force", "true")];
    let (_, asked, _) = done("user_secondary_groups", &only);
    assert_eq!(asked, ["usermod|--groups|www|--|games"]);
    let hash = "$6$salt$hash";
    let (outcome, asked, message) = done(
        "user_password_hash",
        &[("login", "games"), ("password", hash)],
    );
    assert_eq!(outcome, Outcome::Repaired, "{message}");
    assert_eq!(
        asked,
        ["chpasswd|--encrypted<games:$6$salt$hash"],
        "by its input alone"
    );
    let (outcome, asked, _) = done("user_absent", &[("login", "games")]);
    assert_eq!(
        (outcome, asked),
        (Outcome::Repaired, vec!["userdel|--|games".to_owned()])
    );
    // Who may not read shadow is no reason to set a password.
    fs::write(
        stage.path("bin/passwd"),
        "games:x:5:60:Games:/usr/games:/bin/sh\n",
    )
    .unwrap();
    fs::remove_file(stage.path("bin/shadow")).unwrap();
    let (outcome, asked, message) = done(
        "user_password_hash",
        &[("login", "games"), ("password", hash)],
    );
    assert_eq!((outcome, asked), (Outcome::Error, vec![]));
    assert!(
        message.contains("root's rights") && !message.contains("$6$salt"),
        "{message}"
    );
}

#[test]
fn the_kernel_is_asked_by_its_files_and_changed_by_programs() {
    let stage = Stage::new(&[
        (
            "sysctl",
            r#"while IFS="=" read -r key value; do echo "$value"; done < "$here/../etc/sysctl.d/9.conf" > "$here/../proc/sys/vm/swappiness""#,
        ),
        (
            "modprobe",
            r#"[ "$1" = -- ] && echo "loop 1 0 - Live" > "$here/../proc/modules""#,
        ),
    ]);
    fs::write(stage.path("proc/sys/vm/swappiness"), "60\n").unwrap();
    fs::write(stage.path("proc/modules"), "pcspkr 16384 0 - Live 0x0\n").unwrap();
    fs::create_dir_all(stage.path("sys/module/built_in/x")).unwrap();
    let wish = [("key", "vm.swappiness"), ("value", "10"), ("filename", "9")];
    let audited = stage.apply("sysctl_value", &wish, Audit);
    assert!(
        audited.message.ends_with("its value is \"60\""),
        "{}",
        audited.message
    );
    let applied = stage.apply("sysctl_value", &wish, Enforce);
    assert_eq!(applied.outcome, Outcome::Repaired, "{}", applied.message);
    assert_eq!(
        fs::read_to_string(stage.path("etc/sysctl.d/9.conf")).unwrap(),
        "vm.swappiness=10\n"
    );
    assert_eq!(stage.asked(), ["sysctl|--quiet|--system"]);
    for (name, outcome) in [("built-in", Outcome::Success), ("loop", Outcome::Repaired)] {
        let applied = stage.apply("kernel_module_loaded", &[("name", name)], Enforce);
        assert_eq!(applied.outcome, outcome, "{}", applied.message);
    }
    assert_eq!(stage.asked(), ["modprobe|--|loop"]);
    let applied = stage.apply("kernel_module_not_loaded", &[("name", "loop")], Enforce);
    assert_eq!(applied.outcome, Outcome::Error);
    assert_eq!(stage.asked(), ["modprobe|--remove|--|loop"]);
    let applied = stage.apply("sysctl_value", &[("key", "a/../b"), ("value", "1")], Audit);
    assert_eq!(applied.outcome, Outcome::Error);
}

#[test]
fn curl_is_told_by_its_input() {
    let stage = Stage::new(&[("curl", "printf 204")]);
    let params = [
        ("method", "GET"),
        ("url", "https://me:secret@h.example/x?token=secret"),
        ("expected_status", "204"),
        ("headers", "Authorization: Bearer secret"),
    ];
    let applied = stage.apply("http_request_check_status_headers", &params, Audit);
    assert_eq!(applied.outcome, Outcome::Success, "{}", applied.message);
    let asked = stage.asked();
    assert!(asked[0].starts_with("curl|--config|-<"), "{asked:?}");
    assert!(
        asked[0].contains("<header = \"Authorization: Bearer secret\""),
        "{asked:?}"
    );
    fs::write(
        stage.path("bin/curl.sh"),
        "echo 'curl: (6) no host secret' >&2; printf 000; exit 6",
    )
    .unwrap();
    let applied = stage.apply("http_request_check_status_headers", &params, Audit);
    assert_eq!(applied.outcome, Outcome::Error);
    assert_eq!(
        applied.message,
        "asking https://h.example/x: curl: exit status: 6"
    );
}

#[test]
fn what_is_remembered_is_there_in_the_next_run() {
    let stage = Stage::new(&[]);
    let params = [("command", "exit 0")];
    let outcome = || {
        stage
            .apply("command_execution_once", &params, Enforce)
            .outcome
    };
    assert_eq!(
        [outcome(), outcome()],
        [Outcome::Repaired, Outcome::Success]
    );
    fs::write(stage.path("remembered.json"), "{").unwrap();
    let applied = stage.apply("command_execution_once", &params, Enforce);
    assert_told(&applied, Outcome::Error, "remove remembered.json");
}

#[test]
fn a_program_that_says_much_or_leaves_others_is_heard_to_its_end() {
    let endless = "i=0; while [ $i -lt 70000 ]; do echo 0123456789012345678901234567890123456789012345678901234567890123456789; i=$((i+1)); done";
    let stage = Stage::new(&[
        ("dpkg-query", endless),
        ("apt-get", ""),
        // It leaves a process that has its output open.
        (
            "getent",
            "( while :; do :; done ) & echo 'web:x:1:1::/:/bin/sh'",
        ),
    ]);
    let applied = stage.apply("package_present", &[("name", "nginx")], Audit);
    assert_told(&applied, Outcome::Error, "more than 4194304 bytes");
    let applied = stage.apply("user_present", &[("login", "web")], Audit);
    assert_eq!(applied.outcome, Outcome::Success, "{}", applied.message);
    let long = call(
        "1",
        "variable_string_from_command",
        &[("prefix", "p"), ("name", "n"), ("command", endless)],
    );
    let applied = carry_out(&mut stage.methods(), &long, Enforce);
    assert_told(&applied, Outcome::Error, "longer than 65536 bytes");
}

#[test]
fn another_root_has_users_and_no_programs() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    fs::create_dir(root.join("etc")).unwrap();
    fs::write(root.join("etc/passwd"), "web:x:4242:60::/srv:/bin/sh\n").unwrap();
    fs::write(root.join("etc/group"), "games:x:60:\nlog:x:4:web\n").unwrap();
    fs::write(root.join("f"), "").unwrap();
    let apply = |method: &str, params: &[(&str, &str)], mode| {
        let mut methods = OnSystem::new(Disk::new(root, Site::default()), Duration::from_secs(1));
        carry_out(&mut methods, &call("1", method, params), mode)
    };
    for mode in [Audit, Enforce] {
        for (method, params) in [
            ("user_present", &[("login", "web")][..]),
            ("user_absent", &[("login", "root")]),
            ("user_shell", &[("login", "web"), ("shell", "/bin/sh")]),
            ("user_group", &[("login", "web"), ("group_name", "log")]),
            ("group_present", &[("name", "games")]),
        ] {
            let applied = apply(method, params, mode);
            assert_eq!(
                applied.outcome,
                Outcome::Success,
                "{method}: {}",
                applied.message
            );
        }
    }
    // Its names are numbers of its own.
    let owned = apply("permissions", &[("path", "/f"), ("owner", "web")], Audit);
    assert_eq!(owned.outcome, Outcome::NonCompliant, "{}", owned.message);
    let unknown = apply("permissions", &[("path", "/f"), ("owner", "root")], Audit);
    assert_eq!(unknown.outcome, Outcome::Error, "{}", unknown.message);
    for (method, params) in [
        ("package_present", &[("name", "nginx")][..]),
        ("service_started", &[("name", "web")]),
        ("service_restart", &[("name", "web")]),
        ("user_present", &[("login", "new")]),
        ("user_shell", &[("login", "web"), ("shell", "/x")]),
        ("group_present", &[("name", "new")]),
        (
            "sysctl_value",
            &[("key", "kernel.ostype"), ("value", "Linux")],
        ),
        ("kernel_module_loaded", &[("name", "loop")]),
        ("command_execution", &[("command", "true")]),
        (
            "variable_string_from_command",
            &[("prefix", "a"), ("name", "b"), ("command", "true")],
        ),
        (
            "http_request_check_status_headers",
            &[("url", "http://127.0.0.1:1/"), ("expected_status", "200")],
        ),
    ] {
        let applied = apply(method, params, Enforce);
        assert_eq!(applied.outcome, Outcome::Error, "{method}");
        let message = applied.message;
        assert!(
            message.contains("on the machine itself only"),
            "{method}: {message}"
        );
    }
}

/// What only reads, of this very machine.
#[test]
fn the_machine_that_this_runs_on_is_known() {
    let apply = |method: &str, params: &[(&str, &str)]| {
        let mut methods = OnSystem::new(Disk::new("/", Site::default()), Duration::from_secs(60));
        carry_out(&mut methods, &call("1", method, params), Audit)
    };
    let outcome = |method: &str, params: &[(&str, &str)]| {
        let applied = apply(method, params);
        (applied.outcome, applied.message)
    };
    use Outcome::{NonCompliant, Success};
    assert_eq!(outcome("user_present", &[("login", "root")]).0, Success);
    assert_eq!(
        outcome("user_uid", &[("login", "root"), ("uid", "0")]).0,
        Success
    );
    assert_eq!(
        outcome("user_present", &[("login", "no-such-user-here")]).0,
        NonCompliant
    );
    assert_eq!(
        outcome("group_present", &[("name", "no-such-group-here")]).0,
        NonCompliant
    );
    let group = [("login", "root"), ("group_name", "root")];
    assert_eq!(outcome("user_group", &group).0, Success);
    let kernel = [("key", "kernel.ostype"), ("value", "Linux")];
    assert_eq!(outcome("sysctl_value", &kernel).0, Success);
    let none = [("name", "no_such_module_here")];
    assert_eq!(outcome("kernel_module_not_loaded", &none).0, Success);
    let owned = [
        ("path", "/etc/passwd"),
        ("owner", "root"),
        ("group", "root"),
    ];
    assert_eq!(outcome("permissions", &owned).0, Success);
    // Debian and its relatives; elsewhere the played ones must do.
    if Path::new("/usr/bin/dpkg-query").is_file() {
        let found = outcome("package_present", &[("name", "dpkg")]);
        assert_eq!(found.0, Success, "{}", found.1);
        let found = outcome("package_absent", &[("name", "dpkg")]);
        assert_eq!(found.0, NonCompliant, "{}", found.1);
        assert!(found.1.contains("is installed"), "{}", found.1);
        let none = [("name", "no-such-package-here")];
        let found = outcome("package_present", &none);
        assert_eq!(found.0, NonCompliant, "{}", found.1);
        let version = [("name", "dpkg"), ("version", "0.0")];
        let found = outcome("package_present", &version);
        assert!(found.1.contains("expected 0.0"), "{}", found.1);
    }
    // A service is known, or it is told that there is no systemd.
    let service = apply("service_started", &[("name", "no-such-service-here")]);
    assert_eq!(service.outcome, Outcome::Error);
    assert!(
        service.message.contains("has no service") || service.message.contains("systemd"),
        "{}",
        service.message
    );
}
