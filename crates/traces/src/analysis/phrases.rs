//! Components as parts of sentences.

use units::{grouped, show_count};

use super::Analysis;
use super::cause::Cause;
use super::known::Known;
use super::ledger::Part;
use super::report::{Component, EdgeTime};
use super::resample::Estimate;
use super::sentences::{percent, time};
use super::suspects::{SuspectKind, is_full};

/// A profile explains a service's own time if the budget has this share of it.
const EXPLAINED: f64 = 0.5;

/// What left a service was not late if it was less than this share of what arrived.
const LEFT: f64 = 0.25;

/// A component, as a part of a sentence.
pub(super) fn phrase(one: &Component, analysis: &Analysis) -> String {
    let service = &one.service;
    let peer = one.peer.as_deref().unwrap_or("");
    let work = one.work.as_deref().unwrap_or("");
    match one.cause {
        Cause::Cpu => format!("`{service}`'s {work} work itself"),
        Cause::Stolen => {
            format!("processor time taken from `{service}`'s {work} work by others (stolen)")
        }
        Cause::Sleep => format!("`{service}`'s sleep"),
        Cause::Wait => format!("`{service}` waiting in its {work} step"),
        Cause::Queue if one.peer.is_some() => {
            format!("`{service}` waiting for a connection to `{peer}`")
        }
        Cause::Queue if one.work.is_some() => worker(service, analysis),
        Cause::Queue => format!("waiting for `{service}` to read the request"),
        Cause::WireOut => format!("requests on their way from `{service}` to `{peer}`"),
        Cause::WireBack => format!("answers on their way from `{peer}` to `{service}`"),
        Cause::Sibling => format!("answers of `{peer}` that waited for `{service}`'s own work"),
        Cause::Backoff => format!("`{service}` pausing before it calls `{peer}` again"),
        Cause::Retry => {
            format!("calls from `{service}` to `{peer}` that failed and were made again")
        }
        Cause::Timeout => {
            format!("calls from `{service}` to `{peer}` that timed out and were made again")
        }
        Cause::Drop => {
            format!("calls from `{service}` to `{peer}` that were dropped and made again")
        }
        Cause::Unseen => format!("calls from `{service}` to `{peer}`, which left no span"),
        Cause::Own if one.work.is_some() => format!("`{service}` in its span `{work}`"),
        Cause::Own => format!("`{service}`'s own handling"),
    }
}

/// Workers that are busy standing at a lock, for such a share of their time.
pub(super) fn lock(service: &str, share: f64) -> String {
    format!(
        "Workers of `{service}` stand at its lock for {} of their time, and work waits for them meanwhile: the lock is the limit, and more workers would stand there too.",
        percent(share)
    )
}

/// Waiting for a worker: for one that was busy, or for one that was free and had to wake up.
fn worker(service: &str, analysis: &Analysis) -> String {
    match is_full(&analysis.concurrency, service) {
        true => format!("waiting for a worker of `{service}`"),
        false => format!("a worker of `{service}` that was free and slow to run"),
    }
}

/// Whether a service's own time, of this length, is what its profile adds: an injected
/// delay, or a least time to the answer. What is beyond the budget never is, and neither is
/// what is far below it: no delay struck there.
pub(super) fn is_held_back(one: &Component, known: Option<&Known>, length: f64) -> bool {
    let service = known.and_then(|known| known.service(&one.service));
    let explains =
        |expected| expected >= one.figures.mean_ns * EXPLAINED && length >= expected * EXPLAINED;
    one.cause == Cause::Own
        && service.is_some_and(|one| one.adds_time)
        && one.figures.expected_ns.is_none_or(explains)
}

/// Calls that failed and were made again.
pub(super) struct Failing<'a> {
    pub(super) kind: SuspectKind,
    pub(super) edge: (&'a str, &'a str),
    /// Of all attempts.
    pub(super) share: f64,
    pub(super) count: u64,
    /// The share of those that failed that was made again.
    pub(super) again: f64,
    /// For each request, in the mean.
    pub(super) cost: f64,
    pub(super) of_mean: f64,
    pub(super) tail: Option<f64>,
}

