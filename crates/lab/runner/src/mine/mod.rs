//! Lifecycles and loops, found in the logs while they grow.

mod silent;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use lab_experiment::plan::{Lifecycle, LogFormat, Loop, Plan};
use lab_lifecycle::{
    Collector, DefinitionError, FollowError, Follower, Format, Miner, Table, Turns, lengths,
};
use lab_store::{RunFile, RunFolder};

use crate::alarm::Alarm;
use crate::inputs::logs_of;
use crate::judge;
use crate::processes::{copy_names, shown};
use crate::progress::{LifecycleView, Status};
use crate::store::turns;
use crate::underway::Viewers;
use crate::watch::cpu_of_thread;

/// Time between two looks at the logs.
const PERIOD: Duration = Duration::from_millis(100);

/// Telling what was found so far takes at most one part in so many of a processor.
const PART: u32 = 20;

/// Characters shown of a line that could not be read.
const SAMPLE: usize = 100;

/// Lines that showed a point once more, by the number of the point and the second of the run.
pub(crate) type Repeated = BTreeMap<(usize, i64), u64>;

/// Everything that the logs told.
#[derive(Debug, Default)]
pub(crate) struct Mined {
    /// In the order of the plan.
    pub(crate) tables: Vec<Table>,
    /// Of the tables and loops, what happened in the steps.
    pub(crate) judged: MinedSnapshot,
    /// Loops by name, in the order of the plan.
    pub(crate) loops: Vec<(String, Turns)>,
    /// By lifecycle, in the order of the plan: how many lines showed a point that their entity had
    /// passed already, by the number of the point and the second of the run.
    pub(crate) repeated: Vec<Repeated>,
    /// Names of the copies of systems, by the numbers of the processes in the turns.
    pub(crate) copies: Vec<String>,
    /// Lifecycles and loops that found nothing, and why.
    pub(crate) silent: Vec<String>,
    /// What a person should know: lines that could not be read, and the like.
    pub(crate) notes: Vec<String>,
    /// Why the tables and loops are not all that the logs told.
    pub(crate) incomplete: Option<String>,
}

/// Lifecycles and loops as far as logs have told of them.
#[derive(Debug, Default)]
pub(crate) struct MinedSnapshot {
    pub(crate) tables: Vec<Table>,
    pub(crate) loops: Vec<(String, Turns)>,
}

impl MinedSnapshot {
    fn of(miner: &Miner) -> Self {
        Self {
            tables: miner.lifecycles().iter().map(Collector::table).collect(),
            loops: loops_of(miner),
        }
    }
}

fn loops_of(miner: &Miner) -> Vec<(String, Turns)> {
    let loops = miner.loops().iter();
    loops
        .map(|found| (found.name().to_owned(), found.turns()))
        .collect()
}

/// Bounds of what is judged: what stood in the logs when they were made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// The first step begins.
    Begin,
    /// The steps are over.
    End,
}

/// A mark, and how long each log was when it was made.
type Marked = (Mark, Vec<u64>);

/// A thread that follows the logs of all systems.
#[derive(Debug)]
pub(crate) struct LogMiner {
    paths: Arc<[PathBuf]>,
    marks: Sender<Marked>,
    /// Held from a look at the lengths of the logs until it is known whether a mark was made
    /// before it: what was written after a mark is never read as if before.
    looking: Arc<Mutex<()>>,
    thread: JoinHandle<Mined>,
}

/// A log that is followed.
#[derive(Debug, Clone, Copy)]
struct Log {
    format: Format,
    /// Number of the copy that writes it.
    copy: u32,
}

/// The logs of a plan's systems, and the names of those that write them.
fn logs(plan: &Plan, folder: &RunFolder) -> (Vec<(PathBuf, Log)>, Vec<String>) {
    let (mut logs, mut copies) = (Vec::new(), Vec::new());
    for system in &plan.systems {
        let format = match system.log {
            LogFormat::Auto => Format::Auto,
            LogFormat::Lager => Format::Lager,
            LogFormat::Json => Format::Json,
            LogFormat::Logfmt => Format::Logfmt,
            LogFormat::Text => continue,
        };
        for name in copy_names(system) {
            let copy = u32::try_from(copies.len()).unwrap_or(u32::MAX);
            let log = Log { format, copy };
            for own in logs_of(system, &name) {
                logs.push((folder.file(RunFile::Log(&own)), log));
            }
            copies.push(name);
        }
    }
    (logs, copies)
}

