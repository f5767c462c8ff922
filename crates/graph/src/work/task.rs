//! A step's work with all it needs at hand.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use super::disk::DiskFile;
use super::equipment::{Equipment, Memory};
use super::error::WorkError;
use super::lock::NamedLock;
use super::sieve;
use super::stress_ng::Load;
use crate::Nanos;
use crate::topology::Work;
use crate::topology::budget::Costs;

/// Longest nominal work that an event loop does itself, in nanoseconds: about what handing
/// it to another thread costs twice.
pub const CHEAP: Nanos = 100_000;
/// What a touch of memory costs that neither a cache nor the table of pages at hand holds,
/// in nanoseconds.
const TOUCH_NS: f64 = 300.0;

/// A step's work, ready to be done by any thread, by several at once.
pub struct Task {
    pub(crate) kind: Kind,
    fits_event_loop: bool,
}

pub(crate) enum Kind {
    Cpu,
    Ops,
    Primes(u64),
    Memory(Arc<Memory>),
    Fork {
        program: OsString,
        arguments: Vec<OsString>,
    },
    Disk {
        file: Arc<DiskFile>,
        sync: bool,
    },
    Lock(Arc<NamedLock>),
    Sleep,
    StressNg(PathBuf),
    LoadBegin {
        load: Arc<Load>,
        job: PathBuf,
    },
    LoadWait(Arc<Load>),
    #[cfg(test)]
    Panic,
}

impl Task {
    /// Whether an event loop may do it itself: it never waits, and no draw of it takes more
    /// than [`CHEAP`].
    pub fn fits_event_loop(&self) -> bool {
        self.fits_event_loop
    }

    #[cfg(test)]
    pub(super) fn that_panics() -> Self {
        Self {
            kind: Kind::Panic,
            fits_event_loop: false,
        }
    }
}

impl Equipment {
    /// Makes ready what a step needs: memory is laid out and touched, the file is written.
    ///
    /// # Errors
    /// When the machine has less memory than the working set takes, the file cannot be made,
    /// or more is asked for than can be done.
    pub fn task(&mut self, work: &Work) -> Result<Task, WorkError> {
        let kind = match work {
            Work::Cpu(_) => Kind::Cpu,
            Work::Ops(_) => Kind::Ops,
            Work::Primes(limit) if *limit > sieve::MOST => {
                return Err(WorkError::TooMuch {
                    what: "the largest number for primes",
                    found: *limit,
                    most: sieve::MOST,
                });
            }
            Work::Primes(limit) => Kind::Primes(*limit),
            Work::Memory { set, .. } => Kind::Memory(self.memory(*set)?),
            Work::Fork(line) => {
                let mut words = line.iter().map(OsString::from);
                Kind::Fork {
                    program: words.next().unwrap_or_default(),
                    arguments: words.collect(),
                }
            }
            Work::Disk { sync, .. } => Kind::Disk {
                file: self.file(),
                sync: *sync,
            },
            Work::Lock { name, .. } => Kind::Lock(self.resources.lock(name)),
            Work::Sleep(_) => Kind::Sleep,
            Work::StressNg { job } => Kind::StressNg(job.clone()),
            Work::StressNgBackground { job } => Kind::LoadBegin {
                load: Arc::clone(&self.load),
                job: job.clone(),
            },
            Work::StressNgStatus => Kind::LoadWait(Arc::clone(&self.load)),
        };
        let costs = Costs {
            op: self.resources.calibration.op_ns,
            touch: TOUCH_NS,
            ..Costs::default()
        };
        Ok(Task {
            kind,
            fits_event_loop: !costs.is_handed_over(work),
        })
    }
}
