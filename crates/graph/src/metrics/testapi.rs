//! The metrics of testapi (mcastelino/testapi, ce72104) under its names, for scripts and
//! dashboards that were made for it.
//!
//! Each service has its own three names, which begin with the service's. Differences:
//! what a metric's name cannot hold (a dash) becomes `_`, where testapi answers with an
//! empty page; work is timed by itself, where testapi's covers the call as well.

use std::collections::BTreeMap;
use std::sync::Arc;

use telemetry::prometheus::{Distribution, Page};

use super::bounds::{OPENCENSUS_MS, PRIME_MS};
use super::histogram::Times;
use super::snapshot::{Key, Snapshot};
use crate::Nanos;

const MS: Nanos = 1_000_000;

/// What a service's three histograms hold.
#[derive(Default)]
struct Service {
    server: Times,
    client: Times,
    prime: Times,
    busy: Times,
}

/// The page with the metrics of all services.
pub fn page(snapshot: &Snapshot) -> String {
    let mut services = BTreeMap::<Arc<str>, Service>::new();
    for (key, totals) in &snapshot.0 {
        let (service, pick): (_, fn(&mut Service) -> &mut Times) = match key {
            Key::Server { service, .. } => (service, |service| &mut service.server),
            Key::Client { from, .. } => (from, |service| &mut service.client),
            Key::Work { service, kind, .. } => match &**kind {
                "primes" => (service, |service| &mut service.prime),
                "cpu" => (service, |service| &mut service.busy),
                _ => continue,
            },
            Key::Connections { .. } => continue,
        };
        let service = services.entry(Arc::clone(service)).or_default();
        for times in totals.times.values() {
            pick(service).add(times);
        }
    }
    let mut page = Page::new();
    let mut names = std::collections::BTreeSet::new();
    for (name, service) in &services {
        // Two names may become one; a page with a metric twice is no page.
        let mut name = metric_name(name);
        while !names.insert(name.clone()) {
            name.push('_');
        }
        service.write(&name, &mut page);
    }
    page.into_text()
}

impl Service {
    fn write(&self, name: &str, page: &mut Page) {
        let http = [
            (
                "server",
                "Latency distribution of HTTP requests",
                &self.server,
            ),
            (
                "client",
                "End-to-end latency distribution of HTTP requests",
                &self.client,
            ),
        ];
        for (side, help, times) in http {
            // As there, what was never seen is not shown.
            if !times.is_empty() {
                let of = distribution(times, &OPENCENSUS_MS);
                let name = format!("{name}_opencensus_io_http_{side}_latency");
                page.histogram(&name, help, of.buckets, of.count, of.sum);
            }
        }
        let work = [("primeHandler", &self.prime), ("busyHandler", &self.busy)];
        let work = work.into_iter().filter(|(_, times)| !times.is_empty());
        let mut work = work
            .map(|(method, times)| ([method], distribution(times, &PRIME_MS)))
            .peekable();
        if work.peek().is_some() {
            let name = format!("{name}_prime_latency");
            page.histograms(&name, "Latency of the work", ["method"], work);
        }
    }
}

/// Milliseconds, as `OpenCensus` counts them.
fn distribution(times: &Times, bounds: &[Nanos]) -> Distribution {
    let buckets = bounds.iter().map(|ms| (*ms as f64, times.up_to(ms * MS)));
    Distribution {
        buckets: buckets.collect(),
        count: times.count(),
        sum: times.sum() as f64 / MS as f64,
    }
}

/// A service's name as the beginning of a metric's: `[a-zA-Z_][a-zA-Z0-9_]*`.
fn metric_name(service: &str) -> String {
    let fits = |character: char| character.is_ascii_alphanumeric();
    let name = service.chars();
    let name: String = name
        .map(|character| if fits(character) { character } else { '_' })
        .collect();
    match name.chars().next() {
        Some(first) if !first.is_ascii_digit() => name,
        _ => format!("_{name}"),
    }
}
