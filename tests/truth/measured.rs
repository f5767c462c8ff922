//! What the binary said of one planted server.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// A finished `headroom load` or the load of a finished `headroom run`.
pub(crate) struct Measured {
    pub(crate) code: i32,
    /// The result of the load, as `--json` prints it.
    pub(crate) load: Value,
    /// All that was printed for people.
    pub(crate) text: String,
}

impl Measured {
    /// What a finished `headroom load --json` printed.
    pub(crate) fn of(output: &Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            load: serde_json::from_slice(&output.stdout).unwrap_or_default(),
            text: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// VALID or INVALID.
    pub(crate) fn valid(&self) -> bool {
        self.load["validity"]["valid"] == true
    }

    /// A number of the result: `None` if it is withheld, no number (NaN) if it is not there at all.
    pub(crate) fn number(&self, pointer: &str) -> Option<f64> {
        match self.load.pointer(pointer) {
            None => Some(f64::NAN),
            Some(told) => told.as_f64(),
        }
    }

    /// The share of failures that is told.
    pub(crate) fn failed_share(&self) -> Option<f64> {
        self.number("/requests/failed_share")
    }

    /// What is noted of the load, beside its numbers.
    pub(crate) fn notes(&self) -> String {
        self.load["notes"].to_string()
    }
}

/// The binary, in a folder of its own.
pub(crate) fn headroom(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_headroom"));
    command
        .current_dir(folder)
        .env("XDG_CACHE_HOME", folder)
        .stdin(Stdio::null());
    command
}

/// `headroom load URL --json ARGUMENT…`.
pub(crate) fn load(folder: &Path, url: &str, arguments: &[&str]) -> Measured {
    let output = headroom(folder)
        .args(["load", url, "--json"])
        .args(arguments)
        .output()
        .expect("headroom starts");
    Measured::of(&output)
}

/// `headroom run FILE`; the load is that of the step `name`.
pub(crate) fn run(folder: &Path, file: &Path, name: &str) -> (Measured, Value) {
    run_by(headroom(folder), folder, file, name)
}

/// Has a shell do something in a network of its own, which has 400 ports for outgoing connections. What
/// follows is "$@" in it.
const FEW_PORTS: &str = "ip link set lo up && \
    echo 40000 40399 > /proc/sys/net/ipv4/ip_local_port_range && exec \"$@\"";

fn with_few_ports(program: &std::ffi::OsStr) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--net", "sh", "-c", FEW_PORTS, "sh"]);
    command.arg(program);
    command
}

/// Whether this machine lets one make a network of one's own.
pub(crate) fn may_have_few_ports() -> bool {
    let tried = with_few_ports("true".as_ref()).output();
    tried.is_ok_and(|output| output.status.success())
}

/// The same where there are 400 ports for outgoing connections.
pub(crate) fn run_with_few_ports(folder: &Path, file: &Path, name: &str) -> (Measured, Value) {
    let plain = headroom(folder);
    let mut command = with_few_ports(plain.get_program());
    command
        .current_dir(folder)
        .env("XDG_CACHE_HOME", folder)
        .stdin(Stdio::null());
    run_by(command, folder, file, name)
}

fn run_by(mut command: Command, folder: &Path, file: &Path, name: &str) -> (Measured, Value) {
    let runs = folder.join("runs");
    let output = command
        .args(["run", "--json", "--out"])
        .arg(&runs)
        .arg(file)
        .output()
        .expect("headroom starts");
    let found = std::fs::read_dir(&runs)
        .ok()
        .and_then(|mut runs| runs.next());
    let run = found
        .and_then(Result::ok)
        .map(|run| run.path())
        .unwrap_or_default();
    let stored = std::fs::read_to_string(run.join("loads").join(format!("{name}.json")));
    let measured = Measured {
        code: output.status.code().unwrap_or(-1),
        load: serde_json::from_str(&stored.unwrap_or_default()).unwrap_or_default(),
        text: String::from_utf8_lossy(&output.stderr).into_owned(),
    };
    let verdict = serde_json::from_slice(&output.stdout).unwrap_or_default();
    (measured, verdict)
}
