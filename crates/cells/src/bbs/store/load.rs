//! From rows to the state, whatever database they come from.

use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use diego::locket::Resource;
use prost::Message;

use crate::bbs::presence::{self, Kept};
use crate::bbs::state::{Actual, Desired, Names, NextIds, Process, State, Task};

/// Why a row cannot be read.
pub(super) type Unreadable = Box<dyn Error>;

/// A state of which rows are still to come, in any order.
pub(super) struct Loading<'a> {
    names: &'a mut Names,
    tasks: HashMap<Arc<str>, Task>,
    processes: HashMap<Arc<str>, Process>,
    domains: HashMap<Arc<str>, i64>,
    next: NextIds,
}

impl<'a> Loading<'a> {
    pub(super) fn new(names: &'a mut Names) -> Self {
        Self {
            names,
            tasks: HashMap::new(),
            processes: HashMap::new(),
            domains: HashMap::new(),
            next: NextIds::default(),
        }
    }

    pub(super) fn task(&mut self, id: i64, guid: &str, record: &[u8]) -> Result<(), Unreadable> {
        let task = diego::models::Task::decode(record)?;
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
        info: Vec<u8>,
        rest: Vec<u8>,
    ) -> Result<(), Unreadable> {
        let mut desired = Desired {
            id,
            info: info.into(),
            rest: rest.into(),
            domain: self.names.shared(domain),
            instances: 0,
        };
        desired.instances = desired.decode()?.instances;
        self.process(guid).desired = Some(desired);
        self.next.desired = self.next.desired.max(id + 1);
        Ok(())
    }

    pub(super) fn actual(&mut self, id: i64, guid: &str, record: &[u8]) -> Result<(), Unreadable> {
        let row = diego::models::ActualLrp::decode(record)?;
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

    pub(super) fn finish(self) -> (State, NextIds) {
        let state = State::of(self.tasks, self.processes, self.domains);
        (state, self.next)
    }
}

/// Who held a key.
pub(super) fn kept(
    id: i64,
    key: String,
    owner: String,
    value: String,
    type_code: i32,
    ttl_s: i64,
) -> Kept {
    Kept {
        id,
        resource: Resource {
            key,
            owner,
            value,
            type_code,
            r#type: presence::type_text(type_code).to_owned(),
        },
        ttl: Duration::from_secs(ttl_s.unsigned_abs()),
    }
}
