use stats::SplitMix;

use super::*;
use crate::analysis::{Cause, Run, Verdict, analyse, compare};

/// Latencies of a run with its own luck: exponential around a level that scatters by 2 %.
fn latencies(random: &mut SplitMix, count: usize, level: f64) -> Vec<Nanos> {
    let level = level * (1.0 + 0.02 * random.normal());
    (0..count)
        .map(|_| (level * (1.0 + 0.3 * random.exponential())) as Nanos)
        .collect()
}

fn runs(random: &mut SplitMix, runs: usize, count: usize, level: f64) -> Vec<Run> {
    (0..runs)
        .map(|_| Run::of_latencies(latencies(random, count, level)))
        .collect()
}

#[test]
fn two_of_the_same_build_are_hardly_ever_told_apart() {
    let mut random = SplitMix::new(7);
    let mut alarms = 0;
    for _ in 0..100 {
        let (a, b) = (
            runs(&mut random, 4, 1200, 1e6),
            runs(&mut random, 4, 1200, 1e6),
        );
        let comparison = compare(&a, &b);
        assert_eq!(comparison.changes.len(), 3, "no p99.9 of 1,200 requests");
        alarms += usize::from(comparison.verdict != Verdict::NoDifferenceResolvable);
    }
    assert!(alarms <= 10, "{alarms} false alarms in 100");
}

#[test]
fn a_difference_beyond_the_smallest_is_seen_and_has_a_direction() {
    let mut random = SplitMix::new(8);
    let mut seen = 0;
    for _ in 0..20 {
        let a = runs(&mut random, 5, 1200, 1e6);
        let b = runs(&mut random, 5, 1200, 1.2e6);
        let (slower, faster) = (compare(&a, &b), compare(&b, &a));
        let median = &slower.changes[0];
        let (low, high) = median.interval_ns;
        assert!(low < median.difference_ns && median.difference_ns < high);
        assert!(median.smallest_ns > 0.0);
        let both = slower.verdict == Verdict::Worse && faster.verdict == Verdict::Better;
        seen += usize::from(both);
    }
    assert!(seen >= 19, "{seen} of 20");
}

#[test]
fn too_little_is_said_to_be_too_little() {
    let mut random = SplitMix::new(9);
    let one = || Run::of_latencies(Vec::new());
    let nothing = compare(&[one()], &[one()]);
    assert_eq!(nothing.changes, []);
    assert_eq!(nothing.verdict, Verdict::NoDifferenceResolvable);
    assert!(compare(&[], &[one()]).changes.is_empty());

    let a = runs(&mut random, 1, 3000, 1e6);
    let b = runs(&mut random, 2, 3000, 1e6);
    let single = compare(&a, &b);
    assert_eq!((single.a_runs, single.b_runs), (1, 1));
    let quantiles: Vec<f64> = single.changes.iter().map(|one| one.quantile).collect();
    assert_eq!(quantiles, [0.5, 0.9], "stretches of 600 give no p99");
    let text = single.to_string();
    assert!(text.contains("1 runs of each side are too few"), "{text}");
    assert!(
        text.contains("p99: the shortest stretch has 600 requests of 1000"),
        "{text}"
    );
}

/// Requests of root → leaf, whose work takes longer by what `lost` draws.
pub(super) fn chain(
    random: &mut SplitMix,
    count: usize,
    lost: impl Fn(&mut SplitMix) -> u64,
) -> Vec<Span> {
    let mut spans = Vec::new();
    for at in 0..count {
        let start = at as u64 * 50 * MS;
        let wire = |random: &mut SplitMix| 100_000 + random.below(20_000) as u64;
        let (out, back) = (wire(random), wire(random));
        let own = 2 * MS + random.below(50_000) as u64;
        let leaf = 5 * MS + lost(random);
        let sent = start + own;
        let arrived = sent + out;
        let answered = arrived + leaf;
        let read = answered + back;
        let mut trace = [
            server((1, 0), "root", (start, read + 10_000)),
            work((2, 1), "root cpu", (start, sent), 2 * MS),
            client((3, 1), "root>leaf", (sent, read)),
            server((4, 3), "leaf", (arrived, answered)),
            work((5, 4), "leaf cpu", (arrived, answered), 5 * MS),
        ];
        trace
            .iter_mut()
            .for_each(|span| span.trace = TraceId(at as u128 + 1));
        spans.extend(trace);
    }
    spans
}

#[test]
fn it_says_what_moved() {
    let mut random = SplitMix::new(10);
    let mut run = |more: u64| {
        let lost = |random: &mut SplitMix| more + random.below(100_000) as u64;
        Run::of_spans(&chain(&mut random, 300, lost), None)
    };
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for _ in 0..4 {
        a.push(run(0));
        b.push(run(MS));
    }
    let comparison = compare(&a, &b);
    let median = &comparison.changes[0];
    assert_eq!(median.verdict, Verdict::Worse);
    assert!((median.difference_ns - 1e6).abs() < 3e4, "{median:?}");
    assert_eq!(median.moved.len(), 1, "{median:?}");
    let moved = &median.moved[0];
    assert_eq!(
        (moved.place.as_str(), moved.cause),
        ("leaf cpu", Cause::Stolen)
    );
    assert!((moved.difference_ns - 1e6).abs() < 3e4, "{moved:?}");
    assert!(
        comparison.sentences[0].contains("What moved: `leaf cpu` stolen +"),
        "{comparison}"
    );
    // Parts of a comparison are those of the analysis of one run.
    let spans = chain(&mut SplitMix::new(1), 300, |_| 0);
    assert_eq!(analyse(&spans, None, None).counts.analysed, 300);
}
