//! The numbers of a TCP router as a page for Prometheus.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use telemetry::prometheus::{Kind, Page};

use super::control::{Opened, Shown};
use crate::tcp::counters::{CONNECT_BOUNDS, Counters, End, PortCounters};

/// Ports with samples of their own: those with the most connections so far. The others
/// are told together, as `other`.
const MOST_PORTS: usize = 256;

/// The page's text.
pub(super) fn page(counters: &Counters, shown: &Shown) -> String {
    let of = |number: &AtomicU64| number.load(Relaxed);
    let ports = shown.ports();
    let unbound = ports.iter().filter(|opened| !opened.open).count();
    let mut page = Page::new();
    page.gauge(
        "tcp_router_sessions",
        "Connections of clients that are open.",
        of(&counters.active),
    )
    .counter(
        "tcp_router_sessions_total",
        "Connections of clients so far.",
        of(&counters.accepted),
    )
    .family(
        Kind::Counter,
        "tcp_router_sessions_ended_total",
        "Connections of clients that ended, by how.",
        "end",
        End::ALL.map(|end| (end.name(), counters.ends(end))),
    )
    .counter(
        "tcp_router_sent_bytes_total",
        "Bytes from clients to backends.",
        of(&counters.sent),
    )
    .counter(
        "tcp_router_received_bytes_total",
        "Bytes from backends to clients.",
        of(&counters.received),
    )
    .family(
        Kind::Counter,
        "tcp_router_dial_errors_total",
        "Attempts to reach a backend that failed, by cause.",
        "cause",
        counters.dial_errors(),
    )
    .counter(
        "tcp_router_held_back_total",
        "Times that a port was not accepted from because of a limit.",
        of(&counters.held_back),
    )
    .counter(
        "tcp_router_accept_errors_total",
        "Accepts that failed.",
        of(&counters.accept_errors),
    )
    .gauge(
        "tcp_router_ports",
        "Ports that should be open.",
        ports.len(),
    )
    .gauge(
        "tcp_router_unbound_ports",
        "Ports that could not be opened so far.",
        unbound,
    )
    .gauge(
        "tcp_router_routes",
        "Routes: pairs of a port and a name.",
        of(&shown.routes),
    )
    .gauge(
        "tcp_router_backends",
        "Backends of all routes.",
        of(&shown.backends),
    )
    .counter(
        "tcp_router_changes_total",
        "Changes taken from feeds.",
        of(&shown.changes),
    )
    .gauge(
        "tcp_router_ms_since_last_change",
        "Time since a feed told something, its whole lists included; 0 before the first.",
        match of(&shown.told_at) {
            0 => 0,
            at => wire::clock::now().saturating_sub(at) / 1_000_000,
        },
    )
    .counter(
        "tcp_router_skipped_mappings_total",
        "Mappings that cannot be used.",
        of(&shown.skipped),
    )
    .counter(
        "tcp_router_pruned_backends_total",
        "Backends that nobody refreshed.",
        of(&shown.pruned),
    );
    by_port(&mut page, ports);
    connect_times(&mut page, counters);
    page.into_text()
}

/// A metric of each port: name, help, and the number.
type PortMetric = (
    Kind,
    &'static str,
    &'static str,
    fn(&PortCounters) -> &AtomicU64,
);

const PORT_METRICS: [PortMetric; 5] = [
    (
        Kind::Gauge,
        "tcp_router_port_sessions",
        "Connections of clients that are open, by port.",
        |counters| &counters.active,
    ),
    (
        Kind::Counter,
        "tcp_router_port_sessions_total",
        "Connections of clients so far, by port.",
        |counters| &counters.accepted,
    ),
    (
        Kind::Counter,
        "tcp_router_port_sent_bytes_total",
        "Bytes from clients to backends, by port.",
        |counters| &counters.sent,
    ),
    (
        Kind::Counter,
        "tcp_router_port_received_bytes_total",
        "Bytes from backends to clients, by port.",
        |counters| &counters.received,
    ),
    (
        Kind::Counter,
        "tcp_router_port_dial_errors_total",
        "Attempts to reach a backend that failed, by port.",
        |counters| &counters.dial_errors,
    ),
];

fn by_port(page: &mut Page, mut ports: Vec<Opened>) {
    ports.sort_by_key(|opened| {
        let accepted = opened.port.counters.accepted.load(Relaxed);
        (std::cmp::Reverse(accepted), opened.port.number())
    });
    let (own, others) = ports.split_at(ports.len().min(MOST_PORTS));
    for (kind, name, help, number) in PORT_METRICS {
        let value = |opened: &Opened| number(&opened.port.counters).load(Relaxed);
        let single = own
            .iter()
            .map(|opened| (opened.port.number().to_string(), value(opened)));
        let rest = others.iter().map(value).sum();
        let rest = (!others.is_empty()).then(|| ("other".to_owned(), rest));
        page.family(kind, name, help, "port", single.chain(rest));
    }
}

fn connect_times(page: &mut Page, counters: &Counters) {
    let (counts, micros) = counters.connect_times();
    let mut below = 0;
    let buckets = CONNECT_BOUNDS.iter().zip(counts).map(|(bound, count)| {
        below += count;
        (*bound as f64 / 1e6, below)
    });
    page.histogram(
        "tcp_router_connect_seconds",
        "Time to reach a backend, TLS included.",
        buckets,
        counts.iter().sum(),
        micros as f64 / 1e6,
    );
}
