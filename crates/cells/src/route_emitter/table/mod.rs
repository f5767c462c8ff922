//! The routing table: which routes lead to which instances. Pure.
//!
//! It takes what the BBS says, as events one by one or as a whole in a sync, and says what is to
//! be registered and unregistered. Two things hold whatever comes in which order:
//!
//! - What was told so far, taken together, is the table.
//! - A registration is taken back only when nobody else has it: an instance that takes over a port
//!   of one that has ended keeps its routes.

mod derive;
mod events;
mod facts;
mod owners;
mod routes;
mod sync;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use derive::{Registrations, registrations};
use facts::Slots;
use owners::Owners;
use sync::Journal;

pub use events::{Event, EventError, events_of};
pub use facts::{Desired, Instance, Tag};
pub use routes::RoutesError;
pub use sync::{JournalFull, Snapshot};

use super::registration::{Key, Registration};

/// What a table is told once.
#[derive(Debug, Clone, Copy, Default)]
pub struct TableSettings {
    /// Instances that do not say which address they prefer are reached at that of their container.
    pub direct_instance_routes: bool,
    /// TCP routes lead to ports for TLS.
    pub tcp_tls: bool,
}

/// Who receives registrations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// HTTP and TCP routers.
    External,
    /// Service discovery.
    Internal,
}

/// How many registrations there are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// HTTP routes, once for each instance.
    pub http: usize,
    /// TCP routes, once for each instance.
    pub tcp: usize,
    /// Internal routes, once for each instance. Each has two names.
    pub internal: usize,
}

/// What is to be told, registrations first: so no route is without an instance in between.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Changes {
    /// New ones, and ones that say something else than before.
    pub registered: Vec<Registration>,
    /// Those that are over.
    pub unregistered: Vec<Registration>,
    /// Instances that came to an address which another one has still.
    pub collisions: u64,
    /// An instance runs of this process, of which no desired LRP is known.
    pub unknown_process: Option<Arc<str>>,
}

/// Where a walk over the table goes on: behind this instance of this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor(Arc<str>, Arc<str>);

/// All instances that run, and the routes to them.
#[derive(Debug, Default)]
pub struct Table {
    settings: TableSettings,
    processes: BTreeMap<Arc<str>, Process>,
    owners: Owners,
    counts: Counts,
    /// What came since a sync began.
    journal: Option<Journal>,
}

/// A process: its routes, and its instances by guid.
#[derive(Debug, Clone, Default, PartialEq)]
struct Process {
    desired: Option<Desired>,
    instances: BTreeMap<Arc<str>, Slots>,
}

impl Process {
    fn is_empty(&self) -> bool {
        self.desired.is_none() && self.instances.is_empty()
    }
}

/// What differs between two states of a table, before it is known who else has what.
#[derive(Debug, Default)]
struct Diff {
    registered: Registrations,
    over: Registrations,
    collisions: u64,
}

impl Table {
    /// An empty table.
    pub fn new(settings: TableSettings) -> Self {
        Self {
            settings,
            ..Self::default()
        }
    }

    /// How many registrations there are.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Processes of which an instance runs.
    pub fn running_processes(&self) -> BTreeSet<Arc<str>> {
        let processes = self.processes.iter();
        let running = processes.filter(|(_, process)| !process.instances.is_empty());
        running.map(|(guid, _)| Arc::clone(guid)).collect()
    }

    /// Takes what happened. What is older than what is known has no effect.
    pub fn apply(&mut self, event: Event) -> Changes {
        match event {
            Event::Desired(desired) => self.desired(desired),
            Event::DesiredGone { process, tag } => self.desired_gone(&process, tag),
            Event::Instance(instance) => self.instance(instance),
            Event::InstanceGone {
                process,
                guid,
                evacuating,
                tag,
            } => self.instance_gone(&(process, guid), evacuating, tag),
        }
    }

    /// Up to `most` registrations for an audience, or as many as one instance has, and where to go
    /// on unless these were the last.
    pub fn page(
        &self,
        audience: Audience,
        behind: Option<&Cursor>,
        most: usize,
    ) -> (Vec<Registration>, Option<Cursor>) {
        let mut page = Vec::new();
        let from = behind.map_or(Bound::Unbounded, |it| Bound::Included(Arc::clone(&it.0)));
        for (process, of) in self.processes.range((from, Bound::Unbounded)) {
            let within = behind.filter(|it| it.0 == *process);
            let from = within.map_or(Bound::Unbounded, |it| Bound::Excluded(Arc::clone(&it.1)));
            for (guid, slots) in of.instances.range((from, Bound::Unbounded)) {
                let desired = of.desired.as_ref();
                let all = registrations(desired, Some(slots), self.settings, Some(audience));
                page.extend(all.into_values());
                if page.len() >= most {
                    return (page, Some(Cursor(Arc::clone(process), Arc::clone(guid))));
                }
            }
        }
        (page, None)
    }

    fn desired(&mut self, desired: Desired) -> Changes {
        let process = Arc::clone(&desired.process);
        let known = self
            .processes
            .get(&process)
            .and_then(|it| it.desired.as_ref());
        if known.is_some_and(|known| !known.tag.succeeded_by(&desired.tag)) {
            return Changes::default();
        }
        if let Some(journal) = &mut self.journal {
            journal.desired(desired.clone());
        }
        self.set_desired(&process, Some(desired))
    }

