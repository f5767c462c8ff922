//! What cells are told about their instances and tasks: walks over the records of a process.

use std::sync::Arc;
use std::time::{Duration, Instant};

use commit::View;
use diego::models::actual_lrp::Presence;
use diego::models::{ActualLrp, DesiredLrp, RemoveActualLrpRequest};
use telemetry::{Fields, Logger};
use tokio::task::JoinSet;

use super::super::apply::Command;
use super::super::ledger::Commands;
use super::super::model::desired;
use super::super::model::slot::{CLAIMED, RUNNING, Row};
use super::super::state::{Actual, Place, Process, State};
use super::rep::{RepError, Reps};
use super::waiting::Due;
use super::{Outbound, Stop, Update};
use crate::pool::Pool;

/// Records that are looked at in one go: the writer waits meanwhile.
const CHUNK: usize = 256;

#[derive(Clone)]
pub(super) struct Calls {
    pub(super) reps: Arc<Reps>,
    pub(super) outbound: Arc<Outbound>,
    pub(super) state: View<State>,
    pub(super) commands: Commands,
    pub(super) logger: Logger,
}

/// The last rows before a place, from index `from` on, the last one first. Those of
/// evacuating instances are left out: their cells end them.
fn rows_before(process: &Process, from: i32, before: Option<Place>) -> Vec<Actual> {
    let rows = process.rows_from(from);
    let end = before.map_or(rows.len(), |place| {
        rows.partition_point(|row| row.place() < place)
    });
    let last = rows[..end].iter().rev();
    let last = last.filter(|row| row.presence != i32::from(Presence::Evacuating));
    last.take(CHUNK).cloned().collect()
}

impl Calls {
    /// Stops instances as they are to end.
    pub(super) async fn stop(self) {
        let mut under_way = JoinSet::new();
        loop {
            for Due {
                guid,
                value: stop,
                since,
            } in self.outbound.stops.take(1).await
            {
                let (stop, mut before) = (Arc::new(stop), None);
                // From the last on: then what is left of the process's rows needs no move.
                while let Some(rows) = self.to_stop(&guid, before) {
                    before = rows.last().map(Actual::place);
                    for row in rows {
                        let Ok(row) = row.decode() else { continue };
                        let (calls, stop) = (self.clone(), Arc::clone(&stop));
                        let call = async move { calls.stop_one(row, &stop).await };
                        let pool = &self.outbound.pools.deletes;
                        spawn(&mut under_way, pool, since, call).await;
                    }
                }
            }
        }
    }

    fn to_stop(&self, guid: &str, before: Option<Place>) -> Option<Vec<Actual>> {
        let state = self.state.read();
        let process = state.processes.get(guid)?;
        let rows = rows_before(process, process.stop_from?, before);
        (!rows.is_empty()).then_some(rows)
    }

    async fn stop_one(&self, row: ActualLrp, stop: &Stop) {
        let guid = &row.key().process_guid;
        let stopped = match row.instance().cell_id.as_str() {
            "" => Err(RepError::NoCell(String::new())),
            _ => self.reps.stop(guid, row.instance(), &stop.trace).await,
        };
        let cause = match stopped {
            Ok(()) => return,
            // It has had time to come back, and its instance to end.
            Err(RepError::NoCell(_)) if stop.again => {
                let remove = Command::Remove(RemoveActualLrpRequest {
                    process_guid: guid.clone(),
                    index: row.key().index,
                    actual_lrp_instance_key: row.actual_lrp_instance_key.clone(),
                });
                match self.commands.run(remove).await {
                    Ok(_) => return self.logger.info("removed-without-cell", self.fields(&row)),
                    Err(error) => error.message,
                }
            }
            Err(error) => error.to_string(),
        };
        self.logger
            .error("failed-to-stop", &cause, self.fields(&row));
    }

    fn fields(&self, row: &ActualLrp) -> Fields {
        Fields::new()
            .and("process-guid", &row.key().process_guid)
            .and("index", row.key().index)
            .and("instance-guid", &row.instance().instance_guid)
            .and("cell-id", &row.instance().cell_id)
    }

