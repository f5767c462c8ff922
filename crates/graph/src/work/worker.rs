//! One thread's hands.

use std::sync::Arc;
use std::time::Duration;

use super::Done;
use super::disk;
use super::equipment::SharedResources;
use super::error::WorkError;
use super::program::Running;
use super::sieve::Sieve;
use super::spin::{self, thread_cpu};
use super::stop::{LOOK, Stop};
use super::stress_ng;
use super::task::{Kind, Task};
use crate::Nanos;

/// Does work on the calling thread, in memory that it keeps.
pub struct Worker {
    resources: Arc<SharedResources>,
    stop: Stop,
    sieve: Sieve,
    buffer: Vec<u8>,
}

/// What a kind of work tells about itself.
#[derive(Default)]
struct Outcome {
    count: u64,
    /// Time of the work's own waits; or all that was no processor time.
    waited: Waited,
    /// Processor time of programs.
    programs: Nanos,
}

#[derive(Default)]
enum Waited {
    #[default]
    Never,
    For(Nanos),
    Throughout,
}

impl Worker {
    /// One for the calling thread.
    pub fn new(resources: &Arc<SharedResources>) -> Self {
        Self::stopped_by(resources, Stop::default())
    }

    pub(crate) fn stopped_by(resources: &Arc<SharedResources>, stop: Stop) -> Self {
        Self {
            resources: Arc::clone(resources),
            stop,
            sieve: Sieve::default(),
            buffer: Vec::new(),
        }
    }

    /// Does a piece of work, to its end. `amount` is in the unit of the work's first amount
    /// (for a disk: bytes to read), `second` are bytes to write to a disk; values below zero
    /// count as zero. Work that waits gives up at the deadline, on the monotonic clock;
    /// work that computes is done whole once it has begun.
    ///
    /// # Errors
    /// When the deadline has passed, a program or the disk fails, or the worker is stopped.
    pub fn perform(
        &mut self,
        task: &Task,
        amount: f64,
        second: f64,
        deadline: Nanos,
    ) -> Result<Done, WorkError> {
        let begun = wire::clock::now();
        if deadline <= begun {
            return Err(WorkError::Late {
                doing: "begin work",
            });
        }
        let done = if matches!(task.kind, Kind::Cpu) {
            // It reads the clock itself; a second pair of readings would only add to it.
            let cpu = spin::cpu(amount as Nanos, &self.resources.calibration, &self.stop);
            Done {
                wall: wire::clock::now() - begun,
                cpu,
                ..Done::default()
            }
        } else {
            let cpu = thread_cpu();
            let outcome = self.act(&task.kind, amount, second, deadline)?;
            let cpu = thread_cpu() - cpu + outcome.programs;
            let wall = wire::clock::now() - begun;
            let waited = match outcome.waited {
                Waited::Never => 0,
                Waited::For(time) => time,
                Waited::Throughout => wall.saturating_sub(cpu),
            };
            Done {
                wall,
                cpu,
                waited,
                count: outcome.count,
            }
        };
        // Stopped work is not all of it.
        match self.stop.is_requested() {
            true => Err(WorkError::Stopped),
            false => Ok(done),
        }
    }

    fn act(
        &mut self,
        kind: &Kind,
        amount: f64,
        second: f64,
        deadline: Nanos,
    ) -> Result<Outcome, WorkError> {
        let whole = amount as u64;
        let counted = |count| Outcome {
            count,
            ..Outcome::default()
        };
        let waited = |count, programs| Outcome {
            count,
            waited: Waited::Throughout,
            programs,
        };
        Ok(match kind {
            #[cfg(test)]
            Kind::Panic => panic!("a defect"),
            Kind::Cpu => counted(0),
            Kind::Ops => counted(spin::ops_until(whole, &self.stop)),
            Kind::Primes(limit) => {
                let primes = self.sieve.count(*limit, &self.stop);
                counted(primes.ok_or(WorkError::Stopped)?)
            }
            Kind::Memory(memory) => counted(memory.set.walk(whole, &self.stop)),
            Kind::Fork { program, arguments } => {
                let running = Running::start(program, arguments)?;
                waited(0, running.wait(deadline, &self.stop)?)
            }
            Kind::Disk { file, sync } => {
                self.buffer.resize(disk::CHUNK, 0);
                let read = file.read(whole, &mut self.buffer, &self.stop)?;
                let write = second as u64;
                let written = file.write(write, *sync, &mut self.buffer, &self.stop)?;
                waited(read + written, 0)
            }
            Kind::Lock(lock) => {
                let asked = wire::clock::now();
                let _held = lock.take(deadline, &self.stop)?;
                let time = wire::clock::now() - asked;
                spin::cpu(whole, &self.resources.calibration, &self.stop);
                Outcome {
                    waited: Waited::For(time),
                    ..Outcome::default()
                }
            }
            Kind::Sleep => {
                self.sleep(whole, deadline)?;
                waited(0, 0)
            }
            Kind::StressNg(job) => {
                let running = stress_ng::start(&self.resources.stress_ng, job)?;
                waited(0, running.wait(deadline, &self.stop)?)
            }
            Kind::LoadBegin { load, job } => {
                load.begin(&self.resources.stress_ng, job)?;
                waited(0, 0)
            }
            Kind::LoadWait(load) => {
                load.wait(deadline, &self.stop)?;
                waited(0, 0)
            }
        })
    }

    fn sleep(&self, length: Nanos, deadline: Nanos) -> Result<(), WorkError> {
        let until = wire::clock::now().saturating_add(length);
        if until > deadline {
            return Err(WorkError::Late {
                doing: "sleep for longer than there is time",
            });
        }
        loop {
            let left = until.saturating_sub(wire::clock::now());
            match left {
                0 => return Ok(()),
                _ if self.stop.is_requested() => return Err(WorkError::Stopped),
                _ => wire::clock::nap(Duration::from_nanos(left).min(LOOK)),
            }
        }
    }
}
