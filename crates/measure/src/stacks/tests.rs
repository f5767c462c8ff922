use std::collections::BTreeMap;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::*;

/// A busy process is seen in the function that it is in, and so is what it started at once; one that
/// waits, and one that a thread started which was there before, are not.
#[test]
fn what_a_thread_starts_is_seen_where_it_is_busy() {
    fn shell(script: &str) -> Child {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdout(Stdio::null());
        command.spawn().unwrap()
    }
    let (ask, asked) = std::sync::mpsc::channel::<()>();
    let before = std::thread::spawn(move || {
        asked.recv().unwrap();
        shell("while :; do :; done")
    });
    let mut sampler = match StackSampler::of_what_this_thread_starts() {
        Ok(sampler) => sampler,
        Err(error) => {
            eprintln!("not run: {error}");
            return;
        }
    };
    let mut busy = shell("while :; do :; done & while :; do :; done");
    let mut idle = shell("exec sleep 600");
    ask.send(()).unwrap();
    let mut others = before.join().unwrap();
    let (mut seen, mut parents) = (BTreeMap::<u32, u64>::new(), BTreeMap::new());
    let mut in_file = 0;
    let until = Instant::now() + Duration::from_secs(60);
    let child_of = |parents: &BTreeMap<u32, u32>, pid| {
        let mut all = parents.iter();
        all.find(|(_, parent)| **parent == pid)
            .map(|(child, _)| *child)
    };
    // A busy machine gives them what it gives them.
    let enough = |seen: &BTreeMap<u32, u64>, parents: &BTreeMap<u32, u32>| {
        let of = |pid: Option<u32>| pid.and_then(|pid| seen.get(&pid)).is_some_and(|n| *n >= 50);
        of(Some(busy.id())) && of(child_of(parents, busy.id()))
    };
    while !enough(&seen, &parents) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(50));
        let maps = Maps::of(busy.id()).unwrap();
        sampler.drain(|sampled| match sampled {
            Sampled::Stack(stack) => {
                *seen.entry(stack.pid).or_default() += 1;
                let (_, program) = stack.addresses();
                let is_known = program.first().is_some_and(|at| maps.find(*at).is_some());
                in_file += u64::from(stack.pid == busy.id() && is_known);
            }
            Sampled::Started { pid, parent } => drop(parents.insert(pid, parent)),
        });
    }
    let child = child_of(&parents, busy.id());
    if let Some(child) = child {
        let child = nix::unistd::Pid::from_raw(child.cast_signed());
        nix::sys::signal::kill(child, nix::sys::signal::Signal::SIGKILL).unwrap();
    }
    for process in [&mut busy, &mut idle, &mut others] {
        process.kill().unwrap();
        process.wait().unwrap();
    }
    let count = |pid: u32| seen.get(&pid).copied().unwrap_or_default();
    assert!(
        count(busy.id()) >= 50 && count(child.unwrap()) >= 50,
        "{seen:?}"
    );
    assert!(in_file * 2 > count(busy.id()), "{in_file} of {seen:?}");
    assert!(count(idle.id()) < 5, "{seen:?}");
    assert_eq!(count(others.id()), 0, "{seen:?}");
    assert!(sampler.lost() < 50, "{}", sampler.lost());
}
