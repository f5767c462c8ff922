//! Loads of a run: started, told what to do in each step, and brought to their end.

mod files;
mod hand;
mod live;
mod outcome;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use lab_experiment::expr::LoadQuantity;
use lab_experiment::plan::{Load, LoadModel, Plan, Schedule, Search, Step, Traffic};
use lab_load::arrivals::{Arrivals, Shape};
use lab_load::knee::Settle;
use lab_load::{GenerateError, Length, Model, Recorded, Segment, Slo, Summary, Workload};
use lab_store::{EventKind, RunFolder};
use tokio::sync::oneshot;

use crate::options::StartGenerator;
use crate::processes::Addresses;
use crate::progress::{LoadView, Status};
use crate::record::Recorder;
use crate::steps::Trouble;

pub use files::FileError;
pub(crate) use files::Files;
use hand::{Done, Hand, Hear, News, Stop, Task};
use live::Live;
pub(crate) use outcome::{Bound, Measured, Outcome, is_invalid, knee, reasons, value_at};

/// Longest wait for the end of a load once a run was interrupted: time for the span
/// under way, and for answers that come soon.
const LAST_WAIT: Duration = Duration::from_secs(3);
/// Holds of this many times the usual length are made where few requests could tell
/// too little.
const LONGEST: u32 = 12;
/// Confirming holds have this many times the usual length.
const CONFIRM: u32 = 3;
/// A rest has at most this many times the length of a hold.
const REST: u32 = 2;
/// Holds beyond the knee that a fit needs.
const OVERLOAD: u32 = 4;

/// What loads need to run.
pub(crate) struct Loads<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) folder: &'a RunFolder,
    pub(crate) addresses: &'a Addresses,
    pub(crate) files: &'a Files,
    pub(crate) recorder: &'a Recorder,
    pub(crate) status: &'a Status,
    pub(crate) start: StartGenerator,
    pub(crate) state: RefCell<State>,
}

/// What loads do, and what they did.
#[derive(Default)]
pub(crate) struct State {
    hands: BTreeMap<String, Arc<Hand>>,
    running: Vec<Running>,
    outcomes: Vec<Outcome>,
}

/// A load or a search under way.
struct Running {
    load: String,
    /// The step that it ends with; `None`: a probe, which goes on over steps.
    step: Option<String>,
    /// It ends by itself, and the step with it.
    ends: bool,
    stop: Stop,
    live: Live,
    answer: oneshot::Receiver<Result<Done, GenerateError>>,
    done: Option<Result<Done, GenerateError>>,
}

