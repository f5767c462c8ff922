//! Why a report could not be made.

use std::path::PathBuf;

use lab_store::StoreError;
use thiserror::Error;

/// Why a report could not be made.
#[derive(Debug, Error)]
pub enum ReportError {
    /// A file of the run could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file of timelines is not what its format says.
    #[error("{}: {problem}; the formats are in docs/run-store.md", .path.display())]
    Timelines {
        /// The file.
        path: PathBuf,
        /// The line, what was found and what was expected.
        problem: String,
    },
    /// A trace could not be written.
    #[error("cannot write the trace: {0}")]
    Trace(std::io::Error),
    /// The file of a trace could not be made.
    #[error("cannot write {}: {cause}", .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        cause: std::io::Error,
    },
    /// The data have no JSON form.
    #[error("cannot write the report's data: {0}")]
    Encode(serde_json::Error),
}
