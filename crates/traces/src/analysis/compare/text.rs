//! A comparison in words and columns.

use std::fmt::{Display, Formatter, Result};

use units::{grouped, show_share};

use super::super::blame::{Losses, Sides};
use super::super::sentences::{percent, time};
use super::failing::Failing;
use super::{Change, Comparison, Culprit, Moved, PartChange, Verdict};
use units::columns::table;

fn name(quantile: f64) -> String {
    format!("p{}", (quantile * 1000.0).round() / 10.0)
}

fn signed(nanos: f64) -> String {
    match nanos < 0.0 {
        true => time(nanos),
        false => format!("+{}", time(nanos)),
    }
}

fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "better",
        Verdict::Worse => "worse",
        Verdict::PossiblyWorse => "possibly worse",
        Verdict::NoDifferenceResolvable => "no difference resolvable",
    }
}

pub(super) fn sentences(comparison: &Comparison) -> Vec<String> {
    let mut said: Vec<String> = comparison.changes.iter().map(sentence).collect();
    if said.is_empty() {
        said.push("There are too few requests of one kind to compare.".to_owned());
    }
    let culprits = comparison.culprits.iter().enumerate().map(culprit);
    said.splice(0..0, culprits);
    said.extend(comparison.off_path.iter().take(3).map(off_path));
    let ((a, a_failed), (b, b_failed)) = (comparison.a_requests, comparison.b_requests);
    let of_a = format!(
        "{} of {} requests of A",
        grouped(a_failed),
        grouped(a + a_failed)
    );
    let of_b = format!("{} of {} of B", grouped(b_failed), grouped(b + b_failed));
    match comparison.failing.as_ref().and_then(more_failed) {
        Some((begin, why)) => {
            let all = format!(
                "{begin}: {of_a} and {of_b} failed; {why}. They are in no latency, so the side that fails more looks faster than it is."
            );
            said.insert(0, all);
        }
        None if a_failed + b_failed > 0 => {
            said.push(format!("Failed, and in no latency: {of_a}, {of_b}."));
        }
        None => {}
    }
    said
}

/// Reasons that are said; the others say the same in other words.
const REASONS: usize = 2;

fn culprit((at, one): (usize, &Culprit)) -> String {
    let reasons: Vec<&str> = one
        .reasons
        .iter()
        .take(REASONS)
        .map(String::as_str)
        .collect();
    let who = match (at, one.is_waited_for) {
        (0, true) => "Behind what got worse",
        (_, true) => "Beside it",
        (_, false) => "Slower, though no request waits for it",
    };
    format!("{who}: `{}`. In B, {}.", one.service, reasons.join("; "))
}

fn off_path(one: &Moved) -> String {
    let (word, hint) = match one.difference_ns > 0.0 {
        true => ("grew", ": nobody waits for it yet"),
        false => ("shrank", ""),
    };
    format!(
        "Off the critical path, `{}` {} {word} by {}{hint}.",
        one.place,
        one.cause.name(),
        time(one.difference_ns.abs()),
    )
}

/// Most entries of which it is told what would have been seen.
const ENTRIES: usize = 3;

/// From which share on slow requests would have been seen.
pub(super) fn visible(sides: &Sides<'_>) -> Option<String> {
    let all = sides.visible();
    let told: Vec<String> = all
        .iter()
        .take(ENTRIES)
        .map(|one| {
            let (share, requests) = (percent(one.share), grouped(one.requests as u64));
            let entry = format!("the {requests} to {}", one.named());
            match one.share <= 1.0 {
                true => format!("{share} of {entry}"),
                false => format!("of {entry}, not even a fault of all"),
            }
        })
        .collect();
    let more = match all.len().saturating_sub(ENTRIES) {
        0 => String::new(),
        more => format!(" ({more} more have fewer)"),
    };
    (!told.is_empty()).then(|| {
        format!(
            "Requests that take longer than any did before would have been seen from this share on: {}{more}; of those in a row one counts.",
            told.join(", ")
        )
    })
}

/// Runs of the side that has more of them.
pub(super) fn without_neighbour(a: usize, b: usize) -> Option<String> {
    let side = if a > b { "A" } else { "B" };
    match a.abs_diff(b) {
        0 => None,
        1 => Some(format!(
            "The last run of {side} is left out of latencies, which are compared in pairs."
        )),
        more => Some(format!(
            "The last {more} runs of {side} are left out of latencies, which are compared in pairs."
        )),
    }
}

