//! Child processes: starting, readiness, ending.

mod addresses;
mod cgroup;
mod children;
mod launch;
mod ports;
mod ready;
mod systems;
mod tail;

pub(crate) use addresses::Addresses;
pub(crate) use cgroup::CgroupError;
pub(crate) use children::{Child, Children, Ended};
pub(crate) use launch::{Launch, Output};
pub(crate) use ports::PortError;
pub(crate) use systems::{Running, StartError, Systems, copy_names};
pub(crate) use tail::last_lines;
