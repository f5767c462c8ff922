//! What the figures say, in plain words.

use units::{grouped, show_count, show_seconds, show_share};

use super::cause::Cause;
use super::figures::Figures;
use super::known::Known;
use super::phrases::{is_held_back, phrase};
use super::report::{Component, Slack};
use super::suspects::{Suspect, SuspectKind};
use super::{Analysis, Question};
use crate::Nanos;

/// Parts of the median below this share are said together.
pub(super) const WORTH_SAYING: f64 = 0.01;

/// What parts of the median leave unsaid is said from this share of it on, and from this
/// length on, in nanoseconds: less is what sums of floating point leave.
const WORTH_ADDING: (f64, f64) = (0.001, 1.0);

/// Parts of the tail below this share are not said.
pub(super) const WORTH_SAYING_OF_TAIL: f64 = 0.1;

/// A budget that is kept to within this share is kept.
const AS_EXPECTED: f64 = 0.05;

/// A length of time; what is less than a tenth of a nanosecond is what sums leave.
pub(super) fn time(nanos: f64) -> String {
    let nanos = (nanos * 10.0).round() / 10.0;
    match nanos < 0.0 {
        true => format!("−{}", show_seconds(-nanos / 1e9)),
        false => show_seconds(nanos / 1e9),
    }
}

/// A percentage without digits that nobody needs.
pub(super) fn percent(share: f64) -> String {
    show_share((share * 100.0).round() / 100.0)
}

pub(super) fn add(
    analysis: &mut Analysis,
    question: &Question<'_>,
    (moved, beyond): (Vec<String>, u64),
) {
    notes(analysis, question, beyond);
    if analysis.latency.count == 0 {
        analysis.sentences.push(nothing(analysis, question.known));
    } else {
        let mut said = vec![typical(analysis, question.known)];
        said.extend(budget(analysis));
        said.extend(tail(analysis, question.known));
        let suspects = analysis.suspects.iter();
        let sentences = suspects.map(|one| one.sentence.clone());
        said.extend(sentences.filter(|one| !one.is_empty()));
        said.extend(moved);
        said.extend(floor(analysis));
        said.extend(branches(analysis));
        said.extend(limits(analysis));
        analysis.sentences = said;
    }
    analysis.sentences.extend(failed(analysis));
}

/// Why there is no latency.
fn nothing(analysis: &Analysis, known: Option<&Known>) -> String {
    let untraced = known
        .and_then(|one| one.sampled)
        .is_some_and(|share| share <= 0.0);
    let why = match (analysis.counts.traces, analysis.counts.failed) {
        (0, _) if untraced => "No request is traced: `sample` is 0 %. Raise it, and ask again.",
        (0, _) => "There are no traces yet. Send requests to the entry, and ask again.",
        (_, 0) => "No trace is of a request to the entry, so there is no latency to explain.",
        _ => "No request succeeded, so there is no latency to explain.",
    };
    why.to_owned()
}

/// What the median is made of.
fn typical(analysis: &Analysis, known: Option<&Known>) -> String {
    let of = |cause: Cause| {
        let found = analysis.causes.iter().find(|one| one.cause == cause);
        found.map_or(0.0, |one| one.figures.typical_ns)
    };
    let hops: f64 = analysis.edges.iter().map(|edge| edge.hops).sum();
    let wire = of(Cause::WireOut) + of(Cause::WireBack);
    let in_hops = match hops >= 1.5 {
        true => format!(
            "in {} hops ({} each)",
            show_count((hops * 10.0).round() / 10.0),
            time(wire / hops)
        ),
        false => "in one hop".to_owned(),
    };
    let components = analysis.components.iter();
    let held_back: f64 = components
        .filter(|one| is_held_back(one, known, one.figures.typical_ns))
        .map(|one| one.figures.typical_ns)
        .sum();
    let phrases = [
        (of(Cause::Cpu), "work as asked"),
        (of(Cause::Sleep), "asleep as asked"),
        (of(Cause::Stolen), "in which others had the processor"),
        (of(Cause::Wait), "waiting for locks, disks or programs"),
        (of(Cause::Queue), "in queues"),
        (wire, &in_hops),
        (of(Cause::Backoff), "pausing before calling again"),
        (
            of(Cause::Retry) + of(Cause::Timeout) + of(Cause::Drop),
            "in calls that failed and were made again",
        ),
        (of(Cause::Sibling), "in which own work kept answers waiting"),
        (of(Cause::Unseen), "in calls whose callee left no span"),
        (held_back, "held back by profiles"),
        (of(Cause::Own) - held_back, "of the services' own handling"),
    ];
    let whole: f64 = phrases.iter().map(|(length, _)| length).sum();
    let mut worth: Vec<_> = phrases
        .iter()
        .filter(|(length, _)| *length >= (whole * WORTH_SAYING).max(WORTH_ADDING.1))
        .collect();
    worth.sort_by(|one, other| other.0.total_cmp(&one.0));
    let said: f64 = worth.iter().map(|(length, _)| length).sum();
    let mut parts: Vec<String> = worth
        .iter()
        .map(|(length, phrase)| format!("{} {phrase}", time(*length)))
        .collect();
    let unsaid = whole - said;
    if unsaid >= (whole * WORTH_ADDING.0).max(WORTH_ADDING.1) {
        parts.push(format!("{} elsewhere", time(unsaid)));
    }
    let p50 = time(analysis.latency.p50_ns as f64);
    match parts.is_empty() {
        true => format!("p50 {p50}."),
        false => format!("p50 {p50}: {}.", parts.join(", ")),
    }
}

