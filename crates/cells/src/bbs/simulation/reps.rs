//! The cells in their world: what their containers want, and what they are told.

use std::collections::BTreeMap;

use diego::models::{self, ActualLrp};
use rand::RngExt as _;

use super::cell::{self, CellIntent, Work};
use super::core::SECOND;
use super::event::Event;
use super::world::{MS, TIMEOUT, World};
use crate::rep::container::{Answer, Call, Command, Completion, Event as Happens, Kind};

impl World {
    pub(super) fn call(&mut self, from: (usize, u64), guid: String, call: u64, what: &Call) {
        if !self.bbs.up || !self.reaches(from) {
            return;
        }
        let cell = &self.cells[from.0];
        let Some(work) = cell.containers.get(&guid).map(|slot| slot.work.clone()) else {
            return;
        };
        let answer = match cell::command(&cell.id.clone(), &guid, &work, what) {
            Some(command) => match self.command(command) {
                Ok(_) => Answer::Done,
                Err(_) => Answer::Refused,
            },
            None => self.fetch(&work),
        };
        self.doubled(|| Event::Answer {
            to: from,
            guid: guid.clone(),
            call,
            answer,
        });
    }

    fn fetch(&self, work: &Work) -> Answer {
        let state = &self.bbs.core.state;
        let known = match work {
            Work::Lrp(lrp) => {
                let process = state.processes.get(&*lrp.process_guid);
                process.is_some_and(|process| process.desired.is_some())
            }
            Work::Task(task) => state.tasks.contains_key(&*task.task_guid),
        };
        if known { Answer::Done } else { Answer::Refused }
    }

    /// Carries out what containers want.
    pub(super) fn perform(&mut self, at: (usize, u64), wanted: Vec<CellIntent>) {
        for CellIntent {
            guid,
            kind,
            command,
            call,
        } in wanted
        {
            let container = |event| Event::Container {
                at,
                guid: guid.clone(),
                event,
            };
            let delay = self.rng.random_range(10 * MS..3 * SECOND);
            match command {
                Command::Call(what) => {
                    self.doubled(|| Event::Call {
                        from: at,
                        guid: guid.clone(),
                        call,
                        what: what.clone(),
                    });
                    let failed = Answer::Failed;
                    self.after(
                        TIMEOUT,
                        Event::Answer {
                            to: at,
                            guid,
                            call,
                            answer: failed,
                        },
                    );
                }
                Command::RetryAfter(failures) => {
                    let pause = (200 * MS) << failures.saturating_sub(1).min(7);
                    self.after(pause, container(Happens::Retry));
                }
                Command::Create => {
                    let result = match self.chance(0.05) {
                        true => Err("no room".to_owned()),
                        false => Ok(()),
                    };
                    self.after(delay, container(Happens::Created(result)));
                }
                Command::Run => {
                    self.after(delay, container(Happens::Started));
                    let failed = self.chance(0.15);
                    if kind == Kind::Task || failed {
                        let end = Completion {
                            failed,
                            reason: if failed {
                                "ended".into()
                            } else {
                                String::new()
                            },
                            ..Completion::default()
                        };
                        let runs = self.rng.random_range(SECOND..40 * SECOND);
                        self.after(delay + runs, container(Happens::Ended(end)));
                    }
                }
                Command::Kill => {
                    self.after(delay, container(Happens::Ended(Completion::default())));
                }
                Command::Delete => {}
            }
        }
    }

    pub(super) fn beat(&mut self, of: (usize, u64)) {
        if self.cell(of).is_some() {
            if !self.cut_off[of.0] {
                self.send(Event::Heartbeat { from: of });
            }
            self.after(5 * SECOND, Event::Beat { cell: of });
        }
    }

    pub(super) fn bulk(&mut self, of: (usize, u64)) {
        let Some(cell) = self.cell(of) else { return };
        let (held, id, before) = (cell.held, cell.id.clone(), cell.acknowledged());
        self.after(30 * SECOND, Event::Bulk { cell: of });
        if held && self.bbs.up && self.reaches(of) && !self.chance(0.05) {
            let (rows, tasks) = self.bbs.records(&id);
            let way = self.way();
            self.after(
                way,
                Event::Records {
                    to: of,
                    before,
                    rows,
                    tasks,
                },
            );
        }
    }

    pub(super) fn compare(
        &mut self,
        to: (usize, u64),
        before: &BTreeMap<String, bool>,
        rows: &[ActualLrp],
        tasks: &[models::Task],
    ) {
        let reaches = self.reaches(to);
        let Some(cell) = self.cell(to).filter(|cell| reaches && cell.held) else {
            return;
        };
        let id = cell.id.clone();
        let (wanted, lost, unknown) = cell.compare(before, rows, tasks);
        self.perform(to, wanted);
        for row in lost {
            let key = row.actual_lrp_key.unwrap_or_default();
            let remove = models::RemoveActualLrpRequest {
                process_guid: key.process_guid,
                index: key.index,
                actual_lrp_instance_key: row.actual_lrp_instance_key,
            };
            self.send(Event::ToBbs(Box::new(super::Command::Remove(remove))));
        }
        for task_guid in unknown {
            let complete = models::CompleteTaskRequest {
                task_guid,
                cell_id: id.clone(),
                failed: true,
                failure_reason: "task container does not exist".into(),
                ..models::CompleteTaskRequest::default()
            };
            self.send(Event::ToBbs(Box::new(super::Command::CompleteTask(
                complete,
            ))));
        }
    }

    /// The cell takes work or refuses it; the auctioneer may not learn which.
    pub(super) fn accept(&mut self, number: usize, work: Work) {
        let of = (number, self.cells[number].incarnation);
        let taken = self
            .reaches(of)
            .then(|| self.cells[number].accept(work.clone()));
        if let Some(Some(wanted)) = taken {
            self.perform(of, wanted);
            if !self.chance(0.05) {
                return;
            }
        }
        self.unplaced(work, "insufficient resources");
    }
}
