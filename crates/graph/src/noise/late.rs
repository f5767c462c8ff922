//! How late sleeps end.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Nanos;
use crate::work::WorkError;

/// Lengths of sleeps: of a short service time, and of a long one.
const LENGTHS: [Nanos; 2] = [100_000, 1_000_000];

/// How late sleeps of a length ended, over all processors, with a timer slack of 1 ns.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lateness {
    /// How long they were meant to be.
    pub length_ns: Nanos,
    /// How many.
    pub count: u64,
    /// Half of them were no later than this, and so on.
    pub p50_ns: Nanos,
    /// See above.
    pub p99_ns: Nanos,
    /// The latest.
    pub max_ns: Nanos,
}

impl Lateness {
    fn of(length_ns: Nanos, mut late: Vec<Nanos>) -> Self {
        late.sort_unstable();
        let at = |share| stats::nearest_rank(&late, share).unwrap_or(0);
        Self {
            length_ns,
            count: late.len() as u64,
            p50_ns: at(0.5),
            p99_ns: at(0.99),
            max_ns: late.last().copied().unwrap_or(0),
        }
    }
}

/// Sleeps on every processor that this process may use, the lengths in turn.
pub(super) fn of_sleeps(length: Duration) -> Result<Vec<Lateness>, WorkError> {
    let each = super::on_each_processor(move |_| on_one(length))?;
    let all = LENGTHS.iter().enumerate().map(|(index, sleep)| {
        let late = each
            .iter()
            .flat_map(|one| one.get(index).into_iter().flatten());
        Lateness::of(*sleep, late.copied().collect())
    });
    Ok(all.collect())
}

fn on_one(length: Duration) -> Result<[Vec<Nanos>; LENGTHS.len()], WorkError> {
    let mut late: [Vec<Nanos>; LENGTHS.len()] = Default::default();
    let pauses = LENGTHS.iter().cycle().copied().map(Duration::from_nanos);
    wire::floor::sleep(length, pauses, |pause, by| {
        let index = LENGTHS
            .iter()
            .position(|sleep| Duration::from_nanos(*sleep) == pause);
        if let Some(late) = index.and_then(|index| late.get_mut(index)) {
            late.push(u64::try_from(by.as_nanos()).unwrap_or(Nanos::MAX));
        }
    })
    .map_err(WorkError::system("sleep"))?;
    Ok(late)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_by_nearest_rank() {
        let late = Lateness::of(7, (1..=200).rev().collect());
        let expected = Lateness {
            length_ns: 7,
            count: 200,
            p50_ns: 100,
            p99_ns: 198,
            max_ns: 200,
        };
        assert_eq!(late, expected);
        let nothing = Lateness::of(7, Vec::new());
        assert_eq!((nothing.count, nothing.max_ns), (0, 0));
    }
}
