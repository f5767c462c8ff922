//! Rounds: ask the cells, place what waits, hand it out, report what failed.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant as StdInstant};

use diego::auction::{CellState, Lrp, Task, Work};
use diego::{Bbs, models, path};
use http::{HeaderMap, StatusCode, Uri};
use net::{Client, ClientError, Shutdown};
use serde::de::DeserializeOwned;
use telemetry::{Fields, Logger};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

use super::Config;
use super::metrics::Metrics;
use super::placement::{self, CellWork, Problem, REFUSED, Solution};
use super::queue::{Batch, Queue};
use crate::pool::Pool;

/// Fetches of all states within one round, while no cell answers.
const STATE_FETCHES: u32 = 4;
/// Pause before the cells are asked for again when the BBS did not answer.
const CELLS_PAUSE: Duration = Duration::from_secs(1);

pub(super) struct Auctioneer {
    pub(super) config: Config,
    pub(super) bbs: Bbs,
    pub(super) reps: Client,
    pub(super) queue: Arc<Queue>,
    pub(super) logger: Logger,
    pub(super) workers: Pool,
    pub(super) metrics: Arc<Metrics>,
}

/// Cells that answered, and where to reach them.
#[derive(Default)]
struct Cells {
    states: Vec<CellState>,
    addresses: HashMap<String, String>,
}

impl Auctioneer {
    /// Runs rounds until `shutdown`. What waits then is lost here and asked for
    /// again by the BBS.
    pub(super) async fn run(self, mut shutdown: Shutdown) {
        tokio::select! {
            () = self.rounds() => {}
            () = shutdown.requested() => {}
        }
    }

    async fn rounds(&self) {
        for session in 1_u64.. {
            self.queue.work().await;
            let began = Instant::now();
            let logger = self.logger.with("session", session.to_string());
            self.round(&logger).await;
            self.metrics.rounds.add(1);
            self.metrics.round_time.add(began.elapsed());
            sleep_until(began + self.config.round_interval).await;
        }
    }

    async fn round(&self, logger: &Logger) {
        logger.info("fetching-cell-reps", Fields::new());
        let began = Instant::now();
        let cells = self.cells(logger).await;
        self.metrics.state_time.add(began.elapsed());
        // Drained only now: what came while states were fetched is placed as well.
        let Batch { lrps, tasks } = self.queue.drain();
        if lrps.is_empty() && tasks.is_empty() {
            return;
        }
        logger.info(
            "scheduling",
            Fields::new()
                .and("lrp-start-auctions", lrps.len())
                .and("tasks", tasks.len()),
        );
        let (all_lrps, all_tasks) = (lrps.len(), tasks.len());
        let Solution {
            work,
            mut failed_lrps,
            mut failed_tasks,
        } = placement::solve(Problem {
            cells: cells.states,
            lrps,
            tasks,
            options: self.config.placement,
        });
        let refused = self.commit(work, &cells.addresses, logger).await;
        failed_lrps.extend(refused.lrps.into_iter().map(|lrp| (lrp, REFUSED.into())));
        failed_tasks.extend(refused.tasks.into_iter().map(|task| (task, REFUSED.into())));
        let placed_lrps = all_lrps.saturating_sub(failed_lrps.len());
        let placed_tasks = all_tasks.saturating_sub(failed_tasks.len());
        self.metrics.placed.lrps.add(placed_lrps);
        self.metrics.placed.tasks.add(placed_tasks);
        self.metrics.failed.lrps.add(failed_lrps.len());
        self.metrics.failed.tasks.add(failed_tasks.len());
        logger.info(
            "scheduled",
            Fields::new()
                .and("successful-lrp-start-auctions", placed_lrps)
                .and("successful-task-auctions", placed_tasks)
                .and("failed-lrp-start-auctions", failed_lrps.len())
                .and("failed-task-auctions", failed_tasks.len()),
        );
        self.report(failed_lrps, failed_tasks, logger).await;
    }

    /// States of all cells that can take work; none only after several tries.
    async fn cells(&self, logger: &Logger) -> Cells {
        let mut cells = Cells::default();
        for _ in 0..STATE_FETCHES {
            let presences = self.presences(logger).await;
            cells = self.states(presences, logger).await;
            if !cells.states.is_empty() {
                break;
            }
        }
        cells
    }

