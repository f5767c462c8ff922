//! Two environments, or two builds, measured in turns: A B A B.
//!
//! The unit is the run, not the request: requests of one run share its fate (placement,
//! neighbours, caches), so a thousand of them are not a thousand independent observations.
//! For each quantile the differences of neighbouring runs are averaged. Its error comes
//! from a bootstrap that draws runs, and within each a quantile as requests drawn anew
//! would give it; that counts the scatter within runs twice, on the safe side. The interval
//! has the width of Student's distribution, since runs are few.

mod failing;
mod run;
mod text;

use serde::Serialize;
use stats::{SplitMix, nearest_rank, student_quantile};
use units::grouped;

use super::blame::{Blame, Culprit, Sides};
use super::cause::Cause;
use super::figures::FEWEST;
use crate::Nanos;

pub use failing::Failing;
pub use run::{Run, entered_paths, shared_path};

/// Quantiles that are compared.
const QUANTILES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

/// Fewest runs of each side whose scatter says something.
const FEWEST_RUNS: usize = 3;

/// With fewer, each run is cut into so many stretches of time.
const STRETCHES: usize = 5;

/// Draws of the bootstrap.
const DRAWS: usize = 1_000;

/// Confidence of each interval: 95 %, two-sided.
const CONFIDENT: f64 = 0.975;

/// The smallest difference is one that would have been seen in so many of all cases.
const POWER: f64 = 0.8;

/// Parts that moved by less than this share of the whole change are not told.
const WORTH_TELLING: f64 = 0.1;

/// What can be said of B beside A.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// B is faster, or fails less.
    Better,
    /// B is slower, or fails more.
    Worse,
    /// B may fail more, or have more slow requests, but chance or the scatter of runs may be why.
    PossiblyWorse,
    /// A difference, if there is one, is lost in the scatter.
    NoDifferenceResolvable,
}

/// What became of a part from A to B.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PartChange {
    /// It takes longer, or less long, where requests wait for it.
    Changed,
    /// It takes as long as before, and requests wait for it now.
    MovedOntoPath,
    /// It takes as long as before, and requests do not wait for it any more.
    MovedOffPath,
    /// It takes longer, or less long, where no request waits for it.
    OffPath,
}

/// A part whose time differs between A and B.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Moved {
    /// A service, a service and its work, or an edge.
    pub place: String,
    /// Why time passes there.
    pub cause: Cause,
    /// What became of it.
    pub how: PartChange,
    /// B less A, in nanoseconds.
    pub difference_ns: f64,
    /// Where the difference lies, with 95 % confidence; `None`: too few runs.
    pub interval_ns: Option<(f64, f64)>,
}

/// One quantile of both.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// 0.5 for the median.
    pub quantile: f64,
    /// The median of A's runs, in nanoseconds.
    pub a_ns: Nanos,
    /// The smallest and largest of A's runs.
    pub a_range_ns: (Nanos, Nanos),
    /// The same of B.
    pub b_ns: Nanos,
    /// See above.
    pub b_range_ns: (Nanos, Nanos),
    /// Mean difference of runs, B less A.
    pub difference_ns: f64,
    /// Where it lies, with 95 % confidence.
    pub interval_ns: (f64, f64),
    /// The smallest difference that would have been seen, in four of five cases.
    pub smallest_ns: f64,
    /// What that means.
    pub verdict: Verdict,
    /// What makes the difference, the largest first; empty without one. Of the median and
    /// the p99 only.
    pub moved: Vec<Moved>,
}

/// B beside A.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// What the figures say.
    pub sentences: Vec<String>,
    /// What keeps them from saying more.
    pub notes: Vec<String>,
    /// Worse if failures or any quantile are, or if requests of any kind wait for what a service
    /// does worse;
    /// else possibly so if failures are, or groups of slow requests; else better if any of these is.
    pub verdict: Verdict,
    /// Services behind what got worse, of whatever requests; the likeliest first.
    pub culprits: Vec<Culprit>,
    /// Runs of A.
    pub a_runs: usize,
    /// Runs of B.
    pub b_runs: usize,
    /// Requests of A that succeeded and that failed.
    pub a_requests: (u64, u64),
    /// The same of B.
    pub b_requests: (u64, u64),
    /// How their failures compare; `None`: a side has no requests.
    pub failing: Option<Failing>,
    /// Each quantile for which there are enough requests.
    pub changes: Vec<Change>,
    /// Work that changed off the critical path, where it is in no latency.
    pub off_path: Vec<Moved>,
}

