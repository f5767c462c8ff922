//! What of a cell is free.

use diego::auction::{Resource, Resources};

/// Free resources of a cell.
#[derive(Debug)]
pub(super) struct Ledger {
    free: Resources,
}

impl Ledger {
    pub(super) fn new(total: Resources) -> Self {
        Self { free: total }
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
            wishes in prop::collection::vec((-5..60i32, -5..60i32, any::<bool>()), 0..60),
        ) {
            let mut ledger = Ledger::new(total());
            let mut held: Vec<Resource> = Vec::new();
            for (memory_mb, disk_mb, free) in wishes {
                if free && let Some(resource) = held.pop() {
                    ledger.give_back(resource);
                    continue;
                }
                let resource = Resource { memory_mb, disk_mb, max_pids: 0 };
                if ledger.take(resource) {
                    held.push(resource);
                }
                let used: i32 = held.iter().map(|resource| resource.memory_mb).sum();
                prop_assert_eq!(ledger.free().memory_mb, 100 - used);
                prop_assert!(ledger.free().memory_mb >= 0 && ledger.free().containers >= 0);
            }
            for resource in held {
                ledger.give_back(resource);
            }
            prop_assert_eq!(ledger.free(), total());
        }
    }
}
