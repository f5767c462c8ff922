//! Counts of entities over time.

use std::time::{Duration, Instant};

use lab_store::{Appender, EntityCount, StoreError};
use measure::{Clock, Ticks};

use crate::drivers::{Counts, Program};
use crate::progress::Status;
use crate::steps::counts;
use crate::underway::Viewers;

/// Time between two samples.
const PERIOD: Duration = Duration::from_millis(100);

/// Writes counts to `series/entities.csv`, each when it has changed.
pub(crate) struct Counter {
    clock: Clock,
    samples: Appender<EntityCount>,
    last: Counts,
    viewers: Viewers,
}

impl Counter {
    pub(crate) fn new(clock: Clock, samples: Appender<EntityCount>, viewers: Viewers) -> Self {
        Self {
            clock,
            samples,
            last: Counts::new(),
            viewers,
        }
    }

    /// Samples until dropped; returns only when the disk refuses.
    pub(crate) async fn run(
        &mut self,
        drivers: &[(String, Program)],
        status: &Status,
    ) -> StoreError {
        let mut ticks = Ticks::new(Instant::now(), PERIOD);
        loop {
            let deadline = ticks.next_deadline(Instant::now());
            tokio::time::sleep_until(deadline.into()).await;
            if let Err(error) = self.sample(drivers, status) {
                return error;
            }
        }
    }

    /// Takes one sample.
    pub(crate) fn sample(
        &mut self,
        drivers: &[(String, Program)],
        status: &Status,
    ) -> Result<(), StoreError> {
        let now = counts(drivers);
        let t_s = self.clock.now_s();
        for ((what, state), count) in &now {
            let key = (what.clone(), state.clone());
            if self.last.get(&key) != Some(count) {
                self.samples.append(&EntityCount {
                    t_s,
                    what: what.clone(),
                    state: state.clone(),
                    count: *count,
                })?;
            }
        }
        status.counted(t_s, &now);
        self.last = now;
        match self.viewers.wanted() {
            true => self.flush(),
            false => Ok(()),
        }
    }

    /// Writes what is still in memory.
    pub(crate) fn flush(&mut self) -> Result<(), StoreError> {
        self.samples.flush()
    }
}