    fn desired_gone(&mut self, process: &Arc<str>, tag: Tag) -> Changes {
        let known = self
            .processes
            .get(process)
            .and_then(|it| it.desired.as_ref());
        let ends = known.is_none_or(|known| known.tag.ended_by(&tag));
        if !ends {
            return Changes::default();
        }
        if let Some(journal) = &mut self.journal {
            journal.desired_gone(process, tag);
        }
        self.set_desired(process, None)
    }

    fn instance(&mut self, instance: Instance) -> Changes {
        let owner = (Arc::clone(&instance.process), Arc::clone(&instance.guid));
        let mut slots = self.slots(&owner).cloned().unwrap_or_default();
        let slot = slots.slot_mut(instance.evacuating);
        if slot
            .as_ref()
            .is_some_and(|known| !known.tag.succeeded_by(&instance.tag))
        {
            return Changes::default();
        }
        if let Some(journal) = &mut self.journal {
            journal.instance(instance.clone());
        }
        let since = instance.since;
        *slot = Some(instance);
        let mut changes = self.set_slots(&owner, slots);
        changes.registered = changes
            .registered
            .into_iter()
            .map(|registration| registration.changed_at(since))
            .collect();
        let process = self.processes.get(&owner.0);
        let unknown = process.is_some_and(|process| process.desired.is_none());
        changes.unknown_process = unknown.then_some(owner.0);
        changes
    }

    fn instance_gone(&mut self, owner: &owners::Owner, evacuating: bool, tag: Tag) -> Changes {
        let mut slots = self.slots(owner).cloned().unwrap_or_default();
        let slot = slots.slot_mut(evacuating);
        if slot.as_ref().is_some_and(|known| !known.tag.ended_by(&tag)) {
            return Changes::default();
        }
        if let Some(journal) = &mut self.journal {
            journal.instance_gone(owner, evacuating, tag);
        }
        *slot = None;
        self.set_slots(owner, slots)
    }

    fn slots(&self, owner: &owners::Owner) -> Option<&Slots> {
        self.processes.get(&owner.0)?.instances.get(&owner.1)
    }

    fn set_desired(&mut self, process: &Arc<str>, desired: Option<Desired>) -> Changes {
        let mut of = self.processes.remove(process).unwrap_or_default();
        let mut diff = Diff::default();
        for slots in of.instances.values() {
            let (before, after) = (of.desired.as_ref(), desired.as_ref());
            self.compare(&mut diff, (before, Some(slots)), (after, Some(slots)));
        }
        of.desired = desired;
        if !of.is_empty() {
            self.processes.insert(Arc::clone(process), of);
        }
        self.settle(diff)
    }

    fn set_slots(&mut self, owner: &owners::Owner, slots: Slots) -> Changes {
        let mut of = self.processes.remove(&owner.0).unwrap_or_default();
        let before = of.instances.remove(&owner.1);
        let after = Some(slots).filter(|slots| !slots.is_empty());
        let mut diff = Diff {
            collisions: self
                .owners
                .moved(owner, before.as_ref(), after.as_ref(), self.settings),
            ..Diff::default()
        };
        let desired = of.desired.as_ref();
        self.compare(
            &mut diff,
            (desired, before.as_ref()),
            (desired, after.as_ref()),
        );
        if let Some(slots) = after {
            of.instances.insert(Arc::clone(&owner.1), slots);
        }
        if !of.is_empty() {
            self.processes.insert(Arc::clone(&owner.0), of);
        }
        self.settle(diff)
    }

    /// Adds what differs between two states of one instance, and counts it.
    fn compare(
        &mut self,
        diff: &mut Diff,
        before: (Option<&Desired>, Option<&Slots>),
        after: (Option<&Desired>, Option<&Slots>),
    ) {
        let mut old = registrations(before.0, before.1, self.settings, None);
        let new = registrations(after.0, after.1, self.settings, None);
        self.counts.change(&old, &new);
        for (key, registration) in new {
            if old.remove(&key).as_ref() != Some(&registration) {
                diff.registered.insert(key, registration);
            }
        }
        diff.over.append(&mut old);
    }

    /// What is to be told of a difference, now that the table is as it is afterwards.
    fn settle(&self, diff: Diff) -> Changes {
        let Diff {
            mut registered,
            over,
            collisions,
        } = diff;
        let mut unregistered = Vec::new();
        for (key, registration) in over {
            match self.registration(&key) {
                // It may have been told as the one that is over has it.
                Some(others) => drop(registered.entry(key).or_insert(others)),
                None => unregistered.push(registration),
            }
        }
        Changes {
            registered: registered.into_values().collect(),
            unregistered,
            collisions,
            unknown_process: None,
        }
    }

    /// The registration with this key, if some instance has it.
    fn registration(&self, key: &Key) -> Option<Registration> {
        self.owners.at(key).iter().find_map(|(process, guid)| {
            let process = self.processes.get(process)?;
            let (desired, slots) = (process.desired.as_ref(), process.instances.get(guid));
            registrations(desired, slots, self.settings, None).remove(key)
        })
    }
}

impl Counts {
    fn change(&mut self, before: &Registrations, after: &Registrations) {
        for registration in after.values() {
            *self.of(registration) += 1;
        }
        for registration in before.values() {
            let count = self.of(registration);
            *count = count.saturating_sub(1);
        }
    }

    fn of(&mut self, registration: &Registration) -> &mut usize {
        match registration {
            Registration::Http(_) => &mut self.http,
            Registration::Internal(_) => &mut self.internal,
            Registration::Tcp(_) => &mut self.tcp,
        }
    }
}
