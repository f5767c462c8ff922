//! Who belongs to a tree of processes, and what the tree has used. Pure: it is told
//! what was seen, and never looks itself.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use crate::proc_text::Stat;

/// One process, as it was seen.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) pid: u32,
    pub(super) stat: Stat,
    /// Its own processor time.
    pub(super) cpu: Duration,
    /// When that was read. Whoever reads may be kept from it for longer than from one look to
    /// the next, so a look as a whole has no one time.
    pub(super) at: Instant,
    /// Processor time of children that it waited for, and of theirs.
    pub(super) children_cpu: Duration,
}

/// What a tree used between two looks.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Used {
    /// Processor time.
    pub(super) time: Duration,
    /// How many processors that is.
    pub(super) cores: f64,
}

impl Seen {
    /// Has it ended, and only waits to be collected?
    pub(super) fn ended(&self) -> bool {
        matches!(self.stat.state, 'Z' | 'X')
    }
}

/// A process of a tree.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// Its id.
    pub pid: u32,
    /// The process that started it, as far as is known.
    pub parent: u32,
    /// Name of its command, as it was seen last.
    pub command: String,
    /// Processor time, with that of children that were too short to be seen
    /// themselves.
    pub cpu: Duration,
    /// Most processor time between two samples, in cores.
    pub cpu_cores_max: f64,
    /// Most resident memory in bytes, shared memory counted whole.
    pub rss_bytes_max: u64,
    /// When it was seen first, and when last.
    pub seen: (Instant, Instant),
    start_ticks: u64,
    /// Who waits for its end: its parent, or whoever took it over.
    waits: u32,
    group: u32,
    session: u32,
    /// Its own part of `cpu`, as seen last.
    own: Duration,
    /// Time of its children that was booked for it because they were not seen
    /// themselves, or no more.
    unseen: Duration,
    /// Time that was booked for children which have ended since.
    gone: Duration,
    is_here: bool,
}

impl Member {
    /// Everything that was booked for it and for those below it that have ended.
    fn booked(&self) -> Duration {
        self.own + self.unseen + self.gone
    }
}

/// The books of one tree.
#[derive(Debug)]
pub(super) struct Books {
    /// Group and session of the root that it did not make itself: others are in them.
    foreign: (Option<u32>, Option<u32>),
    /// Those that are there, by id.
    here: BTreeMap<u32, Member>,
    /// Those that have ended, in order of their end; at most [`Books::MOST`].
    ended: Vec<Member>,
    /// How many more have ended.
    forgotten: u64,
    /// When the last look was.
    last_at: Instant,
}

impl Books {
    /// Ended processes that are kept one by one.
    pub(super) const MOST: usize = 2000;

    /// The books of a tree whose root is seen for the first time.
    pub(super) fn new(root: &Seen) -> Self {
        let others = |id: u32| (id != root.pid).then_some(id);
        let mut books = Self {
            foreign: (others(root.stat.group), others(root.stat.session)),
            here: BTreeMap::new(),
            ended: Vec::new(),
            forgotten: 0,
            last_at: root.at,
        };
        // What the root used before does not count.
        let mut member = Member::of(root);
        (member.own, member.gone) = (root.cpu, root.children_cpu);
        books.here.insert(root.pid, member);
        books
    }

    /// Is this the very process that is known under its id?
    pub(super) fn knows(&self, pid: u32, stat: &Stat) -> bool {
        let known = self.here.get(&pid);
        known.is_some_and(|member| member.start_ticks == stat.start_ticks)
    }

    /// Does a process that was never seen before descend from one of the tree, or
    /// belong to a group or a session of its own making?
    pub(super) fn claims(&self, stat: &Stat, newcomers: &BTreeSet<u32>) -> bool {
        if self.here.contains_key(&stat.parent) || newcomers.contains(&stat.parent) {
            return true;
        }
        let (group, session) = (Some(stat.group), Some(stat.session));
        self.here.values().any(|member| {
            Some(member.group) == group && group != self.foreign.0
                || Some(member.session) == session && session != self.foreign.1
        })
    }

