//! The page of metrics, in Prometheus' text form.

use std::sync::Arc;

use telemetry::prometheus::{Distribution, Kind, Page};

use super::bounds::{SHOWN_US, US};
use super::histogram::Times;
use super::snapshot::{Key, Snapshot, Totals, cause_name, class_name};
use crate::Nanos;
use crate::trace::{Format, TracerCounts};

/// The path of requests that no endpoint takes.
const ELSEWHERE: &str = "other";

/// The page of what services have counted, and of what became of their spans. More can be
/// added to it.
pub fn page(snapshot: &Snapshot, tracer: Option<&TracerCounts>) -> Page {
    let mut page = Page::new();
    servers(&mut page, &rows(snapshot, server));
    clients(&mut page, &rows(snapshot, client));
    works(&mut page, &rows(snapshot, work));
    connections(&mut page, &rows(snapshot, connection));
    if let Some(counts) = tracer {
        spans(&mut page, counts);
    }
    page
}

/// Labels, and the totals that they are about.
type Row<'a, const N: usize> = ([Arc<str>; N], &'a Totals);

fn rows<const N: usize>(
    snapshot: &Snapshot,
    labels: impl Fn(&Key) -> Option<[Arc<str>; N]>,
) -> Vec<Row<'_, N>> {
    let all = snapshot.0.iter();
    all.filter_map(|(key, totals)| Some((labels(key)?, totals)))
        .collect()
}

fn server(key: &Key) -> Option<[Arc<str>; 2]> {
    let Key::Server { service, path } = key else {
        return None;
    };
    let path = path.clone().unwrap_or_else(|| ELSEWHERE.into());
    Some([Arc::clone(service), path])
}

fn client(key: &Key) -> Option<[Arc<str>; 2]> {
    let Key::Client { from, to } = key else {
        return None;
    };
    Some([Arc::clone(from), format!("{from}>{to}").into()])
}

fn work(key: &Key) -> Option<[Arc<str>; 3]> {
    let Key::Work {
        service,
        step,
        kind,
    } = key
    else {
        return None;
    };
    Some([
        Arc::clone(service),
        Arc::clone(kind),
        step.to_string().into(),
    ])
}

fn connection(key: &Key) -> Option<[Arc<str>; 1]> {
    let Key::Connections { service } = key else {
        return None;
    };
    Some([Arc::clone(service)])
}

/// Seconds of nanoseconds.
fn seconds(time: Nanos) -> f64 {
    time as f64 / 1e9
}

fn distribution(times: &Times) -> Distribution {
    Distribution {
        buckets: SHOWN_US
            .iter()
            .map(|bound| bound * US)
            .map(|bound| (seconds(bound), times.up_to(bound)))
            .collect(),
        count: times.count(),
        sum: seconds(times.sum()),
    }
}

/// Rows, with the text of one more label, and something that was counted.
fn split<'a, T: 'a>(
    rows: &'a [Row<'a, 2>],
    parts: impl Fn(&'a Totals) -> Vec<(&'static str, T)> + 'a,
) -> impl Iterator<Item = ([Arc<str>; 3], T)> + 'a {
    rows.iter().flat_map(move |([first, second], totals)| {
        let parts = parts(totals).into_iter();
        parts.map(|(third, part)| ([Arc::clone(first), Arc::clone(second), third.into()], part))
    })
}

fn by_status(totals: &Totals) -> Vec<(&'static str, Distribution)> {
    let times = totals.times.iter();
    times
        .map(|(class, times)| (class_name(*class), distribution(times)))
        .collect()
}

fn by_cause(totals: &Totals) -> Vec<(&'static str, u64)> {
    let failures = totals.failures.iter();
    failures
        .map(|(cause, count)| (cause_name(*cause), *count))
        .collect()
}

/// A number of totals: how it is called, what it is, and where it stands. What only grows is
/// called a total.
type Number = (&'static str, &'static str, fn(&Totals) -> f64);

