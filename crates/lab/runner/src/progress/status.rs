//! The state of a run as far as it is shown, gathered from all its parts.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lab_experiment::plan::Plan;
use lab_load::Span;
use lab_load::recording::Latencies;
use lab_store::{Event, EventKind, ProcessSample};
use measure::Clock;

use crate::drivers::Counts;

/// Rates are over this much time, in seconds.
const RATE_OVER_S: f64 = 1.0;
/// Events that wait to be shown; older ones are dropped.
const EVENTS: usize = 1000;

/// Everything that is shown, at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct View {
    pub(crate) name: String,
    pub(crate) elapsed_s: f64,
    pub(crate) steps: Vec<StepView>,
    /// What the run does or waits for at the moment.
    pub(crate) doing: String,
    pub(crate) entities: Vec<EntityView>,
    pub(crate) systems: Vec<SystemView>,
    /// Loads that run.
    pub(crate) loads: Vec<LoadView>,
    /// Probes, by their newest tries.
    pub(crate) probes: Vec<ProbeView>,
    /// Log lines read so far.
    pub(crate) lines: u64,
    pub(crate) lifecycles: Vec<LifecycleView>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StepView {
    pub(crate) name: String,
    pub(crate) progress: Progress,
    /// When it began.
    pub(crate) from_s: f64,
    /// When it ended.
    pub(crate) to_s: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Progress {
    Next,
    Now,
    Done,
    Failed,
    Skipped,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct EntityView {
    pub(crate) what: String,
    pub(crate) states: Vec<StateView>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StateView {
    pub(crate) name: String,
    /// `None`: it cannot be counted at the moment.
    pub(crate) count: Option<u64>,
    /// Change in a second.
    pub(crate) rate: f64,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SystemView {
    pub(crate) name: String,
    pub(crate) cpu_cores: f64,
    pub(crate) rss_bytes: u64,
}

/// A load in the last second.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LoadView {
    pub(crate) name: String,
    /// Requests that fell due, a second.
    pub(crate) due: f64,
    /// Good answers a second.
    pub(crate) good: f64,
    /// 99th percentile of latency from the intended send, in seconds; infinite where there was
    /// no answer.
    pub(crate) p99: Option<f64>,
    /// Requests that failed.
    pub(crate) failed: u64,
}

impl LoadView {
    pub(crate) fn of(name: &str, span: &Span) -> Self {
        let requests = span.requests();
        let seconds = span.length.as_secs_f64().max(f64::MIN_POSITIVE);
        Self {
            name: name.to_owned(),
            due: span.planned as f64 / seconds,
            good: requests.good() as f64 / seconds,
            p99: Latencies::intended(&requests).percentile(0.99),
            failed: span.tried().failed,
        }
    }
}

/// The newest tries of a probe.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ProbeView {
    pub(crate) name: String,
    /// How many have been asked.
    pub(crate) asked: usize,
    /// How many of them answered well.
    pub(crate) ok: usize,
    /// What they answered.
    pub(crate) values: Vec<String>,
    /// Why the last of those that failed did; empty if none did.
    pub(crate) error: String,
}

/// How far entities have come, by their logs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LifecycleView {
    pub(crate) name: String,
    pub(crate) entities: u64,
    /// For each point, how many passed it.
    pub(crate) reached: Vec<(String, u64)>,
}

/// Where all parts of a run tell what shall be shown; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Status(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    clock: Clock,
    view: View,
    samples: BTreeMap<String, ProcessSample>,
    counted: VecDeque<(f64, Counts)>,
    events: VecDeque<Event>,
    /// What is done, the newest last, each with its number: that of [`STEPS`], and what goes on
    /// beside it.
    doings: Vec<(u64, String)>,
    /// The number of the last that began.
    begun: u64,
}

/// The number of what the run itself does.
const STEPS: u64 = 0;

/// Something that goes on beside what the run does, for as long as this lives.
#[derive(Debug)]
pub(crate) struct OngoingActivity {
    status: Status,
    number: u64,
}

impl Drop for OngoingActivity {
    fn drop(&mut self) {
        let state = &mut *self.status.state();
        state.doings.retain(|(number, _)| *number != self.number);
        state.show_newest();
    }
}

impl State {
    /// Begins something, instead of what has this number.
    fn begin(&mut self, number: u64, what: String) {
        self.doings.retain(|(other, _)| *other != number);
        self.doings.push((number, what));
        self.show_newest();
    }

    fn show_newest(&mut self) {
        if let Some((_, what)) = self.doings.last() {
            self.view.doing.clone_from(what);
        }
    }
}

