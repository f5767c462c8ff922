//! A thread or a process that has all the processor time it can use, while there is more to be had.
//!
//! What processes outside of the run took was to be had as well, but who waited for it was not
//! limited by itself: where that is the difference, the machine is named and nobody is accused.

use units::{show_cores, show_share};

use super::resample::{longest, means, share_of_time};
use crate::finding::{Chart, Finding, Kind, Number, Share, ShareOf};

/// Samples are looked at in blocks of a second: shorter ones show the clock's granularity.
const BLOCK_S: f64 = 1.0;

/// A thread is pinned from here on; interrupts and the scheduler take a few hundredths.
const PINNED: f64 = 0.95;

/// From so much waiting on, it is told.
const WAITED: f64 = 0.05;

/// While at least so much of a processor idled, or was taken by processes outside of the run.
const IDLE: f64 = 0.3;

/// Processes outside of the run that take less make nobody wait.
pub(super) const TAKEN: f64 = 0.1;

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
    /// Time in which it could have run and others had the processors, by the same measure. May
    /// be empty: then it never waited.
    pub waited: &'a [f64],
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
    /// Cores that nobody used, for each sample.
    pub idle: &'a [f64],
    /// Cores that processes outside of the run used, or that the hypervisor gave to others, for each
    /// sample. May be empty: then nobody did.
    pub outside: &'a [f64],
}

/// What there was beside the process, in blocks.
struct Rest {
    idle: Vec<f64>,
    outside: Vec<f64>,
}

impl Rest {
    fn outside(&self, block: usize) -> f64 {
        self.outside.get(block).copied().unwrap_or(0.0)
    }

    fn idles(&self, block: usize) -> bool {
        self.idle.get(block).is_some_and(|idle| *idle >= IDLE)
    }

    /// Whether a process that wanted more could have had it, but for others.
    fn has_room(&self, block: usize) -> bool {
        let idle = self.idle.get(block);
        idle.is_some_and(|idle| idle + self.outside(block) >= IDLE)
    }

    /// Mean of what idled and of what was taken.
    fn during(&self, from: usize, to: usize) -> (f64, f64) {
        let mean = |cores: &[f64]| {
            let part = cores.get(from..to.min(cores.len()));
            part.and_then(stats::mean).unwrap_or(0.0)
        };
        (mean(&self.idle), mean(&self.outside))
    }
}

/// A thread, with its means over blocks.
struct Wanted<'a> {
    name: &'a str,
    used: Vec<f64>,
    /// What it used and what it waited for.
    wanted: Vec<f64>,
}

impl Wanted<'_> {
    /// A thread that never sleeps has no more to give, whoever else runs; one that waited for
    /// processes outside of the run might have slept without them.
    fn is_limited(&self, block: usize, rest: &Rest) -> bool {
        let own = self.used[block] >= PINNED || rest.outside(block) < TAKEN;
        own && self.is_full(block, rest)
    }

    fn is_full(&self, block: usize, rest: &Rest) -> bool {
        self.wanted[block] >= PINNED && rest.has_room(block)
    }
}

/// How much of the time something was so, and its longest stretch in blocks.
#[derive(Clone, Copy)]
struct Lasting {
    share: Share,
    from: usize,
    to: usize,
}

/// A thread that uses its processor whole, or a process that uses a whole number of them and never more,
/// while there are more. Where only processes outside of the run kept it from less, it is said that
/// nothing can be told.
#[must_use]
pub fn processor(usage: &ProcessUse<'_>) -> Option<Finding> {
    let per_block = (BLOCK_S / usage.period_s).round().clamp(1.0, 1e6) as usize;
    let rest = Rest {
        idle: means(usage.idle, per_block),
        outside: means(usage.outside, per_block),
    };
    let block_s = usage.period_s * per_block as f64;
    let at = |block: usize| usage.start_s + block as f64 * block_s;
    let span_s = |lasting: &Lasting| (at(lasting.from), at(lasting.to));
    let threads: Vec<Wanted<'_>> = usage
        .threads
        .iter()
        .map(|thread| {
            let used = means(thread.cores, per_block);
            let waited = means(thread.waited, per_block);
            let waited = |block: usize| waited.get(block).copied().unwrap_or(0.0);
            let each = used.iter().enumerate();
            let wanted = each.map(|(block, used)| used + waited(block)).collect();
            Wanted {
                name: thread.name,
                used,
                wanted,
            }
        })
        .collect();
    let busiest = |is_so: fn(&Wanted<'_>, usize, &Rest) -> bool| {
        let so = threads.iter().filter_map(|thread| {
            let flag = |block| is_so(thread, block, &rest);
            Some((
                thread,
                lasting(thread.used.len(), flag, BLOCKS_IN_A_ROW, SHARE)?,
            ))
        });
        so.max_by(|a, b| a.1.share.value.total_cmp(&b.1.share.value))
    };
    if let Some((thread, so)) = busiest(|thread, block, rest| thread.is_limited(block, rest)) {
        return Some(thread_is_limited(usage, thread, so, &rest, span_s(&so)));
    }
    let cores = means(usage.cores, per_block);
    if let Some((limit, so)) = level(&cores, |block| rest.idles(block)) {
        return Some(process_is_limited(usage, limit, so, &rest, span_s(&so)));
    }
    if let Some((thread, so)) = busiest(|thread, block, rest| thread.is_full(block, rest)) {
        let used = stats::mean(&thread.used[so.from..so.to])?;
        let waited = stats::mean(&thread.wanted[so.from..so.to])? - used;
        let what = format!(
            "thread {} of {} used {} of one processor and waited for it for {} more",
            thread.name,
            usage.process,
            show_share(used),
            show_share(waited)
        );
        let whole = (thread.name, 1.0);
        return Some(taken(usage, whole, &what, so, &rest, span_s(&so)));
    }
    let (limit, so) = level(&cores, |block| rest.has_room(block))?;
    let what = format!(
        "{} used {} and never more",
        usage.process,
        show_cores(limit)
    );
    let whole = (usage.process, limit);
    Some(taken(usage, whole, &what, so, &rest, span_s(&so)))
}

