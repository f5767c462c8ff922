//! The records of a run, as they are written.
//!
//! Times are seconds since the start of the run unless a name says otherwise.

use std::collections::BTreeMap;

pub use lab_judgement::Unit;
use serde::{Deserialize, Serialize};

/// Version of the formats in this file; readers refuse a newer one.
pub const SCHEMA: u32 = 1;

/// `environment.json`: where, when and with what the run was made.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// [`SCHEMA`] of the writer.
    pub schema: u32,
    /// Identity of the run, also the name of its folder.
    pub run_id: String,
    /// Start of the run in nanoseconds since the Unix epoch.
    pub started_at_unix_ns: i64,
    /// The command line, word by word.
    pub command: Vec<String>,
    /// Version of the binary.
    pub headroom_version: String,
    /// Commit of the working tree the run was started in, with `-dirty` when it
    /// had changes; `None` outside a repository.
    pub git_commit: Option<String>,
    /// Processors that the run could use.
    pub cores: u32,
    /// Model of the processor.
    pub cpu_model: String,
    /// Memory of the machine in bytes.
    pub memory_bytes: u64,
    /// Kernel name and release.
    pub kernel: String,
    /// Version of each further part, by name.
    pub versions: BTreeMap<String, String>,
    /// What makes the same plan again; `None` of loads that are no part of an experiment, and
    /// of runs that older versions made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_from: Option<MadeFrom>,
}

/// What a run's plan was made from, beside the text of its experiment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeFrom {
    /// The experiment file as an absolute path, from whose folder relative paths start; or the
    /// name of a ready experiment.
    pub file: String,
    /// Whether it is a ready experiment.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ready: bool,
    /// Constants of `[let]` that were replaced, with their values, in this order: of one that is
    /// named twice the last counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<(String, String)>,
    /// Which side of a gate it was: `base` or `new`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub side: Option<String>,
    /// The variant that this side was, if the file has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
}

/// One line of `events.jsonl`: something that happened to the run itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// When.
    pub t_s: f64,
    /// What kind of event.
    pub kind: EventKind,
    /// The step or system it is about.
    pub name: String,
    /// What a person should know about it; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
}

/// Kinds of [`Event`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventKind {
    /// A system's process was started.
    SystemStarted,
    /// A system was ready.
    SystemReady,
    /// A system that was started again was not ready in time; the text says what is missing.
    SystemUnready,
    /// A system's process ended; the text says how.
    SystemExited,
    /// A fault began; the text says what was done to whom. [`FaultRecord`] has it in numbers.
    FaultBegan,
    /// A fault ended; the text says what came of it.
    FaultEnded,
    /// A step began.
    StepStarted,
    /// A step ended well.
    StepEnded,
    /// A step failed; the text says why.
    StepFailed,
    /// A step was left out, for what it builds on is missing; the text says what.
    StepSkipped,
    /// Everything that the step asked to make was asked for and answered.
    Made,
    /// A step's command ended well; the text is what it printed, its first lines if long.
    Said,
    /// A step sent a signal; the text says which, and to whom.
    Signalled,
    /// A request of a step was answered as the file expects; the text says with what.
    Answered,
    /// A load, a search or a probe ended; the text says what came of it.
    Measured,
    /// The steps are over, and the systems are being stopped: what happens from now on is
    /// not judged.
    TearDown,
    /// The run was interrupted; the text says by what.
    Interrupted,
    /// Somebody who watches the run marked this moment; the text is what they noted.
    Noted,
}

/// `faults.json`, one entry: a fault that was made, and what it did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FaultRecord {
    /// The step that it belongs to.
    pub step: String,
    /// What was done: `kill`, `restart`, `pause`.
    pub kind: String,
    /// The copies of systems that were hit, by name.
    pub targets: Vec<String>,
    /// When it began.
    pub begin_s: f64,
    /// When it was over, and what it broke ready again; absent when the run ended before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_s: Option<f64>,
    /// How it ended, in words.
    pub text: String,
    /// What it did to each load and each number of entities that was known before it.
    pub effects: Vec<FaultEffect>,
}

/// What a fault did to one measure.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FaultEffect {
    /// `LOAD.good` or `KIND.STATE`.
    pub of: String,
    /// All of it in words; also why nothing can be said, or that nothing was seen.
    pub text: String,
    /// Whether anything was seen; absent when nothing can be said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<bool>,
    /// From the fault's start until something was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detection_s: Option<f64>,
    /// From the fault's start until all was as before; 0 when nothing was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery_s: Option<f64>,
    /// From the fault's end; 0 when it was as before by then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery_from_end_s: Option<f64>,
    /// It had not come back when the measurement ended: it took at least so long.
    #[serde(default)]
    pub at_least: bool,
    /// Nothing was seen, but some of it was not well or not looked at: it may have taken so long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most_s: Option<f64>,
    /// By how much the times may be off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolution_s: Option<f64>,
    /// What would show more, where something is not known well and to ask more often would not help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// The largest distance from what was usual, as a share of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth_share: Option<f64>,
    /// Requests that failed beyond what was usual, or entity-seconds that were missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<f64>,
}