fn numbers<const N: usize, const NUMBERS: usize>(
    page: &mut Page,
    labels: [&str; N],
    rows: &[Row<'_, N>],
    numbers: [Number; NUMBERS],
) {
    for (name, help, value) in numbers {
        let kind = match name.ends_with("_total") {
            true => Kind::Counter,
            false => Kind::Gauge,
        };
        let samples = rows.iter().map(|(of, totals)| (of.clone(), value(totals)));
        page.table(kind, name, help, labels, samples);
    }
}

fn servers(page: &mut Page, rows: &[Row<'_, 2>]) {
    page.histograms(
        "headroom_graph_server_request_seconds",
        "Time from a request's first byte to the end of its answer, by service, path and class of status.",
        ["service", "path", "status"],
        split(rows, by_status),
    );
    page.table(
        Kind::Counter,
        "headroom_graph_server_failures_total",
        "Answers that are failures, by cause.",
        ["service", "path", "cause"],
        split(rows, by_cause),
    );
    let all: [Number; 3] = [
        (
            "headroom_graph_server_dropped_total",
            "Requests whose connection closed before an answer.",
            |totals| totals.dropped as f64,
        ),
        (
            "headroom_graph_server_queue_seconds_total",
            "Time that requests waited to be looked at.",
            |totals| seconds(totals.queue),
        ),
        (
            "headroom_graph_server_in_flight",
            "Requests under way.",
            |totals| totals.in_flight as f64,
        ),
    ];
    numbers(page, ["service", "path"], rows, all);
}

fn clients(page: &mut Page, rows: &[Row<'_, 2>]) {
    page.histograms(
        "headroom_graph_client_request_seconds",
        "Time of an attempt of a call, by caller, edge and class of status; none: there was no answer.",
        ["service", "edge", "status"],
        split(rows, by_status),
    );
    page.table(
        Kind::Counter,
        "headroom_graph_client_failures_total",
        "Attempts that failed, by cause.",
        ["service", "edge", "cause"],
        split(rows, by_cause),
    );
    let all: [Number; 7] = [
        (
            "headroom_graph_client_attempts_total",
            "Attempts of calls.",
            |totals| totals.attempts as f64,
        ),
        (
            "headroom_graph_client_retries_total",
            "Attempts after the first.",
            |totals| totals.retries as f64,
        ),
        (
            "headroom_graph_client_queue_seconds_total",
            "Time until a connection was free and made.",
            |totals| seconds(totals.queue),
        ),
        (
            "headroom_graph_client_connections_opened_total",
            "Connections that were begun.",
            |totals| totals.opened as f64,
        ),
        (
            "headroom_graph_client_connections",
            "Connections that are open.",
            |totals| totals.open as f64,
        ),
        (
            "headroom_graph_client_in_flight",
            "Attempts under way.",
            |totals| totals.in_flight as f64,
        ),
        (
            "headroom_graph_client_waiting",
            "Calls that wait for a connection.",
            |totals| totals.waiting as f64,
        ),
    ];
    numbers(page, ["service", "edge"], rows, all);
}

fn works(page: &mut Page, rows: &[Row<'_, 3>]) {
    let labels = ["service", "work", "step"];
    let times = rows.iter().filter_map(|(of, totals)| {
        let times = totals.times.get(&2)?;
        Some((of.clone(), distribution(times)))
    });
    page.histograms(
        "headroom_graph_work_seconds",
        "Time that a piece of work took, by service, kind and step.",
        labels,
        times,
    );
    let all: [Number; 4] = [
        (
            "headroom_graph_work_cpu_seconds_total",
            "Processor time that work used.",
            |totals| seconds(totals.cpu),
        ),
        (
            "headroom_graph_work_stolen_seconds_total",
            "Time in which work could run and others had the processor.",
            |totals| seconds(totals.stolen),
        ),
        (
            "headroom_graph_work_queue_seconds_total",
            "Time that work waited for a worker.",
            |totals| seconds(totals.queue),
        ),
        (
            "headroom_graph_work_failures_total",
            "Work that could not be done.",
            |totals| totals.failures.values().sum::<u64>() as f64,
        ),
    ];
    numbers(page, labels, rows, all);
}

fn connections(page: &mut Page, rows: &[Row<'_, 1>]) {
    let all: [Number; 2] = [
        (
            "headroom_graph_server_connections_accepted_total",
            "Connections of clients that were accepted.",
            |totals| totals.opened as f64,
        ),
        (
            "headroom_graph_server_connections",
            "Connections of clients that are open.",
            |totals| totals.open as f64,
        ),
    ];
    numbers(page, ["service"], rows, all);
}

fn spans(page: &mut Page, counts: &TracerCounts) {
    let store = counts.store;
    for (name, help, value) in [
        (
            "headroom_graph_spans_recorded_total",
            "Spans that this process recorded.",
            counts.recorded,
        ),
        (
            "headroom_graph_spans_dropped_total",
            "Spans that were dropped because collecting was behind.",
            counts.dropped,
        ),
        (
            "headroom_graph_spans_stored_total",
            "Spans that came into the store, from here and from others.",
            store.received,
        ),
        (
            "headroom_graph_spans_refused_total",
            "Spans that the store dropped because their trace had too many.",
            store.dropped,
        ),
        (
            "headroom_graph_spans_forgotten_total",
            "Spans that the store forgot to make room.",
            store.forgotten,
        ),
    ] {
        page.counter(name, help, value);
    }
    page.gauge(
        "headroom_graph_stored_spans",
        "Spans in the store.",
        store.spans,
    );
    page.gauge(
        "headroom_graph_stored_traces",
        "Traces in the store.",
        store.traces,
    );
    page.gauge(
        "headroom_graph_stored_bytes",
        "Bytes of the spans in the store.",
        store.bytes,
    );
    let exports = || {
        let exports = counts.exports.iter();
        exports.map(|counts| {
            let format = match counts.export.format {
                Format::Zipkin => "zipkin",
                Format::Otlp => "otlp",
            };
            ([format.to_owned(), counts.export.shown()], counts)
        })
    };
    page.table(
        Kind::Counter,
        "headroom_graph_spans_exported_total",
        "Spans that a collector took.",
        ["format", "target"],
        exports().map(|(of, counts)| (of, counts.sent)),
    );
    page.table(
        Kind::Counter,
        "headroom_graph_spans_export_dropped_total",
        "Spans that were not sent: a collector was too slow, or refused them.",
        ["format", "target"],
        exports().map(|(of, counts)| (of, counts.dropped)),
    );
    page.table(
        Kind::Counter,
        "headroom_graph_spans_export_failures_total",
        "Posts to a collector that failed.",
        ["format", "target"],
        exports().map(|(of, counts)| (of, counts.failures)),
    );
}
