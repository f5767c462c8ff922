//! Randomness of requests: what a request does follows from the graph's seed and from its
//! trace context, and from nothing else.
//!
//! A request that enters without a context gets a trace id from the seed and its number, and
//! from the run, so that two runs of a file can share a collector. Draws do not see the run:
//! they follow from the lower half of such an id, which is the seed's and the number's alone.
//! Of an id that somebody else made, they follow from all of it. Every span id follows from
//! its parent's and from the step that made it. So the same file and seed give the same calls
//! again, in whatever order requests run, and a client that sends its own context decides
//! what happens.
//!
//! ```text
//! 127        96 95         64 63                     0
//! ┌────────────┬─────────────┬────────────────────────┐
//! │ run        │ mark        │ key: seed, number      │  a trace id of ours
//! └────────────┴─────────────┴────────────────────────┘
//! ```
//!
//! The mark follows from the other two: by it every service knows such an id, whoever made
//! it. Another id has it by chance once in 2^32, and loses nothing by it but its upper half.
//! A peer that knows 64 bits alone passes on the key, and with it the same draws.

use std::hash::{BuildHasher, RandomState};

/// Names one request of a client over all services; zero is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct TraceId(pub u128);

/// Names one span of a trace; zero is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct SpanId(pub u64);

/// Names one run of a graph: the trace ids of two runs differ, and nothing else does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Run(pub u32);

impl Run {
    /// A new one, by chance.
    pub fn new() -> Self {
        // The standard library seeds its hashers from the system's randomness.
        Self(lowest(RandomState::new().hash_one(std::process::id())))
    }
}

impl TraceId {
    /// That of the request with a number, counted from 0 where requests enter.
    pub fn of_request(seed: u64, run: Run, number: u64) -> Self {
        // Two numbers, so that seeds of files mean what they always have.
        let key = (mix(seed, number, 1) ^ mix(seed, number, 2)).max(1);
        let high = u64::from(run.0) << 32 | u64::from(mark(run, key));
        Self(u128::from(high) << 64 | u128::from(key))
    }

    /// What draws and ids of spans follow from.
    fn key(self) -> u64 {
        #[expect(clippy::cast_possible_truncation, reason = "both halves are looked at")]
        let (high, key) = ((self.0 >> 64) as u64, self.0 as u64);
        let run = Run(lowest(high >> 32));
        match lowest(high) == mark(run, key) {
            true => key,
            false => high ^ key,
        }
    }
}

/// By what a trace id of ours is known.
fn mark(run: Run, key: u64) -> u32 {
    lowest(mix(key, u64::from(run.0), 4))
}

#[expect(clippy::cast_possible_truncation, reason = "the low bits are meant")]
fn lowest(bits: u64) -> u32 {
    bits as u32
}

impl SpanId {
    /// That of a span below this one: `step` tells siblings apart, `turn` the repeats and
    /// attempts of one step. Never zero.
    #[must_use]
    pub fn child(self, trace: TraceId, step: u32, turn: u32) -> Self {
        let place = u64::from(step) << 32 | u64::from(turn);
        Self(mix(self.0, trace.key(), place).max(1))
    }
}

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

/// Joins three numbers into one whose bits all depend on all of theirs (the finaliser of
/// `SplitMix64`, Steele, Lea and Flood 2014, after each).
fn mix(a: u64, b: u64, c: u64) -> u64 {
    let step = |state: u64, more: u64| {
        let z = state.wrapping_add(more).wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    };
    step(step(step(0, a), b), c)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

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
