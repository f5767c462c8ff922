//! From ledgers to the answer.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::cause::Cause;
use super::figures::{Figures, Measured, Scale, Sums};
use super::floor::Floor;
use super::ledger::{Ledger, Part};
use super::path::Unawaited;
use super::survey::{Book, Survey};
use super::{Analysis, Conservation, Counts, Entered, Failures, Question};
use super::{concurrency, expected, sentences, tables};
use crate::Nanos;
use crate::trace::{Name, Span};

/// A cause over all services.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CauseTime {
    /// Which.
    pub cause: Cause,
    /// How much.
    #[serde(flatten)]
    pub figures: Figures,
}

/// A place and a cause: the smallest part of a request's time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Component {
    /// The service; of an edge, the caller.
    pub service: String,
    /// Of an edge, who is called.
    pub peer: Option<String>,
    /// The kind of work.
    pub work: Option<String>,
    /// Why.
    pub cause: Cause,
    /// How much.
    #[serde(flatten)]
    pub figures: Figures,
}

/// What a service adds by itself, without what it calls and without the wire.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ServiceTime {
    /// Its name.
    pub name: String,
    /// How often a request comes to it.
    pub visits: f64,
    /// Share of the requests whose critical path it is on.
    pub on_path: f64,
    /// How much.
    #[serde(flatten)]
    pub figures: Figures,
    /// By cause, over typical requests, in nanoseconds.
    pub causes: BTreeMap<&'static str, f64>,
    /// What was on its way to it: requests from its callers and answers from those it
    /// calls. A service that does not run when it should shows here as well as above.
    pub arrivals: Figures,
}

/// What calls from one service to another add, without the callee.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EdgeTime {
    /// `root>price`.
    pub id: String,
    /// Who calls.
    pub from: String,
    /// Who is called.
    pub to: String,
    /// Attempts for each request.
    pub calls: f64,
    /// Share of the requests whose critical path it is on.
    pub on_path: f64,
    /// How much.
    #[serde(flatten)]
    pub figures: Figures,
    /// By cause, over typical requests, in nanoseconds.
    pub causes: BTreeMap<&'static str, f64>,
}

/// How a call or work stood to what ran beside it. Those without company are not here.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Slack {
    /// Whose step it is.
    pub service: String,
    /// Who is called.
    pub peer: Option<String>,
    /// The kind of work.
    pub work: Option<String>,
    /// How often it had company.
    pub count: u64,
    /// How often it was the one that the others waited for, as a share of that.
    pub critical: f64,
    /// When not: how much longer it could have taken without harm, at least.
    pub slack_mean_ns: Option<f64>,
    /// Its median.
    pub slack_p50_ns: Option<Nanos>,
    /// When so: how long all others had ended before.
    pub alone_mean_ns: Option<f64>,
}

/// The answer, and the latencies in the order of the requests' beginnings.
pub(super) fn report(question: &Question<'_>, spans: &[Span]) -> (Analysis, Vec<Nanos>) {
    let unawaited = question.topology.map(Unawaited::of).unwrap_or_default();
    let mut survey = Survey::of(spans, question.topology, &unawaited);
    let chosen = choose(&survey, question.path);
    let book = chosen.as_ref().and_then(|key| survey.books.remove(key));
    let book = book.unwrap_or_default();
    let ledger = &book.ledger;
    let mut measured = Measured::of(ledger);

    let mut notes = Vec::new();
    let path = chosen.as_ref().map(|(_, path)| &**path);
    let budget = question.topology.zip(path).and_then(|(topology, path)| {
        let run = expected::run(topology, path, &question.costs, &unawaited);
        run.map_err(|error| notes.push(format!("No budget: {error}.")))
            .ok()
    });
    let parts = with_expected(ledger, &mut measured, budget.as_ref());
    let scale = measured.scale;

    let causes = causes(&parts, &scale);
    let mut analysis = Analysis {
        sentences: Vec::new(),
        notes,
        entry: chosen.as_ref().map(|key| entered(key, &book)),
        other_entries: others(&survey),
        counts: counts(spans, &survey, &book),
        failures: failures(&book),
        latency: measured.latency,
        expected: budget.as_ref().map(expected::latency),
        tail: measured.tail,
        components: components(&parts, &scale),
        services: tables::services(&parts, &scale, ledger, question.topology),
        edges: tables::edges(&parts, &scale, ledger, question.topology),
        slack: tables::slack(ledger),
        concurrency: concurrency::of(spans, question.topology),
        noise: question.noise.map(|noise| Floor::of(noise, &causes)),
        causes,
        conservation: Conservation {
            checked: ledger.totals.len() as u64,
            worst_ns: ledger.worst,
            broken: ledger.broken,
        },
    };
    sentences::add(&mut analysis, question, survey.beyond);
    (analysis, ledger.in_time())
}

