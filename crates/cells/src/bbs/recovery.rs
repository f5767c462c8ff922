//! The way back to a database that went away.
//!
//! Changes wait for it for a while, and are refused from then on, until it is back; what is read
//! is served from memory all the time. Who comes back learns whether somebody else was there.

use std::sync::Arc;
use std::time::Duration;

use commit::StoreError;
use commit::postgres::Found;
use telemetry::{Fields, Logger};
use tokio::time::{Instant, sleep_until};

use super::metrics::Metrics;
use super::store::Store;

/// Time between the first two attempts; it doubles with each.
const WAIT_FIRST: Duration = Duration::from_millis(50);
/// Most time between two attempts.
const WAIT_MOST: Duration = Duration::from_secs(1);

/// When it was lost, and when it is tried again.
pub(crate) struct Recovery {
    /// Longest wait of a change, counted from the loss.
    patience: Duration,
    since: Option<Instant>,
    next: Instant,
    wait: Duration,
    metrics: Arc<Metrics>,
    logger: Logger,
}

impl Recovery {
    pub(crate) fn new(patience: Duration, metrics: &Arc<Metrics>, logger: Logger) -> Self {
        Self {
            patience,
            since: None,
            next: Instant::now(),
            wait: WAIT_FIRST,
            metrics: Arc::clone(metrics),
            logger,
        }
    }

    /// Connects again. While the loss is young it waits for that; later it tries at most once.
    pub(crate) async fn reach(&mut self, store: &mut Store) -> Result<Found, StoreError> {
        let now = Instant::now();
        let since = *self.since.get_or_insert_with(|| {
            let cause = "the connection to the database was lost";
            self.logger.error("database-lost", &cause, Fields::new());
            self.metrics.database_losses.add(1);
            self.metrics.database_up.set(false);
            (self.next, self.wait) = (now, WAIT_FIRST);
            now
        });
        let until = since + self.patience;
        loop {
            if self.next > Instant::now() {
                if self.next > until {
                    return Err(unavailable("it is tried again every second"));
                }
                sleep_until(self.next).await;
            }
            let error = match store.connect().await {
                Ok(found) => {
                    let away = since.elapsed().as_millis() as u64;
                    let fields = Fields::new().and("milliseconds", away);
                    self.logger.info("database-found-again", fields);
                    self.since = None;
                    self.metrics.database_up.set(true);
                    return Ok(found);
                }
                Err(locked @ StoreError::Locked { .. }) => return Err(locked),
                Err(error) => error,
            };
            self.metrics.failed_database_attempts.add(1);
            self.next = Instant::now() + self.wait;
            self.wait = (self.wait * 2).min(WAIT_MOST);
            if self.next > until {
                return Err(unavailable(&error.to_string()));
            }
        }
    }
}

fn unavailable(cause: &str) -> StoreError {
    StoreError::Database {
        doing: "reach",
        cause: cause.to_owned(),
    }
}
