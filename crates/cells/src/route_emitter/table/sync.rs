//! A sync: all that the BBS knows, in place of what the table knew.
//!
//! While the BBS is asked, events go on. They are applied at once, and again to what the BBS
//! answered: an answer may be older than an event, and then its record's tag says so.
//!
//! What an answer lacks is over, with one exception. A domain is fresh while whoever desires its
//! processes keeps saying that all of them are there. Of a process that is not desired in a domain
//! that is not fresh nobody knows, so it stays as it is: a BBS whose database was lost, or an
//! owner who is away, takes no route from anybody. Routes that a desired LRP in such a domain has
//! no more stay as well.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::derive::places;
use super::facts::{Desired, Instance, Slots, Tag};
use super::owners::Owner;
use super::{Changes, Diff, Process, Table};

/// Records that may change during one sync. Above it the sync is given up and begun again.
const MOST_JOURNAL: usize = 1_000_000;

/// What the BBS answered.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    desired: BTreeMap<Arc<str>, Desired>,
    instances: BTreeMap<Owner, Slots>,
    /// Domains that are fresh.
    fresh: BTreeSet<String>,
    /// Processes that were asked for; `None`: all.
    asked: Option<BTreeSet<Arc<str>>>,
    /// Processes whose routes cannot be read.
    unreadable: BTreeSet<Arc<str>>,
}

impl Snapshot {
    /// An answer without any process, in which these domains are fresh. Of `asked` it is known
    /// whether they are desired; `None`: of all.
    pub fn new(fresh: impl IntoIterator<Item = String>, asked: Option<BTreeSet<Arc<str>>>) -> Self {
        Self {
            fresh: fresh.into_iter().collect(),
            asked,
            ..Self::default()
        }
    }

    /// Adds a desired LRP.
    pub fn desired(&mut self, desired: Desired) {
        self.desired.insert(Arc::clone(&desired.process), desired);
    }

    /// Adds a process whose routes cannot be read: those that are known stay.
    pub fn unreadable(&mut self, process: &str) {
        self.unreadable.insert(process.into());
    }

    /// Adds an instance.
    pub fn instance(&mut self, instance: Instance) {
        let owner = (Arc::clone(&instance.process), Arc::clone(&instance.guid));
        let slots = self.instances.entry(owner).or_default();
        let slot = slots.slot_mut(instance.evacuating);
        *slot = Some(instance);
    }

    fn asked_for(&self, process: &Arc<str>) -> bool {
        let asked = self
            .asked
            .as_ref()
            .is_none_or(|asked| asked.contains(process));
        asked && !self.unreadable.contains(process)
    }
}

/// More changed during a sync than is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("more than {MOST_JOURNAL} records changed during the sync; it starts again")]
pub struct JournalFull;

/// The last that was told of each record since a sync began.
#[derive(Debug, Default)]
pub(super) struct Journal {
    desired: BTreeMap<Arc<str>, Result<Desired, Tag>>,
    instances: BTreeMap<(Owner, bool), Result<Instance, Tag>>,
    full: bool,
}

impl Journal {
    pub(super) fn desired(&mut self, desired: Desired) {
        if self.has_room() {
            self.desired
                .insert(Arc::clone(&desired.process), Ok(desired));
        }
    }

    pub(super) fn desired_gone(&mut self, process: &Arc<str>, tag: Tag) {
        if self.has_room() {
            self.desired.insert(Arc::clone(process), Err(tag));
        }
    }

    pub(super) fn instance(&mut self, instance: Instance) {
        if self.has_room() {
            let owner = (Arc::clone(&instance.process), Arc::clone(&instance.guid));
            self.instances
                .insert((owner, instance.evacuating), Ok(instance));
        }
    }

    pub(super) fn instance_gone(&mut self, owner: &Owner, evacuating: bool, tag: Tag) {
        if self.has_room() {
            self.instances.insert((owner.clone(), evacuating), Err(tag));
        }
    }

    fn has_room(&mut self) -> bool {
        self.full |= self.desired.len() + self.instances.len() >= MOST_JOURNAL;
        !self.full
    }

    /// Puts what was told over what was answered, unless that is newer.
    fn put_over(self, snapshot: &mut Snapshot) {
        for (process, told) in self.desired {
            let known = snapshot.desired.get(&process);
            match told {
                Ok(desired) if known.is_none_or(|known| known.tag.succeeded_by(&desired.tag)) => {
                    snapshot.desired.insert(process, desired);
                }
                Err(tag) if known.is_some_and(|known| known.tag.ended_by(&tag)) => {
                    snapshot.desired.remove(&process);
                }
                _ => {}
            }
        }
        for ((owner, evacuating), told) in self.instances {
            let slots = snapshot.instances.entry(owner.clone()).or_default();
            let known = slots.slot(evacuating);
            match told {
                Ok(instance) if known.is_none_or(|known| known.tag.succeeded_by(&instance.tag)) => {
                    *slots.slot_mut(evacuating) = Some(instance);
                }
                Err(tag) if known.is_some_and(|known| known.tag.ended_by(&tag)) => {
                    *slots.slot_mut(evacuating) = None;
                }
                _ => {}
            }
            if slots.is_empty() {
                snapshot.instances.remove(&owner);
            }
        }
    }
}

