//! Requests that do the same things, apart from those that do others.
//!
//! Of requests to one path some may go through half of the system and others be answered at
//! once; taken together, what a fault does to the few is lost among the many. So requests are
//! grouped by where they entered and by which endpoints they reached, and each group is
//! analysed by itself.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display, Formatter};

use serde::Serialize;
use units::columns::table;
use units::{grouped, show_share};

use super::forest::{Tree, by_trace, traces};
use super::phrases::phrase;
use super::sentences::{percent, time, whole};
use super::{Analysis, Question};
use crate::{Name, Span, SpanKind};

/// Fewest requests of a group: of fewer, a percentile says nothing.
const FEWEST: usize = 10;

/// Most groups, the largest.
const MOST: usize = 24;

/// Endpoints that tell a group from the others are listed up to so many.
const LISTED: usize = 2;

/// A place that has this share of the time is told of.
const MUCH: f64 = 0.25;

/// Requests that entered at one place and reached the same endpoints.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Group {
    /// Where they entered.
    pub service: String,
    /// The path, or the name of the entry's span.
    pub path: String,
    /// Endpoints that they reached, the entry's included.
    pub endpoints: usize,
    /// What they reached that most others did not, `service name` each; empty: nothing.
    pub reaches: Vec<String>,
    /// How many.
    pub requests: u64,
    /// Of all requests, 0 to 1.
    pub share: f64,
    /// What their spans say.
    pub analysis: Analysis,
}

/// All requests, in groups.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Groups {
    /// The largest first.
    pub groups: Vec<Group>,
    /// Requests of all groups and of none.
    pub requests: u64,
    /// Requests that are like too few others.
    pub rare: u64,
    /// Traces without a root.
    pub without_root: u64,
}

type Endpoint = (Name, Name);

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    service: Name,
    path: Name,
    reached: Vec<Endpoint>,
}

impl Question<'_> {
    /// Answers it for each group of requests. The question's own path chooses the groups that
    /// entered there.
    pub fn analyse_groups(&self, spans: &[Span]) -> Groups {
        let entry = self.known.and_then(|known| known.entry.as_deref());
        let order = by_trace(spans);
        let mut tree = Tree::default();
        let mut found: BTreeMap<Key, Vec<&[&Span]>> = BTreeMap::new();
        let (mut requests, mut without_root) = (0, 0);
        for trace in traces(&order) {
            match tree.build(trace, entry) {
                None => without_root += 1,
                Some(root) => {
                    let key = key(&tree, root);
                    if self.path.is_none_or(|path| *path == *key.path) {
                        requests += 1;
                        found.entry(key).or_default().push(trace);
                    }
                }
            }
        }
        let reach = reach(&found);
        let mut found: Vec<_> = found.into_iter().collect();
        found.sort_by_key(|(_, traces)| std::cmp::Reverse(traces.len()));
        found.retain(|(_, traces)| traces.len() >= FEWEST);
        found.truncate(MOST);
        let groups: Vec<Group> = found
            .iter()
            .map(|(key, traces)| self.group(key, traces, &reach, requests))
            .collect();
        let grouped: u64 = groups.iter().map(|one| one.requests).sum();
        Groups {
            groups,
            requests,
            rare: requests - grouped,
            without_root,
        }
    }

    fn group(
        &self,
        key: &Key,
        traces: &[&[&Span]],
        reach: &BTreeMap<Endpoint, usize>,
        requests: u64,
    ) -> Group {
        let spans: Vec<Span> = traces
            .iter()
            .flat_map(|trace| trace.iter().copied().cloned())
            .collect();
        let mut rare: Vec<&Endpoint> = key.reached.iter().collect();
        let often = |one: &Endpoint| reach.get(one).copied().unwrap_or(0);
        // What most requests reach tells nobody apart.
        rare.retain(|one| often(one) * 2 <= usize::try_from(requests).unwrap_or(usize::MAX));
        rare.sort_by_key(|one| often(one));
        let reaches = rare.iter().take(LISTED);
        Group {
            service: key.service.to_string(),
            path: key.path.to_string(),
            endpoints: key.reached.len(),
            reaches: reaches
                .map(|(service, name)| format!("{service} {name}"))
                .collect(),
            requests: traces.len() as u64,
            share: traces.len() as f64 / requests.max(1) as f64,
            analysis: self.analyse(&spans),
        }
    }
}

fn key(tree: &Tree<'_>, root: usize) -> Key {
    let root = tree.node(root).span;
    let reached: BTreeSet<Endpoint> = tree
        .spans()
        .filter(|span| span.kind == SpanKind::Server)
        .map(|span| (span.service.clone(), span.name.clone()))
        .collect();
    Key {
        service: root.service.clone(),
        path: root.name.clone(),
        reached: reached.into_iter().collect(),
    }
}

/// How many requests reach each endpoint.
fn reach(found: &BTreeMap<Key, Vec<&[&Span]>>) -> BTreeMap<Endpoint, usize> {
    let mut reach = BTreeMap::new();
    for (key, traces) in found {
        for endpoint in &key.reached {
            *reach.entry(endpoint.clone()).or_default() += traces.len();
        }
    }
    reach
}

