//! Tournaments by kind of work, made for kinds that are asked for often and kept up when asked.

use std::collections::HashMap;

use super::score::{Kind, Miss};
use super::score_tree::{Layout, ScoreTree};

/// When trees pay, and how many there may be. The solution does not depend on it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// Fewest cells for which there are trees; a look at fewer costs no more.
    pub(super) cells: usize,
    /// Times that all cells are looked at for a kind before it gets a tree.
    pub(super) looks: u32,
    /// Most bytes of trees, roughly; the one not used for longest goes first. There are at
    /// least two.
    pub(super) bytes: usize,
    /// Cells of a tree that are passed over, because they have instances of the process,
    /// before all cells are looked at instead.
    pub(super) passed_over: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            cells: 32,
            looks: 3,
            bytes: 64 << 20,
            passed_over: 200,
        }
    }
}

/// Work that every cell is scored equally for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) kind: Kind,
    /// What it needs apart from room, as numbered by `FitCache`.
    pub(super) needs: usize,
    /// The process, where the scores count its instances.
    pub(super) crowd: Option<usize>,
}

#[derive(Default)]
struct CacheEntry {
    looks: u32,
    tree: Option<ScoreTree>,
    /// Changes that the tree knows of.
    seen: usize,
    /// When it was used last, in uses.
    used: u64,
    /// Why no cell was chosen, and after how many changes.
    missed: Option<(usize, Miss)>,
}

pub(super) struct TreeCache {
    bounds: Bounds,
    known: HashMap<Key, CacheEntry>,
    /// Those that have a tree.
    live: Vec<Key>,
    /// Cells that took work, in order.
    changes: Vec<u32>,
    uses: u64,
}

impl TreeCache {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            known: HashMap::new(),
            live: Vec::new(),
            changes: Vec::new(),
            uses: 0,
        }
    }

    /// Notes that a cell took work.
    pub(super) fn changed(&mut self, cell: u32) {
        self.changes.push(cell);
    }

    /// Why no cell was chosen for this, if no cell has changed since.
    pub(super) fn missed(&self, key: &Key) -> Option<Miss> {
        let (changes, miss) = self.known.get(key)?.missed?;
        (changes == self.changes.len()).then_some(miss)
    }

    /// Notes that no cell was chosen.
    pub(super) fn miss(&mut self, key: Key, miss: Miss) {
        let missed = Some((self.changes.len(), miss));
        self.known.entry(key).or_default().missed = missed;
    }

    /// The tree for this with all scores as they are; `None` where a look at all cells is
    /// cheaper.
    pub(super) fn tree(
        &mut self,
        key: Key,
        layout: &Layout,
        score: impl Fn(u32) -> f64,
    ) -> Option<&ScoreTree> {
        self.uses += 1;
        let entry = self.known.entry(key).or_default();
        entry.used = self.uses;
        if entry.tree.is_none() {
            if entry.looks < self.bounds.looks {
                entry.looks += 1;
                return None;
            }
            entry.looks = 0;
            self.make_room(layout);
            self.live.push(key);
        }
        let entry = self.known.get_mut(&key)?;
        let changes = self.changes.get(entry.seen..).unwrap_or_default();
        match &mut entry.tree {
            Some(tree) if changes.len() * layout.height() < 2 * layout.len() => {
                for &cell in changes {
                    tree.set(layout, cell, score(cell));
                }
            }
            Some(tree) => tree.renew(layout, score),
            none => *none = Some(ScoreTree::new(layout, score)),
        }
        entry.seen = self.changes.len();
        entry.tree.as_ref()
    }

    /// Gives up the trees that were not used for longest until there is room for one more.
    fn make_room(&mut self, layout: &Layout) {
        let most = (self.bounds.bytes / (layout.len() * 24).max(1)).max(2);
        while self.live.len() >= most {
            let used = |key: &Key| self.known.get(key).map_or(0, |entry| entry.used);
            let oldest = (0..self.live.len()).min_by_key(|&place| used(&self.live[place]));
            let Some(oldest) = oldest else { return };
            let key = self.live.swap_remove(oldest);
            if let Some(entry) = self.known.get_mut(&key) {
                entry.tree = None;
            }
        }
    }
}
