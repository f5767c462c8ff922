//! Counters of the server, and their text form for Prometheus. Names that relayd has are its.

use std::collections::BTreeMap;
use std::fmt;
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

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.get())
    }
}

/// Adds metrics to a page: of each its kind, name, value and help.
macro_rules! expose {
    ($page:ident; $($kind:ident $name:literal $value:expr, $help:literal;)*) => {
        $($page.$kind($name, $help, $value);)*
    };
}
pub(crate) use expose;

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
        page.family(
            Kind::Counter,
            "rudder_relayd_reports_total",
            "Uploaded run logs by what became of them.",
            "status",
            [
                ("ok", &self.runs),
                ("duplicate", &self.duplicates),
                ("forged", &self.forged),
                ("invalid", &self.invalid),
                ("error", &self.failed),
            ],
        )
        .family(
            Kind::Counter,
            "rudder_relayd_inventories_total",
            "Inventories by what became of them.",
            "status",
            [
                ("ok", &self.inventories),
                ("invalid", &self.refused_inventories),
            ],
        )
        .family(
            Kind::Counter,
            "compliance_policy_requests_total",
            "Questions for policies by their answers.",
            "status",
            [
                ("ok", &self.fetched),
                ("unchanged", &self.unchanged),
                ("forbidden", &self.forbidden),
            ],
        );
        expose! { page;
            counter "compliance_reports_total" &self.reports, "Reports in run logs that are kept.";
            counter "compliance_broken_lines_total" &self.broken_lines,
                "Lines in run logs that are kept which are no reports, and left out.";
            counter "compliance_cut_messages_total" &self.cut_messages,
                "Messages in run logs that are kept which are too long, and cut.";
            counter "compliance_upload_bytes_total" &self.bytes, "Bytes of uploaded run logs.";
            counter "compliance_history_rows_total" &self.hours,
                "Hours of compliance that were made durable, of all and of each rule.";
            counter "compliance_generations_total" &self.generations, "Generations of policies.";
            counter "compliance_policies_total" &self.policies, "Policies that were made.";
            counter "compliance_policies_computed_total" &self.computed,
                "Policies that were computed, whether they became others or not.";
            counter "compliance_api_requests_total" &self.calls, "Calls of the REST API.";
            counter "compliance_api_unauthorised_total" &self.unauthorised,
                "Calls without a token that is known.";
        }
        self.syslog.write_metrics(&mut page);
        let writer = gauges.writer;
        expose! { page;
            counter "compliance_upload_seconds_sum" self.report_nanoseconds.seconds(),
                "Time from whole run logs to their answers.";
            counter "compliance_generation_seconds_sum" self.generation_nanoseconds.seconds(),
                "Time of generations.";
            counter "compliance_commits_total" writer.commits, "Transactions that are durable.";
            counter "compliance_commits_failed_total" writer.failed, "Transactions that failed.";
            counter "compliance_commit_seconds_sum" writer.committing.as_secs_f64(),
                "Time of transactions.";
            gauge "compliance_store_up" u8::from(!gauges.away),
                "1 while the database is within reach, 0 while nothing can be kept.";
            counter "compliance_store_losses_total" gauges.losses,
                "How often the connection to the database was lost.";
            gauge "compliance_waiting_writes" writer.queued, "Changes that wait for the writer.";
            gauge "rudder_relayd_managed_nodes_total" gauges.accepted, "Nodes that are accepted.";
            gauge "compliance_pending_nodes" gauges.pending, "Nodes that wait to be accepted.";
        }
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
