//! Performing a tree of actions, whose leaves are processes.

use std::future::Future;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use diego::models::{Action, RunAction, TimeoutAction};
use net::Shutdown;
use processes::{Ended, Program, StartError};
use telemetry::Fields;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::super::super::metrics::count;
use super::super::{Definition, Job};
use super::output::{Tail, follow};
use super::{Process, environment};

/// How deep actions may be nested.
const DEPTH_MAX: usize = 64;
/// Longest wait for the rest of an output after the process has ended.
const OUTPUT_WITHIN: Duration = Duration::from_secs(1);
/// Bytes of the output that are logged when a process fails.
const LOGGED_BYTES: usize = 2048;

type Outcome = Result<(), String>;
type Performing<'a> = Pin<Box<dyn Future<Output = Outcome> + Send + 'a>>;

/// One run of a container.
pub(super) struct Run<'a> {
    executor: &'a Process,
    job: &'a Job,
    folder: &'a Path,
    exit_status: Mutex<Option<i32>>,
    /// Becomes true once a process of the main action runs.
    running: watch::Sender<bool>,
}

impl<'a> Run<'a> {
    pub(super) fn new(executor: &'a Process, job: &'a Job, folder: &'a Path) -> Self {
        Self {
            executor,
            job,
            folder,
            exit_status: Mutex::default(),
            running: watch::Sender::new(false),
        }
    }

