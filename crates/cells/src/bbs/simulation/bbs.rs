//! The BBS around its core: what goes out, and when.

use std::collections::HashSet;
use std::sync::Arc;

use diego::auction::Lrp;
use diego::models::actual_lrp::Presence;
use diego::models::task::State as TaskState;
use diego::models::{self, ActualLrp, Error};

use super::Command;
use super::cell::Work;
use super::core::{Core, SECOND};
use super::event::Event as Happens;
use super::world::World;
use crate::bbs::apply::{Reply, Work as Outgoing, placement};
use crate::bbs::convergence::{Cells, Key};
use crate::bbs::model::convergence::Cell;
use crate::bbs::model::desired;
use crate::bbs::model::slot::{Phase, Row};

/// Something that happens inside of a BBS; one that has died since does not notice.
pub(crate) enum Event {
    Pass(u64),
    Act {
        life: u64,
        keys: Vec<Key>,
        cells: Cells,
    },
    Sweep(u64),
    StopAgain(u64),
    Resume(u64),
    Place {
        life: u64,
        process: Arc<str>,
        indices: Vec<i32>,
    },
    PlaceTask {
        life: u64,
        guid: Arc<str>,
    },
    Taken {
        life: u64,
        guid: Arc<str>,
    },
}

pub(crate) struct Bbs {
    pub(crate) core: Core,
    pub(crate) up: bool,
    /// Its passes act on what they find.
    pub(crate) converges: bool,
    life: u64,
    /// Cells that were lost since the start; `None` once there was a whole pass.
    lost: Option<HashSet<String>>,
}

impl Bbs {
    pub(crate) fn new() -> Self {
        let mut core = Core::new();
        core.own_guids = true;
        Self {
            core,
            up: false,
            converges: true,
            life: 0,
            lost: None,
        }
    }

    /// The records of a cell.
    pub(crate) fn records(&self, cell: &str) -> (Vec<ActualLrp>, Vec<models::Task>) {
        let state = &self.core.state;
        let Some(on) = state.on_cell(cell) else {
            return Default::default();
        };
        let row =
            |(guid, place): &(Arc<str>, _)| state.processes.get(guid)?.row(*place)?.decode().ok();
        let tasks = on
            .tasks
            .iter()
            .filter_map(|guid| state.tasks.get(guid)?.decode().ok());
        (on.rows.iter().filter_map(row).collect(), tasks.collect())
    }
}

impl World {
    /// Applies a command and does what follows from it.
    pub(crate) fn command(&mut self, command: Command) -> Result<Reply, Error> {
        let (answer, work) = self.bbs.core.apply(command, self.now);
        self.go_out(work);
        answer
    }

    fn go_out(&mut self, work: Vec<Outgoing>) {
        let life = self.bbs.life;
        for work in work {
            match work {
                Outgoing::PlaceLrp {
                    process_guid: process,
                    indices,
                    ..
                } => {
                    self.after(
                        1,
                        Happens::Bbs(Event::Place {
                            life,
                            process,
                            indices,
                        }),
                    );
                }
                Outgoing::PlaceTask(guid) => {
                    self.after(1, Happens::Bbs(Event::PlaceTask { life, guid }));
                }
                Outgoing::Callback(guid) => self.call_back(guid),
                Outgoing::CancelTask {
                    task_guid, cell, ..
                } => {
                    self.stop(&cell, task_guid.to_string());
                }
                Outgoing::StopInstances { process_guid, .. } => self.stop_all(&process_guid, false),
                Outgoing::UpdateInstances { .. } => {}
            }
        }
    }

    fn stop(&mut self, cell: &str, guid: String) {
        if let Some(cell) = self.cells.iter().position(|one| one.id == *cell) {
            self.send(Happens::Stop { cell, guid });
        }
    }

