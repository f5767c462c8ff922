//! The process that undoes what is left when the laboratory is killed.

use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use nix::sys::signal::{SigSet, Signal};

use super::ledger::{EXTENSION, undo_abandoned};
use super::process::ProcessId;

/// What the guardian says once it can be relied on.
const READY: &str = "ready";
/// How often it is looked whether the owner of a ledger has ended, and the time between two.
const OWNER_CHECKS: u32 = 500;
const OWNER_PAUSE: Duration = Duration::from_millis(2);

/// Why there is no guardian.
#[derive(Debug, thiserror::Error)]
#[error(
    "start the guardian of faults `{command}`: {found}; without it a crash could leave faults on until the next start"
)]
pub struct GuardianError {
    /// Its command line.
    pub command: String,
    /// What was found.
    pub found: String,
}

/// A running guardian. It undoes nothing while the owner of the ledger lives: close the ledger,
/// then drop this, which waits for the guardian's end, at most a second if the ledger is there.
#[derive(Debug)]
pub struct Guardian(Child);

impl Guardian {
    /// Starts a program that calls [`guard`] with its standard input, and waits until it says
    /// that it is ready.
    ///
    /// # Errors
    /// When it does not start, or is no guardian.
    pub fn start(command: &[OsString]) -> Result<Self, GuardianError> {
        let failed = |found: String| GuardianError {
            command: command.join(" ".as_ref()).display().to_string(),
            found,
        };
        let [program, arguments @ ..] = command else {
            return Err(failed("the command is empty".into()));
        };
        let child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn();
        let mut guardian = Self(child.map_err(|error| failed(error.to_string()))?);
        let mut line = String::new();
        let stdout = guardian.0.stdout.take();
        let read = stdout.map(|out| BufReader::new(out.take(64)).read_line(&mut line));
        match read {
            Some(Ok(_)) if line.trim_end() == READY => Ok(guardian),
            _ => {
                let _ = guardian.0.kill();
                Err(failed(format!("it said {line:?} instead of {READY:?}")))
            }
        }
    }

    /// Its process.
    pub fn process(&self) -> Option<ProcessId> {
        ProcessId::of(self.0.id().cast_signed())
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        // Whoever drops us expects that nothing is left afterwards.
        let _ = self.0.wait();
    }
}

/// The guardian's whole life: waits until `parent`, the pipe to the process that owns the
/// ledger, ends, then undoes what is still due. For a hidden sub-command, with standard input.
///
/// # Errors
/// What could not be undone; the ledger stays for the next start.
pub fn guard(ledger: &Path, mut parent: impl Read) -> Result<(), Vec<String>> {
    // What a terminal or a service manager sends to the laboratory must not end it first.
    let mut ignored = SigSet::empty();
    for signal in [
        Signal::SIGINT,
        Signal::SIGTERM,
        Signal::SIGHUP,
        Signal::SIGQUIT,
    ] {
        ignored.add(signal);
    }
    let _ = ignored.thread_block();
    let _ = nix::unistd::setsid();
    let mut out = io::stdout();
    // Nobody may be left to hear it.
    let _ = writeln!(out, "{READY}").and_then(|()| out.flush());
    // An error is as good as the end.
    let _ = io::copy(&mut parent, &mut io::sink());
    wait_for_the_end_of_the_owner(ledger);
    undo_abandoned(ledger).map(|_| ())
}

/// Its pipe ends a moment before the process does. Waits for at most a second; what is left of a
/// process that takes longer is for the next start.
fn wait_for_the_end_of_the_owner(ledger: &Path) {
    // Its name is that of its owner.
    let stem = ledger
        .file_stem()
        .and_then(|stem| stem.to_str())
        .unwrap_or_default();
    let owner = stem.split_once('-').and_then(|(pid, start_ticks)| {
        Some(ProcessId {
            pid: pid.parse().ok()?,
            start_ticks: start_ticks.parse().ok()?,
        })
    });
    // One that lives on has let us go, and undoes its ledger itself.
    for _ in 0..OWNER_CHECKS {
        if !ledger.exists() || !owner.is_some_and(ProcessId::is_alive) {
            return;
        }
        sleep(OWNER_PAUSE);
    }
}

/// Undoes every ledger in a folder whose owner is gone: what is left when the guardian was
/// killed as well. For the next start. How many were undone.
///
/// # Errors
/// The folder could not be read, or what could not be undone; those ledgers stay.
pub fn sweep(folder: &Path) -> Result<usize, Vec<String>> {
    let failed = |error| {
        vec![format!(
            "look for ledgers of faults in {}: {error}",
            folder.display()
        )]
    };
    let mut ledgers: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        ledgers.push(entry.map_err(failed)?.path());
    }
    ledgers.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == EXTENSION)
    });
    let (mut undone, mut wrong) = (0, Vec::new());
    for ledger in ledgers {
        match undo_abandoned(&ledger) {
            Ok(did) => undone += usize::from(did),
            Err(errors) => wrong.extend(errors.into_iter().map(|error| {
                format!(
                    "a fault of an earlier run could not be undone: {error}; each run tries again \
                     until {} is removed",
                    ledger.display()
                )
            })),
        }
    }
    if wrong.is_empty() {
        Ok(undone)
    } else {
        Err(wrong)
    }
}
