//! The folder that holds a run: formats, writing, reading.
//!
//! Everything in it is plain text in documented formats (`docs/run-store.md`), so
//! that other programs can read a run without this crate, and so that a report
//! can be rebuilt from it.

mod records;

pub use records::*;