fn thread_is_limited(
    usage: &ProcessUse<'_>,
    thread: &Wanted<'_>,
    so: Lasting,
    rest: &Rest,
    span_s: (f64, f64),
) -> Finding {
    let mean = |cores: &[f64]| stats::mean(&cores[so.from..so.to]).unwrap_or(0.0);
    let used = mean(&thread.used);
    let waited = mean(&thread.wanted) - used;
    let waiting = match waited >= WAITED {
        true => format!(", and waited for it for {} more,", show_share(waited)),
        false => String::new(),
    };
    let beside = rest.during(so.from, so.to);
    let sentence = format!(
        "thread {} of {} used {} of one processor{waiting} for {} of the time while {}: \
         it is limited by one processor",
        thread.name,
        usage.process,
        show_share(used),
        show_share(so.share.value),
        others(beside),
    );
    found(
        usage,
        thread.name,
        so.share,
        span_s,
        (1.0, beside),
        sentence,
    )
}

fn process_is_limited(
    usage: &ProcessUse<'_>,
    limit: f64,
    so: Lasting,
    rest: &Rest,
    span_s: (f64, f64),
) -> Finding {
    let beside = rest.during(so.from, so.to);
    let sentence = format!(
        "{} used {} and never more for {} of the time while {}: it is allowed {}",
        usage.process,
        show_cores(limit),
        show_share(so.share.value),
        others(beside),
        if limit == 1.0 {
            "one processor".to_owned()
        } else {
            format!("{limit} processors")
        }
    );
    found(
        usage,
        usage.process,
        so.share,
        span_s,
        (limit, beside),
        sentence,
    )
}

/// Nobody is accused: what was missing went to processes outside of the run. `part` comes with the
/// cores that it used whole.
fn taken(
    usage: &ProcessUse<'_>,
    (part, limit): (&str, f64),
    what: &str,
    so: Lasting,
    rest: &Rest,
    span_s: (f64, f64),
) -> Finding {
    let beside = rest.during(so.from, so.to);
    let sentence = format!(
        "{what} for {} of the time while {}: the machine's processors were taken by processes outside \
         the run, so whether it is limited cannot be told",
        show_share(so.share.value),
        others(beside),
    );
    Finding {
        kind: Kind::Machine,
        ..found(usage, part, so.share, span_s, (limit, beside), sentence)
    }
}

/// What idled, and what others had.
fn others((idle, outside): (f64, f64)) -> String {
    let idled = format!("{} idled", show_cores(idle));
    match outside >= TAKEN {
        true => format!(
            "{idled} and processes outside the run took {}",
            show_cores(outside)
        ),
        false => idled,
    }
}

fn found(
    usage: &ProcessUse<'_>,
    part: &str,
    effect: Share,
    (from_s, to_s): (f64, f64),
    (limit, (idle, outside)): (f64, (f64, f64)),
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
        of: ShareOf::Time,
        evidence: vec![
            number("limit_cores", limit),
            number("idle_cores", idle),
            number("outside_cores", outside),
        ],
        sentence,
    }
}

/// How long something was so after the first tenth of the run, if for long enough to matter.
fn lasting(
    blocks: usize,
    is_so: impl Fn(usize) -> bool,
    in_a_row: usize,
    least: f64,
) -> Option<Lasting> {
    let warm = (blocks as f64 * WARM_UP) as usize;
    let flags: Vec<bool> = (0..blocks).map(|at| at >= warm && is_so(at)).collect();
    let (from, to) = longest(flags.iter().copied());
    let share = share_of_time(flags[warm..].iter().copied())?;
    (to - from >= in_a_row && share.value >= least).then_some(Lasting { share, from, to })
}

/// A whole number of cores that is reached and not passed while there are more.
fn level(cores: &[f64], has_more: impl Fn(usize) -> bool) -> Option<(f64, Lasting)> {
    let highest = cores.iter().copied().fold(0.0, f64::max);
    let limit = (highest - 0.02).round();
    if limit < 1.0 || !limit.is_finite() {
        return None;
    }
    let at_limit = |at: usize| AT_LIMIT.contains(&(cores[at] / limit)) && has_more(at);
    let so = lasting(cores.len(), at_limit, BLOCKS_AT_LIMIT, SHARE_AT_LIMIT)?;
    let warm = (cores.len() as f64 * WARM_UP) as usize;
    let high = cores.iter().filter(|cores| **cores > ABOVE * limit).count();
    let near: Vec<f64> = cores[warm..]
        .iter()
        .copied()
        .filter(|cores| *cores >= 0.9 * limit)
        .collect();
    let spread = stats::variance(&near)?.sqrt();
    let limited = spread <= EVEN * limit && high as f64 <= ABOVE_SHARE * cores.len() as f64;
    limited.then_some((limit, so))
}
