//! `headroom history`: metrics over many runs.

mod import;
mod page;
mod show;
mod store;

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use lab_judgement::{Direction, Record, done_by_hand, read_records, write_record};
use lab_store::Outcome;

use crate::gate::{ForMetric, better};
use crate::output::{eprint, print};
use crate::recorded::recorded;
use store::Store;

/// Largest history that is read, in bytes: thousands of runs with their parts.
const BYTES_MOST: u64 = 1 << 30;

/// How long, and how far apart, a history is tried that another program holds.
const LOCK_WITHIN: Duration = Duration::from_secs(10);
const LOCK_PAUSE: Duration = Duration::from_millis(20);

pub(crate) const AFTER_HELP: &str = "\
A history is a file of JSON Lines, a run each, in the order in which they were added:
  headroom history add runs/web-20260101-120000
  headroom history import results.json --commit 4f2a1c9
  headroom history show
  headroom history page

--store keeps the same lines elsewhere, a file for each plan:
  headroom history add runs/web-20260101-120000 --store /mnt/bucket/history
  headroom history show --store git:headroom-history

show looks at the runs that can be compared with the latest: of the same plan, on the same processor. It says
since when a metric is better or worse, by how much, and which commits lie between; and whether the latest runs
may have left the level before them.

Exit codes of show:
  0  nothing got worse lately
  1  a metric got worse within the last 10 runs, or may have
  4  error";

#[derive(Debug, Subcommand)]
pub(crate) enum HistoryCommand {
    /// Add a stored run
    Add(AddArgs),
    /// Add what another program measured, or the runs of another history
    #[command(after_help = import::AFTER_HELP)]
    Import(ImportArgs),
    /// Show what changed, and since when
    #[command(after_help = AFTER_HELP)]
    Show(ShowArgs),
    /// Write a self-contained page: every metric over the runs, with changes marked
    Page(page::PageArgs),
}

#[derive(Debug, Args)]
pub(crate) struct HistoryFile {
    /// The file of the history
    #[arg(long, value_name = "FILE", default_value = "runs/history.jsonl")]
    pub(crate) file: PathBuf,
    /// Keep it in a folder instead, or in a branch of the git repository that the working directory is in
    #[arg(long, value_name = "DIR|git:BRANCH", conflicts_with = "file")]
    pub(crate) store: Option<Store>,
}

impl HistoryFile {
    /// Where it is, in words.
    fn place(&self) -> String {
        match &self.store {
            None => self.file.display().to_string(),
            Some(Store::Folder(folder)) => folder.display().to_string(),
            Some(Store::Branch(branch)) => format!("the branch {branch}"),
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct AddArgs {
    /// The folder of the run
    pub(crate) run: PathBuf,
    /// The version that was measured, if it is not the one checked out where the run was started
    #[arg(long, value_name = "COMMIT")]
    pub(crate) commit: Option<String>,
    #[command(flatten)]
    pub(crate) history: HistoryFile,
}

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// A history, or a list of metrics with name, unit and value
    pub(crate) results: PathBuf,
    /// The version that was measured; a list of metrics needs it
    #[arg(long, value_name = "COMMIT")]
    pub(crate) commit: Option<String>,
    /// What a list of metrics was measured with; those of one name are compared with each other
    #[arg(long, value_name = "NAME", default_value = "imported")]
    pub(crate) name: String,
    /// Which way metrics of a list get better, or NAME=WAY for one of them; may be repeated
    #[arg(long = "better", value_name = "[NAME=]lower|higher", value_parser = better)]
    pub(crate) better: Vec<ForMetric<Direction>>,
    #[command(flatten)]
    pub(crate) history: HistoryFile,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    pub(crate) history: HistoryFile,
    /// Show this metric only; may be repeated
    #[arg(long = "metric", value_name = "NAME")]
    pub(crate) metrics: Vec<String>,
    /// The git repository whose commits were measured
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) repository: PathBuf,
    /// Print JSON instead of sentences
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(command: &HistoryCommand) -> Result<Outcome> {
    match command {
        HistoryCommand::Add(args) => {
            let mut record = recorded(&args.run)?.record;
            record.commit = args.commit.clone().unwrap_or(record.commit);
            store::add(&args.history, &New::one(record))
        }
        HistoryCommand::Import(args) => store::add(&args.history, &import::records(args)?),
        HistoryCommand::Show(args) => show::show(args),
        HistoryCommand::Page(args) => page::page(args),
    }
}

/// Runs that shall be added.
#[derive(Debug, Clone, PartialEq)]
struct New {
    records: Vec<Record>,
    /// Of the lines of another history, that and the number of each. What such a line says may be
    /// there already.
    lines: Option<(PathBuf, Vec<usize>)>,
}

/// How many runs were added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counts {
    added: usize,
    /// Of those that were given, how many were there.
    there: usize,
    all: usize,
}

impl New {
    /// A run that was made here.
    fn one(record: Record) -> Self {
        Self {
            records: vec![record],
            lines: None,
        }
    }

