//! Work beside the requests: neighbours that take processor time and cache, as much as was
//! asked for and no more.
//!
//! A share of a processor is counted in the thread's own time. A neighbour that is itself
//! disturbed catches up, so what it does to others is the same in every round.

mod duty;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use rustix::thread::CpuSet;

use crate::Nanos;
use crate::lock;
use crate::topology::Background;
use crate::work::spin::{self, thread_cpu};
use crate::work::stop::{LOOK, Stop};
use crate::work::{Memory, SharedResources, WorkError, affinity};

use duty::{DutyCycle, Turn};

/// Most threads of all neighbours together.
const THREADS: u64 = 1024;
/// Lines that are touched between two readings of the clock.
const TOUCHES: u64 = 1 << 10;

/// What a neighbour has done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Its own.
    pub name: String,
    /// Whether it is at work now.
    pub active: bool,
    /// Processor time of its threads so far, in nanoseconds.
    pub cpu: Nanos,
}

/// The neighbours of a graph. Dropping it stops them, without waiting.
pub struct Neighbours {
    all: Vec<(String, Vec<Arc<Progress>>)>,
    stop: Stop,
    threads: Arc<(Mutex<usize>, Condvar)>,
}

#[derive(Default)]
struct Progress {
    active: AtomicBool,
    cpu: AtomicU64,
}

/// A thread of a neighbour.
struct Neighbour {
    resources: Arc<SharedResources>,
    cpus: CpuSet,
    share: f64,
    memory: Option<Memory>,
    from: Nanos,
    until: Nanos,
    progress: Arc<Progress>,
    stop: Stop,
}

impl Neighbours {
    /// Lays out their memory and starts their threads; the times of each count from now.
    /// With a share of zero memory is held and nothing is done.
    ///
    /// # Errors
    /// When they shall run on a processor that this process may not use, or take more
    /// memory or threads than there are.
    pub fn start(resources: &Arc<SharedResources>, all: &[Background]) -> Result<Self, WorkError> {
        let found = all.iter().map(|one| u64::from(one.threads)).sum();
        if found > THREADS {
            return Err(WorkError::TooMuch {
                what: "the number of background threads",
                found,
                most: THREADS,
            });
        }
        let mut neighbours = Self {
            all: Vec::new(),
            stop: Stop::default(),
            threads: Arc::default(),
        };
        let now = wire::clock::now();
        for one in all {
            let cpus = affinity::processors(&one.cpus, &resources.allowed)?;
            let from = now.saturating_add(one.from);
            let mut progress = Vec::new();
            for _ in 0..one.threads {
                let memory = match one.memory {
                    0 => None,
                    bytes => Some(Memory::new(resources, bytes)?),
                };
                let neighbour = Neighbour {
                    resources: Arc::clone(resources),
                    cpus,
                    share: one.cpu_share,
                    memory,
                    from,
                    until: one
                        .lasts
                        .map_or(Nanos::MAX, |time| from.saturating_add(time)),
                    progress: Arc::default(),
                    stop: neighbours.stop.clone(),
                };
                progress.push(Arc::clone(&neighbour.progress));
                neighbours.start_thread(&one.name, neighbour)?;
            }
            neighbours.all.push((one.name.clone(), progress));
        }
        Ok(neighbours)
    }

    fn start_thread(&self, name: &str, neighbour: Neighbour) -> Result<(), WorkError> {
        let threads = Arc::clone(&self.threads);
        *lock(&threads.0) += 1;
        let started = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                neighbour.run();
                drop(neighbour);
                *lock(&threads.0) -= 1;
                threads.1.notify_all();
            });
        started.map_err(|found| {
            *lock(&self.threads.0) -= 1;
            WorkError::system("start a thread")(found)
        })?;
        Ok(())
    }

    /// What each has done so far, in their order.
    pub fn seen(&self) -> Vec<Seen> {
        let each = self.all.iter().map(|(name, threads)| Seen {
            name: name.clone(),
            active: threads
                .iter()
                .any(|thread| thread.active.load(Ordering::Relaxed)),
            cpu: threads
                .iter()
                .map(|thread| thread.cpu.load(Ordering::Relaxed))
                .sum(),
        });
        each.collect()
    }

    /// Stops them all; whether they ended within a time.
    pub fn stop_within(self, longest: Duration) -> bool {
        self.stop.request();
        let (count, ended) = &*self.threads;
        let count = lock(count);
        let left = ended.wait_timeout_while(count, longest, |count| *count > 0);
        *left.unwrap_or_else(PoisonError::into_inner).0 == 0
    }
}

impl Drop for Neighbours {
    fn drop(&mut self) {
        self.stop.request();
    }
}

impl Neighbour {
    fn run(&self) {
        wire::clock::precise_timers();
        // Processors can be taken away while a process runs; then the kernel chooses.
        let _ = rustix::thread::sched_setaffinity(None, &self.cpus);
        self.rest_until(self.from);
        let begun = thread_cpu();
        let mut duty = DutyCycle::new(self.share, wire::clock::now(), begun);
        loop {
            let now = wire::clock::now();
            let active = now < self.until && !self.stop.is_requested();
            self.progress.active.store(active, Ordering::Relaxed);
            if !active {
                return;
            }
            let left = self.until - now;
            match duty.next(now, thread_cpu()) {
                Turn::Work(time) => self.work(time.min(left)),
                Turn::Rest(time) => self.rest_until(now + time.min(left)),
            }
            let cpu = thread_cpu() - begun;
            self.progress.cpu.store(cpu, Ordering::Relaxed);
        }
    }

    /// Takes so much of the thread's own time.
    fn work(&self, time: Nanos) {
        let Some(memory) = &self.memory else {
            spin::cpu(time, self.resources.calibration(), &self.stop);
            return;
        };
        let begun = thread_cpu();
        while thread_cpu() - begun < time && !self.stop.is_requested() {
            memory.set.walk(TOUCHES, &self.stop);
        }
    }

    fn rest_until(&self, time: Nanos) {
        loop {
            let left = time.saturating_sub(wire::clock::now());
            if left == 0 || self.stop.is_requested() {
                return;
            }
            wire::clock::nap(Duration::from_nanos(left).min(LOOK));
        }
    }
}

#[cfg(test)]
mod tests;
