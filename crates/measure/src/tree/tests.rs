use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use super::*;

/// Ends its whole group when dropped, so that no failed test leaves one.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let group = i32::try_from(self.0.id()).unwrap();
        let _ = nix::sys::signal::killpg(Pid::from_raw(group), nix::sys::signal::Signal::SIGKILL);
        let _ = self.0.wait();
    }
}

fn shell(script: &str) -> Killed {
    let mut command = Command::new("sh");
    command.args(["-c", script]).stdout(Stdio::null());
    Killed(command.process_group(0).spawn().unwrap())
}

/// Uses half a second of processor time in a process of its own, and says nothing.
const BURN: &str = "python3 -c 'import time\nwhile time.process_time() < 0.5: pass'";

/// Samples until `done`, or the tree ends; gives the processor time in seconds and the
/// samples.
fn watch(
    trees: &mut Trees,
    tree: usize,
    mut done: impl FnMut(&TreeSample) -> bool,
) -> (f64, Vec<TreeSample>) {
    let (mut cpu, mut samples) = (0.0, Vec::new());
    let mut last = Instant::now();
    for _ in 0..3000 {
        std::thread::sleep(Duration::from_millis(20));
        let found = trees.sample();
        let now = Instant::now();
        let Some(sample) = found.iter().find(|found| found.tree == tree) else {
            break;
        };
        let Some(sample) = sample.sample else { break };
        cpu += sample.cpu_cores * (now - last).as_secs_f64();
        last = now;
        samples.push(sample);
        if done(&sample) {
            break;
        }
    }
    (cpu, samples)
}

#[test]
fn children_are_part_of_the_tree_and_listed() {
    let system = shell(&format!("{BURN} & {BURN} & wait; exec sleep 600"));
    let mut trees = Trees::new();
    let tree = trees.add(system.0.id(), Marks::default()).unwrap();
    let mut most = 0;
    let (cpu, _) = watch(&mut trees, tree, |sample| {
        most = most.max(sample.processes);
        most >= 3 && sample.processes == 1
    });
    assert!(most >= 3, "{most}");
    // Start of Python included; the wall clock of a busy machine is in none of it.
    assert!((0.95..2.5).contains(&cpu), "{cpu}");
    let (members, more) = trees.into_members().remove(tree);
    assert_eq!(more, 0);
    let burnt: Vec<_> = members
        .iter()
        .filter(|member| member.parent == system.0.id())
        .collect();
    assert_eq!(burnt.len(), 2, "{members:?}");
    assert!(burnt.iter().all(|member| member.rss_bytes_max > 100_000));
    let all: f64 = members.iter().map(|member| member.cpu.as_secs_f64()).sum();
    assert!((0.95..2.5).contains(&all), "{members:?}");
}

#[test]
fn time_of_children_too_short_to_be_seen_is_not_lost() {
    // A hundred processes that live for some milliseconds each.
    let system = shell(
        "i=0; while [ $i -lt 100 ]; do sh -c 'j=0; while [ $j -lt 3000 ]; do j=$((j+1)); done'; i=$((i+1)); done; exec sleep 600",
    );
    let mut trees = Trees::new();
    let tree = trees.add(system.0.id(), Marks::default()).unwrap();
    let (cpu, _) = watch(&mut trees, tree, |_| {
        std::fs::read_to_string(format!("/proc/{}/comm", system.0.id())).unwrap_or_default()
            == "sleep\n"
    });
    trees.sample();
    let stat = stat(system.0.id()).unwrap();
    let waited_for = stat.children_ticks as f64 / 100.0;
    let (members, _) = trees.into_members().remove(tree);
    let all: f64 = members.iter().map(|member| member.cpu.as_secs_f64()).sum();
    // The shell's own time comes on top; twice the time would be twice as much.
    assert!(
        all >= waited_for - 0.02 && cpu <= all + 0.1,
        "{cpu} {all} {waited_for}"
    );
    assert!(all < waited_for * 1.5 + 0.1, "{all} {waited_for}");
}

