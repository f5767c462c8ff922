//! What the auctioneer counts, and its text form for Prometheus.

use telemetry::prometheus::{Kind, Page};

use crate::counters::{Count, Time, numbers};

numbers! {
    /// Everything that is counted since the start.
    pub(super) struct Metrics {
        /// Rounds.
        rounds: Count = "auctioneer_rounds_total",
        /// Time spent on rounds.
        round_time: Time = "auctioneer_round_seconds_sum",
        /// Part of it spent waiting for the states of cells.
        state_time: Time = "auctioneer_state_seconds_sum",
        /// States of cells received.
        states: Count = "auctioneer_states_total",
        /// States of cells that could not be had.
        failed_states: Count = "auctioneer_states_failed_total",
        /// Cells that a round did not wait for.
        late_states: Count = "auctioneer_states_late_total",
        /// Calls for the list of cells that failed.
        failed_cell_lists: Count = "auctioneer_cell_lists_failed_total",
        /// Pieces of work that a cell took.
        placed: ByKind = "auctioneer_placements_total",
        /// Pieces of work that no cell could or would take.
        failed: ByKind = "auctioneer_placements_failed_total",
        /// Deliveries of work to a cell that got no answer.
        failed_deliveries: Count = "auctioneer_deliveries_failed_total",
        /// Reports of failed placements that the BBS did not take.
        failed_reports: Count = "auctioneer_reports_failed_total",
        /// Entries of requests that were left out.
        invalid_entries: Count = "auctioneer_entries_invalid_total",
        /// Requests that could not be read or found the queue full.
        refused_requests: Count = "auctioneer_requests_refused_total",
    }
}

/// Pieces of work by their kind.
#[derive(Debug, Default)]
pub(super) struct ByKind {
    pub(super) lrps: Count,
    pub(super) tasks: Count,
}

impl ByKind {
    fn tell(&self, page: &mut Page, name: &str, help: &str) {
        let kinds = [("lrp", self.lrps.now()), ("task", self.tasks.now())];
        page.family(Kind::Counter, name, help, "kind", kinds);
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
        self.write(&mut page);
        page.family(
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
