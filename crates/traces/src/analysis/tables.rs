//! Services, edges and branches of a ledger.

use std::collections::{BTreeMap, HashMap};

use stats::nearest_rank;

use super::cause::Cause;
use super::figures::{Scale, Sums};
use super::known::Known;
use super::ledger::{Ledger, Part, Visits};
use super::report::{EdgeTime, ServiceTime, Slack};
use crate::Name;

type Causes = BTreeMap<&'static str, f64>;

#[derive(Default)]
struct Row {
    visits: Visits,
    sums: Sums,
    causes: Causes,
    arrivals: Sums,
}

impl Row {
    fn add(&mut self, cause: Cause, sums: &Sums) {
        self.sums = self.sums + *sums;
        *self.causes.entry(cause.name()).or_default() += sums.typical;
    }
}

/// Every service that was seen or expected.
pub(super) fn services(
    parts: &[(Part, Sums)],
    scale: &Scale,
    ledger: &Ledger,
    known: Option<&Known>,
) -> Vec<ServiceTime> {
    let mut rows: BTreeMap<Name, Row> = BTreeMap::new();
    for (service, visits) in ledger.services() {
        rows.entry(service).or_default().visits = visits;
    }
    for (part, sums) in parts {
        let arrives_at = match part.cause {
            Cause::WireOut => Some(&part.peer),
            Cause::WireBack => Some(&part.service),
            _ => None,
        };
        if let Some(service) = arrives_at {
            let row = rows.entry(service.clone()).or_default();
            row.arrivals = row.arrivals + *sums;
        }
        if part.peer.is_empty() {
            let row = rows.entry(part.service.clone()).or_default();
            row.add(part.cause, sums);
        }
    }
    let each = ledger.totals.len().max(1) as f64;
    let services = rows.into_iter().map(|(name, row)| ServiceTime {
        name: name.to_string(),
        visits: row.visits.count as f64 / each,
        on_path: row.visits.on_path as f64 / each,
        figures: scale.figures(&row.sums),
        causes: row.causes,
        arrivals: scale.figures(&row.arrivals),
    });
    let mut services: Vec<ServiceTime> = services.collect();
    if let Some(known) = known {
        let names = known.services.iter().map(|one| one.name.as_str());
        let places: HashMap<&str, usize> = names.zip(0..).collect();
        services.sort_by_key(|one| places.get(&*one.name).copied().unwrap_or(usize::MAX));
    }
    services
}

/// Every edge that was seen or expected.
pub(super) fn edges(
    parts: &[(Part, Sums)],
    scale: &Scale,
    ledger: &Ledger,
    known: Option<&Known>,
) -> Vec<EdgeTime> {
    let mut rows: BTreeMap<(Name, Name), Row> = BTreeMap::new();
    for (edge, visits) in ledger.edges() {
        rows.entry(edge).or_default().visits = visits;
    }
    for (part, sums) in parts.iter().filter(|(part, _)| !part.peer.is_empty()) {
        let edge = (part.service.clone(), part.peer.clone());
        rows.entry(edge).or_default().add(part.cause, sums);
    }
    let each = ledger.totals.len().max(1) as f64;
    let edges = rows.into_iter().map(|((from, to), row)| EdgeTime {
        id: format!("{from}>{to}"),
        from: from.to_string(),
        to: to.to_string(),
        calls: row.visits.count as f64 / each,
        on_path: row.visits.on_path as f64 / each,
        hops: row.visits.hops as f64 / each,
        figures: scale.figures(&row.sums),
        causes: row.causes,
    });
    let mut edges: Vec<EdgeTime> = edges.collect();
    if let Some(known) = known {
        let pairs = known.calls.iter();
        let pairs = pairs.map(|call| (call.from.as_str(), call.to.as_str()));
        let places: HashMap<(&str, &str), usize> = pairs.zip(0..).collect();
        edges.sort_by_key(|one| {
            let place = places.get(&(&*one.from, &*one.to));
            place.copied().unwrap_or(usize::MAX)
        });
    }
    edges
}

/// Every call and work that had company.
pub(super) fn slack(ledger: &Ledger) -> Vec<Slack> {
    let some = |name: Name| (!name.is_empty()).then(|| name.to_string());
    let all = ledger.branches().map(|((service, peer, work), standing)| {
        let count = standing.critical + standing.spare;
        let mean = |sum: f64, count: u64| (count > 0).then_some(sum / count as f64);
        let mut samples = standing.samples.clone();
        samples.sort_unstable();
        Slack {
            service: service.to_string(),
            peer: some(peer),
            work: some(work),
            count,
            critical: standing.critical as f64 / count.max(1) as f64,
            slack_mean_ns: mean(standing.slack, standing.spare),
            slack_p50_ns: nearest_rank(&samples, 0.5),
            alone_mean_ns: mean(standing.alone, standing.critical),
        }
    });
    let mut all: Vec<Slack> = all.collect();
    all.sort_by(|one, other| {
        let key = |one: &Slack| (one.service.clone(), one.peer.clone(), one.work.clone());
        key(one).cmp(&key(other))
    });
    all
}