    /// As `outbound::instances`: those that are to end are stopped; `again`: those whose cell is
    /// not back by now go.
    fn stop_all(&mut self, process: &str, again: bool) {
        let process = self.bbs.core.state.processes.get(process);
        let Some((process, from)) = process.and_then(|one| Some((one, one.stop_from?))) else {
            return;
        };
        let rows = process.rows_from(from).iter();
        let rows = rows.filter(|row| row.presence != i32::from(Presence::Evacuating));
        let rows: Vec<ActualLrp> = rows.filter_map(|row| row.decode().ok()).collect();
        let cells = self.bbs.core.cells(self.now);
        for row in rows {
            let (key, instance) = (row.key().clone(), row.instance().clone());
            if cells.status(&instance.cell_id) == Cell::Present {
                self.stop(&instance.cell_id, instance.instance_guid);
            } else if again {
                let remove = models::RemoveActualLrpRequest {
                    process_guid: key.process_guid,
                    index: key.index,
                    actual_lrp_instance_key: Some(instance),
                };
                // One that is gone meanwhile is no harm.
                let _ = self.command(Command::Remove(remove));
            }
        }
    }

    /// A result is claimed, sent, and deleted when its owner has taken it.
    fn call_back(&mut self, guid: Arc<str>) {
        let life = self.bbs.life;
        let claimed = self.command(Command::ResolveTask(guid.to_string())).is_ok();
        let task = self.bbs.core.state.tasks.get(&guid);
        let task = task.and_then(|task| task.decode().ok());
        if let Some(task) = task.filter(|_| claimed) {
            if self.chance(0.1) {
                return self.client.miss(&task);
            }
            self.client.receive_result(&task);
            if !self.chance(0.1) {
                let way = self.way();
                self.after(way, Happens::Bbs(Event::Taken { life, guid }));
            }
        }
    }

    pub(crate) fn kill_bbs(&mut self) {
        self.bbs.up = false;
        self.bbs.life += 1;
    }

    pub(crate) fn boot_bbs(&mut self) {
        self.bbs.up = true;
        self.bbs.core.restart(self.now);
        self.bbs.lost = Some(HashSet::new());
        let life = self.bbs.life;
        self.after(30 * SECOND, Happens::Bbs(Event::Pass(life)));
        self.after(30 * SECOND, Happens::Bbs(Event::StopAgain(life)));
        self.after(15 * SECOND, Happens::Bbs(Event::Resume(life)));
        self.after(SECOND, Happens::Bbs(Event::Sweep(life)));
    }

    fn is_alive(&self, life: u64) -> bool {
        self.bbs.up && self.bbs.life == life
    }

    pub(crate) fn happen_bbs(&mut self, event: Event) {
        match event {
            Event::Pass(life) if self.is_alive(life) => {
                self.bbs.lost = None;
                self.pass(life);
                self.after(30 * SECOND, Happens::Bbs(Event::Pass(life)));
            }
            Event::Act { life, keys, cells } if self.is_alive(life) => {
                let work = self.bbs.core.converge(keys, cells, self.now);
                self.go_out(work);
            }
            Event::Sweep(life) if self.is_alive(life) => {
                let gone = self.bbs.core.sweep(self.now);
                if !gone.is_empty() {
                    self.lose(life, gone);
                }
                self.after(SECOND, Happens::Bbs(Event::Sweep(life)));
            }
            Event::StopAgain(life) if self.is_alive(life) => {
                let stopping: Vec<_> = self.bbs.core.state.stopping().cloned().collect();
                stopping.iter().for_each(|guid| self.stop_all(guid, true));
                self.after(30 * SECOND, Happens::Bbs(Event::StopAgain(life)));
            }
            Event::Resume(life) if self.is_alive(life) => self.resume(),
            Event::Place {
                life,
                process,
                indices,
            } if self.is_alive(life) => {
                self.ask_for_cells(life, process, indices);
            }
            Event::PlaceTask { life, guid } if self.is_alive(life) => {
                let task = self.bbs.core.state.tasks.get(&guid);
                let task = task.filter(|task| task.state == TaskState::Pending);
                let task = task.and_then(|task| task.decode().ok());
                if let Some(task) = task {
                    let definition = task.task_definition.clone().unwrap_or_default();
                    let work = vec![Work::Task(placement(&task, &definition))];
                    let again = Event::PlaceTask { life, guid };
                    self.request_auction(work, again);
                }
            }
            Event::Taken { life, guid } if self.is_alive(life) => {
                // It may have been offered again meanwhile.
                let _ = self.command(Command::DeleteTask(guid.to_string()));
            }
            _ => {}
        }
    }

