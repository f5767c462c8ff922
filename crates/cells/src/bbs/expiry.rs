//! Keys that nobody has renewed in time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use diego::locket::TypeCode;
use telemetry::{Fields, Logger};

use super::apply::Command;
use super::convergence::Touches;
use super::ledger::Commands;
use super::presence::{Change, Presences};

/// Time between two looks for keys that have expired.
const LOOK_FOR_EXPIRED: Duration = Duration::from_secs(1);

/// Longest time between two looks after which keys may expire: whoever stood still for longer
/// has answered no renewals.
const STOOD_STILL: Duration = Duration::from_secs(5);

/// Takes keys that have expired off the disk and says so.
pub(super) async fn forget_expired(
    presences: Arc<Presences>,
    commands: Commands,
    touches: Arc<Touches>,
    logger: Logger,
) {
    let mut last = Instant::now();
    loop {
        tokio::time::sleep(LOOK_FOR_EXPIRED).await;
        let now = Instant::now();
        if now.duration_since(std::mem::replace(&mut last, now)) > STOOD_STILL {
            presences.grant_anew(now);
            logger.info("stood-still", Fields::new());
            continue;
        }
        let expired = presences.sweep(now);
        for kept in &expired {
            let fields = Fields::new().and("key", &kept.resource.key);
            logger.info("expired", fields.and("owner", &kept.resource.owner));
        }
        let presence = i32::from(TypeCode::Presence);
        let cells = expired.iter().map(|kept| &kept.resource);
        let cells = cells.filter(|resource| resource.type_code == presence);
        let cells: Vec<String> = cells.map(|resource| resource.key.clone()).collect();
        if !cells.is_empty() {
            touches.ring(cells);
        }
        let gone = expired.into_iter();
        let gone: Vec<_> = gone
            .map(|kept| Change::Gone(kept.resource.key, kept.id))
            .collect();
        // One that stays on the disk is found expired again after the next start.
        if !gone.is_empty()
            && let Err(error) = commands.run(Command::Presences(gone)).await
        {
            logger.error("failed-to-forget-expired", &error.message, Fields::new());
        }
        // A store that took its time is no standstill of this process.
        last = Instant::now();
    }
}
