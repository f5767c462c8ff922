//! The file of what must be undone.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};

use super::act::Undo;
use super::process::ProcessId;

/// What the names of files and folders begin with that a fault makes.
pub const MADE: &str = "headroom-fault-";
/// What the names of ledgers end with.
pub(super) const EXTENSION: &str = "ledger";
/// Commands of an owner that is gone are run twice, with at least this time between.
const AGAIN_AFTER: Duration = Duration::from_millis(500);
/// How long the second time waits for whoever ends the owner's processes, and how often it
/// looks.
const ENDED_WITHIN: Duration = Duration::from_secs(30);
const ENDED_POLL: Duration = Duration::from_millis(20);
/// Most bytes that are read of a ledger.
const MOST_BYTES: u64 = 64 << 20;

/// Why the ledger cannot be relied on. What should have been written down must not be done.
#[derive(Debug, thiserror::Error)]
#[error("{doing} the ledger of faults {}: {found}; without it a crash could leave a fault on, so nothing was done; make the folder writable or choose another", path.display())]
pub struct LedgerError {
    /// What was being done.
    pub doing: &'static str,
    /// Which file.
    pub path: PathBuf,
    /// What was found.
    pub found: io::Error,
}

/// An entry of a ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry(u64);

/// A line of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    /// The first.
    Owner(Owner),
    /// This must be undone.
    Due { entry: Entry, act: Undo },
    /// This was undone.
    Done { entry: Entry },
}

/// What must be undone, by this process. Dropping it leaves the file to the guardian or the
/// next start, unless everything was undone.
#[derive(Debug)]
pub struct Ledger {
    path: PathBuf,
    file: File,
    due: BTreeMap<u64, Undo>,
    next: u64,
}

impl Ledger {
    /// Where [`Ledger::create`] makes that of this process in a folder. A guardian that is
    /// started with it before finds also a ledger that was only begun.
    ///
    /// # Errors
    /// When this process is not in `/proc`.
    pub fn path_in(folder: &Path) -> Result<PathBuf, LedgerError> {
        let process = ProcessId::own().ok_or_else(|| LedgerError {
            doing: "name",
            path: folder.into(),
            found: io::Error::other("this process is not in /proc"),
        })?;
        let name = format!("{}-{}.{EXTENSION}", process.pid, process.start_ticks);
        Ok(folder.join(name))
    }

    /// Makes one in a folder, which must be there. `reaper` is the process that ends what this
    /// one started, should it be killed: a command that does something may live until then.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn create(folder: &Path, reaper: Option<ProcessId>) -> Result<Self, LedgerError> {
        let fail = |path: &Path, found| LedgerError {
            doing: "make",
            path: path.into(),
            found,
        };
        let unknown = || io::Error::other("this process or its boot is not in /proc");
        let process = ProcessId::own().ok_or_else(|| fail(folder, unknown()))?;
        let boot = boot().ok_or_else(|| fail(folder, unknown()))?;
        let path = Self::path_in(folder)?;
        let file = OpenOptions::new().append(true).create_new(true).open(&path);
        let file = file.map_err(|found| fail(&path, found))?;
        let mut ledger = Self {
            path,
            file,
            due: BTreeMap::new(),
            next: 0,
        };
        let owner = Owner {
            process,
            boot,
            reaper,
        };
        ledger.write("make", &Line::Owner(owner))?;
        // The file's name must be on the disk as well.
        let synced = File::open(folder).and_then(|folder| folder.sync_all());
        synced.map_err(|found| fail(folder, found))?;
        Ok(ledger)
    }

    /// Its file, for the guardian.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A path for a file or folder that a fault makes in a folder, which nothing else has.
    pub fn path_to_make(&self, folder: &Path, name: &str) -> PathBuf {
        let ledger = self.path.file_stem().unwrap_or_default().to_string_lossy();
        folder.join(format!("{MADE}{ledger}-{}-{name}", self.next))
    }

    /// What undoes an act is written down, and on the disk when this returns. Only then may the
    /// act be done.
    ///
    /// # Errors
    /// When it cannot be written; then the act must not be done.
    pub fn record(&mut self, act: Undo) -> Result<Entry, LedgerError> {
        let entry = Entry(self.next);
        // Even one that failed may stand in the file.
        self.next += 1;
        self.write(
            "write",
            &Line::Due {
                entry,
                act: act.clone(),
            },
        )?;
        self.due.insert(entry.0, act);
        Ok(entry)
    }

    /// Undoes an entry. One that was undone is left alone.
    ///
    /// # Errors
    /// What was being done and what was found; the entry is still due then.
    pub fn undo(&mut self, entry: Entry) -> Result<(), String> {
        let Some(act) = self.due.get(&entry.0) else {
            return Ok(());
        };
        act.perform()?;
        self.settle(entry).map_err(|error| error.to_string())
    }

    /// An entry was undone in another way than its own.
    ///
    /// # Errors
    /// When that cannot be written; then it is undone once more.
    pub fn settle(&mut self, entry: Entry) -> Result<(), LedgerError> {
        if self.due.remove(&entry.0).is_none() {
            return Ok(());
        }
        self.write("write", &Line::Done { entry })
    }

    /// Undoes everything, the last first, and removes the file.
    ///
    /// # Errors
    /// What could not be undone; then the file stays for the next start.
    pub fn close(mut self) -> Result<(), Vec<String>> {
        let entries: Vec<_> = self.due.keys().rev().copied().collect();
        let failed: Vec<_> = entries
            .iter()
            .filter_map(|entry| self.undo(Entry(*entry)).err())
            .collect();
        if !failed.is_empty() {
            return Err(failed);
        }
        fs::remove_file(&self.path)
            .map_err(|error| vec![format!("remove {}: {error}", self.path.display())])
    }

    fn write(&mut self, doing: &'static str, line: &Line) -> Result<(), LedgerError> {
        let written = serde_json::to_string(line)
            .map_err(io::Error::other)
            .and_then(|text| {
                // It begins with a line break, so that what a failed write left does not spoil it.
                self.file.write_all(format!("\n{text}\n").as_bytes())?;
                self.file.sync_data()
            });
        written.map_err(|found| LedgerError {
            doing,
            path: self.path.clone(),
            found,
        })
    }
}