/// How what was seen stands to what was expected.
fn budget(analysis: &Analysis) -> Option<String> {
    let expected = analysis.expected.as_ref().filter(|one| one.count > 0)?;
    let (seen, budget) = (analysis.latency.mean_ns, expected.mean_ns);
    let surplus = seen - budget;
    let begin = format!(
        "The mean is {}; without contention it would be {}",
        time(seen),
        time(budget)
    );
    let kept = (budget * AS_EXPECTED).max(analysis.unresolved_ns);
    if surplus.abs() <= kept {
        return Some(format!("{begin}, so the budget is kept."));
    }
    let by = time(surplus.abs());
    let begin = match surplus < 0.0 {
        true => format!("{begin}. It is {by} faster than expected"),
        false => format!("{begin}. The surplus is {by}"),
    };
    let mut surpluses: Vec<(&Component, f64)> = analysis
        .components
        .iter()
        .filter_map(|one| Some((one, one.figures.surplus_ns?)))
        .filter(|(_, more)| more.signum() == surplus.signum())
        .filter(|(_, more)| more.abs() >= surplus.abs() * WORTH_SAYING_OF_TAIL)
        .filter(|(one, _)| surplus < 0.0 || is_suspect(one, analysis))
        .collect();
    surpluses.sort_by(|one, other| other.1.abs().total_cmp(&one.1.abs()));
    let named = surpluses.iter().take(3);
    let named: Vec<String> = named
        .map(|(one, more)| format!("{} {}", time(more.abs()), phrase(one, analysis)))
        .collect();
    if !named.is_empty() {
        return Some(format!("{begin}: of it {}.", named.join(", ")));
    }
    let least = match surplus > 0.0 {
        true => surplus * WORTH_SAYING_OF_TAIL,
        false => f64::INFINITY,
    };
    let causes = by_cause(analysis, |one| one.surplus_ns, least);
    let causes = causes.iter().take(4);
    let causes = causes.map(|(cause, more)| format!("{} {}", time(*more), cause.name()));
    Some(nobody(&begin, &causes.collect::<Vec<_>>()))
}

/// What is at least so much of causes, the largest first.
fn by_cause(
    analysis: &Analysis,
    of: impl Fn(&Figures) -> Option<f64>,
    least: f64,
) -> Vec<(Cause, f64)> {
    let causes = analysis.causes.iter();
    let causes = causes.filter_map(|one| Some((one.cause, of(&one.figures)?)));
    let mut causes: Vec<_> = causes.filter(|(_, part)| *part >= least).collect();
    causes.sort_by(|one, other| other.1.total_cmp(&one.1));
    causes
}

/// That no single place is to blame, and what causes take all together.
fn nobody(begin: &str, causes: &[String]) -> String {
    let together = match causes.is_empty() {
        true => String::new(),
        false => format!(" (all together {})", causes.join(", ")),
    };
    format!("{begin}; no single place stands out{together}.")
}

