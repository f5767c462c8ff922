//! The leaves of a container's steps: its programs and its files.

use std::fmt::Display;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use diego::models::{DownloadAction, RunAction, UploadAction};
use net::Shutdown;
use processes::{Account, AsyncProcess, Ended, Lines, Program, RunTag, Signal};
use telemetry::{Fields, Level};
use tokio::net::unix::pipe;
use tokio::time::{sleep_until, timeout};
use url::Url;

use super::super::super::steps::{
    Check, Failure, Leaves, LogContext, Outcome, Ready, byte_size, go_duration,
};
use super::super::Job;
use super::log_limit::{LineOutcome, LogLimit};
use super::output::{LINE_BYTES, Tail, follow, returns_as_ends};
use super::transfer::{TransferError, folder_within};
use super::{Process, environment, place, probe, users};
use crate::mutex::lock;

/// Longest wait for the rest of an output after the process has ended.
const OUTPUT_WITHIN: Duration = Duration::from_secs(1);
/// Longest wait for a process that was killed.
const KILLED_WITHIN: Duration = Duration::from_secs(1);
/// Bytes of the output that are logged when a process fails.
const LOGGED_BYTES: usize = 2048;

/// A container that runs.
pub(super) struct Container<'a> {
    executor: &'a Process,
    job: &'a Job,
    folder: &'a Path,
    exit_status: Mutex<Option<i32>>,
    log_limit: Mutex<LogLimit>,
}

impl<'a> Container<'a> {
    pub(super) fn new(executor: &'a Process, job: &'a Job, folder: &'a Path) -> Self {
        let lines = executor.settings.log_lines_per_second;
        let log_limit = LogLimit::new(job.log_bytes_per_second(), lines);
        Self {
            executor,
            job,
            folder,
            exit_status: Mutex::default(),
            log_limit: Mutex::new(log_limit),
        }
    }

    /// Status of the process that ended last.
    pub(super) fn exit_status(&self) -> Option<i32> {
        *lock(&self.exit_status)
    }

    pub(super) fn fields(&self) -> Fields {
        Fields::new().and("container-guid", &self.job.guid)
    }

    /// Logs a line of the container, while it may log. That it may not is said at any level.
    fn log(&self, source: &str, line: &str) {
        if line.is_empty() {
            return;
        }
        let mut limit = lock(&self.log_limit);
        let logger = &self.executor.logger;
        let fields = |line: &str| self.fields().and("source", source).and("line", line);
        match limit.take(Instant::now(), line.len()) {
            LineOutcome::Logged if logger.enabled(Level::Debug) => {
                logger.debug("line", fields(line))
            }
            LineOutcome::Logged | LineOutcome::Dropped => {}
            LineOutcome::Exceeded(said) => {
                self.executor.metrics.counters.muted.add(1);
                logger.info("line", fields(&said));
            }
        }
    }

    fn program(
        &self,
        run: &RunAction,
        log_context: &LogContext,
        account: Option<Account>,
    ) -> Program {
        let working = place::found(self.folder, &run.dir);
        let path = match run.path.contains('/') {
            true => place::program(self.folder, &working, &run.path).into_os_string(),
            false => run.path.clone().into(),
        };
        let args = match log_context.checks {
            true => environment::ports_behind(&run.args, self.job),
            false => run.args.clone(),
        };
        let mut program = Program::without_environment(path).args(args);
        program.home = Some(self.folder.to_owned());
        program.folder = Some(working);
        program.files_max = run.resource_limits.and_then(|limits| limits.nofile);
        program.network = self.job.network.clone();
        program.account = account;
        let limits = self.executor.limits.as_ref();
        let folders = limits.map(|limits| limits.folders(&self.job.name()));
        program.groups = folders.unwrap_or_default();
        let own = self.executor.tag_of(self.job);
        let rep = self.executor.reaper.as_ref().map(|(_, tag)| tag);
        let tags: Vec<&RunTag> = rep.into_iter().chain([&own]).collect();
        let cell = self.executor.variables(self.job, self.folder);
        let mut env = environment::of(self.job, self.folder, &cell, &run.env);
        if !run.user.is_empty() {
            env.entry("USER".into()).or_insert_with(|| run.user.clone());
        }
        program.env = env
            .into_iter()
            .chain([RunTag::variable_of(&tags)])
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        program
    }

