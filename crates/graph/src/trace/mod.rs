//! What happened to requests of this graph: how spans are recorded, collected and
//! sent on. What spans are is in [`traces`].

mod collector;
mod export;
mod recorder;
mod sampling;
#[cfg(test)]
mod tests;

pub use collector::{Tracer, TracerCounts};
pub use export::{Export, ExportCounts, Format};
pub use recorder::Recorder;
pub use sampling::Sampler;
