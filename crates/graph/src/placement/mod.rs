//! Where services run, and what holds them there: processors, limits of control groups,
//! networks of their own. Where a chain of services ran has moved its median more than
//! twofold, so it is told with every result.

mod cgroup;
mod namespace;
mod rung;

use std::path::Path;

pub use cgroup::{Group, GroupError, Groups, join};
pub use namespace::{MOST_INSTANCES, Network, NetworkError, enter};
pub use rung::Rung;

/// Removes the groups and namespaces of a process that has ended. Whether none is left: a
/// group stays as long as a process is in it.
pub fn remove_all_of(owner: u32) -> bool {
    let root = Path::new("/");
    let networks = namespace::remove(root, owner);
    cgroup::remove(root, owner) && networks
}

/// Whether a process is there. `root` is `/` but for tests.
fn is_alive(root: &Path, process: u32) -> bool {
    root.join("proc").join(process.to_string()).exists()
}
