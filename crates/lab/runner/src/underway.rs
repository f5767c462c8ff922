//! A run while it goes on, for those who look at it from beside.
//!
//! The parts of a run hand over what they hold in memory only after somebody has looked:
//! without a look a run does what it does without this module, but for one relaxed read of
//! a number in each part, ten times a second.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use lab_experiment::plan::PageAct;
use lab_lifecycle::Changes;
use lab_load::summary::WarmUp;
use lab_load::{Model, Recorded, Segment, Span, Summary, Workload};
use lab_store::{EventKind, LoadRate, LoopTurn, RunFolder, SoFar, StoredLoad};
use measure::Clock;

use crate::alarm::{Alarm, Cause};
use crate::loads::{Rate, RateError};
use crate::progress::Status;
use crate::record::Recorder;

/// Who interrupted a run that was stopped from its page.
const FROM_THE_PAGE: &str = "its page";

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
    /// From the start of the run to that of its teardown.
    at_work: Option<RunControls>,
    /// What has not been told yet. As parts of a run hand over what they have after a look, and a look takes it,
    /// it is what came of two looks at most.
    changes: Vec<Changes>,
    turns: Arc<Vec<LoopTurn>>,
    loads: Vec<Weak<Mutex<LoadSoFar>>>,
}

/// What can be done to a run, as far as its file allows it.
#[derive(Debug)]
struct RunControls {
    recorder: Recorder,
    alarm: Alarm,
    may: Vec<PageAct>,
    /// Notes that were made.
    notes: usize,
}

/// Most notes of a run.
const NOTES: usize = 1_000;
/// Most characters of a note.
const NOTE_CHARS: usize = 500;

