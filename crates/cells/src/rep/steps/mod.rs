//! What a container does from its start to its end, as a tree of steps.
//!
//! A step is performed to its outcome; it may be asked to stop, and tells once when it is
//! ready. How programs run, files come and go and checks are made is somebody else's
//! business ([`Leaves`]), so that the rules are the same for all executors and can be
//! tested without any. They, and the texts of failures, are those of Diego's executor.

mod container;
mod failure;
mod go;
mod health;
mod performing;
mod ready;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use diego::models::{DownloadAction, RunAction, UploadAction};
use net::Shutdown;

use crate::mutex::lock;
use crate::pool::Pool;
pub(super) use container::Plan;
pub(super) use failure::Failure;
pub(super) use go::{byte_size, duration as go_duration};
pub(super) use health::{Check, CheckGroup, Health};
pub(super) use ready::Ready;

/// How a step ended.
pub(super) type Outcome = Result<(), Failure>;
/// A step under way.
type Performing<'a> = Pin<Box<dyn Future<Output = Outcome> + Send + 'a>>;

/// How deep actions may be nested.
const DEPTH_MAX: usize = 64;
/// Bytes kept of what a check says.
const SAID_BYTES: usize = 16 * 1024;

/// What containers tell about themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    /// It runs: its check has passed, or its process was started where it has none.
    Running,
    /// Requests may, or may not, be routed to it from now on.
    Routable(bool),
}

/// What steps are made of. Whatever takes a `stop` ends soon after it was asked.
pub(super) trait Leaves: Sync {
    /// Runs a program to its end. `ready` once it was started.
    fn run(
        &self,
        run: &RunAction,
        log_context: &LogContext,
        ready: Ready<'_>,
        stop: Shutdown,
    ) -> impl Future<Output = Outcome> + Send;

    /// Brings files into the container.
    fn download(
        &self,
        download: &DownloadAction,
        log_context: &LogContext,
        stop: Shutdown,
    ) -> impl Future<Output = Outcome> + Send;

    /// Takes a file out of the container.
    fn upload(
        &self,
        upload: &UploadAction,
        log_context: &LogContext,
        stop: Shutdown,
    ) -> impl Future<Output = Outcome> + Send;

    /// Makes a check once; the error is for the log. May be dropped.
    fn run_check(&self, check: &Check) -> impl Future<Output = Result<(), String>> + Send;

    /// Writes a line into the container's log.
    fn write_log(&self, source: &str, text: &str);
}

/// In whose name a step speaks.
#[derive(Debug, Clone)]
pub(super) struct LogContext {
    /// The source of its log lines.
    pub(super) source: String,
    /// Takes what programs write, instead of the log.
    pub(super) heard: Option<Arc<CapturedOutput>>,
    /// It checks the container: that a program failed is told by what it wrote, not by its
    /// status.
    pub(super) checks: bool,
}

impl LogContext {
    /// Of the container itself.
    pub(super) fn new(source: impl Into<String>) -> Self {
        Self {
            source: source.into(),
            heard: None,
            checks: false,
        }
    }

    /// The same under another name, if there is one.
    fn named(&self, source: &str) -> Self {
        let mut log_context = self.clone();
        if !source.is_empty() {
            source.clone_into(&mut log_context.source);
        }
        log_context
    }
}

/// The beginning of what programs wrote.
#[derive(Debug, Default)]
pub(super) struct CapturedOutput(Mutex<Vec<u8>>);

impl CapturedOutput {
    /// Adds what was written, up to 16 KiB of all.
    pub(super) fn push(&self, bytes: &[u8]) {
        let mut said = lock(&self.0);
        let room = SAID_BYTES.saturating_sub(said.len());
        said.extend(&bytes[..bytes.len().min(room)]);
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&lock(&self.0)).trim().to_owned()
    }
}

/// How often containers are checked, and how many at once.
#[derive(Debug, Clone)]
pub(super) struct Monitoring {
    /// Between two checks of one that is healthy, where the check does not say.
    pub(super) healthy: Duration,
    /// Between two checks of one that is not healthy yet.
    pub(super) unhealthy: Duration,
    /// Workers for checks by program.
    pub(super) pool: Pool,
}

/// Performs steps by their leaves.
pub(super) struct Steps<'a, L> {
    pub(super) leaves: &'a L,
    pub(super) monitoring: &'a Monitoring,
}
