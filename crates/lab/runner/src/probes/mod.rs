//! Probes: questions asked all the time, from the first step's start to the last one's end.
//!
//! Each probe has, for every copy that it asks, one try at a time: a try that takes longer than
//! the time to the next one leaves that out, and is given up after `within`. So the work that is
//! under way is bounded by the number of those asked, which the checker bounds. Probes ask the
//! systems themselves, never through a proxy that a fault disturbs.

mod around;
mod command;
mod health;
mod log;
mod numbers;
mod pick;
mod postgres;
mod prober;
mod prom;
mod request;
mod ticks;
mod value;

use std::cell::RefCell;
use std::convert::Infallible;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use lab_experiment::expr::ProbeNumber;
use lab_experiment::plan::{Plan, Probe, ProbeKind, Reference, System, Template};
use lab_load::Protocol;
use lab_store::{Appender, EventKind, ProbeSample, RunFile, RunFolder, StoreError};
use measure::Clock;
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;
use units::show_seconds;

use self::command::{AT_A_TIME, Command, ValueSource};
use self::log::LogCount;
use self::prober::Prober;
use self::value::Value;
use crate::inputs::logs_of;
use crate::loads::{client_tls, password};
use crate::processes::{Copy, Launch, Output, Starting, Systems, copy_names, itself, shown};
use crate::progress::{ProbeView, Status};
use crate::standstill::{self, Span};
use crate::underway::Viewers;

#[cfg(test)]
pub(crate) use around::tries;
pub(crate) use around::{LATE_S, Seen, between, level, series};
pub(crate) use numbers::Tried;
use numbers::is_certain;

/// Time between two views of what was answered.
const SHOWN_EVERY: Duration = Duration::from_millis(200);
/// Characters that are kept of why a try failed.
const REASON: usize = 300;

/// What probes work with, and what they saw last.
pub(crate) struct Probes<'a> {
    clock: Clock,
    status: &'a Status,
    asked: Vec<ProbeTarget<'a>>,
    /// `None` in a run without probes, which has no file of them.
    samples: Option<RefCell<Appender<ProbeSample>>>,
    viewers: Viewers,
    /// Tries so far.
    tries: watch::Sender<u64>,
}

/// Where a probe is sent: one copy of a system, or the one that its target names.
struct ProbeTarget<'a> {
    probe: &'a Probe,
    /// The copy.
    copy: Option<&'a Copy>,
    /// Its name; empty without one.
    of: String,
    prober: Prober,
    newest: RefCell<Option<LatestTry>>,
}

/// What the newest try came to.
struct LatestTry {
    sample: ProbeSample,
    /// Number of the copy's process that was asked.
    start: u32,
    /// Tries that were left out so far.
    skipped: u64,
}

impl<'a> Probes<'a> {
    /// Prepares the probes of a plan, whose systems run.
    ///
    /// # Errors
    /// When one of them cannot be asked with its names filled in, or the disk refuses.
    pub(crate) fn open(
        plan: &'a Plan,
        systems: &'a Systems,
        starting: &'a Starting<'a>,
        (clock, viewers): (Clock, Viewers),
    ) -> Result<Self, String> {
        let samples = match plan.probes.is_empty() {
            true => None,
            false => Some(
                starting
                    .folder
                    .appender()
                    .map_err(|error| error.to_string())?,
            ),
        };
        let (client, places) = (prober::client(None), Rc::new(Semaphore::new(AT_A_TIME)));
        let mut asked = Vec::new();
        for probe in &plan.probes {
            let copies: Vec<Option<&Copy>> = match &probe.of {
                None => vec![None],
                Some(of) => {
                    let copies = systems.copies_of(starting.systems, of);
                    copies.iter().map(Some).collect()
                }
            };
            for copy in copies {
                let made = prober_of(probe, copy, &client, &places, starting);
                asked.push(ProbeTarget {
                    probe,
                    copy,
                    of: copy.map(|copy| copy.name.clone()).unwrap_or_default(),
                    prober: made.map_err(|why| format!("probe {}: {why}", probe.name))?,
                    newest: RefCell::default(),
                });
            }
        }
        Ok(Self {
            clock,
            status: starting.status,
            asked,
            samples: samples.map(RefCell::new),
            viewers,
            tries: watch::channel(0).0,
        })
    }