/// Why something was not done to a run.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ControlError {
    /// The file does not say that it may be.
    #[error("the experiment file does not allow it; to do so it has the line page = [\"{0}\"]")]
    NotAllowed(&'static str),
    /// The run has not begun, or its steps are over.
    #[error("the run's steps are not under way")]
    NotUnderway,
    /// Nothing of this name runs with a rate of its own.
    #[error("no load {0:?} with a rate runs now")]
    NoLoad(String),
    /// The rate of a load stays as it is.
    #[error("the rate of {0} stays as it is: {1}")]
    Rate(String, RateError),
    /// A note is none.
    #[error("a note has 1 to {NOTE_CHARS} characters on one line")]
    NoNote,
    /// There are too many.
    #[error("a run has at most {NOTES} notes")]
    TooMany,
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
    /// What has changed of lifecycles is told once, so there must be one who looks.
    #[must_use]
    pub fn look(&self) -> Option<(RunFolder, SoFar)> {
        let shared = self.shared.as_deref()?;
        shared.looks.fetch_add(1, Ordering::Relaxed);
        let (folder, mut so_far, loads) = {
            let mut state = shared.state();
            state.run.as_ref()?;
            let changes = std::mem::take(&mut state.changes);
            let (folder, clock, status) = state.run.as_ref()?;
            let so_far = SoFar {
                now_s: clock.now_s(),
                doing: status.view().doing,
                changes,
                turns: Arc::clone(&state.turns),
                loads: Vec::new(),
                rates: Vec::new(),
                may: state.at_work.as_ref().map_or_else(Vec::new, |at_work| {
                    at_work.may.iter().map(|act| act.word()).collect()
                }),
            };
            let loads: Vec<_> = state.loads.iter().filter_map(Weak::upgrade).collect();
            (folder.clone(), so_far, loads)
        };
        if so_far.may.contains(&PageAct::Rate.word()) {
            so_far.rates = rates(&loads);
        }
        so_far.loads = loads.iter().filter_map(|load| summed(load)).collect();
        Some((folder, so_far))
    }

    /// The run has a folder.
    pub(crate) fn begin(&self, folder: &RunFolder, clock: Clock, status: &Status) {
        if let Some(shared) = &self.shared {
            shared.state().run = Some((folder.clone(), clock, status.clone()));
        }
    }

    /// The run's steps are about to begin: now it may be acted upon, as its file says.
    pub(crate) fn at_work(&self, recorder: &Recorder, alarm: &Alarm, may: &[PageAct]) {
        if let Some(shared) = &self.shared {
            shared.state().at_work = Some(RunControls {
                recorder: recorder.clone(),
                alarm: alarm.clone(),
                may: may.to_vec(),
                notes: 0,
            });
        }
    }

    /// The steps are over: nothing more is done to the run.
    pub(crate) fn over(&self) {
        if let Some(shared) = &self.shared {
            shared.state().at_work = None;
        }
    }

    /// Notes something at this moment, as an event of the run.
    ///
    /// # Errors
    /// See [`ControlError`].
    pub fn mark(&self, note: &str) -> Result<(), ControlError> {
        let note = note.trim();
        if note.is_empty()
            || note.chars().count() > NOTE_CHARS
            || note.contains(|one: char| one.is_control())
        {
            return Err(ControlError::NoNote);
        }
        self.act(PageAct::Mark, |at_work| {
            if at_work.notes == NOTES {
                return Err(ControlError::TooMany);
            }
            at_work.notes += 1;
            at_work.recorder.event(EventKind::Noted, "", note);
            Ok(())
        })
    }

    /// Ends the run in order, as Ctrl-C does.
    ///
    /// # Errors
    /// See [`ControlError`].
    pub fn stop(&self) -> Result<(), ControlError> {
        self.act(PageAct::Stop, |at_work| {
            at_work.alarm.raise(Cause::Interrupted(FROM_THE_PAGE));
            Ok(())
        })
    }

    /// Has the requests of a load that runs fall due at another rate per second, from a moment that is
    /// no further away than the twentieth part of a second.
    ///
    /// # Errors
    /// See [`ControlError`].
    pub fn rate(&self, load: &str, rate: f64) -> Result<(), ControlError> {
        let shared = self.shared.as_deref().ok_or(ControlError::NotUnderway)?;
        let loads: Vec<_> = {
            let state = shared.state();
            state.loads.iter().filter_map(Weak::upgrade).collect()
        };
        self.act(PageAct::Rate, |at_work| {
            let lock = |load: &Arc<Mutex<LoadSoFar>>| -> Option<Rate> {
                let load = load.lock().unwrap_or_else(PoisonError::into_inner);
                load.seen.rate.clone()
            };
            // Of two that take turns the newer one sends.
            let mut known = loads.iter().rev().filter(|known| {
                let known = known.lock().unwrap_or_else(PoisonError::into_inner);
                known.seen.name == load && known.seen.rate.is_some()
            });
            let none = || ControlError::NoLoad(load.to_owned());
            let found = known.next().ok_or_else(none)?;
            let changed = lock(found).ok_or_else(none)?.change(rate);
            let arrivals = changed.map_err(|error| ControlError::Rate(load.to_owned(), error))?;
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            found.recorded.segment.model = Model::Open(arrivals);
            let said = format!("{load} at {} from its page", units::show_rate(rate));
            at_work.recorder.event(EventKind::Noted, load, &said);
            Ok(())
        })
    }

    fn act(
        &self,
        act: PageAct,
        done: impl FnOnce(&mut RunControls) -> Result<(), ControlError>,
    ) -> Result<(), ControlError> {
        let shared = self.shared.as_deref().ok_or(ControlError::NotUnderway)?;
        let mut state = shared.state();
        let at_work = state.at_work.as_mut().ok_or(ControlError::NotUnderway)?;
        if !at_work.may.contains(&act) {
            return Err(ControlError::NotAllowed(act.word()));
        }
        done(at_work)
    }

    /// How a part of the run learns that somebody looks.
    pub(crate) fn viewers(&self) -> Viewers {
        Viewers {
            shared: self.shared.clone(),
            seen: Cell::new(0),
        }
    }

    /// A load begins; it is seen until the returned value and its clones are dropped.
    pub(crate) fn load(&self, seen: impl FnOnce() -> LoadInfo) -> Option<LoadUnderway> {
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
pub(crate) struct Viewers {
    shared: Option<Arc<Shared>>,
    /// The looks that were known of.
    seen: Cell<u64>,
}

impl Viewers {
    /// Has somebody looked since this was asked last?
    pub(crate) fn wanted(&self) -> bool {
        let looks = self.shared.as_ref().map_or(0, |shared| {
            // What is handed over is behind a lock, or in a file.
            shared.looks.load(Ordering::Relaxed)
        });
        self.seen.replace(looks) != looks
    }

    /// Hands over what logs have told so far.
    pub(crate) fn publish(&self, changes: Vec<Changes>, turns: Vec<LoopTurn>) {
        if let Some(shared) = &self.shared {
            let turns = Arc::new(turns);
            let mut state = shared.state();
            state.changes.extend(changes);
            state.turns = turns;
        }
    }

    /// May anybody look at all?
    pub(crate) fn is_possible(&self) -> bool {
        self.shared.is_some()
    }
}

/// What a load is, to be summed up.
#[derive(Debug, Clone)]
pub(crate) struct LoadInfo {
    pub(crate) name: String,
    /// The step that it ends with; `None`: it goes on over steps.
    pub(crate) step: Option<String>,
    pub(crate) target: String,
    pub(crate) warm_up: WarmUp,
    pub(crate) workload: Arc<Workload>,
    pub(crate) segment: Segment,
    /// `None`: it has none that may be changed.
    pub(crate) rate: Option<Rate>,
}

#[derive(Debug)]
struct LoadSoFar {
    seen: LoadInfo,
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

/// The loads that run at a rate that may be changed.
fn rates(loads: &[Arc<Mutex<LoadSoFar>>]) -> Vec<LoadRate> {
    let mut rates: Vec<LoadRate> = Vec::new();
    for load in loads {
        let seen = &load.lock().unwrap_or_else(PoisonError::into_inner).seen;
        let Some(per_s) = seen.rate.as_ref().and_then(Rate::now) else {
            continue;
        };
        // Of two that take turns the newer one sends.
        rates.retain(|known| known.load != seen.name);
        rates.push(LoadRate {
            load: seen.name.clone(),
            per_s,
        });
    }
    rates
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
        assert!(!nobody.viewers().wanted());
        let underway = Underway::visible();
        let (one, other) = (underway.viewers(), underway.viewers());
        assert!(!one.wanted());
        assert!(underway.look().is_none(), "there is no folder yet");
        assert!(underway.look().is_none());
        assert!(one.wanted());
        assert!(!one.wanted());
        assert!(other.wanted());
    }

    #[test]
    fn nothing_is_done_to_a_run_that_is_not_there_and_a_note_is_a_line() {
        let underway = Underway::visible();
        assert_eq!(underway.mark("now"), Err(ControlError::NotUnderway));
        assert_eq!(underway.stop(), Err(ControlError::NotUnderway));
        assert_eq!(Underway::default().stop(), Err(ControlError::NotUnderway));
        for note in ["", "  ", "a\nb", "\u{1b}[31m", &"x".repeat(501)] {
            assert_eq!(underway.mark(note), Err(ControlError::NoNote), "{note:?}");
        }
    }

    #[test]
    fn a_load_is_nobodys_when_nobody_looks() {
        let never = || -> LoadInfo { panic!("nobody asks what it is") };
        assert!(Underway::default().load(never).is_none());
        assert!(Underway::visible().load(never).is_none());
    }
}
