//! What the emitter counts, and its text form for Prometheus.

use std::time::Duration;

use diego::CallCounts;
use telemetry::prometheus::{Kind, Page};

use super::table::Counts;
use crate::counters::{Count, Flag, LastTime, Level, Time, numbers};

numbers! {
    /// Everything that is counted since the start, and what is so now.
    pub(super) struct Metrics {
        /// Routes in the table, once for each instance.
        routes: Routes = "route_emitter_routes",
        /// Routes that were registered because something changed.
        registered: Count = "route_emitter_routes_registered_total",
        /// Routes that were unregistered.
        unregistered: Count = "route_emitter_routes_unregistered_total",
        /// Routes that were registered again in a round.
        repeated: Count = "route_emitter_routes_synced_total",
        /// Rounds in which everything was registered again.
        rounds: Count = "route_emitter_rounds_total",
        /// Unregistrations that were sent again.
        unregistered_again: Count = "route_emitter_unregistrations_repeated_total",
        /// Unregistrations that will be sent again.
        remembered: Level = "route_emitter_unregistrations_remembered",
        /// Instances that came to an address which another one still had.
        collisions: Count = "route_emitter_address_collisions_total",
        /// Messages that were given to NATS.
        messages: Messages = "route_emitter_nats_messages_total",
        /// Messages that were not sent because NATS was away or slow; all is sent when it is back.
        dropped_messages: Count = "route_emitter_nats_messages_dropped_total",
        /// Whether NATS is connected.
        connected: Flag = "route_emitter_nats_connected",
        /// Calls of the routing API.
        tcp_calls: Count = "route_emitter_routing_api_calls_total",
        /// Calls of the routing API that failed.
        failed_tcp_calls: Count = "route_emitter_routing_api_calls_failed_total",
        /// TCP routes that wait for the routing API.
        tcp_waiting: Level = "route_emitter_routing_api_waiting",
        /// Syncs with the BBS that succeeded.
        syncs: Count = "route_emitter_syncs_total",
        /// Syncs with the BBS that failed.
        failed_syncs: Count = "route_emitter_syncs_failed_total",
        /// Time spent on syncs that succeeded.
        sync_time: Time = "route_emitter_sync_seconds_sum",
        /// Time that the last sync took.
        last_sync: LastTime = "route_emitter_sync_last_seconds",
        /// Events of the BBS that concern routes.
        events: Count = "route_emitter_events_total",
        /// Whether events of the BBS come in.
        subscribed: Flag = "route_emitter_events_subscribed",
        /// Whether this one is active: it holds the lock, or needs none.
        lock_held: Flag = "route_emitter_lock_held",
    }
}

/// Routes by their kind.
#[derive(Debug, Default)]
pub(super) struct Routes {
    http: Level,
    tcp: Level,
    internal: Level,
}

impl Routes {
    fn tell(&self, page: &mut Page, name: &str, help: &str) {
        let kinds = [
            ("http", self.http.now()),
            ("tcp", self.tcp.now()),
            ("internal", self.internal.now()),
        ];
        page.family(Kind::Gauge, name, help, "kind", kinds);
    }
}

/// Messages by the kind of their routes.
#[derive(Debug, Default)]
pub(super) struct Messages {
    pub(super) http: Count,
    pub(super) internal: Count,
}

impl Messages {
    fn tell(&self, page: &mut Page, name: &str, help: &str) {
        let kinds = [("http", self.http.now()), ("internal", self.internal.now())];
        page.family(Kind::Counter, name, help, "kind", kinds);
    }
}

impl Metrics {
    /// Notes how many registrations there are.
    pub(super) fn table(&self, counts: Counts) {
        self.routes.http.set(counts.http as u64);
        self.routes.tcp.set(counts.tcp as u64);
        // An internal route has two names.
        self.routes.internal.set(2 * counts.internal as u64);
    }

    /// Notes a sync that succeeded.
    pub(super) fn synced(&self, took: Duration) {
        self.syncs.add(1);
        self.sync_time.add(took);
        self.last_sync.set(took);
    }

    /// Whether routers know of what there is.
    pub(super) fn is_ready(&self) -> bool {
        self.syncs.now() > 0 && self.connected.is_set()
    }

    /// The text form.
    pub(super) fn text(&self, calls: CallCounts) -> String {
        let mut page = Page::new();
        self.write(&mut page);
        page.family(
            Kind::Counter,
            "route_emitter_bbs_calls_total",
            "Calls of the BBS.",
            "outcome",
            [
                ("answered", calls.answered),
                ("refused", calls.refused),
                ("failed", calls.failed),
            ],
        );
        page.into_text()
    }
}