    /// Asks until dropped; returns only when the disk refuses.
    pub(crate) async fn run(&self) -> StoreError {
        if self.asked.is_empty() {
            return std::future::pending().await;
        }
        let loops = self
            .asked
            .iter()
            .map(|asked| self.probe_periodically(asked));
        tokio::select! {
            asked = futures_util::future::try_join_all(loops) => match asked {
                Err(error) => error,
                Ok(_) => std::future::pending().await,
            },
            () = self.show() => std::future::pending().await,
        }
    }

    /// Shows what was answered, from time to time: there may be many tries.
    async fn show(&self) {
        let mut names: Vec<&str> = self.asked.iter().map(|asked| &*asked.probe.name).collect();
        names.dedup();
        loop {
            tokio::time::sleep(SHOWN_EVERY).await;
            for name in &names {
                self.status.probe_seen(self.view(name));
            }
        }
    }

    async fn probe_periodically(&self, asked: &ProbeTarget<'_>) -> Result<Infallible, StoreError> {
        let (began, every, within) = (Instant::now(), asked.probe.every, asked.probe.within);
        let (mut tick, mut skipped) = (0, 0);
        loop {
            tokio::time::sleep_until(began + ticks::at(tick, every)).await;
            let start = asked.copy.map_or(0, Copy::start);
            let (t_s, at) = (self.clock.now_s(), Instant::now());
            let answer = standstill::within(within, asked.prober.probe()).await;
            let answer = answer.unwrap_or_else(|_| {
                let within = show_seconds(within.as_secs_f64());
                Err(format!("no answer within {within}"))
            });
            let latency = at.elapsed();
            self.tried(asked, (t_s, latency), (start, skipped), answer)?;
            (tick, skipped) = ticks::next(tick, began.elapsed(), every);
        }
    }

    /// Keeps what a try came to.
    fn tried(
        &self,
        asked: &ProbeTarget<'_>,
        (t_s, latency): (f64, Duration),
        (start, skipped): (u32, u64),
        answer: Result<Option<Value>, String>,
    ) -> Result<(), StoreError> {
        let mut sample = ProbeSample {
            t_s,
            probe: asked.probe.name.clone(),
            of: asked.of.clone(),
            latency_s: latency.as_secs_f64(),
            skipped,
            ..ProbeSample::default()
        };
        match answer {
            Ok(Some(Value::Number(number))) => sample.value = Some(number),
            Ok(Some(Value::Text(text))) => sample.text = text,
            Ok(None) => {}
            // A failure has a reason, or it would be read as none.
            Err(why) if why.is_empty() => sample.error = "it failed".to_owned(),
            Err(why) => sample.error = shown(&why, REASON),
        }
        if let Some(samples) = &self.samples {
            samples.borrow_mut().append(&sample)?;
            if self.viewers.wanted() {
                samples.borrow_mut().flush()?;
            }
        }
        let before = asked
            .newest
            .borrow()
            .as_ref()
            .map_or(0, |newest| newest.skipped);
        asked.newest.replace(Some(LatestTry {
            sample,
            start,
            skipped: before + skipped,
        }));
        self.tries.send_modify(|tries| *tries += 1);
        Ok(())
    }

    /// Waits for the next try of any probe.
    pub(crate) async fn next_try(&self) {
        let mut tries = self.tries.subscribe();
        // We hold the sender.
        let _ = tries.changed().await;
    }

