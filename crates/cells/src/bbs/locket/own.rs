//! Keys that one process has: in memory, and on the disk of its BBS or its own.

use std::sync::Arc;
use std::time::{Duration, Instant};

use diego::locket::{FetchAllRequest, LockRequest, ReleaseRequest, Resource, TypeCode};
use telemetry::{Fields, Logger};

use crate::bbs::apply::Command;
use crate::bbs::convergence::Touches;
use crate::bbs::ledger::Commands;
use crate::bbs::presence::{Change, Presences, Refusal, StoredLock};

/// Longest wait of a holder for the disk.
const STORED_WITHIN: Duration = Duration::from_secs(1);

/// The keys of one process.
#[derive(Clone)]
pub(super) struct Own {
    pub(super) presences: Arc<Presences>,
    pub(super) commands: Commands,
    pub(super) touches: Arc<Touches>,
    pub(super) logger: Logger,
}

impl Own {
    pub(super) async fn lock(&self, request: LockRequest) -> Result<(), Refusal> {
        if let Some(kept) = self.presences.lock(request, Instant::now())? {
            let (key, id) = (kept.resource.key.clone(), kept.id);
            let held = Command::Presences(vec![Change::Held(kept)]);
            // It is held all the same, and others renew over the same connections.
            match tokio::time::timeout(STORED_WITHIN, self.commands.run(held)).await {
                Ok(Ok(_)) => self.presences.stored(&key, id),
                Err(_) => {
                    let fields = Fields::new().and("key", key);
                    self.logger.info("presence-not-stored-yet", fields);
                }
                // Its next renewal tries again.
                Ok(Err(error)) => {
                    let fields = Fields::new().and("key", key);
                    let message = &error.message;
                    self.logger
                        .error("failed-to-store-presence", message, fields);
                }
            }
        }
        Ok(())
    }

    pub(super) async fn release(&self, request: ReleaseRequest) -> Result<(), Refusal> {
        let gone = self.presences.release(request.resource, Instant::now())?;
        if let Some(StoredLock { id, resource, .. }) = gone {
            let change = Change::Gone(resource.key.clone(), id);
            if let Err(error) = self.commands.run(Command::Presences(vec![change])).await {
                // After a restart it would be taken for there for its time to live.
                let message = &error.message;
                self.logger
                    .error("failed-to-store-release", message, Fields::new());
            }
            // A cell that says goodbye is as lost as one that fell silent.
            if resource.type_code == i32::from(TypeCode::Presence) {
                self.touches.ring([resource.key]);
            }
        }
        Ok(())
    }

    pub(super) fn fetch(&self, key: &str) -> Result<Resource, Refusal> {
        self.presences.fetch(key, Instant::now())
    }

    pub(super) fn fetch_all(&self, request: &FetchAllRequest) -> Result<Vec<Resource>, Refusal> {
        self.presences.fetch_all(request, Instant::now())
    }
}