/// Which start of the machine this is.
fn boot() -> Option<String> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned())
}

/// Undoes a ledger whose owner is gone, the last entry first, and removes it. `false`: its
/// owner lives, or somebody else has done so. The error says what could not be undone; the
/// ledger stays then.
pub(super) fn undo_abandoned(path: &Path) -> Result<bool, Vec<String>> {
    let failed = |doing: &str, error: &dyn std::fmt::Display| {
        vec![format!(
            "{doing} the ledger of faults {}: {error}",
            path.display()
        )]
    };
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        file => file.map_err(|error| failed("open", &error))?,
    };
    let lock = Flock::lock(file, FlockArg::LockExclusive);
    let lock = lock.map_err(|(_, error)| failed("lock", &error))?;
    // Whoever had the lock before may have done everything.
    if !path.exists() {
        return Ok(false);
    }
    let mut text = Vec::new();
    let read = (&*lock).take(MOST_BYTES).read_to_end(&mut text);
    read.map_err(|error| failed("read", &error))?;
    let (owner, due, mut wrong) = read_lines(&text);
    if owner.as_ref().is_some_and(|owner| owner.process.is_alive()) {
        return Ok(false);
    }
    let reaper = owner.as_ref().and_then(|owner| owner.reaper);
    let same_boot = owner.is_none_or(|owner| boot().is_none_or(|now| now == owner.boot));
    let acts = due.values().rev();
    let acts: Vec<&Undo> = acts
        .filter(|act| same_boot || act.outlasts_boot())
        .collect();
    let mut commands = Vec::new();
    for act in acts {
        match (act.perform(), act) {
            (_, Undo::Run { .. }) => commands.push(act),
            (performed, _) => wrong.extend(performed.err()),
        }
    }
    // What they undo may have been under way, and is ended by the reaper only.
    if !commands.is_empty() {
        sleep(AGAIN_AFTER);
        wait_for_the_end_of(reaper);
    }
    for command in commands {
        wrong.extend(command.perform().err());
    }
    if !wrong.is_empty() {
        return Err(wrong);
    }
    fs::remove_file(path).map_err(|error| failed("remove", &error))?;
    Ok(true)
}

/// Waits at most [`ENDED_WITHIN`]: what it could not end by then it never will.
fn wait_for_the_end_of(reaper: Option<ProcessId>) {
    let until = Instant::now() + ENDED_WITHIN;
    while reaper.is_some_and(ProcessId::is_alive) && Instant::now() < until {
        sleep(ENDED_POLL);
    }
}

/// Whose ledger it is, of which start of the machine, and who ends what the owner started when
/// it is killed.
#[derive(Debug, Serialize, Deserialize)]
struct Owner {
    process: ProcessId,
    boot: String,
    #[serde(default)]
    reaper: Option<ProcessId>,
}

type Content = (Option<Owner>, BTreeMap<u64, Undo>, Vec<String>);

/// Owner, what is due, and the lines that are none.
fn read_lines(text: &[u8]) -> Content {
    let (mut owner, mut due, mut wrong) = (None, BTreeMap::new(), Vec::new());
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        // A line that was not written to its end was never acted on.
        if line == b"\n" || !line.ends_with(b"\n") {
            continue;
        }
        match serde_json::from_slice(line) {
            Ok(Line::Owner(found)) => owner = Some(found),
            Ok(Line::Due { entry, act }) => {
                due.insert(entry.0, act);
            }
            Ok(Line::Done { entry }) => {
                due.remove(&entry.0);
            }
            Err(error) => wrong.push(format!(
                "read {:?} in a ledger of faults: {error}; remove the ledger when nothing of it is left",
                String::from_utf8_lossy(line)
            )),
        }
    }
    (owner, due, wrong)
}

#[cfg(test)]
mod tests;
