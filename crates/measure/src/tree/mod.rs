//! Samples of whole trees of processes: a system is what it starts, and what that
//! starts, also after its parent has ended.
//!
//! A process belongs to a tree when it descends from one of it, when its process group
//! or session was made by one of it, when its environment carries the tree's mark, or
//! when it is in the tree's cgroup. No single one of these would do: a parent may end, a
//! child may leave the group, and programs overwrite the environment that they show.

mod books;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use nix::time::clock_getcpuclockid;
use nix::unistd::{Pid, SysconfVar, sysconf};

use crate::carriers::{Carriers, each_carrier};
use crate::proc_text::{Stat, parse_rollup};
use crate::process::{Environment, descriptors, environment, pids, stat};
use books::{Books, Seen};

pub use books::Member;

/// Time between two looks at how much of their memory processes share.
const SHARED_EVERY: Duration = Duration::from_secs(1);
/// Looks at shared memory take at most one part in so many of the time: the kernel goes
/// through every page for them.
const SHARED_PART: u32 = 100;
/// Two clocks that are read within this are read together, and are read again so many times
/// if they were not.
const TOGETHER: Duration = Duration::from_millis(1);
const READ_AGAIN: u32 = 3;
/// Processes of others are looked at again in every twentieth sample; until then their
/// ids are taken to mean them still.
const OTHERS_AGAIN: u64 = 20;
/// But those that are new in each of so many: one that is about to become another program, or in the
/// midst of it, does not show yet whose it is.
const NEW_FOR: u64 = 5;

/// By what processes of a tree are known, besides their descent.
#[derive(Debug, Clone, Default)]
pub struct Marks {
    /// A variable with its value, as `NAME=value`, that the environment of every process
    /// of the tree was given.
    pub variable: Option<String>,
    /// The folder of a cgroup that nothing else is in.
    pub cgroup: Option<PathBuf>,
}

impl Marks {
    /// The processes that carry them, in one look at all processes, also when the first of their
    /// tree has ended. One that overwrites its environment is found in its cgroup alone.
    pub fn carriers(&self) -> Carriers {
        Self::carriers_of([self])
    }

    /// The same for several trees, also in one look.
    pub fn carriers_of<'m>(all: impl IntoIterator<Item = &'m Self>) -> Carriers {
        let (mut pids, mut variables) = (BTreeSet::<u32>::new(), HashSet::<&[u8]>::new());
        for marks in all {
            pids.extend(marks.in_cgroup());
            variables.extend(marks.variable.as_deref().map(str::as_bytes));
        }
        let holds = |environ: &[u8]| {
            let mut words = environ.split(|byte| *byte == 0);
            words.any(|word| variables.contains(word))
        };
        let found = |pid| {
            pids.insert(pid);
        };
        let complete = variables.is_empty() || each_carrier(holds, found);
        Carriers {
            pids: pids.into_iter().collect(),
            complete,
        }
    }

    fn in_cgroup(&self) -> Vec<u32> {
        let Some(cgroup) = &self.cgroup else {
            return Vec::new();
        };
        let text = fs::read_to_string(cgroup.join("cgroup.procs")).unwrap_or_default();
        let pids = text.lines().filter_map(|line| line.trim().parse().ok());
        pids.collect()
    }
}

/// Whether an environment has a variable with its value.
fn holds(environ: &[u8], variable: &str) -> bool {
    let mut words = environ.split(|byte| *byte == 0);
    words.any(|word| word == variable.as_bytes())
}

/// What a tree used at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TreeSample {
    /// Processor time since the sample before, in cores: of all processes, those that
    /// ended meanwhile included.
    pub cpu_cores: f64,
    /// Resident memory in bytes. What several of the processes share counts once, as far
    /// as the kernel told when it was asked last, at most a second ago.
    pub memory_bytes: u64,
    /// Resident memory in bytes, what is shared counted for each.
    pub rss_bytes: u64,
    /// Open file descriptors.
    pub fds: u64,
    /// Threads.
    pub threads: u64,
    /// Processes.
    pub processes: u64,
}

/// What was found of one tree.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// Its number, in the order of [`Trees::add`].
    pub tree: usize,
    /// `None`: every process of it has ended.
    pub sample: Option<TreeSample>,
}

/// Samples trees of processes.
#[derive(Debug)]
pub struct Trees {
    trees: Vec<Tree>,
    /// Processes of others, as the last samples found them, each with the first of those.
    others: HashMap<u32, u64>,
    samples: u64,
    page_bytes: u64,
    tick: Duration,
}

