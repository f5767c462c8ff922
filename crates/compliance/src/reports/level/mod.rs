//! How many components are in which status.

mod percent;

use std::ops::{AddAssign, Index, SubAssign};

pub use percent::{Percents, Precision};

use super::status::Status;

/// Counts of the fourteen statuses, of a directive on a node or of less.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct ComplianceLevel([u32; 14]);

impl ComplianceLevel {
    /// Nothing is counted.
    pub const EMPTY: Self = Self([0; 14]);

    /// So many of one status.
    pub fn of(status: Status, count: u32) -> Self {
        let mut level = Self::EMPTY;
        level.count(status, count);
        level
    }

    /// Counts some more. A count ends at 4,294,967,295.
    pub fn count(&mut self, status: Status, count: u32) {
        if let Some(counter) = self.0.get_mut(status as usize) {
            *counter = counter.saturating_add(count);
        }
    }

    /// All that is counted.
    pub fn total(&self) -> u32 {
        self.0
            .iter()
            .fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// The worst status that is counted; [`Status::NoAnswer`] if none is.
    pub fn worst(&self) -> Status {
        let worst = Status::ALL
            .into_iter()
            .rev()
            .find(|status| self[*status] > 0);
        worst.unwrap_or(Status::NoAnswer)
    }

    /// The shares of the statuses.
    pub fn percents(&self, precision: Precision) -> Percents {
        FleetLevel::from(*self).percents(precision)
    }
}

impl Index<Status> for ComplianceLevel {
    type Output = u32;

    fn index(&self, status: Status) -> &u32 {
        &self.0[status as usize]
    }
}

impl AddAssign<&Self> for ComplianceLevel {
    fn add_assign(&mut self, other: &Self) {
        for (counter, count) in self.0.iter_mut().zip(other.0) {
            *counter = counter.saturating_add(count);
        }
    }
}

/// Counts of the fourteen statuses, of nodes, rules, groups, or of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FleetLevel([u64; 14]);

impl FleetLevel {
    /// So many of each status, in the order of [`Status::ALL`].
    pub fn of_counts(counts: [u64; 14]) -> Self {
        Self(counts)
    }

    /// How many there are of each status, in the order of [`Status::ALL`].
    pub fn counts(&self) -> [u64; 14] {
        self.0
    }

    /// All that is counted.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The same without what nobody can tell yet: Rudder's global figure leaves out what is
    /// pending and what is disabled.
    pub fn without_unreported(mut self) -> Self {
        for status in [Status::Pending, Status::Disabled] {
            self.0[status as usize] = 0;
        }
        self
    }

    /// The share of compliant components in percent among those that are not pending, as Rudder's
    /// API tells it of all but the fleet.
    pub fn compliance(&self, precision: Precision) -> f64 {
        let mut counted = *self;
        counted.0[Status::Pending as usize] = 0;
        counted.percents(precision).compliance()
    }

    /// The share of compliant components in whole percent, rounded; none without components.
    pub fn global_percent(&self) -> Option<u32> {
        let counted = self.without_unreported();
        let percents = counted.percents(Precision::default());
        (counted.total() > 0).then(|| {
            let units = percents.units_in_all();
            u32::try_from((percents.compliance_units() * 100 + units / 2) / units).unwrap_or(100)
        })
    }
}

impl Index<Status> for FleetLevel {
    type Output = u64;

    fn index(&self, status: Status) -> &u64 {
        &self.0[status as usize]
    }
}

impl From<ComplianceLevel> for FleetLevel {
    fn from(level: ComplianceLevel) -> Self {
        Self(level.0.map(u64::from))
    }
}

impl AddAssign<&ComplianceLevel> for FleetLevel {
    fn add_assign(&mut self, level: &ComplianceLevel) {
        for (counter, count) in self.0.iter_mut().zip(level.0) {
            *counter += u64::from(count);
        }
    }
}

impl SubAssign<&ComplianceLevel> for FleetLevel {
    /// Takes back what was added before.
    fn sub_assign(&mut self, level: &ComplianceLevel) {
        for (counter, count) in self.0.iter_mut().zip(level.0) {
            *counter = counter.saturating_sub(u64::from(count));
        }
    }
}

impl AddAssign<&Self> for FleetLevel {
    fn add_assign(&mut self, other: &Self) {
        for (counter, count) in self.0.iter_mut().zip(other.0) {
            *counter += count;
        }
    }
}
