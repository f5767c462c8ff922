//! From a batch to the rows that change.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::bbs::encryption::{Column, SealError, Vault};
use crate::bbs::presence::{Change, StoredLock};
use crate::bbs::state::{Actual, Desired, Overlay, Process, State, Task};

/// What a batch changes, row by row; each row once.
#[derive(Default)]
pub(crate) struct Writes<'a> {
    pub(super) tasks: Rows<'a, Task>,
    pub(super) desired: Rows<'a, Desired>,
    pub(super) actual: Rows<'a, Actual>,
    pub(super) stops: Vec<(&'a str, Option<i32>)>,
    pub(super) domains: Vec<(&'a str, Option<i64>)>,
    pub(super) held: Vec<EncodedLock<'a>>,
    /// Keys of which no row with this number or one before it stays.
    pub(super) gone: Vec<(&'a str, i64)>,
    /// The key that all values are encrypted with; `None`: they are not.
    pub(super) label: Option<String>,
}

/// Who holds a key, with the value as it is stored.
pub(super) struct EncodedLock<'a> {
    pub(super) kept: &'a StoredLock,
    pub(super) value: Cow<'a, [u8]>,
}

/// Changes of a table with numbered rows: first those that are gone.
pub(super) struct Rows<'a, T> {
    pub(super) gone: Vec<i64>,
    pub(super) put: Vec<Put<'a, T>>,
}

/// A row that is there from now on.
pub(super) struct Put<'a, T> {
    pub(super) guid: &'a str,
    pub(super) row: &'a T,
    /// Under this number there was none.
    pub(super) new: bool,
    /// Its record as it is stored; of a desired LRP, the scheduling info.
    pub(super) bytes: Cow<'a, [u8]>,
    /// The rest of a desired LRP as it is stored.
    pub(super) rest: Cow<'a, [u8]>,
}

impl<T> Default for Rows<'_, T> {
    fn default() -> Self {
        Self {
            gone: Vec::new(),
            put: Vec::new(),
        }
    }
}

/// A row with a number.
pub(super) trait Numbered {
    fn id(&self) -> i64;
    /// It is the very same.
    fn is(&self, other: &Self) -> bool;
    /// The record, or the first part of it.
    fn bytes(&self) -> &[u8];
    /// The second part of it.
    fn rest(&self) -> &[u8] {
        &[]
    }
}

impl Numbered for Task {
    fn id(&self) -> i64 {
        self.id
    }

    fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.bytes, &other.bytes)
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl Numbered for Desired {
    fn id(&self) -> i64 {
        self.id
    }

    fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.info, &other.info)
    }

    fn bytes(&self) -> &[u8] {
        &self.info
    }

    fn rest(&self) -> &[u8] {
        &self.rest
    }
}

impl Numbered for Actual {
    fn id(&self) -> i64 {
        self.id
    }

    fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.bytes, &other.bytes)
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl<'a, T: Numbered> Rows<'a, T> {
    fn add(&mut self, guid: &'a str, old: Option<&T>, new: Option<&'a T>) {
        if let (Some(old), Some(new)) = (old, new)
            && old.is(new)
        {
            return;
        }
        let same = old.zip(new).is_some_and(|(old, new)| old.id() == new.id());
        if !same {
            self.gone.extend(old.map(T::id));
        }
        self.put.extend(new.map(|row| Put {
            guid,
            row,
            new: !same,
            bytes: row.bytes().into(),
            rest: row.rest().into(),
        }));
    }

    fn seal(&mut self, vault: &mut Vault, bytes: Column) -> Result<(), SealError> {
        for put in &mut self.put {
            let id = put.row.id();
            put.bytes = vault.seal(bytes, id, &put.bytes)?.into();
            if bytes == Column::Info {
                put.rest = vault.seal(Column::Rest, id, &put.rest)?.into();
            }
        }
        Ok(())
    }
}

