//! Loads that go on from one step to the next. A step is a window over them: its numbers
//! are those of the requests that fell due in it, whenever their answers come.
//!
//! Two generators of a load take turns. At the moment at which a step ends, the one that
//! ran stops to send and waits for its answers, and from that very moment on the other one
//! sends what falls due in the next step.

use std::sync::Arc;
use std::time::Duration;

use lab_experiment::plan::{Load, LoadModel, Step};
use lab_load::{GenerateError, Length, Segment};
use tokio::time::Instant;

use super::handle::{GeneratorHandle, Task};
use super::{Loads, Running};

/// Time between the word to begin and the beginning, so that a busy machine has every
/// thread ready.
const LEAD: Duration = Duration::from_millis(25);
/// Least of it, where the end of the step has come closer.
const LEAST: Duration = Duration::from_millis(2);
/// How soon a target closes a connection that it has no room for.
const CLOSED_WITHIN: Duration = Duration::from_millis(100);
/// How long it is tried to open connections again at the end of a step.
const AGAIN: Duration = Duration::from_millis(500);

impl Loads<'_> {
    /// Whether a load goes on from step number `number` to the next.
    pub(super) fn goes_on(&self, number: usize, load: &Load) -> bool {
        let runs = |step: Option<&Step>| {
            let mut loads = step.into_iter().flat_map(|step| &step.loads);
            loads.any(|own| own.load == load.name)
        };
        let steps = &self.plan.steps;
        let is_open = matches!(load.model, LoadModel::Open { .. });
        is_open && runs(steps.get(number)) && runs(steps.get(number + 1))
    }

    /// Opens the connections of the generator that will go on with a load, beside the one
    /// that runs.
    pub(super) fn prepare(&self, load: &Load) -> Result<(), String> {
        let known = {
            let state = self.state.borrow();
            let handles = state.handles.get(&load.name).map_or(0, Vec::len);
            handles > 1 || state.spares.contains_key(&load.name)
        };
        if !known {
            let opening = GeneratorHandle::open(self.workload(load)?, self.start);
            let spare = tokio::spawn(net::boxed(opening));
            let mut state = self.state.borrow_mut();
            state.spares.insert(load.name.clone(), spare);
        }
        Ok(())
    }

    /// Another generator of a load that does nothing at the moment. `None`: there is none,
    /// and the load goes on with a pause.
    async fn other(&self, load: &Load) -> Option<Arc<GeneratorHandle>> {
        if let Some(free) = self.free(&load.name) {
            return Some(free);
        }
        let spare = self.state.borrow_mut().spares.remove(&load.name);
        let opened = match spare {
            Some(spare) => spare.await.ok()?,
            // Both still wait for answers.
            None => GeneratorHandle::open(self.workload(load).ok()?, self.start).await,
        };
        let opened = match opened {
            Ok(handle) => self.with_room(load, handle).await,
            Err(error) => Err(error),
        };
        let mut state = self.state.borrow_mut();
        let why = match opened {
            Ok((handle, 0)) => {
                let handle = Arc::new(handle);
                let handles = state.handles.entry(load.name.clone()).or_default();
                handles.push(Arc::clone(&handle));
                return Some(handle);
            }
            Ok((_, closed)) => format!("the target closed {closed} of the second set"),
            Err(error) => format!("the second set could not be opened: {error}"),
        };
        state.notes.push(format!(
            "load {} paused between two steps: while it goes on, its connections are held twice, and {why}",
            load.name
        ));
        None
    }

    /// The second generator, or another in its place, and how many of its connections the target has
    /// no room for: it may take a connection and close it at once, as one too many.
    async fn with_room(
        &self,
        load: &Load,
        handle: GeneratorHandle,
    ) -> Result<(GeneratorHandle, u32), GenerateError> {
        if handle.turned_away().await? == 0 {
            return Ok((handle, 0));
        }
        // Or it has died since, or ended what was idle for too long. New connections tell.
        let workload = self.workload(load);
        let again = async {
            let workload =
                workload.map_err(|error| GenerateError::new("open connections", error))?;
            let fresh = GeneratorHandle::open(workload, self.start).await?;
            tokio::time::sleep(CLOSED_WITHIN).await;
            let closed = fresh.turned_away().await?;
            Ok::<_, GenerateError>((fresh, closed))
        };
        match tokio::time::timeout(AGAIN, again).await {
            Ok(Ok(seen)) => Ok(seen),
            // It is away: that the load has to show.
            Ok(Err(_)) | Err(_) => Ok((handle, 0)),
        }
    }

    /// A generator of a load that was started and does nothing.
    pub(super) fn free(&self, load: &str) -> Option<Arc<GeneratorHandle>> {
        let state = self.state.borrow();
        let is_busy = |handle: &Arc<GeneratorHandle>| {
            let mut running = state.running.iter().filter(|one| one.done.is_none());
            running.any(|one| Arc::ptr_eq(&one.handle, handle))
        };
        let handles = state.handles.get(load)?;
        handles.iter().find(|handle| !is_busy(handle)).cloned()
    }

    /// Lets a load that runs go on in a step. False: it could not, and has to end first.
    pub(super) async fn go_on(
        &self,
        load: &Load,
        segment: &Segment,
        step: &Step,
    ) -> Result<bool, String> {
        let Some(handle) = self.other(load).await else {
            return Ok(false);
        };
        let Some(relay) = &handle.relay else {
            return Ok(false);
        };
        let now = (relay.now)();
        let (at, reserved) = {
            let mut state = self.state.borrow_mut();
            let Some(old) = state.running.iter_mut().find(|one| one.goes_on(load)) else {
                return Ok(false);
            };
            let Some(its) = &old.handle.relay else {
                return Ok(false);
            };
            let earliest = match old.ends_at {
                Some(ends_at) => ends_at.max(now + nanos(LEAST)),
                None => now + nanos(LEAD),
            };
            let at = earliest.max(old.began + 1);
            (relay.begin_next_at)(at);
            (its.end_at)(at);
            old.leaves = true;
            let sent = old.rate.as_ref().map_or(0, |rate| rate.most_by(at));
            (at, old.first + sent)
        };
        self.used(load, reserved);
        self.order(load, handle, Task::Segment(segment.clone()), Some(step), at);
        if let Some(running) = self.state.borrow_mut().running.last_mut() {
            running.ends = segment.length.duration.is_some();
        }
        Ok(true)
    }

    /// A load that runs in a step which does nothing but hold will end after that.
    pub(super) fn ends_after(&self, load: &str, hold: Duration) {
        let mut state = self.state.borrow_mut();
        let mut running = state.running.iter_mut();
        if let Some(running) = running.find(|one| one.load == load && !one.leaves) {
            running.ends_at = (running.began > 0).then(|| running.began + nanos(hold));
        }
    }

    /// Until when a step that does nothing but hold lasts: its loads began a little after
    /// it did, and the next ones are to hear of it a little before its end.
    pub(crate) fn hold_until(&self, hold: Duration) -> Instant {
        let state = self.state.borrow();
        let running = state.running.iter().filter(|one| !one.leaves);
        let ends = running.filter_map(|one| Some((one.handle.relay.as_ref()?, one.ends_at?)));
        let now = Instant::now();
        let until = ends.map(|(relay, ends_at)| {
            let left = ends_at.saturating_sub((relay.now)() + nanos(LEAD));
            now + Duration::from_nanos(left)
        });
        until.max().unwrap_or(now + hold)
    }

    /// When a load that begins now does so, on its generator's clock; 0: as it likes.
    pub(super) fn beginning(&self, handle: &GeneratorHandle) -> u64 {
        match &handle.relay {
            Some(relay) => {
                let at = (relay.now)() + nanos(LEAD);
                (relay.begin_next_at)(at);
                at
            }
            None => 0,
        }
    }
}

impl Loads<'_> {
    /// When the first request was due that was answered well after the last one that
    /// failed, of loads that run; `None`: none failed, or nobody looked.
    pub(crate) fn recovered<'l>(&self, loads: impl Iterator<Item = &'l str>) -> Option<Instant> {
        let state = self.state.borrow();
        let now = Instant::now();
        let recovered = loads.filter_map(|load| {
            let mut running = state.running.iter().filter(|one| !one.leaves);
            let running = running.find(|one| one.load == load)?;
            let relay = running.handle.relay.as_ref()?;
            let at = running.began + nanos(relay.outages.recovered()?);
            let ago = (relay.now)().saturating_sub(at);
            now.checked_sub(Duration::from_nanos(ago))
        });
        recovered.max()
    }
}

impl Running {
    /// Whether it is the one of this load that the next step goes on with.
    fn goes_on(&self, load: &Load) -> bool {
        self.load == load.name && !self.leaves && self.done.is_none() && self.ends_at_a_moment()
    }

    fn ends_at_a_moment(&self) -> bool {
        let mut segment = self.segment.iter();
        segment.all(|own| own.length == Length::default()) && self.handle.relay.is_some()
    }
}

fn nanos(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}
