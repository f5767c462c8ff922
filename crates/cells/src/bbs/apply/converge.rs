//! What convergence does to records.

use std::collections::BTreeMap;
use std::sync::Arc;

use diego::models::{ActualLrpKey, Error};

use super::{Change, Reply, Transaction, Work, not_found, untraced};
use crate::bbs::convergence::{Cells, ConvergenceContext, Judge, Key};
use crate::bbs::model::actual;
use crate::bbs::model::convergence::{Action, ConvergenceAges};
use crate::bbs::model::slot::{CLAIMED, RUNNING, Slot};
use crate::bbs::model::suspect;
use crate::bbs::model::task::{LOST, UNSTARTED};

/// Records that something may have to be done about.
#[derive(Debug)]
pub(crate) struct Converge {
    pub(crate) keys: Vec<Key>,
    pub(crate) cells: Arc<Cells>,
    pub(crate) ages: ConvergenceAges,
}

/// Indices of processes that want a cell.
type Places = BTreeMap<Arc<str>, Vec<i32>>;

impl Transaction<'_> {
    /// Judges the records as they are now, and does what is called for. What cannot be done
    /// about one keeps nobody from the others.
    pub(super) fn converge(&mut self, request: &Converge) -> Reply {
        let (mut judge, mut places) = (Judge::default(), Places::new());
        let mut done = BTreeMap::new();
        for key in &request.keys {
            let by = ConvergenceContext {
                cells: &request.cells,
                ages: &request.ages,
                now: self.context.now,
            };
            let (verdict, _) = judge.judge(&self.batch, key, by);
            for action in verdict.actions {
                let did = match key {
                    Key::Task(guid) => self.converge_task(guid, action),
                    Key::Index(guid, number) => {
                        self.converge_index(guid, *number, action, &mut places)
                    }
                };
                if did.is_ok() {
                    *done.entry(action).or_insert(0) += 1;
                }
            }
        }
        for (guid, indices) in places {
            self.place(&guid, indices, &untraced());
        }
        Reply::Converged(done)
    }

    fn converge_index(
        &mut self,
        guid: &Arc<str>,
        number: i32,
        action: Action,
        places: &mut Places,
    ) -> Result<(), Error> {
        let before = self.slot(guid, number)?;
        let mut after = before.clone();
        let now = self.context.now;
        let mut placed = false;
        match action {
            Action::RemoveEvacuating => after.evacuating = None,
            Action::RemoveSuspect => after.suspect = None,
            Action::Remove => after.ordinary = None,
            Action::Promote => suspect::promote(&mut after)?,
            Action::Unclaim => actual::unclaim(&mut after, now)?,
            Action::Place => placed = true,
            Action::Restart => {
                actual::unclaim(&mut after, now)?;
                placed = true;
            }
            Action::Suspect => {
                suspect::suspect(&mut after, &mut self.context)?;
                placed = true;
            }
            Action::Create => {
                let desired = self.batch.desired(guid).ok_or_else(not_found)?;
                let key = ActualLrpKey {
                    process_guid: guid.to_string(),
                    index: number,
                    domain: desired.domain.to_string(),
                };
                let row = actual::unclaimed(key, &mut self.context);
                after.ordinary = Some(Arc::new(row));
                placed = true;
            }
            Action::Update => self.work.push(Work::UpdateInstances {
                process_guid: Arc::clone(guid),
                routes: true,
                tags: true,
                drifted: true,
                trace: untraced(),
            }),
            Action::Stop => self.end_surplus(guid)?,
            Action::PlaceTask
            | Action::FailUnstarted
            | Action::FailLost
            | Action::Unresolve
            | Action::CallBack
            | Action::Forget => {}
        }
        self.put_slot(guid, number, before, after, false, &untraced());
        if placed {
            places.entry(Arc::clone(guid)).or_default().push(number);
        }
        Ok(())
    }

    /// Has the cells end what nobody wants of a process.
    fn end_surplus(&mut self, guid: &str) -> Result<(), Error> {
        let wanted = self.batch.desired(guid).map_or(0, |one| one.instances);
        if self
            .batch
            .stop_from(guid)
            .is_some_and(|from| from <= wanted)
        {
            // For an index before this one.
            return Ok(());
        }
        if self.watched.lrps {
            for index in self.batch.indices(guid, wanted) {
                self.announce_removal(guid, index)?;
            }
        }
        self.stop_indices(guid, wanted, &untraced())
    }

    /// Subscribers hear that the instance is gone when it is asked to end, and once more when
    /// its cell says so: Diego's routers count on the first (bbs
    /// `controllers/lrp_convergence_controller.go`).
    fn announce_removal(&mut self, guid: &str, index: i32) -> Result<(), Error> {
        let before = self.slot(guid, index)?;
        let row = before.ordinary.as_ref();
        if row.is_some_and(|row| matches!(row.state.as_str(), CLAIMED | RUNNING)) {
            let after = Slot {
                ordinary: None,
                ..before.clone()
            };
            self.changes.push(Change::Slot {
                before,
                after,
                crashed: false,
                trace: untraced(),
            });
        }
        Ok(())
    }

    fn converge_task(&mut self, guid: &Arc<str>, action: Action) -> Result<(), Error> {
        match action {
            Action::PlaceTask => {
                self.work.push(Work::PlaceTask(Arc::clone(guid)));
                Ok(())
            }
            Action::FailUnstarted => self.fail_task(guid, UNSTARTED).map(drop),
            Action::FailLost => self.fail_task(guid, LOST).map(drop),
            Action::Unresolve => self.unresolve_task(guid).map(drop),
            Action::CallBack => self.task(guid).map(|task| self.call_back(&task)),
            Action::Forget => self.forget_task(guid),
            _ => Ok(()),
        }
    }
}
