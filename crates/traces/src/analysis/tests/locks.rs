//! What is said of workers that are all busy.

use stats::SplitMix;

use crate::analysis::{Analysis, SuspectKind, analyse};
use crate::samples::server;
use crate::{Nanos, Span, SpanId, SpanKind};

const MS: Nanos = 1_000_000;

/// Requests of a service with two workers, each of which does one piece of work; under a lock,
/// one at a time.
fn workers(seed: u64, work: &str, length: Nanos) -> Analysis {
    let mut random = SplitMix::new(seed);
    let (mut free, mut lock, mut now) = ([0; 2], 0, 0);
    let mut spans = Vec::new();
    for request in 1..=2_000_u64 {
        now += (random.exponential() * 10.0 * MS as f64) as Nanos;
        free.sort_unstable();
        let begun = free[0].max(now);
        let held = if work == "lock" {
            begun.max(lock)
        } else {
            begun
        };
        let end = held + length;
        (free[0], lock) = (end, end);
        let trace = u128::from(request);
        spans.push(server(trace, 1, now, end));
        spans.push(Span {
            parent: SpanId(1),
            kind: SpanKind::Work,
            name: work.into(),
            queue: begun - now,
            cpu: length,
            status: 0,
            ..server(trace, 2, now, end)
        });
    }
    analyse(&spans)
}

fn first(analysis: &Analysis) -> Option<(SuspectKind, &str)> {
    let first = analysis.suspects.first()?;
    Some((first.kind, &first.place))
}

#[test]
fn a_lock_that_workers_stand_at_is_the_limit_and_not_the_workers() {
    for seed in 1..=3 {
        let locked = workers(seed, "lock", 8 * MS);
        assert_eq!(
            first(&locked),
            Some((SuspectKind::Wait, "a lock")),
            "{locked}"
        );
        let said = locked.sentences.concat();
        assert!(
            said.contains("Workers of `a` stand at its lock for "),
            "{said}"
        );
        let kinds = locked.suspects.iter().map(|one| one.kind);
        assert!(
            kinds.clone().all(|kind| kind != SuspectKind::Workers),
            "{locked}"
        );
    }
}

#[test]
fn workers_that_work_are_the_limit() {
    for seed in 1..=3 {
        let busy = workers(seed, "cpu", 17 * MS);
        assert_eq!(first(&busy), Some((SuspectKind::Workers, "a")), "{busy}");
        assert!(
            !busy.sentences.concat().contains("stand at its lock"),
            "{busy}"
        );
    }
}
