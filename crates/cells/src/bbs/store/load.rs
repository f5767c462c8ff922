//! From rows to the state, whatever database they come from.

use std::borrow::Cow;
use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use diego::locket::Resource;
use prost::Message;

use crate::bbs::encryption::{Column, Vault};
use crate::bbs::presence::{self, StoredLock};
use crate::bbs::state::{Actual, Desired, Names, NextIds, Process, State, Task};

/// Why a row cannot be read.
pub(super) type Unreadable = Box<dyn Error>;

/// What decrypts values that are read.
pub(super) struct Reading<'a> {
    vault: Option<&'a mut Vault>,
    /// Rows that are not encrypted with the active key, where there is one.
    pub(super) stale: u64,
}

impl<'a> Reading<'a> {
    pub(super) fn new(vault: Option<&'a mut Vault>) -> Self {
        Self { vault, stale: 0 }
    }

    /// A row comes that is encrypted with this key.
    fn row(&mut self, label: Option<&str>) {
        let active = self.vault.as_ref().map(|vault| vault.active());
        self.stale += u64::from(active.is_some() && label != active);
    }

    fn value<'v>(
        &mut self,
        label: Option<&str>,
        column: Column,
        id: i64,
        stored: &'v [u8],
    ) -> Result<Cow<'v, [u8]>, Unreadable> {
        Ok(match (label, &mut self.vault) {
            (None, _) => stored.into(),
            (Some(label), Some(vault)) => vault.open(label, column, id, stored)?.into(),
            (Some(label), None) => {
                let why = format!("it is encrypted with the key {label:?}, and no keys were given");
                return Err(why.into());
            }
        })
    }
}

/// A state of which rows are still to come, in any order.
pub(super) struct Loading<'a> {
    names: &'a mut Names,
    reading: Reading<'a>,
    tasks: HashMap<Arc<str>, Task>,
    processes: HashMap<Arc<str>, Process>,
    domains: HashMap<Arc<str>, i64>,
    next: NextIds,
}

impl<'a> Loading<'a> {
    pub(super) fn new(names: &'a mut Names, reading: Reading<'a>) -> Self {
        Self {
            names,
            reading,
            tasks: HashMap::new(),
            processes: HashMap::new(),
            domains: HashMap::new(),
            next: NextIds::default(),
        }
    }

    pub(super) fn task(
        &mut self,
        id: i64,
        guid: &str,
        label: Option<&str>,
        record: &[u8],
    ) -> Result<(), Unreadable> {
        self.reading.row(label);
        let record = self.reading.value(label, Column::Task, id, record)?;
        let task = diego::models::Task::decode(&*record)?;
        let task = Task::new(id, &task, self.names);
        self.tasks.insert(Arc::from(guid), task);
        self.next.task = self.next.task.max(id + 1);
        Ok(())
    }

    pub(super) fn desired(
        &mut self,
        id: i64,
        guid: &str,
        domain: &str,
        label: Option<&str>,
        [info, rest]: [&[u8]; 2],
    ) -> Result<(), Unreadable> {
        self.reading.row(label);
        let info = self.reading.value(label, Column::Info, id, info)?;
        let rest = self.reading.value(label, Column::Rest, id, rest)?;
        let mut desired = Desired {
            id,
            info: Arc::from(&*info),
            rest: Arc::from(&*rest),
            domain: self.names.shared(domain),
            instances: 0,
        };
        desired.instances = desired.decode()?.instances;
        self.process(guid).desired = Some(desired);
        self.next.desired = self.next.desired.max(id + 1);
        Ok(())
    }

    pub(super) fn actual(
        &mut self,
        id: i64,
        guid: &str,
        label: Option<&str>,
        record: &[u8],
    ) -> Result<(), Unreadable> {
        self.reading.row(label);
        let record = self.reading.value(label, Column::Actual, id, record)?;
        let row = diego::models::ActualLrp::decode(&*record)?;
        let row = Actual::new(id, &row, self.names);
        let rows = &mut self.process(guid).actual;
        if rows.is_empty() {
            // Most processes have one.
            rows.reserve_exact(1);
        }
        rows.push(row);
        self.next.actual = self.next.actual.max(id + 1);
        Ok(())
    }

    pub(super) fn stop(&mut self, guid: &str, from: i32) {
        self.process(guid).stop_from = Some(from);
    }

    pub(super) fn domain(&mut self, domain: &str, expires: i64) {
        self.domains.insert(self.names.shared(domain), expires);
    }

    fn process(&mut self, guid: &str) -> &mut Process {
        self.processes.entry(guid.into()).or_default()
    }

    /// All that was read, and how many rows are not encrypted with the active key.
    pub(super) fn finish(self) -> (State, NextIds, u64) {
        let state = State::of(self.tasks, self.processes, self.domains);
        (state, self.next, self.reading.stale)
    }
}

/// Who held a key, of which all but the value was read.
pub(super) struct LockRow {
    pub(super) id: i64,
    pub(super) key: String,
    pub(super) owner: String,
    pub(super) type_code: i32,
    pub(super) ttl_s: i64,
}

impl LockRow {
    pub(super) fn with(
        self,
        reading: &mut Reading<'_>,
        label: Option<&str>,
        value: &[u8],
    ) -> Result<StoredLock, Unreadable> {
        reading.row(label);
        let value = reading.value(label, Column::Presence, self.id, value)?;
        Ok(StoredLock {
            id: self.id,
            resource: Resource {
                key: self.key,
                owner: self.owner,
                value: String::from_utf8(value.into_owned())?,
                type_code: self.type_code,
                r#type: presence::type_text(self.type_code).to_owned(),
            },
            ttl: Duration::from_secs(self.ttl_s.unsigned_abs()),
        })
    }
}
