//! Counters of the service, and their text form for Prometheus.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Everything that is counted since the start.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    pub(crate) requests: AtomicU64,
    pub(crate) request_nanoseconds: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) commands: AtomicU64,
    pub(crate) commits: AtomicU64,
    pub(crate) failed_commits: AtomicU64,
    pub(crate) commit_nanoseconds: AtomicU64,
    pub(crate) largest_batch: AtomicU64,
    pub(crate) dropped_work: AtomicU64,
    pub(crate) auction_posts: AtomicU64,
    pub(crate) failed_auction_posts: AtomicU64,
    pub(crate) rep_calls: AtomicU64,
    pub(crate) callbacks: AtomicU64,
}

/// What is measured at the moment of asking.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gauges {
    pub(crate) queued_commands: usize,
    pub(crate) subscribers: usize,
    pub(crate) tasks: usize,
    pub(crate) processes: usize,
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
    pub(crate) fn text(&self, gauges: Gauges) -> String {
        let mut text = String::new();
        let counters = [
            ("bbs_requests_total", &self.requests),
            ("bbs_requests_refused_total", &self.refused),
            ("bbs_commands_total", &self.commands),
            ("bbs_commits_total", &self.commits),
            ("bbs_commits_failed_total", &self.failed_commits),
            ("bbs_outbound_dropped_total", &self.dropped_work),
            ("bbs_auction_posts_total", &self.auction_posts),
            ("bbs_auction_posts_failed_total", &self.failed_auction_posts),
            ("bbs_rep_calls_total", &self.rep_calls),
            ("bbs_callbacks_total", &self.callbacks),
        ];
        for (name, counter) in counters {
            line(&mut text, name, "counter", counter.load(Relaxed));
        }
        let times = [
            ("bbs_request_seconds_sum", &self.request_nanoseconds),
            ("bbs_commit_seconds_sum", &self.commit_nanoseconds),
        ];
        for (name, time) in times {
            let seconds = Duration::from_nanos(time.load(Relaxed)).as_secs_f64();
            line(&mut text, name, "counter", seconds);
        }
        line(
            &mut text,
            "bbs_batch_commands_max",
            "gauge",
            self.largest_batch.load(Relaxed),
        );
        line(
            &mut text,
            "bbs_queued_commands",
            "gauge",
            gauges.queued_commands,
        );
        line(&mut text, "bbs_subscribers", "gauge", gauges.subscribers);
        line(&mut text, "bbs_tasks", "gauge", gauges.tasks);
        line(&mut text, "bbs_processes", "gauge", gauges.processes);
        text
    }
}

fn line(text: &mut String, name: &str, kind: &str, value: impl std::fmt::Display) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "# TYPE {name} {kind}\n{name} {value}");
}