    async fn presences(&self, logger: &Logger) -> Vec<models::CellPresence> {
        loop {
            match self
                .bbs
                .call::<models::CellsResponse>(path::CELLS, &())
                .await
            {
                Ok(answer) => return answer.cells,
                Err(error) => {
                    self.metrics.failed_cell_lists.add(1);
                    logger.error("failed-to-get-cell-reps", &error, Fields::new());
                }
            }
            sleep(CELLS_PAUSE).await;
        }
    }

    async fn states(&self, presences: Vec<models::CellPresence>, logger: &Logger) -> Cells {
        let limit = self.config.cell_state_timeout;
        let mut asked = JoinSet::new();
        let since = StdInstant::now();
        let stragglers = stragglers(presences.len());
        for presence in presences {
            let (workers, reps) = (self.workers.clone(), self.reps.clone());
            asked.spawn(net::boxed(async move {
                let _worker = workers.worker(since).await;
                let address = if presence.rep_url.is_empty() {
                    presence.rep_address
                } else {
                    presence.rep_url
                };
                let state = timeout(limit, state(&reps, &address)).await;
                let state = state.unwrap_or_else(|_| Err(format!("no state within {limit:?}")));
                (presence.cell_id, address, state)
            }));
        }
        let mut cells = Cells::default();
        let mut last = None;
        loop {
            // Whoever is still asked when the time is over is left out of the round.
            if asked.len() <= stragglers && last.is_none() && !cells.states.is_empty() {
                last = Some(Instant::now() + self.config.state_grace);
            }
            let answer = match last {
                None => asked.join_next().await,
                Some(last) => match timeout_at(last, asked.join_next()).await {
                    Ok(answer) => answer,
                    Err(_) => {
                        self.metrics.late_states.add(asked.len());
                        let fields = Fields::new().and("cells", asked.len());
                        logger.info("left-out-late-cells", fields);
                        break;
                    }
                },
            };
            let Some(answer) = answer else { break };
            let Ok((cell_id, address, state)) = answer else {
                continue;
            };
            let wrong = match state {
                Ok(state) if state.cell_id != cell_id => {
                    format!("the cell there is called {:?}", state.cell_id)
                }
                Ok(state) if state.evacuating => continue,
                Ok(state) => {
                    self.metrics.states.add(1);
                    cells.states.push(state);
                    cells.addresses.insert(cell_id, address);
                    continue;
                }
                Err(error) => error,
            };
            self.metrics.failed_states.add(1);
            logger.error(
                "failed-to-get-state",
                &wrong,
                Fields::new().and("cell-id", cell_id),
            );
        }
        cells
    }

    /// Hands out work and returns what cells refused. Work whose delivery failed
    /// may have arrived, so it does not count as refused.
    async fn commit(
        &self,
        work: Vec<CellWork>,
        addresses: &HashMap<String, String>,
        logger: &Logger,
    ) -> Work {
        let limit = self.config.communication_timeout;
        let mut posted = JoinSet::new();
        let since = StdInstant::now();
        for CellWork {
            cell_id,
            lrps,
            tasks,
        } in work
        {
            let Some(address) = addresses.get(&cell_id).cloned() else {
                continue;
            };
            let (workers, reps) = (self.workers.clone(), self.reps.clone());
            posted.spawn(net::boxed(async move {
                let _worker = workers.worker(since).await;
                let work = Work {
                    lrps,
                    tasks,
                    cell_id,
                };
                let answer = timeout(limit, post(&reps, &address, &work)).await;
                let answer = answer.unwrap_or_else(|_| Err(format!("no answer within {limit:?}")));
                (work, answer)
            }));
        }
        let mut refused = Work::default();
        while let Some(answer) = posted.join_next().await {
            match answer {
                Ok((work, Ok(failed))) => {
                    // Only what was sent can have failed, whatever the rep says.
                    let lrps: HashSet<(&str, i32)> = failed
                        .lrps
                        .iter()
                        .map(|l| (l.process_guid.as_str(), l.index))
                        .collect();
                    let tasks: HashSet<&str> = failed
                        .tasks
                        .iter()
                        .map(|task| task.task_guid.as_str())
                        .collect();
                    let lrp = |l: &Lrp| lrps.contains(&(l.process_guid.as_str(), l.index));
                    let task = |task: &Task| tasks.contains(task.task_guid.as_str());
                    refused.lrps.extend(work.lrps.into_iter().filter(lrp));
                    refused.tasks.extend(work.tasks.into_iter().filter(task));
                }
                Ok((work, Err(error))) => {
                    self.metrics.failed_deliveries.add(1);
                    let fields = Fields::new().and("cell-id", &work.cell_id);
                    logger.error("failed-to-commit", &error, fields);
                }
                Err(_) => {}
            }
        }
        refused
    }

