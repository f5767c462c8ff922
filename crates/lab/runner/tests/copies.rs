//! Copies of a system that know each other, as the members of a cluster have to.
// Helpers outside of test functions panic like tests do.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::process::Command;

use crate::support::{lab_process, log, plan, run, script, server};
use lab_runner::Finished;
use lab_store::{Event, EventKind, Outcome};

#[track_caller]
fn passed(text: &str) -> (tempfile::TempDir, Finished) {
    let (folder, finished) = run(text);
    let verdict = &finished.verdict;
    assert_eq!(verdict.outcome, Outcome::Pass, "{verdict:?}");
    (folder, finished)
}

/// What a copy said after a word.
fn said(finished: &Finished, copy: &str, word: &str) -> String {
    let text = log(finished, copy);
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(word));
    lines.next().unwrap().trim().to_owned()
}

#[test]
fn every_copy_is_told_where_all_of_them_are() {
    let (_folder, finished) = passed(
        r#"
[[system]]
name = "member"
run = """sh -c 'echo own {addr} {addr.peer}; echo peers $PEERS; echo last {member[2].addr} {member[2].port.peer}
echo cluster {member[*]:n{index}=http://{addr.peer}}; echo watched by {watcher.addr}; echo up; exec sleep 600'"""
ready = "log up"
count = 3
ports = ["peer"]
env = { PEERS = "{member[* ].addr}" }
[[system]]
name = "watcher"
run = "sh -c 'echo own {addr}; echo sees {member[*].addr}; exec sleep 600'"
after = ["member"]
[[step]]
name = "tell"
run = "echo {member[1].addr}; for member in {member[* ].addr}; do echo $member; done"
"#,
    );
    let copies = ["member.0", "member.1", "member.2"];
    let own: Vec<(String, String)> = copies
        .iter()
        .map(|copy| {
            let own = said(&finished, copy, "own");
            let (client, peer) = own.split_once(' ').unwrap();
            (client.to_owned(), peer.to_owned())
        })
        .collect();
    let clients: Vec<&str> = own.iter().map(|(client, _)| client.as_str()).collect();
    let peers = own.iter().enumerate();
    let cluster: Vec<String> = peers
        .map(|(index, (_, peer))| format!("n{index}=http://{peer}"))
        .collect();
    let last = own[2].1.rsplit_once(':').unwrap().1;
    for copy in copies {
        assert_eq!(said(&finished, copy, "peers"), clients.join(" "));
        assert_eq!(said(&finished, copy, "cluster"), cluster.join(","));
        assert_eq!(
            said(&finished, copy, "last"),
            format!("{} {last}", clients[2])
        );
        let watcher = said(&finished, "watcher", "own");
        assert_eq!(said(&finished, copy, "watched by"), watcher);
    }
    assert_eq!(said(&finished, "watcher", "sees"), clients.join(","));
    let events: Vec<Event> = finished.folder.records().unwrap();
    let told = events.iter().find(|event| event.kind == EventKind::Said);
    assert_eq!(
        told.unwrap().text,
        format!("{}\n{}", clients[1], clients.join("\n"))
    );
}

/// A server that says what it was asked.
const SERVER: &str = r#"
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        print("asked", flush=True)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()
    def log_message(self, *_): pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"#;

#[test]
fn a_load_asks_the_copy_that_it_names_and_no_other() {
    let scripts = tempfile::tempdir().unwrap();
    let server = scripts.path().join("server.py");
    script(&server, SERVER);
    let (_folder, finished) = passed(&format!(
        r#"
[[system]]
name = "web"
run = "python3 {} {{port}}"
ready = "tcp"
count = 3
[[load]]
name = "traffic"
http = "GET http://{{web[1].addr}}/"
connections = 2
guard = {{ late_after = "1s", steal_share = "100%", little = "100%" }}
[[step]]
name = "ask"
load = {{ traffic = "constant 50/s" }}
hold = "1s"
[[expect]]
that = "traffic ok == 100% and traffic answered > 0"
"#,
        server.display()
    ));
    let asked = |copy| log(&finished, copy).matches("asked").count();
    assert_eq!([asked("web.0"), asked("web.2")], [0, 0]);
    assert!(asked("web.1") > 0);
}

#[test]
fn a_copy_that_is_started_again_may_open_as_many_files_as_before() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path());
    let (_, text) = plan(&format!(
        r#"
[[system]]
name = "web"
run = "sh -c 'ulimit -Sn; exec python3 {} {{port}}'"
ready = "tcp"
[[load]]
name = "traffic"
http = "GET http://{{web.addr}}/"
connections = 2
[[step]]
name = "restart"
load = {{ traffic = "constant 50/s" }}
hold = "300ms"
fault = {{ restart = "web" }}
"#,
        server.display()
    ));
    let (file, runs) = (folder.path().join("test.toml"), folder.path().join("runs"));
    std::fs::write(&file, text).unwrap();
    // A laboratory raises its own limit when it opens the connections of a load.
    let mut lab = Command::new("sh");
    lab.args(["-c", r#"ulimit -Sn 256 && exec "$0" "$@""#]);
    lab.arg(lab_process()).args([&file, &runs]);
    let output = lab.output().unwrap();
    let entries = std::fs::read_dir(&runs).unwrap();
    let logs = entries.map(|entry| entry.unwrap().path().join("logs/web.log"));
    let said: String = logs.flat_map(std::fs::read_to_string).collect();
    let limits: Vec<u32> = said.lines().filter_map(|line| line.parse().ok()).collect();
    assert_eq!(limits, [256, 256], "{output:?}");
}
