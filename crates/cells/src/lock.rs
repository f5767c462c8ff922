//! The lock of the one of several that is active: the others wait for it and do nothing.

use std::time::Duration;

use diego::locket::{Resource, TypeCode};
use net::{Client, Shutdown};
use telemetry::{Fields, Logger};
use tokio::time::{Instant, sleep, timeout};

use crate::locket_client::{LocketClient, Refused};

/// How long it lives unless renewed: a passive one takes over within this, and a pause.
const TTL: Duration = Duration::from_secs(15);
/// Time between two renewals.
const RENEW: Duration = Duration::from_secs(5);
/// Pause between attempts while it is not held.
const RETRY: Duration = Duration::from_secs(1);
/// Longest wait for each of the last answers of one that ends before it held the lock.
const LAST: Duration = Duration::from_secs(2);

/// A lock at the Locket of a BBS.
pub(crate) struct Lock {
    locket: LocketClient,
    /// What it is about, as Diego names it.
    key: &'static str,
    /// Proves that it is we who renew.
    owner: String,
    logger: Logger,
}

impl Lock {
    /// The lock `key`, for an owner of its own.
    pub(crate) fn new(
        client: Client,
        bbs: &str,
        key: &'static str,
        holder: &'static str,
        logger: Logger,
    ) -> Self {
        Self {
            locket: LocketClient {
                client,
                base: bbs.trim_end_matches('/').to_owned(),
                holder,
            },
            key,
            owner: uuid::Builder::from_random_bytes(rand::random())
                .into_uuid()
                .to_string(),
            logger,
        }
    }

    fn resource(&self) -> Resource {
        Resource {
            key: self.key.into(),
            owner: self.owner.clone(),
            value: String::new(),
            r#type: "lock".into(),
            type_code: TypeCode::Lock.into(),
        }
    }

    /// Waits until the lock is held; says until when. `None`: `shutdown` came before, and it is
    /// not held.
    pub(crate) async fn acquire(&self, mut shutdown: Shutdown) -> Option<Instant> {
        let mut told = false;
        loop {
            // Counted from before the call: Locket counts from when it arrives.
            let asked = Instant::now();
            let mut call = std::pin::pin!(self.locket.lock(self.resource(), TTL));
            let answer = tokio::select! {
                answer = &mut call => answer,
                () = shutdown.requested() => {
                    let late = timeout(LAST, call).await;
                    self.withdraw(late.ok()).await;
                    return None;
                }
            };
            let cause = match answer {
                Ok(()) => {
                    self.logger.info("acquired", Fields::new());
                    return Some(asked + TTL);
                }
                Err(cause) => cause,
            };
            if !told {
                let cause = cause.to_string();
                self.logger
                    .info("waiting", Fields::new().and("cause", cause));
                told = true;
            }
            tokio::select! {
                () = sleep(RETRY) => {}
                () = shutdown.requested() => {
                    self.withdraw(Some(Err(cause))).await;
                    return None;
                }
            }
        }
    }

    /// Gives up what this answer, or none, leaves in doubt: it may have been granted, and the others
    /// would wait until it expires.
    async fn withdraw(&self, answer: Option<Result<(), Refused>>) {
        if !matches!(answer, Some(Err(Refused::Taken(_)))) {
            let _ = timeout(LAST, self.release()).await;
        }
    }

    async fn release(&self) {
        if let Err(cause) = self.locket.release(self.resource()).await {
            self.logger
                .error("failed-to-release", &cause, Fields::new());
        }
    }

    /// Renews the lock until `shutdown`, then gives it up; true when it was lost before: it could
    /// not be renewed for as long as it lives, or somebody else has it.
    pub(crate) async fn keep(self, mut expires: Instant, mut shutdown: Shutdown) -> bool {
        let mut pause = RENEW;
        loop {
            tokio::select! {
                () = sleep(pause.min(expires - Instant::now())) => {}
                () = shutdown.requested() => break,
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
        self.release().await;
        false
    }
}