impl Status {
    pub(crate) fn new(plan: &Plan, clock: Clock) -> Self {
        let steps = plan.steps.iter().map(|step| StepView {
            name: step.name.clone(),
            progress: Progress::Next,
            from_s: 0.0,
            to_s: None,
        });
        let entities = plan.drivers.iter().flat_map(|driver| &driver.entities);
        let entities = entities.map(|(what, states)| EntityView {
            what: what.clone(),
            states: states
                .iter()
                .map(|state| StateView {
                    name: state.clone(),
                    count: None,
                    rate: 0.0,
                })
                .collect(),
        });
        let doing = "start the systems".to_owned();
        Self(Arc::new(Mutex::new(State {
            clock,
            view: View {
                name: plan.name.clone(),
                steps: steps.collect(),
                doing: doing.clone(),
                entities: entities.collect(),
                ..View::default()
            },
            samples: BTreeMap::new(),
            counted: VecDeque::new(),
            events: VecDeque::new(),
            doings: vec![(STEPS, doing)],
            begun: STEPS,
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the run does now.
    pub(crate) fn doing(&self, what: impl Into<String>) {
        self.state().begin(STEPS, what.into());
    }

    /// What goes on from now on until the answer is dropped: it is shown unless something newer
    /// is, and then what the run does meanwhile is shown again.
    #[must_use]
    pub(crate) fn meanwhile(&self, what: impl Into<String>) -> OngoingActivity {
        let state = &mut *self.state();
        state.begun += 1;
        let number = state.begun;
        state.begin(number, what.into());
        OngoingActivity {
            status: self.clone(),
            number,
        }
    }

    pub(crate) fn record_event(&self, event: Event) {
        let mut state = self.state();
        let progress = match event.kind {
            EventKind::StepStarted => Some(Progress::Now),
            EventKind::StepEnded => Some(Progress::Done),
            EventKind::StepFailed => Some(Progress::Failed),
            EventKind::StepSkipped => Some(Progress::Skipped),
            _ => None,
        };
        if let Some(progress) = progress {
            let mut steps = state.view.steps.iter_mut();
            if let Some(step) = steps.find(|step| step.name == event.name) {
                step.progress = progress;
                match progress {
                    Progress::Now => step.from_s = event.t_s,
                    _ => step.to_s = Some(event.t_s),
                }
            }
        }
        if state.events.len() == EVENTS {
            state.events.pop_front();
        }
        state.events.push_back(event);
    }

    pub(crate) fn sampled(&self, sample: ProcessSample) {
        self.state().samples.insert(sample.system.clone(), sample);
    }

    pub(crate) fn counted(&self, t_s: f64, counts: &Counts) {
        let counted = &mut self.state().counted;
        counted.push_back((t_s, counts.clone()));
        // The oldest kept is the newest that is at least a second old.
        while counted
            .get(1)
            .is_some_and(|(then, _)| t_s - then >= RATE_OVER_S)
        {
            counted.pop_front();
        }
    }

    /// A load runs, and this is its last second.
    pub(crate) fn load_seen(&self, seen: LoadView) {
        let loads = &mut self.state().view.loads;
        match loads.iter_mut().find(|load| load.name == seen.name) {
            Some(load) => *load = seen,
            None => loads.push(seen),
        }
    }

    /// A load runs no more.
    pub(crate) fn load_ended(&self, name: &str) {
        self.state().view.loads.retain(|load| load.name != name);
    }

    /// A probe was answered, or not.
    pub(crate) fn probe_seen(&self, seen: ProbeView) {
        let probes = &mut self.state().view.probes;
        match probes.iter_mut().find(|probe| probe.name == seen.name) {
            Some(probe) => *probe = seen,
            None => probes.push(seen),
        }
    }

    pub(crate) fn mined(&self, lines: u64, lifecycles: Vec<LifecycleView>) {
        let view = &mut self.state().view;
        (view.lines, view.lifecycles) = (lines, lifecycles);
    }

    /// Everything that is to be shown now.
    pub(crate) fn view(&self) -> View {
        let state = &mut *self.state();
        state.view.elapsed_s = state.clock.now_s();
        state.view.systems = state
            .samples
            .values()
            .map(|sample| SystemView {
                name: sample.system.clone(),
                cpu_cores: sample.cpu_cores,
                rss_bytes: sample.rss_bytes,
            })
            .collect();
        if let (Some((then, before)), Some((now, after))) =
            (state.counted.front(), state.counted.back())
        {
            for entity in &mut state.view.entities {
                for shown in &mut entity.states {
                    let key = (entity.what.clone(), shown.name.clone());
                    shown.count = after.get(&key).copied();
                    shown.rate = match (before.get(&key), shown.count) {
                        (Some(before), Some(after)) if now > then => {
                            (after as f64 - *before as f64) / (now - then)
                        }
                        _ => 0.0,
                    };
                }
            }
        }
        state.view.clone()
    }

    /// Events that were not taken before.
    pub(crate) fn take_events(&self) -> Vec<Event> {
        self.state().events.drain(..).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_over_is_shown_no_more() {
        let state = State {
            clock: Clock::start(),
            view: View::default(),
            samples: BTreeMap::new(),
            counted: VecDeque::new(),
            events: VecDeque::new(),
            doings: Vec::new(),
            begun: STEPS,
        };
        let status = Status(Arc::new(Mutex::new(state)));
        let shown = || status.view().doing;
        status.doing("hold for 9 s");
        let killed = status.meanwhile("kill app");
        assert_eq!(shown(), "kill app");
        let cut = status.meanwhile("cut a to b");
        assert_eq!(shown(), "cut a to b");
        drop(killed);
        assert_eq!(shown(), "cut a to b", "it goes on");
        drop(cut);
        assert_eq!(shown(), "hold for 9 s");
        // What begins later is shown, and stays when the other ends.
        let killed = status.meanwhile("kill app");
        status.doing("wait at most 2 s");
        assert_eq!(shown(), "wait at most 2 s");
        drop(killed);
        assert_eq!(shown(), "wait at most 2 s");
    }

    #[test]
    fn where_nothing_else_goes_on_the_last_is_shown() {
        let plan = lab_experiment::check(
            &lab_experiment::Source {
                name: "a".into(),
                text: "lab = 1\nname = \"a\"\n[[step]]\nname = \"s\"\nhold = \"1s\"\n".into(),
            },
            &[],
            &lab_experiment::catalogue::Catalogue::default(),
        );
        let status = Status::new(&plan.unwrap(), Clock::start());
        assert_eq!(status.view().doing, "start the systems");
        status.doing("hold for 1 s");
        assert_eq!(status.view().doing, "hold for 1 s");
    }
}
