use std::io::{PipeReader, Read};
use std::time::Duration;

use super::*;
use crate::Signal;

const LONG: Duration = Duration::from_secs(3600);

fn shell(script: &str) -> Program {
    Program::new("sh").args(["-c", script])
}

/// A shell whose output can be read.
fn heard(script: &str) -> (Program, PipeReader) {
    let (reader, writer) = io::pipe().unwrap();
    let mut program = shell(script);
    program.standard[1] = Some(writer.into());
    (program, reader)
}

/// What it writes, to the end.
fn said((program, mut output): (Program, PipeReader)) -> String {
    let mut process = program.spawn().unwrap();
    let mut text = String::new();
    output.read_to_string(&mut text).unwrap();
    process.ended_within(LONG).unwrap().unwrap();
    text
}

/// The next line of an output, which is a number.
fn number(output: &mut PipeReader) -> u32 {
    let mut line = Vec::new();
    let mut byte = [0];
    while output.read(&mut byte).unwrap() == 1 && byte != *b"\n" {
        line.extend(byte);
    }
    String::from_utf8(line).unwrap().parse().unwrap()
}

fn wait_until_gone(pid: u32) {
    // Whoever took it over collects it, at some time.
    let runs = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
        stat.is_ok_and(|stat| !stat.contains(") Z "))
    };
    while runs() {
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn it_has_what_it_was_given() {
    let folder = tempfile::tempdir().unwrap();
    let (mut program, output) =
        heard("pwd; echo $OWN; ulimit -n; cat; grep Cpus_allowed_list /proc/self/status");
    program.folder = Some(folder.path().to_owned());
    program.env.insert("OWN".into(), "its own".into());
    program.files_max = Some(77);
    program.cpus = Some(vec![0]);
    let expected = format!(
        "{}\nits own\n77\nCpus_allowed_list:\t0\n",
        folder.path().display()
    );
    assert_eq!(said((program, output)), expected);
}

#[test]
fn it_may_ask_for_more_files_than_it_was_given_to_begin_with() {
    let (mut program, output) = heard("ulimit -Sn; ulimit -Hn");
    program.files_soft = Some(77);
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    assert_eq!(said((program, output)), format!("77\n{hard}\n"));
}

#[test]
fn a_relative_path_starts_at_home() {
    let home = Path::new("/");
    let (_, writer) = io::pipe().unwrap();
    let mut program = Program::new("bin/sh").args(["-c", "exit 3"]);
    program.home = Some(home.to_owned());
    program.folder = Some("/tmp".into());
    program.standard[1] = Some(writer.into());
    let ended = program
        .spawn()
        .unwrap()
        .ended_within(LONG)
        .unwrap()
        .unwrap();
    assert_eq!(ended.to_string(), "status 3");
}

#[test]
fn what_is_missing_is_named() {
    let missing = |change: fn(&mut Program)| {
        let mut program = shell("exit 0");
        change(&mut program);
        program.spawn().unwrap_err()
    };
    for change in [
        (|program| program.path = "/no/such/program".into()) as fn(&mut Program),
        |program| program.path = "no-such-program".into(),
        |program| program.path = "/".into(),
    ] {
        let error = missing(change);
        assert!(matches!(error, StartError::Program(_)), "{error}");
    }
    // The program is there, and is not blamed.
    for (change, named) in [
        (
            (|program| program.folder = Some("/no/such/folder".into())) as fn(&mut Program),
            "enter the folder /no/such/folder: ",
        ),
        (
            |program| program.groups = vec!["/no/such/group".into()],
            "open /no/such/group/cgroup.procs: ",
        ),
        (
            |program| program.network = Some("/no/such/network".into()),
            "open /no/such/network: ",
        ),
        (
            |program| program.network = Some("/dev/null".into()),
            "enter the namespace /dev/null: ",
        ),
        (
            // Few machines have so many.
            |program| program.cpus = Some(vec![1023]),
            "keep it to the processors [1023]: ",
        ),
        (
            |program| program.args = vec!["a\0b".into()],
            "pass its words on: ",
        ),
    ] {
        let error = missing(change);
        assert!(matches!(error, StartError::Needs { .. }), "{error}");
        assert!(error.to_string().starts_with(named), "{error}");
    }
}

#[test]
fn its_end_takes_what_it_left_in_its_group() {
    let (program, mut output) = heard("sleep 1000 >/dev/null & echo $!; kill -9 $$");
    let mut process = program.spawn().unwrap();
    let left = number(&mut output);
    let ended = process.ended_within(LONG).unwrap().unwrap();
    assert_eq!(ended.to_string(), "signal 9");
    wait_until_gone(left);
    assert_eq!(process.ended().unwrap(), Some(ended), "it is told again");
    process.leader().signal(Signal::SIGKILL);
}

#[test]
fn it_ends_with_the_thread_that_started_it() {
    let thread = std::thread::spawn(|| shell("exec sleep 1000").spawn().unwrap());
    let mut process = thread.join().unwrap();
    let ended = process.ended_within(LONG).unwrap().unwrap();
    assert_eq!(ended.to_string(), "signal 9");
}

#[test]
fn it_runs_as_another_user_and_ends_with_its_thread_all_the_same() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("passed over: only root may say whom a program runs as");
        return;
    }
    let nobody = Account::named("nobody").unwrap().unwrap();
    let (mut program, output) = heard("id -u; id -g; id -G; echo again > /dev/stdout");
    program.folder = Some("/".into());
    program.account = Some(nobody.clone());
    let groups: Vec<String> = nobody.groups.iter().map(u32::to_string).collect();
    let (uid, gid, groups) = (nobody.uid, nobody.gid, groups.join(" "));
    let expected = format!("{uid}\n{gid}\n{groups}\nagain\n");
    assert_eq!(said((program, output)), expected);
    let thread = std::thread::spawn(|| {
        let mut program = shell("exec sleep 1000");
        program.account = Some(nobody);
        program.folder = Some("/".into());
        program.spawn().unwrap()
    });
    let mut process = thread.join().unwrap();
    assert!(process.ended_within(LONG).unwrap().is_some());
    let closed = tempfile::tempdir().unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(closed.path(), mode).unwrap();
    let mut program = shell("true");
    program.folder = Some(closed.path().to_owned());
    program.account = Account::named("nobody").unwrap();
    let refused = program.spawn().unwrap_err().to_string();
    assert!(refused.contains("enter the folder"), "{refused}");
}

