//! Faults that leave processes less than they want: of the time, of descriptors, of memory, of
//! the disk.
// Helpers outside of test functions panic like tests do.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::support::{attempt, faults, log, passed, run};
use lab_runner::Finished;
use lab_store::RunFile;

/// Burns a processor, with a child in a session of its own that does the same. Both say, each
/// ten milliseconds of processor time, who they are, what time it is, and how much they had.
const BURNER: &str = r#"
import os, sys, time
child = os.fork() == 0
if child:
    os.setsid()
who, said = "child" if child else "parent", 0
while True:
    had = time.process_time()
    if had - said >= 0.01:
        os.write(1, f"{who} {time.time()} {had}\n".encode())
        said = had
"#;

/// How much of how long a process had of a processor while the only fault lasted.
fn had(finished: &Finished, copy: &str, who: &str) -> (f64, f64) {
    let fault = &faults(finished)[0];
    let environment: serde_json::Value = finished.folder.read_json(RunFile::Environment).unwrap();
    let origin_s = environment["started_at_unix_ns"].as_f64().unwrap() / 1e9;
    // Less a moment at both ends: an event is not told at the very instant.
    let (from, to) = (
        origin_s + fault.begin_s + 0.2,
        origin_s + fault.end_s.unwrap() - 0.1,
    );
    let text = log(finished, copy);
    let said = text.lines().filter_map(|line| line.strip_prefix(who));
    let said = said.map(|line| {
        let (at, had) = line.trim().split_once(' ').unwrap();
        (at.parse().unwrap(), had.parse().unwrap())
    });
    let said: Vec<(f64, f64)> = said.filter(|(at, _)| (from..to).contains(at)).collect();
    let (first, last) = (said[0], said[said.len() - 1]);
    (last.1 - first.1, last.0 - first.0)
}

#[test]
fn what_is_slowed_runs_for_its_share_of_the_time_and_no_other() {
    let scripts = tempfile::tempdir().unwrap();
    let burner = scripts.path().join("burner.py");
    std::fs::write(&burner, BURNER).unwrap();
    let (_folder, finished) = run(&format!(
        r#"
[[system]]
name = "burner"
run = "python3 {}"
ready = "log child"
count = 2
[[step]]
name = "slow one"
hold = "4s"
fault = {{ slow = "burner.0", to = "20%", at = "300ms", for = "3500ms" }}
"#,
        burner.display()
    ));
    passed(&finished);
    let (mut slowed_s, mut free_s) = (0.0, 0.0);
    for who in ["parent", "child"] {
        let (had_s, of_s) = had(&finished, "burner.0", who);
        // However busy the machine is, it never runs for more of the time.
        assert!(had_s <= 0.23 * of_s, "{who}: {had_s} s of {of_s} s");
        slowed_s += had_s;
        free_s += had(&finished, "burner.1", who).0;
    }
    // Yet it runs, as far as others leave it some: its turns are short, so where its sibling
    // has to share a processor it gets less than a fifth of what that gets.
    assert!(
        slowed_s >= 0.05 * free_s,
        "{slowed_s} s, its sibling {free_s} s"
    );
    let fault = &faults(&finished)[0];
    assert_eq!(
        (&*fault.kind, &*fault.targets),
        ("slow", &["burner.0".to_owned()][..])
    );
    assert!(fault.text.starts_with("they ran for "), "{}", fault.text);
}

#[test]
fn what_was_slowed_for_good_or_is_when_the_run_ends_hears_that_it_shall_end() {
    for how in ["keep = true", "for = \"10m\""] {
        let (_folder, finished) = run(&format!(
            r#"
[[system]]
name = "polite"
run = "sh -c 'trap \"echo bye; exit 0\" TERM; echo up; while :; do sleep 0.05; done'"
ready = "log up"
[[step]]
name = "slow"
hold = "300ms"
fault = {{ slow = "polite", to = "5%", at = "0s", {how} }}
run = "exit 1"
"#
        ));
        assert_eq!(log(&finished, "polite"), "up\nbye\n", "{how}");
    }
}

/// Tries, from when a file is there, again and again how many descriptors it can open, or how
/// many pieces of a mebibyte it can have, 50 at most. Its child does the same.
const TAKER: &str = r#"
import mmap, os, sys, time
print("up", flush=True)
while not os.path.exists(sys.argv[2]):
    time.sleep(0.01)
who = "child" if os.fork() == 0 else "parent"
while True:
    held = []
    try:
        while len(held) < 50:
            if sys.argv[1] == "descriptors":
                held.append(os.open("/dev/null", 0))
            else:
                held.append(mmap.mmap(-1, 1 << 20))
    except OSError:
        pass
    for one in held:
        os.close(one) if sys.argv[1] == "descriptors" else one.close()
    os.write(1, f"{who} {len(held)}\n".encode())
    time.sleep(0.02)