impl Group {
    fn name(&self) -> String {
        let reached = match (self.endpoints, self.reaches.is_empty()) {
            (0 | 1, _) => "reaching nothing else".to_owned(),
            (all, true) => format!("reaching {all} endpoints"),
            (all, false) => format!("reaching {all} endpoints, as {}", self.reaches.join(", ")),
        };
        format!("{} {}, {reached}", self.service, self.path)
    }

    /// Where most of the time goes, if one place has much of it.
    fn most(&self) -> Option<String> {
        let parts = self.analysis.components.iter();
        let most =
            parts.max_by(|one, other| one.figures.mean_ns.total_cmp(&other.figures.mean_ns))?;
        let share = most.figures.mean_ns / self.analysis.latency.mean_ns.max(1.0);
        let (phrase, length) = (phrase(most, &self.analysis), time(most.figures.mean_ns));
        (share >= MUCH).then(|| {
            format!(
                "The most of it, {length} in the mean ({}): {phrase}.",
                percent(share)
            )
        })
    }
}

impl Display for Groups {
    fn fmt(&self, text: &mut Formatter<'_>) -> fmt::Result {
        if self.requests == 0 {
            return writeln!(
                text,
                "There is no request: {} traces do not begin where requests enter.",
                grouped(self.without_root),
            );
        }
        if self.groups.is_empty() {
            return writeln!(
                text,
                "There are no {FEWEST} requests that do the same: {} requests, {} traces without a root.",
                grouped(self.requests),
                grouped(self.without_root),
            );
        }
        for (group, number) in self.groups.iter().zip(1..) {
            let (share, name) = (percent(group.share), group.name());
            writeln!(
                text,
                "{number}. {name}: {} requests, {share} of all",
                grouped(group.requests)
            )?;
            for sentence in &group.analysis.sentences {
                writeln!(text, "   {sentence}")?;
            }
            if let Some(most) = group.most() {
                writeln!(text, "   {most}")?;
            }
            for note in &group.analysis.notes {
                writeln!(text, "   Note: {note}")?;
            }
            writeln!(text)?;
        }
        let rows = self.groups.iter().zip(1..).map(|(group, number)| {
            let (latency, failed) = (&group.analysis.latency, group.analysis.counts.failed);
            vec![
                number.to_string(),
                grouped(group.requests),
                show_share(failed as f64 / group.requests.max(1) as f64),
                whole(Some(latency.p50_ns)),
                whole(latency.p90_ns),
                whole(latency.p99_ns),
                group
                    .analysis
                    .suspects
                    .first()
                    .map_or_else(|| "-".to_owned(), |one| one.place.clone()),
            ]
        });
        let heads = [
            "group", "requests", "failed", "p50", "p90", "p99", "suspect",
        ];
        table(text, &heads, &rows.collect::<Vec<_>>())?;
        if self.rare > 0 {
            writeln!(
                text,
                "\n{} requests are like fewer than {FEWEST} others, or beyond the {MOST} largest groups: they are in none.",
                grouped(self.rare)
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::SuspectKind;
    use crate::analysis::blame::shop::{Fault, US, run};

    #[test]
    fn requests_that_reach_other_endpoints_are_apart_and_none_is_lost() {
        let spans = run(1, 1_000, Fault::default());
        let found = Question::default().analyse_groups(&spans);
        let groups: Vec<_> = found
            .groups
            .iter()
            .map(|one| (one.requests, one.endpoints))
            .collect();
        assert_eq!(groups, [(960, 3), (40, 5)]);
        assert_eq!(found.groups[0].reaches, [""; 0]);
        assert_eq!(found.groups[1].reaches, ["order /order", "pay /pay"]);
        assert_eq!(
            (found.requests, found.rare, found.without_root),
            (1_000, 0, 0)
        );
        let text = found.to_string();
        assert!(text.contains("2. front /front, reaching 5 endpoints, as order /order, pay /pay: 40 requests, 4 % of all"), "{text}");
    }

    #[test]
    fn what_slows_four_requests_in_a_hundred_is_said_of_those() {
        let network = Some(("pay", 60_000 * US));
        let spans = run(
            2,
            1_000,
            Fault {
                network,
                ..Fault::default()
            },
        );
        let found = Question::default().analyse_groups(&spans);
        let text = found.to_string();
        let few = &found.groups[1];
        assert!(
            few.most().unwrap().contains("`order` to `pay`")
                || few.most().unwrap().contains("`pay` to `order`"),
            "{text}"
        );
        assert!(
            few.analysis
                .suspects
                .iter()
                .all(|one| one.kind != SuspectKind::Stall || one.place == "pay"),
            "{text}"
        );
        assert!(
            !found.groups[0].analysis.sentences.concat().contains("pay"),
            "{text}"
        );
    }

    #[test]
    fn rare_requests_and_none_are_told() {
        let spans = run(3, 120, Fault::default());
        let found = Question::default().analyse_groups(&spans);
        assert_eq!(
            (found.groups.len(), found.requests, found.rare),
            (1, 120, 5)
        );
        let none = Question::default().analyse_groups(&[]).to_string();
        assert!(none.starts_with("There is no request: 0 traces"), "{none}");
        let elsewhere = Question {
            path: Some("/other"),
            ..Question::default()
        };
        assert_eq!(elsewhere.analyse_groups(&spans).requests, 0);
    }
}
