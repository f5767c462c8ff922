//! A run while it goes on, for those who look at it from beside.
//!
//! The parts of a run hand over what they hold in memory only after somebody has looked:
//! without a look a run does what it does without this module, but for one relaxed read of
//! a number in each part, ten times a second.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use lab_lifecycle::Table;
use lab_load::summary::WarmUp;
use lab_load::{Recorded, Segment, Span, Summary, Workload};
use lab_store::{LoopTurn, RunFolder, SoFar, StoredLoad};
use measure::Clock;

use crate::progress::Status;

/// Where a run may be looked at while it goes on; cheap to clone. One that is made by
/// [`Underway::default`] shows nothing, and costs nothing.
#[derive(Debug, Clone, Default)]
pub struct Underway {
    /// `None`: nobody may look.
    shared: Option<Arc<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    /// How often somebody has looked.
    looks: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    run: Option<(RunFolder, Clock, Status)>,
    tables: Arc<Vec<Table>>,
    turns: Arc<Vec<LoopTurn>>,
    loads: Vec<Weak<Mutex<LoadSoFar>>>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Underway {
    /// A run that may be looked at.
    #[must_use]
    pub fn visible() -> Self {
        Self {
            shared: Some(Arc::default()),
        }
    }

    /// The folder of the run and what it does not tell yet; `None` before the run has a
    /// folder. Blocks for as long as loads that run take to be summed up.
    ///
    /// What is written or found in memory since the look before is not all here: the parts
    /// of the run hand it over within a tenth of a second after a look, for the next one.
    #[must_use]
    pub fn look(&self) -> Option<(RunFolder, SoFar)> {
        let shared = self.shared.as_deref()?;
        shared.looks.fetch_add(1, Ordering::Relaxed);
        let (folder, mut so_far, loads) = {
            let state = shared.state();
            let (folder, clock, status) = state.run.as_ref()?;
            let so_far = SoFar {
                now_s: clock.now_s(),
                doing: status.view().doing,
                tables: Arc::clone(&state.tables),
                turns: Arc::clone(&state.turns),
                loads: Vec::new(),
            };
            let loads: Vec<_> = state.loads.iter().filter_map(Weak::upgrade).collect();
            (folder.clone(), so_far, loads)
        };
        so_far.loads = loads.iter().filter_map(|load| summed(load)).collect();
        Some((folder, so_far))
    }

    /// The run has a folder.
    pub(crate) fn begin(&self, folder: &RunFolder, clock: Clock, status: &Status) {
        if let Some(shared) = &self.shared {
            shared.state().run = Some((folder.clone(), clock, status.clone()));
        }
    }

    /// How a part of the run learns that somebody looks.
    pub(crate) fn glance(&self) -> Glance {
        Glance {
            shared: self.shared.clone(),
            seen: Cell::new(0),
        }
    }

    /// A load begins; it is seen until the returned value and its clones are dropped.
    pub(crate) fn load(&self, seen: impl FnOnce() -> Seen) -> Option<LoadUnderway> {
        let shared = self.shared.as_deref()?;
        let mut state = shared.state();
        let clock = state.run.as_ref().map(|(_, clock, _)| *clock)?;
        let seen = seen();
        let recorded = Recorded::begun(seen.segment.clone());
        let load = Arc::new(Mutex::new(LoadSoFar { seen, recorded }));
        state.loads.retain(|load| load.strong_count() > 0);
        state.loads.push(Arc::downgrade(&load));
        Some(LoadUnderway { clock, load })
    }
}

/// How a part of a run learns that somebody looks at it.
#[derive(Debug)]
pub(crate) struct Glance {
    shared: Option<Arc<Shared>>,
    /// The looks that were known of.
    seen: Cell<u64>,
}

impl Glance {
    /// Has somebody looked since this was asked last?
    pub(crate) fn wanted(&self) -> bool {
        let looks = self.shared.as_ref().map_or(0, |shared| {
            // What is handed over is behind a lock, or in a file.
            shared.looks.load(Ordering::Relaxed)
        });
        self.seen.replace(looks) != looks
    }

    /// Hands over what logs have told so far.
    pub(crate) fn heard(&self, tables: Vec<Table>, turns: Vec<LoopTurn>) {
        if let Some(shared) = &self.shared {
            let (tables, turns) = (Arc::new(tables), Arc::new(turns));
            let mut state = shared.state();
            (state.tables, state.turns) = (tables, turns);
        }
    }
}

/// What a load is, to be summed up.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) name: String,
    /// The step that it ends with; `None`: it goes on over steps.
    pub(crate) step: Option<String>,
    pub(crate) target: String,
    pub(crate) warm_up: WarmUp,
    pub(crate) workload: Arc<Workload>,
    pub(crate) segment: Segment,
}

#[derive(Debug)]
struct LoadSoFar {
    seen: Seen,
    recorded: Recorded,
}

/// A load that runs, from its generator's side; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct LoadUnderway {
    clock: Clock,
    load: Arc<Mutex<LoadSoFar>>,
}

impl LoadUnderway {
    /// A span has passed.
    pub(crate) fn passed(&mut self, span: &Span) {
        let now_ns = (self.clock.now_s() * 1e9) as i64;
        let mut load = self.load.lock().unwrap_or_else(PoisonError::into_inner);
        let origin = self.clock.origin_unix_ns();
        load.recorded.pass(span, origin.saturating_add(now_ns));
    }
}

/// The numbers of a load so far; `None` before its first second is over.
fn summed(load: &Mutex<LoadSoFar>) -> Option<StoredLoad> {
    let (seen, recorded) = {
        let load = load.lock().unwrap_or_else(PoisonError::into_inner);
        if load.recorded.timeline.spans().is_empty() {
            return None;
        }
        // The generator's thread must not wait for the sum.
        (load.seen.clone(), load.recorded.clone())
    };
    let (name, target) = (&seen.name, &seen.target);
    let summary = Summary::of(seen.warm_up, name, target, &seen.workload, &recorded).ok()?;
    Some(StoredLoad {
        step: seen.step,
        summary,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_hand_over_once_after_each_look_and_never_without() {
        let nobody = Underway::default();
        assert!(nobody.look().is_none());
        assert!(!nobody.glance().wanted());
        let underway = Underway::visible();
        let (one, other) = (underway.glance(), underway.glance());
        assert!(!one.wanted());
        assert!(underway.look().is_none(), "there is no folder yet");
        assert!(underway.look().is_none());
        assert!(one.wanted());
        assert!(!one.wanted());
        assert!(other.wanted());
    }

    #[test]
    fn a_load_is_nobodys_when_nobody_looks() {
        let never = || -> Seen { panic!("nobody asks what it is") };
        assert!(Underway::default().load(never).is_none());
        assert!(Underway::visible().load(never).is_none());
    }
}
