//! Random trees of spans: whatever they are, nothing is lost and nothing counts twice.

use proptest::prelude::*;

use stats::share_of_variance;

use super::*;
use crate::TraceId;
use crate::analysis::{Analysis, analyse, critical_path};

/// A span as numbers: which parent, which kind, where in it, how long, queue, cpu.
type Seed = (u16, u8, u16, u16, u16, u16);

fn seeds() -> impl Strategy<Value = Vec<Seed>> {
    let seed = (
        any::<u16>(),
        0u8..12,
        0u16..1200,
        0u16..1200,
        0u16..400,
        any::<u16>(),
    );
    proptest::collection::vec(seed, 0..40)
}

/// A tree with everything that traces of the wild have: children that begin before their
/// parents, end after them, overlap, end together, fail, miss their other end.
fn tree(trace: u128, length: u64, seeds: &[Seed]) -> Vec<Span> {
    let root = server((1, 0), "s0", (5_000_000, 5_000_000 + length));
    let mut spans = vec![root];
    for (number, (parent, kind, begin, long, queue, cpu)) in seeds.iter().enumerate() {
        let above = &spans[usize::from(*parent) % spans.len()];
        // In thousandths of the parent, 100 before it and 100 after it at most.
        let whole = above.end - above.start;
        let at = |part: u64| (above.start + whole * part / 1000).saturating_sub(whole / 10);
        let start = at(u64::from(*begin));
        let end = start + whole * u64::from(*long) / 1000;
        let ids = (number as u64 + 2, above.id.0);
        let service = format!("s{}", number % 5);
        let times = (start, end);
        let one = match (kind, above.kind) {
            (0..4, _) => work(ids, &format!("{service} cpu"), times, u64::from(*cpu)),
            (4, _) => work(ids, &format!("{service} sleep"), times, 0),
            (5, _) => work(ids, &format!("{service} lock"), times, u64::from(*cpu)),
            (_, SpanKind::Client) => server(ids, &service, times),
            _ => client(ids, &format!("{service}>t{}", number % 3), times),
        };
        spans.push(Span {
            queue: u64::from(*queue) * 10,
            status: if *kind == 11 { 504 } else { one.status },
            ..one
        });
    }
    for span in &mut spans {
        span.trace = TraceId(trace);
    }
    spans
}

fn trees() -> impl Strategy<Value = Vec<Vec<Span>>> {
    let one = (1u64..2_000_000, seeds());
    proptest::collection::vec(one, 1..40).prop_map(|all| {
        let all = all.into_iter().enumerate();
        all.map(|(at, (length, seeds))| tree(at as u128 + 1, length, &seeds))
            .collect()
    })
}

fn close(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-6 * (1.0 + one.abs().max(other.abs()))
}

fn assert_sums(analysis: &Analysis) -> Result<(), TestCaseError> {
    let of = |figures: &mut dyn Iterator<Item = crate::analysis::Figures>| {
        figures.fold((0.0, 0.0, 0.0, 0.0), |sum, one| {
            let above = one.above_ns.unwrap_or(0.0);
            let variance = one.variance_share.unwrap_or(0.0);
            (
                sum.0 + one.mean_ns,
                sum.1 + one.typical_ns,
                sum.2 + above,
                sum.3 + variance,
            )
        })
    };
    let parts = of(&mut analysis.components.iter().map(|one| one.figures));
    prop_assert!(close(parts.0, analysis.latency.mean_ns), "{parts:?}");
    let causes = of(&mut analysis.causes.iter().map(|one| one.figures));
    let services = analysis.services.iter().map(|one| one.figures);
    let edges = analysis.edges.iter().map(|one| one.figures);
    let places = of(&mut services.chain(edges));
    for other in [causes, places] {
        prop_assert!(close(parts.0, other.0), "{parts:?} {other:?}");
        prop_assert!(close(parts.1, other.1), "{parts:?} {other:?}");
        prop_assert!(close(parts.2, other.2), "{parts:?} {other:?}");
        prop_assert!((parts.3 - other.3).abs() < 1e-6, "{parts:?} {other:?}");
    }
    if let Some(tail) = &analysis.tail {
        prop_assert!(close(parts.2, tail.difference_ns), "{parts:?} {tail:?}");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn components_add_up_to_the_request(seeds in seeds(), length in 0u64..3_000_000) {
        let spans = tree(1, length, &seeds);
        let path = critical_path(&spans, None);
        let sum: u64 = path.iter().flat_map(|one| &one.own).map(|own| own.1).sum();
        prop_assert_eq!(sum, length);
        prop_assert_eq!((path[0].from, path[0].to), (5_000_000, 5_000_000 + length));
        // Each lies within the window of its parent, and siblings do not overlap.
        for one in &path {
            prop_assert!(one.from <= one.to);
            let span = spans.iter().find(|span| span.id == one.span).unwrap();
            let above = path.iter().find(|above| above.span == span.parent);
            if let Some(above) = above {
                prop_assert!(above.from <= one.from && one.to <= above.to);
            }
            for other in &path {
                let other_span = spans.iter().find(|span| span.id == other.span).unwrap();
                let siblings = other_span.parent == span.parent && other.span != one.span;
                prop_assert!(!siblings || one.to <= other.from || other.to <= one.from);
            }
        }
    }

    #[test]
    fn whatever_is_summed_over_requests_adds_up(trees in trees(), order in any::<u64>()) {
        let mut spans: Vec<Span> = trees.concat();
        let analysis = analyse(&spans);
        prop_assert_eq!(analysis.counts.traces, trees.len() as u64);
        prop_assert_eq!(analysis.conservation.worst_ns, 0);
        assert_sums(&analysis)?;
        // The order of spans says nothing.
        let mut random = stats::SplitMix::new(order);
        for at in (1..spans.len()).rev() {
            spans.swap(at, random.below(at + 1));
        }
        let again = analyse(&spans);
        prop_assert_eq!(&again.latency, &analysis.latency);
        prop_assert_eq!(again.components.len(), analysis.components.len());
        let _ = format!("{analysis}");
        serde_json::to_string(&analysis).unwrap();
    }

    #[test]
    fn the_tail_is_the_sum_of_its_parts(
        works in proptest::collection::vec((1u64..90_000, 1u64..90_000, 0u64..900_000), 100..1200),
    ) {
        let mut spans = Vec::new();
        let (mut stolen, mut totals) = (Vec::new(), Vec::new());
        for (at, (cpu, lost, own)) in works.iter().enumerate() {
            let end = cpu + lost + own;
            let mut both = [
                server((1, 0), "root", (0, end)),
                work((2, 1), "root cpu", (0, cpu + lost), *cpu),
            ];
            both.iter_mut().for_each(|span| span.trace = TraceId(at as u128 + 1));
            spans.extend(both);
            stolen.push(*lost as f64);
            totals.push(end as f64);
        }
        let analysis = analyse(&spans);
        prop_assert!(analysis.tail.is_some());
        assert_sums(&analysis)?;
        let part = analysis.causes.iter().find(|one| one.cause == crate::analysis::Cause::Stolen);
        let seen = part.unwrap().figures.variance_share.unwrap();
        let expected = share_of_variance(&stolen, &totals).unwrap();
        prop_assert!((seen - expected).abs() < 1e-9, "{seen} {expected}");
    }
}
