//! The server, or relay, before this one: asked for what its nodes are to have, and left alone for
//! a while when it does not answer.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use stats::SplitMix;
use telemetry::{Fields, Logger};

use crate::server::Count;
use crate::spool::Backoff;
use crate::upstream::{Wire, WireError};

/// Longest wait for an answer that a node waits for: it gives up after 30 s.
const WITHIN: Duration = Duration::from_secs(10);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum UpstreamError {
    /// It did not answer just now, and is asked again later.
    #[error("the upstream did not answer a moment ago")]
    LeftAlone,
    /// It does not answer.
    #[error("the upstream did not answer within {WITHIN:?}")]
    TooSlow,
    /// It is not there, or cannot answer.
    #[error(transparent)]
    Wire(#[from] WireError),
}

/// The upstream.
pub(super) struct Upstream {
    pub(super) wire: Wire,
    /// Requests that were not answered.
    pub(super) errors: Count,
    start: Instant,
    asking: Mutex<Backoff>,
    random: Mutex<SplitMix>,
    logger: Logger,
}

impl Upstream {
    pub(super) fn new(wire: Wire, seed: u64, logger: Logger) -> Self {
        Self {
            wire,
            errors: Count::default(),
            start: Instant::now(),
            asking: Mutex::default(),
            random: Mutex::new(SplitMix::new(seed)),
            logger,
        }
    }

    /// Time since the start.
    pub(super) fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// From 0 to 1.
    pub(super) fn random(&self) -> f64 {
        let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        random.uniform()
    }

    fn backoff(&self) -> MutexGuard<'_, Backoff> {
        self.asking.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Did it answer when it was last asked?
    pub(super) fn is_there(&self) -> bool {
        !self.backoff().is_failing()
    }

    /// Makes a request, unless the upstream is to be left alone.
    ///
    /// # Errors
    /// There is no answer.
    pub(super) async fn request<T>(
        &self,
        call: impl Future<Output = Result<T, WireError>>,
    ) -> Result<T, UpstreamError> {
        if !self.backoff().wait(self.now()).is_zero() {
            return Err(UpstreamError::LeftAlone);
        }
        let answer = match tokio::time::timeout(WITHIN, call).await {
            Ok(Ok(answer)) => Ok(answer),
            // It refuses: it is there.
            Ok(Err(error @ WireError::Refused { .. })) => Err(error.into()),
            Ok(Err(error)) => Err(UpstreamError::Wire(error)),
            Err(_) => Err(UpstreamError::TooSlow),
        };
        let away = match &answer {
            Ok(_) | Err(UpstreamError::Wire(WireError::Refused { .. } | WireError::Made(_))) => {
                None
            }
            Err(error) => Some(error),
        };
        let was_there = self.is_there();
        match away {
            None => {
                self.backoff().succeeded();
                if !was_there {
                    self.logger.info("upstream-is-back", Fields::new());
                }
            }
            Some(error) => {
                self.errors.add(1);
                let (now, random) = (self.now(), self.random());
                self.backoff().failed(now, after(error), random);
                if was_there {
                    self.logger.error("upstream-is-away", error, Fields::new());
                }
            }
        }
        answer
    }
}

/// When the upstream wants to be asked again.
fn after(error: &UpstreamError) -> Option<Duration> {
    match error {
        UpstreamError::Wire(WireError::Later { after, .. }) => *after,
        _ => None,
    }
}