    /// Makes the folder in which a program is to start in the container, where that and the machine
    /// have none. The error says what failed.
    fn make_working_folder(&self, dir: &str, account: Option<&Account>) -> Result<(), String> {
        let inside = place::inside(dir).filter(|_| !place::found(self.folder, dir).exists());
        let Some(inside) = inside else {
            return Ok(());
        };
        let made = folder_within(self.folder, &inside).map_err(|cause| cause.to_string())?;
        match account {
            Some(account) => users::change_owner(account, &made).map_err(|cause| cause.to_string()),
            None => Ok(()),
        }
    }

    async fn start(
        &self,
        run: &RunAction,
        log_context: &LogContext,
    ) -> Result<(AsyncProcess, pipe::Receiver), Failure> {
        let refuse = |cause: &dyn Display| {
            let (source, path) = (&log_context.source, &run.path);
            let folder = place::found(self.folder, &run.dir);
            Failure::plain(format!(
                "{source}: failed to run {path} in {}: {cause}",
                folder.display()
            ))
        };
        let account = users::account(&run.user).map_err(|cause| refuse(&cause))?;
        if let Some(account) = &account {
            let opened = self.executor.let_in(account, self.folder);
            opened.map_err(|cause| refuse(&cause))?;
        }
        let made = self.make_working_folder(&run.dir, account.as_ref());
        made.map_err(|cause| refuse(&cause))?;
        if let Some(name) = environment::invalid_variable(self.job, &run.env) {
            let (source, path) = (&log_context.source, &run.path);
            return Err(Failure::plain(format!(
                "{source}: failed to run {path}: the environment variable {name:?} cannot be passed to a process"
            )));
        }
        let program = self.program(run, log_context, account);
        let spawned = self.executor.spawner.spawn(program).await;
        let counters = &self.executor.metrics.counters;
        match &spawned {
            Ok(_) => counters.spawned.add(1),
            Err(_) => counters.failed_spawns.add(1),
        }
        spawned.map_err(|cause| refuse(&cause))
    }

    /// Brings an archive into the container.
    async fn fetch_archive(&self, download: &DownloadAction) -> Result<u64, TransferError> {
        let room = self.job.disk_bytes();
        self.executor
            .fetch_archive(download, self.folder, room)
            .await
    }
}

