//! Logs that programs write themselves: their new lines, gathered into the folder of the run.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use lab_experiment::plan::Plan;
use lab_lifecycle::Gatherer;
use lab_store::{RunFile, RunFolder};

use crate::alarm::Alarm;
use crate::options::RunError;
use crate::processes::{Addresses, copy_names};

/// Time between two looks at the files.
const PERIOD: Duration = Duration::from_millis(50);

/// The name of the log into which a copy's own files are gathered.
pub(crate) fn gathered(copy: &str) -> String {
    format!("{copy}.files")
}

/// A thread that gathers the lines of all systems' own files.
#[derive(Debug)]
pub(crate) struct Inputs(Option<(Sender<()>, JoinHandle<()>)>);

/// The files of one copy, and where their lines go.
struct Input {
    path: PathBuf,
    gatherer: Gatherer,
    log: BufWriter<File>,
}

impl Inputs {
    /// Starts to read what is written from now on.
    ///
    /// # Errors
    /// When a pattern cannot be used, or a log in the run's folder cannot be made.
    pub(crate) fn start(
        plan: &Plan,
        folder: &RunFolder,
        addresses: &Addresses,
        alarm: Alarm,
    ) -> Result<Self, RunError> {
        let mut inputs = Vec::new();
        for system in plan.systems.iter().filter(|one| !one.inputs.is_empty()) {
            for (index, name) in (0..).zip(copy_names(system)) {
                let render = |pattern| addresses.render_for(pattern, &system.name, index);
                let of = |error: &dyn std::fmt::Display| {
                    RunError::SetUp(format!("follow the files of {name}: {error}"))
                };
                let patterns = system.inputs.iter().map(render);
                let gatherer = Gatherer::new(patterns).map_err(|error| of(&error))?;
                let path = folder.file(RunFile::Log(&gathered(&name)));
                let log = File::create(&path).map_err(|error| of(&error))?;
                inputs.push(Input {
                    path,
                    gatherer,
                    log: BufWriter::new(log),
                });
            }
        }
        if inputs.is_empty() {
            return Ok(Self(None));
        }
        let (stop, stopped) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            while stopped.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
                for input in &mut inputs {
                    if let Err(error) = input.poll() {
                        alarm.broken(error);
                    }
                }
            }
            for input in inputs {
                if let Err(error) = input.finish() {
                    alarm.broken(error);
                }
            }
        });
        Ok(Self(Some((stop, thread))))
    }

    /// Reads what is left. To be called when all systems have ended.
    pub(crate) fn finish(&mut self) {
        if let Some((stop, thread)) = self.0.take() {
            drop(stop);
            // It does not panic; if it did, its lines would be missing and not the run.
            let _ = thread.join();
        }
    }
}

impl Input {
    fn poll(&mut self) -> Result<(), String> {
        let mut written = Ok(());
        let log = &mut self.log;
        let read = self.gatherer.poll(|line| keep(&mut written, log, line));
        let written = written.and_then(|()| self.log.flush());
        told(&self.path, read, written)
    }

    fn finish(mut self) -> Result<(), String> {
        let mut written = Ok(());
        let log = &mut self.log;
        let read = self.gatherer.finish(|line| keep(&mut written, log, line));
        let written = written.and_then(|()| self.log.flush());
        told(&self.path, read, written)
    }
}

/// Writes a line, unless an earlier one could not be written.
fn keep(written: &mut std::io::Result<()>, log: &mut BufWriter<File>, line: &[u8]) {
    if written.is_ok() {
        *written = log.write_all(line).and_then(|()| log.write_all(b"\n"));
    }
}

fn told(
    path: &std::path::Path,
    read: Result<(), lab_lifecycle::GatherError>,
    written: std::io::Result<()>,
) -> Result<(), String> {
    read.map_err(|error| error.to_string())?;
    written.map_err(|error| format!("cannot write {}: {error}", path.display()))
}
