use stats::SplitMix;

use super::runs::{graph, simulated};
use super::*;
use traces::analysis::{Cause, PartChange, Run, Verdict, compare};

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
    let left_out = "The last run of B is left out of latencies, which are compared in pairs.";
    assert!(single.notes.iter().any(|note| note == left_out));
    let quantiles: Vec<f64> = single.changes.iter().map(|one| one.quantile).collect();
    assert_eq!(quantiles, [0.5, 0.9], "stretches of 600 give no p99");
    let text = single.to_string();
    assert!(text.contains("One run of each side is too few"), "{text}");
    assert!(
        text.contains("p99: the shortest stretch has 600 requests of 1,000"),
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
        Run::of_spans(&chain(&mut random, 300, lost), None, None)
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
        comparison.sentences[0].starts_with("Behind what got worse: `leaf`."),
        "{comparison}"
    );
    assert!(
        comparison.sentences[1].contains("What moved: `leaf cpu` stolen +"),
        "{comparison}"
    );
    // Parts of a comparison are those of the analysis of one run.
    let spans = chain(&mut SplitMix::new(1), 300, |_| 0);
    assert_eq!(analyse(&spans, None, None).counts.analysed, 300);
}

/// Runs of 250 requests of one build, of which so many failed in each.
fn failing(random: &mut SplitMix, failed: &[u64]) -> Vec<Run> {
    let run = |failed: &u64| {
        let rest = 250 - *failed as usize;
        Run::of_latencies(latencies(random, rest, 1e6)).with_failed(*failed)
    };
    failed.iter().map(run).collect()
}

#[test]
fn more_failures_than_chance_gives_are_worse_whatever_the_latency_is() {
    let mut random = SplitMix::new(11);
    let a = failing(&mut random, &[0, 0, 0]);
    let b = failing(&mut random, &[24, 22, 26]);
    let worse = compare(&a, &b);
    assert_eq!(worse.verdict, Verdict::Worse);
    let said = "B fails more: 0 of 750 requests of A and 72 of 750 of B failed; chance alone gives that in less than 0.1 % of all cases.";
    assert!(worse.sentences[0].starts_with(said), "{worse}");

    let better = compare(&b, &a);
    assert_eq!(better.failing.unwrap().verdict, Verdict::Better);
    let said = "A fails more: 72 of 750 requests of A and 0 of 750 of B failed;";
    assert!(better.sentences[0].starts_with(said), "{better}");

    // Nothing left of B to have a latency.
    let none = compare(&a, &failing(&mut random, &[250, 250, 250]));
    assert_eq!((none.verdict, none.changes.len()), (Verdict::Worse, 0));
    // One run of each is enough for chance.
    let single = compare(&a[..1], &b[..1]);
    assert_eq!(single.verdict, Verdict::Worse, "{single}");
    assert_eq!(single.failing.unwrap().interval, None);
}

#[test]
fn failures_that_chance_or_one_bad_run_can_explain_are_possibly_more() {
    let mut random = SplitMix::new(12);
    let mut verdict = |a: &[u64], b: &[u64]| {
        let (a, b) = (failing(&mut random, a), failing(&mut random, b));
        let comparison = compare(&a, &b);
        (comparison.failing.unwrap().verdict, comparison.to_string())
    };
    let (few, text) = verdict(&[0, 0, 0], &[2, 1, 2]);
    assert_eq!(few, Verdict::PossiblyWorse);
    let said = "B may fail more: 0 of 750 requests of A and 5 of 750 of B failed; chance alone gives that in 3.";
    assert!(text.starts_with(said), "{text}");
    let (burst, text) = verdict(&[0, 0, 0], &[72, 0, 0]);
    assert_eq!(burst, Verdict::PossiblyWorse);
    assert!(text.contains("runs differ so much"), "{text}");

    for (a, b) in [([0, 0, 0], [0, 1, 1]), ([9, 12, 10], [11, 10, 12])] {
        let (same, text) = verdict(&a, &b);
        assert_eq!(same, Verdict::NoDifferenceResolvable);
        assert!(text.contains("Failed, and in no latency:"), "{text}");
    }
}