"#;

/// How many one of a taker's processes could take during the fault and after it, in order and
/// without repetition.
fn could_take(finished: &Finished, copy: &str, who: &str) -> Vec<u32> {
    let text = log(finished, copy);
    let took = text.lines().filter_map(|line| line.strip_prefix(who));
    let mut took: Vec<u32> = took.map(|number| number.trim().parse().unwrap()).collect();
    took.dedup();
    took
}

fn taken(what: &str, fault: &str) -> (tempfile::TempDir, Finished) {
    let scripts = tempfile::tempdir().unwrap();
    let taker = scripts.path().join("taker.py");
    std::fs::write(&taker, TAKER).unwrap();
    let (folder, finished) = run(&format!(
        r#"
[[system]]
name = "taker"
run = "python3 {} {what} {{work}}/go"
ready = "log up"
count = 2
[[step]]
name = "little left"
hold = "300ms"
fault = {{ exhaust = "taker.0", {fault}, at = "0s", for = "1500ms" }}
run = "touch {{work}}/go"
[[step]]
name = "as before"
hold = "500ms"
"#,
        taker.display()
    ));
    passed(&finished);
    (folder, finished)
}

#[test]
fn descriptors_that_are_left_can_be_opened_and_no_more_until_the_fault_ends() {
    let (folder, finished) = taken("descriptors", "descriptors = 7");
    for who in ["parent", "child"] {
        // The child was started when its parent had little, and has as much again afterwards.
        assert_eq!(could_take(&finished, "taker.0", who), [7, 50], "{who}");
        assert_eq!(could_take(&finished, "taker.1", who), [50], "{who}");
    }
    let fault = &faults(&finished)[0];
    assert_eq!(
        (&*fault.kind, &*fault.targets),
        ("exhaust", &["taker.0".to_owned()][..])
    );
    assert!(
        fault.text.contains("1 that they had started"),
        "{}",
        fault.text
    );
    // Nothing is left to be undone.
    assert!(!folder.path().join("faults-to-undo").exists());
}

#[test]
fn memory_that_is_left_can_be_mapped_and_no_more_until_the_fault_ends() {
    let (_folder, finished) = taken("memory", "memory = \"20MiB\"");
    let took = could_take(&finished, "taker.0", "parent");
    // The interpreter takes a little itself.
    assert!(
        took[..took.len() - 1]
            .iter()
            .all(|took| (15..=20).contains(took)),
        "{took:?}"
    );
    assert_eq!(took.last(), Some(&50), "{took:?}");
    assert_eq!(could_take(&finished, "taker.1", "parent"), [50]);
}

/// Writes a file of 100 kB again and again, beside the one before, and says whether it could.
const WRITER: &str = r#"
import os, sys, time
path = os.path.join(sys.argv[1], "file")
said = None
print("up", flush=True)
while True:
    try:
        with open(path + ".new", "wb") as file:
            file.write(bytes(100_000))
        os.replace(path + ".new", path)
        could = "wrote"
    except OSError as error:
        could = error.strerror
    if could != said:
        print(could, flush=True)
        said = could
    time.sleep(0.01)
"#;

#[test]
fn a_disk_that_is_full_takes_nothing_until_the_fault_ends() {
    let scripts = tempfile::tempdir().unwrap();
    let writer = scripts.path().join("writer.py");
    std::fs::write(&writer, WRITER).unwrap();
    let (folder, finished) = attempt(&format!(
        r#"
[[system]]
name = "writer"
run = "python3 {} {{disk}}"
ready = "log wrote"
disk = "1MiB"
count = 2
[[step]]
name = "full"
hold = "300ms"
fault = {{ exhaust = "writer.0", disk = "16KiB", at = "0s", for = "1s" }}
[[step]]
name = "as before"
hold = "500ms"
"#,
        writer.display()
    ));
    if !processes::may_mount() {
        let error = finished.unwrap_err().to_string();
        assert!(error.contains("CAP_SYS_ADMIN"), "{error}");
        return;
    }
    let finished = finished.unwrap();
    passed(&finished);
    let said = |copy: &str| {
        log(&finished, copy)
            .lines()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        said("writer.0"),
        ["up", "wrote", "No space left on device", "wrote"]
    );
    assert_eq!(said("writer.1"), ["up", "wrote"]);
    let text = &faults(&finished)[0].text;
    assert!(text.contains("were free"), "{text}");
    // Nothing is left to be undone, and nothing is mounted any more.
    assert!(!folder.path().join("faults-to-undo").exists());
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(
        !mounts.contains(folder.path().to_str().unwrap()),
        "{mounts}"
    );
}
