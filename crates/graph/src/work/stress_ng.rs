//! stress-ng with a job file: to its end, or beside the requests.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::error::WorkError;
use super::program::Running;
use super::stop::Stop;
use crate::Nanos;
use crate::lock;

/// How long the end of a service waits for the end of its load.
const END: Duration = Duration::from_secs(2);

/// Starts stress-ng, which reads the file itself, so that a change of it shows at once.
pub(crate) fn start(program: &OsStr, job: &Path) -> Result<Running, WorkError> {
    // stress-ng says it worse.
    let found = std::fs::File::open(job);
    found.map_err(|found| WorkError::NoJob {
        path: job.to_owned(),
        found,
    })?;
    Running::start(program, [OsStr::new("--job"), job.as_os_str()])
}

/// How often the load of an instance ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LoadStatus {
    /// Loads that were started.
    pub started: u64,
    /// Those that ended, well or not.
    pub done: u64,
    /// Those that ended with a failure.
    pub failed: u64,
}

impl LoadStatus {
    /// Whether one runs.
    pub fn is_running(&self) -> bool {
        self.done < self.started
    }
}

/// stress-ng beside the requests of an instance: one at a time.
#[derive(Debug, Default)]
pub(crate) struct Load {
    status: Mutex<LoadStatus>,
    ended: Condvar,
    stop: Stop,
}

impl Load {
    pub(crate) fn status(&self) -> LoadStatus {
        *lock(&self.status)
    }

    /// Starts it, unless it runs already or is being stopped. Returns when it has been
    /// started; whether it has.
    ///
    /// # Errors
    /// When it cannot be started. How it ends is told by [`Load::status`].
    pub(crate) fn begin(self: &Arc<Self>, program: &OsStr, job: &Path) -> Result<bool, WorkError> {
        {
            let mut status = lock(&self.status);
            if status.is_running() || self.stop.is_requested() {
                return Ok(false);
            }
            // From here on nobody else starts one, though the lock is free again.
            status.started += 1;
        }
        let watcher = start(program, job).and_then(|running| {
            let load = Arc::clone(self);
            let watch = move || {
                let outcome = running.wait(Nanos::MAX, &load.stop);
                load.ended(outcome.is_err());
            };
            let thread = std::thread::Builder::new().name("load".to_owned());
            thread
                .spawn(watch)
                .map_err(WorkError::system("start a thread"))
        });
        match watcher {
            Ok(_) => Ok(true),
            Err(error) => {
                self.ended(true);
                Err(error)
            }
        }
    }

    fn ended(&self, failed: bool) {
        let mut status = lock(&self.status);
        status.done += 1;
        status.failed += u64::from(failed);
        self.ended.notify_all();
    }

    /// Waits until none runs.
    ///
    /// # Errors
    /// When the deadline passed or the wait was stopped.
    pub(crate) fn wait(&self, deadline: Nanos, stop: &Stop) -> Result<LoadStatus, WorkError> {
        let mut status = lock(&self.status);
        while status.is_running() {
            let longest = stop.patience(deadline, "wait for the end of stress-ng")?;
            let waited = self.ended.wait_timeout(status, longest);
            status = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(*status)
    }

    /// Ends it for good.
    pub(crate) fn end(&self) {
        self.stop.request();
        let until = wire::clock::now() + u64::try_from(END.as_nanos()).unwrap_or(0);
        // What the kernel does not end by then is left to it.
        let _ = self.wait(until, &Stop::default());
    }
}
