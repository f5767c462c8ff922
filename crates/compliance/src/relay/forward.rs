//! Uploads go from the spool to the upstream, in order, and while it is away they wait.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use net::Shutdown;
use telemetry::{Fields, Logger};
use tokio::task::{JoinError, JoinSet};

use super::item::{Head, ItemError};
use super::metrics::Metrics;
use super::spool::Spool;
use super::upstream::Upstream;
use crate::server::now;
use crate::spool::{Backoff, Outcome};
use crate::upstream::WireError;

/// Uploads that are under way at once, each of another node.
pub(super) const SENDERS: usize = 16;
/// Longest time between two looks at what waits.
const LOOK: Duration = Duration::from_secs(60);
/// Longest wait for them when the relay stops; what was not answered is sent again.
const DRAIN: Duration = Duration::from_secs(5);

/// Sends what waits.
pub(super) struct Forwarder {
    pub(super) spool: Arc<Spool>,
    pub(super) upstream: Arc<Upstream>,
    pub(super) metrics: Arc<Metrics>,
    /// The relay's identity.
    pub(super) id: String,
    pub(super) logger: Logger,
}

/// What became of an upload that was under way.
struct Sent {
    number: u64,
    head: Option<Head>,
    outcome: Outcome,
    why: String,
    /// When the upstream wants to be asked again.
    after: Option<Duration>,
}

impl Forwarder {
    /// Sends until the relay stops.
    pub(super) async fn run(self, mut stop: Shutdown) {
        let this = Arc::new(self);
        let mut backoff = Backoff::default();
        let mut under_way = JoinSet::new();
        loop {
            // One finds out whether the upstream is back.
            let most = if backoff.is_failing() { 1 } else { SENDERS };
            let wait = backoff.wait(this.upstream.now());
            if wait.is_zero() {
                while under_way.len() < most
                    && let Some(number) = this.spool.next(now())
                {
                    under_way.spawn(net::boxed(Arc::clone(&this).send(number)));
                }
            }
            let wait = match wait.is_zero() {
                false => Some(wait),
                true => this.spool.wakes().map(|wakes| {
                    let millis = u64::try_from(wakes.saturating_sub(now())).unwrap_or_default();
                    Duration::from_millis(millis.max(1))
                }),
            };
            tokio::select! {
                () = stop.requested() => break,
                Some(sent) = under_way.join_next() => this.sent(sent, &mut backoff).await,
                () = this.spool.came.notified() => {}
                () = tokio::time::sleep(wait.unwrap_or(LOOK)) => {}
            }
        }
        let rest = async {
            while let Some(sent) = under_way.join_next().await {
                this.sent(sent, &mut backoff).await;
            }
        };
        let _ = tokio::time::timeout(DRAIN, rest).await;
    }

    async fn send(self: Arc<Self>, number: u64) -> Sent {
        let spool = Arc::clone(&self.spool);
        let read = tokio::task::spawn_blocking(move || spool.read(number)).await;
        let ended = |head, outcome, why: String, after| Sent {
            number,
            head,
            outcome,
            why,
            after,
        };
        let (head, content) = match read {
            Ok(Ok(item)) => item,
            Ok(Err(error @ ItemError::Damaged(_))) => {
                return ended(None, Outcome::Refused, error.to_string(), None);
            }
            Ok(Err(error)) => return ended(None, Outcome::Failed, error.to_string(), None),
            Err(error) => return ended(None, Outcome::Failed, error.to_string(), None),
        };
        let put = self.put(&head, content).await;
        let head = Some(head);
        match put {
            Ok(()) => ended(head, Outcome::Taken, String::new(), None),
            Err(error) => {
                let (outcome, after) = outcome_of(&error);
                ended(head, outcome, error.to_string(), after)
            }
        }
    }