/// One line of `series/processes.csv`: a sample of a system, which is its process and all
/// that this one started, directly or not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProcessSample {
    /// When.
    pub t_s: f64,
    /// The system, with `.index` when it has several copies.
    pub system: String,
    /// Processor time used since the sample before, in cores; that of processes which
    /// ended meanwhile included.
    pub cpu_cores: f64,
    /// Resident memory in bytes; what several of its processes share counts once.
    pub rss_bytes: u64,
    /// Open file descriptors.
    pub fds: u64,
    /// Threads.
    pub threads: u64,
}

/// One line of `series/system-processes.csv`: a process of a system.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SystemProcess {
    /// The system, as in [`ProcessSample`].
    pub system: String,
    /// Its id; 0: the line stands for others that are not listed.
    pub pid: u32,
    /// The process that started it, as far as is known.
    pub parent: u32,
    /// Name of its command, at most 15 bytes.
    pub command: String,
    /// When it was seen first.
    pub from_s: f64,
    /// When it was seen last.
    pub to_s: f64,
    /// Processor time in seconds, with that of children too short to be seen themselves.
    pub cpu_s: f64,
    /// Most processor time between two samples, in cores.
    pub cpu_cores_max: f64,
    /// Most resident memory in bytes; what it shares with others counts in full.
    pub rss_bytes_max: u64,
}

impl SystemProcess {
    /// A line that stands for so many more processes.
    #[must_use]
    pub fn more(system: &str, count: u64) -> Self {
        Self {
            system: system.to_owned(),
            command: format!("{count} more"),
            ..Self::default()
        }
    }
}

/// One line of `series/entities.csv`: how many entities were in a state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EntityCount {
    /// When.
    pub t_s: f64,
    /// Kind of entity.
    pub what: String,
    /// Its state.
    pub state: String,
    /// How many were in that state.
    pub count: u64,
}

/// One line of `series/probes.csv`: a try of a probe.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProbeSample {
    /// When it began.
    pub t_s: f64,
    /// Name of the probe.
    pub probe: String,
    /// The copy that was asked, as in [`ProcessSample`]; empty if the probe asks once.
    pub of: String,
    /// How long the answer took, or how long it was waited for.
    pub latency_s: f64,
    /// Tries before this one that were left out, because one took too long.
    pub skipped: u64,
    /// The number that was answered.
    pub value: Option<f64>,
    /// The text that was answered, when it was no number.
    pub text: String,
    /// Why it failed; empty if it went well.
    pub error: String,
}

impl ProbeSample {
    /// Whether it went well.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.error.is_empty()
    }
}

/// What a probe came to, of one copy if it asks several.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProbeSummary {
    /// Name of the probe.
    pub name: String,
    /// The copy that was asked; empty if the probe asks once.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub of: String,
    /// Tries.
    pub tries: u64,
    /// Those of them that failed.
    pub failed: u64,
    /// Tries that were left out, because one before took too long.
    pub skipped: u64,
    /// Median latency of the tries that went well; absent when none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_s: Option<f64>,
    /// Their longest latency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_s: Option<f64>,
    /// The newest number that was answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// The newest text that was answered.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Why the newest of those that failed did; empty if none failed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub error: String,
}

/// One line of `series/loops.csv`: one turn of recurring work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoopTurn {
    /// Name of the loop.
    pub name: String,
    /// When the turn began.
    pub t_s: f64,
    /// How long it took.
    pub duration_s: f64,
}

/// `histograms.json`, one entry: a distribution of durations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredHistogram {
    /// What was measured, for instance `task.desired..resolved`.
    pub name: String,
    /// Unit of the recorded values; always `us`.
    pub unit: String,
    /// HdrHistogram V2, deflated, in base64.
    pub hdr: String,
}

/// How a run ended. The numbers are the exit codes of the binary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Every expectation held.
    Pass = 0,
    /// At least one expectation did not hold, or a wait ran out.
    Fail = 1,
    /// The data cannot tell.
    Inconclusive = 2,
    /// The generator or the environment was the limit.
    Invalid = 3,
    /// The run could not be made.
    Error = 4,
}

/// `verdict.json`: what was expected and what was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The outcome of the whole run.
    pub outcome: Outcome,
    /// Why the run ended early; absent when every step ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Length of the run in seconds.
    pub duration_s: f64,
    /// Each expectation that was judged, in file order.
    pub expectations: Vec<Expectation>,
    /// The others: this machine lacks what they are about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<OmittedExpectation>,
    /// What each probe came to; absent without probes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub probes: Vec<ProbeSummary>,
    /// What a person should know besides: lifecycles that found nothing, log lines that
    /// could not be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// An expectation that a run has left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OmittedExpectation {
    /// The expression as the file has it, with names filled in.
    pub that: String,
    /// What the machine lacked, as a sentence without its full stop.
    pub why: String,
}

/// One expectation of a [`Verdict`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Expectation {
    /// The expression as the file has it, with names filled in.
    pub that: String,
    /// What was measured, with its unit, for instance `1.27 s`; empty when
    /// nothing could be measured.
    pub measured: String,
    /// The same as numbers, by metric: times in seconds, sizes in bytes, shares from 0
    /// to 1, rates per second. A metric that was not measured is missing.
    #[serde(default)]
    pub values: BTreeMap<String, f64>,
    /// The unit of each of them.
    #[serde(default)]
    pub units: BTreeMap<String, Unit>,
    /// Did it hold?
    pub outcome: Outcome,
    /// Why it could not be judged; empty otherwise.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}
