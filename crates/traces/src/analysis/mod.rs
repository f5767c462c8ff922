//! Where the latency of requests goes, and why.
//!
//! Spans come in, of any number of requests and in any order; data comes out. Each request
//! that succeeded is taken apart along its critical path ([`critical_path`]) into
//! [`Component`]s that add up to its latency, to the nanosecond. Components of requests are
//! then averaged: over all, over those around the median, and over those around the p99.
//! The difference of the last two says what the tail is made of. (Percentiles of parts
//! cannot do that: they do not add up.) Failed requests are counted and nothing else.
//!
//! What the requests would take without contention, taken apart by the same procedure, stands
//! beside what was seen; so does the machine's own noise.

mod blame;
mod cause;
mod compare;
mod concurrency;
mod critical;
mod evidence;
mod expected;
mod figures;
mod floor;
mod floors;
mod forest;
mod groups;
mod known;
mod ledger;
mod path;
mod phrases;
mod report;
mod resample;
mod revisions;
mod sentences;
mod survey;
mod suspects;
mod tables;
#[cfg(test)]
mod tests;
mod text;

use serde::Serialize;

use crate::Span;

pub use blame::Culprit;
pub use cause::Cause;
pub use compare::{
    Change, Comparison, Failing, Moved, PartChange, Run, Verdict, compare, entered_paths,
    shared_path,
};
pub use concurrency::{Concurrency, ConcurrencyLimit};
pub use critical::{Segment, critical_path};
pub use figures::{FEWEST, Figures, Latency, Tail, quantile};
pub use floor::{Floor, Noise};
pub use floors::{Floors, Measure};
pub use groups::{Group, Groups};
pub use known::{Budget, Known, KnownCall, KnownService};
pub use path::TOLERANCE;
pub use report::{CauseTime, Component, EdgeTime, ServiceTime, Slack};
pub use revisions::Revision;
pub use suspects::{Suspect, SuspectKind};

/// What is asked of spans.
#[derive(Debug, Clone, Copy, Default)]
pub struct Question<'a> {
    /// What is known of the system beside its spans.
    pub known: Option<&'a Known>,
    /// What its requests would take without contention.
    pub budget: Option<&'a dyn Budget>,
    /// The machine's floor.
    pub noise: Option<&'a Noise>,
    /// What hops, handling and handing over took when the machine was asked for nothing else:
    /// a run that is much slower in all places is held to this.
    pub machine: Option<&'a Floors>,
    /// The path of the requests that are looked at; `None`: that of most of them.
    pub path: Option<&'a str>,
}

impl Question<'_> {
    /// Answers it. Time grows with the number of spans, a microsecond or so each.
    pub fn analyse(&self, spans: &[Span]) -> Analysis {
        report::report(self, spans).0
    }

    /// What the machine takes of every request.
    fn floors(&self, ledger: &ledger::Ledger, concurrency: &[Concurrency]) -> Floors {
        let adds_time = |name: &str| {
            let known = self.known.map(|known| known.service(name));
            known.is_some_and(|known| known.is_some_and(|one| one.adds_time))
        };
        let is_machine = |part: &ledger::Part| match part.cause {
            Cause::Queue => !suspects::is_full(concurrency, &part.service),
            Cause::Own => !adds_time(&part.service),
            _ => true,
        };
        let slow = Floors::of_slow_machine();
        Floors::of(ledger, &is_machine).at_most(self.machine.unwrap_or(&slow))
    }
}

/// Analyses spans of which nothing else is known.
pub fn analyse(spans: &[Span]) -> Analysis {
    Question::default().analyse(spans)
}

/// Where requests entered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Entered {
    /// The service; the client, where that has spans of its own.
    pub service: String,
    /// The path.
    pub path: String,
    /// How many, with those that failed.
    pub requests: u64,
}

/// What was looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Spans that came in.
    pub spans: u64,
    /// Traces, of all entries.
    pub traces: u64,
    /// Requests of the entry that succeeded: everything but `failures` is of them.
    pub analysed: u64,
    /// Requests of the entry that failed.
    pub failed: u64,
    /// Analysed requests of which spans were missing or came twice.
    pub incomplete: u64,
    /// Traces that do not begin where requests enter.
    pub without_root: u64,
    /// Spans below a missing one, or that came twice, of all traces.
    pub unused_spans: u64,
    /// Server spans that were moved because another clock gave their times.
    pub moved_spans: u64,
}

/// Requests that failed in the same way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failures {
    /// The innermost that failed for a reason of its own: an edge `root>store`, a service, a
    /// service and its work.
    pub place: String,
    /// Why.
    pub cause: &'static str,
    /// How many.
    pub requests: u64,
}

/// Whether components added up.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Conservation {
    /// Requests.
    pub checked: u64,
    /// The largest difference between a request and the sum of its components.
    pub worst_ns: u64,
    /// Requests with a difference above 1 µs and 0.1 %.
    pub broken: u64,
}

/// The answer. Its text is for a terminal, its JSON for the page.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Analysis {
    /// What arose where and why, in plain words.
    pub sentences: Vec<String>,
    /// Who is behind it: each is above what the machine does to all, whatever stretch of the
    /// run is looked at. Nobody: no single place is to blame.
    pub suspects: Vec<Suspect>,
    /// What hops, handling and handing over take here.
    pub floors: Floors,
    /// What the mean of a request scatters by that: a smaller surplus is none.
    pub unresolved_ns: f64,
    /// What keeps the figures from saying more.
    pub notes: Vec<String>,
    /// Where the requests entered; `None`: there were none.
    pub entry: Option<Entered>,
    /// How requests fared under each revision of the profile, the oldest first; empty if all
    /// ran under one. Everything else is of the newest one under which enough ran.
    pub revisions: Vec<Revision>,
    /// Where others entered, which are not looked at; the most frequent first.
    pub other_entries: Vec<Entered>,
    /// What was looked at.
    pub counts: Counts,
    /// Failed requests, the most frequent first.
    pub failures: Vec<Failures>,
    /// How long requests took.
    pub latency: Latency,
    /// How long they would have, without contention.
    pub expected: Option<Latency>,
    /// How the tail stands to the typical requests.
    pub tail: Option<Tail>,
    /// Causes over all services, those with time only.
    pub causes: Vec<CauseTime>,
    /// Every part, the largest in the tail first.
    pub components: Vec<Component>,
    /// Services, in the order of the topology or of their names.
    pub services: Vec<ServiceTime>,
    /// Edges, likewise.
    pub edges: Vec<EdgeTime>,
    /// How siblings that ran at once stood to each other.
    pub slack: Vec<Slack>,
    /// What went on at once.
    pub concurrency: Vec<Concurrency>,
    /// The machine's floor beside what was seen.
    pub noise: Option<Floor>,
    /// Whether components added up.
    pub conservation: Conservation,
}
