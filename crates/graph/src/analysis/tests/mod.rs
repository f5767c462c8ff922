mod accusing;
mod comparing;
mod runs;
#[path = "../../../../traces/src/analysis/tests/spans.rs"]
mod spans;
mod suspects;

use spans::*;
use traces::analysis::Analysis;
use traces::{Nanos, Span, SpanKind, TraceId};

use super::Question;
use crate::noise::Noise;
use crate::topology::Topology;

const MS: Nanos = 1_000_000;

/// Analyses spans with the usual costs.
fn analyse(spans: &[Span], topology: Option<&Topology>, noise: Option<&Noise>) -> Analysis {
    let question = Question {
        topology,
        noise,
        ..Question::default()
    };
    question.analyse(spans)
}
