//! Faults of a part of what passes: datagrams, one direction, some of the clients.
// Helpers outside of test functions panic like tests do.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeMap;
use std::path::Path;

use crate::support::{faults, log, outcomes, run, server};
use lab_store::Outcome;

fn program(folder: &Path, text: &str) -> String {
    let path = folder.join("program.py");
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[test]
fn datagrams_of_a_load_are_dropped_while_a_partition_lasts_and_not_before_or_after() {
    let scripts = tempfile::tempdir().unwrap();
    let echo = program(
        scripts.path(),
        r#"
import socket, sys
own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
own.bind(("127.0.0.1", int(sys.argv[1])))
print("up", flush=True)
while True:
    data, whom = own.recvfrom(2048)
    own.sendto(data, whom)
"#,
    );
    let (_folder, finished) = run(&format!(
        r#"
[[system]]
name = "echo"
run = "python3 {echo} {{port}}"
ready = "log up"
[[load]]
name = "pings"
udp = "udp://{{echo.addr}}"
body = "x"
rate = "constant 200/s"
timeout = "1s"
guard = {{ late_after = "10s", steal_share = "100%" }}
[[step]]
name = "as usual"
load = {{ pings = "on" }}
hold = "1s"
[[step]]
name = "cut off"
load = {{ pings = "on" }}
hold = "3s"
fault = {{ partition = "pings -> echo", at = "500ms", for = "1s" }}
[[step]]
name = "lossy"
load = {{ pings = "on" }}
hold = "3s"
fault = {{ lose = "echo", share = "50%", at = "0s", for = "2900ms", direction = "to client" }}
[[step]]
name = "again"
load = {{ pings = "on" }}
hold = "1s"
[[expect]]
that = "'as usual': pings errors == 0% and 'again': pings errors == 0%"
# 200 are due within the second; those just before may be under way when it begins.
[[expect]]
that = "'cut off': lost(pings) >= 190 and 'cut off': lost(pings) <= 230 and 'cut off': depth(pings) >= 95%"
[[expect]]
that = "'lossy': pings errors > 35% and 'lossy': pings errors < 65%"
"#
    ));
    let made = faults(&finished);
    let verdict = &finished.verdict;
    assert_eq!(verdict.outcome, Outcome::Pass, "{verdict:?} {made:#?}");
    for fault in &made {
        assert!(fault.text.contains("datagrams dropped"), "{}", fault.text);
    }
}

#[test]
fn a_delay_in_one_direction_is_seen_once() {
    let scripts = tempfile::tempdir().unwrap();
    let server = server(scripts.path());
    for direction in ["to server", "to client"] {
        let (_folder, finished) = run(&format!(
            r#"
[[system]]
name = "web"
run = "python3 {} {{port}}"
ready = "tcp"
[[load]]
name = "traffic"
http = "GET http://{{web.addr}}/"
rate = "constant 20/s"
guard = {{ late_after = "10s", steal_share = "100%" }}
[[step]]
name = "far away"
load = {{ traffic = "on" }}
hold = "2s"
fault = {{ delay = "web", by = "500ms", direction = "{direction}", at = "0s", for = "2s" }}
# A busy machine is late itself, which shortens what is known of the delay; none and twice are far.
[[expect]]
that = "traffic p50 >= 150ms"
[[expect]]
that = "traffic p50 < 1s"
"#,
            server.display()
        ));
        let expected = [Outcome::Pass; 2];
        let verdict = &finished.verdict;
        assert_eq!(outcomes(&finished), expected, "{direction}: {verdict:?}");
    }
}

#[test]
fn a_partition_of_some_clients_stops_these_alone_and_ends() {
    let scripts = tempfile::tempdir().unwrap();
    let both = program(
        scripts.path(),
        r#"
import socket, sys, threading, time
port = int(sys.argv[2])
def answer(one):
    while data := one.recv(4096):
        one.sendall(data)
if sys.argv[1] == "server":
    own = socket.create_server(("127.0.0.1", port), backlog=100)
    while True:
        threading.Thread(target=answer, args=(own.accept()[0],), daemon=True).start()
all = [socket.create_connection(("127.0.0.1", port)) for _ in range(40)]
for one in all:
    one.setblocking(False)
while True:
    for one in all:
        one.send(b"x")
    time.sleep(0.7)
    answered = 0
    for one in all:
        try:
            answered += len(one.recv(4096)) > 0
        except BlockingIOError:
            pass
    print("answered", answered, flush=True)
"#,
    );
    let (_folder, finished) = run(&format!(
        r#"
[[system]]
name = "server"
run = "python3 {both} server {{port}}"
ready = "tcp"
[[system]]
name = "clients"
run = "python3 {both} clients {{server.port}}"
after = ["server"]
ready = "log answered 40"
[[step]]
name = "half are cut off"
hold = "8s"
fault = {{ partition = "clients -> server", clients = "50%", at = "1s", for = "4s" }}
"#
    ));
    let text = log(&finished, "clients");
    let answered = text
        .lines()
        .filter_map(|line| line.strip_prefix("answered "));
    let answered: Vec<u64> = answered.map(|number| number.parse().unwrap()).collect();
    let (first, last) = (answered[0], answered[answered.len() - 1]);
    assert_eq!((first, last), (40, 40), "{answered:?}");
    let fault = &faults(&finished)[0];
    let hit: u64 = fault.text.split(' ').next().unwrap().parse().unwrap();
    assert!((8..=32).contains(&hit), "{}", fault.text);
    // While it lasted; a look while it began or ended sees some of both.
    let mut seen: BTreeMap<u64, u32> = BTreeMap::new();
    for fewer in answered.iter().filter(|answered| **answered < 40) {
        *seen.entry(*fewer).or_default() += 1;
    }
    let most = seen.iter().max_by_key(|(_, times)| **times);
    assert_eq!(
        most.map(|(answered, _)| *answered),
        Some(40 - hit),
        "{answered:?}"
    );
}
