//! What services count about their requests, calls and work, and how it is shown.
//!
//! Each instance of a service counts for itself, on the thread where it lives: no lock,
//! no locked instruction, no memory once each class of status was seen. Who reads sums
//! over the instances.

mod bounds;
mod count;
mod counters;
mod histogram;
mod history;
mod page;
mod registry;
mod snapshot;
mod testapi;
#[cfg(test)]
pub(crate) mod tests;

pub use count::Count;
pub use counters::{
    ClientCounters, ConnectionCounters, InstanceCounters, ServerCounters, WorkCounters,
};
pub use histogram::{Histogram, Times};
pub use history::{History, READINGS, Window};
pub use page::page;
pub use registry::{Metrics, kind};
pub use snapshot::{Key, Snapshot, Totals, cause_name};
pub use testapi::page as testapi_page;
