//! What the caller decides about a run, and what it gets back.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use lab_generator::{Outages, Stopper};
use lab_load::{Generate, GenerateError, Workload};
use lab_store::{MadeFrom, RunFolder, StoreError, Verdict};
use processes::ReaperError;

use crate::drivers::DriverError;
use crate::loads::FileError;
use crate::processes::{PortError, StartError};
use crate::underway::Underway;

/// How progress is shown, on standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Display {
    /// A live block on a terminal, lines elsewhere.
    #[default]
    Auto,
    /// A line for each event.
    Plain,
    /// Nothing.
    None,
}

/// A generator of load, whose connections are open.
pub struct Generator {
    /// Runs segments, one after the other.
    pub generate: Box<dyn Generate>,
    /// Ends the segment under way, from any thread and at once. Without effect between
    /// segments.
    pub stop: Box<dyn Fn() + Send + Sync>,
    /// How a load goes on where another ends; `None`: there is a pause between them.
    pub relay: Option<Relay>,
}

/// How one generator goes on, at one moment, where another of the same load ends. Moments
/// are nanoseconds of one clock for all generators.
pub struct Relay {
    /// The moment that is now.
    pub now: fn() -> u64,
    /// The next segment begins at that moment.
    pub begin_next_at: Box<dyn Fn(u64) + Send + Sync>,
    /// The segment under way, which has no length of its own, ends at that moment.
    pub end_at: Box<dyn Fn(u64) + Send + Sync>,
    /// From that moment on, requests of the segment under way fall due at this rate per second.
    pub turn_at: Box<dyn Fn(u64, f64) + Send + Sync>,
    /// When requests of the segment under way, or of the last one, failed.
    pub outages: Arc<Outages>,
}

/// Starts a generator. It is called, and the generator used, on a thread of its own.
pub type StartGenerator = fn(Workload) -> Result<Generator, GenerateError>;

/// Threads of this process.
fn local(workload: Workload) -> Result<Generator, GenerateError> {
    let local = lab_generator::Local::start(workload)?;
    let stopper = local.stopper();
    Ok(Generator {
        generate: Box::new(local),
        stop: Box::new({
            let stopper = stopper.clone();
            move || stopper.stop()
        }),
        relay: Some(Relay {
            now: Stopper::now,
            begin_next_at: Box::new({
                let stopper = stopper.clone();
                move |at| stopper.begin_next_at(at)
            }),
            turn_at: Box::new({
                let stopper = stopper.clone();
                move |at, rate| stopper.turn_at(at, rate)
            }),
            outages: stopper.outages(),
            end_at: Box::new(move |at| stopper.end_at(at)),
        }),
    })
}

/// Settings of a run.
#[derive(Debug, Clone)]
pub struct Options {
    /// Folder in which the run's folder is made.
    pub out_dir: PathBuf,
    /// Keep the systems' work folder after the run.
    pub keep: bool,
    /// The command line, word by word, for the record.
    pub command: Vec<String>,
    /// How progress is shown.
    pub display: Display,
    /// The binary whose sub-commands are the built-in systems.
    pub own_binary: OsString,
    /// The folder that relative paths of the experiment start from: that of its file.
    pub base: PathBuf,
    /// The command that runs [`processes::reaper_main`].
    pub reaper: Vec<OsString>,
    /// The command that runs [`guardian_main`](crate::guardian_main) with the path that is
    /// added to it.
    pub guardian: Vec<OsString>,
    /// What makes load.
    pub generator: StartGenerator,
    /// Version of the binary, for the record.
    pub version: String,
    /// Versions of further parts, by name, for the record.
    pub versions: std::collections::BTreeMap<String, String>,
    /// What the plan was made from, for the record.
    pub made_from: Option<MadeFrom>,
    /// Where others may look at the run while it goes on.
    pub underway: Underway,
}

impl Options {
    /// Settings for a run made by this very binary, whose hidden sub-commands
    /// `reaper` and `guardian` are those.
    ///
    /// # Errors
    /// When the system does not tell where the binary is.
    pub fn for_this_binary(out_dir: impl Into<PathBuf>) -> std::io::Result<Self> {
        let own_binary = std::env::current_exe()?.into_os_string();
        Ok(Self {
            out_dir: out_dir.into(),
            keep: false,
            command: std::env::args_os()
                .map(|word| word.to_string_lossy().into_owned())
                .collect(),
            display: Display::Auto,
            reaper: vec![own_binary.clone(), "reaper".into()],
            guardian: vec![own_binary.clone(), "guardian".into()],
            own_binary,
            base: PathBuf::from("."),
            generator: local,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            versions: std::collections::BTreeMap::new(),
            made_from: None,
            underway: Underway::default(),
        })
    }
}

/// A run that was made, whatever its outcome.
#[derive(Debug)]
pub struct Finished {
    /// Everything that was recorded; the report is to be written into it.
    pub folder: RunFolder,
    /// What was expected and what was measured; its outcome is the exit code.
    pub verdict: Verdict,
    /// Whether a signal ended it: somebody wants no more.
    pub interrupted: bool,
    /// The systems' work folder, if it was kept.
    pub kept: Option<PathBuf>,
    /// What a person should know besides: log lines that could not be read, and
    /// things that could not be removed.
    pub notes: Vec<String>,
}

/// Why a run could not be made. Nothing that was started is left.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The run's folder cannot be written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The runtime, a thread or a signal handler is not to be had.
    #[error("set up the laboratory: {0}")]
    SetUp(String),
    /// The reaper cannot be relied on.
    #[error(transparent)]
    Reaper(#[from] ReaperError),
    /// There are no free ports.
    #[error(transparent)]
    Port(#[from] PortError),
    /// A lifecycle or loop cannot be mined.
    #[error(transparent)]
    Definition(#[from] lab_lifecycle::DefinitionError),
    /// A file of a load cannot be used. Nothing was started.
    #[error(transparent)]
    File(#[from] FileError),
    /// A system could not be started.
    #[error("{cause}\nall logs are in {}", logs.display())]
    Start {
        /// What went wrong.
        cause: Box<StartError>,
        /// The folder of the logs.
        logs: PathBuf,
    },
    /// A driver could not be opened.
    #[error("{cause}\nall logs are in {}", logs.display())]
    Driver {
        /// What went wrong.
        cause: DriverError,
        /// The folder of the logs.
        logs: PathBuf,
    },
    /// The run ended before its first step.
    #[error("{cause}\nall logs are in {}", logs.display())]
    Early {
        /// What ended it.
        cause: String,
        /// Whether that was a signal.
        interrupted: bool,
        /// The folder of the logs.
        logs: PathBuf,
    },
}
