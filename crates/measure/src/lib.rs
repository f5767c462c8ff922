//! Clocks, histograms, and what Linux says about processes and the machine.
//!
//! Parsers are pure functions over text; only [`ProcessSampler`], [`Trees`],
//! [`listening_ports`] and [`Machine::detect`] read `/proc`.

mod clock;
mod histogram;
mod listening;
mod machine;
mod proc_text;
mod process;
mod tree;

pub use clock::{Clock, Ticks};
pub use histogram::{Bin, HIGHEST, Histogram, HistogramError};
pub use listening::{descendants, listening_ports};
pub use machine::Machine;
pub use proc_text::{Malformed, Stat, cpu_model, memory_bytes, parse_rollup, parse_stat};
pub use process::{ProcessSampler, Sample, SampleError};
pub use tree::{Found, Marks, Member, TreeSample, Trees};
