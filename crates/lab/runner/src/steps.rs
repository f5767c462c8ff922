//! The steps of a plan, one after the other.

use std::time::Duration;

use lab_experiment::expr::{LoadQuantity, Metric};
use lab_experiment::plan::{Make, Plan, Step, Template, Wait};
use lab_store::{EventKind, RunFile, RunFolder};
use tokio::sync::watch;
use tokio::time::Instant;
use units::{show_rate, show_seconds};

use crate::calls::Calls;
use crate::captured::CapturedValues;
use crate::conditions::{Holds, Look, Now};
use crate::drivers::{Counts, Program};
use crate::faults::{Background, Faults, Phase};
use crate::judge::Ending;
use crate::loads::{self, Loads};
use crate::probes::Probes;
use crate::processes::{Addresses, first_lines};
use crate::progress::Status;
use crate::record::Recorder;
use crate::standstill::Standstills;

/// Pause between two looks at a condition.
pub(crate) const LOOK: Duration = Duration::from_millis(20);

/// What steps work with.
pub(crate) struct StepRunner<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) folder: &'a RunFolder,
    pub(crate) addresses: &'a Addresses,
    /// By name of the driver.
    pub(crate) drivers: &'a [(String, Program)],
    pub(crate) recorder: &'a Recorder,
    pub(crate) status: &'a Status,
    pub(crate) loads: &'a Loads<'a>,
    pub(crate) faults: Faults<'a>,
    pub(crate) calls: Calls<'a>,
    /// What steps before have kept.
    pub(crate) kept: &'a CapturedValues,
    pub(crate) probes: &'a Probes<'a>,
    pub(crate) standstills: &'a Standstills,
}

/// How long a step took that ended well.
#[derive(Debug)]
pub(crate) struct StepLength {
    pub(crate) step: String,
    pub(crate) seconds: f64,
    /// Of these, seconds in which the laboratory itself stood still.
    pub(crate) stood_s: f64,
}

/// Why a step did not end well.
pub(crate) enum StepError {
    /// What is measured does not hold.
    Failed {
        text: String,
        /// Loads that measured it.
        rests_on: Vec<String>,
    },
    /// What is measured may hold or not, as the laboratory itself may have changed it.
    Doubtful(String),
    /// The step could not be made.
    Broken(String),
}

impl StepError {
    fn failed(text: impl Into<String>) -> Self {
        Self::Failed {
            text: text.into(),
            rests_on: Vec::new(),
        }
    }

    fn text(&self) -> &str {
        match self {
            Self::Failed { text, .. } | Self::Doubtful(text) | Self::Broken(text) => text,
        }
    }
}

impl From<String> for StepError {
    fn from(text: String) -> Self {
        Self::Broken(text)
    }
}

/// Counts of all drivers.
pub(crate) fn counts(drivers: &[(String, Program)]) -> Counts {
    let mut counts = Counts::new();
    drivers
        .iter()
        .for_each(|(_, driver)| driver.counts(&mut counts));
    counts
}

impl<'a> StepRunner<'a> {
    /// Makes the steps until one does not end well. `durations` has those that did,
    /// also when the future is dropped.
    pub(crate) async fn walk(&self, durations: &mut Vec<StepLength>) -> Ending {
        let background = Background::default();
        for (number, step) in self.plan.steps.iter().enumerate() {
            let skipped = tokio::select! {
                biased;
                trouble = background.trouble() => Err(trouble),
                skipped = self.skip(number, step, &background) => skipped,
            };
            match skipped {
                Ok(true) => continue,
                Ok(false) => {}
                Err(trouble) => return self.ending(step, &trouble),
            }
            self.recorder.event(EventKind::StepStarted, &step.name, "");
            let (start, start_s) = (Instant::now(), self.standstills.turn());
            let length = |seconds: f64| StepLength {
                step: step.name.clone(),
                seconds,
                stood_s: self.standstills.since(start_s).min(seconds),
            };
            let walked = tokio::select! {
                // What is told to those in the background they do before the step ends.
                biased;
                trouble = background.trouble() => Err(trouble),
                walked = self.step(number, step, &background) => walked,
            };
            let took = start.elapsed().as_secs_f64();
            match walked {
                Ok(None) => {
                    self.recorder
                        .event(EventKind::StepEnded, &step.name, &show_seconds(took));
                    durations.push(length(took));
                }
                Ok(Some(recovered)) => {
                    let until = (recovered - start).as_secs_f64();
                    let text = format!(
                        "{}; {} until the first good request after the last failure",
                        show_seconds(took),
                        show_seconds(until)
                    );
                    self.recorder.event(EventKind::StepEnded, &step.name, &text);
                    durations.push(length(until));
                }
                Err(trouble) => return self.ending(step, &trouble),
            }
        }
        Ending::Complete
    }

