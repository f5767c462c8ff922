//! Randomness of requests: what a request does follows from the graph's seed and from its
//! trace context, and from nothing else.
//!
//! A request that enters without a context gets a trace id from the seed and its number.
//! Every span id follows from its parent's and from the step that made it. So the same
//! file and seed give the same calls again, in whatever order requests run, and a client
//! that sends its own context decides what happens.

/// Names one request of a client over all services; zero is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct TraceId(pub u128);

/// Names one span of a trace; zero is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct SpanId(pub u64);

impl TraceId {
    /// That of the request with a number, counted from 0 where requests enter.
    pub fn of_request(seed: u64, number: u64) -> Self {
        let high = mix(seed, number, 1);
        let low = mix(seed, number, 2).max(1);
        Self(u128::from(high) << 64 | u128::from(low))
    }
}

impl SpanId {
    /// That of a span below this one: `step` tells siblings apart, `turn` the repeats and
    /// attempts of one step. Never zero.
    #[must_use]
    pub fn child(self, trace: TraceId, step: u32, turn: u32) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "both halves are used")]
        let trace = (trace.0 >> 64) as u64 ^ trace.0 as u64;
        let place = u64::from(step) << 32 | u64::from(turn);
        Self(mix(self.0, trace, place).max(1))
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
                    let trace = TraceId::of_request(seed, *number);
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
            let trace = TraceId::of_request(1, number);
            assert!(seen.insert(SpanId(trace.0 as u64)));
            for step in 0..10 {
                for turn in 0..5 {
                    assert!(seen.insert(SpanId(9).child(trace, step, turn)));
                }
            }
        }
    }
}
