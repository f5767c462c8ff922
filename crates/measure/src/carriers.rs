//! Processes that are known by what their environment holds.

use std::collections::HashSet;

use crate::process::{Environment, environment, pids};

/// Most listings of all processes in one look: each costs a call or two, and only processes that
/// begin without end bring further ones.
const LISTINGS: u32 = 50;

/// Processes that a look has found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Carriers {
    /// Their numbers.
    pub pids: Vec<u32>,
    /// Whether those are all: see [`each_carrier`].
    pub complete: bool,
}

/// Looks at every process once, and tells `found` of each whose environment `holds` what is looked
/// for. Whether those are all that there were at the end. `false`: one was in the middle of `execve`,
/// when nobody can see what it carries, or new ones came with every listing.
///
/// A process that was listed may end before it is looked at, and a child that it has started
/// meanwhile is not in that list. So processes are listed until nobody is new: whoever was there at
/// the last listing has been looked at.
pub fn each_carrier(holds: impl Fn(&[u8]) -> bool, mut found: impl FnMut(u32)) -> bool {
    let mut listed = HashSet::new();
    let mut all_seen = true;
    for _ in 0..LISTINGS {
        let new: Vec<u32> = pids().filter(|pid| listed.insert(*pid)).collect();
        if new.is_empty() {
            return all_seen;
        }
        for pid in new {
            match environment(pid) {
                Environment::Known(environ) if holds(&environ) => found(pid),
                Environment::NotYet => all_seen = false,
                Environment::Known(_) | Environment::Nobody => {}
            }
        }
    }
    false
}
