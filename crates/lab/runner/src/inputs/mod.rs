//! Logs that programs write elsewhere than to their output, gathered into the folder of the run.

mod files;
mod received;

use lab_experiment::plan::{Plan, System};
use lab_store::RunFolder;

use crate::alarm::Alarm;
use crate::options::RunError;
use crate::processes::{Addresses, Ports};

use files::{Files, gathered, has_files};
use received::{Received, arrived, receives};

/// Names of all logs of a copy of a system: of its output, and of what it writes elsewhere, as that
/// is gathered.
pub(crate) fn logs_of(system: &System, copy: &str) -> Vec<String> {
    let files = has_files(system).then(|| gathered(copy));
    let received = receives(system).then(|| arrived(copy));
    let output = [copy.to_owned(), format!("{copy}.err")];
    output.into_iter().chain(files).chain(received).collect()
}

/// Everything that gathers.
#[derive(Debug)]
pub(crate) struct Inputs {
    files: Files,
    received: Received,
}

impl Inputs {
    /// Starts to read what is written, and to take what is sent, from now on.
    ///
    /// # Errors
    /// When a place cannot be read or listened at, or a log in the run's folder cannot be made.
    pub(crate) fn start(
        plan: &Plan,
        folder: &RunFolder,
        addresses: &Addresses,
        ports: &mut Ports,
        alarm: Alarm,
    ) -> Result<Self, RunError> {
        Ok(Self {
            files: Files::start(plan, folder, addresses, alarm.clone())?,
            received: Received::start(plan, folder, addresses, ports, alarm)?,
        })
    }

    /// Gathers what is written until now, before a moment is marked in the logs.
    pub(crate) fn look(&self) {
        self.files.look();
    }

    /// Reads what is left. To be called when all systems have ended. What a person should know of
    /// it.
    pub(crate) fn finish(&mut self) -> Vec<String> {
        self.files.finish();
        self.received.finish()
    }
}
