//! A cell: the rep's own containers, over a network and an executor that are simulated.

use std::collections::BTreeMap;

use diego::auction::{CellState, Lrp, Resources, RootFsProvider, Task};
use diego::models::{self, ActualLrp, task};

use crate::rep::container::{Answer, Call, Command, Container, Event, Kind, Phase};

/// Containers that fit on a cell.
pub(crate) const ROOM: i32 = 8;

#[derive(Clone)]
pub(crate) enum Work {
    Lrp(Lrp),
    Task(Task),
}

pub(crate) struct Slot {
    machine: Container,
    pub(crate) work: Work,
    /// Number of the call under way: answers to others come too late.
    call: u64,
}

/// A rep with one cell. A restart makes another incarnation.
pub(crate) struct Cell {
    pub(crate) id: String,
    pub(crate) incarnation: u64,
    pub(crate) up: bool,
    pub(crate) held: bool,
    pub(crate) containers: BTreeMap<String, Slot>,
    guids: u64,
}

/// A container's wish, to be carried out by the world.
pub(crate) struct CellIntent {
    pub(crate) guid: String,
    pub(crate) kind: Kind,
    pub(crate) command: Command,
    pub(crate) call: u64,
}

impl Cell {
    pub(crate) fn new(number: usize) -> Self {
        Self {
            id: format!("cell-{number}"),
            incarnation: 0,
            up: true,
            held: false,
            containers: BTreeMap::new(),
            guids: 0,
        }
    }

    pub(crate) fn owner(&self) -> String {
        format!("{}-{}", self.id, self.incarnation)
    }

    /// Killed: everything on it is gone.
    pub(crate) fn kill(&mut self) {
        self.up = false;
        self.held = false;
        self.incarnation += 1;
        self.containers.clear();
    }

    pub(crate) fn state(&self) -> CellState {
        let total = Resources {
            memory_mb: 1024,
            disk_mb: 1024,
            containers: ROOM,
        };
        let mut state = CellState {
            cell_id: self.id.clone(),
            root_fs_providers: [("preloaded".into(), RootFsProvider::Arbitrary)].into(),
            total_resources: total,
            available_resources: total,
            zone: "z".into(),
            ..CellState::default()
        };
        state.available_resources.containers -= self.containers.len() as i32;
        for slot in self.containers.values() {
            match &slot.work {
                Work::Lrp(lrp) => state.lrps.push(lrp.clone()),
                Work::Task(task) => state.tasks.push(task.clone()),
            }
        }
        state
    }

    /// Takes work, if it may and has room.
    pub(crate) fn accept(&mut self, work: Work) -> Option<Vec<CellIntent>> {
        if !self.held || self.containers.len() >= ROOM as usize {
            return None;
        }
        let (guid, kind, work) = match work {
            Work::Lrp(lrp) => {
                self.guids += 1;
                let guid = format!("{}-i{}", self.owner(), self.guids);
                let instance_guid = guid.clone();
                let lrp = Lrp {
                    instance_guid,
                    ..lrp
                };
                (guid, Kind::Lrp, Work::Lrp(lrp))
            }
            Work::Task(task) if self.containers.contains_key(&task.task_guid) => {
                return Some(Vec::new());
            }
            Work::Task(task) => (task.task_guid.clone(), Kind::Task, Work::Task(task)),
        };
        let slot = Slot {
            machine: Container::new(kind),
            work,
            call: 0,
        };
        self.containers.insert(guid.clone(), slot);
        Some(self.feed(&guid, Event::Reserved))
    }

    /// Tells a container what happened.
    pub(crate) fn feed(&mut self, guid: &str, event: Event) -> Vec<CellIntent> {
        let Some(slot) = self.containers.get_mut(guid) else {
            return Vec::new();
        };
        let commands = slot.machine.on(event);
        if commands
            .iter()
            .any(|command| matches!(command, Command::Call(_)))
        {
            slot.call += 1;
        }
        let (kind, call) = (slot.machine.kind(), slot.call);
        if commands.contains(&Command::Delete) {
            self.containers.remove(guid);
        }
        let wanted = |command| CellIntent {
            guid: guid.to_owned(),
            kind,
            command,
            call,
        };
        commands.into_iter().map(wanted).collect()
    }

    /// An answer to a call, unless it comes too late.
    pub(crate) fn answer(&mut self, guid: &str, call: u64, answer: Answer) -> Vec<CellIntent> {
        let slot = self.containers.get(guid);
        if slot.is_none_or(|slot| slot.call != call) {
            return Vec::new();
        }
        self.feed(guid, Event::Answered(answer))
    }