/// Whether a part is one of somebody who is suspected.
fn is_suspect(one: &Component, analysis: &Analysis) -> bool {
    let peer = one.peer.as_deref().unwrap_or("");
    let work = one.work.as_deref().unwrap_or("");
    let mut suspects = analysis.suspects.iter();
    suspects.any(|suspect| suspect.has(&one.service, peer, work, one.cause))
}

/// Whether a part varies because it was asked to.
fn varies_as_asked(one: &Component, analysis: &Analysis, known: Option<&Known>) -> bool {
    let tail = one.figures.tail_ns.unwrap_or(0.0);
    let asked = matches!(one.cause, Cause::Cpu | Cause::Sleep) && analysis.expected.is_some();
    asked || is_held_back(one, known, tail)
}

/// What the tail is made of.
fn tail(analysis: &Analysis, known: Option<&Known>) -> Option<String> {
    let tail = analysis.tail.as_ref()?;
    let name = match tail.quantile >= 0.99 {
        true => "p99",
        false => "p90",
    };
    let begin = format!(
        "{name} {} is {} above p50",
        time(tail.quantile_ns as f64),
        time(tail.above_ns)
    );
    if tail.difference_ns <= 0.0 {
        return Some(format!("{begin}."));
    }
    let share = |one: &Component| one.figures.tail_share.unwrap_or(0.0);
    let of_whole = |one: &Component| {
        let length = one.figures.tail_ns.unwrap_or(0.0);
        match is_held_back(one, known, length) {
            true => format!("`{}` held back by its profile", one.service),
            false => phrase(one, analysis),
        }
    };
    let large = analysis.components.iter();
    let large = large.filter(|one| share(one) >= WORTH_SAYING_OF_TAIL);
    let large =
        large.filter(|one| is_suspect(one, analysis) || varies_as_asked(one, analysis, known));
    let parts: Vec<String> = large
        .take(4)
        .enumerate()
        .map(|(at, one)| {
            let of_that = if at == 0 { " of that is" } else { "" };
            // Where others take less than usual, one can take more than all.
            let share = match share(one) {
                share if share > 1.0 => "more than all".to_owned(),
                share => percent(share),
            };
            format!("{share}{of_that} {}", of_whole(one))
        })
        .collect();
    if !parts.is_empty() {
        return Some(format!("{begin}: {}.", parts.join(", ")));
    }
    let causes = by_cause(analysis, |one| one.tail_share, WORTH_SAYING_OF_TAIL);
    let causes = causes.iter();
    let causes = causes.map(|(cause, share)| format!("{} {}", percent(*share), cause.name()));
    Some(nobody(&begin, &causes.collect::<Vec<_>>()))
}

/// The machine's noise. Of requests without work it takes wake-ups alone.
fn floor(analysis: &Analysis) -> Option<String> {
    let floor = analysis.noise.as_ref()?;
    let work = match floor.expected_ns.max(floor.stolen_ns) < WORTH_ADDING.1 {
        true => String::new(),
        false => format!(
            "This machine alone takes {} of a spinning thread's time, so about {} of a request's work; {} was taken. ",
            show_share(floor.noise.lost_share),
            time(floor.expected_ns),
            time(floor.stolen_ns),
        ),
    };
    Some(format!(
        "{work}A sleep on this machine alone ends {} late (p99 {}), and every hop has such wake-ups.",
        time(floor.noise.wake_p50_ns as f64),
        time(floor.noise.wake_p99_ns as f64),
    ))
}

/// Whether what a service does is a stretch of another system, of which only the name is known.
fn is_span(analysis: &Analysis, service: &str, work: &str) -> bool {
    let mut its = analysis
        .components
        .iter()
        .filter(|one| one.service == service && one.work.as_deref() == Some(work));
    its.any(|one| one.cause == Cause::Own)
}

