//! Loads of a run: started, told what to do in each step, and brought to their end.

mod asked;
mod files;
mod handle;
mod live;
mod outcome;
mod rate;
mod relay;
mod so_far;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use lab_experiment::expr::LoadQuantity;
use lab_experiment::plan::{Load, Plan, Search, Step, Traffic};
use lab_generator::Outage;
use lab_load::summary::WarmUp;
use lab_load::{GenerateError, Length, Recorded, Segment, Summary, Workload};
use lab_store::{EventKind, RunFolder};
use measure::Clock;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::options::StartGenerator;
use crate::processes::Addresses;
use crate::progress::{LoadView, Status};
use crate::record::Recorder;
use crate::recoveries::Requests;
use crate::skipped::Skipped;
use crate::steps::StepError;
use crate::underway::{LoadInfo, LoadUnderway, Underway};

pub use files::FileError;
pub(crate) use files::{Files, client_tls, password};
use handle::{Done, GeneratorHandle, OnUpdate, Stop, Task, Update};
use live::Live;
pub(crate) use outcome::{Bound, Measured, Outcome, is_invalid, knee, reasons};
pub(crate) use rate::Rate;
pub use rate::RateError;
use so_far::SoFar;

/// Longest wait for the end of a load once a run was interrupted: time for the span
/// under way, and for answers that come soon.
const LAST_WAIT: Duration = Duration::from_secs(3);

/// What loads need to run.
pub(crate) struct Loads<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) folder: &'a RunFolder,
    pub(crate) addresses: &'a Addresses,
    pub(crate) files: &'a Files,
    pub(crate) recorder: &'a Recorder,
    pub(crate) status: &'a Status,
    pub(crate) underway: &'a Underway,
    pub(crate) clock: Clock,
    pub(crate) start: StartGenerator,
    pub(crate) state: RefCell<State>,
}

/// What loads do, and what they did.
#[derive(Default)]
pub(crate) struct State {
    /// Generators of each load; two where it goes on over steps.
    handles: BTreeMap<String, Vec<Arc<GeneratorHandle>>>,
    /// Generators whose connections are being opened.
    spares: BTreeMap<String, JoinHandle<Result<GeneratorHandle, GenerateError>>>,
    /// Number of the next request of each load, so that variables do not repeat.
    numbers: BTreeMap<String, u64>,
    running: Vec<Running>,
    outcomes: Vec<Outcome>,
    skipped: Vec<Skipped>,
    /// What became of requests, of each load that ran; kept for the sake of faults only.
    requests: Requests,
    /// What a person should know besides.
    notes: Vec<String>,
}

/// A load or a search under way.
struct Running {
    load: String,
    /// The step that it ends with; `None`: a probe, which goes on over steps.
    step: Option<String>,
    /// It ends by itself, and the step with it.
    ends: bool,
    handle: Arc<GeneratorHandle>,
    /// `None`: a search.
    segment: Option<Segment>,
    /// `None`: it has none of its own, or none that can be changed.
    rate: Option<Rate>,
    /// Number of its first request.
    first: u64,
    /// When it began, and when its step ends if that is known, on the generator's clock.
    began: u64,
    ends_at: Option<u64>,
    /// Another one goes on for it, and it waits for its last answers.
    leaves: bool,
    stop: Stop,
    live: Live,
    /// `None`: a search.
    so_far: Option<SoFar>,
    /// Those who look at the run see it until it is stored.
    _seen: Option<LoadUnderway>,
    answer: oneshot::Receiver<Result<Done, GenerateError>>,
    done: Option<Result<Done, GenerateError>>,
}

