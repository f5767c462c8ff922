//! What package managers are asked. A script plays them: the real ones need root's rights, change the
//! machine that the tests run on, and are not all on one machine.

use super::stage::Stage;
use super::*;

/// `dpkg-query` and `apt-get` over a file with the version that is installed.
const DPKG: (&str, &str) = (
    "dpkg-query",
    r#"if [ -f "$here/installed" ]; then
         read -r version < "$here/installed"
         printf 'nginx\tamd64\t%s\tinstalled\n' "$version"
       else
         echo 'dpkg-query: no packages found matching nginx' >&2
         exit 1
       fi"#,
);
const APT: (&str, &str) = (
    "apt-get",
    r#"case "$*" in
         *install*=*) echo "${*##*=}" > "$here/installed" ;;
         *install*) echo 1.2-1 > "$here/installed" ;;
         *remove*) ;;
       esac"#,
);
const QUERY: &str = "dpkg-query|--show|\
     --showformat=${Package}\\t${Architecture}\\t${Version}\\t${db:Status-Status}\\n|--|nginx";
const APT_GET: &str = "apt-get|--yes|--quiet|--option|Dpkg::Options::=--force-confdef|--option|\
     Dpkg::Options::=--force-confold|--option|DPkg::Lock::Timeout=60";

#[test]
fn apt_is_asked_for_packages() {
    let stage = Stage::new(&[
        DPKG,
        APT,
        (
            "apt-cache",
            "echo '  Installed: 1.2-1'; echo '  Candidate: 1.3-1'",
        ),
    ]);
    let present = [("name", "nginx")];
    let audited = stage.apply("package_present", &present, Audit);
    assert_eq!(audited.outcome, Outcome::NonCompliant);
    assert_eq!(stage.asked(), [QUERY], "an audit only asks");
    let applied = stage.apply("package_present", &present, Enforce);
    assert_eq!(applied.outcome, Outcome::Repaired, "{}", applied.message);
    let install = format!("{APT_GET}|install|--|nginx");
    assert_eq!(stage.asked(), [QUERY, QUERY, &install, QUERY]);
    assert_eq!(
        stage.apply("package_present", &present, Enforce).outcome,
        Outcome::Success
    );
    stage.asked();
    let version = [
        ("name", "nginx"),
        ("version", "1.1-9"),
        ("architecture", "amd64"),
    ];
    let applied = stage.apply("package_present", &version, Enforce);
    assert_eq!(applied.outcome, Outcome::Repaired, "{}", applied.message);
    let install = format!("{APT_GET}|--allow-downgrades|install|--|nginx:amd64=1.1-9");
    assert_eq!(stage.asked(), [QUERY, &install, QUERY]);
    let latest = [("name", "nginx"), ("version", "latest")];
    let audited = stage.apply("package_present", &latest, Audit);
    assert!(
        audited.message.contains("1.3-1 is newer"),
        "{}",
        audited.message
    );
    assert_eq!(stage.asked(), [QUERY, "apt-cache|policy|--|nginx"]);
    // It says that it removed it, and did not.
    let applied = stage.apply("package_absent", &present, Enforce);
    assert_told(&applied, Outcome::Error, "still version 1.1-9 is installed");
    let remove = format!("{APT_GET}|remove|--|nginx");
    assert_eq!(stage.asked(), [QUERY, &remove, QUERY]);
}

#[test]
fn apt_learns_once_what_there_is() {
    let stage = Stage::new(&[
        DPKG,
        (
            "apt-get",
            r#"case "$*" in
                 *update) : > "$here/lists" ;;
                 *) [ -f "$here/lists" ] && [ "${*##* }" = nginx ] && echo 1 > "$here/installed" && exit 0
                    echo "E: Unable to locate package ${*##* }" >&2; exit 100 ;;
               esac"#,
        ),
    ]);
    let mut methods = stage.methods();
    let mut install = |name: &str| {
        let call = call("1", "package_present", &[("name", name)]);
        carry_out(&mut methods, &call, Enforce)
    };
    assert_eq!(install("nginx").outcome, Outcome::Repaired);
    let learnt = |asked: Vec<String>| asked.iter().filter(|one| one.ends_with("|update")).count();
    assert_eq!(learnt(stage.asked()), 1);
    let applied = install("unknown");
    assert_eq!(applied.outcome, Outcome::Error);
    let told = "installing unknown: apt-get: exit status: 100, it said: E: Unable to locate \
                package unknown";
    assert!(applied.message.ends_with(told), "{}", applied.message);
    assert_eq!(learnt(stage.asked()), 0);
}

#[test]
fn the_machine_tells_which_package_manager_it_has() {
    let rpm = ("rpm", "echo 'package nginx is not installed'; exit 1");
    for (program, asked) in [
        ("dnf", "dnf|--assumeyes|--quiet|install|nginx-1.2"),
        ("yum", "yum|--assumeyes|--quiet|install|nginx-1.2"),
        (
            "zypper",
            "zypper|--non-interactive|--quiet|install|--auto-agree-with-licenses|--oldpackage|--|nginx=1.2",
        ),
    ] {
        let stage = Stage::new(&[rpm, (program, "exit 0")]);
        let params = [("name", "nginx"), ("version", "1.2")];
        let applied = stage.apply("package_present", &params, Enforce);
        // Nothing is installed by a program that a test plays.
        assert_eq!(applied.outcome, Outcome::Error);
        assert_eq!(stage.asked()[1], asked);
    }
    let stage = Stage::new(&[rpm, ("dnf", "exit 0"), ("zypper", "exit 0")]);
    let params = [("name", "nginx"), ("provider", "zypper")];
    stage.apply("package_present", &params, Enforce);
    assert!(stage.asked().iter().any(|one| one.starts_with("zypper|")));
    let none = Stage::new(&[]);
    let applied = none.apply("package_present", &[("name", "nginx")], Audit);
    assert_told(
        &applied,
        Outcome::Error,
        "none of apt-get, dnf, yum and zypper",
    );
}
