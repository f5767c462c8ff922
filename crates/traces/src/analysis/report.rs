//! From ledgers to the answer.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::cause::Cause;
use super::evidence::Evidence;
use super::figures::{Figures, Latency, Measured, Scale, Sums};
use super::floor::Floor;
use super::forest::by_trace;
use super::ledger::{Ledger, Part};
use super::path::Unawaited;
use super::survey::{Accumulator, Survey};
use super::{Analysis, Conservation, Counts, Entered, Failures, Question};
use super::{concurrency, expected, revisions, sentences, suspects, tables};
use crate::Nanos;
use crate::{Name, Span};

/// Fewest requests of the newest revision; with fewer, one with most requests is looked at.
const FEWEST_OF_REVISION: usize = 30;

/// A service, a path and a revision.
type Key = (Name, Name, u32);

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
    /// Calls of a request on its critical path, both ways of which were seen, in the mean.
    pub hops: f64,
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

/// What two runs are compared by, beside their analyses.
pub(super) struct RunCourse {
    /// Latencies in the order of the requests' beginnings.
    pub(super) latencies: Vec<Nanos>,
    /// Work wherever it ran, on the critical path or not, in the mean.
    pub(super) done: Vec<(Part, f64)>,
}

/// The answer, and what runs are compared by.
pub(super) fn report(question: &Question<'_>, spans: &[Span]) -> (Analysis, RunCourse) {
    let unawaited = question.known.map(Unawaited::of).unwrap_or_default();
    let mut survey = Survey::of(spans, question.known, &unawaited);
    let entries = entries(&survey);
    let chosen = choose(&survey, &entries, question.path);
    let book = chosen.as_ref().and_then(|key| survey.books.remove(key));
    let book = book.unwrap_or_default();
    let ledger = &book.ledger;
    let others = chosen
        .as_ref()
        .map(|key| of_other_revisions(&mut survey, key));
    let others = others.unwrap_or_default();
    let mut measured = Measured::of(ledger);
    let own_spans = of_revision(spans, chosen.as_ref(), &others);
    let own_spans = match survey.twice {
        0 => own_spans,
        _ => Cow::Owned(once(&own_spans)),
    };
    let concurrency = concurrency::of(&own_spans, question.known);
    let floors = question.floors(ledger, &concurrency);

    let mut notes = Vec::new();
    let path = chosen.as_ref().map(|(_, path, _)| &**path);
    // What is expected is asked of the newest profile; an older one asked for something else.
    let revision = chosen.as_ref().map_or(0, |key| key.2);
    let newer = others.last().map(|(at, _)| *at).filter(|at| *at > revision);
    let budget = question.budget.zip(path).filter(|_| match newer {
        None => true,
        Some(newer) => {
            notes.push(format!(
                "No budget: it is that of revision {newer}, under which too few requests ran; these ran under an older profile."
            ));
            false
        }
    });
    let budget = budget.and_then(|(budget, path)| {
        let run = expected::run(budget, path, &floors, &unawaited);
        run.map_err(|error| notes.push(format!("No budget: {error}.")))
            .ok()
    });
    let parts = with_expected(ledger, &mut measured, budget.as_ref());
    let scale = measured.scale;

    let causes = causes(&parts, &scale);
    let mut analysis = Analysis {
        sentences: Vec::new(),
        suspects: Vec::new(),
        floors,
        unresolved_ns: 0.0,
        notes,
        revisions: revisions::all(chosen.as_ref().map(|key| key.2), &book, &others),
        entry: chosen.as_ref().and_then(|(service, path, _)| {
            let same = |one: &&Entered| *one.service == **service && *one.path == **path;
            entries.iter().find(same).cloned()
        }),
        other_entries: others_than(&entries, chosen.as_ref()),
        counts: counts(spans, &survey, &book),
        failures: failures(&book),
        latency: measured.latency,
        expected: budget.as_ref().map(|budget| Latency::of(&budget.totals)),
        tail: measured.tail,
        components: components(&parts, &scale),
        services: tables::services(&parts, &scale, ledger, question.known),
        edges: tables::edges(&parts, &scale, ledger, question.known),
        slack: tables::slack(ledger),
        concurrency,
        noise: question.noise.map(|noise| Floor::of(noise, &causes)),
        causes,
        conservation: Conservation {
            checked: ledger.totals.len() as u64,
            worst_ns: ledger.worst,
            broken: ledger.broken,
        },
    };
    let mut moved = Vec::new();
    let budget = budget.as_ref().filter(|budget| !budget.totals.is_empty());
    if let Some(evidence) = Evidence::of(ledger, budget, floors, question.known) {
        analysis.unresolved_ns = evidence.unresolved;
        (analysis.suspects, moved) = suspects::of(&evidence, &analysis);
    }
    let mut before = others.iter().rev().filter(|(at, _)| *at < revision);
    let changed = before.find_map(|(at, book)| revisions::Changed::of((*at, &book.ledger), ledger));
    if let Some(changed) = &changed {
        analysis.suspects.extend(changed.suspects());
    }
    sentences::add(&mut analysis, question, (moved, survey.beyond));
    if let Some(said) = revisions::sentence(&analysis, changed.as_ref()) {
        analysis.sentences.insert(0, said);
    }
    let done = ledger.done_parts.iter().cloned();
    let course = RunCourse {
        latencies: ledger.in_time(),
        done: done.zip(ledger.done_means()).collect(),
    };
    (analysis, course)
}