    /// Passes over a step that cannot be made, with the faults that were to go on through it.
    async fn skip(
        &self,
        number: usize,
        step: &Step,
        background: &Background<'a>,
    ) -> Result<bool, StepError> {
        let Some(skipped) = self.loads.skip(number, step).await? else {
            return Ok(false);
        };
        let why = &skipped.why;
        self.recorder.event(EventKind::StepSkipped, &step.name, why);
        background.end(&step.name).await;
        Ok(true)
    }

    /// How the run ends with a step that did not end well.
    fn ending(&self, step: &Step, trouble: &StepError) -> Ending {
        let text = trouble.text();
        self.recorder.event(EventKind::StepFailed, &step.name, text);
        let said = format!("step {:?}: {text}", step.name);
        match trouble {
            StepError::Broken(_) => Ending::Broken(said),
            StepError::Doubtful(_) => Ending::Doubtful(said),
            StepError::Failed { rests_on, .. } => match self.loads.is_invalid(rests_on) {
                true => Ending::Doubtful(said),
                false => Ending::Failed(said),
            },
        }
    }

    /// Makes a step under its load. If it waited for failures to end, it says when the
    /// first request was due that was answered again: a condition looks back over seconds,
    /// and holds that much later.
    async fn step(
        &self,
        number: usize,
        step: &'a Step,
        background: &Background<'a>,
    ) -> Result<Option<Instant>, StepError> {
        let worked = match self.loads.begin(number, step).await {
            Ok(()) => self.work_under_faults(number, step, background).await,
            Err(trouble) => Err(trouble),
        };
        let cut = worked.as_ref().err().map(|_| "the step failed");
        let ended = self.loads.end(number, step, cut).await;
        let recovered = worked?;
        ended?;
        Ok(recovered)
    }

    /// Does what a step does, while its faults come and go.
    async fn work_under_faults(
        &self,
        number: usize,
        step: &'a Step,
        background: &Background<'a>,
    ) -> Result<Option<Instant>, StepError> {
        let (tell, phase) = watch::channel(Phase::Holds);
        let work = async {
            let recovered = self.work(number, step, &tell).await?;
            tell.send_replace(Phase::Done);
            Ok(recovered)
        };
        let faults = self.faults.make(number, step, &phase, background);
        let both = futures_util::future::try_join(work, faults);
        let (recovered, ()) = crate::always::during(self, step, both).await?;
        background.end(&step.name).await;
        Ok(recovered)
    }

    async fn work(
        &self,
        number: usize,
        step: &Step,
        phase: &watch::Sender<Phase>,
    ) -> Result<Option<Instant>, StepError> {
        if let Some(make) = &step.make {
            self.make(step, make).await?;
        }
        if let Some(hold) = step.hold {
            self.status
                .doing(format!("hold for {}", show_seconds(hold.as_secs_f64())));
            match loads::alone(step) {
                Some(hold) => tokio::time::sleep_until(self.loads.hold_until(hold)).await,
                None => tokio::time::sleep(hold).await,
            }
        }
        phase.send_replace(Phase::Held);
        self.faults.send(number, step).await?;
        self.call_all(step).await?;
        if let Some(command) = &step.run {
            self.run(number, step, command).await?;
        }
        let Some(wait) = &step.wait else {
            return Ok(None);
        };
        let began = Instant::now();
        self.wait(wait).await?;
        let is_failures = |metric: &Metric| {
            let failures = [LoadQuantity::Errors, LoadQuantity::Ok];
            matches!(metric, Metric::Load { quantity, .. } if failures.contains(quantity))
        };
        if !wait.until.metrics().all(is_failures) {
            return Ok(None);
        }
        let loads = wait.until.metrics().filter_map(Metric::load);
        let recovered = self.loads.recovered(loads);
        Ok(recovered.map(|recovered| recovered.max(began)))
    }