impl<'a> Writes<'a> {
    /// What a batch over `base` changes.
    pub(crate) fn of(base: &State, batch: &'a Overlay) -> Self {
        let mut writes = Self::default();
        for (guid, task) in batch.tasks.changes() {
            writes.tasks.add(guid, base.tasks.get(guid), task);
        }
        let nothing = Process::default();
        for (guid, layer) in &batch.processes {
            let old = base.processes.get(guid).unwrap_or(&nothing);
            if let Some(desired) = &layer.desired {
                let old = old.desired.as_ref();
                writes.desired.add(guid, old, desired.as_ref());
            }
            if let Some(from) = layer.stop_from {
                writes.stops.push((guid, from));
            }
            for (place, row) in layer.rows.changes() {
                writes.actual.add(guid, old.row(*place), row);
            }
        }
        let domains = batch.domains.changes();
        let domains = domains.map(|(domain, expires)| (&**domain, expires.copied()));
        writes.domains.extend(domains);
        let (held, gone) = last(&batch.presences);
        writes.gone = gone;
        writes.held.extend(held.into_iter().map(|kept| EncodedLock {
            kept,
            value: kept.resource.value.as_bytes().into(),
        }));
        writes
    }

    /// Encrypts every value with the active key.
    pub(super) fn seal(&mut self, vault: &mut Vault) -> Result<(), SealError> {
        self.tasks.seal(vault, Column::Task)?;
        self.desired.seal(vault, Column::Info)?;
        self.actual.seal(vault, Column::Actual)?;
        for held in &mut self.held {
            held.value = vault
                .seal(Column::Presence, held.kept.id, &held.value)?
                .into();
        }
        self.label = Some(vault.active().to_owned());
        Ok(())
    }
}

/// What is left of changes that came one after the other.
fn last(changes: &[Change]) -> (Vec<&StoredLock>, Vec<(&str, i64)>) {
    let mut last: BTreeMap<&str, Result<&StoredLock, i64>> = BTreeMap::new();
    for change in changes {
        match change {
            Change::Held(kept) => {
                last.insert(&kept.resource.key, Ok(kept));
            }
            Change::Gone(key, id) => {
                let before = last.get(key.as_str()).copied();
                let after = match before {
                    // It is held by somebody who came later.
                    Some(Ok(kept)) if kept.id > *id => Ok(kept),
                    Some(Err(before)) => Err(before.max(*id)),
                    _ => Err(*id),
                };
                last.insert(key, after);
            }
        }
    }
    let held = last.values().filter_map(|last| last.ok());
    let gone = last
        .iter()
        .filter_map(|(key, last)| Some((*key, last.err()?)));
    (held.collect(), gone.collect())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use diego::locket::Resource;
    use proptest::prelude::*;

    use super::*;

    fn kept(key: &str, id: i64) -> StoredLock {
        StoredLock {
            id,
            resource: Resource {
                key: key.into(),
                ..Resource::default()
            },
            ttl: Duration::ZERO,
        }
    }

    type Table = BTreeMap<String, i64>;

    fn gone(table: &mut Table, key: &str, id: i64) {
        if table.get(key).is_some_and(|held| *held <= id) {
            table.remove(key);
        }
    }

    proptest! {
        /// The last of the changes leave what all of them leave one by one.
        #[test]
        fn what_is_left_of_changes_does_what_they_do_one_by_one(
            before in prop::collection::btree_map("[ab]", 1..4_i64, 0..3),
            changes in prop::collection::vec(("[ab]", prop::option::of(1..3_i64)), 0..8),
        ) {
            // Numbers of what is held grow; what goes is of any time before.
            let mut id = 3;
            let changes: Vec<Change> = changes.into_iter().map(|(key, back)| match back {
                None => {
                    id += 1;
                    Change::Held(kept(&key, id))
                }
                Some(back) => Change::Gone(key, id - back + 1),
            }).collect();
            let mut naive: Table = before.clone();
            for change in &changes {
                match change {
                    Change::Held(kept) => drop(naive.insert(kept.resource.key.clone(), kept.id)),
                    Change::Gone(key, id) => gone(&mut naive, key, *id),
                }
            }
            let mut table = before;
            let (held, left) = last(&changes);
            for kept in held {
                table.insert(kept.resource.key.clone(), kept.id);
            }
            for (key, id) in left {
                gone(&mut table, key, id);
            }
            prop_assert_eq!(table, naive);
        }
    }
}
