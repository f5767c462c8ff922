//! Clocks, histograms, and what Linux says about processes and the machine.
//!
//! Parsers are pure functions over text; only [`ProcessSampler`],
//! [`listening_ports`] and [`Machine::detect`] read `/proc`.

mod clock;
mod histogram;
mod listening;
mod machine;
mod proc_text;
mod process;

pub use clock::{Clock, Ticks};
pub use histogram::{Bin, HIGHEST, Histogram, HistogramError};
pub use listening::{descendants, listening_ports};
pub use machine::Machine;
pub use proc_text::{Malformed, Stat, cpu_model, memory_bytes, parse_stat};
pub use process::{ProcessSampler, Sample, SampleError};