/// Compares runs; those at the same place of both lists are neighbours in time. Where the
/// lists differ in length, the last of the longer one count where services are asked for, but
/// not in latencies and failures.
pub fn compare(a: &[Run], b: &[Run]) -> Comparison {
    let pairs = a.len().min(b.len());
    let mut notes = Vec::new();
    notes.extend(text::without_neighbour(a.len(), b.len()));
    let sides = Sides::of(
        a.iter().map(|run| &run.places),
        b.iter().map(|run| &run.places),
    );
    let (a, b) = (&a[..pairs], &b[..pairs]);
    let few = pairs < FEWEST_RUNS;
    let entries = Entries::of(a.iter().chain(b));
    notes.extend(entries.note());
    let cut = |runs: &[Run]| -> Vec<Vec<Nanos>> {
        let stretches = if few { STRETCHES } else { 1 };
        runs.iter()
            .flat_map(|run| run.stretches(stretches))
            .collect()
    };
    if few {
        let (runs, are) = match pairs {
            1 => ("One run".to_owned(), "is"),
            pairs => (format!("{pairs} runs"), "are"),
        };
        notes.push(format!(
            "{runs} of each side {are} too few: each was cut into {STRETCHES} stretches of time. What differs from start to start is not seen; make at least {FEWEST_RUNS} runs in turns."
        ));
    }
    let (cut_a, cut_b) = (cut(a), cut(b));
    let shortest = cut_a.iter().chain(&cut_b).map(Vec::len).min().unwrap_or(0);
    let mut changes = Vec::new();
    // Latencies of other requests are no change.
    let quantiles = if entries.are_one() {
        &QUANTILES[..]
    } else {
        &[]
    };
    for quantile in quantiles.iter().copied() {
        let enough = FEWEST.iter().find(|(bound, _)| *bound == quantile);
        let enough = enough.map_or(1, |(_, fewest)| *fewest);
        if shortest < enough {
            notes.push(format!(
                "n too small for p{}: the shortest {} has {} requests of {}.",
                quantile * 100.0,
                if few { "stretch" } else { "run" },
                grouped(shortest as u64),
                grouped(enough as u64),
            ));
            continue;
        }
        let mut change = change(quantile, &cut_a, &cut_b);
        if change.verdict != Verdict::NoDifferenceResolvable {
            change.moved = moved(&change, a, b);
        }
        changes.push(change);
    }
    let failing = Failing::of(a, b).filter(|_| entries.are_one());
    notes.extend(text::missing(&sides));
    let Blame {
        mut culprits,
        innocent,
        is_of_runs,
    } = sides.blame();
    let nobody = culprits.is_empty() && !is_of_runs;
    if nobody && changes.iter().any(|one| one.verdict == Verdict::Worse) {
        culprits.extend(sides.blame_shift());
    }
    let fails_more = |one: &Failing| one.verdict == Verdict::Worse;
    if nobody && culprits.is_empty() && failing.as_ref().is_some_and(fails_more) {
        culprits.extend(sides.blame_failures());
    }
    let of_failures = failing.iter().map(|one| one.verdict);
    let waited_for = culprits.iter().filter(|one| one.is_waited_for);
    let of_culprits = waited_for.map(|_| Verdict::Worse);
    let verdicts: Vec<Verdict> = changes
        .iter()
        .map(|one| one.verdict)
        .chain(of_failures)
        .chain(of_culprits)
        .collect();
    let decisive = [Verdict::Worse, Verdict::PossiblyWorse, Verdict::Better];
    let verdict = decisive.into_iter().find(|one| verdicts.contains(one));
    let groups = match verdict {
        Some(Verdict::Worse) => Vec::new(),
        _ => sides.groups(),
    };
    let verdict = match groups.is_empty() {
        true => verdict,
        false => Some(Verdict::PossiblyWorse),
    };
    let requests = |runs: &[Run]| {
        let sum = |of: fn(&Run) -> u64| runs.iter().map(of).sum();
        (sum(Run::succeeded), sum(Run::failed))
    };
    let mut comparison = Comparison {
        sentences: Vec::new(),
        notes,
        verdict: verdict.unwrap_or(Verdict::NoDifferenceResolvable),
        culprits,
        a_runs: a.len(),
        b_runs: b.len(),
        a_requests: requests(a),
        b_requests: requests(b),
        failing,
        changes,
        off_path: match entries.are_one() {
            true => off_path(a, b),
            false => Vec::new(),
        },
    };
    comparison.sentences = text::sentences(&comparison);
    comparison.sentences.splice(0..0, groups);
    comparison.sentences.extend(innocent);
    if comparison.verdict == Verdict::NoDifferenceResolvable {
        comparison.sentences.extend(text::visible(&sides));
    }
    comparison
}

/// Where the requests of all runs entered whose latencies are compared.
struct Entries<'a> {
    /// Each service and path once.
    all: std::collections::BTreeSet<(&'a str, &'a str)>,
    /// Requests that entered elsewhere, of all runs.
    elsewhere: u64,
    requests: u64,
}

