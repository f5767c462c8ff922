//! The rate of a load that runs, which those who watch the run may change.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lab_load::arrivals::{Arrivals, Fixed, Numbers};
use lab_load::{Model, Segment};

use super::handle::GeneratorHandle;

/// Time between the word and the change, so that a busy machine has every thread ready.
const LEAD: u64 = 25_000_000;

/// The rate of one segment; cheap to clone.
#[derive(Clone)]
pub(crate) struct Rate(Arc<Shared>);

struct Shared {
    handle: Arc<GeneratorHandle>,
    /// When the segment begins, on the generator's clock.
    began: u64,
    length: Option<Duration>,
    changing: Mutex<Changing>,
}

struct Changing {
    /// As they are told, with all changes so far.
    arrivals: Arrivals,
    numbers: Numbers,
    /// When the last change takes effect.
    last: u64,
}

impl std::fmt::Debug for Rate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Rate").field(&self.now()).finish()
    }
}

/// Why a rate stays as it is.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RateError {
    /// Nobody is there to change it.
    #[error("it is about to end")]
    Ending,
    /// Its arrivals do not allow it.
    #[error(transparent)]
    Fixed(#[from] Fixed),
}

impl Rate {
    /// That of a segment; `None`: it has none that can be changed while it runs.
    pub(super) fn of(handle: &Arc<GeneratorHandle>, segment: &Segment, began: u64) -> Option<Self> {
        let Model::Open(arrivals) = &segment.model else {
            return None;
        };
        handle.relay.as_ref()?;
        Some(Self(Arc::new(Shared {
            handle: Arc::clone(handle),
            began,
            length: segment.length.duration,
            changing: Mutex::new(Changing {
                arrivals: arrivals.clone(),
                numbers: Numbers::new(arrivals.clone(), began),
                last: began,
            }),
        })))
    }

    fn changing(&self) -> MutexGuard<'_, Changing> {
        let changing = &self.0.changing;
        changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Requests per second now; `None`: it follows no rate that can be changed.
    pub(crate) fn now(&self) -> Option<f64> {
        let relay = self.0.handle.relay.as_ref()?;
        let passed = (relay.now)().saturating_sub(self.0.began);
        let changing = self.changing();
        let at = Duration::from_nanos(passed.max(1));
        let rate = changing.arrivals.rate_at(at)?;
        // Whether it can be changed at all is not up to the rate.
        changing.arrivals.turned(at, 1.0, None).ok().map(|_| rate)
    }

    /// Has requests fall due at another rate in a moment; gives the arrivals with all changes.
    ///
    /// # Errors
    /// See [`RateError`].
    pub(crate) fn change(&self, rate: f64) -> Result<Arrivals, RateError> {
        let relay = self.0.handle.relay.as_ref().ok_or(RateError::Ending)?;
        let mut changing = self.changing();
        let at = ((relay.now)() + LEAD)
            .max(self.0.began + 1)
            .max(changing.last + 1);
        let after = Duration::from_nanos(at - self.0.began);
        let rest = self.0.length.map(|length| length.saturating_sub(after));
        if rest.is_some_and(|rest| rest.is_zero()) {
            return Err(RateError::Ending);
        }
        changing.arrivals = changing.arrivals.turned(after, rate, rest)?;
        changing.last = at;
        changing.numbers.turn(at, rate);
        (relay.turn_at)(at, rate);
        Ok(changing.arrivals.clone())
    }

    /// Requests of the segment that fall due before a moment have numbers below this, from its first.
    pub(super) fn most_by(&self, at: u64) -> u64 {
        self.changing().numbers.most_by(at)
    }

    /// The same by so long a time after its beginning, if the rate was changed.
    pub(super) fn with_gaps_after(&self, passed: Duration) -> Option<u64> {
        let passed = u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX);
        let at = self.0.began.saturating_add(passed);
        self.changing().numbers.with_gaps_by(at)
    }
}
