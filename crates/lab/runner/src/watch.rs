//! Samples of all watched processes, ten times a second.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use lab_store::{Appender, ProcessSample, RunFolder, StoreError};
use measure::{Clock, ProcessSampler, SampleError, Ticks};

use crate::alarm::Alarm;
use crate::progress::Status;

/// Time between two samples of a process.
const PERIOD: Duration = Duration::from_millis(100);

/// A thread that samples processes into `series/processes.csv`.
///
/// It has a thread of its own so that nothing in the rest of the laboratory can
/// delay a sample.
#[derive(Debug)]
pub(crate) struct Watcher {
    processes: Sender<(String, u32)>,
    thread: JoinHandle<()>,
}

impl Watcher {
    pub(crate) fn start(
        folder: &RunFolder,
        clock: Clock,
        status: Status,
        alarm: Alarm,
    ) -> Result<Self, StoreError> {
        let samples = folder.appender::<ProcessSample>()?;
        let (processes, added) = mpsc::channel();
        let watch = Watch {
            clock,
            samples,
            status,
            watched: Vec::new(),
        };
        let thread = std::thread::spawn(move || {
            if let Err(error) = watch.run(&added) {
                alarm.broken(error);
            }
        });
        Ok(Self { processes, thread })
    }

    /// Watches a process from now on, under the name of its system.
    pub(crate) fn add(&self, name: &str, pid: u32) {
        // The thread ends before us only after an error, which was raised.
        let _ = self.processes.send((name.to_owned(), pid));
    }

    /// Takes no further samples; returns once all are written.
    pub(crate) fn stop(self) {
        drop(self.processes);
        let _ = self.thread.join();
    }
}

struct Watch {
    clock: Clock,
    samples: Appender<ProcessSample>,
    status: Status,
    watched: Vec<(String, ProcessSampler)>,
}

impl Watch {
    fn run(mut self, added: &Receiver<(String, u32)>) -> Result<(), String> {
        let mut ticks = Ticks::new(Instant::now() + PERIOD, PERIOD);
        loop {
            let deadline = ticks.next_deadline(Instant::now());
            loop {
                let left = deadline.saturating_duration_since(Instant::now());
                match added.recv_timeout(left) {
                    Ok((name, pid)) => match ProcessSampler::new(pid) {
                        Ok(sampler) => self.watched.push((name, sampler)),
                        // Its end is reported by whoever waits for it.
                        Err(SampleError::Gone { .. }) => {}
                        Err(error) => return Err(error.to_string()),
                    },
                    Err(RecvTimeoutError::Timeout) => break,
                    Err(RecvTimeoutError::Disconnected) => {
                        return self.samples.flush().map_err(|error| error.to_string());
                    }
                }
            }
            self.sample_all()?;
        }
    }

    fn sample_all(&mut self) -> Result<(), String> {
        let mut gone = Vec::new();
        for (index, (name, sampler)) in self.watched.iter_mut().enumerate() {
            let sample = match sampler.sample() {
                Ok(sample) => sample,
                Err(SampleError::Gone { .. }) => {
                    gone.push(index);
                    continue;
                }
                Err(error) => return Err(format!("watch {name}: {error}")),
            };
            let sample = ProcessSample {
                t_s: self.clock.now_s(),
                system: name.clone(),
                cpu_cores: sample.cpu_cores,
                rss_bytes: sample.rss_bytes,
                fds: sample.fds,
                threads: sample.threads,
            };
            self.samples
                .append(&sample)
                .map_err(|error| error.to_string())?;
            self.status.sampled(sample);
        }
        for index in gone.into_iter().rev() {
            self.watched.remove(index);
        }
        Ok(())
    }
}