impl<'a> Entries<'a> {
    fn of(runs: impl Iterator<Item = &'a Run> + Clone) -> Self {
        let entry = |run: &'a Run| run.entry.as_ref();
        let entered = runs.clone().filter_map(entry);
        Self {
            all: entered.map(|one| (&*one.service, &*one.path)).collect(),
            elsewhere: runs.clone().map(|run| run.elsewhere).sum(),
            requests: runs.map(|run| run.succeeded() + run.failed()).sum(),
        }
    }

    fn are_one(&self) -> bool {
        self.all.len() <= 1
    }

    fn note(&self) -> Option<String> {
        let names: Vec<String> = self
            .all
            .iter()
            .map(|(service, path)| format!("`{service} {path}`"))
            .collect();
        match self.are_one() {
            false => Some(format!(
                "Requests entered at {} in one run and not in another: their latencies and failures are not compared.",
                names.join(", ")
            )),
            true if self.elsewhere > 0 => Some(format!(
                "Latencies and failures are of {} requests that entered at {}; {} entered elsewhere. Who is behind what got worse is asked of all.",
                grouped(self.requests),
                names.concat(),
                grouped(self.elsewhere),
            )),
            true => None,
        }
    }
}

/// A mean, and its error by the scatter of few values.
struct Estimate {
    mean: f64,
    half_width: f64,
    smallest: f64,
}

impl Estimate {
    /// Of a standard error that comes from so many values, at least 3.
    fn new(mean: f64, error: f64, values: usize) -> Self {
        let freedom = values.saturating_sub(1).max(2) as f64;
        let confident = student_quantile(CONFIDENT, freedom);
        Self {
            mean,
            half_width: confident * error,
            smallest: (confident + student_quantile(POWER, freedom)) * error,
        }
    }

    /// Of differences between pairs of runs.
    fn of(differences: &[f64]) -> Option<Self> {
        let count = differences.len();
        let variance = stats::variance(differences).unwrap_or(0.0);
        let error = (variance / (count as f64 - 1.0).max(1.0)).sqrt();
        Some(Self::new(stats::mean(differences)?, error, count))
    }

    fn interval(&self) -> (f64, f64) {
        (self.mean - self.half_width, self.mean + self.half_width)
    }

    fn excludes_zero(&self) -> bool {
        self.mean.abs() > self.half_width
    }
}

fn change(quantile: f64, a: &[Vec<Nanos>], b: &[Vec<Nanos>]) -> Change {
    let of = |runs: &[Vec<Nanos>]| -> Vec<Nanos> {
        let values = runs.iter().filter_map(|run| nearest_rank(run, quantile));
        let mut values: Vec<Nanos> = values.collect();
        values.sort_unstable();
        values
    };
    let middle = |values: &[Nanos]| nearest_rank(values, 0.5).unwrap_or(0);
    let range = |values: &[Nanos]| {
        let first = values.first().copied().unwrap_or(0);
        (first, values.last().copied().unwrap_or(0))
    };
    let (values_a, values_b) = (of(a), of(b));
    let estimate = difference(quantile, a, b);
    let verdict = match (estimate.excludes_zero(), estimate.mean > 0.0) {
        (false, _) => Verdict::NoDifferenceResolvable,
        (true, true) => Verdict::Worse,
        (true, false) => Verdict::Better,
    };
    Change {
        quantile,
        a_ns: middle(&values_a),
        a_range_ns: range(&values_a),
        b_ns: middle(&values_b),
        b_range_ns: range(&values_b),
        difference_ns: estimate.mean,
        interval_ns: estimate.interval(),
        smallest_ns: estimate.smallest,
        verdict,
        moved: Vec::new(),
    }
}

/// The mean difference of a quantile over pairs of runs.
fn difference(quantile: f64, a: &[Vec<Nanos>], b: &[Vec<Nanos>]) -> Estimate {
    let pairs = a.len();
    let exact = |run: &[Nanos]| nearest_rank(run, quantile).unwrap_or(0) as f64;
    let differences = a.iter().zip(b).map(|(a, b)| exact(b) - exact(a));
    let mean = differences.sum::<f64>() / pairs.max(1) as f64;
    let mut random = SplitMix::new(0x5eed);
    let draws = (0..DRAWS).map(|_| {
        let mut sum = 0.0;
        for _ in 0..pairs {
            let pair = random.below(pairs);
            sum += drawn(&b[pair], quantile, &mut random) - drawn(&a[pair], quantile, &mut random);
        }
        sum / pairs.max(1) as f64
    });
    let draws: Vec<f64> = draws.collect();
    let variance = stats::variance(&draws).unwrap_or(0.0);
    // Drawing from few runs shows too little of their scatter.
    let few = pairs as f64 / (pairs as f64 - 1.0).max(1.0);
    Estimate::new(mean, (variance * few).sqrt(), pairs)
}

