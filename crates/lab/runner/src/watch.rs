//! Samples of all watched systems, ten times a second.

use std::collections::BTreeMap;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use lab_store::{Appender, ProcessSample, RunFolder, StoreError, SystemProcess};
use measure::{Clock, Marks, Ticks, Trees};

use crate::alarm::Alarm;
use crate::progress::Status;
use crate::underway::Viewers;
use crate::usage::{self, Usage};

/// Time between two samples.
const PERIOD: Duration = Duration::from_millis(100);
/// Sampling takes at most one part in so many of a processor: where there are very many
/// processes, samples are further apart.
const PART: u32 = 20;

/// A system to watch: its first process, and how the others are known.
struct Watched {
    name: String,
    pid: u32,
    marks: Marks,
}

/// A thread that samples systems into `series/processes.csv`.
///
/// It has a thread of its own so that nothing in the rest of the laboratory can
/// delay a sample.
#[derive(Debug)]
pub(crate) struct Watcher {
    systems: Sender<Watched>,
    living: Living,
    thread: JoinHandle<()>,
}

/// Processes of each system, as the last sample found them.
type Living = Arc<Mutex<BTreeMap<String, Vec<u32>>>>;

impl Watcher {
    pub(crate) fn start(
        folder: &RunFolder,
        clock: Clock,
        (status, viewers): (Status, Viewers),
        alarm: Alarm,
    ) -> Result<Self, StoreError> {
        let samples = folder.appender::<ProcessSample>()?;
        let each = folder.appender::<SystemProcess>()?;
        let (systems, added) = mpsc::channel();
        let living = Living::default();
        let watch = Watch {
            clock,
            living: Arc::clone(&living),
            samples,
            usage: Usage::start(folder)?,
            status,
            viewers,
            trees: Trees::new(),
            names: Vec::new(),
        };
        let thread = std::thread::spawn(move || {
            if let Err(error) = watch.run(&added, each) {
                alarm.broken(error);
            }
        });
        Ok(Self {
            systems,
            living,
            thread,
        })
    }

    /// The processes of a system, as the last sample found them.
    pub(crate) fn living(&self, name: &str) -> Vec<u32> {
        let living = self.living.lock().unwrap_or_else(PoisonError::into_inner);
        living.get(name).cloned().unwrap_or_default()
    }

    /// Watches a system from now on: the process `pid` and all that belong to it.
    pub(crate) fn add(&self, name: &str, pid: u32, marks: Marks) {
        // The thread ends before us only after an error, which was raised.
        let _ = self.systems.send(Watched {
            name: name.to_owned(),
            pid,
            marks,
        });
    }

    /// Takes no further samples; returns once all are written.
    pub(crate) fn stop(self) {
        drop(self.systems);
        let _ = self.thread.join();
    }
}

/// Processor time of the calling thread so far.
pub(crate) fn cpu_of_thread() -> Duration {
    let clock = nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID;
    clock.now().map_or(Duration::ZERO, Duration::from)
}

struct Watch {
    clock: Clock,
    living: Living,
    samples: Appender<ProcessSample>,
    usage: Usage,
    status: Status,
    viewers: Viewers,
    trees: Trees,
    /// Names of the systems, by the number of their tree.
    names: Vec<String>,
}

impl Watch {
    fn run(
        mut self,
        added: &Receiver<Watched>,
        each: Appender<SystemProcess>,
    ) -> Result<(), String> {
        let mut ticks = Ticks::new(Instant::now() + PERIOD, PERIOD);
        let mut earliest = Instant::now();
        let mut usage_again = earliest;
        loop {
            let deadline = ticks.next_deadline(Instant::now()).max(earliest);
            loop {
                let left = deadline.saturating_duration_since(Instant::now());
                match added.recv_timeout(left) {
                    Ok(system) => {
                        // The end of one is reported by whoever waits for it.
                        if self.trees.add(system.pid, system.marks).is_some() {
                            self.names.push(system.name);
                        }
                    }
                    Err(RecvTimeoutError::Timeout) => break,
                    Err(RecvTimeoutError::Disconnected) => {
                        let flushed = self.samples.flush().and_then(|()| self.usage.flush());
                        flushed.map_err(|error| error.to_string())?;
                        return self.list(each).map_err(|error| error.to_string());
                    }
                }
            }
            let (began, cpu) = (Instant::now(), cpu_of_thread());
            self.sample_all().map_err(|error| error.to_string())?;
            earliest = began + cpu_of_thread().saturating_sub(cpu) * PART;
            if began >= usage_again {
                let cpu = cpu_of_thread();
                let sampled = self
                    .usage
                    .sample(self.clock.now_s(), &self.trees, &self.names);
                sampled.map_err(|error| error.to_string())?;
                let cost = cpu_of_thread().saturating_sub(cpu) * usage::PART;
                usage_again = began + cost.max(usage::PERIOD);
            }
        }
    }

    fn sample_all(&mut self) -> Result<(), StoreError> {
        let t_s = self.clock.now_s();
        for found in self.trees.sample() {
            let name = &self.names[found.tree];
            let living = self.trees.living(found.tree).to_vec();
            {
                let mut all = self.living.lock().unwrap_or_else(PoisonError::into_inner);
                all.insert(name.clone(), living);
            }
            let Some(sample) = found.sample else { continue };
            let sample = ProcessSample {
                t_s,
                system: name.clone(),
                cpu_cores: sample.cpu_cores,
                rss_bytes: sample.memory_bytes,
                fds: sample.fds,
                threads: sample.threads,
            };
            self.samples.append(&sample)?;
            self.status.sampled(sample);
        }
        match self.viewers.wanted() {
            true => self.samples.flush(),
            false => Ok(()),
        }
    }

    /// Lists the processes of each system.
    fn list(self, mut each: Appender<SystemProcess>) -> Result<(), StoreError> {
        for (name, (members, more)) in self.names.iter().zip(self.trees.into_members()) {
            for member in members {
                each.append(&SystemProcess {
                    system: name.clone(),
                    pid: member.pid,
                    parent: member.parent,
                    command: member.command,
                    from_s: self.clock.seconds(member.seen.0),
                    to_s: self.clock.seconds(member.seen.1),
                    cpu_s: member.cpu.as_secs_f64(),
                    cpu_cores_max: member.cpu_cores_max,
                    rss_bytes_max: member.rss_bytes_max,
                })?;
            }
            if more > 0 {
                each.append(&SystemProcess::more(name, more))?;
            }
        }
        each.flush()
    }
}
