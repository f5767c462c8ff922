//! How a router ends.

use std::sync::Arc;
use std::time::Duration;

use telemetry::{Fields, Logger};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until};

use super::run::Signal;
use super::settings::DrainSettings;
use crate::http::engine::Engine;
use crate::http::status::{Health, Phase};

/// Pause between two looks at how many connections are left.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Drains: unhealthy at once; serves on; then closes the listeners and what is idle, and
/// waits for the rest. A stop ends each of the waits; other signals do nothing.
pub(super) async fn drain(
    settings: DrainSettings,
    health: &Arc<Health>,
    engine: &Engine,
    signals: &mut mpsc::Receiver<Signal>,
    logger: &Logger,
) {
    health.reach(Phase::Degraded);
    logger.info(
        "draining",
        Fields::new()
            .and("wait", units::write_duration(settings.wait))
            .and("timeout", units::write_duration(settings.timeout)),
    );
    if stopped_before(Instant::now() + settings.wait, signals).await {
        return;
    }
    engine.drain();
    logger.info(
        "listeners-closed",
        Fields::new().and("active", engine.active()),
    );
    let deadline = Instant::now() + settings.timeout;
    while engine.active() > 0 {
        let next = deadline.min(Instant::now() + LOOK_EVERY);
        if stopped_before(next, signals).await {
            return;
        }
        if Instant::now() >= deadline {
            logger.info(
                "drain-timed-out",
                Fields::new().and("active", engine.active()),
            );
            return;
        }
    }
    logger.info("drained", Fields::new());
}

/// Waits until `until`, and says whether a stop came before.
async fn stopped_before(until: Instant, signals: &mut mpsc::Receiver<Signal>) -> bool {
    loop {
        tokio::select! {
            () = sleep_until(until) => return false,
            signal = signals.recv() => match signal {
                Some(Signal::Stop) => return true,
                Some(Signal::Drain | Signal::Reload | Signal::Settings(_)) => {}
                // Nobody can ask any more: the wait is all that is left.
                None => {
                    sleep(until.saturating_duration_since(Instant::now())).await;
                    return false;
                }
            },
        }
    }
}
