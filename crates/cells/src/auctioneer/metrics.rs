//! Counters of the auctioneer, and their text form for Prometheus.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use telemetry::prometheus::{Kind, Page};

/// Everything that is counted since the start.
#[derive(Debug, Default)]
pub(super) struct Metrics {
    pub(super) rounds: Count,
    pub(super) round_time: Time,
    pub(super) state_time: Time,
    pub(super) states: Count,
    pub(super) failed_states: Count,
    pub(super) late_states: Count,
    pub(super) failed_cell_lists: Count,
    pub(super) placed_lrps: Count,
    pub(super) placed_tasks: Count,
    pub(super) failed_lrps: Count,
    pub(super) failed_tasks: Count,
    pub(super) failed_deliveries: Count,
    pub(super) failed_reports: Count,
    pub(super) invalid_entries: Count,
    pub(super) refused_requests: Count,
}

/// A number that only rises.
#[derive(Debug, Default)]
pub(super) struct Count(AtomicU64);

impl Count {
    pub(super) fn add(&self, count: usize) {
        self.0.fetch_add(count as u64, Relaxed);
    }

    fn now(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// A sum of times.
#[derive(Debug, Default)]
pub(super) struct Time(AtomicU64);

impl Time {
    pub(super) fn add(&self, time: Duration) {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.0.fetch_add(nanoseconds, Relaxed);
    }

    fn seconds(&self) -> f64 {
        Duration::from_nanos(self.0.load(Relaxed)).as_secs_f64()
    }
}

/// What is measured at the moment of asking.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gauges {
    /// Instances that wait for a round.
    pub(super) lrps: usize,
    /// Tasks that wait for a round.
    pub(super) tasks: usize,
    /// Pieces of work that may wait.
    pub(super) most: usize,
    /// Calls to cells and to the BBS under way.
    pub(super) workers: usize,
}

impl Metrics {
    /// All of it, to be written as text.
    pub(super) fn page(&self, gauges: Gauges) -> Page {
        let mut page = Page::new();
        page.counter("auctioneer_rounds_total", "Rounds.", self.rounds.now())
            .counter(
                "auctioneer_round_seconds_sum",
                "Time spent on rounds.",
                self.round_time.seconds(),
            )
            .counter(
                "auctioneer_state_seconds_sum",
                "Part of it spent waiting for the states of cells.",
                self.state_time.seconds(),
            )
            .counter(
                "auctioneer_states_total",
                "States of cells received.",
                self.states.now(),
            )
            .counter(
                "auctioneer_states_failed_total",
                "States of cells that could not be had.",
                self.failed_states.now(),
            )
            .counter(
                "auctioneer_states_late_total",
                "Cells that a round did not wait for.",
                self.late_states.now(),
            )
            .counter(
                "auctioneer_cell_lists_failed_total",
                "Calls for the list of cells that failed.",
                self.failed_cell_lists.now(),
            );
        let kinds = |lrps: &Count, tasks: &Count| [("lrp", lrps.now()), ("task", tasks.now())];
        page.family(
            Kind::Counter,
            "auctioneer_placements_total",
            "Pieces of work that a cell took.",
            "kind",
            kinds(&self.placed_lrps, &self.placed_tasks),
        )
        .family(
            Kind::Counter,
            "auctioneer_placements_failed_total",
            "Pieces of work that no cell could or would take.",
            "kind",
            kinds(&self.failed_lrps, &self.failed_tasks),
        )
        .counter(
            "auctioneer_deliveries_failed_total",
            "Deliveries of work to a cell that got no answer.",
            self.failed_deliveries.now(),
        )
        .counter(
            "auctioneer_reports_failed_total",
            "Reports of failed placements that the BBS did not take.",
            self.failed_reports.now(),
        )
        .counter(
            "auctioneer_entries_invalid_total",
            "Entries of requests that were left out.",
            self.invalid_entries.now(),
        )
        .counter(
            "auctioneer_requests_refused_total",
            "Requests that could not be read or found the queue full.",
            self.refused_requests.now(),
        )
        .family(
            Kind::Gauge,
            "auctioneer_queued",
            "Pieces of work that wait for a round.",
            "kind",
            [("lrp", gauges.lrps), ("task", gauges.tasks)],
        )
        .gauge(
            "auctioneer_queue_limit",
            "Pieces of work that may wait.",
            gauges.most,
        )
        .gauge(
            "auctioneer_calls_under_way",
            "Calls to cells and to the BBS under way.",
            gauges.workers,
        );
        page
    }
}