/// The branch that all others wait for longest.
fn branches(analysis: &Analysis) -> Option<String> {
    let requests = analysis.latency.count.max(1) as f64;
    // Over all requests: what ran beside another one now and then costs little.
    let cost =
        |one: &Slack| one.alone_mean_ns.unwrap_or(0.0) * one.critical * one.count as f64 / requests;
    let most = analysis
        .slack
        .iter()
        .map(|one| (one, cost(one)))
        .max_by(|one, other| one.1.total_cmp(&other.1))?;
    let (one, cost) = most;
    if cost < analysis.latency.mean_ns * WORTH_SAYING {
        return None;
    }
    let what = match (&one.peer, &one.work) {
        (Some(peer), _) => format!("its call of `{peer}`"),
        (None, Some(work)) if is_span(analysis, &one.service, work) => format!("its span `{work}`"),
        (None, Some(work)) => format!("its {work} work"),
        (None, None) => "one of its branches".to_owned(),
    };
    Some(format!(
        "Of branches at once, `{}` waits for {what} in {} of all cases, by {} longer than for the next.",
        one.service,
        percent(one.critical),
        time(one.alone_mean_ns.unwrap_or(0.0)),
    ))
}

/// Limits that show, of those who are suspected of them.
fn limits(analysis: &Analysis) -> Vec<String> {
    let limited = |suspect: &&Suspect| {
        matches!(
            suspect.kind,
            SuspectKind::Workers | SuspectKind::Connections
        )
    };
    let found = analysis.suspects.iter().filter(limited).filter_map(|suspect| {
        let limit = match suspect.kind {
            SuspectKind::Workers => format!("workers of {}", suspect.place),
            _ => format!("connections of {}", suspect.place),
        };
        let mut all = analysis.concurrency.iter();
        let (one, plateau) = all.find_map(|one| {
            let plateau = one.plateau.as_ref()?;
            (plateau.limit == limit).then_some((one, plateau))
        })?;
        let allowed = match plateau.allowed {
            Some(allowed) => format!(" (the profile allows {allowed})"),
            None => String::new(),
        };
        Some(format!(
            "`{}` is held up by a limit: {limit}. Never more than {} at once{allowed}, that many in {} of its busy time, and one waits {} in the mean.",
            one.service,
            plateau.level,
            percent(plateau.share),
            time(plateau.wait_ns),
        ))
    });
    found.collect()
}

fn failed(analysis: &Analysis) -> Option<String> {
    let counts = &analysis.counts;
    let first = analysis.failures.first()?;
    Some(format!(
        "{} of {} requests failed, {} of them at {} ({}); they are in no latency here.",
        grouped(counts.failed),
        grouped(counts.failed + counts.analysed),
        grouped(first.requests),
        first.place,
        first.cause,
    ))
}

/// What keeps the figures from saying more.
fn notes(analysis: &mut Analysis, question: &Question<'_>, beyond: u64) {
    let counts = &analysis.counts;
    let mut notes = Vec::new();
    let count = analysis.latency.count;
    match count {
        0 => {}
        1..100 => notes.push(format!(
            "n too small: {count} requests give no p90 (100) and no tail."
        )),
        100..1_000 => notes.push(format!(
            "n too small: {count} requests give no p99 (1,000); the tail here is that of p90."
        )),
        1_000..10_000 => notes.push(format!(
            "n too small for p99.9: {} requests of 10,000.",
            grouped(count)
        )),
        _ => {}
    }
    let mut say = |number: u64, text: &str| {
        if number > 0 {
            notes.push(format!("{} {text}", grouped(number)));
        }
    };
    say(
        counts.without_root,
        "traces are left out: the span of the entry is missing. It was not sampled, or has been dropped.",
    );
    say(
        counts.incomplete,
        "requests lack spans, or have some twice; what is missing counts for the span above.",
    );
    say(
        counts.moved_spans,
        "server spans lay outside their callers' and were moved: clocks of machines differ, so the two ways of a hop cannot be told apart.",
    );
    say(beyond, "requests are left out: too many different paths.");
    say(
        analysis.conservation.broken,
        "requests do not add up to their parts; this is a fault of the analysis.",
    );
    let others: u64 = analysis.other_entries.iter().map(|one| one.requests).sum();
    say(others, "requests of other entries are not looked at.");
    let sampled = question.known.and_then(|one| one.sampled).unwrap_or(1.0);
    if sampled < 1.0 {
        notes.push(format!(
            "Only {} of the requests are traced: fewer were seen at once than there were.",
            show_share(sampled)
        ));
    }
    analysis.notes.extend(notes);
}

/// For columns.
pub(super) fn whole(nanos: Option<Nanos>) -> String {
    nanos.map_or_else(|| "-".to_owned(), |nanos| time(nanos as f64))
}
