//! Numbers about the service, in Prometheus' text form.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use telemetry::prometheus::Page;

/// Counters of a routing API.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    pub(crate) requests: AtomicU64,
    pub(crate) token_errors: AtomicU64,
    pub(crate) events: AtomicU64,
    pub(crate) slow_subscribers: AtomicU64,
}

/// What is measured at the moment of asking.
pub(crate) struct Gauges {
    pub(crate) tcp_routes: usize,
    pub(crate) http_routes: usize,
    pub(crate) router_groups: usize,
    pub(crate) tcp_subscriptions: usize,
    pub(crate) http_subscriptions: usize,
    pub(crate) writer: commit::Counts,
    pub(crate) database_up: bool,
}

impl Metrics {
    pub(crate) fn add(counter: &AtomicU64, more: u64) {
        counter.fetch_add(more, Relaxed);
    }

    /// The page. Names end as those that routing-api sends to statsd do, where it has them.
    pub(crate) fn page(&self, gauges: &Gauges) -> String {
        let mut page = Page::new();
        let writer = gauges.writer;
        for (name, help, value) in [
            ("routing_api_tcp_routes", "TCP mappings.", gauges.tcp_routes),
            (
                "routing_api_http_routes",
                "HTTP routes.",
                gauges.http_routes,
            ),
            (
                "routing_api_router_groups",
                "Router groups.",
                gauges.router_groups,
            ),
            (
                "routing_api_tcp_subscriptions",
                "Subscribers to TCP events.",
                gauges.tcp_subscriptions,
            ),
            (
                "routing_api_http_subscriptions",
                "Subscribers to HTTP events.",
                gauges.http_subscriptions,
            ),
            (
                "routing_api_queued_calls",
                "Calls that wait for the writer.",
                writer.queued,
            ),
            (
                "routing_api_database_up",
                "1 while the database can be used.",
                usize::from(gauges.database_up),
            ),
        ] {
            page.gauge(name, help, value);
        }
        for (name, help, counter) in [
            (
                "routing_api_requests_total",
                "Requests answered.",
                self.requests.load(Relaxed),
            ),
            (
                "routing_api_token_errors_total",
                "Requests whose token was refused.",
                self.token_errors.load(Relaxed),
            ),
            (
                "routing_api_commits_total",
                "Transactions, failed ones included.",
                writer.commits + writer.failed,
            ),
            (
                "routing_api_failed_commits_total",
                "Transactions that the database refused.",
                writer.failed,
            ),
            (
                "routing_api_events_total",
                "Changes of rows, told or not.",
                self.events.load(Relaxed),
            ),
            (
                "routing_api_slow_subscribers_total",
                "Subscribers cut off because they were too slow.",
                self.slow_subscribers.load(Relaxed),
            ),
        ] {
            page.counter(name, help, counter);
        }
        page.counter(
            "routing_api_commit_seconds_total",
            "Time spent on transactions.",
            writer.committing.as_secs_f64(),
        );
        page.into_text()
    }
}
