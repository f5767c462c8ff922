//! Kills a program that breaks things with `kill -9` at a hundred random moments, and looks for
//! what is left: stopped processes and files. In a third of the rounds its guardian is killed
//! before it, and the next start sweeps.

// What fails here fails the test.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use lab_faults::undo::{Guardian, Ledger, ProcessId, Undo, guard, sweep};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use stats::SplitMix;

const ROUNDS: u64 = 100;
const SLEEPERS: usize = 3;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["guard", ledger] => guard(Path::new(ledger), io::stdin().lock()).unwrap(),
        ["victim", folder, seed, ref pids @ ..] => {
            let pids = pids.iter().map(|pid| pid.parse().unwrap()).collect();
            victim(Path::new(folder), seed.parse().unwrap(), pids);
        }
        // `cargo test -- FILTER` runs this program with a filter that may not be meant for it.
        [] => hundred_rounds(),
        _ if words.contains(&"--list") => {}
        _ => hundred_rounds(),
    }
}

/// Stops processes, makes files, and undoes all of it, until it is killed.
fn victim(folder: &Path, seed: u64, pids: Vec<i32>) {
    let mut ledger = Ledger::create(folder, None).unwrap();
    let this = std::env::current_exe().unwrap();
    let guardian = Guardian::start(&[this.into(), "guard".into(), ledger.path().into()]).unwrap();
    println!(
        "{} {}",
        guardian.process().unwrap().pid,
        ledger.path().display()
    );
    io::stdout().flush().unwrap();
    let mut random = SplitMix::new(seed);
    let mut on = Vec::new();
    loop {
        if on.len() > 6 || !on.is_empty() && random.below(3) == 0 {
            let entry = on.swap_remove(random.below(on.len()));
            ledger.undo(entry).unwrap();
            continue;
        }
        if random.below(2) == 0 {
            let pid = pids[random.below(pids.len())];
            let process = ProcessId::of(pid).unwrap();
            on.push(ledger.record(Undo::Continue { process }).unwrap());
            kill(Pid::from_raw(pid), Signal::SIGSTOP).unwrap();
        } else {
            let path = ledger.path_to_make(folder, "file");
            on.push(ledger.record(Undo::Remove { path: path.clone() }).unwrap());
            fs::write(&path, "x").unwrap();
        }
    }
}

fn hundred_rounds() {
    let folder = tempfile::tempdir().unwrap();
    let mut sleepers: Vec<Child> = (0..SLEEPERS)
        .map(|_| Command::new("sleep").arg("6000").spawn().unwrap())
        .collect();
    let mut random = SplitMix::new(0x6b69_6c6c);
    let mut with_something_left = 0;
    for round in 0..ROUNDS {
        with_something_left += u32::from(one_round(folder.path(), &sleepers, round, &mut random));
        for sleeper in &sleepers {
            assert_ne!(
                state(sleeper.id()),
                'T',
                "round {round}: a process was left stopped"
            );
        }
        let left: Vec<_> = entries(folder.path());
        assert!(left.is_empty(), "round {round}: {left:?}");
    }
    for sleeper in &mut sleepers {
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
    }
    // Where the guardian was killed as well there must have been something to find, or the
    // test has shown nothing.
    println!(
        "{ROUNDS} rounds, of {} without a guardian {with_something_left} with faults on",
        ROUNDS.div_ceil(3)
    );
    assert!(with_something_left > 10, "{with_something_left}");
}

/// Whether something was left before the sweep, in a round whose guardian is killed as well.
fn one_round(folder: &Path, sleepers: &[Child], round: u64, random: &mut SplitMix) -> bool {
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .arg("victim")
        .arg(folder)
        .arg(random.bits().to_string())
        .args(sleepers.iter().map(|sleeper| sleeper.id().to_string()))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(victim.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let (pid, ledger) = line.trim_end().split_once(' ').unwrap();
    let guardian = Pid::from_raw(pid.parse().unwrap());
    let ended = rustix::process::pidfd_open(
        rustix::process::Pid::from_raw(guardian.as_raw()).unwrap(),
        rustix::process::PidfdFlags::empty(),
    );
    let ended = ended.unwrap();
    std::thread::sleep(Duration::from_micros(random.below(30_000) as u64));
    let both = round.is_multiple_of(3);
    if both {
        kill(guardian, Signal::SIGKILL).unwrap();
    }
    victim.kill().unwrap();
    victim.wait().unwrap();
    let minute = PollTimeout::from(60_000_u16);
    let seen = poll(&mut [PollFd::new(ended.as_fd(), PollFlags::POLLIN)], minute);
    assert_eq!(seen, Ok(1), "round {round}: the guardian did not end");
    if !both {
        return false;
    }
    assert!(
        Path::new(ledger).exists(),
        "round {round}: nobody could have removed it"
    );
    let stopped = sleepers.iter().any(|sleeper| state(sleeper.id()) == 'T');
    let left = stopped || entries(folder).len() > 1;
    assert_eq!(sweep(folder), Ok(1), "round {round}");
    left
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect()
}

fn state(pid: u32) -> char {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(") ").unwrap().1.chars().next().unwrap()
}
