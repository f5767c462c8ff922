//! Child processes: starting, readiness, ending.

mod addresses;
mod children;
mod copy;
mod launch;
mod ports;
mod ready;
mod supervise;
mod systems;
mod tail;

pub(crate) use addresses::{Addresses, loopback};
pub use children::LaunchError;
pub(crate) use children::{Child, Children, Ended};
pub(crate) use copy::{Copy, Running, copy_names, pause, runs, signal};
pub(crate) use launch::{Launch, Output, itself};
pub use ports::{PortError, Ports};
pub(crate) use ready::reach;
pub use systems::StartError;
pub(crate) use systems::{Starting, Systems};
pub(crate) use tail::{first_lines, last_lines, shown};
