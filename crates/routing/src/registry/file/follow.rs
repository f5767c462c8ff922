//! Keeps a table as a file says.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use telemetry::{Fields, Logger};
use tokio::sync::Notify;

use super::read::{FileError, Refused, Routes};
use crate::registry::RegistryCounters;
use crate::table::Table;

/// How often the file is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// What tells one state of a file from another.
type Stamp = Option<(SystemTime, u64)>;

/// Keeps a table as a file of routes says.
pub struct Follower {
    /// The file.
    pub path: PathBuf,
    /// The table.
    pub table: Arc<Table>,
    /// What the table refuses is counted there.
    pub counters: Arc<RegistryCounters>,
    /// Speak HTTP/2 with backends that register so.
    pub http2: bool,
    /// Told of every reading, and of errors.
    pub logger: Logger,
}

impl Follower {
    /// Brings `routes` into the table in place of `previous`.
    pub fn take(&self, routes: &Routes, previous: Option<&Routes>) {
        if let Some(refused) = self.apply(routes, previous) {
            let fields = Fields::new().and("registrations", refused.registrations);
            self.logger
                .error("registrations-refused", &refused.bound, fields);
        }
    }

    fn apply(&self, routes: &Routes, previous: Option<&Routes>) -> Option<Refused> {
        let now = wire::clock::now();
        let refused = routes.apply(&self.table, previous, self.http2, now);
        if let Some(refused) = &refused {
            self.counters
                .with(|totals| totals.refused += refused.registrations);
        }
        refused
    }

    /// Goes on from `routes`, which were taken, until the task is ended. The file is read
    /// again when `reload` is notified or it changes; a file with an error changes nothing
    /// and is logged. Between changes the routes are kept fresh, or they would be pruned.
    pub async fn follow(self, mut routes: Routes, reload: Arc<Notify>) {
        let mut known = stamp(&self.path);
        // Three chances before the first endpoint is stale.
        let refresh = (self.table.settings().stale_after / 4).max(LOOK);
        let mut refreshed = tokio::time::Instant::now();
        loop {
            let asked = tokio::select! {
                () = reload.notified() => true,
                () = tokio::time::sleep(LOOK) => false,
            };
            let found = stamp(&self.path);
            if asked || found != known {
                known = found;
                match read(self.path.clone()).await {
                    Ok(new) => {
                        self.take(&new, Some(&routes));
                        let fields = Fields::new().and("routes", new.len());
                        self.logger.info("routes-read", fields);
                        routes = new;
                    }
                    Err(error) => self.logger.error("routes-not-read", &error, Fields::new()),
                }
            } else if refreshed.elapsed() >= refresh {
                refreshed = tokio::time::Instant::now();
                // What there is no room for was logged when the file was read.
                self.apply(&routes, None);
            }
        }
    }
}

/// Away from the runtime's threads: the file may be large.
async fn read(path: PathBuf) -> Result<Routes, FileError> {
    let shown = path.clone();
    tokio::task::spawn_blocking(move || Routes::read(&path))
        .await
        .unwrap_or_else(|error| {
            Err(FileError::Io {
                path: shown,
                cause: std::io::Error::other(error),
            })
        })
}

fn stamp(path: &std::path::Path) -> Stamp {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}
