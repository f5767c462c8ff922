//! Where the instances of one process are.

/// Instances by cell and by zone; those without any are left out.
#[derive(Debug, Default)]
pub(super) struct Spread {
    /// In order of the cells' numbers.
    cells: Vec<(u32, u32)>,
    /// In order of the zones' numbers.
    zones: Vec<(u32, u32)>,
}

impl Spread {
    pub(super) fn add(&mut self, cell: u32, zone: u32) {
        count(&mut self.cells, cell);
        count(&mut self.zones, zone);
    }

    /// Cells with their instances.
    pub(super) fn cells(&self) -> &[(u32, u32)] {
        &self.cells
    }

    /// Zones with their instances.
    pub(super) fn zones(&self) -> &[(u32, u32)] {
        &self.zones
    }

    /// Instances on a cell.
    pub(super) fn on(&self, cell: u32) -> u32 {
        let place = self.cells.binary_search_by_key(&cell, |(cell, _)| *cell);
        place.map_or(0, |place| self.cells[place].1)
    }
}

fn count(counts: &mut Vec<(u32, u32)>, key: u32) {
    match counts.binary_search_by_key(&key, |(key, _)| *key) {
        Ok(place) => counts[place].1 += 1,
        Err(place) => counts.insert(place, (key, 1)),
    }
}
