//! Logs that programs write themselves: their new lines, gathered into the folder of the run.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError, Sender, SyncSender};
use std::thread::JoinHandle;
use std::time::Duration;

use lab_experiment::plan::{Input, Plan, System, Template};
use lab_lifecycle::Gatherer;
use lab_store::{RunFile, RunFolder};

use crate::alarm::Alarm;
use crate::options::RunError;
use crate::processes::{Addresses, copy_names};

/// Time between two looks at the files.
const PERIOD: Duration = Duration::from_millis(50);

/// The name of the log into which a copy's own files are gathered.
pub(super) fn gathered(copy: &str) -> String {
    format!("{copy}.files")
}

/// Longest wait for a look that was asked for, on a machine that is far too busy.
const LOOKED_WITHIN: Duration = Duration::from_secs(5);

/// Whether a system writes files of its own.
pub(super) fn has_files(system: &System) -> bool {
    system.inputs.iter().any(|input| pattern(input).is_some())
}

fn pattern(input: &Input) -> Option<&Template> {
    match input {
        Input::Files(pattern) => Some(pattern),
        _ => None,
    }
}

/// A thread that gathers the lines of all systems' own files.
#[derive(Debug)]
pub(super) struct Files(Option<(Sender<Looked>, JoinHandle<()>)>);

/// Tells that the files were looked at.
type Looked = SyncSender<()>;

/// The files of one copy, and where their lines go.
struct FilesOfCopy {
    path: PathBuf,
    gatherer: Gatherer,
    log: BufWriter<File>,
}

impl Files {
    /// Starts to read what is written from now on.
    ///
    /// # Errors
    /// When a pattern cannot be used, or a log in the run's folder cannot be made.
    pub(super) fn start(
        plan: &Plan,
        folder: &RunFolder,
        addresses: &Addresses,
        alarm: Alarm,
    ) -> Result<Self, RunError> {
        let mut inputs = Vec::new();
        for system in plan.systems.iter().filter(|one| has_files(one)) {
            // What is the same for every copy is read once.
            let mut read = HashSet::new();
            for (index, name) in (0..).zip(copy_names(system)) {
                let render = |pattern| addresses.render_for(pattern, &system.name, index);
                let of = |error: &dyn std::fmt::Display| {
                    RunError::SetUp(format!("follow the files of {name}: {error}"))
                };
                let patterns = system.inputs.iter().filter_map(pattern).map(render);
                let own = patterns.filter(|pattern| read.insert(pattern.clone()));
                let gatherer = Gatherer::new(own).map_err(|error| of(&error))?;
                let path = folder.file(RunFile::Log(&gathered(&name)));
                let log = File::create(&path).map_err(|error| of(&error))?;
                inputs.push(FilesOfCopy {
                    path,
                    gatherer,
                    log: BufWriter::new(log),
                });
            }
        }
        if inputs.is_empty() {
            return Ok(Self(None));
        }
        let (ask, asked) = mpsc::channel::<Looked>();
        let thread = std::thread::spawn(move || {
            loop {
                let looked = match asked.recv_timeout(PERIOD) {
                    Ok(looked) => Some(looked),
                    Err(RecvTimeoutError::Timeout) => None,
                    Err(RecvTimeoutError::Disconnected) => break,
                };
                for input in &mut inputs {
                    if let Err(error) = input.poll() {
                        alarm.broken(error);
                    }
                }
                // Who has asked may have given up.
                looked.map(|looked| looked.try_send(()));
            }
            for input in inputs {
                if let Err(error) = input.finish() {
                    alarm.broken(error);
                }
            }
        });
        Ok(Self(Some((ask, thread))))
    }

    /// Gathers what is written until now, before a moment is marked in the logs.
    pub(super) fn look(&self) {
        if let Some((ask, _)) = &self.0 {
            let (looked, done) = mpsc::sync_channel(1);
            // Later lines are gathered all the same.
            if ask.send(looked).is_ok() {
                let _ = done.recv_timeout(LOOKED_WITHIN);
            }
        }
    }

    /// Reads what is left. To be called when all systems have ended.
    pub(super) fn finish(&mut self) {
        if let Some((ask, thread)) = self.0.take() {
            drop(ask);
            // It does not panic; if it did, its lines would be missing and not the run.
            let _ = thread.join();
        }
    }
}

impl FilesOfCopy {
    fn poll(&mut self) -> Result<(), String> {
        let mut written = Ok(());
        let log = &mut self.log;
        let read = self.gatherer.poll(|line| keep(&mut written, log, line));
        let written = written.and_then(|()| self.log.flush());
        first_failure(&self.path, read, written)
    }

    fn finish(mut self) -> Result<(), String> {
        let mut written = Ok(());
        let log = &mut self.log;
        let read = self.gatherer.finish(|line| keep(&mut written, log, line));
        let written = written.and_then(|()| self.log.flush());
        first_failure(&self.path, read, written)
    }
}

/// Writes a line, unless an earlier one could not be written.
fn keep(written: &mut std::io::Result<()>, log: &mut BufWriter<File>, line: &[u8]) {
    if written.is_ok() {
        *written = log.write_all(line).and_then(|()| log.write_all(b"\n"));
    }
}

fn first_failure(
    path: &std::path::Path,
    read: Result<(), lab_lifecycle::GatherError>,
    written: std::io::Result<()>,
) -> Result<(), String> {
    read.map_err(|error| error.to_string())?;
    written.map_err(|error| format!("cannot write {}: {error}", path.display()))
}
