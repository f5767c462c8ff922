//! Signals that systems get, counted by those who get them.
// Helpers outside of test functions panic like tests do.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::support::{log, run, script};
use lab_store::{Event, EventKind, Outcome};

/// Three processes of a copy: the one that is started, a child in its group, and a child in
/// a session of its own. Each counts the signals that it gets, and ends a second after the
/// first of them; SIGTERM ends all of it at once.
const COUNTS: &str = r#"
import os, signal, time
asked = {signal.SIGUSR1, signal.SIGHUP}
signal.pthread_sigmask(signal.SIG_BLOCK, asked)
signal.signal(signal.SIGUSR2, signal.SIG_IGN)
who = "parent"
told, tell = os.pipe()
for name in ["member", "stranger"]:
    if os.fork() == 0:
        who = name
        if who == "stranger":
            os.setsid()
        os.write(tell, b".")
        break
if who == "parent":
    for _ in range(2):
        os.read(told, 1)
    print("up", flush=True)
count = 0
if signal.sigtimedwait(asked, 600):
    count, end = 1, time.monotonic() + 1
    while (left := end - time.monotonic()) > 0:
        if signal.sigtimedwait(asked, left):
            count += 1
os.write(1, f"{who} {count}\n".encode())
if who == "parent":
    while True:
        try:
            os.wait()
        except ChildProcessError:
            break
"#;

/// What the processes of a copy counted, sorted.
fn counted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().filter(|line| line.contains(' ')).collect();
    lines.sort_unstable();
    lines
}

#[test]
fn a_restart_asks_each_process_once() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("counts.py");
    script(&program, COUNTS);
    let (_folder, finished) = run(&format!(
        r#"
[[system]]
name = "counts"
run = "python3 {}"
ready = "log up"
[[step]]
name = "renew"
fault = {{ restart = "counts", signal = "USR1" }}
"#,
        program.display()
    ));
    let verdict = &finished.verdict;
    assert_eq!(verdict.outcome, Outcome::Pass, "{verdict:?}");
    let said = log(&finished, "counts");
    assert_eq!(counted(&said), ["member 1", "parent 1", "stranger 1"]);
}

#[test]
fn a_step_signals_the_first_process_of_the_copies_that_it_picks_once_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("counts.py");
    script(&program, COUNTS);
    let (_folder, finished) = run(&format!(
        r#"
[[system]]
name = "counts"
run = "python3 {}"
ready = "log up"
count = 3
[[step]]
name = "reload"
signal = [{{ system = "counts", signal = "HUP", pick = 2 }}]
run = "until [ $(cat {{work}}/../logs/counts.?.log | grep -c parent) = 2 ]; do sleep 0.02; done"
[[step]]
name = "by name"
signal = {{ system = "counts.0", signal = "USR2" }}
hold = "100ms"
"#,
        program.display()
    ));
    let verdict = &finished.verdict;
    assert_eq!(verdict.outcome, Outcome::Pass, "{verdict:?}");
    let events: Vec<Event> = finished.folder.records().unwrap();
    let sent = events.iter().filter(|one| one.kind == EventKind::Signalled);
    let sent: Vec<(&str, &str)> = sent.map(|one| (&*one.name, &*one.text)).collect();
    let (step, text) = sent[0];
    assert_eq!(sent[1], ("by name", "USR2 to counts.0"));
    let picked: Vec<&str> = text.strip_prefix("HUP to ").unwrap().split(", ").collect();
    assert_eq!((step, picked.len()), ("reload", 2), "{text}");
    for copy in ["counts.0", "counts.1", "counts.2"] {
        let said = log(&finished, copy);
        let expected: &[&str] = match picked.contains(&copy) {
            true => &["parent 1"],
            false => &[],
        };
        assert_eq!(counted(&said), expected, "{copy}");
    }
    // Nothing is undone: nobody was started again.
    let started = events
        .iter()
        .filter(|one| one.kind == EventKind::SystemStarted);
    assert_eq!(started.count(), 3);
}