    /// Takes a look at all processes of the tree and books what they used since the
    /// look before.
    pub(super) fn look(&mut self, seen: &[Seen]) -> Used {
        let at = seen.iter().map(|seen| seen.at).max();
        let at = at.map_or(self.last_at, |at| at.max(self.last_at));
        let wall = at.saturating_duration_since(self.last_at);
        self.last_at = at;
        self.here
            .values_mut()
            .for_each(|member| member.is_here = false);
        let mut used = Used::default();
        for seen in seen {
            let before = self.here.remove(&seen.pid);
            let before = match before {
                Some(member) if member.start_ticks == seen.stat.start_ticks => Some(member),
                // Its id means another process now.
                Some(other) => {
                    self.end(other);
                    None
                }
                None => None,
            };
            // What a newcomer used, it used since the look before.
            let since = match &before {
                Some(member) => seen.at.saturating_duration_since(member.seen.1),
                None => wall,
            };
            let is_known = before.is_some();
            let mut member = before.unwrap_or_else(|| Member::of(seen));
            let own = seen.cpu.saturating_sub(member.own);
            member.own = member.own.max(seen.cpu);
            member.cpu += own;
            let cores = cores(own, since);
            used.time += own;
            used.cores += cores;
            if is_known {
                member.cpu_cores_max = member.cpu_cores_max.max(cores);
            }
            member.command.clone_from(&seen.stat.command);
            (member.seen.1, member.waits) = (seen.at, seen.stat.parent);
            (member.group, member.session) = (seen.stat.group, seen.stat.session);
            member.is_here = true;
            self.here.insert(seen.pid, member);
        }
        let ended: Vec<u32> = self
            .here
            .values()
            .filter(|member| !member.is_here)
            .map(|member| member.pid)
            .collect();
        self.collect(&ended);
        // What ended children used after they were seen last, if they were seen at all,
        // is in the time of whoever waited for them.
        for seen in seen {
            let Some(member) = self.here.get_mut(&seen.pid) else {
                continue;
            };
            let unseen = seen.children_cpu.saturating_sub(member.gone);
            if unseen > member.unseen {
                let more = unseen - member.unseen;
                (member.unseen, member.cpu) = (unseen, member.cpu + more);
                used.time += more;
                used.cores += cores(more, wall);
            }
        }
        used
    }

    /// Takes members out that have ended; their time goes to whoever waits for them.
    /// Children come before their parents, which may have ended with them.
    fn collect(&mut self, ended: &[u32]) {
        let depth = |pid: u32| {
            let mut depth = 0;
            let mut at = self.here.get(&pid);
            while let Some(member) = at
                && depth < ended.len()
            {
                depth += 1;
                at = self
                    .here
                    .get(&member.waits)
                    .filter(|parent| !parent.is_here);
            }
            depth
        };
        let mut order: Vec<(usize, u32)> = ended.iter().map(|pid| (depth(*pid), *pid)).collect();
        order.sort_unstable_by(|a, b| b.cmp(a));
        for (_, pid) in order {
            if let Some(member) = self.here.remove(&pid) {
                self.end(member);
            }
        }
    }

    fn end(&mut self, member: Member) {
        if let Some(parent) = self.here.get_mut(&member.waits) {
            parent.gone += member.booked();
        }
        match self.ended.len() < Self::MOST {
            true => self.ended.push(member),
            false => self.forgotten += 1,
        }
    }

    /// A process has, or had, this much memory.
    pub(super) fn memory(&mut self, pid: u32, rss_bytes: u64) {
        if let Some(member) = self.here.get_mut(&pid) {
            member.rss_bytes_max = member.rss_bytes_max.max(rss_bytes);
        }
    }

    /// Every process that was seen, and how many more there were.
    pub(super) fn members(self) -> (Vec<Member>, u64) {
        let mut all = self.ended;
        all.extend(self.here.into_values());
        all.sort_by_key(|member| (member.seen.0, member.pid));
        (all, self.forgotten)
    }
}

impl Member {
    fn of(seen: &Seen) -> Self {
        Self {
            pid: seen.pid,
            parent: seen.stat.parent,
            command: seen.stat.command.clone(),
            cpu: Duration::ZERO,
            cpu_cores_max: 0.0,
            rss_bytes_max: 0,
            seen: (seen.at, seen.at),
            start_ticks: seen.stat.start_ticks,
            waits: seen.stat.parent,
            group: seen.stat.group,
            session: seen.stat.session,
            own: Duration::ZERO,
            unseen: Duration::ZERO,
            gone: Duration::ZERO,
            is_here: true,
        }
    }
}

/// Processor time over a time that passed; none over none.
fn cores(time: Duration, passed: Duration) -> f64 {
    match passed.is_zero() {
        true => 0.0,
        false => time.as_secs_f64() / passed.as_secs_f64(),
    }
}

#[cfg(test)]
mod tests;
