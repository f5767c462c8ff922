use std::process::{Child, Command};

use super::super::sweep;
use super::*;

/// The ledger of a process that is gone, with these lines.
fn abandoned(folder: &Path, lines: &str) -> PathBuf {
    let path = folder.join("999999999-1.ledger");
    let boot = boot().unwrap();
    let owner =
        format!(r#"{{"owner":{{"process":{{"pid":999999999,"start_ticks":1}},"boot":"{boot}"}}}}"#);
    fs::write(&path, format!("{owner}\n{lines}")).unwrap();
    path
}

fn due(entry: u64, act: &Undo) -> String {
    serde_json::to_string(&Line::Due {
        entry: Entry(entry),
        act: act.clone(),
    })
    .unwrap()
        + "\n"
}

/// A child that is stopped.
fn stopped() -> (Child, ProcessId) {
    let child = Command::new("sleep").arg("600").spawn().unwrap();
    let process = ProcessId::of(child.id().cast_signed()).unwrap();
    let pid = nix::unistd::Pid::from_raw(process.pid);
    nix::sys::signal::kill(pid, nix::sys::signal::SIGSTOP).unwrap();
    while state(process) != 'T' {
        std::thread::yield_now();
    }
    (child, process)
}

fn state(process: ProcessId) -> char {
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.pid)).unwrap();
    stat.rsplit_once(") ").unwrap().1.chars().next().unwrap()
}