    /// The instances that run: process, index, guid.
    pub(crate) fn running(&self) -> impl Iterator<Item = (&str, i32, &str)> {
        let running = self.containers.iter();
        let running = running.filter(|(_, slot)| *slot.machine.phase() == Phase::Running);
        running.filter_map(|(guid, slot)| match &slot.work {
            Work::Lrp(lrp) => Some((lrp.process_guid.as_str(), lrp.index, guid.as_str())),
            Work::Task(_) => None,
        })
    }

    /// Which containers the BBS has acknowledged, before it is asked for its records.
    pub(crate) fn acknowledged(&self) -> BTreeMap<String, bool> {
        let all = self.containers.iter();
        all.map(|(guid, slot)| (guid.clone(), slot.machine.acknowledged()))
            .collect()
    }

    /// The pass of `rep::bulk` over the records of the cell: what containers want then, and
    /// records of instances and tasks without one.
    pub(crate) fn compare(
        &mut self,
        before: &BTreeMap<String, bool>,
        rows: &[ActualLrp],
        tasks: &[models::Task],
    ) -> (Vec<CellIntent>, Vec<ActualLrp>, Vec<String>) {
        let mut wanted = Vec::new();
        let running = |task: &&models::Task| task.state() == task::State::Running;
        for (guid, _) in before.iter().filter(|(_, known)| **known) {
            let Some(slot) = self.containers.get(guid) else {
                continue;
            };
            let event = match (&slot.work, slot.machine.phase()) {
                (Work::Lrp(_), Phase::Running) => {
                    let says = |row: &ActualLrp| row.state == "RUNNING" && instance(row) == guid;
                    (!rows.iter().any(says)).then_some(Event::Refresh)
                }
                (Work::Task(_), Phase::Creating | Phase::Created | Phase::Running) => {
                    let mut known = tasks.iter().filter(running);
                    (!known.any(|task| task.task_guid == *guid)).then_some(Event::Stop)
                }
                _ => None,
            };
            if let Some(event) = event {
                wanted.extend(self.feed(guid, event));
            }
        }
        let has = |guid: &str| before.contains_key(guid) || self.containers.contains_key(guid);
        let lost = |row: &&ActualLrp| !has(instance(row));
        let rows = rows.iter().filter(lost).cloned().collect();
        let tasks = tasks
            .iter()
            .filter(running)
            .map(|task| task.task_guid.clone());
        (wanted, rows, tasks.filter(|guid| !has(guid)).collect())
    }
}

fn instance(row: &ActualLrp) -> &str {
    let key = row.actual_lrp_instance_key.as_ref();
    key.map_or("", |key| &key.instance_guid)
}

/// What a call of a container is at the BBS.
pub(crate) fn command(cell: &str, guid: &str, work: &Work, call: &Call) -> Option<super::Command> {
    use super::Command as Bbs;
    use models::*;
    let instance = Some(ActualLrpInstanceKey {
        instance_guid: guid.into(),
        cell_id: cell.into(),
    });
    let (process_guid, index, key) = match work {
        Work::Lrp(lrp) => {
            let key = ActualLrpKey {
                process_guid: lrp.process_guid.clone(),
                index: lrp.index,
                domain: lrp.domain.clone(),
            };
            (lrp.process_guid.clone(), lrp.index, Some(key))
        }
        Work::Task(_) => (String::new(), 0, None),
    };
    let task_guid = guid.to_owned();
    Some(match call.clone() {
        Call::ClaimLrp => Bbs::Claim(ClaimActualLrpRequest {
            process_guid,
            index,
            actual_lrp_instance_key: instance,
        }),
        Call::StartLrp => Bbs::Start(Box::new(StartActualLrpRequest {
            actual_lrp_key: key,
            actual_lrp_instance_key: instance,
            ..StartActualLrpRequest::default()
        })),
        Call::RemoveLrp => Bbs::Remove(RemoveActualLrpRequest {
            process_guid,
            index,
            actual_lrp_instance_key: instance,
        }),
        Call::CrashLrp(error_message) => Bbs::Crash(CrashActualLrpRequest {
            actual_lrp_key: key,
            actual_lrp_instance_key: instance,
            error_message,
        }),
        Call::StartTask => Bbs::StartTask(StartTaskRequest {
            task_guid,
            cell_id: cell.into(),
        }),
        Call::CompleteTask(end) => Bbs::CompleteTask(CompleteTaskRequest {
            task_guid,
            cell_id: cell.into(),
            failed: end.failed,
            failure_reason: end.reason,
            result: end.result,
        }),
        Call::RejectTask(rejection_reason) => Bbs::RejectTask(RejectTaskRequest {
            task_guid,
            rejection_reason,
        }),
        // Simulated cells are not evacuated.
        Call::Fetch
        | Call::EvacuateClaimed
        | Call::EvacuateRunning
        | Call::EvacuateStopped
        | Call::EvacuateCrashed(_) => return None,
    })
}
