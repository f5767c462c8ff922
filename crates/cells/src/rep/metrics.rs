//! Counters of a process that carries cells, and their text form for Prometheus.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use diego::CallCounts;
use telemetry::prometheus::{Kind, Page};

use super::container::Phase;
use crate::pool::{self, Pool};

/// What is counted over all cells since the start.
#[derive(Debug, Default)]
pub(super) struct Metrics {
    pub(super) taken: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) repeats: AtomicU64,
    pub(super) renewals: AtomicU64,
    pub(super) failed_renewals: AtomicU64,
    pub(super) spawned: AtomicU64,
    pub(super) failed_spawns: AtomicU64,
    pub(super) stranded: AtomicU64,
    pub(super) killed: AtomicU64,
    pub(super) downloads: AtomicU64,
    pub(super) failed_downloads: AtomicU64,
    pub(super) downloaded_bytes: AtomicU64,
    pub(super) muted: AtomicU64,
    bulk_passes: AtomicU64,
    bulk_nanoseconds: AtomicU64,
    last_bulk_nanoseconds: AtomicU64,
    /// Those of the executor.
    pools: Mutex<Vec<Pool>>,
}

/// Adds to a counter.
pub(super) fn count(counter: &AtomicU64, more: usize) {
    counter.fetch_add(more as u64, Relaxed);
}

fn seconds(nanoseconds: &AtomicU64) -> f64 {
    Duration::from_nanos(nanoseconds.load(Relaxed)).as_secs_f64()
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
    /// Has the numbers of these pools told as well.
    pub(super) fn know(&self, more: Vec<Pool>) {
        self.pools().extend(more);
    }

    /// Notes a pass over the records of a cell that succeeded.
    pub(super) fn passed(&self, took: Duration) {
        let nanoseconds = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.bulk_passes.fetch_add(1, Relaxed);
        self.bulk_nanoseconds.fetch_add(nanoseconds, Relaxed);
        self.last_bulk_nanoseconds.store(nanoseconds, Relaxed);
    }

    fn pools(&self) -> MutexGuard<'_, Vec<Pool>> {
        self.pools.lock().unwrap_or_else(PoisonError::into_inner)
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
            )
            .counter(
                "rep_bulk_passes_total",
                "Passes over the records of a cell that succeeded.",
                self.bulk_passes.load(Relaxed),
            )
            .counter(
                "rep_bulk_seconds_sum",
                "Time spent on these.",
                seconds(&self.bulk_nanoseconds),
            )
            .gauge(
                "rep_bulk_last_seconds",
                "Time that the newest of them took, of whichever cell.",
                seconds(&self.last_bulk_nanoseconds),
            );
        for (name, help, counter) in [
            ("rep_work_taken_total", "Pieces of work taken.", &self.taken),
            (
                "rep_work_refused_total",
                "Pieces of work refused: no room, no presence, or the cell is evacuated.",
                &self.refused,
            ),
            (
                "rep_container_repeats_total",
                "Steps of containers tried again after the BBS failed them.",
                &self.repeats,
            ),
            (
                "rep_presence_renewals_total",
                "Presences taken or renewed.",
                &self.renewals,
            ),
            (
                "rep_presence_renewals_failed_total",
                "Presences that could not be taken or renewed.",
                &self.failed_renewals,
            ),
            (
                "rep_spawns_total",
                "Processes started; none by a simulated executor.",
                &self.spawned,
            ),
            (
                "rep_spawns_failed_total",
                "Processes that could not be started.",
                &self.failed_spawns,
            ),
            (
                "rep_stranded_evacuating_lrps_total",
                "Instances that nobody had replaced when the time of an evacuation was over.",
                &self.stranded,
            ),
            (
                "rep_processes_killed_total",
                "Processes that were asked to end, did not in time, and were killed.",
                &self.killed,
            ),
            (
                "rep_downloads_total",
                "Files brought into containers, kept ones as well.",
                &self.downloads,
            ),
            (
                "rep_downloads_failed_total",
                "Files that could not be brought into a container.",
                &self.failed_downloads,
            ),
            (
                "rep_downloaded_bytes_total",
                "Bytes that came over the network for these.",
                &self.downloaded_bytes,
            ),
            (
                "rep_log_limits_exceeded_total",
                "Times that a container wrote more than its log takes, and was muted.",
                &self.muted,
            ),
        ] {
            page.counter(name, help, counter.load(Relaxed));
        }
        let pools: Vec<_> = self.pools().iter().map(|it| it.counts(0, None)).collect();
        pool::write(&mut page, "rep", &pools);
        page.into_text()
    }
}
