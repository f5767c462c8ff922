//! What undoes faults that would outlast the laboratory: a ledger of the run, and its guardian.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use lab_faults::undo::{self, Entry, Guardian, Ledger, ProcessId, Undo};
use processes::Reaper;

/// The folder of ledgers, in that of the runs. It is there while one of them is.
const FOLDER: &str = "faults-to-undo";

/// The ledger of a run; without faults that need one there is none.
#[derive(Debug, Default)]
pub(crate) struct UndoLedger(Option<Open>);

#[derive(Debug)]
struct Open {
    ledger: Ledger,
    guardian: Guardian,
    folder: PathBuf,
}

impl UndoLedger {
    /// Makes one, and starts its guardian with this command and the ledger's path. The
    /// guardian has the last word: it waits for the reaper, which ends the faults' commands.
    ///
    /// # Errors
    /// When one of the two cannot be relied on.
    pub(crate) fn open(
        out_dir: &Path,
        guardian: &[OsString],
        reaper: &Reaper,
    ) -> Result<Self, String> {
        let folder = out_dir.join(FOLDER);
        fs::create_dir_all(&folder)
            .map_err(|error| format!("make {}: {error}", folder.display()))?;
        let path = Ledger::path_in(&folder).map_err(|error| error.to_string())?;
        let mut command = guardian.to_vec();
        command.push(path.into());
        // First, so that a ledger is never without one.
        let guardian = Guardian::start(&command).map_err(|error| error.to_string())?;
        let ledger = Ledger::create(&folder, ProcessId::of(reaper.pid().cast_signed()))
            .map_err(|error| error.to_string())?;
        Ok(Self(Some(Open {
            ledger,
            guardian,
            folder,
        })))
    }

    /// A path for a file that a fault makes in a folder, which nothing else has.
    ///
    /// # Errors
    /// When the run has no ledger.
    pub(crate) fn path_to_make(&self, folder: &Path, name: &str) -> Result<PathBuf, String> {
        let open = self.0.as_ref().ok_or("the run has no ledger of faults")?;
        Ok(open.ledger.path_to_make(folder, name))
    }

    /// What undoes an act is on the disk when this returns; only then may it be done.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn record(&mut self, act: Undo) -> Result<Entry, String> {
        let open = self.0.as_mut().ok_or("the run has no ledger of faults")?;
        open.ledger.record(act).map_err(|error| error.to_string())
    }

    /// Undoes what an entry stands for.
    ///
    /// # Errors
    /// What was being done, and what was found.
    pub(crate) fn undo(&mut self, entry: Entry) -> Result<(), String> {
        match &mut self.0 {
            Some(open) => open.ledger.undo(entry),
            None => Ok(()),
        }
    }

    /// What an entry stands for was undone in another way.
    ///
    /// # Errors
    /// When that cannot be written.
    pub(crate) fn settle(&mut self, entry: Entry) -> Result<(), String> {
        match &mut self.0 {
            Some(open) => open.ledger.settle(entry).map_err(|error| error.to_string()),
            None => Ok(()),
        }
    }

    /// Undoes what is left. Returns what could not be undone.
    pub(crate) fn close(&mut self) -> Vec<String> {
        let Some(open) = self.0.take() else {
            return Vec::new();
        };
        let wrong = open.ledger.close().err().unwrap_or_default();
        drop(open.guardian);
        // Another run may have its own there.
        let _ = fs::remove_dir(open.folder);
        wrong
    }
}

impl Drop for UndoLedger {
    fn drop(&mut self) {
        self.close();
    }
}

/// The guardian's whole life: waits until the run ends that started it, then undoes what its
/// ledger says is still due. For a hidden sub-command.
pub fn guardian_main(ledger: &Path) -> ExitCode {
    match undo::guard(ledger, io::stdin().lock()) {
        Ok(()) => {
            // Another run may have its own there.
            let _ = ledger.parent().map(fs::remove_dir);
            ExitCode::SUCCESS
        }
        Err(wrong) => {
            for what in wrong {
                // Whoever read it may be gone.
                let _ = writeln!(io::stderr(), "headroom guardian: {what}");
            }
            ExitCode::FAILURE
        }
    }
}

/// Undoes what runs left that were killed together with their guardian. Returns what could not
/// be undone.
pub(crate) fn sweep(out_dir: &Path) -> Vec<String> {
    let folder = out_dir.join(FOLDER);
    if !folder.exists() {
        return Vec::new();
    }
    let wrong = undo::sweep(&folder).err().unwrap_or_default();
    let _ = fs::remove_dir(folder);
    wrong
}
