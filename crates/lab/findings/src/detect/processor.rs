//! A thread or a process that has all the processor time it can use, while others idle.

use units::{show_cores, show_share};

use super::resample::{longest, means, share_of};
use crate::finding::{Chart, Finding, Kind, Number, Share, Whole};

/// Samples are looked at in blocks of a second: shorter ones show the clock's granularity.
const BLOCK_S: f64 = 1.0;

/// A thread is pinned from here on; interrupts and the scheduler take a few hundredths.
const PINNED: f64 = 0.95;

/// While at least so much of a processor was idle.
const IDLE: f64 = 0.3;

/// Share of the run, and blocks in a row, from which it matters. What happens in the first tenth of a
/// run, as compilers and caches warm up, does not count.
const SHARE: f64 = 0.1;
const BLOCKS_IN_A_ROW: usize = 3;
const WARM_UP: f64 = 0.1;

/// A process at its own limit is even: load of its own makes a second differ from the next by more, for up to
/// ten thousand requests in it.
const EVEN: f64 = 0.01;
const AT_LIMIT: std::ops::RangeInclusive<f64> = 0.96..=1.01;
const ABOVE: f64 = 1.04;
const ABOVE_SHARE: f64 = 0.02;
const SHARE_AT_LIMIT: f64 = 0.25;
const BLOCKS_AT_LIMIT: usize = 5;

/// Processor time of a thread, in cores, for each sample.
#[derive(Debug, Clone, Copy)]
pub struct ThreadUse<'a> {
    /// Its name.
    pub name: &'a str,
    /// One value for each sample of the process.
    pub cores: &'a [f64],
}

/// Processor time of a process and its threads.
#[derive(Debug, Clone, Copy)]
pub struct ProcessUse<'a> {
    /// The system that it is of.
    pub system: &'a str,
    /// Its command, or whatever tells it from others.
    pub process: &'a str,
    /// When the first sample's time begins, in seconds.
    pub start_s: f64,
    /// Time between samples.
    pub period_s: f64,
    /// In cores, for each sample: all threads.
    pub cores: &'a [f64],
    /// Its threads, where they are known.
    pub threads: &'a [ThreadUse<'a>],
    /// Cores of the machine that nobody used, for each sample.
    pub idle: &'a [f64],
}

/// A thread that uses its processor whole, or a process that uses a whole number of them and never more,
/// while others idle.
#[must_use]
pub fn processor(usage: &ProcessUse<'_>) -> Option<Finding> {
    let per_block = (BLOCK_S / usage.period_s).round().clamp(1.0, 1e6) as usize;
    let idle = means(usage.idle, per_block);
    let threads = usage.threads.iter().filter_map(|thread| {
        let cores = means(thread.cores, per_block);
        let (share, (from, to)) = pinned(&cores, &idle, PINNED)?;
        Some((thread, share, from, to, cores))
    });
    let busiest = threads.max_by(|a, b| a.1.value.total_cmp(&b.1.value));
    let block_s = usage.period_s * per_block as f64;
    let span = |from: usize, to: usize| {
        let at = |block: usize| usage.start_s + block as f64 * block_s;
        (at(from), at(to))
    };
    if let Some((thread, share, from, to, cores)) = busiest {
        let during = stats::mean(&cores[from..to])?;
        let spare = stats::mean(&idle[from..to.min(idle.len())])?;
        let sentence = format!(
            "thread {} of {} used {} of one processor for {} of the time while {} stood idle: it is limited by one \
             processor",
            thread.name,
            usage.process,
            show_share(during),
            show_share(share.value),
            show_cores(spare)
        );
        return Some(found(
            usage,
            thread.name,
            share,
            span(from, to),
            (1.0, spare),
            sentence,
        ));
    }
    let cores = means(usage.cores, per_block);
    let (limit, share, from, to) = level(&cores, &idle)?;
    let spare = stats::mean(&idle[from..to.min(idle.len())])?;
    let sentence = format!(
        "{} used {} and never more for {} of the time while {} stood idle: it is allowed {}",
        usage.process,
        show_cores(limit),
        show_share(share.value),
        show_cores(spare),
        if limit == 1.0 {
            "one processor".to_owned()
        } else {
            format!("{limit} processors")
        }
    );
    Some(found(
        usage,
        usage.process,
        share,
        span(from, to),
        (limit, spare),
        sentence,
    ))
}

fn found(
    usage: &ProcessUse<'_>,
    part: &str,
    effect: Share,
    (from_s, to_s): (f64, f64),
    (limit, spare): (f64, f64),
    sentence: String,
) -> Finding {
    let number = |name, value| Number { name, value };
    Finding {
        kind: Kind::Processor,
        system: usage.system.to_owned(),
        part: part.to_owned(),
        from_s,
        to_s,
        chart: Chart::Processors,
        effect,
        of: Whole::Time,
        evidence: vec![number("limit_cores", limit), number("idle_cores", spare)],
        sentence,
    }
}

/// How much of the time something was pinned, and its longest stretch in blocks.
pub(super) fn pinned(cores: &[f64], idle: &[f64], least: f64) -> Option<(Share, (usize, usize))> {
    let warm = (cores.len() as f64 * WARM_UP) as usize;
    let is_pinned = |at: usize| {
        at >= warm && cores[at] >= least && idle.get(at).is_some_and(|idle| *idle >= IDLE)
    };
    let flags: Vec<bool> = (0..cores.len()).map(is_pinned).collect();
    let (from, to) = longest(flags.iter().copied());
    let pieces: Vec<(f64, f64)> = flags[warm..]
        .iter()
        .map(|flag| (f64::from(u8::from(*flag)), 1.0))
        .collect();
    let share = share_of(&pieces)?;
    (to - from >= BLOCKS_IN_A_ROW && share.value >= SHARE).then_some((share, (from, to)))
}

/// A whole number of cores that is reached and not passed.
fn level(cores: &[f64], idle: &[f64]) -> Option<(f64, Share, usize, usize)> {
    let warm = (cores.len() as f64 * WARM_UP) as usize;
    let highest = cores.iter().copied().fold(0.0, f64::max);
    let limit = (highest - 0.02).round();
    if limit < 1.0 || !limit.is_finite() {
        return None;
    }
    let at_limit = |at: usize| {
        at >= warm
            && AT_LIMIT.contains(&(cores[at] / limit))
            && idle.get(at).is_some_and(|idle| *idle >= IDLE)
    };
    let flags: Vec<bool> = (0..cores.len()).map(at_limit).collect();
    let (from, to) = longest(flags.iter().copied());
    let high = cores.iter().filter(|cores| **cores > ABOVE * limit).count();
    let near: Vec<f64> = cores[warm..]
        .iter()
        .copied()
        .filter(|cores| *cores >= 0.9 * limit)
        .collect();
    let spread = stats::variance(&near)?.sqrt();
    let pieces: Vec<(f64, f64)> = flags[warm..]
        .iter()
        .map(|flag| (f64::from(u8::from(*flag)), 1.0))
        .collect();
    let share = share_of(&pieces)?;
    let limited = to - from >= BLOCKS_AT_LIMIT
        && share.value >= SHARE_AT_LIMIT
        && spread <= EVEN * limit
        && high as f64 <= ABOVE_SHARE * cores.len() as f64;
    limited.then_some((limit, share, from, to))
}