#[test]
fn an_orphan_that_left_its_group_is_found_by_its_mark() {
    let mark = format!("HEADROOM_TREE_TEST={}", std::process::id());
    // The orphan's parent ends at once.
    let system = shell(&format!(
        "export {mark}; (setsid {BURN} &) ; sleep 600 & wait"
    ));
    let mut trees = Trees::new();
    let marks = Marks {
        variable: Some(mark),
        cgroup: None,
    };
    let tree = trees.add(system.0.id(), marks.clone()).unwrap();
    let mut most = 0;
    watch(&mut trees, tree, |sample| {
        most = most.max(sample.processes);
        most >= 3 && sample.processes == 2
    });
    // The shell itself was started without it.
    let carriers = marks.carriers().pids;
    assert!(!carriers.is_empty() && !carriers.contains(&system.0.id()));
    let (members, _) = trees.into_members().remove(tree);
    let python = members.iter().find(|member| member.cpu.as_secs_f64() > 0.4);
    assert!(python.is_some(), "{members:?}");
}

#[test]
fn a_process_that_becomes_one_of_the_tree_is_found_at_once() {
    let mark = format!("HEADROOM_TREE_TEST_LATE={}", std::process::id());
    let system = shell("exec sleep 600");
    let mut trees = Trees::new();
    let marks = Marks {
        variable: Some(mark.clone()),
        cgroup: None,
    };
    let tree = trees.add(system.0.id(), marks).unwrap();
    // Nobody's that is watched, until its program is another one.
    let mut command = Command::new("sh");
    command.args(["-c", &format!("read line; exec env {mark} sleep 600")]);
    command.stdin(Stdio::piped()).process_group(0);
    let mut late = Killed(command.spawn().unwrap());
    let pid = late.0.id();
    trees.sample();
    assert!(!trees.living(tree).contains(&pid));
    drop(late.0.stdin.take());
    let shows = || match environment(pid) {
        Environment::Known(environ) => holds(&environ, &mark),
        Environment::NotYet | Environment::Nobody => false,
    };
    for _ in 0..3000 {
        if shows() {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    trees.sample();
    assert!(trees.living(tree).contains(&pid));
}

#[test]
fn a_tree_outlives_its_root() {
    let mut system = shell("sleep 600 & exit 0");
    let mut trees = Trees::new();
    // It may be over before it can be watched, which is all the same to `sleep`.
    let Some(tree) = trees.add(system.0.id(), Marks::default()) else {
        return;
    };
    system.0.wait().unwrap();
    for _ in 0..3 {
        let sample = trees.sample().remove(tree).sample;
        assert_eq!(sample.unwrap().processes, 1);
    }
    drop(system);
    watch(&mut trees, tree, |_| false);
    assert_eq!(trees.sample(), []);
}

#[test]
fn shared_memory_counts_once() {
    // 64 MiB that three processes share.
    let system = shell(
        "exec python3 -c 'import mmap, os, time\n\
         m = mmap.mmap(-1, 64 << 20)\n\
         m.write(b\"x\" * (64 << 20))\n\
         for _ in range(2):\n\
         \tif os.fork() == 0:\n\
         \t\tm.seek(0); sum(m.read(64 << 20)[::4096]); time.sleep(600)\n\
         time.sleep(600)'",
    );
    let mut trees = Trees::new();
    let tree = trees.add(system.0.id(), Marks::default()).unwrap();
    let enough = 3 * (64 << 20);
    let (_, samples) = watch(&mut trees, tree, |sample| {
        sample.rss_bytes > enough && sample.memory_bytes + (100 << 20) < sample.rss_bytes
    });
    let last = samples.last().unwrap();
    assert!(last.rss_bytes > enough, "{last:?}");
    assert!(last.memory_bytes > 64 << 20, "{last:?}");
    assert!(last.memory_bytes + (100 << 20) < last.rss_bytes, "{last:?}");
}

#[test]
fn a_process_of_its_own_is_itself_and_no_more() {
    let system = shell("exec sleep 600");
    let _other = shell("exec sleep 600");
    let mut trees = Trees::new();
    let tree = trees.add(system.0.id(), Marks::default()).unwrap();
    for _ in 0..30 {
        let sample = trees.sample().remove(tree).sample.unwrap();
        assert_eq!((sample.processes, sample.threads), (1, 1));
        assert_eq!(sample.memory_bytes, sample.rss_bytes);
    }
    assert!(trees.add(u32::MAX, Marks::default()).is_none());
}
