//! Times in which the laboratory itself did not run: something had stopped it, or left it no
//! processor. What it times by its own clock then is longer than it was.

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::time::Duration;

use measure::Clock;
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

/// How long two times were at once, in seconds.
pub(crate) fn shared(one: Span, other: Span) -> f64 {
    (one.1.min(other.1) - one.0.max(other.0)).max(0.0)
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
