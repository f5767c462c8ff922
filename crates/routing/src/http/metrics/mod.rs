//! The router's metrics as a page for Prometheus.
//!
//! First the names of gorouter, as dashboards know them, then ours, which carry their
//! units. Requests are not counted by component; registrations are.

use telemetry::prometheus::{Distribution, Kind, Page};

use crate::http::app_latencies::BOUNDS;
use crate::http::counters::{HistogramTotal, Totals};
use crate::registry::RegistryTotals;
use crate::registry::counters::ComponentTotals;
use crate::registry::feed::FeedStats;

/// Content type of the page, as gorouter's.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores";

/// What is known at the moment of asking beside what the data path counts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Gauges {
    /// Routes of the table.
    pub routes: u64,
    /// Milliseconds since the table last changed.
    pub ms_since_update: Option<u64>,
    /// Descriptors that the process has open.
    pub descriptors: u64,
    /// Seconds since the process began.
    pub uptime_seconds: u64,
    /// Lines of the log that were dropped.
    pub log_drops: u64,
}

/// What the feeds have counted.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Registrations {
    /// Messages and what became of them.
    pub registry: RegistryTotals,
    /// Endpoints that were pruned while there was no NATS.
    pub pruned_without_nats: u64,
    /// NATS, as it is now.
    pub stats: FeedStats,
}

/// The whole page.
pub fn page(totals: &Totals, gauges: &Gauges, registrations: &Registrations) -> String {
    let mut page = Page::new();
    gorouters(&mut page, totals, gauges, registrations);
    by_application(&mut page, totals);
    ours(&mut page, totals, gauges, registrations);
    page.into_text()
}

/// gorouter's latencies by application, if they are asked for.
fn by_application(page: &mut Page, totals: &Totals) {
    if totals.apps.is_empty() {
        return;
    }
    let samples = totals.apps.iter().map(|(app, latency)| {
        let mut below = 0;
        let buckets = BOUNDS.iter().zip(latency.buckets).map(|(bound, count)| {
            below += count;
            (*bound as f64 / 1e9, below)
        });
        let distribution = Distribution {
            buckets: buckets.collect(),
            count: latency.count,
            sum: latency.sum as f64 / 1e9,
        };
        ([app], distribution)
    });
    page.histograms(
        "http_latency_seconds",
        "the latency of http requests from gorouter and back in sec",
        ["source_id"],
        samples,
    );
}

/// Names and help texts of gorouter, in the order of their names.
fn gorouters(page: &mut Page, totals: &Totals, gauges: &Gauges, feeds: &Registrations) {
    page.counter(
        "backend_exhausted_conns",
        "number of errors related to backend connection limit reached",
        totals.exhausted,
    )
    .counter(
        "backend_invalid_id",
        "number of bad backend id errors received from backends",
        totals.invalid_backend_id,
    )
    .counter(
        "backend_invalid_tls_cert",
        "number of tls certificate errors received from backends",
        totals.invalid_backend_certificate,
    )
    .counter(
        "backend_tls_handshake_failed",
        "number of backend handshake errors",
        totals.failed_handshakes,
    )
    .counter(
        "bad_gateways",
        "number of bad gateway errors received from backends",
        totals.bad_gateways,
    )
    .gauge(
        "buffered_messages",
        "number of buffered messages in NATS",
        feeds.stats.buffered_messages,
    )
    .counter(
        "empty_content_length_header",
        "number of requests with the empty content length header",
        totals.empty_content_length,
    )
    .gauge(
        "file_descriptors",
        "number of file descriptors found",
        gauges.descriptors,
    );
    histogram(
        page,
        "gorouter_time",
        "gorouter time per request in seconds",
        &totals.own_time,
        1e9,
    );
    histogram(
        page,
        "latency",
        "routing response latency in ms",
        &totals.latency,
        1e6,
    );
    page.gauge(
        "ms_since_last_registry_update",
        "time since last registry update in ms",
        gauges.ms_since_update.map_or(-1.0, |ms| ms as f64),
    )
    .table(
        Kind::Counter,
        "registry_message",
        "number of route registration messages",
        // In the order in which Prometheus' own library writes labels.
        ["action", "component"],
        feeds.registry.components.iter().flat_map(by_action),
    )
    .counter(
        "rejected_requests",
        "number of rejected requests",
        totals.rejected,
    )
    .family(
        Kind::Counter,
        "responses",
        "number of responses",
        "status_group",
        by_class(&totals.responses),
    )
    .family(
        Kind::Counter,
        "responses_route_services",
        "number of responses for route services",
        "status_group",
        by_class(&totals.responses_of_route_services),
    );
    histogram(
        page,
        "route_lookup_time",
        "route lookup time per request in ns",
        &totals.lookup_time,
        1.0,
    );
    histogram(
        page,
        "route_registration_latency",
        "route registration latency in ms",
        &feeds.registry.latency,
        1e6,
    );
    page.counter(
        "routes_pruned",
        "number of pruned routes",
        // Whatever it is called, gorouter counts the endpoints.
        feeds.registry.endpoints_pruned + feeds.pruned_without_nats,
    )
    .gauge(
        "total_dropped_messages",
        "number of total dropped messages in NATS",
        feeds.stats.dropped_messages,
    )
    .counter(
        "total_requests",
        "number of routing requests",
        totals.routed,
    )
    .gauge("total_routes", "number of total routes", gauges.routes)
    .family(
        Kind::Counter,
        "unregistry_message",
        "number of unregister messages",
        "component",
        feeds
            .registry
            .components
            .iter()
            .map(|of| (&of.component, of.unregistered)),
    )
    .counter(
        "websocket_failures",
        "websocket failure",
        totals.failed_upgrades,
    )
    .counter(
        "websocket_upgrades",
        "websocket upgrade to websocket",
        totals.upgrades,
    );
}

