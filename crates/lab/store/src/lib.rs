//! The folder that holds a run: formats, writing, reading.
//!
//! Everything in it is plain text in documented formats (`docs/run-store.md`), so
//! that other programs can read a run without this crate, and so that a report
//! can be rebuilt from it.

mod append;

mod error;
mod findings;
mod folder;
mod line;
mod loads;
mod profile;
mod read;
mod records;
mod shelf;
mod so_far;
mod usage;

pub use append::Appender;
pub use error::StoreError;
pub use findings::{FindingRecord, Mark};
pub use folder::{RunFile, RunFolder};
pub use line::Record;
pub use loads::{LOADS_MAX, StoredLoad};
pub use profile::{ProfileRecord, SystemSamples};
pub use records::*;
pub use shelf::{FoundRun, RUNS_MAX, StoredRun, remove_rests, runs_in};
pub use so_far::{LoadRate, SoFar};
pub use usage::{DatagramSample, LimitSample, MachineSample, ThreadSample};

/// Longest line that is read, in bytes.
pub const LINE_BYTES_MAX: usize = 1 << 20;
/// Most records that are read from one file.
pub const RECORDS_MAX: usize = 10_000_000;
/// Largest JSON or TOML file that is read, in bytes.
pub const DOCUMENT_BYTES_MAX: u64 = 64 << 20;
