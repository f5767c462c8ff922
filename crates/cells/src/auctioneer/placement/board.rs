//! The cells while work is placed.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use diego::auction::{CellState, Lrp, Resource, Task};

use super::Options;
use super::fit::{FitCache, Stage};
use super::score::{Kind, Miss, Slot, choose};
use super::score_tree::{Layout, Rank, ScoreTree};
use super::spread::Spread;
use super::tree_cache::{Bounds, Key, TreeCache};

const IN_FLIGHT: &str = "waiting to start instance: reached in-flight start limit";
/// Larger weights could make scores infinite, which stands for no room.
const WEIGHT_MOST: f64 = 1e100;

pub(super) struct Board<'a> {
    options: Options,
    slots: Vec<Slot>,
    layout: Layout,
    fits: FitCache<'a>,
    trees: TreeCache,
    passed_over: usize,
    processes: HashMap<String, usize>,
    /// By number of the process.
    spreads: Vec<Spread>,
    starting: i64,
    /// Instances by cell and by zone of the process at hand; zero in between.
    local: Vec<u32>,
    zonal: Vec<u32>,
}

impl<'a> Board<'a> {
    /// Of cells in order of their ids, for these instances and any tasks.
    pub(super) fn new(
        cells: &'a [CellState],
        lrps: &[Lrp],
        options: Options,
        mut bounds: Bounds,
    ) -> Self {
        let mut zones: HashMap<&str, usize> = HashMap::new();
        let mut members: Vec<Vec<usize>> = Vec::new();
        let mut slots = Vec::with_capacity(cells.len());
        for (number, cell) in cells.iter().enumerate() {
            let zone = *zones.entry(&cell.zone).or_insert(members.len());
            if zone == members.len() {
                members.push(Vec::new());
            }
            members[zone].push(number);
            slots.push(Slot::new(cell, zone));
        }
        let zone_count = members.len();
        for mut cells_of_zone in members {
            cells_of_zone.sort_by_key(|&cell| cells[cell].cell_index);
            for (rank, cell) in cells_of_zone.into_iter().enumerate() {
                slots[cell].rank = rank as f64;
            }
        }
        let large = |weight: f64| weight.is_nan() || weight.abs() > WEIGHT_MOST;
        if cells.len() < bounds.cells
            || large(options.starting_weight)
            || large(options.first_fit_weight)
        {
            bounds.looks = u32::MAX;
        }
        let zone_of: Vec<usize> = slots.iter().map(|slot| slot.zone).collect();
        let mut board = Self {
            options,
            starting: slots.iter().map(|slot| i64::from(slot.starting)).sum(),
            local: vec![0; slots.len()],
            zonal: vec![0; zone_count],
            layout: Layout::new(&zone_of, zone_count),
            fits: FitCache::new(cells),
            trees: TreeCache::new(bounds),
            passed_over: bounds.passed_over,
            processes: HashMap::new(),
            spreads: Vec::new(),
            slots,
        };
        // What runs of other processes does not matter.
        let asked: HashSet<&str> = lrps.iter().map(|lrp| &*lrp.process_guid).collect();
        if !asked.is_empty() {
            for (number, cell) in cells.iter().enumerate() {
                for lrp in &cell.lrps {
                    if asked.contains(&*lrp.process_guid) {
                        let process = board.process(&lrp.process_guid);
                        board.add(process, number);
                    }
                }
            }
        }
        board
    }

    pub(super) fn place_lrp(&mut self, lrp: &Lrp) -> Result<usize, String> {
        self.check_starting()?;
        let kind = Kind::Lrp {
            memory: lrp.resource.memory_mb,
            disk: lrp.resource.disk_mb,
        };
        let needs = self.fits.needs(&lrp.placement);
        let process = self.process(&lrp.process_guid);
        let chosen = self.choose(kind, needs, Some(process));
        let cell = chosen.map_err(|miss| miss.text(&lrp.placement.placement_tags))?;
        self.add(process, cell);
        self.reserve(cell, lrp.resource);
        Ok(cell)
    }

    pub(super) fn place_task(&mut self, task: &Task) -> Result<usize, String> {
        self.check_starting()?;
        let kind = Kind::Task {
            memory: task.resource.memory_mb,
            disk: task.resource.disk_mb,
        };
        let needs = self.fits.needs(&task.placement);
        let chosen = self.choose(kind, needs, None);
        let cell = chosen.map_err(|miss| miss.text(&task.placement.placement_tags))?;
        self.slots[cell].tasks += 1;
        self.reserve(cell, task.resource);
        Ok(cell)
    }

    fn check_starting(&self) -> Result<(), String> {
        let most = i64::from(self.options.starting_max);
        if most > 0 && self.starting >= most {
            return Err(IN_FLIGHT.into());
        }
        Ok(())
    }

    fn reserve(&mut self, cell: usize, resource: Resource) {
        self.slots[cell].reserve(resource);
        self.starting += 1;
        self.trees.changed(cell as u32);
    }

    /// The number of a process.
    fn process(&mut self, guid: &str) -> usize {
        if let Some(process) = self.processes.get(guid) {
            return *process;
        }
        self.processes.insert(guid.to_owned(), self.spreads.len());
        self.spreads.push(Spread::default());
        self.spreads.len() - 1
    }

