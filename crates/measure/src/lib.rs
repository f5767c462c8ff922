//! Clocks, histograms, and what Linux says about processes and the machine.
//!
//! Parsers are pure functions over text; [`pids`], [`environ`], [`ProcessSampler`],
//! [`Trees`], [`listening_ports`], [`CpuTimes::now`] and [`Machine::detect`] read `/proc`.

mod clock;
mod histogram;
mod listening;
mod machine;
mod proc_text;
mod process;
mod tree;

pub use clock::{Clock, Ticks};
pub use histogram::{Bin, HIGHEST, Histogram, HistogramError};
pub use listening::listening_ports;
pub use machine::Machine;
pub use proc_text::{CpuTimes, Malformed};
pub use process::{ProcessSampler, Sample, SampleError, environ, pids};
pub use tree::{Found, Marks, Member, TreeSample, Trees};
