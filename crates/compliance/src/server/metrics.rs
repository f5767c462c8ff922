//! Counters of the server, and their text form for Prometheus. Names that relayd has are its.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use telemetry::prometheus::{Kind, Page};

use super::syslog::SyslogCounts;

/// Counts something since the start; times in nanoseconds.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self, count: u64) {
        self.0.fetch_add(count, Relaxed);
    }

    pub(crate) fn add_duration(&self, time: Duration) {
        self.add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    fn seconds(&self) -> f64 {
        Duration::from_nanos(self.get()).as_secs_f64()
    }
}

/// Time by what it went into.
#[derive(Debug, Default)]
pub(crate) struct Steps(Mutex<BTreeMap<&'static str, Duration>>);

impl Steps {
    pub(crate) fn add(&self, name: &'static str, time: Duration) {
        *self.all().entry(name).or_default() += time;
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<&'static str, Duration>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Everything that is counted.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// Uploads of reports that are kept.
    pub(crate) runs: Count,
    /// Reports in them.
    pub(crate) reports: Count,
    /// Lines in these that are no reports.
    pub(crate) broken_lines: Count,
    /// Messages in these that were cut.
    pub(crate) cut_messages: Count,
    /// Uploads that were kept before.
    pub(crate) duplicates: Count,
    /// Uploads whose signature is not that of the node.
    pub(crate) forged: Count,
    /// Uploads that cannot be read, or are of nobody who is known.
    pub(crate) invalid: Count,
    /// Uploads that could not be kept, or not now.
    pub(crate) failed: Count,
    /// Bytes of uploads, packed.
    pub(crate) bytes: Count,
    /// Time from whole uploads to their answers.
    pub(crate) report_nanoseconds: Count,
    /// Rows of compliance by the hour that were written.
    pub(crate) hours: Count,
    /// Messages of syslog.
    pub(crate) syslog: SyslogCounts,
    /// Inventories that were taken.
    pub(crate) inventories: Count,
    /// Inventories that were refused.
    pub(crate) refused_inventories: Count,
    /// Policies that were sent.
    pub(crate) fetched: Count,
    /// Questions for policies that had not changed.
    pub(crate) unchanged: Count,
    /// Questions for policies of others.
    pub(crate) forbidden: Count,
    /// Generations.
    pub(crate) generations: Count,
    /// Their time.
    pub(crate) generation_nanoseconds: Count,
    /// The same by their steps; parts of `build` are sums over threads.
    pub(crate) generation_steps: Steps,
    /// Policies that were made: those that are others than before.
    pub(crate) policies: Count,
    /// Policies that were computed, whether they became others or not.
    pub(crate) computed: Count,
    /// Calls of the REST API.
    pub(crate) calls: Count,
    /// Those without a token that is known.
    pub(crate) unauthorised: Count,
}

/// What is measured at the moment of asking.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gauges {
    pub(crate) writer: commit::Counts,
    pub(crate) pending: usize,
    pub(crate) accepted: usize,
    /// In percent; none without components.
    pub(crate) compliance: Option<u32>,
    /// Of the database with its log; none if it is no file.
    pub(crate) database_bytes: Option<u64>,
    /// Is the database out of reach?
    pub(crate) away: bool,
    /// How often it was lost.
    pub(crate) losses: u64,
}

impl Metrics {
    /// The text form.
    pub(crate) fn text(&self, gauges: Gauges) -> String {
        let mut page = Page::new();
        let uploads = [
            ("ok", &self.runs),
            ("duplicate", &self.duplicates),
            ("forged", &self.forged),
            ("invalid", &self.invalid),
            ("error", &self.failed),
        ];
        page.family(
            Kind::Counter,
            "rudder_relayd_reports_total",
            "Uploaded run logs by what became of them.",
            "status",
            uploads.map(|(status, count)| (status, count.get())),
        );
        let inventories = [
            ("ok", &self.inventories),
            ("invalid", &self.refused_inventories),
        ];
        page.family(
            Kind::Counter,
            "rudder_relayd_inventories_total",
            "Inventories by what became of them.",
            "status",
            inventories.map(|(status, count)| (status, count.get())),
        );
        let policies = [
            ("ok", &self.fetched),
            ("unchanged", &self.unchanged),
            ("forbidden", &self.forbidden),
        ];
        page.family(
            Kind::Counter,
            "compliance_policy_requests_total",
            "Questions for policies by their answers.",
            "status",
            policies.map(|(status, count)| (status, count.get())),
        );
        for (name, help, count) in [
            (
                "compliance_reports_total",
                "Reports in run logs that are kept.",
                &self.reports,
            ),
            (
                "compliance_broken_lines_total",
                "Lines in run logs that are kept which are no reports, and left out.",
                &self.broken_lines,
            ),
            (
                "compliance_cut_messages_total",
                "Messages in run logs that are kept which are too long, and cut.",
                &self.cut_messages,
            ),
            (
                "compliance_upload_bytes_total",
                "Bytes of uploaded run logs.",
                &self.bytes,
            ),
            (
                "compliance_history_rows_total",
                "Hours of compliance that were made durable, of all and of each rule.",
                &self.hours,
            ),
            (
                "compliance_generations_total",
                "Generations of policies.",
                &self.generations,
            ),
            (
                "compliance_policies_total",
                "Policies that were made.",
                &self.policies,
            ),
            (
                "compliance_policies_computed_total",
                "Policies that were computed, whether they became others or not.",
                &self.computed,
            ),
            (
                "compliance_api_requests_total",
                "Calls of the REST API.",
                &self.calls,
            ),
            (
                "compliance_api_unauthorised_total",
                "Calls without a token that is known.",
                &self.unauthorised,
            ),
        ] {
            page.counter(name, help, count.get());
        }
        self.syslog.tell(&mut page);
        let writer = gauges.writer;
        page.counter(
            "compliance_upload_seconds_sum",
            "Time from whole run logs to their answers.",
            self.report_nanoseconds.seconds(),
        )
        .counter(
            "compliance_generation_seconds_sum",
            "Time of generations.",
            self.generation_nanoseconds.seconds(),
        )
        .counter(
            "compliance_commits_total",
            "Transactions that are durable.",
            writer.commits,
        )
        .counter(
            "compliance_commits_failed_total",
            "Transactions that failed.",
            writer.failed,
        )
        .counter(
            "compliance_commit_seconds_sum",
            "Time of transactions.",
            writer.committing.as_secs_f64(),
        )
        .gauge(
            "compliance_store_up",
            "1 while the database is within reach, 0 while nothing can be kept.",
            u8::from(!gauges.away),
        )
        .counter(
            "compliance_store_losses_total",
            "How often the connection to the database was lost.",
            gauges.losses,
        )
        .gauge(
            "compliance_waiting_writes",
            "Changes that wait for the writer.",
            writer.queued,
        )
        .gauge(
            "rudder_relayd_managed_nodes_total",
            "Nodes that are accepted.",
            gauges.accepted,
        )
        .gauge(
            "compliance_pending_nodes",
            "Nodes that wait to be accepted.",
            gauges.pending,
        );
        page.family(
            Kind::Counter,
            "compliance_generation_step_seconds_sum",
            "Time of generations by their steps; parts of build are summed over threads.",
            "step",
            self.generation_steps
                .all()
                .iter()
                .map(|(step, time)| (*step, time.as_secs_f64())),
        );
        if let Some(percent) = gauges.compliance {
            let help = "The share of the fleet's components that comply.";
            page.gauge("compliance_percent", help, percent);
        }
        if let Some(bytes) = gauges.database_bytes {
            let help = "Bytes of the database and its log on the disk.";
            page.gauge("compliance_store_bytes", help, bytes);
        }
        page.into_text()
    }
}