    /// Cells were lost: a pass, before the first whole one over what was on them alone. In the
    /// simulation all have the time to live that is waited for after a start.
    fn lose(&mut self, life: u64, gone: Vec<String>) {
        let Some(mut lost) = self.bbs.lost.take() else {
            return self.pass(life);
        };
        lost.extend(gone);
        let cells = self.bbs.core.cells(self.now);
        lost.retain(|cell| cells.is_absent(cell));
        let cells = cells.losing(lost.clone());
        let keys = self.bbs.core.losses(&lost, &cells, self.now);
        self.bbs.lost = Some(lost);
        self.act(life, keys, cells);
    }

    /// A whole pass.
    fn pass(&mut self, life: u64) {
        let cells = self.bbs.core.cells(self.now);
        let _ = self.command(Command::PruneDomains);
        let keys = self.bbs.core.pass(&cells, self.now);
        self.act(life, keys, cells);
    }

    /// The commands of a pass come to the writer a little later and among others.
    fn act(&mut self, life: u64, mut keys: Vec<Key>, cells: Cells) {
        if !self.bbs.converges {
            keys.clear();
        }
        for keys in keys.chunks(3) {
            let (keys, cells) = (keys.to_vec(), cells.clone());
            let way = self.way();
            self.after(way, Happens::Bbs(Event::Act { life, keys, cells }));
        }
    }

    /// As `outbound::resume`.
    fn resume(&mut self) {
        let state = &self.bbs.core.state;
        let mut work = Vec::new();
        for (guid, task) in &state.tasks {
            match task.state {
                TaskState::Pending => work.push(Outgoing::PlaceTask(Arc::clone(guid))),
                TaskState::Completed => work.push(Outgoing::Callback(Arc::clone(guid))),
                _ => {}
            }
        }
        for (guid, process) in &state.processes {
            let rows = process.rows().filter(|row| row.phase == Phase::Unclaimed);
            let indices: Vec<i32> = rows.map(|row| row.index).collect();
            if !indices.is_empty() {
                work.push(Outgoing::PlaceLrp {
                    process_guid: Arc::clone(guid),
                    indices,
                    trace: "".into(),
                });
            }
        }
        // The order of maps is not the seed's.
        work.sort_by_key(|work| format!("{work:?}"));
        self.go_out(work);
    }

    fn ask_for_cells(&mut self, life: u64, process: Arc<str>, indices: Vec<i32>) {
        let state = &self.bbs.core.state;
        let Some(record) = state.processes.get(&process) else {
            return;
        };
        let Some(info) = record
            .desired
            .as_ref()
            .and_then(|desired| desired.info().ok())
        else {
            return;
        };
        let waits = |index: &i32| {
            let row = record.row((*index, Presence::Ordinary.into()));
            row.is_some_and(|row| row.phase == Phase::Unclaimed)
        };
        let waiting: Vec<i32> = indices.iter().copied().filter(waits).collect();
        let request = desired::auction(&info, waiting);
        let lrp = |index: &i32| {
            Work::Lrp(Lrp {
                process_guid: request.process_guid.clone(),
                index: *index,
                domain: request.domain.clone(),
                placement: request.placement.clone(),
                resource: request.resource,
                ..Lrp::default()
            })
        };
        let work = request.indices.iter().map(lrp).collect();
        self.request_auction(
            work,
            Event::Place {
                life,
                process,
                indices,
            },
        );
    }

    /// The auctioneer takes it, or it is requested again.
    fn request_auction(&mut self, work: Vec<Work>, again: Event) {
        if work.is_empty() {
            return;
        }
        if self.auctioneer_up {
            self.send(Happens::Auction(work));
        } else {
            self.after(SECOND, Happens::Bbs(again));
        }
    }
}