/// What gorouter does not tell.
fn ours(page: &mut Page, totals: &Totals, gauges: &Gauges, feeds: &Registrations) {
    page.gauge(
        "router_uptime_seconds",
        "Time since the process began.",
        gauges.uptime_seconds,
    );
    totals.add_ours(page);
    page.counter(
        "router_log_drops_total",
        "Lines of the log that were dropped because its reader was behind.",
        gauges.log_drops,
    )
    .counter(
        "router_registrations_refused_total",
        "Messages of the feeds that could not be read, and routes in them that name no host.",
        feeds.registry.invalid_messages + feeds.registry.invalid_routes,
    )
    .counter(
        "router_registrations_over_bound_total",
        "Registrations that were refused: there are as many routes, endpoints of their route, or endpoints in all, as there may be.",
        feeds.registry.refused,
    )
    .counter(
        "router_registration_lines_left_out_total",
        "Lines about registrations that were not logged, since too many came at once.",
        feeds.registry.lines_left_out,
    )
    .gauge(
        "router_nats_connected",
        "Whether NATS is connected.",
        u8::from(feeds.stats.connected),
    )
    .counter(
        "router_nats_reconnects_total",
        "Times that the connection to NATS was made again.",
        feeds.stats.reconnects,
    );
}

/// Registrations of a component by what became of them.
fn by_action(of: &ComponentTotals) -> [([&str; 2], u64); 4] {
    let component = &*of.component;
    [
        (["added", component], of.added),
        (["updated", component], of.updated),
        (["refreshed", component], of.refreshed),
        (["ignored", component], of.ignored),
    ]
}

/// Answers by class, with gorouter's labels.
fn by_class(responses: &[u64; 6]) -> [(&'static str, u64); 5] {
    [
        ("2xx", responses[2]),
        ("3xx", responses[3]),
        ("4xx", responses[4]),
        ("5xx", responses[5]),
        ("xxx", responses[0] + responses[1]),
    ]
}

/// A histogram whose nanoseconds are shown in a unit of so many nanoseconds.
fn histogram(page: &mut Page, name: &str, help: &str, of: &HistogramTotal, unit: f64) {
    let buckets = of
        .buckets
        .iter()
        .map(|(bound, below)| (*bound as f64 / unit, *below));
    page.histogram(name, help, buckets, of.count, of.sum as f64 / unit);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::counters::Counters;

    #[test]
    fn the_page_has_gorouters_names_and_ours() {
        let counters = Counters::new(1);
        let thread = counters.thread(0).unwrap();
        thread.requests.add(7);
        thread.routed.add(3);
        thread.responses[2].add(2);
        thread.latency.record(3_000_000);
        assert!(thread.apps.record(None, 150_000_000, 1));
        let registrations = Registrations {
            registry: RegistryTotals {
                components: vec![ComponentTotals {
                    component: "route-emitter".into(),
                    added: 5,
                    unregistered: 2,
                    ..ComponentTotals::default()
                }],
                endpoints_pruned: 3,
                ..RegistryTotals::default()
            },
            pruned_without_nats: 1,
            ..Registrations::default()
        };
        let gauges = Gauges {
            routes: 5,
            ..Gauges::default()
        };
        let page = page(&counters.totals(), &gauges, &registrations);
        for line in [
            "# HELP backend_exhausted_conns number of errors related to backend connection limit reached",
            "# TYPE gorouter_time histogram",
            "total_requests 3",
            "responses{status_group=\"2xx\"} 2",
            "registry_message{action=\"added\",component=\"route-emitter\"} 5",
            "unregistry_message{component=\"route-emitter\"} 2",
            "total_routes 5",
            "routes_pruned 4",
            "latency_bucket{le=\"2\"} 0",
            "latency_bucket{le=\"4\"} 1",
            "latency_sum 3",
            "http_latency_seconds_bucket{source_id=\"gorouter\",le=\"0.1\"} 0",
            "http_latency_seconds_bucket{source_id=\"gorouter\",le=\"0.2\"} 1",
            "http_latency_seconds_bucket{source_id=\"gorouter\",le=\"25.6\"} 1",
            "http_latency_seconds_sum{source_id=\"gorouter\"} 0.15",
            "router_nats_connected 0",
        ] {
            assert!(
                page.lines().any(|found| found == line),
                "no {line} in\n{page}"
            );
        }
        let mut names: Vec<&str> = page
            .lines()
            .filter_map(|line| line.strip_prefix("# TYPE "))
            .collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all, "a name appears twice");
    }
}
