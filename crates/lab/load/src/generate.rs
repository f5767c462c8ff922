//! What every generator can do, be it threads of this process, processes on other
//! machines, or a simulation.

use crate::recording::{Recorded, Span};
use crate::segment::Segment;

/// Runs segments of one workload, one after the other, over the same connections.
pub trait Generate {
    /// Runs a segment to its end. `watch` is called about once a second with the span
    /// that has just ended (all threads and workers merged), and can end the segment
    /// early; the result then says so.
    ///
    /// # Errors
    /// When the segment could not be run at all, or a worker was lost without a trace.
    /// Failures of requests are part of the result.
    fn run(
        &mut self,
        segment: &Segment,
        watch: &mut dyn FnMut(&Span) -> Flow,
    ) -> Result<Recorded, GenerateError>;

    /// How many of the connections that it holds the target has closed since they were opened.
    /// Asked between segments; a generator that does not know says none.
    ///
    /// # Errors
    /// When it cannot look.
    fn turned_away(&mut self) -> Result<u32, GenerateError> {
        Ok(0)
    }
}

/// Whether a segment goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// It goes on.
    Continue,
    /// No more requests; those in flight are awaited.
    Stop,
}

/// Why a segment could not be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, serde::Serialize, serde::Deserialize)]
#[error("{doing}: {found}{}", help.as_ref().map(|help| format!("; {help}")).unwrap_or_default())]
pub struct GenerateError {
    /// What was being done.
    pub doing: String,
    /// What was found.
    pub found: String,
    /// What to do next.
    pub help: Option<String>,
}

impl GenerateError {
    /// What was being done, and what was found.
    pub fn new(doing: impl Into<String>, found: impl ToString) -> Self {
        Self {
            doing: doing.into(),
            found: found.to_string(),
            help: None,
        }
    }

    /// With what to do next.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}