impl Table {
    /// From now on the BBS is asked. An earlier sync that has not finished is given up.
    pub fn begin_sync(&mut self) {
        self.journal = Some(Journal::default());
    }

    /// There is no answer.
    pub fn abandon_sync(&mut self) {
        self.journal = None;
    }

    /// The answer to what was asked since [`begin_sync`](Self::begin_sync).
    ///
    /// # Errors
    /// When too much changed meanwhile. The table is as it was.
    pub fn finish_sync(&mut self, mut snapshot: Snapshot) -> Result<Changes, JournalFull> {
        let journal = self.journal.take().unwrap_or_default();
        if journal.full {
            return Err(JournalFull);
        }
        journal.put_over(&mut snapshot);
        let next = self.next(snapshot);
        let before = std::mem::replace(&mut self.processes, next.processes);
        self.owners = next.owners;
        let mut diff = Diff::default();
        self.compare_all(&mut diff, &before);
        Ok(self.settle(diff))
    }

    /// The table that follows from an answer.
    fn next(&self, mut snapshot: Snapshot) -> Self {
        let mut next = Self::new(self.settings);
        let instances = std::mem::take(&mut snapshot.instances);
        for ((process, guid), slots) in instances {
            next.place((process, guid), slots);
        }
        // Of a process of this cell nobody but this cell's instances needs to know.
        let everything = snapshot.asked.is_none();
        for (process, desired) in std::mem::take(&mut snapshot.desired) {
            let of = next.processes.entry(process).or_default();
            of.desired = Some(desired);
        }
        let mut kept = Vec::new();
        let mut kept_desired = Vec::new();
        for (guid, known) in &self.processes {
            let Some(desired) = &known.desired else {
                continue;
            };
            let fresh = snapshot.fresh.contains(&*desired.domain);
            let asked = snapshot.asked_for(guid);
            match next
                .processes
                .get_mut(guid)
                .and_then(|of| of.desired.as_mut())
            {
                Some(now) if !fresh => now.routes.keep(&desired.routes),
                Some(_) => {}
                // It ran when the BBS was not asked about it, or what it said makes no sense.
                None if !asked => kept_desired.push(desired),
                None if !fresh => {
                    kept.extend(next.unanswered(guid, known));
                    kept_desired.push(desired);
                }
                None => {}
            }
        }
        for (owner, slots) in kept {
            next.place(owner, slots);
        }
        for desired in kept_desired {
            // Without an instance there is nothing to keep.
            if let Some(of) = next.processes.get_mut(&desired.process) {
                of.desired = Some(desired.clone());
            }
        }
        if !everything {
            next.processes.retain(|_, of| !of.instances.is_empty());
        }
        next
    }

    fn place(&mut self, owner: Owner, slots: Slots) {
        self.owners.moved(&owner, None, Some(&slots), self.settings);
        let of = self.processes.entry(owner.0).or_default();
        of.instances.insert(owner.1, slots);
    }

    /// Instances that were not answered, but for those whose address somebody else has now: that
    /// one is proof that they have ended.
    fn unanswered(&self, process: &Arc<str>, known: &Process) -> Vec<(Owner, Slots)> {
        let of = self.processes.get(process);
        let answered = |guid| of.is_some_and(|of| of.instances.contains_key(guid));
        let known = known.instances.iter();
        let unanswered = known.filter(|(guid, slots)| !answered(*guid) && !self.is_taken(slots));
        let owner = |guid: &Arc<str>| (Arc::clone(process), Arc::clone(guid));
        unanswered
            .map(|(guid, slots)| (owner(guid), slots.clone()))
            .collect()
    }

    /// Whether another instance is at one of the ports.
    fn is_taken(&self, slots: &Slots) -> bool {
        let places = places(slots, self.settings);
        places
            .iter()
            .any(|(host, port)| *port != 0 && self.owners.has(host, *port))
    }

    fn compare_all(&mut self, diff: &mut Diff, before: &BTreeMap<Arc<str>, Process>) {
        let now = std::mem::take(&mut self.processes);
        let nothing = Process::default();
        let guids: BTreeSet<_> = before.keys().chain(now.keys()).collect();
        for guid in guids {
            let old = before.get(guid).unwrap_or(&nothing);
            let new = now.get(guid).unwrap_or(&nothing);
            if old == new {
                continue;
            }
            let all: BTreeSet<_> = old.instances.keys().chain(new.instances.keys()).collect();
            for instance in all {
                self.compare(
                    diff,
                    (old.desired.as_ref(), old.instances.get(instance)),
                    (new.desired.as_ref(), new.instances.get(instance)),
                );
            }
        }
        self.processes = now;
    }
}