    /// What is counted and seen now.
    pub(crate) fn now(&self) -> Now<'_> {
        Now {
            counts: counts(self.drivers),
            loads: self.loads,
            probes: self.probes,
            stood: self.standstills.all(),
        }
    }

    async fn make(&self, step: &Step, make: &Make) -> Result<(), StepError> {
        let filled = make.filled_in(|reference| self.kept.resolve(self.addresses, reference));
        let filled = filled.map_err(|error| format!("make {}: {error}", make.what))?;
        let make = &filled;
        self.status
            .doing(format!("make {} × {}", make.count, make.what));
        let makes = |name: &str| {
            let mut drivers = self.plan.drivers.iter();
            drivers.any(|driver| driver.name == name && driver.entities.contains_key(&make.what))
        };
        let driver = self.drivers.iter().find(|(name, _)| makes(name));
        let (_, driver) = driver.ok_or_else(|| {
            StepError::Broken(format!("no driver makes {:?}; add a [[driver]]", make.what))
        })?;
        let start = Instant::now();
        let made = driver
            .make(make)
            .await
            .map_err(|error| StepError::failed(error.to_string()))?;
        let took = start.elapsed().as_secs_f64();
        // What a driver counts may be anything.
        let requests = made.accepted.saturating_add(made.refused);
        let rate = if took > 0.0 {
            requests as f64 / took
        } else {
            0.0
        };
        let text = format!(
            "{} × {} with {requests} requests in {} ({}): {made}",
            make.count,
            make.what,
            show_seconds(took),
            show_rate(rate.round())
        );
        self.recorder.event(EventKind::Made, &step.name, &text);
        if made.refused > 0 {
            return Err(StepError::failed(format!("make {}: {made}", make.what)));
        }
        Ok(())
    }

    async fn run(&self, number: usize, step: &Step, command: &Template) -> Result<(), StepError> {
        let told = self.kept.render_redacted(self.addresses, command);
        self.status.doing(format!("run {told}"));
        let name = format!("step-{}-{}", number + 1, step.name);
        let within = (step.run_within, " (`run_within`)");
        self.calls.run(&name, command, within).await?;
        let log = self.folder.file(RunFile::Log(&name));
        // Kept first, so that it is hidden in what is told.
        let kept = self.calls.keep_output(&step.keep, &log);
        let said = self.kept.hide(&first_lines(&log));
        if !said.is_empty() {
            self.recorder.event(EventKind::Said, &step.name, &said);
        }
        kept.map_err(|why| StepError::Broken(format!("`{told}`: {why}")))
    }

    async fn wait(&self, wait: &Wait) -> Result<(), StepError> {
        let mut start = Instant::now();
        let [mut held_since, mut may_hold_since]: [Option<Instant>; 2] = [None, None];
        let [mut doubt, mut missed]: [Option<String>; 2] = [None, None];
        let mut looked_s = self.standstills.turn();
        loop {
            let Look { measured, holds } = self.now().look(&wait.until);
            let now = Instant::now();
            // While nobody looked, no time was waited, and nothing was seen to hold.
            let stood = Duration::try_from_secs_f64(self.standstills.since(looked_s));
            let stood = stood.unwrap_or_default();
            looked_s = self.standstills.turn();
            start += stood;
            // What cannot be told does not hold.
            let may_hold = matches!(holds, Holds::Yes | Holds::Doubtful(_));
            for (since, holds) in [
                (&mut held_since, holds == Holds::Yes),
                (&mut may_hold_since, may_hold),
            ] {
                *since = holds.then(|| since.map_or(now, |since| since + stood));
            }
            let is_steady =
                |since: Option<Instant>| since.is_some_and(|since| now - since >= wait.steady);
            if is_steady(held_since) {
                return Ok(());
            }
            match holds {
                Holds::Doubtful(why) => doubt = Some(why),
                Holds::Yes => {}
                Holds::No | Holds::Unknown => doubt = None,
            }
            if is_steady(may_hold_since) {
                missed = doubt.clone().or(missed);
            }
            let seen = match measured.missing.is_empty() {
                true => measured.measured,
                false => format!("nothing known of {}", measured.missing.join(", ")),
            };
            if now - start >= wait.at_most {
                let steady = match wait.steady.is_zero() {
                    true => String::new(),
                    false => format!(" for {}", show_seconds(wait.steady.as_secs_f64())),
                };
                let text = format!(
                    "waited {} for {}{steady}; last seen {seen}",
                    show_seconds(wait.at_most.as_secs_f64()),
                    wait.until.text
                );
                let loads = wait.until.metrics().filter_map(Metric::load);
                return Err(match missed {
                    Some(why) => StepError::Doubtful(format!("{text}; it may have held, as {why}")),
                    None => StepError::Failed {
                        text,
                        rests_on: loads.map(str::to_owned).collect(),
                    },
                });
            }
            self.status.doing(format!(
                "wait at most {} for {} (now {seen})",
                show_seconds(wait.at_most.as_secs_f64()),
                wait.until.text
            ));
            tokio::time::sleep(LOOK).await;
        }
    }
}
