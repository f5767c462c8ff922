use super::*;

const LONG: Nanos = Nanos::MAX;

fn shell(script: &str) -> Running {
    Running::start(OsStr::new("sh"), ["-c", script]).unwrap()
}

#[test]
fn its_processor_time_counts_with_that_of_its_children() {
    let script = "(i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done) & wait";
    let cpu = shell(script).wait(LONG, &Stop::default()).unwrap();
    assert!(cpu > 1_000_000, "{cpu}");
    let cpu = shell("sleep 0.2").wait(LONG, &Stop::default()).unwrap();
    assert!(cpu < 100_000_000, "{cpu}");
}

#[test]
fn a_bad_end_is_told_with_what_it_said() {
    let error = shell("echo no such thing >&2; exit 3")
        .wait(LONG, &Stop::default())
        .unwrap_err();
    let expected = "the program `sh` ended with status 3, 0 was expected; it said: no such thing";
    assert_eq!(error.to_string(), expected);
    let error = shell("kill -9 $$")
        .wait(LONG, &Stop::default())
        .unwrap_err();
    assert!(error.to_string().contains("signal 9"), "{error}");
}

#[test]
fn much_that_it_says_neither_holds_it_up_nor_is_kept() {
    let script = "head -c 1000000 /dev/zero | tr '\\0' x >&2; exit 1";
    let error = shell(script).wait(LONG, &Stop::default()).unwrap_err();
    assert!(error.to_string().len() < SAID + 100, "{error}");
}

#[test]
fn one_that_closes_its_standard_error_is_waited_for() {
    let cpu = shell("exec 2>&-; sleep 0.1").wait(LONG, &Stop::default());
    assert!(cpu.is_ok());
}

#[test]
fn a_program_that_is_not_there_is_an_error() {
    let nothing: [&str; 0] = [];
    let error = Running::start(OsStr::new("no-such-program-here"), nothing)
        .err()
        .unwrap();
    assert_eq!(error.cause(), "no-program");
    assert!(error.to_string().contains("installed"), "{error}");
}

/// The number of a process that sleeps below the shell of a script.
fn sleeper(script: &str) -> (Running, i32, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let running = shell(&format!(
        "{script} sleep 1000 & echo $! > {0}.new; mv {0}.new {0}; wait",
        file.display()
    ));
    let text = loop {
        match std::fs::read_to_string(&file) {
            Ok(text) => break text,
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    (running, text.trim().parse().unwrap(), folder)
}

fn wait_until_gone(pid: i32) {
    // Its parent is gone, so the init process collects it, at some time.
    let running = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
        stat.is_ok_and(|stat| !stat.contains(") Z "))
    };
    while running() {
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn at_its_deadline_it_ends_with_all_its_children() {
    let (running, pid, _folder) = sleeper("");
    let soon = wire::clock::now() + 1_000_000;
    let error = running.wait(soon, &Stop::default()).unwrap_err();
    assert_eq!(error.cause(), "late");
    wait_until_gone(pid);
}

#[test]
fn one_that_nobody_waits_for_is_ended() {
    let (running, pid, _folder) = sleeper("");
    let leader = nix::unistd::Pid::from_raw(running.process.leader().id().cast_signed());
    drop(running);
    wait_until_gone(pid);
    let gone = nix::sys::signal::kill(leader, None);
    assert_eq!(gone, Err(nix::errno::Errno::ESRCH), "it was collected");
}

#[test]
fn one_that_does_not_want_to_end_is_killed() {
    let (running, pid, _folder) = sleeper("trap '' TERM;");
    let stop = Stop::default();
    stop.request();
    let error = running.wait(LONG, &stop).unwrap_err();
    assert_eq!(error.cause(), "stopped");
    wait_until_gone(pid);
}
