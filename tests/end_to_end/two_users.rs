//! A machine that another user has used before.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use super::lab::{Finished, Lab, Process, wait_until};

/// Nobody's number, by custom.
const NOBODY: u32 = 65_534;

const EXPERIMENT: &str = r#"
lab = 1
name = "two-users"
seed = 1
[[system]]
name = "web"
builtin = "target"
args = "--listen {addr}"
ready = "tcp"
[[system]]
name = "cell"
builtin = "cells rep"
args = "--bbs http://{web.addr} --listen {addr.api} --admin-listen {addr} --executor process"
ports = ["api"]
ready = "http /ping"
[[load]]
name = "users"
http = "GET http://{web.addr}/"
[[step]]
name = "some"
load = { users = "50/s" }
hold = "300ms"
"#;

/// A program of a user with rights, then the same one of a user without any, who shares the first one's
/// temporary files. Where this user may not become another, it is the first one twice.
#[test]
fn a_user_without_rights_comes_after_root() {
    let lab = Lab::new();
    let open = |name: &str, mode| {
        fs::create_dir_all(lab.path(name)).expect("a folder");
        fs::set_permissions(lab.path(name), Permissions::from_mode(mode)).expect("rights");
    };
    open("", 0o755);
    for shared in ["temporary", "runs", "home"] {
        open(shared, 0o1777);
    }
    let file = lab.write("two-users.toml", EXPERIMENT);
    fs::set_permissions(&file, Permissions::from_mode(0o644)).expect("rights");
    // The folder of what was built may be closed to others.
    let program = lab.path("headroom");
    fs::copy(env!("CARGO_BIN_EXE_headroom"), &program).expect("a copy");
    fs::set_permissions(&program, Permissions::from_mode(0o755)).expect("rights");
    let root = nix::unistd::geteuid().is_root();
    for user in [None, root.then_some(NOBODY)] {
        let said = |words: &[&str]| {
            let mut command = Command::new(&program);
            command.args(words).current_dir(lab.path("home"));
            command.env("TMPDIR", lab.path("temporary"));
            command.env("HOME", lab.path("home"));
            command.env_remove("XDG_CACHE_HOME");
            if let Some(user) = user {
                command.uid(user).gid(user);
            }
            Finished::of(command.output().expect("headroom starts"))
        };
        let listed = said(&["list"]).expect_code(0).stdout;
        assert!(listed.contains("\nfull-disk\n"), "{listed}");
        let (file, runs) = (text(&file), lab.path("runs"));
        said(&["run", file, "--out", text(&runs)]).expect_code(0);
    }
    let runs = fs::read_dir(lab.path("runs")).expect("a folder");
    assert_eq!(runs.count(), 2);
}

/// A container of another user finds its way through folders that the rep makes, whatever the umask of
/// who starts the rep.
#[test]
fn a_strict_user_starts_a_rep_for_the_work_of_others() {
    let lab = Lab::new();
    let script = "umask 077; exec \"$0\" cells rep --bbs http://127.0.0.1:9 --listen 127.0.0.1:0 \
                  --admin-listen 127.0.0.1:0 --executor process --containers \"$1\"";
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_headroom")]);
    command.arg(lab.path("containers")).stderr(Stdio::null());
    let rep = Process(command.spawn().expect("a rep"));
    let status = format!("/proc/{}/status", rep.0.id());
    wait_until("the umask is that of containers", || {
        let status = fs::read_to_string(&status).expect("a rep that runs");
        status.contains("\nUmask:\t0022\n") && lab.path("containers").exists()
    });
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path of text")
}
