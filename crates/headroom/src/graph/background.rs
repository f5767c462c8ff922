//! The background work of a profile, as it changes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use graph::background::{Neighbours, Seen};
use graph::topology::Background;
use graph::work::{SharedResources, WorkError};

/// Longest wait for the end of what is not wanted any more.
const END_WITHIN: Duration = Duration::from_secs(2);

/// Background work that this process does.
pub(super) struct BackgroundWork {
    resources: Arc<SharedResources>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    wanted: Vec<Background>,
    running: Option<Neighbours>,
}

impl BackgroundWork {
    /// Begins with none.
    pub(super) fn new(resources: &Arc<SharedResources>) -> Self {
        Self {
            resources: Arc::clone(resources),
            state: Mutex::default(),
        }
    }

    /// Does what is wanted now. If that is another than before it begins anew.
    pub(super) fn follow(&self, wanted: &[Background]) -> Result<(), WorkError> {
        let mut state = self.state();
        if state.wanted == wanted {
            return Ok(());
        }
        if let Some(before) = state.running.take() {
            before.stop_within(END_WITHIN);
        }
        state.wanted.clear();
        if !wanted.is_empty() {
            state.running = Some(Neighbours::start(&self.resources, wanted)?);
            state.wanted = wanted.to_owned();
        }
        Ok(())
    }

    /// What each has done so far.
    pub(super) fn seen(&self) -> Vec<Seen> {
        let state = self.state();
        state
            .running
            .as_ref()
            .map(Neighbours::seen)
            .unwrap_or_default()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