/// 5, 9 and 13 of 250 more: a mean of 3.6 %, whose error is 1.6 % over the root of three. Student's
/// distribution has 4.303 of it to each side.
#[test]
fn the_interval_of_failures_is_that_of_students_test() {
    let mut random = SplitMix::new(14);
    let a = failing(&mut random, &[0, 0, 0]);
    let b = failing(&mut random, &[5, 9, 13]);
    let found = compare(&a, &b).failing.unwrap();
    let (low, high) = found.interval.unwrap();
    assert!((low + 0.003_746).abs() < 1e-5, "{low}");
    assert!((high - 0.075_746).abs() < 1e-5, "{high}");
    assert_eq!(found.verdict, Verdict::PossiblyWorse);
}

#[test]
fn equal_shares_of_failures_are_hardly_ever_told_apart() {
    let mut random = SplitMix::new(13);
    let (mut worse, mut possibly) = (0, 0);
    for _ in 0..200 {
        let mut drawn = || {
            let count = |random: &mut SplitMix| (0..250).filter(|_| random.below(20) == 0).count();
            let failed: Vec<u64> = (0..4).map(|_| count(&mut random) as u64).collect();
            let run = |failed: &u64| Run::of_latencies(vec![1; 250]).with_failed(*failed);
            failed.iter().map(run).collect::<Vec<Run>>()
        };
        let verdict = compare(&drawn(), &drawn()).failing.unwrap().verdict;
        worse += usize::from(verdict == Verdict::Worse);
        possibly += usize::from(verdict == Verdict::PossiblyWorse);
    }
    assert!(
        worse <= 10 && possibly <= 30,
        "{worse} and {possibly} of 200"
    );
}

#[test]
fn what_grew_is_told_from_what_moved_onto_the_path_and_from_what_grew_off_it() {
    // Two branches at once, whose work takes so long.
    let runs = |(price, stock): (u64, u64)| -> Vec<Run> {
        let topology = graph(&format!(
            "[services.root]\nentry = true\nsteps = [{{ parallel = [{{ call = \"price\" }}, {{ call = \"stock\" }}] }}]\n\
             [services.price]\nsteps = [{{ cpu = \"{price}ms\" }}]\n\
             [services.stock]\nsteps = [{{ cpu = \"{stock}ms\" }}]\n"
        ));
        let spans = simulated(&topology, 200);
        (0..4).map(|_| Run::of_spans(&spans, None, None)).collect()
    };
    let before = runs((8, 6));

    let grew = compare(&before, &runs((10, 6)));
    let moved: Vec<_> = grew.changes[0].moved.iter().collect();
    assert_eq!(
        (moved.len(), moved[0].how),
        (1, PartChange::Changed),
        "{grew}"
    );
    assert_eq!(moved[0].place, "price cpu");
    assert!(grew.off_path.is_empty(), "{grew}");

    let off = compare(&before, &runs((8, 7)));
    assert_eq!(off.verdict, Verdict::NoDifferenceResolvable);
    let text = off.to_string();
    let said = "Off the critical path, `stock cpu` cpu grew by 1 ms: nobody waits for it yet.";
    assert!(text.contains(said), "{text}");

    let onto = compare(&before, &runs((1, 6)));
    let how = |place: &str| {
        let mut moved = onto.changes[0].moved.iter();
        moved.find(|one| one.place == place).map(|one| one.how)
    };
    assert_eq!(how("price cpu"), Some(PartChange::Changed), "{onto}");
    assert_eq!(how("stock cpu"), Some(PartChange::MovedOntoPath), "{onto}");
    let text = onto.to_string();
    assert!(
        text.contains("(moved onto the critical path; it takes no longer)"),
        "{text}"
    );

    let same = compare(&before, &before).to_string();
    assert!(!same.contains("critical path"), "{same}");
}