    fn of<'s>(&'s self, probe: &'s str) -> impl Iterator<Item = &'s ProbeTarget<'a>> {
        self.asked
            .iter()
            .filter(move |asked| asked.probe.name == probe)
    }

    /// The newest tries of a probe, of each copy that it asks.
    fn newest(&self, probe: &str) -> Vec<ProbeSample> {
        let newest = self.of(probe).filter_map(|asked| {
            let newest = asked.newest.borrow();
            newest.as_ref().map(|newest| newest.sample.clone())
        });
        newest.collect()
    }

    /// The value of a quantity now: that of the newest try of each copy, without what the laboratory may
    /// have changed because it stood still at these times.
    pub(crate) fn value(&self, probe: &str, number: &ProbeNumber, stood: &[Span]) -> Option<f64> {
        if *number == ProbeNumber::Skipped {
            let skipped = self.of(probe).map(|asked| {
                let newest = asked.newest.borrow();
                newest.as_ref().map_or(0, |newest| newest.skipped)
            });
            return Some(skipped.sum::<u64>() as f64);
        }
        let newest = self.newest(probe);
        let certain = newest.iter().filter(|one| is_certain(one, number, stood));
        numbers::number(certain, number)
    }

    fn view(&self, probe: &str) -> ProbeView {
        let newest = self.newest(probe);
        let said = newest.iter().filter_map(|one| match one.value {
            Some(value) => Some(units::show_count(value)),
            None if one.text.is_empty() => None,
            None => Some(one.text.clone()),
        });
        let failed = newest.iter().rfind(|one| !one.is_ok());
        ProbeView {
            name: probe.to_owned(),
            asked: newest.len(),
            ok: newest.iter().filter(|one| one.is_ok()).count(),
            values: said.collect(),
            error: failed.map(|one| one.error.clone()).unwrap_or_default(),
        }
    }

    /// Writes what is still in memory.
    pub(crate) fn flush(&self) -> Result<(), StoreError> {
        match &self.samples {
            Some(samples) => samples.borrow_mut().flush(),
            None => Ok(()),
        }
    }
}

/// Tells what the probes of a run came to, and gives all of their tries.
///
/// # Errors
/// When the disk refuses.
pub(crate) fn record_summaries(
    plan: &Plan,
    folder: &RunFolder,
    recorder: &crate::record::Recorder,
) -> Result<Tried, StoreError> {
    let tried = Tried::new(folder.records()?, &folder.records()?);
    for summary in tried.summaries(plan) {
        let text = numbers::sentence(&summary);
        recorder.event(EventKind::Measured, &summary.name, &text);
    }
    Ok(tried)
}

/// What a probe asks of a copy, or of what its target names.
fn prober_of(
    probe: &Probe,
    copy: Option<&Copy>,
    client: &net::Client,
    places: &Rc<Semaphore>,
    starting: &Starting<'_>,
) -> Result<Prober, String> {
    let own = |reference: &Reference| match (copy, &probe.of) {
        (Some(copy), Some(of)) => starting.addresses.resolve_of(reference, of, copy.index),
        _ => starting.addresses.resolve(reference),
    };
    let render = |template: &Template| template.render(own);
    let client = match probe.kind.tls() {
        Some(files) => {
            let tls = client_tls(starting.children.base(), files, render)?;
            &prober::client(Some(tls))
        }
        None => client,
    };
    let name = match copy {
        Some(copy) => format!("probe-{}-{}", probe.name, copy.index),
        None => format!("probe-{}", probe.name),
    };
    let log = |name: &str| starting.folder.file(RunFile::Log(name));
    let command = |kind: &ProbeKind| {
        let ProbeKind::Command {
            program,
            args,
            value,
        } = kind
        else {
            return Err("it runs no program".to_owned());
        };
        Ok(Command {
            children: starting.children.clone(),
            launch: Launch {
                name: name.clone(),
                program: render(program).into(),
                args: args.iter().map(|arg| render(arg).into()).collect(),
                env: itself(&starting.own_binary).into(),
                cpus: None,
                cgroup: None,
                stdout: Output::Pipes,
                stderr: log(&format!("{name}.err")),
            },
            value: ValueSource::of(value),
            places: Rc::clone(places),
        })
    };
    let password = |kind: &ProbeKind| match kind {
        ProbeKind::Postgres { password_file, .. } => {
            let file = password_file.as_deref();
            password(starting.children.base(), file, Protocol::Postgres)
        }
        _ => Ok(String::new()),
    };
    let count = |pattern: &str| {
        let names = match (&probe.kind, copy) {
            (_, Some(copy)) => logs_of(&starting.systems[copy.system], &copy.name),
            (ProbeKind::Log { system, .. }, None) => logs_of_all(starting.systems, system),
            _ => Vec::new(),
        };
        let files: Vec<PathBuf> = names.iter().map(|name| log(name)).collect();
        LogCount::new(pattern, files)
    };
    Prober::new(&probe.kind, client, render, command, password, count)
}

/// Names of the logs of all copies of a system.
fn logs_of_all(systems: &[System], name: &str) -> Vec<String> {
    let Some(system) = systems.iter().find(|system| system.name == name) else {
        return Vec::new();
    };
    let copies = copy_names(system);
    copies
        .iter()
        .flat_map(|copy| logs_of(system, copy))
        .collect()
}