    /// Tells instances of new routes and tags.
    pub(super) async fn update(self) {
        let mut under_way = JoinSet::new();
        loop {
            for Due {
                guid,
                value: update,
                since,
            } in self.outbound.updates.take(1).await
            {
                let Some(desired) = self.desired(&guid) else {
                    continue;
                };
                let (desired, update) = (Arc::new(desired), Arc::new(update));
                let mut before = None;
                while let Some(rows) = self.to_update(&guid, before) {
                    before = rows.last().map(Actual::place);
                    for row in rows.iter().filter(|row| !row.cell.is_empty()) {
                        let Some(row) = row
                            .decode()
                            .ok()
                            .filter(|row| is_of(row, &desired, &update))
                        else {
                            continue;
                        };
                        let (calls, desired, update) =
                            (self.clone(), Arc::clone(&desired), Arc::clone(&update));
                        let call = async move { calls.update_one(row, &desired, &update).await };
                        let pool = &self.outbound.pools.updates;
                        spawn(&mut under_way, pool, since, call).await;
                    }
                }
            }
        }
    }

    fn desired(&self, guid: &str) -> Option<DesiredLrp> {
        let record = self.state.read().processes.get(guid)?.desired.clone();
        record?.decode().ok()
    }

    fn to_update(&self, guid: &str, before: Option<Place>) -> Option<Vec<Actual>> {
        let state = self.state.read();
        let rows = rows_before(state.processes.get(guid)?, 0, before);
        (!rows.is_empty()).then_some(rows)
    }

    async fn update_one(&self, row: ActualLrp, desired: &DesiredLrp, update: &Update) {
        let routes = update.routes.then(|| desired::hostnames(desired)).flatten();
        let (key, instance) = (row.key(), row.instance());
        let given = &desired.metric_tags;
        let tags = || desired::metric_tags(given, key.index, &instance.instance_guid);
        let tags = update.tags.then(tags);
        let told = self.reps.update(
            key,
            instance,
            routes.as_deref(),
            tags.as_ref(),
            &update.trace,
        );
        if let Err(cause) = told.await {
            // Convergence finds the difference, if it lasts.
            self.logger
                .error("failed-to-update", &cause, self.fields(&row));
        }
    }

    /// Cancels tasks on their cells. Where that fails the cell finds out by itself, in its
    /// next pass over the records.
    pub(super) async fn cancel(self) {
        let mut under_way = JoinSet::new();
        loop {
            for Due {
                guid,
                value: cancel,
                since,
            } in self.outbound.cancels.take(1).await
            {
                let calls = self.clone();
                let call = async move {
                    let told = calls.reps.cancel(&guid, &cancel.cell, &cancel.trace).await;
                    if let Err(cause) = told {
                        let fields = Fields::new().and("task-guid", guid);
                        let fields = fields.and("cell-id", cancel.cell);
                        calls.logger.error("failed-to-cancel", &cause, fields);
                    }
                };
                let pool = &self.outbound.pools.deletes;
                spawn(&mut under_way, pool, since, call).await;
            }
        }
    }

    /// Asks again for what has not come about.
    pub(super) async fn again(self, after: Duration) {
        loop {
            tokio::time::sleep(after).await;
            if self.outbound.stops.is_idle() {
                let stopping: Vec<_> = self.state.read().stopping().cloned().collect();
                for guid in stopping {
                    self.outbound.stop(guid, "".into(), true);
                }
            }
        }
    }
}

/// Makes a call once there is a worker for it.
async fn spawn(
    under_way: &mut JoinSet<()>,
    pool: &Pool,
    since: Instant,
    call: impl Future<Output = ()> + Send + 'static,
) {
    let worker = pool.worker(since).await;
    while under_way.try_join_next().is_some() {}
    under_way.spawn(net::boxed(async move {
        call.await;
        drop(worker);
    }));
}

/// Is the instance to be told of the update?
fn is_of(row: &ActualLrp, desired: &DesiredLrp, update: &Update) -> bool {
    let index = row.key().index;
    if index >= desired.instances
        || !matches!(row.state.as_str(), CLAIMED | RUNNING)
        || row.presence() != Presence::Ordinary
    {
        return false;
    }
    if !update.drifted {
        return true;
    }
    let names = row.actual_lrp_internal_routes.iter();
    let names: Vec<&str> = names.map(|route| route.hostname.as_str()).collect();
    let tags = desired::metric_tags(&desired.metric_tags, index, &row.instance().instance_guid);
    // One that does not run yet learns what is desired when it starts.
    let wanted = desired::hostnames(desired);
    row.state == RUNNING
        && (wanted.is_some_and(|wanted| wanted != names) || row.metric_tags != tags)
}
