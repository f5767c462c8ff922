//! Which requests are recorded.

use traces::TraceId;
use traces::context::Context;

/// Decides which traces are recorded. All services decide alike, for the decision follows
/// from the trace's id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampler {
    /// Traces whose lowest 56 bits are below it are recorded. Those are the random ones
    /// of W3C's ids (Trace Context level 2).
    below: u64,
}

const BITS: u32 = 56;

impl Sampler {
    /// Records the share `sample` (0 to 1) of the requests whose caller did not decide.
    pub fn new(sample: f64) -> Self {
        let below = sample.clamp(0.0, 1.0) * (1_u64 << BITS) as f64;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "from 0 to 2^56"
        )]
        let below = below as u64;
        Self { below }
    }

    /// Whether a request is recorded: as its caller decided, else by its trace, which is
    /// the caller's or a new one.
    pub fn samples(&self, context: &Context, trace: TraceId) -> bool {
        #[expect(clippy::cast_possible_truncation, reason = "the low bits are meant")]
        let low = trace.0 as u64 & ((1 << BITS) - 1);
        context.sampled.unwrap_or(low < self.below)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(sample: f64) -> usize {
        let sampler = Sampler::new(sample);
        let traces = (0..10_000).map(|number| TraceId::of_request(3, traces::ids::Run(0), number));
        traces
            .filter(|trace| sampler.samples(&Context::default(), *trace))
            .count()
    }

    #[test]
    fn the_share_is_what_was_asked_for() {
        assert_eq!((share(0.0), share(1.0)), (0, 10_000));
        // Five standard deviations.
        assert!((50..=150).contains(&share(0.01)), "{}", share(0.01));
    }

    #[test]
    fn the_caller_decides() {
        let told = |sampled| Context {
            sampled: Some(sampled),
            ..Context::default()
        };
        let trace = TraceId(1);
        assert!(Sampler::new(0.0).samples(&told(true), trace));
        assert!(!Sampler::new(1.0).samples(&told(false), trace));
    }
}
