//! Counters of a relay, and their text form for Prometheus. Names that relayd has are its.

use telemetry::prometheus::{Kind, Page};

use super::spool::Size;
use crate::server::{Count, expose};

/// Uploads of one kind by what became of them.
#[derive(Debug, Default)]
pub(super) struct Uploads {
    /// They are in the spool.
    pub(super) kept: Count,
    /// The same run was in the spool.
    pub(super) duplicates: Count,
    /// Their signature is not that of the node.
    pub(super) forged: Count,
    /// They cannot be read.
    pub(super) invalid: Count,
    /// They are of nobody behind this relay.
    pub(super) foreign: Count,
    /// There was no room for them, or not now.
    pub(super) failed: Count,
    /// The upstream has them.
    pub(super) forwarded: Count,
    /// The upstream refused them.
    pub(super) undelivered: Count,
}

/// Everything that is counted.
#[derive(Debug, Default)]
pub(super) struct Metrics {
    pub(super) reports: Uploads,
    pub(super) inventories: Uploads,
    /// Policies that were sent.
    pub(super) fetched: Count,
    /// Questions for policies that had not changed.
    pub(super) unchanged: Count,
    /// Questions for policies of others.
    pub(super) forbidden: Count,
    /// Policies, and that they had not changed, while the upstream was away.
    pub(super) from_disk: Count,
}

/// What is measured at the moment of asking.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gauges {
    pub(super) spool: Size,
    /// Nodes directly behind the relay, and all.
    pub(super) nodes: (usize, usize),
    /// Requests that the upstream did not answer.
    pub(super) upstream_errors: u64,
    /// Did it answer when it was last asked?
    pub(super) upstream_is_there: bool,
}

impl Uploads {
    fn statuses(&self) -> [(&'static str, &Count); 8] {
        [
            ("ok", &self.kept),
            ("duplicate", &self.duplicates),
            ("forged", &self.forged),
            ("invalid", &self.invalid),
            ("foreign", &self.foreign),
            ("error", &self.failed),
            ("forward_ok", &self.forwarded),
            ("forward_error", &self.undelivered),
        ]
    }
}

impl Metrics {
    /// The text form.
    pub(super) fn text(&self, gauges: Gauges) -> String {
        let mut page = Page::new();
        page.family(
            Kind::Counter,
            "rudder_relayd_reports_total",
            "Uploaded run logs by what became of them: on their way in, and with the upstream.",
            "status",
            self.reports.statuses(),
        )
        .family(
            Kind::Counter,
            "rudder_relayd_inventories_total",
            "Inventories by what became of them: on their way in, and with the upstream.",
            "status",
            self.inventories.statuses(),
        )
        .family(
            Kind::Counter,
            "compliance_policy_requests_total",
            "Questions for policies by their answers; kept ones are counted once more.",
            "status",
            [
                ("ok", &self.fetched),
                ("unchanged", &self.unchanged),
                ("forbidden", &self.forbidden),
                ("kept", &self.from_disk),
            ],
        );
        let Gauges { spool, nodes, .. } = gauges;
        expose! { page;
            gauge "compliance_relay_spool_bytes" spool.bytes, "Bytes that wait for the upstream.";
            gauge "compliance_relay_spool_items" spool.items, "Uploads that wait for the upstream.";
            gauge "compliance_relay_spool_oldest_seconds" spool.oldest.as_secs_f64(),
                "How long the oldest of them has waited.";
            counter "compliance_relay_upstream_errors_total" gauges.upstream_errors,
                "Requests that the upstream did not answer, or not now.";
            gauge "compliance_relay_upstream_up" u8::from(gauges.upstream_is_there),
                "1 if the upstream answered when it was last asked.";
            gauge "rudder_relayd_managed_nodes_total" nodes.0, "Nodes directly behind this relay.";
            gauge "rudder_relayd_sub_nodes_total" nodes.1, "All nodes behind this relay.";
        }
        page.into_text()
    }
}