/// The entry that is asked for: of several services the one with most requests.
fn choose(survey: &Survey, path: Option<&str>) -> Option<(Name, Name)> {
    let asked = |(_, own): &(Name, Name)| path.is_none_or(|path| *path == **own);
    let books = survey.books.iter().filter(|(key, _)| asked(key));
    let most = books.max_by_key(|(key, book)| (book.requests(), Reverse(*key)));
    most.map(|(key, _)| key.clone())
}

fn entered((service, path): &(Name, Name), book: &Book) -> Entered {
    Entered {
        service: service.to_string(),
        path: path.to_string(),
        requests: book.requests(),
    }
}

fn others(survey: &Survey) -> Vec<Entered> {
    let all = survey.books.iter();
    let mut all: Vec<Entered> = all.map(|(key, book)| entered(key, book)).collect();
    all.sort_by_key(|one| Reverse(one.requests));
    all
}

fn counts(spans: &[Span], survey: &Survey, book: &Book) -> Counts {
    Counts {
        spans: spans.len() as u64,
        traces: survey.traces,
        analysed: book.ledger.totals.len() as u64,
        failed: book.failed(),
        incomplete: book.ledger.incomplete,
        without_root: survey.without_root,
        unused_spans: survey.unused,
        moved_spans: book.ledger.moved,
    }
}

fn failures(book: &Book) -> Vec<Failures> {
    let all = book
        .failures
        .iter()
        .map(|((place, cause), requests)| Failures {
            place: place.clone(),
            cause,
            requests: *requests,
        });
    let mut all: Vec<_> = all.collect();
    all.sort_by_key(|one| Reverse(one.requests));
    all
}

/// Parts of what was seen and of what was expected, together.
fn with_expected(
    ledger: &Ledger,
    measured: &mut Measured,
    budget: Option<&Ledger>,
) -> Vec<(Part, Sums)> {
    let seen = ledger.parts.iter().cloned();
    let mut parts: Vec<(Part, Sums)> = seen.zip(measured.sums.iter().copied()).collect();
    let Some(budget) = budget.filter(|budget| !budget.totals.is_empty()) else {
        return parts;
    };
    measured.scale.expected = true;
    let mut means = vec![0.0; budget.parts.len()];
    for at in 0..budget.totals.len() {
        for (part, length) in budget.request(at) {
            means[*part as usize] += *length as f64 / budget.totals.len() as f64;
        }
    }
    let mut expected: HashMap<&Part, f64> = budget.parts.iter().zip(means).collect();
    for (part, sums) in &mut parts {
        sums.expected = expected.remove(part).unwrap_or(0.0);
    }
    let only_expected = expected.into_iter().map(|(part, mean)| {
        let sums = Sums {
            expected: mean,
            ..Sums::default()
        };
        (part.clone(), sums)
    });
    parts.extend(only_expected);
    parts
}

fn causes(parts: &[(Part, Sums)], scale: &Scale) -> Vec<CauseTime> {
    let all = Cause::ALL.into_iter().filter_map(|cause| {
        let mut own = parts.iter().filter(|(part, _)| part.cause == cause);
        let (_, first) = own.next()?;
        let sums = own.fold(*first, |sum, (_, more)| sum + *more);
        Some(CauseTime {
            cause,
            figures: scale.figures(&sums),
        })
    });
    all.collect()
}

/// What adds most to the tail first; without a tail, what adds most.
fn components(parts: &[(Part, Sums)], scale: &Scale) -> Vec<Component> {
    let some = |name: &Name| (!name.is_empty()).then(|| name.to_string());
    let all = parts.iter().map(|(part, sums)| Component {
        service: part.service.to_string(),
        peer: some(&part.peer),
        work: some(&part.work),
        cause: part.cause,
        figures: scale.figures(sums),
    });
    let mut all: Vec<Component> = all.collect();
    all.sort_by(|one, other| {
        let rank = |one: &Component| one.figures.above_ns.unwrap_or(one.figures.mean_ns);
        let names = |one: &Component| (one.service.clone(), one.peer.clone(), one.cause);
        rank(other)
            .total_cmp(&rank(one))
            .then_with(|| names(one).cmp(&names(other)))
    });
    all
}