/// Where requests entered, under whichever revision; the most frequent first.
fn entries(survey: &Survey) -> Vec<Entered> {
    let mut all: BTreeMap<(&Name, &Name), u64> = BTreeMap::new();
    for ((service, path, _), book) in &survey.books {
        *all.entry((service, path)).or_default() += book.requests();
    }
    let all = all.into_iter().map(|((service, path), requests)| Entered {
        service: service.to_string(),
        path: path.to_string(),
        requests,
    });
    let mut all: Vec<Entered> = all.collect();
    all.sort_by_key(|one| Reverse(one.requests));
    all
}

/// The entry that is asked for, of several services the one with most requests; and the
/// newest revision under which enough of them ran.
fn choose(survey: &Survey, entries: &[Entered], path: Option<&str>) -> Option<Key> {
    let asked = |one: &&Entered| path.is_none_or(|path| *path == *one.path);
    let entry = entries.iter().find(asked)?;
    let books = survey.books.iter();
    let own = books
        .filter(|((service, path, _), _)| **service == *entry.service && **path == *entry.path);
    let enough = own
        .clone()
        .filter(|(_, book)| book.ledger.totals.len() >= FEWEST_OF_REVISION)
        .max_by_key(|((.., revision), _)| *revision);
    let most = || own.max_by_key(|((.., revision), book)| (book.requests(), *revision));
    enough.or_else(most).map(|(key, _)| key.clone())
}

/// Those that entered at the same place under other revisions; the oldest first.
fn of_other_revisions(survey: &mut Survey, chosen: &Key) -> Vec<(u32, Accumulator)> {
    let books = survey.books.extract_if(.., |(service, path, _), _| {
        *service == chosen.0 && *path == chosen.1
    });
    books
        .map(|((.., revision), book)| (revision, book))
        .collect()
}

/// Spans of the chosen revision, if there are several.
fn of_revision<'a>(
    spans: &'a [Span],
    chosen: Option<&Key>,
    others: &[(u32, Accumulator)],
) -> Cow<'a, [Span]> {
    match chosen {
        Some((.., revision)) if !others.is_empty() => {
            let own = spans.iter().filter(|span| span.revision == *revision);
            Cow::Owned(own.cloned().collect())
        }
        _ => Cow::Borrowed(spans),
    }
}

/// Each span once: who sends spans again does so after an answer that was lost.
fn once(spans: &[Span]) -> Vec<Span> {
    let mut order = by_trace(spans);
    order.dedup_by_key(|span| (span.trace, span.id));
    order.into_iter().cloned().collect()
}

fn others_than(entries: &[Entered], chosen: Option<&Key>) -> Vec<Entered> {
    let others = entries.iter().filter(|one| {
        chosen.is_none_or(|(service, path, _)| *one.service != **service || *one.path != **path)
    });
    others.cloned().collect()
}

fn counts(spans: &[Span], survey: &Survey, book: &Accumulator) -> Counts {
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

fn failures(book: &Accumulator) -> Vec<Failures> {
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
    let mut expected: HashMap<&Part, f64> = budget.parts.iter().zip(budget.means()).collect();
    for (part, sums) in &mut parts {
        sums.expected = expected.remove(part).unwrap_or(0.0);
    }
    // In the order of the budget, the same each time.
    let only_expected = budget.parts.iter().filter_map(|part| {
        let sums = Sums {
            expected: expected.remove(part)?,
            ..Sums::default()
        };
        Some((part.clone(), sums))
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
