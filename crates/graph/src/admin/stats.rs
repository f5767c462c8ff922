//! What services and edges did in the last seconds, as JSON.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::Nanos;
use crate::metrics::{Key, Times, Totals, Window, cause_name};

/// The answer of `/stats`.
#[derive(Debug, Serialize)]
pub(super) struct Stats {
    at_unix_ms: u64,
    /// How long a time it covers.
    seconds: f64,
    revision: u32,
    services: Vec<ServiceStats>,
    edges: Vec<EdgeStats>,
}

/// Times of answers that are no failures.
#[derive(Debug, Serialize)]
struct Latency {
    count: u64,
    mean_ns: Option<Nanos>,
    p50_ns: Option<Nanos>,
    p90_ns: Option<Nanos>,
    p99_ns: Option<Nanos>,
}

#[derive(Debug, Default, Serialize)]
struct ServiceStats {
    name: String,
    rate: f64,
    errors: f64,
    dropped: f64,
    in_flight: u64,
    connections: u64,
    queue_ns: Option<Nanos>,
    latency: Option<Latency>,
    work: Vec<WorkStats>,
}

#[derive(Debug, Serialize)]
struct WorkStats {
    step: u32,
    kind: String,
    rate: f64,
    failures: f64,
    wall: Option<Latency>,
    cpu_ns: Option<Nanos>,
    stolen_ns: Option<Nanos>,
    queue_ns: Option<Nanos>,
}

#[derive(Debug, Serialize)]
struct EdgeStats {
    id: String,
    from: String,
    to: String,
    rate: f64,
    errors: f64,
    retries: f64,
    in_flight: u64,
    waiting: u64,
    open: u64,
    opened: f64,
    queue_ns: Option<Nanos>,
    latency: Option<Latency>,
    causes: BTreeMap<&'static str, u64>,
}

impl Stats {
    pub(super) fn new(window: &Window, revision: u32, at_unix_ms: u64) -> Self {
        let per_second = |count: u64| match window.seconds {
            seconds if seconds > 0.0 => count as f64 / seconds,
            _ => 0.0,
        };
        let mut services = BTreeMap::<&str, ServiceStats>::new();
        let mut requests = BTreeMap::<&str, Totals>::new();
        let mut edges = Vec::new();
        for (key, totals) in &window.totals.0 {
            match key {
                Key::Connections { service } => {
                    services.entry(service).or_default().connections = totals.open;
                }
                Key::Server { service, .. } => requests.entry(service).or_default().add(totals),
                Key::Client { from, to } => edges.push(edge(from, to, totals, per_second)),
                Key::Work {
                    service,
                    step,
                    kind,
                } => {
                    let work = work(*step, kind, totals, per_second);
                    services.entry(service).or_default().work.push(work);
                }
            }
        }
        for (name, totals) in requests {
            let service = services.entry(name).or_default();
            let (good, bad) = (totals.good(), totals.bad().count());
            let answered = good.count() + bad;
            service.rate = per_second(answered + totals.dropped);
            service.errors = per_second(bad + totals.dropped);
            service.dropped = per_second(totals.dropped);
            service.in_flight = totals.in_flight;
            service.queue_ns = totals.queue.checked_div(answered);
            service.latency = latency(&good);
        }
        let services = services.into_iter().map(|(name, of)| ServiceStats {
            name: name.to_owned(),
            ..of
        });
        Self {
            at_unix_ms,
            seconds: window.seconds,
            revision,
            services: services.collect(),
            edges,
        }
    }
}

fn latency(times: &Times) -> Option<Latency> {
    (!times.is_empty()).then(|| Latency {
        count: times.count(),
        mean_ns: times.mean(),
        p50_ns: times.quantile(0.5),
        p90_ns: times.quantile(0.9),
        p99_ns: times.quantile(0.99),
    })
}

fn edge(from: &str, to: &str, totals: &Totals, per_second: impl Fn(u64) -> f64) -> EdgeStats {
    let (good, bad) = (totals.good(), totals.bad().count());
    let causes = totals.failures.iter();
    EdgeStats {
        id: format!("{from}>{to}"),
        from: from.to_owned(),
        to: to.to_owned(),
        rate: per_second(totals.attempts),
        errors: per_second(bad),
        retries: per_second(totals.retries),
        in_flight: totals.in_flight,
        waiting: totals.waiting,
        open: totals.open,
        opened: per_second(totals.opened),
        queue_ns: totals.queue.checked_div(good.count() + bad),
        latency: latency(&good),
        causes: causes
            .map(|(cause, count)| (cause_name(*cause), *count))
            .collect(),
    }
}

fn work(step: u32, kind: &str, totals: &Totals, per_second: impl Fn(u64) -> f64) -> WorkStats {
    let done = totals.good();
    let count = done.count();
    WorkStats {
        step,
        kind: kind.to_owned(),
        rate: per_second(count),
        failures: per_second(totals.failures.values().sum()),
        wall: latency(&done),
        cpu_ns: totals.cpu.checked_div(count),
        stolen_ns: totals.stolen.checked_div(count),
        queue_ns: totals.queue.checked_div(count),
    }
}
