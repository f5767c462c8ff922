//! Keeps a table as a file says.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use telemetry::{Fields, Logger};
use tokio::sync::Notify;

use super::read::{FileError, Routes};
use crate::table::Table;

/// How often the file is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// What tells one state of a file from another.
type Stamp = Option<(SystemTime, u64)>;

/// Keeps the routes of `routes`, which were read from `path` and are in the table, as the
/// file says, until the task is ended. The file is read again when `reload` is notified or
/// it changes; a file with an error changes nothing and is logged. Between changes the
/// routes are kept fresh, or they would be pruned.
pub async fn follow(
    path: PathBuf,
    mut routes: Routes,
    table: Arc<Table>,
    http2: bool,
    reload: Arc<Notify>,
    logger: Logger,
) {
    let mut known = stamp(&path);
    // Three chances before the first endpoint is stale.
    let refresh = (table.settings().stale_after / 4).max(LOOK);
    let mut refreshed = tokio::time::Instant::now();
    loop {
        let asked = tokio::select! {
            () = reload.notified() => true,
            () = tokio::time::sleep(LOOK) => false,
        };
        let found = stamp(&path);
        if asked || found != known {
            known = found;
            match read(path.clone()).await {
                Ok(new) => {
                    new.apply(&table, Some(&routes), http2, wire::clock::now());
                    logger.info("routes-read", Fields::new().and("routes", new.len()));
                    routes = new;
                }
                Err(error) => logger.error("routes-not-read", &error, Fields::new()),
            }
        } else if refreshed.elapsed() >= refresh {
            refreshed = tokio::time::Instant::now();
            routes.apply(&table, None, http2, wire::clock::now());
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
