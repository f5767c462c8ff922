//! Threads for work that would hold up other requests.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use rustix::thread::CpuSet;

use super::affinity;
use super::equipment::SharedResources;
use super::error::WorkError;
use super::inbox::{Ended, Inbox};
use super::stop::Stop;
use super::task::Task;
use super::worker::Worker;
use crate::Nanos;
use crate::lock;

/// Stack of a worker: work has no deep calls.
const STACK: usize = 256 << 10;

/// The threads of one instance. They start with the jobs that need them, so an instance
/// without work has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkersConfig {
    /// Names the threads; Linux shows the first 15 bytes.
    pub name: String,
    /// Most threads; at least 1.
    pub threads: u32,
    /// Most jobs that wait for a thread.
    pub queue: u32,
    /// Processors that they may use; empty: all that the process may.
    pub cpus: Vec<u32>,
}

/// A piece of work to be done.
pub struct Job {
    /// The step's.
    pub task: Arc<Task>,
    /// See [`Worker::perform`].
    pub amount: f64,
    /// See [`Worker::perform`].
    pub second: f64,
    /// Comes back with the result.
    pub key: u64,
    /// A job that was not begun by then is not done; `Nanos::MAX`: no end.
    pub deadline: Nanos,
}

/// Why a job was not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// As many jobs wait as may.
    #[error("the queue for work is full; more workers, a longer queue or less load are needed")]
    Full,
    /// The service is being stopped.
    #[error("the service stops and takes no more work")]
    Stopped,
    /// The system gives no thread.
    #[error("the system gave no thread for work; look at the limits for threads and memory")]
    NoThread,
}

impl Refused {
    /// The reason in a word, for metrics and answers.
    pub fn cause(self) -> &'static str {
        match self {
            Self::Full => "queue-full",
            Self::Stopped => "stopped",
            Self::NoThread => "no-thread",
        }
    }
}

/// The threads that do the work of one instance. Dropping it stops them, without waiting.
pub struct Workers {
    pool: Arc<Pool>,
}

struct Pool {
    resources: Arc<SharedResources>,
    inbox: Arc<Inbox>,
    config: WorkersConfig,
    cpus: CpuSet,
    stop: Stop,
    state: Mutex<State>,
    /// A job was put in, or the pool is stopped.
    ready: Condvar,
    /// A thread has ended.
    left: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<(Job, Nanos)>,
    threads: usize,
    /// Threads that do a job. The others wait for one, or are about to.
    busy: usize,
    stopped: bool,
}

impl State {
    /// Jobs that wait although every thread that could take one will.
    fn queued(&self) -> usize {
        self.waiting.len().saturating_sub(self.threads - self.busy)
    }
}

impl Workers {
    /// Workers whose results go to an inbox.
    ///
    /// # Errors
    /// When they shall run on a processor that this process may not use.
    pub fn new(
        resources: &Arc<SharedResources>,
        inbox: &Arc<Inbox>,
        config: WorkersConfig,
    ) -> Result<Self, WorkError> {
        let cpus = affinity::processors(&config.cpus, &resources.allowed)?;
        Ok(Self {
            pool: Arc::new(Pool {
                resources: Arc::clone(resources),
                inbox: Arc::clone(inbox),
                config,
                cpus,
                stop: Stop::default(),
                state: Mutex::default(),
                ready: Condvar::new(),
                left: Condvar::new(),
            }),
        })
    }

    /// Hands a job over. Each that is accepted comes back exactly once by the inbox.
    ///
    /// # Errors
    /// When as many wait as may, or no thread can be had; the job is dropped.
    pub fn submit(&self, job: Job) -> Result<(), Refused> {
        let submitted = wire::clock::now();
        let pool = &self.pool;
        let mut state = lock(&pool.state);
        if state.stopped {
            return Err(Refused::Stopped);
        }
        let most = pool.config.threads.max(1) as usize;
        let free = most - state.busy;
        if state.waiting.len() >= free + pool.config.queue as usize {
            return Err(Refused::Full);
        }
        if state.waiting.len() >= state.threads - state.busy && state.threads < most {
            // It waits for the lock that is held here, and then finds the job.
            let started = pool.start_thread();
            state.threads += usize::from(started);
            if state.threads == 0 {
                return Err(Refused::NoThread);
            }
        }
        state.waiting.push_back((job, submitted));
        drop(state);
        pool.ready.notify_one();
        Ok(())
    }

    /// Jobs that wait for a thread.
    pub fn waiting(&self) -> usize {
        lock(&self.pool.state).queued()
    }

    /// Stops as [`Workers::stop_within`] does, without waiting.
    pub fn request_stop(&self) {
        self.pool.stop();
    }

    #[cfg(test)]
    pub(super) fn threads(&self) -> usize {
        lock(&self.pool.state).threads
    }

    /// Stops: jobs that wait come back at once, those that run as soon as they can be
    /// interrupted (a microsecond for work that computes, 50 ms for a lock, half a second
    /// for a program that does not want to end; for the disk when it answers). Whether all
    /// threads ended within a time.
    pub fn stop_within(self, longest: Duration) -> bool {
        self.pool.stop();
        let state = lock(&self.pool.state);
        let left = self
            .pool
            .left
            .wait_timeout_while(state, longest, |state| state.threads > 0);
        left.unwrap_or_else(PoisonError::into_inner).0.threads == 0
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.pool.stop();
    }
}

impl Pool {
    fn start_thread(self: &Arc<Self>) -> bool {
        let pool = Arc::clone(self);
        let thread = std::thread::Builder::new()
            .name(self.config.name.clone())
            .stack_size(STACK);
        thread.spawn(move || pool.run()).is_ok()
    }

    /// The life of a thread.
    fn run(&self) {
        wire::clock::precise_timers();
        // Processors can be taken away while a process runs; then the kernel chooses.
        let _ = rustix::thread::sched_setaffinity(None, &self.cpus);
        let mut worker = Worker::stopped_by(&self.resources, self.stop.clone());
        while let Some((job, submitted)) = self.next() {
            let begun = wire::clock::now();
            let work = || worker.perform(&job.task, job.amount, job.second, job.deadline);
            // A thread that ended by a defect would take its jobs' requests with it.
            let result = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
                worker = Worker::stopped_by(&self.resources, self.stop.clone());
                Err(WorkError::Panicked)
            });
            // Before the result is seen: who then hands over another finds a free thread.
            lock(&self.state).busy -= 1;
            self.inbox.put(Ended {
                key: job.key,
                submitted,
                begun,
                result,
            });
        }
        lock(&self.state).threads -= 1;
        self.left.notify_all();
    }

    /// Waits for a job; `None` when the pool was stopped.
    fn next(&self) -> Option<(Job, Nanos)> {
        let mut state = lock(&self.state);
        loop {
            if let Some(job) = state.waiting.pop_front() {
                state.busy += 1;
                return Some(job);
            }
            if state.stopped {
                return None;
            }
            let waited = self.ready.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn stop(&self) {
        self.stop.request();
        let waiting = {
            let mut state = lock(&self.state);
            state.stopped = true;
            std::mem::take(&mut state.waiting)
        };
        self.ready.notify_all();
        let begun = wire::clock::now();
        for (job, submitted) in waiting {
            self.inbox.put(Ended {
                key: job.key,
                submitted,
                begun,
                result: Err(WorkError::Stopped),
            });
        }
    }
}
