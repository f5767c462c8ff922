//! What the emitter counts, and its text form for Prometheus.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use diego::CallCounts;
use telemetry::prometheus::{Kind, Page};

use super::table::Counts;

/// Everything that is counted since the start, and what is so now.
#[derive(Debug, Default)]
pub(super) struct Metrics {
    /// Registrations in the table, by kind.
    http: AtomicU64,
    tcp: AtomicU64,
    internal: AtomicU64,
    /// Routes that were told because something changed.
    pub(super) registered: AtomicU64,
    pub(super) unregistered: AtomicU64,
    /// Routes that were told again in a round.
    pub(super) repeated: AtomicU64,
    pub(super) unregistered_again: AtomicU64,
    pub(super) remembered: AtomicU64,
    /// Messages that NATS took.
    pub(super) http_messages: AtomicU64,
    pub(super) internal_messages: AtomicU64,
    /// Messages that it did not: it was away, or too slow.
    pub(super) dropped_messages: AtomicU64,
    pub(super) collisions: AtomicU64,
    pub(super) rounds: AtomicU64,
    pub(super) syncs: AtomicU64,
    pub(super) failed_syncs: AtomicU64,
    sync_nanoseconds: AtomicU64,
    last_sync_nanoseconds: AtomicU64,
    pub(super) events: AtomicU64,
    pub(super) tcp_calls: AtomicU64,
    pub(super) failed_tcp_calls: AtomicU64,
    pub(super) tcp_waiting: AtomicU64,
    pub(super) synced: AtomicBool,
    pub(super) subscribed: AtomicBool,
    pub(super) connected: AtomicBool,
    pub(super) lock_held: AtomicBool,
}

impl Metrics {
    /// Notes how many registrations there are.
    pub(super) fn table(&self, counts: Counts) {
        let gauges = [&self.http, &self.tcp, &self.internal];
        // An internal route has two names.
        let counts = [counts.http, counts.tcp, 2 * counts.internal];
        for (gauge, count) in gauges.into_iter().zip(counts) {
            gauge.store(count as u64, Relaxed);
        }
    }

    /// Notes a sync that succeeded.
    pub(super) fn synced(&self, took: Duration) {
        let nanoseconds = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.syncs.fetch_add(1, Relaxed);
        self.sync_nanoseconds.fetch_add(nanoseconds, Relaxed);
        self.last_sync_nanoseconds.store(nanoseconds, Relaxed);
        self.synced.store(true, Relaxed);
    }

    /// Whether routers know of what there is.
    pub(super) fn is_ready(&self) -> bool {
        self.synced.load(Relaxed) && self.connected.load(Relaxed)
    }

    /// The text form.
    pub(super) fn text(&self, calls: CallCounts) -> String {
        let mut page = Page::new();
        self.routes(&mut page);
        self.messages(&mut page);
        self.bbs(&mut page, calls);
        page.into_text()
    }

    fn routes(&self, page: &mut Page) {
        let now = |count: &AtomicU64| count.load(Relaxed);
        page.family(
            Kind::Gauge,
            "route_emitter_routes",
            "Routes in the table, once for each instance.",
            "kind",
            [
                ("http", now(&self.http)),
                ("tcp", now(&self.tcp)),
                ("internal", now(&self.internal)),
            ],
        )
        .counter(
            "route_emitter_routes_registered_total",
            "Routes that were registered because something changed.",
            now(&self.registered),
        )
        .counter(
            "route_emitter_routes_unregistered_total",
            "Routes that were unregistered.",
            now(&self.unregistered),
        )
        .counter(
            "route_emitter_routes_synced_total",
            "Routes that were registered again in a round.",
            now(&self.repeated),
        )
        .counter(
            "route_emitter_rounds_total",
            "Rounds in which everything was registered again.",
            now(&self.rounds),
        )
        .counter(
            "route_emitter_unregistrations_repeated_total",
            "Unregistrations that were sent again.",
            now(&self.unregistered_again),
        )
        .gauge(
            "route_emitter_unregistrations_remembered",
            "Unregistrations that will be sent again.",
            now(&self.remembered),
        )
        .counter(
            "route_emitter_address_collisions_total",
            "Instances that came to an address which another one still had.",
            now(&self.collisions),
        );
    }

    fn messages(&self, page: &mut Page) {
        let now = |count: &AtomicU64| count.load(Relaxed);
        page.family(
            Kind::Counter,
            "route_emitter_nats_messages_total",
            "Messages that were given to NATS.",
            "kind",
            [
                ("http", now(&self.http_messages)),
                ("internal", now(&self.internal_messages)),
            ],
        )
        .counter(
            "route_emitter_nats_messages_dropped_total",
            "Messages that were not sent because NATS was away or slow; all is sent when it is back.",
            now(&self.dropped_messages),
        )
        .gauge(
            "route_emitter_nats_connected",
            "Whether NATS is connected.",
            u8::from(self.connected.load(Relaxed)),
        )
        .counter(
            "route_emitter_routing_api_calls_total",
            "Calls of the routing API.",
            now(&self.tcp_calls),
        )
        .counter(
            "route_emitter_routing_api_calls_failed_total",
            "Calls of the routing API that failed.",
            now(&self.failed_tcp_calls),
        )
        .gauge(
            "route_emitter_routing_api_waiting",
            "TCP routes that wait for the routing API.",
            now(&self.tcp_waiting),
        );
    }

    fn bbs(&self, page: &mut Page, calls: CallCounts) {
        let now = |count: &AtomicU64| count.load(Relaxed);
        let seconds = |count: &AtomicU64| Duration::from_nanos(now(count)).as_secs_f64();
        page.counter(
            "route_emitter_syncs_total",
            "Syncs with the BBS that succeeded.",
            now(&self.syncs),
        )
        .counter(
            "route_emitter_syncs_failed_total",
            "Syncs with the BBS that failed.",
            now(&self.failed_syncs),
        )
        .counter(
            "route_emitter_sync_seconds_sum",
            "Time spent on syncs that succeeded.",
            seconds(&self.sync_nanoseconds),
        )
        .gauge(
            "route_emitter_sync_last_seconds",
            "Time that the last sync took.",
            seconds(&self.last_sync_nanoseconds),
        )
        .counter(
            "route_emitter_events_total",
            "Events of the BBS that concern routes.",
            now(&self.events),
        )
        .gauge(
            "route_emitter_events_subscribed",
            "Whether events of the BBS come in.",
            u8::from(self.subscribed.load(Relaxed)),
        )
        .family(
            Kind::Counter,
            "route_emitter_bbs_calls_total",
            "Calls of the BBS.",
            "outcome",
            [
                ("answered", calls.answered),
                ("refused", calls.refused),
                ("failed", calls.failed),
            ],
        )
        .gauge(
            "route_emitter_lock_held",
            "Whether this one is active: it holds the lock, or needs none.",
            u8::from(self.lock_held.load(Relaxed)),
        );
    }
}
