//! A copy of a system, over all the processes that it has in a run.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use lab_experiment::plan::System;
use measure::Marks;
use nix::sys::signal::kill;
use nix::unistd::{Pid, getpgid};
use processes::Signal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{PidfdFlags, pidfd_open};
use tokio::sync::watch;

use super::children::Child;
use crate::watch::Watcher;

/// Looks for processes that a signal has not reached yet.
const LOOKS: u32 = 10;

/// A process of a copy.
#[derive(Debug, Clone)]
pub(crate) struct Running {
    /// The system, with `.index` when it has several copies.
    pub(crate) name: String,
    pub(crate) child: Arc<Child>,
    /// How the processes that it starts are known to be its own.
    pub(crate) marks: Marks,
}

/// A copy of a system, over all the processes that it has in a run.
#[derive(Debug)]
pub(crate) struct Copy {
    /// The system, with `.index` when it has several copies.
    pub(crate) name: String,
    /// Place of its system among those that were started, and its own among its copies.
    pub(super) at: (usize, usize),
    /// Place of the system in the plan.
    pub(crate) system: usize,
    /// Its number among the copies of its system.
    pub(crate) index: u32,
    pub(super) running: RefCell<Running>,
    /// Processes so far.
    pub(super) starts: Cell<u32>,
    /// Number of the newest process that was ready.
    pub(super) ready: watch::Sender<u32>,
    /// A fault keeps it down: nobody else starts it.
    pub(super) is_held: Cell<bool>,
    pub(super) is_paused: Cell<bool>,
    /// A fault has it: no other may hit it.
    pub(crate) is_under_fault: Cell<bool>,
    /// Whether the end of its newest process was told.
    pub(super) is_end_reported: Cell<bool>,
}

impl Copy {
    /// Its newest process.
    pub(crate) fn running(&self) -> Running {
        self.running.borrow().clone()
    }

    /// Whether its newest process runs.
    pub(crate) fn is_up(&self) -> bool {
        self.running.borrow().child.ended().is_none()
    }

    /// Whether its processes are stopped.
    pub(crate) fn is_paused(&self) -> bool {
        self.is_paused.get()
    }

    /// Keeps it down once it has ended, until [`Systems::bring_up`].
    pub(crate) fn hold(&self) {
        self.is_held.set(true);
    }

    /// Marks that somebody else reports how its newest process ended.
    pub(crate) fn mark_end_reported(&self) {
        self.is_end_reported.set(true);
    }

    /// Number of its newest process, from 1.
    pub(crate) fn start(&self) -> u32 {
        self.starts.get()
    }

    /// Waits until a process after number `start` is ready.
    pub(crate) async fn ready_after(&self, start: u32) {
        let mut ready = self.ready.subscribe();
        // We hold the sender, so the wait ends well.
        let _ = ready.wait_for(|number| *number > start).await;
    }
}

/// Stops all processes of copies, or lets them go on.
pub(crate) fn pause(copies: &[&Copy], paused: bool) {
    for copy in copies {
        copy.is_paused.set(paused);
    }
    signal(
        copies,
        match paused {
            true => Signal::SIGSTOP,
            false => Signal::SIGCONT,
        },
    );
}

/// Sends a signal once to every process of copies, also to those that left their group, as
/// the workers of databases do. Gives those that it was sent to, as handles that never come to mean
/// another one; one that ends meanwhile, or that there is no descriptor for, is left out.
pub(crate) fn signal(copies: &[&Copy], signal: Signal) -> Vec<OwnedFd> {
    let running: Vec<Running> = copies.iter().map(|copy| copy.running()).collect();
    let groups: BTreeSet<u32> = running.iter().map(|running| running.child.pid).collect();
    let (mut found, mut sent) = (BTreeSet::new(), Vec::new());
    // What a first look has not seen was forked meanwhile, and is found by a later one: by its
    // marks where the first of its tree has ended by then.
    for look in 0..LOOKS {
        let mut complete = true;
        let roots = running.iter();
        let roots = roots.map(|running| (running.child.pid, running.marks.clone()));
        let mut now = measure::Trees::now(roots);
        if look > 0 {
            let carriers = Marks::carriers_of(running.iter().map(|it| &it.marks));
            now.extend(carriers.pids);
            complete = carriers.complete;
        }
        let now = now.into_iter();
        let new: Vec<u32> = now.filter(|pid| found.insert(*pid)).collect();
        if new.is_empty() && complete {
            break;
        }
        sent.extend(opened(new.iter().copied()));
        // After the look, for nobody's processes are found once the first of them has ended.
        // The kernel reaches a whole group at once, also those that are being forked.
        if look == 0 {
            for running in &running {
                running.child.signal(signal);
            }
        }
        for pid in new.into_iter().map(|pid| Pid::from_raw(pid.cast_signed())) {
            let group = getpgid(Some(pid)).map(|group| group.as_raw().unsigned_abs());
            if group.is_ok_and(|group| !groups.contains(&group)) {
                // An error means that it has ended.
                let _ = kill(pid, signal);
            }
        }
    }
    sent
}

/// The processes that are left of a tree whose first one has ended, as handles: those that are
/// known by their marks, and those that were seen of it last.
pub(super) fn left(of: &Running, watcher: Option<&Watcher>) -> Vec<OwnedFd> {
    let seen = watcher.map(|watcher| watcher.living(&of.name));
    let seen = seen.unwrap_or_default().into_iter();
    let all: BTreeSet<u32> = of.marks.carriers().pids.into_iter().chain(seen).collect();
    opened(all.into_iter().filter(|pid| *pid != of.child.pid))
}

fn opened(pids: impl IntoIterator<Item = u32>) -> Vec<OwnedFd> {
    let pids = pids.into_iter();
    let pids = pids.filter_map(|pid| rustix::process::Pid::from_raw(pid.cast_signed()));
    pids.filter_map(|pid| pidfd_open(pid, PidfdFlags::empty()).ok())
        .collect()
}

/// Whether a process has not ended. The kernel tells of an end by the handle, also while nobody
/// has read how it came.
pub(crate) fn runs(process: &OwnedFd) -> bool {
    let mut handle = [PollFd::new(process, PollFlags::IN)];
    poll(&mut handle, Some(&Timespec::default())) == Ok(0)
}

/// Names of the copies of a system: its own, or `name.0`, `name.1` and so on.
pub(crate) fn copy_names(system: &System) -> Vec<String> {
    match system.count {
        1 => vec![system.name.clone()],
        count => (0..count)
            .map(|index| format!("{}.{index}", system.name))
            .collect(),
    }
}