pub(super) fn failing(one: &Failing<'_>) -> String {
    let what = match one.kind {
        SuspectKind::Timeouts => "ran out of time",
        SuspectKind::Drops => "lost their connection without an answer",
        _ => "failed",
    };
    let again = match one.again {
        again if again >= 0.995 => " and were made again".to_owned(),
        again => format!("; {} of what failed was made again", percent(again)),
    };
    let tail = match one.tail {
        Some(share) if share >= 0.01 => format!(", and {} of what is above p50", percent(share)),
        _ => String::new(),
    };
    let (from, to) = one.edge;
    let share = units::show_share((one.share * 1000.0).round() / 1000.0);
    let begin = format!(
        "Of the calls from `{from}` to `{to}` {share} ({}) {what}",
        grouped(one.count)
    );
    // What took a failed call that nobody repeats is part of what its caller took.
    if one.again <= 0.0 {
        return format!("{begin} and were not made again.");
    }
    format!(
        "{begin}{again}: with the pauses between them that is {} a request, {} of the mean{tail}.",
        time(one.cost),
        percent(one.of_mean),
    )
}

/// What somebody holds: of the tail, if there is one, or else of a request.
fn holds(effect: &Estimate, tail: Option<Estimate>) -> String {
    match tail {
        Some(share) if share.value > 0.0 => format!(
            "{} of what is above p50 ({} to {})",
            percent(share.value.min(1.0)),
            percent(share.low.clamp(0.0, 1.0)),
            percent(share.high.clamp(0.0, 1.0)),
        ),
        _ => format!("{} of a request", time(effect.value)),
    }
}

/// `is_told_apart`: whether it is known how long each way took.
pub(super) fn network(
    edge: &EdgeTime,
    effect: &Estimate,
    tail: Option<Estimate>,
    is_told_apart: bool,
) -> String {
    let EdgeTime { from, to, .. } = edge;
    let (more, holds) = (time(effect.value), holds(effect, tail));
    match is_told_apart {
        true => format!(
            "Both ways between `{from}` and `{to}` take {more} longer than the machine needs, and hold {holds}: the network there, or wake-ups at both ends."
        ),
        false => format!(
            "The ways between `{from}` and `{to}` take {more} longer than the machine needs, and hold {holds}: the network there, or what passes before a span of `{to}` begins. Their clocks differ, so it is not known which way that is."
        ),
    }
}

pub(super) fn stall(name: &str, effect: &Estimate, tail: Option<Estimate>, left: f64) -> String {
    let begin = format!(
        "With what was on its way to it, `{name}` holds {}",
        holds(effect, tail)
    );
    match left < LEFT {
        true => format!(
            "{begin}; what left it took no longer, so it stood still, or its way in was held up."
        ),
        false => format!("{begin}."),
    }
}

pub(super) fn processor(name: &str, lost: f64, limit: Option<f64>) -> String {
    let why = match limit {
        Some(limit) => format!("its limit of {} processors", show_count(limit)),
        None => "a neighbour, a limit or a pause there".to_owned(),
    };
    format!(
        "Of the services `{name}` alone lacked a processor, for {} of its work's time: {why}.",
        percent(lost)
    )
}

/// The limit of a service, in processors of each instance.
pub(super) fn limit(name: &str, known: Option<&Known>) -> Option<f64> {
    known?.service(name)?.cpu_limit
}

pub(super) fn machine(share: f64, stolen: f64) -> String {
    format!(
        "Work that was ready did not run for {} of its time ({} a request): processors were busy with others. Workers, handling and hops wait for processors too, so theirs is part of this.",
        percent(share),
        time(stolen)
    )
}

/// A service's work.
pub(super) fn work(part: &Part) -> String {
    match part.cause {
        Cause::Sleep => format!("`{}`'s sleep", part.service),
        _ => format!("`{}`'s {} work", part.service, part.work),
    }
}

pub(super) fn moved_onto_path(work: &str, by: f64) -> String {
    format!(
        "{} of a request is {work} that moved onto the critical path: it takes no longer than asked, but what ran beside it ends earlier now, or it begins later.",
        time(by)
    )
}

pub(super) fn grew_off_path(work: &str, by: f64) -> String {
    format!(
        "Off the critical path, {work} takes {} more than asked: nobody waits for it yet.",
        time(by)
    )
}
