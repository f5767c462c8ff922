//! A level that is never exceeded while others wait: a pool.

use units::{grouped, show_share};

use super::resample::share_of;
use crate::finding::{Chart, Finding, Kind, Number, ShareOf};

/// Share of the crowded time in which the level may be exceeded: by clocks that disagree.
const EXCEEDED: f64 = 0.01;

/// Least share of the crowded time at the level. Independent entities are at the highest level that they
/// pass in less than 1 % of the time for at most 13 % of it, whatever their number.
const CROWDED_AT_LEVEL: f64 = 0.5;

/// Least share of the busy time at the level, and of all time that is spent waiting.
const BUSY_AT_LEVEL: f64 = 0.1;
const WAITED: f64 = 0.05;

/// Fewest entities that must have passed through at the level.
const PASSED: usize = 20;

/// Others wait in earnest from this share of the most that ever waited.
const CROWD: f64 = 0.1;

/// A start is handed over when it follows an end by less than this share of the mean time between ends.
const HANDED_OVER: f64 = 0.1;

/// How much the times that entities wait must differ, as a share of their mean.
const DIFFERENT: f64 = 0.05;

/// Slots of equal time from which the interval of a share is resampled.
const SLOTS: usize = 200;

/// Entities in a phase, and those that wait to enter it. Times are in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub struct Phase<'a> {
    /// The system that the phase is of.
    pub system: &'a str,
    /// As a reader knows it: `acquired→released`.
    pub name: &'a str,
    /// `[begin, end)` of each entity in it.
    pub inside: &'a [(i64, i64)],
    /// `[begin, end)` of each entity in the phase before it.
    pub waiting: &'a [(i64, i64)],
}

/// A stretch of time in which nothing changed.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    from: i64,
    to: i64,
    inside: i64,
    waiting: i64,
}

impl Stretch {
    fn length(&self) -> f64 {
        self.to.saturating_sub(self.from) as f64
    }
}

/// A pool: a number of entities in a phase that is reached and not exceeded while others wait
/// for it.
///
/// What is merely even is no pool: entities must wait for different times, and either the number of those who wait
/// varies as that of a queue does, or entities enter at the moment in which others leave.
#[must_use]
pub fn pool(phase: &Phase<'_>) -> Option<Finding> {
    let stretches = stretches(phase);
    let most = stretches.iter().map(|stretch| stretch.waiting).max()?;
    let crowd = ((most as f64 * CROWD) as i64).max(1);
    let crowded: Vec<Stretch> = stretches
        .iter()
        .copied()
        .filter(|stretch| stretch.waiting >= crowd)
        .collect();
    let level = level_of(&crowded)?;
    // Between an entity that leaves and the next that enters there is a moment; of independent
    // entities' numbers it is a quarter of a standard deviation.
    let nearly = level - ((level as f64).sqrt() / 4.0) as i64;
    let full = |stretch: &Stretch| (nearly..=level).contains(&stretch.inside);
    let total = |of: &mut dyn Iterator<Item = &Stretch>| of.map(Stretch::length).sum::<f64>();
    let crowded_time = total(&mut crowded.iter());
    let full_time = total(&mut crowded.iter().filter(|stretch| full(stretch)));
    if full_time < CROWDED_AT_LEVEL * crowded_time {
        return None;
    }
    let effect = share_of(&over_time(&stretches, |stretch| {
        full(stretch) && stretch.waiting > 0
    }))?;
    let waited: f64 = stretches
        .iter()
        .filter(|stretch| full(stretch))
        .map(|stretch| stretch.length() * stretch.waiting as f64)
        .sum();
    let inside: f64 = stretches
        .iter()
        .map(|stretch| stretch.length() * (stretch.inside + stretch.waiting) as f64)
        .sum();
    let turnover = Turnover::of(phase, &crowded);
    let enough = turnover.passed >= PASSED.max(usize::try_from(level).ok()?)
        && (turnover.handed_over || varies(&stretches, crowd))
        && waits_differ(phase.waiting)
        && effect.low > 0.0
        && effect.value >= BUSY_AT_LEVEL
        && waited >= WAITED * inside
        && most >= 2;
    if !enough {
        return None;
    }
    let sentence = format!(
        "{} stood at {} for {} of the time while {} waited: a pool of {}",
        phase.name,
        grouped(level.unsigned_abs()),
        show_share(effect.value),
        grouped(most.unsigned_abs()),
        grouped(level.unsigned_abs())
    );
    let number = |name, value| Number { name, value };
    Some(Finding {
        kind: Kind::Pool,
        system: phase.system.to_owned(),
        part: phase.name.to_owned(),
        from_s: crowded.first()?.from as f64 * 1e-9,
        to_s: crowded.last()?.to as f64 * 1e-9,
        chart: Chart::Lifecycle,
        effect,
        of: ShareOf::Time,
        evidence: vec![
            number("level", level as f64),
            number("waiting_max", most as f64),
            number("waiting_share_of_time_spent", waited / inside),
            number("entered_at_level", turnover.passed as f64),
        ],
        sentence,
    })
}

