//! What happens because time passes: compliance expires, its hours are written, old things go.

use std::sync::Arc;
use std::time::{Duration, Instant};

use commit::{PendingLookup, StoreError};
use telemetry::{Fields, Logger};

use super::fleet::Compliance;
use super::ledger::{Absence, Commands, Ledger, Request};
use super::metrics::Metrics;
use super::now;

/// What is old is looked for ten times as often as it becomes old, within these bounds.
const PURGE_EVERY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(3_600));

/// Hours that one transaction writes at most, so that uploads need not wait for it.
const HOURS: usize = 2_000;

/// How often memory that was freed is given back to the kernel: what came and went between things
/// that stay does not go back by itself.
const GIVE_BACK_EVERY: Duration = Duration::from_secs(60);

/// Follows time.
pub(super) struct Clock {
    pub(super) compliance: Arc<Compliance>,
    pub(super) commands: Commands,
    pub(super) absence: Arc<Absence>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) keep_runs: Duration,
    pub(super) keep_history: Duration,
    pub(super) history_every: Duration,
    pub(super) logger: Logger,
}

impl Clock {
    /// Does what is due, second by second.
    pub(super) async fn follow(&self) {
        let every = self.keep_runs.min(self.keep_history) / 10;
        let every = every.clamp(PURGE_EVERY.0, PURGE_EVERY.1);
        let (mut purged, mut written) = (Instant::now(), Instant::now());
        let mut given_back = Instant::now();
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            self.compliance.lock().observe(now());
            if given_back.elapsed() >= GIVE_BACK_EVERY {
                given_back = Instant::now();
                // It takes milliseconds, in which no other task of this thread should wait.
                let _ = tokio::task::spawn_blocking(processes::give_back_freed_memory).await;
            }
            if written.elapsed() >= self.history_every {
                written = Instant::now();
                self.write_history().await;
            }
            if purged.elapsed() >= every {
                purged = Instant::now();
                self.purge().await;
                self.compliance.lock().changes.expire(now());
            }
        }
    }

    /// Makes compliance by the hour durable as it stands now. What fails is tried again with what
    /// comes after it.
    pub(super) async fn write_history(&self) {
        let hours = {
            let mut all = self.compliance.lock();
            all.histories.advance(now());
            all.histories.unwritten()
        };
        for hours in hours.chunks(HOURS) {
            let request = self.commands.run(Request::History(hours.to_vec()));
            let Some(kept) = self.unless_away(request).await else {
                return;
            };
            if let Err(error) = kept {
                self.logger
                    .error("failed-to-write-history", &error, Fields::new());
                return;
            }
            self.compliance.lock().histories.written(hours);
            let count = u64::try_from(hours.len()).unwrap_or(u64::MAX);
            self.metrics.hours.add(count);
        }
    }

    async fn purge(&self) {
        let (runs, hours) = (before(self.keep_runs), before(self.keep_history));
        while self
            .more(move |ledger| Box::pin(async move { ledger.purge(runs).await }))
            .await
        {}
        while self
            .more(move |ledger| Box::pin(async move { ledger.store.purge_hours(hours).await }))
            .await
        {}
    }

    /// Waits for the writer, but not for a database that stays away: time goes on meanwhile. What is
    /// written all the same is written again.
    async fn unless_away<T>(&self, doing: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.absence.too_long() => None,
            done = doing => Some(done),
        }
    }

    /// Has the writer remove something; says whether there may be more. What fails is tried again
    /// when the next purge is due.
    async fn more(
        &self,
        purge: impl for<'l> FnOnce(&'l mut Ledger) -> PendingLookup<'l, Result<bool, StoreError>>
        + Send
        + 'static,
    ) -> bool {
        let looked = self.unless_away(self.commands.look(purge)).await;
        match looked.flatten() {
            None => false,
            Some(Ok(more)) => more,
            Some(Err(error)) => {
                self.logger.error("failed-to-purge", &error, Fields::new());
                false
            }
        }
    }
}

/// The time so long ago.
fn before(ago: Duration) -> i64 {
    now().saturating_sub(i64::try_from(ago.as_millis()).unwrap_or(i64::MAX))
}
