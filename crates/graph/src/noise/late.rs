//! How late sleeps end.

use std::time::Duration;

use rustix::thread::{ClockId, CpuSet, clock_nanosleep_absolute, sched_setaffinity};
use rustix::time::Timespec;
use serde::{Deserialize, Serialize};

use crate::Nanos;
use crate::work::{WorkError, affinity};

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
    let length = u64::try_from(length.as_nanos()).unwrap_or(Nanos::MAX);
    let each = on_each_processor(move |_| on_one(length))?;
    let all = LENGTHS.iter().enumerate().map(|(index, sleep)| {
        let late = each
            .iter()
            .flat_map(|one| one.get(index).into_iter().flatten());
        Lateness::of(*sleep, late.copied().collect())
    });
    Ok(all.collect())
}

fn on_one(length: Nanos) -> Result<[Vec<Nanos>; LENGTHS.len()], WorkError> {
    wire::clock::precise_timers();
    let mut late: [Vec<Nanos>; LENGTHS.len()] = Default::default();
    let begun = wire::clock::now();
    while wire::clock::now() - begun < length {
        for (sleep, late) in LENGTHS.iter().zip(&mut late) {
            let due = wire::clock::now() + sleep;
            let until = Timespec {
                tv_sec: (due / 1_000_000_000).cast_signed(),
                tv_nsec: (due % 1_000_000_000).cast_signed(),
            };
            match clock_nanosleep_absolute(ClockId::Monotonic, &until) {
                Ok(()) => late.push(wire::clock::now().saturating_sub(due)),
                // A signal ended it early.
                Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(WorkError::system("sleep")(errno.into())),
            }
        }
    }
    Ok(late)
}

/// Does something on every processor that this process may use, on all at once, by threads
/// that are pinned.
pub(super) fn on_each_processor<T: Send + 'static>(
    act: impl Fn(u32) -> Result<T, WorkError> + Clone + Send + 'static,
) -> Result<Vec<T>, WorkError> {
    let allowed = rustix::thread::sched_getaffinity(None)
        .map_err(|errno| WorkError::system("ask for processors")(errno.into()))?;
    let mut threads = Vec::new();
    for cpu in affinity::numbers(&allowed) {
        let act = act.clone();
        let pinned = move || {
            let mut own = CpuSet::new();
            own.set(cpu as usize);
            sched_setaffinity(None, &own)
                .map_err(|errno| WorkError::system("pin to a processor")(errno.into()))?;
            act(cpu)
        };
        let thread = std::thread::Builder::new().name("noise".to_owned());
        let thread = thread.spawn(pinned);
        threads.push(thread.map_err(WorkError::system("start a thread"))?);
    }
    let ended = threads.into_iter().map(std::thread::JoinHandle::join);
    ended
        .map(|ended| ended.unwrap_or(Err(WorkError::Panicked)))
        .collect()
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