#[derive(Debug)]
struct Tree {
    marks: Marks,
    books: Books,
    /// Memory that was counted more than once, when it was looked at last.
    shared_bytes: u64,
    shared_again: Instant,
    /// Its processes, as the last sample found them.
    living: Vec<u32>,
    ended: bool,
}

impl Default for Trees {
    fn default() -> Self {
        Self::new()
    }
}

impl Trees {
    /// No trees yet.
    pub fn new() -> Self {
        let number = |name, usual| {
            let number = sysconf(name).ok().flatten();
            number
                .and_then(|number| u64::try_from(number).ok())
                .filter(|number| *number > 0)
                .unwrap_or(usual)
        };
        Self {
            trees: Vec::new(),
            others: HashMap::new(),
            samples: 0,
            page_bytes: number(SysconfVar::PAGE_SIZE, 4096),
            tick: Duration::from_nanos(1_000_000_000 / number(SysconfVar::CLK_TCK, 100)),
        }
    }

    /// Watches the tree below the process `root` from now on; gives its number. `None`:
    /// the process has ended.
    pub fn add(&mut self, root: u32, marks: Marks) -> Option<usize> {
        let root = self.seen(root, stat(root).ok()?);
        if root.ended() {
            return None;
        }
        let now = Instant::now();
        self.trees.push(Tree {
            marks,
            books: Books::new(&root),
            shared_bytes: 0,
            shared_again: now,
            living: vec![root.pid],
            ended: false,
        });
        // A child of the root may have been seen before anybody knew whose it is.
        self.others.clear();
        Some(self.trees.len() - 1)
    }

    /// Takes a sample of every tree that has not ended.
    pub fn sample(&mut self) -> Vec<Found> {
        let mut found = self.find();
        let mut samples = Vec::new();
        for (number, tree) in self.trees.iter_mut().enumerate() {
            if tree.ended {
                continue;
            }
            let seen = found.remove(&number).unwrap_or_default();
            let sample = tree.sample(&seen, self.page_bytes);
            tree.ended = sample.is_none();
            samples.push(Found {
                tree: number,
                sample,
            });
        }
        samples
    }

    /// The processes of a tree, as the last sample found them; none of one that has ended.
    pub fn living(&self, tree: usize) -> &[u32] {
        let tree = self.trees.get(tree).filter(|tree| !tree.ended);
        tree.map_or(&[], |tree| &tree.living)
    }

    /// Every process that was seen of each tree, in the order of their first samples,
    /// and how many more there were.
    pub fn into_members(self) -> Vec<(Vec<Member>, u64)> {
        let trees = self.trees.into_iter();
        trees.map(|tree| tree.books.members()).collect()
    }

    /// The processes that belong to the trees below these roots now, in one look at all
    /// processes. Those whose parent ended before are found by their marks, group or
    /// session; where the root has ended, nobody is.
    pub fn now(roots: impl IntoIterator<Item = (u32, Marks)>) -> Vec<u32> {
        let mut trees = Self::new();
        for (root, marks) in roots {
            trees.add(root, marks);
        }
        let found = trees.find();
        found.values().flatten().map(|seen| seen.pid).collect()
    }

    /// The processes of each tree that are there now.
    fn find(&mut self) -> BTreeMap<usize, Vec<Seen>> {
        self.samples += 1;
        let again = self.samples.is_multiple_of(OTHERS_AGAIN);
        let before = std::mem::take(&mut self.others);
        let mut members: BTreeMap<usize, Vec<Seen>> = BTreeMap::new();
        let mut unknown = Vec::new();
        for pid in pids() {
            if let Some(&since) = before.get(&pid)
                && !again
                && self.samples - since >= NEW_FOR
            {
                self.others.insert(pid, since);
                continue;
            }
            // What cannot be read has ended meanwhile, or is nobody's that we watch.
            let Ok(stat) = stat(pid) else {
                continue;
            };
            let known = |tree: &Tree| !tree.ended && tree.books.knows(pid, &stat);
            match self.trees.iter().position(known) {
                Some(tree) => members.entry(tree).or_default().push(self.seen(pid, stat)),
                None => unknown.push((pid, stat)),
            }
        }
        // Parents before their children.
        unknown.sort_by_key(|(pid, stat)| (stat.start_ticks, *pid));
        let in_cgroups = self.in_cgroups();
        let mut newcomers = vec![BTreeSet::new(); self.trees.len()];
        // Ids may have begun again from the lowest, so one pass may not do.
        loop {
            let count = unknown.len();
            unknown.retain(|(pid, stat)| {
                let mut trees = self.trees.iter().enumerate();
                let claimed = trees.find(|(number, tree)| {
                    !tree.ended
                        && (in_cgroups.get(pid) == Some(number)
                            || tree.books.claims(stat, &newcomers[*number]))
                });
                let Some((tree, _)) = claimed.or_else(|| self.marked(*pid)) else {
                    return true;
                };
                newcomers[tree].insert(*pid);
                let seen = self.seen(*pid, stat.clone());
                members.entry(tree).or_default().push(seen);
                false
            });
            if unknown.len() == count || unknown.is_empty() {
                break;
            }
        }
        let since = |pid| before.get(&pid).copied().unwrap_or(self.samples);
        let others = unknown.into_iter().map(|(pid, _)| (pid, since(pid)));
        self.others.extend(others);
        members
    }

