//! Randomness of requests: what a request does follows from the graph's seed and from its
//! trace context, and from nothing else.
//!
//! Draws do not see the run that a trace id of ours carries ([`traces::ids`]): they follow from
//! its lower half, which is the seed's and the number's alone. Of an id that somebody else made,
//! they follow from all of it. So the same file and seed give the same calls again, in whatever
//! order requests run, and a client that sends its own context decides what happens.

use traces::ids::{SpanId, TraceId, mix};

/// The uniform numbers of one request in one service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Draws(u64);

impl Draws {
    /// Those of the server span `span`.
    pub fn new(seed: u64, trace: TraceId, span: SpanId) -> Self {
        Self(span.child(trace, 0, 0).0 ^ mix(seed, span.0, 3))
    }

    /// A number from 0 to below 1 for a step; `of` tells the draws of one step apart.
    pub fn uniform(self, step: u32, of: u32) -> f64 {
        let bits = mix(self.0, u64::from(step), u64::from(of)) >> 11;
        #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
        let bits = bits as f64;
        bits / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use traces::ids::Run;

    use super::*;

    #[test]
    fn a_share_of_requests_is_the_probability_and_the_same_again() {
        let calls = |seed| -> Vec<u64> {
            (0..10_000)
                .filter(|number| {
                    let trace = TraceId::of_request(seed, Run(0), *number);
                    Draws::new(seed, trace, SpanId(7)).uniform(3, 0) < 0.3
                })
                .collect()
        };
        let first = calls(42);
        // Three standard deviations of a binomial with 10,000 trials.
        assert!((2862..=3138).contains(&first.len()), "{}", first.len());
        assert_eq!(first, calls(42));
        assert_ne!(first, calls(43));
    }

    #[test]
    fn ids_differ_by_trace_step_and_turn() {
        let mut seen = HashSet::new();
        for number in 0..100 {
            let trace = TraceId::of_request(1, Run(7), number);
            assert!(seen.insert(SpanId(trace.0 as u64)));
            for step in 0..10 {
                for turn in 0..5 {
                    assert!(seen.insert(SpanId(9).child(trace, step, turn)));
                }
            }
        }
    }

    #[test]
    fn runs_differ_by_their_trace_ids_and_by_nothing_else() {
        let mut seen = HashSet::new();
        for number in 0..1000 {
            let of = |run| TraceId::of_request(5, Run(run), number);
            let first = Draws::new(5, of(0), SpanId(9));
            for run in [0, 1, 2, u32::MAX] {
                assert!(seen.insert(of(run)), "run {run}, number {number}");
                assert_eq!(Draws::new(5, of(run), SpanId(9)), first);
                assert_eq!(SpanId(3).child(of(run), 1, 2), SpanId(3).child(of(0), 1, 2));
            }
            // Through a peer that knows 64 bits alone.
            let short = TraceId(of(3).0 & u128::from(u64::MAX));
            assert_eq!(Draws::new(5, short, SpanId(9)), first);
        }
    }

    #[test]
    fn all_of_an_id_of_others_counts() {
        let draws = |trace| Draws::new(5, TraceId(trace), SpanId(9));
        let one = 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736;
        for bit in 0..128 {
            assert_ne!(draws(one), draws(one ^ 1 << bit), "bit {bit}");
        }
    }

    #[test]
    fn new_runs_are_hardly_ever_the_same() {
        let runs: HashSet<Run> = (0..100).map(|_| Run::new()).collect();
        assert!(runs.len() > 98);
    }
}
