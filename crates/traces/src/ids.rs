//! Names of traces and spans. Those that this program makes follow from a seed: a request that
//! enters without a context gets a trace id from the seed and its number, and from the run, so
//! that two runs of a file can share a collector; every span id follows from its parent's and
//! from the step that made it.
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

use stats::SplitMix;

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

    /// That of a server which shares this one with its client. It is the same under whichever id
    /// a trace goes: that may be known by halves, or changed where requests share one.
    #[must_use]
    pub(crate) fn of_server(self) -> Self {
        self.child(TraceId::default(), 0, 0)
    }
}

/// Joins three numbers into one whose bits all depend on all of theirs (a step of
/// SplitMix64 after each).
pub fn mix(a: u64, b: u64, c: u64) -> u64 {
    let step = |state: u64, more: u64| SplitMix::new(state.wrapping_add(more)).bits();
    step(step(step(0, a), b), c)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computed apart from this code: ids follow from the seed of a file, and must stay.
    #[test]
    fn three_numbers_always_mix_to_the_same() {
        assert_eq!(mix(1, 2, 3), 0x6ae5_15c1_c0ac_7e37);
    }
}
