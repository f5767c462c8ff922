//! Times in which the laboratory itself did not run: something had stopped it, or left it no
//! processor. What it times by its own clock then is longer than it was.

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::time::Duration;

use measure::Clock;
use tokio::time::Instant;
use units::show_seconds;

/// Time between two turns of a laboratory that runs.
const TURN: Duration = Duration::from_millis(50);
/// A turn that is later than this, in seconds, says that it did not. A busy machine alone makes turns
/// late by less.
const LEAST_S: f64 = 0.5;
/// Most times that are told apart; those beyond become one.
const MOST: usize = 1_000;

/// Start and end of a time, in seconds of the run.
pub(crate) type Span = (f64, f64);

/// The times so far.
pub(crate) struct Standstills {
    clock: Clock,
    turned_s: Cell<f64>,
    seen: RefCell<Vec<Span>>,
}

impl Standstills {
    /// None until now.
    pub(crate) fn new(clock: Clock) -> Self {
        Self {
            clock,
            turned_s: Cell::new(clock.now_s()),
            seen: RefCell::default(),
        }
    }

    /// Looks until dropped.
    pub(crate) async fn look(&self) -> Infallible {
        // What was prepared until now is no time in which something was measured.
        self.turned_s.set(self.clock.now_s());
        loop {
            tokio::time::sleep(TURN).await;
            self.turn();
        }
    }

    /// Now, in seconds of the run.
    pub(crate) fn turn(&self) -> f64 {
        let now_s = self.clock.now_s();
        let due_s = self.turned_s.replace(now_s) + TURN.as_secs_f64();
        if now_s - due_s >= LEAST_S {
            let mut seen = self.seen.borrow_mut();
            let is_full = seen.len() >= MOST;
            match seen.last_mut() {
                Some((_, to_s)) if is_full => *to_s = now_s,
                _ => seen.push((due_s, now_s)),
            }
        }
        now_s
    }

    /// How long the laboratory stood still since a moment, in seconds.
    pub(crate) fn since(&self, from_s: f64) -> f64 {
        let now_s = self.turn();
        let seen = self.seen.borrow();
        seen.iter().map(|own| shared((from_s, now_s), *own)).sum()
    }

    /// All of them.
    pub(crate) fn all(&self) -> Vec<Span> {
        self.turn();
        self.seen.borrow().clone()
    }
}

/// A limit ran out.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RanOut;

/// What comes of a future for which there is so much time. Of a time in which the laboratory stood still
/// no more than a tenth of the limit counts, or a twentieth of a second.
pub(crate) async fn within<F: Future>(limit: Duration, future: F) -> Result<F::Output, RanOut> {
    let mut future = std::pin::pin!(future);
    let turn = TURN.max(limit / 10);
    let mut left = limit;
    loop {
        let (began, most) = (Instant::now(), turn.min(left));
        if let Ok(output) = tokio::time::timeout(most, &mut future).await {
            return Ok(output);
        }
        let took = began.elapsed();
        let stood = took.saturating_sub(most) >= Duration::from_secs_f64(LEAST_S);
        left = left.saturating_sub(if stood { most } else { took });
        if left.is_zero() {
            return Err(RanOut);
        }
    }
}

/// How long two times were at once, in seconds.
pub(crate) fn shared(one: Span, other: Span) -> f64 {
    (one.1.min(other.1) - one.0.max(other.0)).max(0.0)
}

/// Whether it may have stood still at an instant: it looks after itself once a turn.
pub(crate) fn may_be_within(at_s: f64, stood: Span) -> bool {
    (stood.0 - TURN.as_secs_f64()..stood.1).contains(&at_s)
}

/// What a person should know of them; `None`: the laboratory ran all the time.
pub(crate) fn told(stood: &[Span]) -> Option<String> {
    let all_s: f64 = stood.iter().map(|(from_s, to_s)| to_s - from_s).sum();
    let (first_s, _) = stood.first()?;
    Some(format!(
        "the laboratory itself stood still for {} in all, first {} after the run began: something had stopped it, or \
         left it no processor; what it timed then says little",
        show_seconds(all_s),
        show_seconds(*first_s)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What comes of something that takes 600 ms, in a laboratory that stands still for a while after 300.
    async fn beside_a_standstill(limit: Duration, stands: Duration) -> Result<(), RanOut> {
        let something = async {
            for _ in 0..60 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let stops = async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            tokio::time::advance(stands).await;
            std::future::pending().await
        };
        tokio::select! {
            told = within(limit, something) => told,
            never = stops => never,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_limit_does_not_run_out_while_the_laboratory_stands_still() {
        let [short, long, stands] = [500, 1_000, 5_000].map(Duration::from_millis);
        assert_eq!(beside_a_standstill(long, stands).await, Ok(()));
        assert_eq!(beside_a_standstill(long, Duration::ZERO).await, Ok(()));
        assert_eq!(beside_a_standstill(short, stands).await, Err(RanOut));
    }

    #[tokio::test(start_paused = true)]
    async fn a_limit_runs_out_when_it_should() {
        for limit in [0, 1, 49, 50, 777, 60_000].map(Duration::from_millis) {
            let began = Instant::now();
            let told = within(limit, std::future::pending::<()>()).await;
            assert_eq!(told, Err(RanOut));
            let late = began.elapsed() - limit;
            assert!(late <= Duration::from_millis(15), "{limit:?} {late:?}");
        }
        assert_eq!(within(Duration::ZERO, async { 7 }).await, Ok(7));
    }
}