impl Leaves for Container<'_> {
    async fn run(
        &self,
        run: &RunAction,
        log_context: &LogContext,
        ready: Ready<'_>,
        mut stop: Shutdown,
    ) -> Outcome {
        let source = log_context.source.as_str();
        let (mut process, output) = match self.start(run, log_context).await {
            Ok(started) => started,
            Err(failure) => {
                self.log(source, failure.text());
                return Err(failure);
            }
        };
        ready.signal();
        let (mut tail, mut lines) = (Tail::default(), Lines::new(LINE_BYTES));
        let log = |line: &str| self.log(source, line);
        let silent = run.suppress_log_output && !log_context.checks;
        let ended = {
            let mut output = std::pin::pin!(follow(output, |bytes| {
                tail.push(bytes);
                match &log_context.heard {
                    Some(heard) => heard.push(bytes),
                    None if silent => {}
                    None => lines.push(&returns_as_ends(bytes), log),
                }
            }));
            let (mut read_all, mut asked, mut killed) = (false, false, false);
            let mut over = None;
            let now = tokio::time::Instant::now;
            let status = loop {
                tokio::select! {
                    status = process.ended() => break Some(status),
                    () = &mut output, if !read_all => read_all = true,
                    () = stop.requested(), if !asked => {
                        asked = true;
                        process.leader().signal(Signal::SIGTERM);
                        over = Some(now() + self.executor.settings.grace);
                    }
                    () = sleep_until(over.unwrap_or_else(now)), if over.is_some() => {
                        if killed {
                            break None;
                        }
                        killed = true;
                        self.executor.metrics.counters.killed.add(1);
                        process.leader().signal(Signal::SIGKILL);
                        over = Some(now() + KILLED_WITHIN);
                    }
                }
            };
            if !read_all {
                let _ = timeout(OUTPUT_WITHIN, output).await;
            }
            status.map(|status| (status, asked, killed))
        };
        lines.end(log);
        let Some((status, asked, killed)) = ended else {
            return Err(Failure::plain("process did not exit"));
        };
        let waited = |cause| Failure::plain(format!("{source}: wait for its process: {cause}"));
        let status = as_shells_say(status.map_err(waited)?);
        *lock(&self.exit_status) = Some(status);
        if log_context.checks {
            // What it wrote says why; its status is nothing that is told of a check.
            return match status {
                _ if killed => Err(Failure::killed()),
                _ if asked => Err(Failure::cancelled()),
                0 => Ok(()),
                _ => Err(Failure::worded("")),
            };
        }
        let limits = self.executor.limits.as_ref();
        let memory = status != 0 && limits.is_some_and(|it| it.out_of_memory(&self.job.name()));
        let memory = if memory { " (out of memory)" } else { "" };
        if !silent {
            let grace = go_duration(self.executor.settings.grace);
            let exceeded = match killed {
                true => format!(" (exceeded {grace} graceful shutdown interval)"),
                false => String::new(),
            };
            self.log(source, &format!("Exit status {status}{exceeded}{memory}"));
        }
        match status {
            _ if killed => Err(Failure::killed()),
            _ if asked => Err(Failure::cancelled()),
            0 => Ok(()),
            status => {
                let reason = format!("{source}: Exited with status {status}{memory}");
                let fields = self.fields().and("output-tail", tail.text(LOGGED_BYTES));
                let logger = &self.executor.logger;
                logger.error("process-failed", &reason, fields);
                Err(Failure::worded(reason))
            }
        }
    }

    async fn download(
        &self,
        download: &DownloadAction,
        log_context: &LogContext,
        mut stop: Shutdown,
    ) -> Outcome {
        let (source, artifact) = (log_context.source.as_str(), download.artifact.as_str());
        let of = match artifact {
            "" => String::new(),
            artifact => format!(" {artifact}"),
        };
        let say = |text: &str| {
            if !artifact.is_empty() {
                self.log(source, text);
            }
        };
        let _place = tokio::select! {
            place = self.executor.transfers.place_to_download() => place,
            () = stop.requested() => return Err(Failure::cancelled()),
        };
        say(&format!("Downloading{of}..."));
        let brought = tokio::select! {
            brought = self.fetch_archive(download) => brought,
            () = stop.requested() => return Err(Failure::cancelled()),
        };
        let error = match brought {
            Ok(0) => {
                say(&format!("Downloaded{of}"));
                return Ok(());
            }
            Ok(bytes) => {
                say(&format!("Downloaded{of} ({})", byte_size(bytes)));
                return Ok(());
            }
            Err(error) => error,
        };
        let fields = self.fields().and("to", &download.to);
        let logger = &self.executor.logger;
        logger.error("failed-to-download", &error, fields);
        let text = match error {
            TransferError::Place(cause) if !cause.is_about_the_format() => {
                format!("Copying{of} into the container failed: {cause}")
            }
            TransferError::User(why) => format!("Copying{of} into the container failed: {why}"),
            _ => format!("Downloading{of} failed"),
        };
        self.log(source, &text);
        Err(Failure::worded(text))
    }

    async fn upload(
        &self,
        upload: &UploadAction,
        log_context: &LogContext,
        mut stop: Shutdown,
    ) -> Outcome {
        let (source, artifact) = (log_context.source.as_str(), upload.artifact.as_str());
        let _place = tokio::select! {
            place = self.executor.transfers.place_to_upload() => place,
            () = stop.requested() => return Err(Failure::cancelled()),
        };
        let said = |text: &str| match artifact {
            "" => text.to_owned(),
            artifact => format!("{text} for {artifact}"),
        };
        let say = |text: &str| {
            if !artifact.is_empty() {
                self.log(source, text);
            }
        };
        say(&format!("Uploading {artifact}..."));
        let url = Url::parse(&upload.to).map_err(|cause| {
            say(&said("Failed to parse URL"));
            Failure::plain(cause.to_string())
        })?;
        let file = place::found(self.folder, &upload.from);
        if !file.is_file() {
            let text = said("Failed to establish stream from container");
            say(&text);
            return Err(Failure::worded(text));
        }
        let sent = tokio::select! {
            sent = self.executor.transfers.send(&file, &url) => sent,
            () = stop.requested() => return Err(Failure::cancelled()),
        };
        match sent {
            Ok(bytes) => {
                say(&format!("Uploaded {artifact} ({})", byte_size(bytes)));
                Ok(())
            }
            Err(error) => {
                let logger = &self.executor.logger;
                logger.error("failed-to-upload", &error, self.fields());
                say(&said("Failed to upload payload"));
                Err(Failure::plain(error.to_string()))
            }
        }
    }

    async fn run_check(&self, check: &Check) -> Result<(), String> {
        let port = self.job.host_port(check.port);
        probe::run_check(&self.job.address, port, check).await
    }

    fn write_log(&self, source: &str, text: &str) {
        self.log(source, text);
    }
}

/// The status of a process; one that was killed has 128 plus the signal.
fn as_shells_say(ended: Ended) -> i32 {
    let signal = ended.status.signal().unwrap_or_default();
    ended.status.code().unwrap_or(128 + signal)
}
