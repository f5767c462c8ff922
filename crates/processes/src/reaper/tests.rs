use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use super::tag::carried;
use super::*;

fn tag(name: &str) -> RunTag {
    RunTag::new(name, i64::from(std::process::id()))
}

fn tagged(tag: &RunTag, script: &str) -> Child {
    Command::new("sh")
        .args(["-c", script])
        .envs([tag.variable()])
        .stdout(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap()
}

fn wait_for_carriers(tag: &RunTag, count: usize) {
    for _ in 0..1000 {
        if tag.carriers().len() >= count {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("no {count} processes carry the tag");
}

#[test]
fn a_tag_is_found_among_other_variables_and_tags() {
    let is_in = |environ: &[u8]| carried(environ).any(|tag| tag == b"a-1.2.3");
    assert!(is_in(b"PATH=/bin\0HEADROOM_RUN=a-1.2.3\0"));
    assert!(is_in(b"HEADROOM_RUN=outer.1.1,a-1.2.3,inner.4.5\0"));
    assert!(!is_in(b"HEADROOM_RUN=a-1.2.33\0"));
    assert!(!is_in(b"HEADROOM_RUN=xa-1.2.3\0HEADROOM_RUN_=a-1.2.3\0"));
    assert!(!is_in(b"OTHER=a-1.2.3\0"));
    assert!(!is_in(b""));
}

#[test]
fn lines_that_could_harm_others_are_refused() {
    let mut owned = OwnedProcess::default();
    for line in [
        "group 0",
        "group 1",
        "group -5",
        "group",
        "group x",
        "folder relative/path",
        "folder ",
        "limits",
        "limits -1",
        "tag ",
        "tag a,b",
        "tag",
        "done now",
        "",
        "rm /",
    ] {
        assert!(owned.take(line).is_err(), "{line:?}");
    }
}

#[test]
fn after_done_nothing_is_touched() {
    let folder = tempfile::tempdir().unwrap();
    let work = folder.path().join("work");
    std::fs::create_dir(&work).unwrap();
    watch(format!("folder {}\ndone\n", work.display()).as_bytes()).unwrap();
    assert!(work.exists());
}

#[test]
fn without_done_groups_marked_processes_and_folders_go() {
    let folder = tempfile::tempdir().unwrap();
    let work = folder.path().join("work");
    std::fs::create_dir_all(work.join("deep")).unwrap();
    let tag = tag("without-done");
    // One in a group we are told of, without the tag.
    let mut grouped = Command::new("sleep")
        .arg("600")
        .process_group(0)
        .spawn()
        .unwrap();
    // One that leaves its session and group, in the background of one that ends.
    let mut left = tagged(
        &tag,
        "setsid sleep 600 & setsid sh -c 'sleep 600; :' & wait",
    );
    wait_for_carriers(&tag, 4);
    let lines = format!(
        "tag {tag}\ngroup {}\nnonsense\nfolder {}\n",
        grouped.id(),
        work.display()
    );
    watch(lines.as_bytes()).unwrap();
    assert!(!grouped.wait().unwrap().success());
    assert!(!left.wait().unwrap().success());
    assert!(tag.carriers().is_empty());
    assert!(!work.exists());
}

#[test]
fn a_group_that_is_gone_is_not_killed() {
    let mut child = Command::new("sleep")
        .arg("600")
        .process_group(0)
        .spawn()
        .unwrap();
    watch(format!("group {0}\ngone {0}\n", child.id()).as_bytes()).unwrap();
    assert!(child.try_wait().unwrap().is_none(), "it must still run");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_sweep_ends_processes_that_fork_while_it_goes_on() {
    let tag = tag("forking");
    let mut child = tagged(&tag, "while :; do sleep 600 & sleep 0.01; done");
    wait_for_carriers(&tag, 3);
    assert_eq!(tag.sweep(), Vec::<u32>::new());
    child.wait().unwrap();
}

/// In the middle of `execve` a process shows no environment; this one is there all the time.
#[test]
fn a_sweep_ends_a_process_that_goes_from_program_to_program() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("again.sh");
    std::fs::write(&script, "exec sh \"$0\"\n").unwrap();
    let tag = tag("exec");
    for turn in 0..50 {
        let mut child = tagged(&tag, &format!("exec sh {}", script.display()));
        // The kernel lets us go on a moment before the child has its own environment.
        wait_for_carriers(&tag, 1);
        let left = tag.sweep();
        // A killed process loses its memory, and so its tag, before it can be waited for.
        let ended = (0..1000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            child.try_wait().unwrap().is_some()
        });
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(ended && left.is_empty(), "turn {turn}: {left:?}");
    }
}

/// Each starts the next and ends: who was listed may be gone when it is looked at, and whom it has
/// started meanwhile is in no list.
#[test]
fn a_sweep_ends_processes_that_take_over_from_one_another() {
    let folder = tempfile::tempdir().unwrap();
    let (script, beats) = (folder.path().join("next.sh"), folder.path().join("beats"));
    let text = format!("echo >> {}\nsh \"$0\" &\n", beats.display());
    std::fs::write(&script, text).unwrap();
    let beats = || std::fs::metadata(&beats).map_or(0, |file| file.len());
    let tag = tag("next");
    for turn in 0..50 {
        let mut child = tagged(&tag, &format!("exec sh {}", script.display()));
        let before = beats();
        while beats() < before + 2 {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let left = tag.sweep();
        let at_first = beats();
        std::thread::sleep(std::time::Duration::from_millis(50));
        let later = beats();
        child.wait().unwrap();
        assert!(
            left.is_empty() && at_first == later,
            "turn {turn}: {left:?}"
        );
    }
}

#[test]
fn a_command_that_is_no_reaper_is_refused() {
    let start = |words: &[&str]| {
        let words: Vec<_> = words.iter().map(Into::into).collect();
        Reaper::start(&words).unwrap_err().to_string()
    };
    assert!(start(&["true"]).contains("instead of \"ready\""));
    assert!(start(&["/nonexistent/reaper"]).contains("/nonexistent/reaper"));
    assert!(start(&[]).contains("empty"));
}
