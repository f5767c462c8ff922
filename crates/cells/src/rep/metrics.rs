//! What a process that carries cells counts, and its text form for Prometheus.

use std::sync::Mutex;
use std::time::Duration;

use diego::CallCounts;
use telemetry::prometheus::{Kind, Page};

use super::container::Phase;
use crate::counters::{Count, LastTime, Time, numbers};
use crate::mutex::lock;
use crate::pool::{self, Pool};

/// What is counted over all cells since the start.
#[derive(Debug, Default)]
pub(super) struct Metrics {
    pub(super) counters: Counters,
    /// Those of the executor.
    pools: Mutex<Vec<Pool>>,
}

numbers! {
    /// What is counted one by one.
    pub(super) struct Counters {
        /// Passes over the records of a cell that succeeded.
        bulk_passes: Count = "rep_bulk_passes_total",
        /// Time spent on these.
        bulk_time: Time = "rep_bulk_seconds_sum",
        /// Time that the newest of them took, of whichever cell.
        last_bulk: LastTime = "rep_bulk_last_seconds",
        /// Pieces of work taken.
        taken: Count = "rep_work_taken_total",
        /// Pieces of work refused: no room, no presence, or the cell is evacuated.
        refused: Count = "rep_work_refused_total",
        /// Steps of containers tried again after the BBS failed them.
        repeats: Count = "rep_container_repeats_total",
        /// Presences taken or renewed.
        renewals: Count = "rep_presence_renewals_total",
        /// Presences that could not be taken or renewed.
        failed_renewals: Count = "rep_presence_renewals_failed_total",
        /// Processes started; none by a simulated executor.
        spawned: Count = "rep_spawns_total",
        /// Processes that could not be started.
        failed_spawns: Count = "rep_spawns_failed_total",
        /// Instances that nobody had replaced when the time of an evacuation was over.
        stranded: Count = "rep_stranded_evacuating_lrps_total",
        /// Processes that were asked to end, did not in time, and were killed.
        killed: Count = "rep_processes_killed_total",
        /// Files brought into containers, kept ones as well.
        downloads: Count = "rep_downloads_total",
        /// Files that could not be brought into a container.
        failed_downloads: Count = "rep_downloads_failed_total",
        /// Bytes that came over the network for these.
        downloaded_bytes: Count = "rep_downloaded_bytes_total",
        /// Keys made for containers, each with its certificate.
        certificates: Count = "rep_instance_certificates_total",
        /// Keys or certificates that could not be made.
        failed_certificates: Count = "rep_instance_certificates_failed_total",
        /// Time spent on those that were made.
        certificate_time: Time = "rep_instance_certificate_seconds_sum",
        /// Times that a container wrote more than its log takes, and was muted.
        muted: Count = "rep_log_limits_exceeded_total",
    }
}

/// Containers by state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Containers {
    reserved: usize,
    creating: usize,
    created: usize,
    running: usize,
    completed: usize,
}

impl Containers {
    pub(super) fn add(&mut self, phase: &Phase) {
        match phase {
            Phase::Reserved => self.reserved += 1,
            Phase::Creating => self.creating += 1,
            Phase::Created => self.created += 1,
            Phase::Running => self.running += 1,
            Phase::Completed(_) => self.completed += 1,
            Phase::Deleted => {}
        }
    }
}

impl Metrics {
    /// Also reports the numbers of these pools.
    pub(super) fn add_pools(&self, more: Vec<Pool>) {
        lock(&self.pools).extend(more);
    }

    /// Notes a pass over the records of a cell that succeeded.
    pub(super) fn passed(&self, took: Duration) {
        self.counters.bulk_passes.add(1);
        self.counters.bulk_time.add(took);
        self.counters.last_bulk.set(took);
    }

    /// The text form. `cells` is the number of all cells, of those that the BBS
    /// knows, and of those that are to be silent.
    pub(super) fn text(
        &self,
        cells: [u64; 3],
        containers: Containers,
        calls: CallCounts,
    ) -> String {
        let mut page = Page::new();
        page.gauge("rep_cells", "Cells of the process.", cells[0])
            .gauge(
                "rep_cells_registered",
                "Cells whose presence is held.",
                cells[1],
            )
            .gauge(
                "rep_cells_silent",
                "Cells that were told to be silent.",
                cells[2],
            )
            .family(
                Kind::Gauge,
                "rep_containers",
                "Containers.",
                "state",
                [
                    ("reserved", containers.reserved),
                    ("initializing", containers.creating),
                    ("created", containers.created),
                    ("running", containers.running),
                    ("completed", containers.completed),
                ],
            )
            .family(
                Kind::Counter,
                "rep_bbs_calls_total",
                "Calls to the BBS that have ended.",
                "outcome",
                [
                    ("answered", calls.answered),
                    ("refused", calls.refused),
                    ("failed", calls.failed),
                ],
            )
            .counter(
                "rep_bbs_resends_total",
                "Requests that were sent again because no answer came.",
                calls.resent,
            )
            .counter(
                "rep_bbs_call_seconds_sum",
                "Time spent on calls to the BBS.",
                Duration::from_nanos(calls.nanoseconds).as_secs_f64(),
            );
        self.counters.write(&mut page);
        let pools: Vec<_> = lock(&self.pools)
            .iter()
            .map(|it| it.counts(0, None))
            .collect();
        pool::write(&mut page, "rep", &pools);
        page.into_text()
    }
}
