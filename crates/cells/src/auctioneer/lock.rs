//! The lock of the auctioneer that is active: others wait for it without listening.

use std::time::Duration;

use diego::locket::{Resource, TypeCode};
use net::Shutdown;
use telemetry::{Fields, Logger};
use tokio::time::{Instant, sleep};

use crate::locket_client::{LocketClient, Refused};

/// The key, as Diego's auctioneers have it.
const KEY: &str = "auctioneer";
/// How long it lives unless renewed: a passive one takes over within this, and a pause.
const TTL: Duration = Duration::from_secs(15);
/// Time between two renewals.
const RENEW: Duration = Duration::from_secs(5);
/// Pause between attempts while it is not held.
const RETRY: Duration = Duration::from_secs(1);

pub(super) struct Lock {
    pub(super) locket: LocketClient,
    /// Proves that it is we who renew.
    pub(super) owner: String,
    pub(super) logger: Logger,
}

impl Lock {
    fn resource(&self) -> Resource {
        Resource {
            key: KEY.into(),
            owner: self.owner.clone(),
            value: String::new(),
            r#type: "lock".into(),
            type_code: TypeCode::Lock.into(),
        }
    }

    /// Waits until the lock is held; says until when.
    pub(super) async fn acquire(&self) -> Instant {
        let mut told = false;
        loop {
            // Counted from before the call: Locket counts from when it arrives.
            let asked = Instant::now();
            match self.locket.lock(self.resource(), TTL).await {
                Ok(()) => {
                    self.logger.info("acquired", Fields::new());
                    return asked + TTL;
                }
                Err(cause) if !told => {
                    let cause = cause.to_string();
                    self.logger
                        .info("waiting", Fields::new().and("cause", cause));
                    told = true;
                }
                Err(_) => {}
            }
            sleep(RETRY).await;
        }
    }

    /// Renews the lock until `shutdown`, then gives it up; true when it was lost before: it could
    /// not be renewed for as long as it lives, or somebody else has it.
    pub(super) async fn keep(self, mut expires: Instant, mut shutdown: Shutdown) -> bool {
        let mut pause = RENEW;
        loop {
            tokio::select! {
                () = sleep(pause.min(expires - Instant::now())) => {}
                () = shutdown.asked() => break,
            }
            let asked = Instant::now();
            let renewed = self.locket.lock(self.resource(), TTL);
            let cause = match tokio::time::timeout_at(expires, renewed).await {
                Ok(Ok(())) => {
                    expires = asked + TTL;
                    pause = RENEW;
                    continue;
                }
                Ok(Err(cause)) => cause,
                Err(_) => Refused::Other("no answer".into()),
            };
            self.logger.error("failed-to-renew", &cause, Fields::new());
            if matches!(cause, Refused::Taken(_)) || Instant::now() >= expires {
                return true;
            }
            pause = RETRY;
        }
        if let Err(cause) = self.locket.release(self.resource()).await {
            self.logger
                .error("failed-to-release", &cause, Fields::new());
        }
        false
    }
}
