//! What the service counts, and its text form for Prometheus.

use telemetry::prometheus::{Kind, Page};

use crate::counters::{Count, Flag, Level, Time, numbers};

numbers! {
    /// Everything that is counted since the start, and what is so now.
    pub(crate) struct Metrics {
        /// Requests answered.
        requests: Count = "bbs_requests_total",
        /// Requests that could not be read or were not valid.
        refused: Count = "bbs_requests_refused_total",
        /// Cancellations that too many waited before, left to the cells' next pass.
        dropped_work: Count = "bbs_outbound_dropped_total",
        /// Calls to the auctioneer.
        auction_posts: Count = "bbs_auction_posts_total",
        /// Calls to the auctioneer that failed.
        failed_auction_posts: Count = "bbs_auction_posts_failed_total",
        /// Calls to reps.
        rep_calls: Count = "bbs_rep_calls_total",
        /// Results of tasks sent, repeats included.
        callbacks: Count = "bbs_callbacks_total",
        /// Times that the connection to the database was lost.
        database_losses: Count = "bbs_database_losses_total",
        /// Attempts to reach a lost database that failed.
        failed_database_attempts: Count = "bbs_database_attempts_failed_total",
        /// Rows encrypted anew with the active key since the start.
        reencrypted_rows: Count = "bbs_reencrypted_rows_total",
        /// Time spent on requests.
        request_time: Time = "bbs_request_seconds_sum",
        /// 1 while changes reach the database, 0 while it is away.
        database_up: Flag = "bbs_database_up",
        /// 1 while old keys are needed for what is encrypted with them, 0 once they may go.
        reencrypting: Flag = "bbs_reencryption_active",
        /// Rows that are left to be encrypted with the active key, at most.
        rows_to_reencrypt: Level = "bbs_rows_to_reencrypt",
    }
}

/// What is measured at the moment of asking.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gauges {
    pub(crate) writer: commit::Counts,
    pub(crate) subscribers: usize,
    pub(crate) tasks: usize,
    pub(crate) processes: usize,
    /// Length of each queue of calls to others.
    pub(crate) outbound: [(&'static str, usize); 4],
}

impl Metrics {
    /// The text form.
    pub(crate) fn page(&self, gauges: Gauges) -> Page {
        let mut page = Page::new();
        let writer = gauges.writer;
        for (name, help, counter) in [
            ("bbs_commands_total", "Changes asked for.", writer.requests),
            ("bbs_commits_total", "Transactions.", writer.commits),
            (
                "bbs_commits_failed_total",
                "Transactions that failed and were undone.",
                writer.failed,
            ),
        ] {
            page.counter(name, help, counter);
        }
        self.write(&mut page);
        page.counter(
            "bbs_commit_seconds_sum",
            "Time spent on transactions.",
            writer.committing.as_secs_f64(),
        );
        for (name, help, gauge) in [
            (
                "bbs_batch_commands_max",
                "Changes in the largest transaction.",
                writer.largest,
            ),
            (
                "bbs_queued_commands",
                "Changes that wait for the writer.",
                writer.queued as u64,
            ),
            (
                "bbs_subscribers",
                "Subscribers to events.",
                gauges.subscribers as u64,
            ),
            ("bbs_tasks", "Tasks.", gauges.tasks as u64),
            (
                "bbs_processes",
                "Processes desired or running.",
                gauges.processes as u64,
            ),
        ] {
            page.gauge(name, help, gauge);
        }
        page.family(
            Kind::Gauge,
            "bbs_outbound_queued",
            "Calls to others that wait.",
            "queue",
            gauges.outbound,
        );
        page
    }
}