impl Loads<'_> {
    /// Starts what runs in a step: its own loads, its search, and probes that begin
    /// with it.
    pub(crate) async fn begin(&self, number: usize, step: &Step) -> Result<(), StepError> {
        self.begin_probes(number).await?;
        for running in &self.state.borrow().running {
            // Of other loads each window has a result of its own.
            if running.step.is_none() {
                running.live.enter(&step.name);
            }
        }
        for own in &step.loads {
            let load = self.load(&own.load)?;
            let goes_on = self.goes_on(number, load);
            let alone = alone(step);
            let length = Length {
                duration: alone.filter(|_| !goes_on),
                requests: None,
            };
            let segment = self.segment(load, &own.traffic, length)?;
            let before = number.checked_sub(1);
            let goes_on_from = before.is_some_and(|before| self.goes_on(before, load));
            if !(goes_on_from && self.go_on(load, &segment, step).await?) {
                // What could not go on has to end first.
                self.end_of(&load.name).await;
                let ends = length.duration.is_some();
                self.run(load, Task::Segment(segment), Some(step), ends)
                    .await?;
            }
            if let Some(alone) = alone {
                self.ends_after(&load.name, alone);
            }
            if goes_on {
                self.prepare(load)?;
            }
        }
        if let Some(search) = &step.search {
            let load = self.load(&search.load)?;
            let settings = self.settings(load, search)?;
            let first = self.number(load);
            let task = Task::Search(Box::new(settings), first);
            self.run(load, task, Some(step), true).await?;
        }
        Ok(())
    }

    async fn begin_probes(&self, number: usize) -> Result<(), StepError> {
        for load in &self.plan.loads {
            if load.probe.is_some() && self.period(load).next() == Some(number) {
                let segment = self.segment(load, &Traffic::Own, Length::default())?;
                self.run(load, Task::Segment(segment), None, false).await?;
            }
        }
        Ok(())
    }

    /// Passes over a step if what it builds on is missing, and says so. Probes begin and end
    /// with it nevertheless.
    pub(crate) async fn skip(
        &self,
        number: usize,
        step: &Step,
    ) -> Result<Option<Skipped>, StepError> {
        let skipped = {
            let state = self.state.borrow();
            Skipped::of(step, self.plan, Measured(&state.outcomes), &state.skipped)
        };
        let Some(skipped) = skipped else {
            return Ok(None);
        };
        self.state.borrow_mut().skipped.push(skipped.clone());
        // The step before left on what was to go on in this one.
        let mut left_on: Vec<String> = Vec::new();
        for running in &self.state.borrow().running {
            if running.step.is_some() && !running.leaves {
                left_on.push(running.load.clone());
            }
        }
        for load in &left_on {
            self.end_of(load).await;
        }
        self.begin_probes(number).await?;
        self.end(number, step, None).await?;
        Ok(Some(skipped))
    }

    /// Ends what ends with a step, and keeps what it saw. `cut` says why the step did
    /// not come to its end.
    pub(crate) async fn end(
        &self,
        number: usize,
        step: &Step,
        cut: Option<&str>,
    ) -> Result<(), StepError> {
        let is_over = |name: &str| {
            let load = self.load(name);
            load.is_ok_and(|load| cut.is_some() || self.period(load).last() == Some(number))
        };
        let stays = |running: &Running| {
            let load = self.load(&running.load);
            cut.is_none()
                && !running.leaves
                && running.handle.relay.is_some()
                && load.is_ok_and(|load| self.goes_on(number, load))
        };
        let of_step = |running: &Running| match &running.step {
            Some(own) => *own == step.name && !stays(running),
            None => is_over(&running.load),
        };
        let any_stays = self.state.borrow().running.iter().any(stays);
        if cut.is_none() && !any_stays {
            self.ended(|running| of_step(running) && running.ends).await;
        }
        for running in self.state.borrow().running.iter().filter(|r| of_step(r)) {
            if !(any_stays && running.ends) {
                running.stop.request();
            }
        }
        // Nobody waits for answers while a load goes on: the next step begins at once.
        if any_stays {
            for running in &mut self.state.borrow_mut().running {
                if of_step(running) && running.step.is_some() && !running.leaves {
                    running.leaves = true;
                    self.status.load_ended(&running.load);
                }
            }
            let _ = tokio::time::timeout(Duration::ZERO, self.ended(|_| true)).await;
        } else {
            self.ended(|running| of_step(running) || running.leaves)
                .await;
        }
        let over =
            |running: &Running| running.done.is_some() && (of_step(running) || running.leaves);
        Ok(self.collect(over, step.search.as_ref(), cut)?)
    }

    /// Ends everything that still runs, of a run that is over.
    pub(crate) async fn finish(&self, cut: &str) -> Vec<String> {
        for running in &self.state.borrow().running {
            running.stop.request();
        }
        let mut notes = Vec::new();
        let _ = tokio::time::timeout(LAST_WAIT, self.ended(|_| true)).await;
        notes.extend(
            self.collect(|running| running.done.is_some(), None, Some(cut))
                .err(),
        );
        notes.append(&mut self.state.borrow_mut().notes);
        let waiting: Vec<Running> = self.state.borrow_mut().running.drain(..).collect();
        for running in waiting {
            let load = running.load.clone();
            let kept = self.keep_so_far(running, cut);
            notes.push(match kept {
                Ok(true) => format!(
                    "load {load} still waited for answers; its numbers are those of its last whole second"
                ),
                Ok(false) => format!("load {load} still waited for answers; its last numbers are lost"),
                Err(error) => error,
            });
        }
        notes
    }

    /// Keeps what a load saw so far whose end nobody waits for; says whether that is anything.
    fn keep_so_far(&self, mut running: Running, cut: &str) -> Result<bool, String> {
        let Some(recorded) = running.so_far.as_ref().and_then(SoFar::take) else {
            return Ok(false);
        };
        running.stop.request();
        running.done = Some(Ok(Done::Recorded(Box::new(recorded))));
        self.keep(running, None, Some(cut)).map(|()| true)
    }

    /// Waits for the end of loads. What they answer stays with them, so that it is not
    /// lost when the wait is given up.
    async fn ended(&self, of: impl Fn(&Running) -> bool) {
        std::future::poll_fn(|context| {
            let mut all = true;
            for running in self.state.borrow_mut().running.iter_mut().filter(|r| of(r)) {
                if running.done.is_some() {
                    continue;
                }
                match Pin::new(&mut running.answer).poll(context) {
                    Poll::Ready(done) => {
                        running.done = Some(done.unwrap_or_else(|_| Err(handle::thread_ended())));
                        if !running.leaves {
                            self.status.load_ended(&running.load);
                        }
                    }
                    Poll::Pending => all = false,
                }
            }
            if all { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    /// Keeps what loads saw that have ended.
    fn collect(
        &self,
        of: impl Fn(&Running) -> bool,
        search: Option<&Search>,
        cut: Option<&str>,
    ) -> Result<(), String> {
        let ended: Vec<Running> = {
            let running = &mut self.state.borrow_mut().running;
            running.extract_if(.., |running| of(running)).collect()
        };
        let kept: Vec<Result<(), String>> = ended
            .into_iter()
            .map(|running| self.keep(running, search, cut))
            .collect();
        kept.into_iter().collect()
    }

    /// The value of a metric of now, at one of its bounds.
    pub(crate) fn value(&self, load: &str, quantity: LoadQuantity, bound: Bound) -> Option<f64> {
        let state = self.state.borrow();
        let mut running = state.running.iter().filter(|running| !running.leaves);
        let running = running.find(|running| running.load == load)?;
        match (quantity, &running.handle.relay) {
            (LoadQuantity::Outage, Some(relay)) => {
                let passed = (relay.now)().saturating_sub(running.began);
                let passed = Duration::from_nanos(passed);
                let longest = relay.outages.longest(Duration::ZERO..passed);
                Some(outcome::length_of(longest))
            }
            _ if bound == Bound::AtBest => {
                let segment = running.segment.as_ref();
                let is_open = segment.is_none_or(|segment| segment.model.is_open());
                running.live.value_at_best(quantity, is_open)
            }
            _ => running.live.value(quantity),
        }
    }

    /// What came of all loads, and of their requests, and which steps were left out.
    pub(crate) fn into_outcomes(self) -> (Vec<Outcome>, Requests, Vec<Skipped>) {
        let state = self.state.into_inner();
        (state.outcomes, state.requests, state.skipped)
    }

    fn has_faults(&self) -> bool {
        self.plan.steps.iter().any(|step| !step.faults.is_empty())
    }

    /// Seconds since the run began, of a time since the Unix epoch.
    fn seconds(&self, unix_ns: i64) -> f64 {
        unix_ns.saturating_sub(self.clock.origin_unix_ns()) as f64 / 1e9
    }

    /// Is a result of one of these loads INVALID?
    pub(crate) fn is_invalid(&self, loads: &[String]) -> bool {
        let state = self.state.borrow();
        let mut invalid = Measured(&state.outcomes).invalid(|_| false);
        invalid.any(|outcome| loads.contains(&outcome.load))
    }

    fn load(&self, name: &str) -> Result<&Load, String> {
        let found = self.plan.loads.iter().find(|load| load.name == name);
        found.ok_or_else(|| format!("there is no load {name:?}; add a [[load]]"))
    }

    /// The generator of a load; it is started when it is needed first.
    async fn handle(&self, load: &Load) -> Result<Arc<GeneratorHandle>, String> {
        if let Some(handle) = self.free(&load.name) {
            return Ok(handle);
        }
        self.status
            .doing(format!("open the connections of {}", load.name));
        let workload = self.workload(load)?;
        let handle = GeneratorHandle::open(workload, self.start).await;
        let handle = Arc::new(handle.map_err(|error| load_error(load, &error))?);
        let mut state = self.state.borrow_mut();
        let handles = state.handles.entry(load.name.clone()).or_default();
        handles.push(Arc::clone(&handle));
        Ok(handle)
    }

    async fn run(
        &self,
        load: &Load,
        task: Task,
        step: Option<&Step>,
        ends: bool,
    ) -> Result<(), String> {
        let handle = self.handle(load).await?;
        let began = self.beginning(&handle);
        self.order(load, handle, task, step, began);
        if let Some(running) = self.state.borrow_mut().running.last_mut() {
            running.ends = ends;
        }
        Ok(())
    }

    /// Gives an order to a generator that does nothing.
    fn order(
        &self,
        load: &Load,
        handle: Arc<GeneratorHandle>,
        task: Task,
        step: Option<&Step>,
        began: u64,
    ) {
        let first = self.number(load);
        let (task, segment) = match task {
            Task::Segment(segment) => {
                let segment = Segment { first, ..segment };
                (Task::Segment(segment.clone()), Some(segment))
            }
            other @ (Task::Search(..) | Task::Look) => (other, None),
        };
        let live = Live::default();
        let rate = segment
            .as_ref()
            .and_then(|segment| Rate::of(&handle, segment, began));
        let seen = segment
            .as_ref()
            .and_then(|segment| self.seen(load, step, &handle, segment, rate.as_ref()));
        let so_far = segment.as_ref();
        let so_far = so_far.map(|segment| SoFar::begun(self.clock, segment));
        let heard = (seen.clone(), so_far.clone());
        let (stop, answer) = handle.order(task, self.on_update(load, &live, heard));
        self.state.borrow_mut().running.push(Running {
            load: load.name.clone(),
            step: step.map(|step| step.name.clone()),
            ends: false,
            handle,
            segment,
            rate,
            first,
            began,
            ends_at: None,
            leaves: false,
            stop,
            live,
            so_far,
            _seen: seen,
            answer,
            done: None,
        });
    }

    /// Number of the next request of a load.
    fn number(&self, load: &Load) -> u64 {
        let state = self.state.borrow();
        state.numbers.get(&load.name).copied().unwrap_or(0)
    }

    /// Requests below `next` of a load have their numbers.
    fn used(&self, load: &Load, next: u64) {
        let mut state = self.state.borrow_mut();
        let known = state.numbers.entry(load.name.clone()).or_insert(0);
        *known = next.max(*known);
    }

    /// Ends a load that still runs, and waits for its last answers.
    async fn end_of(&self, load: &str) {
        let mut any = false;
        for running in &mut self.state.borrow_mut().running {
            if running.load == load && !running.leaves && running.step.is_some() {
                running.stop.request();
                (running.leaves, any) = (true, true);
            }
        }
        if any {
            self.ended(|running| running.load == load && running.leaves)
                .await;
        }
    }

    /// Passes updates from the generator's thread to those who show and wait.
    fn on_update(
        &self,
        load: &Load,
        live: &Live,
        (mut seen, so_far): (Option<LoadUnderway>, Option<SoFar>),
    ) -> OnUpdate {
        let (live, status, name) = (live.clone(), self.status.clone(), load.name.clone());
        Box::new(move |update| match update {
            Update::Span(span) => {
                live.passed(span);
                if let Some(seen) = &mut seen {
                    seen.passed(span);
                }
                if let Some(so_far) = &so_far {
                    so_far.passed(span);
                }
                status.load_seen(LoadView::of(&name, span));
            }
            Update::Doing(what) => status.doing(what),
        })
    }

    /// The load for those who look at the run; `None` when nobody may.
    fn seen(
        &self,
        load: &Load,
        step: Option<&Step>,
        handle: &GeneratorHandle,
        segment: &Segment,
        rate: Option<&Rate>,
    ) -> Option<LoadUnderway> {
        // Probes watch over everything, and steps of another rate are not theirs.
        let rate = rate.filter(|_| step.is_some()).cloned();
        let step = step.map(|step| step.name.as_str());
        self.underway.load(|| LoadInfo {
            name: load.name.clone(),
            step: step.map(str::to_owned),
            target: load.target_text(&|reference| self.addresses.resolve(reference)),
            warm_up: self.warm_up(step),
            workload: Arc::clone(&handle.workload),
            segment: segment.clone(),
            rate,
        })
    }

    /// Keeps what a load saw that has ended.
    fn keep(
        &self,
        mut running: Running,
        search: Option<&Search>,
        cut: Option<&str>,
    ) -> Result<(), String> {
        let load = self.load(&running.load)?;
        let handle = Arc::clone(&running.handle);
        let Some(done) = running.done.take() else {
            return Err(load_error(load, &handle::thread_ended()));
        };
        // What another one went on for had come to its end before.
        let cut = cut.filter(|_| !running.leaves);
        let step = running.step.as_deref();
        let place = step.unwrap_or(&load.name);
        match done.map_err(|error| load_error(load, &error))? {
            Done::Recorded(mut recorded) => {
                self.used(load, recorded.next_number(&handle.workload));
                let rate = running.rate.as_ref();
                let used = rate.and_then(|rate| rate.with_gaps_after(recorded.total.end()));
                self.used(load, used.map_or(0, |used| running.first + used));
                // That a step ended is how a load without a length of its own ends.
                recorded.cut = cut.map(str::to_owned);
                let segment = running.segment.as_ref();
                if segment.is_some_and(|segment| segment.length.duration.is_none()) {
                    ended_early(&mut recorded);
                }
                // What goes on over steps is told of each of them, too.
                let warm_up = self.warm_up(step);
                let longest = |window| Some(handle.relay.as_ref()?.outages.longest(window));
                for passage in running.live.take_steps() {
                    let step = passage.step.clone();
                    let outage = longest(passage.window());
                    let mut recorded = passage.recorded(&recorded);
                    ended_early(&mut recorded);
                    let summary = self.summary(warm_up, load, &handle.workload, &recorded)?;
                    self.store(Some(&step), summary, outage)?;
                }
                let mut summary = self.summary(warm_up, load, &handle.workload, &recorded)?;
                if let Some(relay) = handle.relay.as_ref().filter(|_| self.has_faults()) {
                    let began = self.seconds(recorded.began_unix_ns);
                    let due = relay.outages.due(Duration::ZERO..Duration::MAX);
                    self.state.borrow_mut().requests.add(&load.name, began, due);
                }
                let length = recorded.segment.length.duration;
                let length = length.unwrap_or_else(|| recorded.total.end());
                let outage = longest(Duration::ZERO..length);
                let mut text = outcome::of_load(&summary);
                if let Some(said) = outcome::of_outage(outage.flatten()) {
                    text += &format!("; {said}");
                    summary.notes.push(said);
                }
                self.recorder.event(EventKind::Measured, place, &text);
                self.store(step, summary, outage)
            }
            // Asked of generators that have no step.
            Done::TurnedAway(_) => Ok(()),
            Done::Searched(capacity, hold, next) => {
                self.used(load, next);
                let hold = hold.ok_or_else(|| {
                    format!("load {}: the search ended before its first hold", load.name)
                })?;
                let mut summary = self.summary(WarmUp::Auto, load, &handle.workload, &hold)?;
                summary.partial = cut.map(str::to_owned);
                let text = outcome::of_search(load, &capacity);
                let wants_usl = search.is_none_or(|search| search.usl);
                outcome::add_capacity(&mut summary, *capacity, wants_usl);
                self.recorder.event(EventKind::Measured, place, &text);
                self.store(step, summary, None)
            }
        }
    }

    /// Only the first step with a load has a warm-up: later ones find a system that
    /// runs, and what they do to it must not be taken for its start. Probes watch over
    /// everything.
    fn warm_up(&self, step: Option<&str>) -> WarmUp {
        let first = self.plan.steps.iter().find(|step| !step.loads.is_empty());
        match first.is_some_and(|first| step == Some(first.name.as_str())) {
            true => WarmUp::Auto,
            false => WarmUp::None,
        }
    }

    fn summary(
        &self,
        warm_up: WarmUp,
        load: &Load,
        workload: &Workload,
        recorded: &Recorded,
    ) -> Result<Summary, String> {
        let target = load.target_text(&|reference| self.addresses.resolve(reference));
        let mut summary = Summary::of(warm_up, &load.name, &target, workload, recorded)
            .map_err(|error| format!("load {}: {error}", load.name))?;
        summary.floor = lab_generator::calibrate::stored();
        if let Some(place) = &load.connect_to {
            let place = self.addresses.render(place);
            summary.notes.push(format!(
                "connections went to {place} instead of the target's host (connect_to)"
            ));
        }
        Ok(summary)
    }

    fn store(
        &self,
        step: Option<&str>,
        summary: Summary,
        outage: Option<Option<Outage>>,
    ) -> Result<(), String> {
        let stored = self.folder.write_load(&summary, step);
        stored.map_err(|error| error.to_string())?;
        self.state.borrow_mut().outcomes.push(Outcome {
            load: summary.name.clone(),
            step: step.map(str::to_owned),
            summary,
            outage,
        });
        Ok(())
    }
}

/// A run that breaks off leaves no load behind.
impl Drop for Running {
    fn drop(&mut self) {
        if self.done.is_none() {
            self.stop.request();
        }
    }
}

/// The length of a step that does nothing but hold, nor has a fault that goes on when that is
/// over: loads then know theirs.
pub(crate) fn alone(step: &Step) -> Option<Duration> {
    let works = step.make.is_some() || step.run.is_some() || step.wait.is_some();
    let works = works || !step.calls.is_empty() || !step.signals.is_empty();
    step.hold.filter(|hold| {
        let mut faults = step.faults.iter();
        !works && step.search.is_none() && !faults.any(|fault| fault.outlasts(*hold))
    })
}

/// A step that lasts as long as what it does may end before a request falls due, which is nobody's
/// fault: its load is no less valid for that.
fn ended_early(recorded: &mut Recorded) {
    if recorded.total.planned == 0 && recorded.cut.is_none() {
        recorded.cut = Some("it ended before a request fell due".to_owned());
    }
}

fn load_error(load: &Load, error: &GenerateError) -> String {
    format!("load {}: {error}", load.name)
}