    fn add(&mut self, process: usize, cell: usize) {
        self.spreads[process].add(cell as u32, self.slots[cell].zone as u32);
    }

    fn choose(&mut self, kind: Kind, needs: usize, process: Option<usize>) -> Result<usize, Miss> {
        let mut key = Key {
            kind,
            needs,
            crowd: None,
        };
        if let Some(miss) = self.trees.missed(&key) {
            return Err(miss);
        }
        let nowhere = Spread::default();
        let spread = process.map_or(&nowhere, |process| &self.spreads[process]);
        let shared = key;
        // Most cells would be passed over.
        let crowded = 2 * spread.cells().len() > self.layout.len();
        key.crowd = process.filter(|_| crowded);
        let (slots, options) = (&self.slots, &self.options);
        let stages = self.fits.stages(needs);
        let score = |cell: u32, local: u32| {
            let score = kind.score(&slots[cell as usize], local, options);
            score.unwrap_or(f64::INFINITY)
        };
        let tree = self
            .trees
            .tree(key, &self.layout, |cell| match stages[cell as usize] {
                Stage::Fits if crowded => score(cell, spread.on(cell)),
                Stage::Fits => score(cell, 0),
                _ => f64::INFINITY,
            });
        if let Some(tree) = tree {
            let search = TreeSearch {
                tree,
                layout: &self.layout,
                spread,
                whole: crowded,
                passed_over: self.passed_over,
            };
            if let Some(cell) = search.best(score) {
                return Ok(cell as usize);
            }
        }
        for &(cell, count) in spread.cells() {
            self.local[cell as usize] = count;
        }
        for &(zone, count) in spread.zones() {
            self.zonal[zone as usize] = count;
        }
        let chosen = choose(slots, stages, options, kind, &self.local, &self.zonal);
        for &(cell, _) in spread.cells() {
            self.local[cell as usize] = 0;
        }
        for &(zone, _) in spread.zones() {
            self.zonal[zone as usize] = 0;
        }
        chosen.inspect_err(|miss| self.trees.miss(shared, *miss))
    }
}

/// A tree and the instances of the process at hand.
struct TreeSearch<'a> {
    tree: &'a ScoreTree,
    layout: &'a Layout,
    spread: &'a Spread,
    /// The scores count the instances already.
    whole: bool,
    passed_over: usize,
}

impl TreeSearch<'_> {
    /// The cell to choose; `None`: none has room, or it cannot be told without a look at all.
    fn best(&self, score: impl Fn(u32, u32) -> f64) -> Option<u32> {
        let unused = self.layout.zones() - self.spread.zones().len();
        if unused > 0 {
            let found = self.best_in(&self.other_zones(), &score);
            if found != Found::Nothing {
                return found.cell();
            }
        }
        let mut counts: Vec<u32> = self.spread.zones().iter().map(|zone| zone.1).collect();
        counts.sort_unstable();
        counts.dedup();
        for count in counts {
            let zones = self.spread.zones().iter();
            let zones = zones.filter(|zone| zone.1 == count);
            let ranges: Vec<Range<usize>> = zones
                .map(|zone| self.layout.zone(zone.0 as usize))
                .collect();
            let found = self.best_in(&ranges, &score);
            if found != Found::Nothing {
                return found.cell();
            }
        }
        None
    }

    /// Places of the zones without an instance.
    fn other_zones(&self) -> Vec<Range<usize>> {
        let (mut ranges, mut start) = (Vec::new(), 0);
        for &(zone, _) in self.spread.zones() {
            let zone = self.layout.zone(zone as usize);
            if start < zone.start {
                ranges.push(start..zone.start);
            }
            start = zone.end;
        }
        if start < self.layout.len() {
            ranges.push(start..self.layout.len());
        }
        ranges
    }

    fn best_in(&self, ranges: &[Range<usize>], score: impl Fn(u32, u32) -> f64) -> Found {
        let Some(first) = self.tree.first(self.layout, ranges) else {
            return Found::Nothing;
        };
        if self.whole || self.spread.on(first.cell) == 0 {
            return Found::Cell(first.cell);
        }
        // Instances only ever add to a score: what comes later in the tree is not better than
        // its place in it.
        let mut best: Option<Rank> = None;
        let in_order = self.tree.in_order(self.layout, ranges);
        for (passed, rank) in in_order.enumerate() {
            if best.is_some_and(|best| best.is_before(rank)) {
                break;
            }
            if passed > self.passed_over {
                return Found::Unsure;
            }
            let local = self.spread.on(rank.cell);
            let counted = match local {
                0 => rank,
                _ => Rank {
                    score: score(rank.cell, local),
                    ..rank
                },
            };
            if best.is_none_or(|best| counted.is_before(best)) {
                best = Some(counted);
            }
            if local == 0 {
                break;
            }
        }
        best.map_or(Found::Nothing, |best| Found::Cell(best.cell))
    }
}

#[derive(PartialEq, Eq)]
enum Found {
    Cell(u32),
    Nothing,
    /// Too many cells would have to be passed over.
    Unsure,
}

impl Found {
    fn cell(self) -> Option<u32> {
        match self {
            Self::Cell(cell) => Some(cell),
            Self::Nothing | Self::Unsure => None,
        }
    }
}
