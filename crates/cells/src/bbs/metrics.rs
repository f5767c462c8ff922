//! Counters of the service, and their text form for Prometheus.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use telemetry::prometheus::{Kind, Page};

/// Everything that is counted since the start.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    pub(crate) requests: AtomicU64,
    pub(crate) request_nanoseconds: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) dropped_work: AtomicU64,
    pub(crate) auction_posts: AtomicU64,
    pub(crate) failed_auction_posts: AtomicU64,
    pub(crate) rep_calls: AtomicU64,
    pub(crate) callbacks: AtomicU64,
    /// Whether the connection to the database was lost and is not there again.
    pub(crate) database_away: AtomicBool,
    pub(crate) database_losses: AtomicU64,
    pub(crate) failed_database_attempts: AtomicU64,
    /// Rows that are left to be encrypted with the active key, at most.
    pub(crate) rows_to_reencrypt: AtomicU64,
    pub(crate) reencrypted_rows: AtomicU64,
    /// Whether some values may be encrypted with another key than the active one.
    pub(crate) reencrypting: AtomicBool,
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
    /// Adds one.
    pub(crate) fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Relaxed);
    }

    /// Adds a time.
    pub(crate) fn time(counter: &AtomicU64, time: Duration) {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        counter.fetch_add(nanoseconds, Relaxed);
    }

    /// The text form.
    pub(crate) fn page(&self, gauges: Gauges) -> Page {
        let requests = Duration::from_nanos(self.request_nanoseconds.load(Relaxed));
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
        for (name, help, counter) in [
            ("bbs_requests_total", "Requests answered.", &self.requests),
            (
                "bbs_requests_refused_total",
                "Requests that could not be read or were not valid.",
                &self.refused,
            ),
            (
                "bbs_outbound_dropped_total",
                "Cancellations that too many waited before, left to the cells' next pass.",
                &self.dropped_work,
            ),
            (
                "bbs_auction_posts_total",
                "Calls to the auctioneer.",
                &self.auction_posts,
            ),
            (
                "bbs_auction_posts_failed_total",
                "Calls to the auctioneer that failed.",
                &self.failed_auction_posts,
            ),
            ("bbs_rep_calls_total", "Calls to reps.", &self.rep_calls),
            (
                "bbs_callbacks_total",
                "Results of tasks sent, repeats included.",
                &self.callbacks,
            ),
            (
                "bbs_database_losses_total",
                "Times that the connection to the database was lost.",
                &self.database_losses,
            ),
            (
                "bbs_database_attempts_failed_total",
                "Attempts to reach a lost database that failed.",
                &self.failed_database_attempts,
            ),
            (
                "bbs_reencrypted_rows_total",
                "Rows encrypted anew with the active key since the start.",
                &self.reencrypted_rows,
            ),
        ] {
            page.counter(name, help, counter.load(Relaxed));
        }
        page.counter(
            "bbs_request_seconds_sum",
            "Time spent on requests.",
            requests.as_secs_f64(),
        )
        .counter(
            "bbs_commit_seconds_sum",
            "Time spent on transactions.",
            writer.committing.as_secs_f64(),
        )
        .gauge(
            "bbs_database_up",
            "1 while changes reach the database, 0 while it is away.",
            u8::from(!self.database_away.load(Relaxed)),
        )
        .gauge(
            "bbs_reencryption_active",
            "1 while old keys are needed for what is encrypted with them, 0 once they may go.",
            u8::from(self.reencrypting.load(Relaxed)),
        )
        .gauge(
            "bbs_rows_to_reencrypt",
            "Rows that are left to be encrypted with the active key, at most.",
            self.rows_to_reencrypt.load(Relaxed),
        )
        .gauge(
            "bbs_batch_commands_max",
            "Changes in the largest transaction.",
            writer.largest,
        )
        .gauge(
            "bbs_queued_commands",
            "Changes that wait for the writer.",
            writer.queued,
        )
        .gauge(
            "bbs_subscribers",
            "Subscribers to events.",
            gauges.subscribers,
        )
        .gauge("bbs_tasks", "Tasks.", gauges.tasks)
        .gauge(
            "bbs_processes",
            "Processes desired or running.",
            gauges.processes,
        )
        .family(
            Kind::Gauge,
            "bbs_outbound_queued",
            "Calls to others that wait.",
            "queue",
            gauges.outbound,
        );
        page
    }
}
