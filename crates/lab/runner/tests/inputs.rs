//! Logs that systems send: over sockets, as syslog or lines, and through systemd's journal.
// Helpers outside of test functions panic like tests do.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::support::{attempt, notes, outcomes, run};
use lab_store::Outcome;

/// Sends 60 tasks, each in two lines, in the way that its first argument says, once the file `go` is
/// there.
const SENDER: &str = r#"
import json, os, socket, sys, time
way, where, folder = sys.argv[1:4]
while not os.path.exists(folder + "/go"):
    time.sleep(0.02)
def connected(family, kind, address):
    own = socket.socket(family, kind)
    own.connect(address)
    return own
host = lambda: (where.split(":")[0], int(where.split(":")[1]))
own = {
    "tcp": lambda: connected(socket.AF_INET, socket.SOCK_STREAM, host()),
    "counted": lambda: connected(socket.AF_INET, socket.SOCK_STREAM, host()),
    "udp": lambda: connected(socket.AF_INET, socket.SOCK_DGRAM, host()),
    "unix": lambda: connected(socket.AF_UNIX, socket.SOCK_DGRAM, where),
    "journal": lambda: connected(socket.AF_UNIX, socket.SOCK_DGRAM, where),
}[way]()
for task in range(60):
    for message in ["task.start", "task.done"]:
        long = "x" * (5000 if way == "journal" else 0)
        line = json.dumps({"time": time.time(), "msg": message, "guid": f"{way}-{task}", "long": long})
        text = {
            "tcp": line + "\n",
            "counted": (lambda m: f"{len(m)} {m}")(f"<134>1 - host shop - - - {line}"),
            "udp": f"<134>1 2026-11-26T18:04:05Z host shop 42 - - {line}",
            "unix": f"<13>Nov 26 18:04:05 shop[42]: {line}",
            "journal": f"MESSAGE={line}\nSYSLOG_IDENTIFIER=shop\n",
        }[way]
        own.send(text.encode())
    # A reader that is kept from the processor must not lose datagrams.
    time.sleep(0.002)
if way == "tcp":
    own.close()
open(folder + "/sent-" + way, "w").close()
time.sleep(600)
"#;

fn sender(folder: &Path) -> String {
    let path = folder.join("sender.py");
    std::fs::write(&path, SENDER).unwrap();
    path.display().to_string()
}

const REST: &str = r#"
[[lifecycle]]
name = "task"
key = ["guid"]
points = [["start", "task.start"], ["done", "task.done"]]
"#;

#[test]
fn logs_that_are_sent_over_sockets_are_read_to_their_last_line() {
    let scripts = tempfile::tempdir().unwrap();
    let sender = sender(scripts.path());
    let ways = [
        ("tcp", "{addr.log}", "tcp {addr.log}"),
        ("counted", "{addr.log}", "tcp {addr.log}"),
        ("udp", "{addr.log}", "udp {addr.log}"),
        ("unix", "{work}/log", "unix {work}/log"),
    ];
    let systems = ways.map(|(way, to, input)| {
        format!(
            "[[system]]\nname = \"{way}\"\nrun = \"python3 {sender} {way} {to} {{work}}\"\nports = [\"log\"]\n\
             inputs = [\"{input}\"]\n"
        )
    });
    let all = ways.map(|(way, ..)| format!("-e {{work}}/sent-{way}"));
    let (_folder, finished) = run(&format!(
        r#"
{}
{REST}
[[step]]
name = "send"
run = "touch {{work}}/go; until [ {} ]; do sleep 0.02; done"
[[expect]]
that = "task.start..done count == 240"
[[expect]]
that = "task.complete == 100%"
"#,
        systems.concat(),
        all.join(" -a ")
    ));
    assert_eq!(
        outcomes(&finished),
        [Outcome::Pass; 2],
        "{:?}",
        finished.verdict
    );
    assert_eq!(notes(&finished), Vec::<&str>::new());
    for (way, ..) in ways {
        let log = finished
            .folder
            .path()
            .join(format!("logs/{way}.received.log"));
        let log = std::fs::read_to_string(log).unwrap();
        assert_eq!(log.lines().count(), 120, "{log}");
    }
}

#[test]
fn an_address_that_is_in_use_ends_the_run_before_anything_starts() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let text = format!(
        "[[system]]\nname = \"web\"\nrun = \"sleep 60\"\ninputs = [\"tcp {address}\"]\n\
         [[step]]\nname = \"look\"\nhold = \"1ms\"\n"
    );
    let error = crate::support::refused(&text);
    assert!(
        error.contains("take the log that web sends") && error.contains(&address.to_string()),
        "{error}"
    );
}

/// A journal of its own.
struct Journal {
    name: String,
    process: Child,
}

impl Journal {
    /// `None`: this machine has no journald, or does not let us start one.
    fn start() -> Option<Self> {
        let program = [
            "/usr/lib/systemd/systemd-journald",
            "/lib/systemd/systemd-journald",
        ];
        let program = program.into_iter().find(|path| Path::new(path).exists())?;
        let name = format!("headroom{}", std::process::id());
        let mut journal = Self {
            process: Command::new(program)
                .arg(&name)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .ok()?,
            name,
        };
        while !Path::new(&journal.socket()).exists() {
            if journal.process.try_wait().unwrap().is_some() {
                return None;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        Some(journal)
    }

    fn socket(&self) -> String {
        format!("/run/systemd/journal.{}/socket", self.name)
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let ours = |path: &Path| path.to_string_lossy().ends_with(&format!(".{}", self.name));
        for folder in ["/run/systemd", "/run/log/journal", "/var/log/journal"] {
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            let entries = entries.map(|entry| entry.path()).filter(|path| ours(path));
            entries.for_each(|path| drop(std::fs::remove_dir_all(path)));
        }
    }
}

#[test]
fn entries_of_the_journal_are_read_from_the_start_of_the_run() {
    let Some(journal) = Journal::start() else {
        eprintln!("not run: there is no journald that this user may start");
        return;
    };
    let scripts = tempfile::tempdir().unwrap();
    let (_folder, finished) = run(&format!(
        r#"
[[system]]
name = "shop"
run = "python3 {} journal {} {{work}}"
inputs = ["journal --namespace={} SYSLOG_IDENTIFIER=shop"]
{REST}
[[step]]
name = "send"
run = "touch {{work}}/go; until [ $(grep -c done {{work}}/../logs/shop.received.log) = 60 ]; do sleep 0.02; done"
[[expect]]
that = "task.start..done count == 60"
"#,
        sender(scripts.path()),
        journal.socket(),
        journal.name,
    ));
    assert_eq!(
        outcomes(&finished),
        [Outcome::Pass],
        "{:?}",
        finished.verdict
    );
    assert_eq!(notes(&finished), Vec::<&str>::new());
}

#[test]
fn a_journal_that_cannot_be_read_ends_the_run() {
    // journalctl refuses a field without a name; where there is no journalctl, that is said.
    let (_folder, finished) = attempt(
        "[[system]]\nname = \"web\"\nrun = \"sleep 60\"\ninputs = [\"journal =x\"]\n\
         [[step]]\nname = \"look\"\nhold = \"1m\"\n",
    );
    let why = match finished {
        Ok(finished) => finished.verdict.reason.unwrap(),
        Err(error) => error.to_string(),
    };
    assert!(why.contains("follow the journal for web: "), "{why}");
}
