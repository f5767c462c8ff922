//! Follows the file of a profile.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Error, Result};
use document::Source;
use graph::profile::{EVERY, Profile, Watch};
use net::Shutdown;
use telemetry::prometheus::Page;
use telemetry::{Fields, Logger};

use super::file::TopologyFile;

/// What takes a profile: it is put in force, or what is wrong with it is kept and told.
pub(super) trait Profiled: Send + Sync + 'static {
    fn take(&self, found: Result<Source, String>) -> Result<u32>;
}

/// Puts what was found in force, or leaves the one before there; keeps and tells what became of it.
pub(super) fn take(
    profile: &Profile,
    logger: &Logger,
    found: Result<Source, String>,
    put: impl FnOnce(&Source) -> Result<u32>,
) -> Result<u32> {
    let put = found.map_err(Error::msg).and_then(|source| {
        let revision = put(&source)?;
        profile.taken(source);
        Ok(revision)
    });
    match &put {
        Ok(revision) => logger.info("profile-taken", Fields::new().and("revision", revision)),
        Err(error) => {
            profile.refused(error.to_string(), unix_s());
            let fields = Fields::new().and("kept", "the profile before");
            logger.error("profile-refused", error, fields);
        }
    }
    put
}

/// What is counted about profiles.
pub(super) fn metrics(page: &mut Page, revision: u32, profile: &Profile) {
    page.gauge(
        "headroom_graph_profile_revision",
        "The profile in force, counted from 1 at the start.",
        revision,
    );
    page.counter(
        "headroom_graph_profiles_refused_total",
        "Profiles that were wrong; the one before stayed in force.",
        profile.refusals(),
    );
    page.gauge(
        "headroom_graph_profile_refused",
        "1 if the last profile was refused.",
        u8::from(profile.refusal().is_some()),
    );
}

/// Seconds since 1970.
fn unix_s() -> u64 {
    let time = SystemTime::now().duration_since(UNIX_EPOCH);
    time.map_or(0, |time| time.as_secs())
}

/// Puts what is written to the file in force, until `shutdown`.
pub(super) async fn follow(
    file: &TopologyFile,
    to: Arc<impl Profiled>,
    logger: Logger,
    mut shutdown: Shutdown,
) {
    let mut watch = Watch::new(file.path(), &file.written);
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = shutdown.requested() => return,
        }
        let now = i64::try_from(unix_s()).unwrap_or(i64::MAX);
        let Some(found) = watch.look(now) else {
            continue;
        };
        let found = found.and_then(|written| {
            let changed = file.with_settings(written);
            changed.map_err(|error| error.to_string())
        });
        let to = Arc::clone(&to);
        // Checking and compiling a large graph takes a while. What it says is told by it.
        let put = tokio::task::spawn_blocking(move || to.take(found).is_ok());
        if let Err(error) = put.await {
            // The profile before is in force.
            logger.error("profile-failed", &error, Fields::new());
        }
    }
}