#[test]
fn a_program_that_was_just_written_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("written");
    std::fs::write(&path, "#!/bin/sh\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&path, mode).unwrap();
    let writes = || std::fs::File::options().append(true).open(&path).unwrap();
    // As a child does that was begun while the file was open.
    let held = writes();
    let holds = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(50));
        drop(held);
    });
    let mut process = Program::new(&path).spawn().unwrap();
    let ended = process.ended_within(LONG).unwrap().unwrap();
    assert_eq!(ended.to_string(), "status 0");
    holds.join().unwrap();
    // Not for ever. Linux 6.11 lets programs be written while they run.
    let _held = writes();
    let refused = std::process::Command::new(&path).status().is_err();
    assert_eq!(Program::new(&path).spawn().is_err(), refused);
}

#[test]
fn a_user_that_is_not_there_is_none() {
    assert_eq!(Account::named("no such user").unwrap(), None);
    let root = Account::named("root").unwrap().unwrap();
    assert_eq!(root.uid, 0);
}

#[test]
fn one_that_does_not_want_to_end_is_killed() {
    let mut process = shell("exec sleep 1000").spawn().unwrap();
    assert_eq!(process.stop(LONG).unwrap().to_string(), "signal 15");
    let (program, mut output) = heard("trap '' TERM; echo 1; while :; do sleep 1; done");
    let mut process = program.spawn().unwrap();
    number(&mut output);
    let ended = process.stop(Duration::from_millis(20)).unwrap();
    assert_eq!(ended.to_string(), "signal 9");
}

#[test]
fn a_dropped_one_is_killed_and_collected() {
    let (program, mut output) = heard("sleep 1000 & echo $!; wait");
    let process = program.spawn().unwrap();
    let (child, leader) = (number(&mut output), process.leader().id());
    drop(process);
    wait_until_gone(child);
    while Path::new(&format!("/proc/{leader}")).exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[tokio::test]
async fn a_runtime_waits_for_it() {
    let mut process = shell("exit 7").start().unwrap();
    assert_eq!(process.ended().await.unwrap().to_string(), "status 7");
    assert_eq!(process.ended().await.unwrap().to_string(), "status 7");
    let mut process = shell("exec sleep 1000").start().unwrap();
    let waited = tokio::time::timeout(Duration::from_millis(20), process.ended()).await;
    assert!(waited.is_err(), "{waited:?}");
    assert_eq!(process.stop(LONG).await.unwrap().to_string(), "signal 15");
}

#[tokio::test]
async fn a_runtime_reads_and_writes_it() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut program = shell("read line; echo $line; echo error >&2");
    let (mut input, mut output) = (program.input().unwrap(), program.output().unwrap());
    let mut process = program.start().unwrap();
    input.write_all(b"line\n").await.unwrap();
    let mut text = String::new();
    output.read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "line\nerror\n");
    assert!(process.ended().await.unwrap().status.success());
}
