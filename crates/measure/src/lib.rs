//! Clocks, histograms, and what Linux says about processes and the machine.
//!
//! Parsers are pure functions over text; [`each_carrier`], [`ProcessSampler`], [`Trees`],
//! [`Threads`], [`listening_ports`], [`TcpSockets::now`], [`NetCounts::now`], [`udp_drops`],
//! [`CpuTimes::now`] and [`Machine::detect`] read `/proc`.

mod carriers;
mod clock;
mod histogram;
mod listening;
mod machine;
mod proc_text;
mod process;
mod sockets;
mod stacks;
mod threads;
mod tree;

pub use carriers::{Carriers, each_carrier};
pub use clock::{Clock, Ticks};
pub use histogram::{Bin, HIGHEST, Histogram, HistogramError};
pub use listening::listening_ports;
pub use machine::Machine;
pub use proc_text::{CpuTimes, Malformed};
pub use process::{ProcessSampler, Sample, SampleError, descriptors_of, holder_of_socket};
pub use sockets::{NetCounts, TcpSockets, ephemeral_ports, udp_drops};
pub use stacks::{
    KernelSymbols, Maps, RawStack, SAMPLES_PER_SECOND, Sampled, SamplerError, StackSampler, Symbols,
};
pub use threads::{ThreadTime, ThreadTimes, Threads, thread_name};
pub use tree::{Found, Marks, Member, TreeSample, Trees};
