//! The generator, not the system.

use units::{show_cores, show_count, show_share};

use super::processor::TAKEN;
use super::resample::{means, pairs, share_of};
use crate::finding::{Chart, Finding, Kind, Number, ShareOf};

/// Share of sends that were late, from which the generator did not keep its schedule.
const LATE: f64 = 0.01;

/// Share of the run in which a cause must be there, to be named.
const CAUSE: f64 = 0.05;

/// A thread of the generator that uses so much of its processor has no time left.
const BUSY: f64 = 0.95;

/// A cause for which others may be to blame.
const NO_PROCESSOR: &str = "no processor was free for it";

/// A generator's threads over the run.
#[derive(Debug, Clone, Copy)]
pub struct GeneratorUse<'a> {
    /// The load's name.
    pub load: &'a str,
    /// When the first sample's time begins, in seconds.
    pub start_s: f64,
    /// Time between samples.
    pub period_s: f64,
    /// Sends in each.
    pub sent: &'a [f64],
    /// Of these, sends that were late by more than the load allows, for a reason of the generator's own.
    pub late: &'a [f64],
    /// Processor time of its busiest thread, in cores.
    pub busiest: &'a [f64],
    /// Share of the time in which its threads could have run and no processor was free for them.
    pub waiting_for_processor: &'a [f64],
    /// Share of the time in which as many requests were in flight as the load allows.
    pub at_in_flight_limit: &'a [f64],
    /// Cores that processes outside of the run used meanwhile. May be empty: then nobody did.
    pub outside: &'a [f64],
}

/// A generator that could not keep its schedule, and why. What it says of a latency is another question: a
/// load's validity answers it. Where processes outside of the run had the processors that it waited for, the
/// machine is named and nobody is accused.
#[must_use]
pub fn generator(of: &GeneratorUse<'_>) -> Option<Finding> {
    let pieces = pairs(of.late, of.sent);
    let effect = share_of(&pieces)?;
    let in_how_many = pieces
        .iter()
        .filter(|piece| piece.0 > LATE * piece.1)
        .count();
    // One stop of a second is the machine's, once.
    if effect.value < LATE || effect.low < LATE / 4.0 || in_how_many < 3 {
        return None;
    }
    let per_second = (1.0 / of.period_s).round().clamp(1.0, 1e6) as usize;
    let blocks = means(of.busiest, per_second);
    let busy = blocks.iter().filter(|cores| **cores >= BUSY).count() as f64;
    let waited = mean(of.waiting_for_processor);
    let causes = [
        (
            busy / blocks.len().max(1) as f64,
            "a thread of it used its processor whole",
        ),
        (waited, NO_PROCESSOR),
        (
            mean(of.at_in_flight_limit),
            "as many requests were in flight as the load allows",
        ),
    ];
    let (share, cause) = causes.into_iter().max_by(|a, b| a.0.total_cmp(&b.0))?;
    if share < CAUSE {
        return None;
    }
    let late: f64 = of.late.iter().sum();
    let sent: f64 = of.sent.iter().sum();
    let outside = mean(of.outside);
    // Whose processors they were: those of the run, the generator among them, or others'.
    let is_taken = cause == NO_PROCESSOR && outside >= TAKEN && outside >= waited;
    let who = match is_taken {
        true => format!(
            ", as processes outside the run took {}",
            show_cores(outside)
        ),
        false => String::new(),
    };
    let sentence = format!(
        "the generator of {} was late with {} of {} sends ({}): {cause} for {} of the time{who}",
        of.load,
        show_count(late),
        show_count(sent),
        show_share(effect.value),
        show_share(share)
    );
    let number = |name, value| Number { name, value };
    Some(Finding {
        kind: match is_taken {
            true => Kind::Machine,
            false => Kind::Generator,
        },
        system: of.load.to_owned(),
        part: "generator".to_owned(),
        from_s: of.start_s,
        to_s: of.start_s + of.sent.len() as f64 * of.period_s,
        chart: Chart::Load,
        effect,
        of: ShareOf::Work,
        evidence: vec![
            number("late", late),
            number("sent", sent),
            number("cause_share", share),
            number("outside_cores", outside),
        ],
        sentence,
    })
}

fn mean(values: &[f64]) -> f64 {
    stats::mean(values).unwrap_or(0.0)
}