impl LogMiner {
    /// Starts to follow; times count from `origin_unix_ns`.
    ///
    /// # Errors
    /// When the plan's lifecycles or loops cannot be mined.
    pub(crate) fn start(
        plan: &Plan,
        folder: &RunFolder,
        origin_unix_ns: i64,
        (status, viewers): (Status, Viewers),
        alarm: Alarm,
    ) -> Result<Self, DefinitionError> {
        let mut miner = Miner::new(origin_unix_ns, &plan.lifecycles, &plan.loops)?;
        if viewers.is_possible() {
            miner.watch();
        }
        let (logs, copies) = logs(plan, folder);
        let (paths, logs): (Vec<PathBuf>, Vec<Log>) = logs.into_iter().unzip();
        let plans = (plan.lifecycles.clone(), plan.loops.clone());
        let paths: Arc<[PathBuf]> = paths.into();
        let mut follower = Follower::new(paths.iter());
        let (marks, marked) = mpsc::channel();
        let looking = Arc::new(Mutex::new(()));
        let look = Look {
            paths: Arc::clone(&paths),
            marked,
            looking: Arc::clone(&looking),
        };
        let thread = std::thread::spawn(move || {
            let (mut before, mut judged) = (MinedSnapshot::default(), None);
            let mut told_again = Instant::now();
            while let Some((mark, lengths)) = look.next() {
                let feed = |file, line: &[u8]| feed(&mut miner, &logs, file, line);
                if let Err(error) = follower.poll_to(&lengths, feed) {
                    alarm.broken(error);
                }
                match mark {
                    Some(Mark::Begin) => before = MinedSnapshot::of(&miner),
                    Some(Mark::End) => {
                        judged = Some(judge::since(&before, MinedSnapshot::of(&miner)))
                    }
                    None => {}
                }
                status.mined(miner.counts().lines, views(&miner));
                if Instant::now() >= told_again && viewers.wanted() {
                    let cpu = cpu_of_thread();
                    let loops = loops_of(&miner);
                    viewers.publish(miner.changes(), turns(&loops, &copies).collect());
                    told_again = Instant::now() + cpu_of_thread().saturating_sub(cpu) * PART;
                }
            }
            let last = follower.finish(|file, line| feed(&mut miner, &logs, file, line));
            Mined {
                copies,
                judged: judged.unwrap_or_default(),
                ..collect(&miner, &plans, last)
            }
        });
        Ok(Self {
            paths,
            marks,
            looking,
            thread,
        })
    }

    /// Says that the steps begin, or that they are over. What the logs tell is judged by
    /// when it was written into them: clocks of systems may be wrong.
    pub(crate) fn mark(&self, mark: Mark) {
        let _looking = self.looking.lock().unwrap_or_else(PoisonError::into_inner);
        // The thread ends before us only after an error, which was raised.
        let _ = self.marks.send((mark, lengths(&self.paths)));
    }

    /// Reads the logs to their end and returns what was found. To be called when
    /// all systems have ended.
    pub(crate) fn finish(self) -> Mined {
        drop(self.marks);
        self.thread.join().unwrap_or_else(|_| Mined {
            incomplete: Some("the reading of logs ended early".to_owned()),
            ..Mined::default()
        })
    }
}

/// When the logs are looked at, and how far they are read.
struct Look {
    paths: Arc<[PathBuf]>,
    marked: Receiver<Marked>,
    looking: Arc<Mutex<()>>,
}

impl Look {
    /// Waits for a mark, or for the next look without one; `None`: no more are to come.
    fn next(&self) -> Option<(Option<Mark>, Vec<u64>)> {
        match self.marked.recv_timeout(PERIOD) {
            Ok((mark, lengths)) => return Some((Some(mark), lengths)),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => {}
        }
        let _looking = self.looking.lock().unwrap_or_else(PoisonError::into_inner);
        Some(match self.marked.try_recv() {
            Ok((mark, lengths)) => (Some(mark), lengths),
            Err(_) => (None, lengths(&self.paths)),
        })
    }
}

fn feed(miner: &mut Miner, logs: &[Log], file: usize, line: &[u8]) {
    if let Some(log) = logs.get(file) {
        miner.feed_from(log.copy, log.format, line);
    }
}

fn views(miner: &Miner) -> Vec<LifecycleView> {
    miner
        .lifecycles()
        .iter()
        .map(|collector| {
            let snapshot = collector.snapshot();
            LifecycleView {
                name: collector.name().to_owned(),
                entities: snapshot.entities,
                reached: collector
                    .points()
                    .iter()
                    .cloned()
                    .zip(snapshot.reached)
                    .collect(),
            }
        })
        .collect()
}

fn collect(
    miner: &Miner,
    plans: &(Vec<Lifecycle>, Vec<Loop>),
    last: Result<(), FollowError>,
) -> Mined {
    let mut notes = Vec::new();
    let mut incomplete = last.err().map(|error| error.to_string());
    let counts = miner.counts();
    // Without lifecycles and loops nobody reads the logs for their form.
    let is_mined = !miner.lifecycles().is_empty() || !miner.loops().is_empty();
    if is_mined && counts.unreadable > 0 {
        let sample = counts.unreadable_sample.as_deref().unwrap_or_default();
        notes.push(format!(
            "{} of {} log lines could not be read, the first: {}",
            counts.unreadable,
            counts.lines,
            shown(sample, SAMPLE)
        ));
    }
    if counts.overlong > 0 {
        notes.push(format!(
            "{} log lines were too long and were cut",
            counts.overlong
        ));
    }
    let tables = miner.lifecycles().iter().map(|collector| {
        let overflow = collector.snapshot().overflow;
        if overflow > 0 {
            let name = collector.name();
            incomplete.get_or_insert(format!(
                "lifecycle {name} had no room for {overflow} log lines; make fewer entities"
            ));
        }
        collector.table()
    });
    let tables = tables.collect();
    let loops = miner.loops().iter().map(|found| {
        let turns = found.turns();
        if turns.overflow > 0 {
            incomplete.get_or_insert(format!(
                "loop {} had no room for {} log lines",
                found.name(),
                turns.overflow
            ));
        }
        (found.name().to_owned(), turns)
    });
    Mined {
        tables,
        loops: loops.collect(),
        judged: MinedSnapshot::default(),
        repeated: miner
            .lifecycles()
            .iter()
            .map(|collector| collector.repeated().clone())
            .collect(),
        copies: Vec::new(),
        silent: silent::silent(miner, &plans.0, &plans.1),
        notes,
        incomplete,
    }
}

#[cfg(test)]
mod tests;