/// The quantile of as many requests drawn from a run's. Its rank is binomial; the normal
/// distribution stands for that.
fn drawn(run: &[Nanos], quantile: f64, random: &mut SplitMix) -> f64 {
    let count = run.len() as f64;
    let scatter = (count * quantile * (1.0 - quantile)).sqrt();
    let rank = (count * quantile + scatter * random.normal()).round();
    let place = (rank.max(1.0) as usize).min(run.len());
    run.get(place.saturating_sub(1)).copied().unwrap_or(0) as f64
}

/// The parts that make a difference: of the median those of typical requests, of the p99
/// those around it.
fn moved(change: &Change, a: &[Run], b: &[Run]) -> Vec<Moved> {
    let value: fn(&run::Share) -> Option<f64> = match change.quantile {
        0.5 => |share| Some(share.typical),
        0.99 => |share| share.tail,
        _ => return Vec::new(),
    };
    let keys: std::collections::BTreeSet<_> = a.iter().chain(b).flat_map(Run::parts).collect();
    let mut all = Vec::new();
    for key in keys {
        let of = |run: &Run| run.share(key).map_or(Some(0.0), value);
        let pairs = a.iter().zip(b);
        let differences: Vec<f64> = pairs.filter_map(|(a, b)| Some(of(b)? - of(a)?)).collect();
        let least = change.difference_ns.abs() * WORTH_TELLING;
        all.extend(moved_by(key, &differences, least, |by| how(key, by, a, b)));
    }
    largest_first(all)
}

/// What moved at a place, by the differences between pairs of runs; `None`: less than
/// `least`, or nothing as far as can be told.
fn moved_by(
    key: &(String, Cause),
    differences: &[f64],
    least: f64,
    how: impl FnOnce(f64) -> PartChange,
) -> Option<Moved> {
    let estimate = Estimate::of(differences)?;
    let tested = differences.len() >= FEWEST_RUNS;
    let is_nothing = tested && !estimate.excludes_zero();
    (estimate.mean.abs() >= least && !is_nothing).then(|| Moved {
        place: key.0.clone(),
        cause: key.1,
        how: how(estimate.mean),
        difference_ns: estimate.mean,
        interval_ns: tested.then(|| estimate.interval()),
    })
}

fn largest_first(mut all: Vec<Moved>) -> Vec<Moved> {
    all.sort_by(|one, other| {
        let by = |one: &Moved| one.difference_ns.abs();
        by(other).total_cmp(&by(one))
    });
    all
}

/// Work of which less than this share of a change is its own only moved.
const OWN: f64 = 0.5;

/// Work off the critical path is told of from this share of what it was on, and from this
/// time on.
const OFF_PATH: (f64, f64) = (0.1, 50_000.0);

/// Whether work took longer, or only came to be waited for.
fn how(key: &(String, Cause), by: f64, a: &[Run], b: &[Run]) -> PartChange {
    let known = a
        .iter()
        .chain(b)
        .any(|run| run.works().any(|own| own == key));
    let done = mean_done(key, b) - mean_done(key, a);
    match (known, by > 0.0) {
        (true, true) if done < by * OWN => PartChange::MovedOntoPath,
        (true, false) if done > by * OWN => PartChange::MovedOffPath,
        _ => PartChange::Changed,
    }
}

fn mean_done(key: &(String, Cause), runs: &[Run]) -> f64 {
    let sum: f64 = runs.iter().map(|run| run.done(key)).sum();
    sum / runs.len().max(1) as f64
}

/// Work that takes longer, or less long, than it did, and most of it where nobody waits.
fn off_path(a: &[Run], b: &[Run]) -> Vec<Moved> {
    let keys: std::collections::BTreeSet<_> = a.iter().chain(b).flat_map(Run::works).collect();
    let mut all = Vec::new();
    for key in keys {
        let pairs = a.iter().zip(b);
        let differences: Vec<f64> = pairs.map(|(a, b)| b.done(key) - a.done(key)).collect();
        let on_path = |runs: &[Run]| {
            let shares = runs.iter().filter_map(|run| run.share(key));
            shares.map(|share| share.typical).sum::<f64>() / runs.len().max(1) as f64
        };
        let least = (mean_done(key, a) * OFF_PATH.0).max(OFF_PATH.1);
        let found = moved_by(key, &differences, least, |_| PartChange::OffPath);
        let waited_for = |by: f64| (on_path(b) - on_path(a)) / by > OWN;
        all.extend(found.filter(|one| !waited_for(one.difference_ns)));
    }
    largest_first(all)
}