#[test]
fn what_was_recorded_is_undone_and_the_file_goes() {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = Ledger::create(folder.path(), None).unwrap();
    let [first, second] = ["one", "two"].map(|name| {
        let path = ledger.path_to_make(folder.path(), name);
        let entry = ledger.record(Undo::Remove { path: path.clone() }).unwrap();
        fs::create_dir(&path).unwrap();
        fs::write(path.join("inside"), "x").unwrap();
        (path, entry)
    });
    ledger.undo(first.1).unwrap();
    assert!(!first.0.exists() && second.0.exists());
    // Its owner lives, so nobody else touches it.
    assert_eq!(sweep(folder.path()), Ok(0));
    assert!(second.0.exists());
    ledger.undo(first.1).unwrap();
    ledger.close().unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_sweep_undoes_what_was_left_and_nothing_that_was_done() {
    let folder = tempfile::tempdir().unwrap();
    let [left, done] = ["left", "done"].map(|name| folder.path().join(format!("{MADE}{name}")));
    let act = |path: &Path| Undo::Remove { path: path.into() };
    for path in [&left, &done] {
        fs::write(path, "x").unwrap();
    }
    let mut lines = due(0, &act(&done)) + &due(1, &act(&left));
    lines += "{\"done\":{\"entry\":0}}\n";
    // A line that was being written; its act was not begun.
    lines += due(2, &act(&done)).trim_end();
    let ledger = abandoned(folder.path(), &lines);
    assert_eq!(sweep(folder.path()), Ok(1));
    assert!(!left.exists() && done.exists() && !ledger.exists());
    assert_eq!(sweep(folder.path()), Ok(0));
}

#[test]
fn a_stopped_process_goes_on_only_if_it_is_the_same_one() {
    let folder = tempfile::tempdir().unwrap();
    let (mut child, process) = stopped();
    let other = ProcessId {
        start_ticks: process.start_ticks + 1,
        ..process
    };
    abandoned(folder.path(), &due(0, &Undo::Continue { process: other }));
    assert_eq!(sweep(folder.path()), Ok(1));
    assert_eq!(
        state(process),
        'T',
        "a process with the same number was touched"
    );
    abandoned(folder.path(), &due(0, &Undo::Continue { process }));
    assert_eq!(sweep(folder.path()), Ok(1));
    assert_ne!(state(process), 'T');
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_limit_is_as_before() {
    use super::super::act::Resource;
    let folder = tempfile::tempdir().unwrap();
    let mut child = Command::new("sleep").arg("600").spawn().unwrap();
    let process = ProcessId::of(child.id().cast_signed()).unwrap();
    let act = Undo::RestoreLimit {
        process,
        resource: Resource::Descriptors,
        soft: Some(77),
        hard: Some(99),
    };
    abandoned(folder.path(), &due(0, &act));
    assert_eq!(sweep(folder.path()), Ok(1));
    let limits = fs::read_to_string(format!("/proc/{}/limits", process.pid)).unwrap();
    let files = limits
        .lines()
        .find(|line| line.starts_with("Max open files"))
        .unwrap();
    let words: Vec<_> = files.split_whitespace().collect();
    assert_eq!(words[3..5], ["77", "99"]);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_command_is_run_and_one_that_fails_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("mark");
    let run = |program: &str, argument: &Path| Undo::Run {
        program: program.into(),
        arguments: vec![argument.display().to_string()],
    };
    let ledger = abandoned(folder.path(), &due(0, &run("touch", &mark)));
    assert_eq!(sweep(folder.path()), Ok(1));
    assert!(mark.exists() && !ledger.exists());
    let ledger = abandoned(folder.path(), &due(0, &run("rmdir", &mark)));
    let wrong = sweep(folder.path()).unwrap_err();
    for part in [
        "of an earlier run could not be undone: run `rmdir ",
        &ledger.display().to_string(),
    ] {
        assert!(wrong[0].contains(part), "{wrong:?}");
    }
    assert!(ledger.exists(), "it stays for the next start");
}

#[test]
fn what_no_fault_made_is_never_touched() {
    let folder = tempfile::tempdir().unwrap();
    let precious = folder.path().join("precious");
    fs::write(&precious, "x").unwrap();
    let lines = due(
        0,
        &Undo::Remove {
            path: precious.clone(),
        },
    ) + &due(
        1,
        &Undo::Remove {
            path: format!("{MADE}relative").into(),
        },
    ) + &due(
        2,
        &Undo::RestoreGroup {
            path: precious.clone(),
            value: "y".into(),
        },
    ) + &due(
        3,
        &Undo::RestoreGroup {
            path: "/sys/fs/cgroup/../../etc/x".into(),
            value: "y".into(),
        },
    ) + "{\"due\":\"nonsense\"}\n";
    abandoned(folder.path(), &lines);
    assert_eq!(sweep(folder.path()).unwrap_err().len(), 5);
    assert_eq!(fs::read_to_string(&precious).unwrap(), "x");
    // A link is removed, not what it leads to.
    let link = folder.path().join(format!("{MADE}link"));
    std::os::unix::fs::symlink(&precious, &link).unwrap();
    abandoned(folder.path(), &due(0, &Undo::Remove { path: link.clone() }));
    assert_eq!(sweep(folder.path()), Ok(1));
    assert!(precious.exists() && fs::symlink_metadata(&link).is_err());
}

#[test]
fn after_a_boot_only_files_are_undone() {
    let folder = tempfile::tempdir().unwrap();
    let (mut child, process) = stopped();
    let file = folder.path().join(format!("{MADE}file"));
    fs::write(&file, "x").unwrap();
    let path = abandoned(
        folder.path(),
        &(due(0, &Undo::Continue { process }) + &due(1, &Undo::Remove { path: file.clone() })),
    );
    let text = fs::read_to_string(&path)
        .unwrap()
        .replace(&boot().unwrap(), "another");
    fs::write(&path, text).unwrap();
    assert_eq!(sweep(folder.path()), Ok(1));
    assert!(!file.exists());
    assert_eq!(state(process), 'T');
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_folder_that_cannot_be_written_is_told_before_anything_is_done() {
    let error = Ledger::create(Path::new("/proc/nowhere"), None)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("/proc/nowhere") && error.contains("nothing was done"),
        "{error}"
    );
}

#[test]
fn a_command_has_the_last_word_after_the_reaper() {
    let folder = tempfile::tempdir().unwrap();
    let mut reaper = Command::new("sleep").arg("600").spawn().unwrap();
    let process = ProcessId::of(reaper.id().cast_signed()).unwrap();
    let owner = Line::Owner(Owner {
        process: ProcessId {
            pid: 999_999_999,
            start_ticks: 1,
        },
        boot: boot().unwrap(),
        reaper: Some(process),
    });
    let runs = folder.path().join("runs");
    let act = Undo::Run {
        program: "sh".to_owned(),
        arguments: vec!["-c".to_owned(), format!("echo >> {}", runs.display())],
    };
    let path = folder.path().join("999999999-1.ledger");
    let owner = serde_json::to_string(&owner).unwrap();
    fs::write(&path, format!("{owner}\n{}", due(0, &act))).unwrap();
    let count = || fs::read(&runs).unwrap_or_default().len();
    std::thread::scope(|scope| {
        let undone = scope.spawn(|| undo_abandoned(&path));
        while count() == 0 {
            sleep(ENDED_POLL);
        }
        // It waits for as long as what the reaper has not ended may still do something.
        sleep(2 * AGAIN_AFTER);
        assert!(!undone.is_finished());
        assert_eq!(count(), 1);
        reaper.kill().unwrap();
        reaper.wait().unwrap();
        assert_eq!(undone.join().unwrap(), Ok(true));
    });
    assert_eq!(count(), 2);
}