    /// The tree whose mark the environment of a process carries.
    fn marked(&self, pid: u32) -> Option<(usize, &Tree)> {
        let Environment::Known(environ) = environment(pid) else {
            return None;
        };
        self.trees.iter().enumerate().find(|(_, tree)| {
            let variable = tree.marks.variable.as_ref().filter(|_| !tree.ended);
            variable.is_some_and(|variable| holds(&environ, variable))
        })
    }

    fn in_cgroups(&self) -> BTreeMap<u32, usize> {
        let mut found = BTreeMap::new();
        let trees = self.trees.iter().enumerate();
        for (number, tree) in trees.filter(|(_, tree)| !tree.ended) {
            let pids = tree.marks.in_cgroup().into_iter();
            found.extend(pids.map(|pid| (pid, number)));
        }
        found
    }

    fn seen(&self, pid: u32, stat: Stat) -> Seen {
        let ticks = |ticks: u64| {
            self.tick
                .saturating_mul(u32::try_from(ticks).unwrap_or(u32::MAX))
        };
        let told = ticks(stat.user_ticks + stat.system_ticks);
        // Nanoseconds, where there are any: ticks are 10 ms long.
        let clock = i32::try_from(pid)
            .ok()
            .and_then(|pid| clock_getcpuclockid(Pid::from_raw(pid)).ok());
        let read = || {
            let began = Instant::now();
            let cpu = clock.and_then(|clock| clock.now().ok());
            (cpu, began.elapsed(), Instant::now())
        };
        // Again, if something came between the two clocks.
        let mut found = read();
        for _ in 0..READ_AGAIN {
            if found.1 < TOGETHER {
                break;
            }
            found = read();
        }
        let (clock, _, at) = found;
        Seen {
            pid,
            cpu: clock.map_or(told, Duration::from),
            at,
            children_cpu: ticks(stat.children_ticks),
            stat,
        }
    }
}

impl Tree {
    fn sample(&mut self, seen: &[Seen], page_bytes: u64) -> Option<TreeSample> {
        let at = Instant::now();
        let used = self.books.look(seen);
        let live: Vec<&Seen> = seen.iter().filter(|seen| !seen.ended()).collect();
        self.living = live.iter().map(|seen| seen.pid).collect();
        if live.is_empty() {
            return None;
        }
        let mut sample = TreeSample {
            cpu_cores: used.cores,
            memory_bytes: 0,
            rss_bytes: 0,
            fds: 0,
            threads: 0,
            processes: live.len() as u64,
        };
        let mut largest = 0;
        for seen in &live {
            let rss = seen.stat.rss_pages.saturating_mul(page_bytes);
            self.books.memory(seen.pid, rss);
            largest = rss.max(largest);
            sample.rss_bytes += rss;
            sample.threads += seen.stat.threads;
            sample.fds += descriptors(seen.pid).unwrap_or(0);
        }
        match live.len() {
            1 => self.shared_bytes = 0,
            _ if at >= self.shared_again => self.look_at_shared(&live, at),
            _ => {}
        }
        // What was shared may have been given back since.
        let once = sample.rss_bytes.saturating_sub(self.shared_bytes);
        sample.memory_bytes = once.max(largest);
        Some(sample)
    }

    /// How much memory is counted more than once when that of each process is added.
    fn look_at_shared(&mut self, live: &[&Seen], began: Instant) {
        let extra = live.iter().filter_map(|seen| {
            // Of others' processes it may not be read; it then counts in full.
            let text = fs::read_to_string(format!("/proc/{}/smaps_rollup", seen.pid)).ok()?;
            let (rss, share) = parse_rollup(&text).ok()?;
            Some(rss.saturating_sub(share))
        });
        self.shared_bytes = extra.sum();
        let took = began.elapsed();
        self.shared_again = began + SHARED_EVERY.max(took * SHARED_PART);
    }
}

#[cfg(test)]
mod tests;
