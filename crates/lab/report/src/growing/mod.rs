//! The timelines of a run that goes on: what has changed since the picture that somebody has.
//!
//! Rows keep their places while a lifecycle grows, so that whoever has them writes only what is new. Each has
//! the stamp of the moment at which it changed last. What somebody lacks who has the picture of a moment is
//! every row with a later stamp, whoever that is and however long it took: nothing is kept for each of those
//! who watch, and no queue grows for one who has gone.
//!
//! Whoever takes what is told from any moment on has the same as who takes the whole picture: each entity
//! with the numbers that [`Timelines`](crate::timelines::Timelines) gives it in a report without rounding.

mod rows;
mod sent;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lab_lifecycle::Changes;

use rows::Rows;

/// The lifecycles of a run that goes on; cheap to clone, all clones are the same.
#[derive(Debug, Clone, Default)]
pub struct Growing(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// How often something was taken in.
    stamp: u32,
    /// In the order in which they were told first: that of the plan.
    lifecycles: Vec<Rows>,
}

impl Growing {
    /// Takes in what has changed, in order. In time proportional to that.
    pub fn take(&self, changes: &[Changes]) {
        let mut state = self.state();
        state.stamp += 1;
        let State { stamp, lifecycles } = &mut *state;
        for change in changes {
            let place = lifecycles
                .iter()
                .position(|rows| rows.name() == change.name);
            let rows = match place {
                Some(place) => &mut lifecycles[place],
                None => {
                    lifecycles.push(Rows::new(change, *stamp));
                    let last = lifecycles.len() - 1;
                    &mut lifecycles[last]
                }
            };
            rows.take(change, *stamp);
        }
    }

    /// What somebody lacks who has the picture of the moment `known`, and the moment that they have then.
    /// Without a moment, and with one that is none of these, it is the whole picture.
    pub(crate) fn since(&self, known: Option<u32>) -> (Vec<sent::Grown>, Vec<u8>, u32) {
        let state = self.state();
        let known = known.filter(|known| *known <= state.stamp).unwrap_or(0);
        let (mut heads, mut bytes) = (Vec::new(), Vec::new());
        for rows in &state.lifecycles {
            heads.push(sent::Grown::since(rows, known, &mut bytes));
        }
        (heads, bytes, state.stamp)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