/// Spans that are missing.
pub(super) fn missing(sides: &Sides<'_>) -> Option<String> {
    let (losses, torn) = (sides.losses(), sides.torn());
    let of_side = |side: &str, losses: &Losses, torn: u64| {
        let (lost, all) = losses.all();
        let torn = match torn {
            0 => String::new(),
            torn => format!(", in {} requests", grouped(torn)),
        };
        (lost > 0).then(|| {
            let share = lost as f64 / all.max(1) as f64;
            let most = losses.most().map_or_else(String::new, |(service, share)| {
                format!(
                    ", the most of `{service}` ({})",
                    show_share((share * 1000.0).round() / 1000.0)
                )
            });
            format!(
                "about {} of the spans of {side}{most}{torn}",
                show_share((share * 1000.0).round() / 1000.0),
            )
        })
    };
    let told = [
        of_side("A", &losses.0, torn.0),
        of_side("B", &losses.1, torn.1),
    ];
    let told: Vec<String> = told.into_iter().flatten().collect();
    (!told.is_empty()).then(|| {
        format!(
            "Spans are missing: {}. That is no change of the system; who is behind what got worse is asked of the other requests, as far as there are enough.",
            told.join("; ")
        )
    })
}

/// Which side fails more, and what speaks for chance; nothing if that may be all.
fn more_failed(failing: &Failing) -> Option<(&'static str, String)> {
    let chance = match failing.by_chance < 0.001 {
        true => "less than 0.1 %".to_owned(),
        false => show_share(failing.by_chance),
    };
    let chance = format!("chance alone gives that in {chance} of all cases");
    match failing.verdict {
        Verdict::Worse => Some(("B fails more", chance)),
        Verdict::Better => Some(("A fails more", chance)),
        Verdict::PossiblyWorse => Some(("B may fail more", possibly(failing, chance))),
        Verdict::NoDifferenceResolvable => None,
    }
}

/// Why it is only possibly so.
fn possibly(failing: &Failing, chance: String) -> String {
    match failing.interval {
        Some((low, high)) if low <= 0.0 => format!(
            "{chance}, and runs differ so much that B less A is between {} and {}",
            points(low),
            points(high)
        ),
        _ => chance,
    }
}

/// A difference of shares.
fn points(share: f64) -> String {
    match share < 0.0 {
        true => format!("−{}", percent(-share)),
        false => format!("+{}", percent(share)),
    }
}

fn sentence(change: &Change) -> String {
    let name = name(change.quantile);
    let (a, b) = (time(change.a_ns as f64), time(change.b_ns as f64));
    if change.verdict == Verdict::NoDifferenceResolvable {
        return format!(
            "{name}: no difference resolvable ({a} and {b}); one of {} would have been seen.",
            time(change.smallest_ns)
        );
    }
    let share = change.difference_ns.abs() / (change.a_ns.max(1) as f64);
    let (low, high) = change.interval_ns;
    let moved = change.moved.iter().take(3).map(|one| {
        let (place, cause) = (&one.place, one.cause.name());
        let how = match one.how {
            PartChange::MovedOntoPath => " (moved onto the critical path; it takes no longer)",
            PartChange::MovedOffPath => " (moved off the critical path; it takes as long)",
            PartChange::Changed | PartChange::OffPath => "",
        };
        format!("`{place}` {cause} {}{how}", signed(one.difference_ns))
    });
    let moved: Vec<String> = moved.collect();
    let moved = match moved.is_empty() {
        true => String::new(),
        false => format!(" What moved: {}.", moved.join(", ")),
    };
    format!(
        "{name}: B is {} by {} ({}; 95 % between {} and {}), {a} to {b}.{moved}",
        verdict(change.verdict),
        time(change.difference_ns.abs()),
        percent(share),
        signed(low),
        signed(high),
    )
}

impl Display for Comparison {
    fn fmt(&self, text: &mut Formatter<'_>) -> Result {
        for sentence in &self.sentences {
            writeln!(text, "{sentence}")?;
        }
        let range = |(low, high)| format!("{} to {}", time(low as f64), time(high as f64));
        let rows = self.changes.iter().map(|one| {
            let (low, high) = one.interval_ns;
            vec![
                name(one.quantile),
                range(one.a_range_ns),
                range(one.b_range_ns),
                signed(one.difference_ns),
                format!("{} to {}", signed(low), signed(high)),
                time(one.smallest_ns),
                verdict(one.verdict).to_owned(),
            ]
        });
        let heads = [
            "",
            "runs of A",
            "runs of B",
            "B less A",
            "95 % between",
            "visible from",
            "verdict",
        ];
        table(text, &heads, &rows.collect::<Vec<_>>())?;
        if !self.notes.is_empty() {
            writeln!(text)?;
        }
        for note in &self.notes {
            writeln!(text, "{note}")?;
        }
        Ok(())
    }
}
