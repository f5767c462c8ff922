//! Shares that sum to a hundred and hide nothing.

use super::FleetLevel;
use crate::reports::status::Status;

/// Digits after the point of a percent, 0 to 5; 2 unless told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Precision(u8);

impl Precision {
    /// So many digits, none if there are more than 5.
    pub fn new(digits: u8) -> Option<Self> {
        (digits <= 5).then_some(Self(digits))
    }

    /// Units in 100 %.
    fn hundred(self) -> u64 {
        100 * 10_u64.pow(u32::from(self.0))
    }
}

impl Default for Precision {
    fn default() -> Self {
        Self(2)
    }
}

/// Shares of the statuses in whole units of the last digit. They sum to 100 % exactly, or to 0 if
/// nothing is counted, and no status that is counted has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Percents {
    units: [u64; 14],
    precision: Precision,
}

impl Percents {
    /// The share of one status in percent.
    pub fn of(&self, status: Status) -> f64 {
        self.percent(self.units[status as usize])
    }

    /// The shares that are not 0, from best to worst.
    pub fn shown(&self) -> impl Iterator<Item = (Status, f64)> + '_ {
        Status::ALL
            .into_iter()
            .filter(|status| self.units[*status as usize] > 0)
            .map(|status| (status, self.of(status)))
    }

    /// The compliance in percent: the sum of the rounded shares that count as compliant.
    pub fn compliance(&self) -> f64 {
        self.percent(self.compliance_units())
    }

    /// The compliance in units.
    pub(super) fn compliance_units(&self) -> u64 {
        Status::ALL
            .into_iter()
            .filter(|status| status.is_compliant())
            .map(|status| self.units[status as usize])
            .sum()
    }

    pub(super) fn units_in_all(&self) -> u64 {
        self.precision.hundred()
    }

    fn percent(&self, units: u64) -> f64 {
        units as f64 / 10_f64.powi(i32::from(self.precision.0))
    }
}

impl FleetLevel {
    /// Rudder's percents. Counts are taken from the smallest to the largest. One that would round
    /// to nothing gets a unit, for which those after it give a little; the largest gets the rest.
    pub fn percents(&self, precision: Precision) -> Percents {
        let mut units = [0; 14];
        let total = self.total();
        if total == 0 {
            return Percents { units, precision };
        }
        let hundred = precision.hundred();
        let mut ascending = Status::ALL;
        // Stable: among equals the better one comes first.
        ascending.sort_by_key(|status| self[*status]);
        let [smaller @ .., largest] = ascending;
        let mut rest = hundred;
        let mut divisor = 1.0;
        for status in smaller {
            let count = self[status];
            if count == 0 {
                continue;
            }
            let share = count as f64 * hundred as f64 / total as f64 / divisor;
            let share = if share < 1.0 {
                divisor += 0.01;
                1
            } else {
                share as u64
            };
            units[status as usize] = share;
            rest -= share;
        }
        units[largest as usize] = rest;
        Percents { units, precision }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{FleetLevel, Precision, Status};
    use Status::{
        Disabled, EnforceError as Error, EnforceRepaired as Repaired, EnforceSuccess as Success,
        Missing, NoAnswer, Pending, Unexpected,
    };

    fn level(counts: &[(Status, u64)]) -> FleetLevel {
        let mut level = FleetLevel::default();
        for (status, count) in counts {
            level.0[*status as usize] = *count;
        }
        level
    }

    #[test]
    fn nothing_pending_counts_for_compliance() {
        let precision = Precision::default();
        let compliance = |counts: &[_]| level(counts).compliance(precision);
        assert_eq!(compliance(&[(Success, 1), (Pending, 1)]), 100.0);
        assert_eq!(compliance(&[(Success, 1), (Pending, 7), (Error, 1)]), 50.0);
        assert_eq!(compliance(&[(Pending, 1)]), 0.0);
        // What is disabled does, as in Rudder.
        assert_eq!(compliance(&[(Success, 1), (Disabled, 1)]), 50.0);
        let shown = level(&[(Success, 1), (Pending, 1)]).percents(precision);
        assert_eq!(shown.shown().count(), 2);
    }

    #[test]
    fn golden_table() {
        type Row = (&'static [(Status, u64)], u8, &'static [f64], f64);
        #[rustfmt::skip]
        let rows: [Row; 10] = [
            (&[(Success, 1), (Repaired, 1), (Error, 1)], 2, &[33.33, 33.33, 33.34], 66.66),
            (&[(Success, 1), (Repaired, 1), (Error, 1)], 0, &[33.0, 33.0, 34.0], 66.0),
            (&[(Success, 1), (Error, 100_000)], 2, &[0.01, 99.99], 0.01),
            (&[(Success, 1), (Error, 100_000)], 0, &[1.0, 99.0], 1.0),
            (&[(Success, 1), (Repaired, 1), (Error, 4)], 2, &[16.66, 16.66, 66.68], 33.32),
            (&[(Success, 1000), (Repaired, 1000), (Error, 1)], 0, &[49.0, 50.0, 1.0], 99.0),
            (
                &[(Success, 200), (Repaired, 199), (Error, 1), (Unexpected, 1), (Missing, 1), (NoAnswer, 1)],
                0, &[49.0, 47.0, 1.0, 1.0, 1.0, 1.0], 96.0,
            ),
            (&[(Success, 19_999), (Error, 1)], 2, &[99.99, 0.01], 99.99),
            (&[(Success, 20_000_000), (Error, 1)], 5, &[99.99999, 0.00001], 99.99999),
            (&[], 2, &[], 0.0),
        ];
        for (counts, digits, expected, compliance) in rows {
            let percents = level(counts).percents(Precision::new(digits).unwrap());
            let found: Vec<f64> = counts
                .iter()
                .map(|(status, _)| percents.of(*status))
                .collect();
            assert_eq!(found, expected, "{counts:?} {digits}");
            assert_eq!(percents.compliance(), compliance, "{counts:?} {digits}");
        }
        assert_eq!(Precision::new(6), None);
    }

    #[test]
    fn the_global_figure_leaves_out_what_is_not_reported() {
        assert_eq!(level(&[]).global_percent(), None);
        assert_eq!(
            level(&[(Status::Pending, 9), (Status::Disabled, 9)]).global_percent(),
            None
        );
        let counts = [(Success, 2), (Error, 1), (Status::Pending, 100)];
        assert_eq!(level(&counts).global_percent(), Some(67));
        assert_eq!(level(&[(Success, 7)]).global_percent(), Some(100));
    }

    proptest! {
        #[test]
        fn shares_sum_to_a_hundred_and_none_is_hidden(
            counts in prop::array::uniform14(prop_oneof![
                Just(0_u64), 1_u64..4, 1_u64..100_000, 1_u64..30_000_000_000,
            ]),
            digits in 0_u8..=5,
        ) {
            let level = FleetLevel(counts);
            let percents = level.percents(Precision::new(digits).unwrap());
            let sum: u64 = percents.units.iter().sum();
            prop_assert_eq!(sum, if level.total() == 0 { 0 } else { percents.units_in_all() });
            for (count, units) in counts.iter().zip(percents.units) {
                prop_assert_eq!(*count == 0, units == 0);
            }
            prop_assert!(percents.compliance() <= 100.0);
        }
    }
}
