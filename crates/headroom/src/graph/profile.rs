//! Follows the file of a profile.

use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use document::{Problems, Source};
use graph::profile::{EVERY, Watch};
use graph::service::SwapError;
use graph::work::WorkError;
use net::Shutdown;
use telemetry::{Fields, Logger};

/// Why a profile was not put in force. The one before still is.
#[derive(Debug, thiserror::Error)]
pub(super) enum PutError {
    /// It is no topology.
    #[error("{0}")]
    Wrong(#[from] Problems),
    /// It is none that can take the place of the one in force.
    #[error("{0}")]
    Unfit(#[from] SwapError),
    /// Its background work cannot be done here.
    #[error("start the background work: {0}")]
    Background(#[from] WorkError),
    /// Another process did not take it.
    #[error("{0}")]
    Elsewhere(String),
}

/// What takes a profile: it is put in force, or refused and the reason kept.
pub(super) trait Profiled: Send + Sync + 'static {
    fn put(&self, source: Source) -> Result<u32, PutError>;
    fn refused(&self, error: String);
}

/// Seconds since 1970.
pub(super) fn unix_s() -> u64 {
    let time = SystemTime::now().duration_since(UNIX_EPOCH);
    time.map_or(0, |time| time.as_secs())
}

/// Puts what is written to the file in force, until `shutdown`.
pub(super) async fn follow(
    path: &Path,
    first: &Source,
    to: Arc<dyn Profiled>,
    logger: Logger,
    mut shutdown: Shutdown,
) {
    let mut watch = Watch::new(path, first);
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = shutdown.asked() => return,
        }
        let now = i64::try_from(unix_s()).unwrap_or(i64::MAX);
        let Some(found) = watch.look(now) else {
            continue;
        };
        let (to, logger) = (Arc::clone(&to), logger.clone());
        // Checking and compiling a large graph takes a while.
        let put = tokio::task::spawn_blocking(move || take(&*to, found, &logger));
        // One that panicked has said so, and the profile before is in force.
        let _ = put.await;
    }
}

fn take(to: &dyn Profiled, found: Result<Source, String>, logger: &Logger) {
    let put = match found {
        Ok(source) => to.put(source).map_err(|error| error.to_string()),
        Err(error) => {
            to.refused(error.clone());
            Err(error)
        }
    };
    match put {
        Ok(revision) => logger.info("profile-taken", Fields::new().and("revision", revision)),
        Err(error) => {
            let fields = Fields::new().and("kept", "the profile before");
            logger.error("profile-refused", &error, fields);
        }
    }
}