    /// Those that a history lacks.
    ///
    /// # Errors
    /// A run that it has with other values, or one that comes twice; and one that it has at all
    /// if it is none of another history.
    fn missing(&self, known: &[Record]) -> Result<Vec<&Record>> {
        let mut all: BTreeMap<&str, &Record> =
            known.iter().map(|known| (&*known.run, known)).collect();
        let mut missing = Vec::new();
        for (at, record) in self.records.iter().enumerate() {
            let line = self.lines.as_ref();
            let line = line.and_then(|(file, lines)| Some((file, lines.get(at)?)));
            let whence = line.map_or_else(String::new, |(file, line)| {
                format!("{}, line {line}: ", file.display())
            });
            match all.insert(&record.run, record) {
                None => missing.push(record),
                Some(there) if there == record && self.lines.is_some() => {}
                Some(there) if there == record => {
                    bail!("{whence}the run {} is in it already", record.run)
                }
                Some(_) => bail!(
                    "{whence}the run {} is in it already, with other values",
                    record.run
                ),
            }
        }
        Ok(missing)
    }

    fn counts(&self, known: usize, added: usize) -> Counts {
        Counts {
            added,
            there: self.records.len() - added,
            all: known + added,
        }
    }
}

/// Appends runs, all of them or none; two that add at once do so one after the other.
fn add(file: &Path, new: &New) -> Result<Outcome> {
    let writing = || format!("add to {}", file.display());
    // What cannot be written makes no file.
    for record in &new.records {
        write_record(record).with_context(writing)?;
    }
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).with_context(writing)?;
    }
    let out = OpenOptions::new()
        .create(true)
        .read(true)
        .append(true)
        .open(file)
        .with_context(writing)?;
    locked(&out, file, LOCK_WITHIN, File::try_lock)?;
    let text = text_of(&out, file)?;
    let known = read_records(&text).with_context(writing)?;
    let missing = new.missing(&known).with_context(writing)?;
    let mut lines = String::new();
    // A line that somebody wrote by hand may lack its end.
    if !text.is_empty() && !text.ends_with('\n') && !missing.is_empty() {
        lines.push('\n');
    }
    for record in &missing {
        lines += &write_record(record).with_context(writing)?;
    }
    let put = |mut out: &File, lines: &[u8]| {
        out.write_all(lines)?;
        out.sync_data()
    };
    append(&out, text.len() as u64, lines.as_bytes(), put).with_context(writing)?;
    let counts = new.counts(known.len(), missing.len());
    added(&file.display().to_string(), new, counts)
}

/// Tells what was added where, and how many runs there are in all.
fn added(place: &str, new: &New, Counts { added, there, all }: Counts) -> Result<Outcome> {
    let noun = if added == 1 { "run" } else { "runs" };
    let there = match there {
        0 => String::new(),
        1 => ", 1 was there already".to_owned(),
        there => format!(", {there} were there already"),
    };
    print(&format!(
        "{place}: {added} {noun} added{there}, {all} in all\n"
    ))?;
    for done in new.records.iter().flat_map(done_by_hand) {
        eprint(format_args!(
            "headroom: {}; it is kept apart from other runs",
            done.sentence
        ));
    }
    Ok(Outcome::Pass)
}

/// Puts lines behind what is there: half a line would stop every later command, so that a write that
/// fails is undone.
fn append(
    out: &File,
    length: u64,
    lines: &[u8],
    put: impl FnOnce(&File, &[u8]) -> io::Result<()>,
) -> Result<()> {
    put(out, lines).or_else(|error| match out.set_len(length) {
        Ok(()) => Err(error).context("nothing was added"),
        Err(_) => Err(error).context("its last line may be cut off: remove it"),
    })
}

/// Waits for others that read or write a history, but not for ever.
fn locked(
    out: &File,
    file: &Path,
    within: Duration,
    lock: impl Fn(&File) -> Result<(), TryLockError>,
) -> Result<()> {
    let locking = || format!("lock {}", file.display());
    let until = Instant::now() + within;
    loop {
        match lock(out) {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if Instant::now() < until => thread::sleep(LOCK_PAUSE),
            Err(TryLockError::WouldBlock) => bail!(
                "{}: another program holds it; end that, or try again later",
                locking()
            ),
            Err(TryLockError::Error(error)) => return Err(error).with_context(locking),
        }
    }
}

fn read(file: &Path) -> Result<Vec<Record>> {
    let text = read_text(file)?;
    read_records(&text).with_context(|| format!("read {}", file.display()))
}

fn read_text(file: &Path) -> Result<String> {
    let input = File::open(file).with_context(|| format!("read {}", file.display()))?;
    locked(&input, file, LOCK_WITHIN, File::try_lock_shared)?;
    text_of(&input, file)
}

fn text_of(input: &File, file: &Path) -> Result<String> {
    let reading = || format!("read {}", file.display());
    let mut text = String::new();
    input
        .take(BYTES_MOST + 1)
        .read_to_string(&mut text)
        .with_context(reading)?;
    if text.len() as u64 > BYTES_MOST {
        bail!("{}: it has more than {} MiB", reading(), BYTES_MOST >> 20);
    }
    Ok(text)
}

#[cfg(test)]
mod tests;