    /// Tells the BBS what was not placed. A report that fails is only logged: the
    /// BBS asks for such work again by itself.
    async fn report(&self, lrps: Vec<(Lrp, String)>, tasks: Vec<(Task, String)>, logger: &Logger) {
        let mut reports = JoinSet::new();
        let since = StdInstant::now();
        for (lrp, reason) in lrps {
            let (workers, bbs, logger, metrics) = self.reporter(logger);
            reports.spawn(net::boxed(async move {
                let _worker = workers.worker(since).await;
                let request = models::FailActualLrpRequest {
                    actual_lrp_key: Some(models::ActualLrpKey {
                        process_guid: lrp.process_guid,
                        index: lrp.index,
                        domain: lrp.domain,
                    }),
                    error_message: reason,
                };
                type Answer = models::ActualLrpLifecycleResponse;
                if let Err(error) = bbs.call::<Answer>(path::FAIL_ACTUAL_LRP, &request).await {
                    metrics.failed_reports.add(1);
                    logger.error("failed-to-fail-lrp", &error, Fields::new());
                }
            }));
        }
        for (task, reason) in tasks {
            let (workers, bbs, logger, metrics) = self.reporter(logger);
            reports.spawn(net::boxed(async move {
                let _worker = workers.worker(since).await;
                let request = models::RejectTaskRequest {
                    task_guid: task.task_guid,
                    rejection_reason: reason,
                };
                type Answer = models::TaskLifecycleResponse;
                if let Err(error) = bbs.call::<Answer>(path::REJECT_TASK, &request).await {
                    metrics.failed_reports.add(1);
                    logger.error("failed-to-reject-task", &error, Fields::new());
                }
            }));
        }
        while reports.join_next().await.is_some() {}
    }

    fn reporter(&self, logger: &Logger) -> (Pool, Bbs, Logger, Arc<Metrics>) {
        let metrics = Arc::clone(&self.metrics);
        (
            self.workers.clone(),
            self.bbs.clone(),
            logger.clone(),
            metrics,
        )
    }
}

/// How many of so many cells a round does not wait for: a tenth, and at least one.
fn stragglers(cells: usize) -> usize {
    (cells / 10).max(1)
}

async fn state(reps: &Client, address: &str) -> Result<CellState, String> {
    read(reps.get(&uri(address, "/state")?).await, "state")
}

async fn post(reps: &Client, address: &str, work: &Work) -> Result<Work, String> {
    let body = serde_json::to_vec(work).map_err(|error| error.to_string())?;
    let uri = uri(address, "/work")?;
    let posted = reps.post(&uri, "application/json", HeaderMap::new(), body.into());
    read(posted.await, "answer")
}

/// What a rep answered.
fn read<T: DeserializeOwned>(
    answer: Result<net::Answer, ClientError>,
    what: &str,
) -> Result<T, String> {
    let answer = answer.map_err(|error| error.to_string())?;
    if answer.status != StatusCode::OK {
        return Err(format!(
            "status {} where 200 was expected",
            answer.status.as_u16()
        ));
    }
    serde_json::from_slice(&answer.body).map_err(|error| format!("read its {what}: {error}"))
}

fn uri(address: &str, path: &str) -> Result<Uri, String> {
    let uri = format!("{}{path}", address.trim_end_matches('/'));
    uri.parse()
        .map_err(|_| format!("{address:?} is not the address of a rep"))
}