    async fn put(&self, head: &Head, content: Bytes) -> Result<(), WireError> {
        let relays = match &*head.relays {
            "" => self.id.clone(),
            before => format!("{before},{}", self.id),
        };
        let wire = &self.upstream.wire;
        let Some(signature) = &head.signature else {
            wire.put_over(&head.path, &relays, content).await?;
            return Ok(());
        };
        let path = format!("{}.sign", head.path);
        let signature = Bytes::from(signature.clone());
        let (status, _) = wire.put_over(&path, &relays, signature).await?;
        if status != StatusCode::ACCEPTED {
            // The other half was there, of a time before: this was answered for both.
            return Ok(());
        }
        let path = format!("{}.gz", head.path);
        let (status, why) = wire.put_over(&path, &relays, content).await?;
        match status {
            // The first half is gone, as after a restart of the upstream: it goes again.
            StatusCode::ACCEPTED => Err(WireError::Later {
                status,
                after: None,
                why,
            }),
            _ => Ok(()),
        }
    }

    async fn sent(&self, sent: Result<Sent, JoinError>, backoff: &mut Backoff) {
        let sent = match sent {
            Ok(sent) => sent,
            // It waits until the next start.
            Err(error) => return self.logger.error("sender-ended", &error, Fields::new()),
        };
        let Sent {
            number,
            head,
            outcome,
            why,
            after,
        } = sent;
        let report = head.as_ref().is_none_or(|head| head.run.is_some());
        let uploads = match report {
            true => &self.metrics.reports,
            false => &self.metrics.inventories,
        };
        let path = head.as_ref().map(|head| head.path.as_str());
        let fields = Fields::new().and("file", path.unwrap_or("unknown"));
        match outcome {
            Outcome::Taken => {
                if backoff.is_failing() {
                    self.logger.info("forwarding-again", Fields::new());
                }
                backoff.succeeded();
                uploads.forwarded.add(1);
                self.logger.debug("forwarded", fields);
            }
            Outcome::Refused => {
                backoff.succeeded();
                self.logger.error("refused-by-upstream", &why, fields);
            }
            Outcome::Away => {
                self.upstream.errors.add(1);
                if !backoff.is_failing() {
                    self.logger.error("forwarding-waits", &why, fields);
                }
                backoff.failed(self.upstream.now(), after, self.upstream.random());
            }
            Outcome::Failed => {
                self.upstream.errors.add(1);
                backoff.succeeded();
                self.logger.error("upstream-failed", &why, fields);
            }
        }
        let spool = Arc::clone(&self.spool);
        let done = move || spool.done(number, outcome, &why, now());
        match tokio::task::spawn_blocking(done).await {
            Ok(Ok(aside)) => uploads.undelivered.add(u64::from(aside)),
            Ok(Err(error)) => self
                .logger
                .error("spool-not-cleared", &error, Fields::new()),
            Err(error) => self
                .logger
                .error("spool-not-cleared", &error, Fields::new()),
        }
    }
}

/// What an error means for an upload: is the upstream away, or is it about this one?
fn outcome_of(error: &WireError) -> (Outcome, Option<Duration>) {
    match error {
        WireError::Away(_) => (Outcome::Away, None),
        WireError::Refused { .. } => (Outcome::Refused, None),
        WireError::Made(_) => (Outcome::Failed, None),
        WireError::Later { status, after, .. } => match *status {
            StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT
            | StatusCode::REQUEST_TIMEOUT
            | StatusCode::TOO_MANY_REQUESTS => (Outcome::Away, *after),
            _ => (Outcome::Failed, *after),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_about_one_upload_does_not_stop_the_others() {
        let later = |status: u16| WireError::Later {
            status: StatusCode::from_u16(status).unwrap(),
            after: Some(Duration::from_secs(7)),
            why: String::new(),
        };
        for status in [408, 429, 502, 503, 504] {
            let expected = (Outcome::Away, Some(Duration::from_secs(7)));
            assert_eq!(outcome_of(&later(status)), expected, "{status}");
        }
        for status in [202, 500, 501, 507, 508] {
            assert_eq!(outcome_of(&later(status)).0, Outcome::Failed, "{status}");
        }
        for status in [400, 403, 404, 409, 413] {
            let refused = WireError::Refused {
                status: StatusCode::from_u16(status).unwrap(),
                why: String::new(),
            };
            assert_eq!(outcome_of(&refused).0, Outcome::Refused, "{status}");
        }
    }
}
