//! What of a cell is free.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use diego::auction::{Resource, Resources};

/// Free resources and host ports of a cell.
#[derive(Debug)]
pub(super) struct Ledger {
    free: Resources,
    /// Ports handed back.
    returned: BTreeSet<u16>,
    /// Ports never handed out.
    fresh: RangeInclusive<u16>,
}

impl Ledger {
    pub(super) fn new(total: Resources, ports: RangeInclusive<u16>) -> Self {
        Self {
            free: total,
            returned: BTreeSet::new(),
            fresh: ports,
        }
    }

    pub(super) fn free(&self) -> Resources {
        self.free
    }

    /// Takes what a container needs, or nothing and false.
    pub(super) fn take(&mut self, resource: Resource) -> bool {
        let fits = self.free.containers >= 1
            && resource.memory_mb >= 0
            && resource.disk_mb >= 0
            && self.free.memory_mb >= resource.memory_mb
            && self.free.disk_mb >= resource.disk_mb;
        if fits {
            self.free.containers -= 1;
            self.free.memory_mb -= resource.memory_mb;
            self.free.disk_mb -= resource.disk_mb;
        }
        fits
    }

    /// Gives back what [`Ledger::take`] took.
    pub(super) fn give_back(&mut self, resource: Resource) {
        self.free.containers += 1;
        self.free.memory_mb += resource.memory_mb;
        self.free.disk_mb += resource.disk_mb;
    }

    /// Hands out `count` ports, or none when there are not so many left.
    pub(super) fn take_ports(&mut self, count: usize) -> Option<Vec<u16>> {
        if self.returned.len() + self.fresh.len() < count {
            return None;
        }
        // Fresh ones first: a port that was just in use may still have visitors.
        let ports: Vec<u16> = (0..count)
            .filter_map(|_| self.fresh.next().or_else(|| self.returned.pop_first()))
            .collect();
        Some(ports)
    }

    /// Takes ports back.
    pub(super) fn give_back_ports(&mut self, ports: impl IntoIterator<Item = u16>) {
        self.returned.extend(ports);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn total() -> Resources {
        Resources {
            memory_mb: 100,
            disk_mb: 100,
            containers: 5,
        }
    }

    proptest! {
        #[test]
        fn what_is_taken_is_there_and_comes_back(
            wishes in prop::collection::vec((-5..60i32, -5..60i32, 0..4usize, any::<bool>()), 0..60),
        ) {
            let mut ledger = Ledger::new(total(), 1000..=1005);
            let mut held: Vec<(Resource, Vec<u16>)> = Vec::new();
            for (memory_mb, disk_mb, ports, free) in wishes {
                if free && let Some((resource, ports)) = held.pop() {
                    ledger.give_back(resource);
                    ledger.give_back_ports(ports);
                    continue;
                }
                let resource = Resource { memory_mb, disk_mb, max_pids: 0 };
                if ledger.take(resource) {
                    held.push((resource, ledger.take_ports(ports).unwrap_or_default()));
                }
                let used: i32 = held.iter().map(|(resource, _)| resource.memory_mb).sum();
                prop_assert_eq!(ledger.free().memory_mb, 100 - used);
                prop_assert!(ledger.free().memory_mb >= 0 && ledger.free().containers >= 0);
                let mut ports: Vec<u16> = held.iter().flat_map(|(_, ports)| ports.clone()).collect();
                let count = ports.len();
                ports.sort_unstable();
                ports.dedup();
                prop_assert_eq!(ports.len(), count, "a port was handed out twice");
            }
            for (resource, ports) in held {
                ledger.give_back(resource);
                ledger.give_back_ports(ports);
            }
            prop_assert_eq!(ledger.free(), total());
            prop_assert_eq!(ledger.take_ports(6).map(|ports| ports.len()), Some(6));
        }
    }
}