fn stretches(phase: &Phase<'_>) -> Vec<Stretch> {
    let change = |intervals: &[(i64, i64)], inside: i64, waiting: i64| {
        let proper = intervals.iter().filter(|(from, to)| from < to);
        proper
            .flat_map(|(from, to)| [(*from, inside, waiting), (*to, -inside, -waiting)])
            .collect::<Vec<_>>()
    };
    let mut changes = change(phase.inside, 1, 0);
    changes.extend(change(phase.waiting, 0, 1));
    // At one moment, ends come before beginnings.
    changes.sort_unstable();
    let (mut inside, mut waiting) = (0, 0);
    let mut found = Vec::with_capacity(changes.len());
    for (number, (from, more_inside, more_waiting)) in changes.iter().enumerate() {
        inside += more_inside;
        waiting += more_waiting;
        let to = changes.get(number + 1).map_or(*from, |next| next.0);
        if *from < to {
            found.push(Stretch {
                from: *from,
                to,
                inside,
                waiting,
            });
        }
    }
    found
}

/// Time that counts and busy time, in equal slots of the time from first to last.
fn over_time(stretches: &[Stretch], counts: impl Fn(&Stretch) -> bool) -> Vec<(f64, f64)> {
    let (Some(first), Some(last)) = (stretches.first(), stretches.last()) else {
        return Vec::new();
    };
    let slot = (last.to.saturating_sub(first.from) as f64 / SLOTS as f64).max(1.0);
    let mut slots = vec![(0.0, 0.0); SLOTS];
    for stretch in stretches.iter().filter(|stretch| stretch.inside > 0) {
        let begin = stretch.from.saturating_sub(first.from) as f64 / slot;
        let end = stretch.to.saturating_sub(first.from) as f64 / slot;
        for (number, (part, whole)) in slots.iter_mut().enumerate().skip(begin as usize) {
            let within = end.min(number as f64 + 1.0) - begin.max(number as f64);
            if within <= 0.0 {
                break;
            }
            *whole += within;
            *part += if counts(stretch) { within } else { 0.0 };
        }
    }
    slots
}

/// Whether those who waited did so for different times: a delay is the same for all.
fn waits_differ(waiting: &[(i64, i64)]) -> bool {
    let lengths: Vec<f64> = waiting
        .iter()
        .map(|(from, to)| to.saturating_sub(*from) as f64)
        .filter(|length| *length > 0.0)
        .collect();
    let spread = stats::variance(&lengths).unwrap_or(0.0).sqrt();
    spread > DIFFERENT * stats::mean(&lengths).unwrap_or(f64::INFINITY)
}

/// The lowest level that is hardly ever exceeded.
fn level_of(crowded: &[Stretch]) -> Option<i64> {
    let mut levels: Vec<(i64, f64)> = crowded
        .iter()
        .map(|stretch| (stretch.inside, stretch.length()))
        .collect();
    levels.sort_unstable_by_key(|level| level.0);
    let all: f64 = levels.iter().map(|level| level.1).sum();
    let mut above = 0.0;
    for (level, length) in levels.iter().rev() {
        above += length;
        if above > EXCEEDED * all {
            return (*level > 0).then_some(*level);
        }
    }
    None
}

/// Whether the number of those who wait varies at least as that of independent ones does.
fn varies(stretches: &[Stretch], crowd: i64) -> bool {
    let any = stretches.iter().filter(|stretch| stretch.waiting >= crowd);
    let (mut time, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for stretch in any {
        let waiting = stretch.waiting as f64;
        time += stretch.length();
        sum += stretch.length() * waiting;
        squares += stretch.length() * waiting * waiting;
    }
    let mean = sum / time;
    squares / time - mean * mean >= mean
}

/// Entities that entered while others waited.
struct Turnover {
    passed: usize,
    handed_over: bool,
}

impl Turnover {
    fn of(phase: &Phase<'_>, crowded: &[Stretch]) -> Self {
        let mut ends: Vec<i64> = phase.inside.iter().map(|(_, to)| *to).collect();
        ends.sort_unstable();
        let within = |at: i64| {
            let next = crowded.partition_point(|stretch| stretch.to < at);
            crowded.get(next).is_some_and(|stretch| stretch.from <= at)
        };
        let (mut passed, mut soon) = (0, 0);
        let spread = ends
            .last()
            .zip(ends.first())
            .map_or(0, |(last, first)| last.saturating_sub(*first));
        let between = spread as f64 / ends.len().max(2) as f64;
        for (from, _) in phase
            .inside
            .iter()
            .filter(|(from, to)| from < to && within(*from))
        {
            let before = ends.partition_point(|end| end <= from);
            let Some(end) = before.checked_sub(1).map(|at| ends[at]) else {
                continue;
            };
            passed += 1;
            soon += usize::from((from.saturating_sub(end) as f64) < HANDED_OVER * between);
        }
        Self {
            passed,
            handed_over: soon * 2 > passed,
        }
    }
}