    /// Status of the process that ended last.
    pub(super) fn exit_status(&self) -> Option<i32> {
        *self
            .exit_status
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn fields(&self) -> Fields {
        Fields::new().and("container-guid", &self.job.guid)
    }

    /// Performs the setup and then the action, with sidecars beside it.
    pub(super) async fn all(&self, started: impl FnOnce() + Send, stop: Shutdown) -> Outcome {
        if let Some(setup) = self.job.setup() {
            self.perform(setup, stop.clone(), 0).await?;
        }
        self.running.send_replace(false);
        let main = async {
            let Some(action) = self.job.action() else {
                return Err("the definition has no action".to_owned());
            };
            if !self.job.lasts() {
                return self.perform(action, stop, 0).await;
            }
            let mut together = vec![action];
            if let Definition::Lrp(lrp, _) = &self.job.definition {
                together.extend(lrp.sidecars.iter().filter_map(|car| car.action.as_ref()));
            }
            self.codependent(together, stop, 0).await
        };
        let mut running = self.running.subscribe();
        let announce = async {
            // The sender lives as long as this run.
            let _ = running.wait_for(|running| *running).await;
            started();
            std::future::pending::<()>().await
        };
        tokio::select! {
            biased;
            () = announce => Ok(()),
            outcome = main => outcome,
        }
    }

    fn perform<'s>(&'s self, action: &'s Action, stop: Shutdown, depth: usize) -> Performing<'s> {
        Box::pin(async move {
            if depth > DEPTH_MAX {
                return Err(format!("actions are nested more than {DEPTH_MAX} deep"));
            }
            let depth = depth + 1;
            if let Some(run) = &action.run_action {
                self.run(run, stop).await
            } else if let Some(limited) = &action.timeout_action {
                self.limited(limited, stop, depth).await
            } else if let Some(wrapped) = &action.try_action {
                // Whatever it ends with is fine; that is what it is for.
                let _ = self.inner(wrapped.action.as_deref(), stop, depth).await;
                Ok(())
            } else if let Some(wrapped) = &action.emit_progress_action {
                self.say(&wrapped.start_message);
                let outcome = self.inner(wrapped.action.as_deref(), stop, depth).await;
                match &outcome {
                    Ok(()) => self.say(&wrapped.success_message),
                    Err(cause) if !wrapped.failure_message_prefix.is_empty() => {
                        self.say(&format!("{}: {cause}", wrapped.failure_message_prefix));
                    }
                    Err(_) => {}
                }
                outcome
            } else if let Some(serial) = &action.serial_action {
                for action in &serial.actions {
                    self.perform(action, stop.clone(), depth).await?;
                }
                Ok(())
            } else if let Some(parallel) = &action.parallel_action {
                let each = parallel
                    .actions
                    .iter()
                    .map(|a| self.perform(a, stop.clone(), depth));
                let errors: Vec<String> = all(each.collect(), |_| ())
                    .await
                    .into_iter()
                    .filter_map(Result::err)
                    .collect();
                if errors.is_empty() {
                    Ok(())
                } else if errors.iter().all(|error| error == CANCELLED) {
                    Err(CANCELLED.into())
                } else {
                    Err(errors.join("; "))
                }
            } else if let Some(codependent) = &action.codependent_action {
                self.codependent(codependent.actions.iter().collect(), stop, depth)
                    .await
            } else if action.download_action.is_some() {
                Err("a download action is not supported by the process executor".into())
            } else if action.upload_action.is_some() {
                Err("an upload action is not supported by the process executor".into())
            } else {
                Err("an action of no known kind is not supported by the process executor".into())
            }
        })
    }

    async fn inner(&self, action: Option<&Action>, stop: Shutdown, depth: usize) -> Outcome {
        match action {
            Some(action) => self.perform(action, stop, depth).await,
            None => Err("an action that should wrap another one is empty".into()),
        }
    }

    async fn limited(&self, limited: &TimeoutAction, stop: Shutdown, depth: usize) -> Outcome {
        let limit = if limited.timeout_ms > 0 {
            Duration::from_millis(limited.timeout_ms.unsigned_abs())
        } else {
            Duration::from_nanos(limited.deprecated_timeout_ns.max(0).unsigned_abs())
        };
        let (ask, asked) = net::shutdown();
        let mut inner = std::pin::pin!(self.inner(limited.action.as_deref(), asked, depth));
        let mut stop = stop;
        tokio::select! {
            outcome = &mut inner => return outcome,
            () = stop.asked() => {
                ask.send_replace(true);
                return inner.await;
            }
            () = sleep(limit) => {}
        }
        ask.send_replace(true);
        let cause = inner.await.err().unwrap_or_default();
        Err(format!("exceeded {} timeout; {cause}", go_duration(limit)))
    }

    /// All at once; the first that ends, however it ends, ends the others.
    async fn codependent(&self, actions: Vec<&Action>, stop: Shutdown, depth: usize) -> Outcome {
        let (ask, asked) = net::shutdown();
        let each = actions
            .into_iter()
            .map(|action| self.perform(action, asked.clone(), depth));
        let mut inner = std::pin::pin!(all(each.collect(), |_| {
            ask.send_replace(true);
        }));
        let mut stop = stop;
        let outcomes = tokio::select! {
            outcomes = &mut inner => outcomes,
            () = stop.asked() => {
                ask.send_replace(true);
                inner.await
            }
        };
        // Those that were cancelled failed because of the first one.
        let mut errors = outcomes.into_iter().filter_map(Result::err);
        let own = errors.by_ref().find(|error| error != CANCELLED);
        Err(own.unwrap_or_else(|| "Codependent step exited".into()))
    }

    async fn run(&self, run: &RunAction, mut stop: Shutdown) -> Outcome {
        let source = if run.log_source.is_empty() {
            self.job.log_source()
        } else {
            &run.log_source
        };
        let folder = self.folder.join(&run.dir);
        let refuse = |cause: StartError| {
            format!(
                "{source}: failed to run {} in {}: {cause}",
                run.path,
                folder.display()
            )
        };
        let mut program = Program::without_environment(&run.path).args(&run.args);
        program.home = Some(self.folder.to_owned());
        program.folder = Some(folder.clone());
        program.files_max = run.resource_limits.and_then(|limits| limits.nofile);
        let tag = self.executor.reaper.as_ref().map(|(_, tag)| tag.variable());
        program.env = environment::of(self.job, self.folder, &run.env)
            .into_iter()
            .chain(tag)
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        // What was asked to stop begins nothing: the step before may only have been tried.
        tokio::select! {
            biased;
            () = stop.asked() => return Err(CANCELLED.into()),
            () = std::future::ready(()) => {}
        }
        let spawned = self.executor.spawner.spawn(program).await;
        let metrics = &self.executor.metrics;
        let counter = match &spawned {
            Ok(_) => &metrics.spawned,
            Err(_) => &metrics.failed_spawns,
        };
        count(counter, 1);
        let (mut spawned, output) = spawned.map_err(refuse)?;
        self.running.send_replace(true);

        let (mut tail, fields) = (Tail::default(), self.fields());
        let logger = &self.executor.logger;
        let mut cancelled = false;
        let status = {
            let mut output = std::pin::pin!(follow(output, &mut tail, logger, &fields));
            let mut read_all = false;
            let status = loop {
                tokio::select! {
                    status = spawned.ended() => break status,
                    () = &mut output, if !read_all => read_all = true,
                    () = stop.asked() => {
                        cancelled = true;
                        break spawned.stop(self.executor.settings.grace).await;
                    }
                }
            };
            if !read_all {
                let _ = timeout(OUTPUT_WITHIN, output).await;
            }
            status
        };
        let status = status.map_err(|cause| format!("{source}: wait for its process: {cause}"))?;
        let status = as_shells_say(status);
        *self
            .exit_status
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(status);
        match status {
            _ if cancelled => Err(CANCELLED.into()),
            0 => Ok(()),
            status => {
                let reason = format!("{source}: Exited with status {status}");
                let fields = fields.and("output-tail", tail.text(LOGGED_BYTES));
                logger.error("process-failed", &reason, fields);
                Err(reason)
            }
        }
    }

    fn say(&self, message: &str) {
        if !message.is_empty() {
            let fields = self.fields().and("line", message);
            self.executor.logger.debug("progress", fields);
        }
    }
}

/// The status of a process; one that was killed has 128 plus the signal.
fn as_shells_say(ended: Ended) -> i32 {
    let signal = ended.status.signal().unwrap_or_default();
    ended.status.code().unwrap_or(128 + signal)
}

const CANCELLED: &str = "cancelled";

/// Drives futures at the same time; `each` sees the end of every one.
async fn all(performing: Vec<Performing<'_>>, each: impl Fn(&Outcome)) -> Vec<Outcome> {
    let mut performing: Vec<Option<Performing<'_>>> = performing.into_iter().map(Some).collect();
    let mut outcomes: Vec<Outcome> = Vec::with_capacity(performing.len());
    std::future::poll_fn(|cx| {
        for slot in &mut performing {
            if let Some(future) = slot
                && let std::task::Poll::Ready(outcome) = future.as_mut().poll(cx)
            {
                each(&outcome);
                outcomes.push(outcome);
                *slot = None;
            }
        }
        if performing.iter().all(Option::is_none) {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
    outcomes
}

/// A duration as Go prints it: `1s`, `1.5s`, `2m0s`, `300ms`.
fn go_duration(duration: Duration) -> String {
    let decimal = |value: f64| format!("{value}");
    if duration < Duration::from_secs(1) {
        return format!("{}ms", decimal(duration.as_secs_f64() * 1e3));
    }
    let whole = duration.as_secs();
    let (hours, minutes) = (whole / 3600, whole % 3600 / 60);
    let seconds = (whole % 60) as f64 + f64::from(duration.subsec_millis()) / 1e3;
    let seconds = decimal(seconds);
    match (hours, minutes) {
        (0, 0) => format!("{seconds}s"),
        (0, minutes) => format!("{minutes}m{seconds}s"),
        (hours, minutes) => format!("{hours}h{minutes}m{seconds}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_in_go() {
        let text = |ms| go_duration(Duration::from_millis(ms));
        assert_eq!(text(300), "300ms");
        assert_eq!(text(1000), "1s");
        assert_eq!(text(1500), "1.5s");
        assert_eq!(text(120_000), "2m0s");
        assert_eq!(text(3_661_000), "1h1m1s");
    }
}
