//! A machine that another user has used before.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use super::lab::{Finished, Lab};

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

fn text(path: &Path) -> &str {
    path.to_str().expect("a path of text")
}