impl Loads<'_> {
    /// Starts what runs in a step: its own loads, its search, and probes that begin
    /// with it.
    pub(crate) async fn begin(&self, number: usize, step: &Step) -> Result<(), Trouble> {
        for load in &self.plan.loads {
            if load.probe.is_some() && self.period(load).next() == Some(number) {
                let segment = self.segment(load, &Traffic::Own, Length::default())?;
                self.run(load, Task::Segment(segment), None, false).await?;
            }
        }
        for running in &self.state.borrow().running {
            // Only probes run over from step to step.
            running.live.enter(&step.name);
        }
        for own in &step.loads {
            let load = self.load(&own.load)?;
            let length = Length {
                duration: alone(step),
                requests: None,
            };
            let segment = self.segment(load, &own.traffic, length)?;
            let ends = length.duration.is_some();
            self.run(load, Task::Segment(segment), Some(step), ends)
                .await?;
        }
        if let Some(search) = &step.search {
            let load = self.load(&search.load)?;
            let settings = self.settings(load, search)?;
            let task = Task::Search(Box::new(settings));
            self.run(load, task, Some(step), true).await?;
        }
        Ok(())
    }

    /// Ends what ends with a step, and keeps what it saw. `cut` says why the step did
    /// not come to its end.
    pub(crate) async fn end(
        &self,
        number: usize,
        step: &Step,
        cut: Option<&str>,
    ) -> Result<(), Trouble> {
        let is_over = |name: &str| {
            let mut loads = self.plan.loads.iter();
            let load = loads.find(|load| load.name == name);
            load.is_some_and(|load| cut.is_some() || self.period(load).last() == Some(number))
        };
        let of_step = |running: &Running| match &running.step {
            Some(own) => *own == step.name,
            None => is_over(&running.load),
        };
        if cut.is_none() {
            self.ended(|running| of_step(running) && running.ends).await;
        }
        for running in self.state.borrow().running.iter().filter(|r| of_step(r)) {
            running.stop.tell();
        }
        self.ended(of_step).await;
        Ok(self.collect(of_step, step.search.as_ref(), cut)?)
    }

    /// Ends everything that still runs, of a run that is over.
    pub(crate) async fn finish(&self, cut: &str) -> Vec<String> {
        for running in &self.state.borrow().running {
            running.stop.tell();
        }
        let mut notes = Vec::new();
        let _ = tokio::time::timeout(LAST_WAIT, self.ended(|_| true)).await;
        notes.extend(
            self.collect(|running| running.done.is_some(), None, Some(cut))
                .err(),
        );
        notes.extend(self.state.borrow_mut().running.drain(..).map(|running| {
            let load = &running.load;
            format!("load {load} still waited for answers; its last numbers are lost")
        }));
        notes
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
                        running.done = Some(done.unwrap_or_else(|_| Err(hand::gone())));
                        self.status.load_ended(&running.load);
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

    /// The value of a metric of now.
    pub(crate) fn value(&self, load: &str, quantity: LoadQuantity) -> Option<f64> {
        let state = self.state.borrow();
        let running = state.running.iter().find(|running| running.load == load)?;
        running.live.value(quantity)
    }

    /// What came of all loads.
    pub(crate) fn into_outcomes(self) -> Vec<Outcome> {
        self.state.into_inner().outcomes
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

    /// Numbers of the steps that a probe runs in.
    fn period(&self, load: &Load) -> std::ops::Range<usize> {
        let names: Vec<String> = self
            .plan
            .steps
            .iter()
            .map(|step| step.name.clone())
            .collect();
        let Some(period) = &load.probe else {
            return 0..0;
        };
        let own = period.steps(&names);
        let first = own
            .first()
            .and_then(|first| names.iter().position(|name| name == first));
        let first = first.unwrap_or(0);
        first..first + own.len()
    }

    /// When requests are due.
    fn segment(&self, load: &Load, traffic: &Traffic, length: Length) -> Result<Segment, Trouble> {
        let model = match (&load.model, traffic) {
            (LoadModel::Closed { think, .. }, _) => Model::Closed { think: *think },
            (LoadModel::Open { .. }, Traffic::Arrivals(arrivals)) => Model::Open(arrivals.clone()),
            (LoadModel::Open { process, .. }, Traffic::ShareOfKnee { share, search }) => {
                Model::Open(Arrivals::Rate {
                    process: *process,
                    shape: Shape::Constant(self.share_of_knee(*share, search)?),
                })
            }
            (LoadModel::Open { arrivals, .. }, Traffic::Own) => match arrivals {
                Some(Schedule::Arrivals(arrivals)) => Model::Open(arrivals.clone()),
                Some(Schedule::Trace(_)) | None => {
                    let trace = self.files.trace(&load.name).cloned();
                    Model::Open(trace.ok_or_else(|| {
                        format!("load {} has no rate; give it a `rate`", load.name)
                    })?)
                }
            },
        };
        Ok(Segment {
            model,
            length,
            first: 0,
        })
    }

    fn share_of_knee(&self, share: f64, search: &str) -> Result<f64, Trouble> {
        let state = self.state.borrow();
        let found = Measured(&state.outcomes).search(Some(search));
        let capacity = found.and_then(|summary| summary.capacity.as_ref());
        let rate = capacity.and_then(|capacity| capacity.share(share));
        rate.ok_or_else(|| Trouble::Failed {
            text: format!(
                "{} of the knee is asked for, and {search:?} found none: {}",
                units::show_share(share),
                capacity.map_or("", |capacity| &capacity.note)
            ),
            rests_on: found
                .map(|summary| summary.name.clone())
                .into_iter()
                .collect(),
        })
    }

    /// What the search of a step is told.
    fn settings(&self, load: &Load, search: &Search) -> Result<lab_load::knee::Search, String> {
        let LoadModel::Open { process, .. } = &load.model else {
            return Err(format!(
                "load {} is a closed loop and has no rate",
                load.name
            ));
        };
        let slo = Slo::parse(&search.good).map_err(|error| error.to_string())?;
        let each = search.each;
        let mut settings = lab_load::knee::Search {
            process: *process,
            from: search.from,
            grow: search.grow,
            most: search.most,
            each,
            longest: each * LONGEST,
            settle: search.settle.map_or(Settle::Auto, Settle::Lead),
            precision: search.precision,
            confirm: each * CONFIRM,
            drain: each * REST,
            overload: if search.usl { OVERLOAD } else { 0 },
            seed: self.plan.seed,
            ..lab_load::knee::Search::new(slo)
        };
        if let Some(at_most) = search.at_most {
            settings.within = at_most;
            settings.longest = settings.longest.min(at_most / 4).max(each);
            settings.confirm = settings.confirm.min(at_most / 4).max(each);
        }
        settings.check().map_err(|error| error.to_string())?;
        Ok(settings)
    }

    /// The generator of a load; it is started when it is needed first.
    async fn hand(&self, load: &Load) -> Result<Arc<Hand>, String> {
        let known = self.state.borrow().hands.get(&load.name).cloned();
        if let Some(hand) = known {
            return Ok(hand);
        }
        self.status
            .doing(format!("open the connections of {}", load.name));
        let workload = self.workload(load)?;
        let hand = Hand::open(workload, self.start).await;
        let hand = Arc::new(hand.map_err(|error| said(load, &error))?);
        let mut state = self.state.borrow_mut();
        state.hands.insert(load.name.clone(), Arc::clone(&hand));
        Ok(hand)
    }

    fn workload(&self, load: &Load) -> Result<Workload, String> {
        let failed = |cause: &dyn ToString| format!("load {}: {}", load.name, cause.to_string());
        let files = self.files.of(load, self.addresses);
        let files = files.map_err(|error| failed(&error))?;
        load.workload(self.plan.seed, files, &|reference| {
            self.addresses.resolve(reference)
        })
        .map_err(|error| failed(&error))
    }

    async fn run(
        &self,
        load: &Load,
        task: Task,
        step: Option<&Step>,
        ends: bool,
    ) -> Result<(), String> {
        let hand = self.hand(load).await?;
        let live = Live::default();
        let (stop, answer) = hand.order(task, self.hear(load, &live));
        self.state.borrow_mut().running.push(Running {
            load: load.name.clone(),
            step: step.map(|step| step.name.clone()),
            ends,
            stop,
            live,
            answer,
            done: None,
        });
        Ok(())
    }

    /// Takes news from the generator's thread to those who show and wait.
    fn hear(&self, load: &Load, live: &Live) -> Hear {
        let (live, status, name) = (live.clone(), self.status.clone(), load.name.clone());
        Box::new(move |news| match news {
            News::Span(span) => {
                live.passed(span);
                status.load_seen(LoadView::of(&name, span));
            }
            News::Doing(what) => status.doing(what),
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
        let hand = self.state.borrow().hands.get(&load.name).cloned();
        let (Some(hand), Some(done)) = (hand, running.done.take()) else {
            return Err(said(load, &hand::gone()));
        };
        let step = running.step.as_deref();
        let place = step.unwrap_or(&load.name);
        match done.map_err(|error| said(load, &error))? {
            Done::Recorded(mut recorded) => {
                // That a step ended is how a load without a length of its own ends.
                recorded.cut = cut.map(str::to_owned);
                // What goes on over steps is told of each of them, too.
                for passage in running.live.take_steps() {
                    let step = passage.step.clone();
                    let recorded = passage.recorded(&recorded);
                    let summary = self.summary(load, &hand.workload, &recorded)?;
                    self.store(Some(&step), summary)?;
                }
                let summary = self.summary(load, &hand.workload, &recorded)?;
                let text = outcome::of_load(&summary);
                self.recorder.event(EventKind::Measured, place, &text);
                self.store(step, summary)
            }
            Done::Searched(capacity, hold) => {
                let hold = hold.ok_or_else(|| {
                    format!("load {}: the search ended before its first hold", load.name)
                })?;
                let mut summary = self.summary(load, &hand.workload, &hold)?;
                summary.partial = cut.map(str::to_owned);
                let text = outcome::of_search(load, &capacity);
                let wants_usl = search.is_none_or(|search| search.usl);
                outcome::add_capacity(&mut summary, *capacity, wants_usl);
                self.recorder.event(EventKind::Measured, place, &text);
                self.store(step, summary)
            }
        }
    }

    fn summary(
        &self,
        load: &Load,
        workload: &Workload,
        recorded: &Recorded,
    ) -> Result<Summary, String> {
        let target = load.target_text(&|reference| self.addresses.resolve(reference));
        let mut summary = Summary::of(&load.name, &target, workload, recorded)
            .map_err(|error| format!("load {}: {error}", load.name))?;
        summary.floor = lab_generator::calibrate::stored();
        Ok(summary)
    }

    fn store(&self, step: Option<&str>, summary: Summary) -> Result<(), String> {
        let stored = self.folder.write_load(&summary, step);
        stored.map_err(|error| error.to_string())?;
        self.state.borrow_mut().outcomes.push(Outcome {
            load: summary.name.clone(),
            step: step.map(str::to_owned),
            summary,
        });
        Ok(())
    }
}

/// A run that breaks off leaves no load behind.
impl Drop for Running {
    fn drop(&mut self) {
        if self.done.is_none() {
            self.stop.tell();
        }
    }
}

/// The length of a step that does nothing but hold: loads then know theirs.
fn alone(step: &Step) -> Option<Duration> {
    let works = step.make.is_some() || step.run.is_some() || step.wait.is_some();
    step.hold.filter(|_| !works && step.search.is_none())
}

fn said(load: &Load, error: &GenerateError) -> String {
    format!("load {}: {error}", load.name)
}
