//! The checked plan: what a run will do, with every name resolved.
//!
//! A plan is a pure function of the experiment file, its overrides and the
//! catalogue of the binary. It holds no port, path or time of the machine: what
//! is only known once the run starts stays a [`Reference`] inside a [`Template`].

mod call;
mod fault;
mod gate;
mod left_out;
mod load;
mod network;
mod probe;
mod signal;
mod sweep;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use lab_load::Protocol;
use lab_load::request::Take;
use serde::Serialize;

use crate::expr::Expr;

pub use call::{Call, CountError, WHOLE_OUTPUT};
pub use fault::{
    Act, Back, Connection, CopySelector, Direction, EndSignal, Every, Fault, FaultKind,
    NetworkFault, OnExit, Part, ProcessFault, ScarceResource,
};
pub use gate::{Gated, Gates, Variant};
pub use lab_lifecycle::{Definition as Lifecycle, LoopDefinition as Loop};
pub use left_out::LeftOut;
pub use load::{
    Journey, Load, LoadModel, LoadTls, Period, Request, RequestBody, Schedule, Search, StepLoad,
    Traffic,
};
pub use network::{FaultMechanism, Network};
pub use probe::{Aggregation, CommandValue, Probe, ProbeKind};
pub use signal::SentSignal;
pub use sweep::{Range, Setting, Sweep};

/// Everything a run does, in the order it does it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plan {
    /// Name of the experiment; becomes part of the run's id.
    pub name: String,
    /// One sentence about what the experiment shows.
    pub about: String,
    /// Seed of everything random in the run.
    pub seed: u64,
    /// What those may do who watch the run on its page, in order, each once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub page: Vec<PageAct>,
    /// In which network it happens.
    #[serde(skip_serializing_if = "Network::is_of_the_machine")]
    pub network: Network,
    /// Constants whose values are tried one after the other, each in a run of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sweep: Option<Sweep>,
    /// Child processes, in file order; fleets are expanded into these.
    pub systems: Vec<System>,
    /// Who makes and counts entities.
    pub drivers: Vec<Driver>,
    /// Requests that the run sends: loads, and probes that are open loads, in file order.
    pub loads: Vec<Load>,
    /// Questions asked all the time, in file order.
    pub probes: Vec<Probe>,
    /// Timelines mined from logs, one row per entity.
    pub lifecycles: Vec<Lifecycle>,
    /// Recurring work mined from logs, one duration per turn.
    pub loops: Vec<Loop>,
    /// What happens, in order.
    pub steps: Vec<Step>,
    /// What must hold at the end.
    pub expects: Vec<Expect>,
    /// Sides that gates compare.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub variants: Vec<Variant>,
    /// What must not get worse from one variant to another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gates: Option<Gates>,
}

impl Plan {
    /// Every connection that a fault of the plan disturbs, each once.
    pub fn disturbed(&self) -> BTreeSet<Connection> {
        let faults = self.steps.iter().flat_map(|step| &step.faults);
        let connections = faults.filter_map(|fault| match &fault.kind {
            FaultKind::Network { connections, .. } => Some(connections),
            FaultKind::Process { .. } | FaultKind::Silence { .. } | FaultKind::Custom { .. } => {
                None
            }
        });
        connections.flatten().cloned().collect()
    }

    /// Whether what passes there are datagrams, which only loads are known to send.
    pub fn is_over_udp(&self, connection: &Connection) -> bool {
        let mut loads = self.loads.iter();
        loads.any(|load| load.name == connection.from && load.protocol == Protocol::Udp)
    }
}

/// A child process (or `count` of them) that the run starts and watches.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct System {
    /// Name; others refer to its address as `{name.addr}`.
    pub name: String,
    /// Program and arguments. A builtin starts with [`Program::OwnBinary`].
    pub program: Program,
    /// Arguments after the program, already split into words.
    pub args: Vec<Template>,
    /// The program of the machine without which it is left out; `None`: it is needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub needs: Option<String>,
    /// How the runner knows that it can be used; `None`: as soon as it runs.
    pub ready: Option<Ready>,
    /// Longest wait for readiness.
    pub ready_within: Duration,
    /// Systems that must be ready before this one starts.
    pub after: Vec<String>,
    /// How many copies; copy `i` has its own port and `{index}`.
    pub count: u32,
    /// Names of the further ports that each copy has.
    pub ports: Vec<String>,
    /// Added to the environment.
    pub env: BTreeMap<String, Template>,
    /// Processors it may run on; `None`: all.
    pub cpus: Option<Vec<u32>>,
    /// Limit of memory in bytes, kept by a cgroup; `None`: no limit.
    pub memory_bytes: Option<u64>,
    /// Size of the file system that each copy has for itself, in bytes; `None`: it has none.
    pub disk_bytes: Option<u64>,
    /// What is sampled ten times a second.
    pub watch: Vec<Watch>,
    /// How its log lines are read.
    pub log: LogFormat,
    /// Where it writes its log to by itself.
    pub inputs: Vec<Input>,
    /// What the end of a process means while the run goes on.
    pub on_exit: OnExit,
    /// Set when a `[[fleet]]` table made this system: how many agents it simulates.
    pub agents: Option<u32>,
}

/// Where a system writes its log to by itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Input {
    /// Files: their names, with the wildcards `*`, `?`, `[…]` and `**`.
    Files(Template),
    /// Systemd's journal: words that choose its entries, for `journalctl`.
    Journal(Vec<Template>),
    /// Messages of syslog, or lines, to a TCP address at which the laboratory listens.
    Tcp(Template),
    /// The same in datagrams of UDP.
    Udp(Template),
    /// The same in datagrams to a socket in the file system.
    Unix(Template),
}

impl Input {
    /// All texts of it.
    pub fn templates(&self) -> &[Template] {
        match self {
            Self::Journal(words) => words,
            Self::Files(one) | Self::Tcp(one) | Self::Udp(one) | Self::Unix(one) => {
                std::slice::from_ref(one)
            }
        }
    }
}

/// What is executed.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Program {
    /// A sub-command of the binary that runs the experiment.
    OwnBinary,
    /// A program found by path or in `PATH`.
    Path(Template),
}

/// A signal of readiness.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ready {
    /// The system accepts a TCP connection on its port.
    Tcp,
    /// `GET` of this path on its port answers with a status of 200 to 399.
    Http(String),
    /// A line of its output contains this text.
    Log(String),
}

/// What may be done to a run from its page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PageAct {
    /// A note is made at the moment.
    Mark,
    /// The run ends, as it does at Ctrl-C.
    Stop,
    /// The rate of an open load that runs becomes another.
    Rate,
}

impl PageAct {
    /// Its word in the file.
    pub fn word(self) -> &'static str {
        match self {
            Self::Mark => "mark",
            Self::Stop => "stop",
            Self::Rate => "rate",
        }
    }
}

/// One quantity of a process, read from `/proc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Watch {
    /// Processor time used per second, in cores.
    Cpu,
    /// Resident memory, in bytes.
    Rss,
    /// Open file descriptors.
    Fds,
    /// Threads.
    Threads,
}

/// The form of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogFormat {
    /// Lager JSON, plain JSON or logfmt, told apart line by line.
    Auto,
    /// Lager's JSON.
    Lager,
    /// A JSON object per line.
    Json,
    /// `key=value` pairs.
    Logfmt,
    /// Kept, but not read.
    Text,
}

/// Text with references that are filled in when the run starts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Template(pub Vec<Segment>);

/// A part of a [`Template`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segment {
    /// Literal text.
    Text(String),
    /// Filled in by the runner.
    Reference(Reference),
    /// A variable of a request: what stands between its braces. It has another value
    /// in each request.
    Variable(String),
}

/// What only a started run knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    /// `{port}`: the port allotted to this copy of the system.
    OwnPort,
    /// `{addr}`: loopback address and port allotted to this copy.
    OwnAddr,
    /// `{work}`: a folder of the run that is removed at its end.
    Work,
    /// `{disk}`: the folder on which this copy's own file system is.
    OwnDisk,
    /// `{index}`: number of this copy, from 0.
    Index,
    /// `{name.port}`: port of the first copy of another system.
    Port(String),
    /// `{name.addr}`: address and port of the first copy of another system.
    Addr(String),
    /// `{port.NAME}`, `{addr.NAME}`: a further port of this copy.
    OwnFurther(Form, String),
    /// `{name.port.NAME}`, `{name.addr.NAME}`: a further port of the first copy of another
    /// system, named first.
    Further(Form, String, String),
    /// `{name[1].addr}`, `{name[1].addr.NAME}`: one copy of a system that is not the first.
    Copy {
        /// The system.
        system: String,
        /// Number of the copy, from 0.
        index: u32,
        /// How its port is written.
        form: Form,
        /// Name of a further port; `None`: its first.
        port: Option<String>,
    },
    /// `{name}`: a value that a step before has kept.
    Kept(String),
    /// `{name[*].addr}`, `{name[*]:n{index}={addr}}`: every copy of a system.
    All {
        /// The system.
        system: String,
        /// Stands between two copies.
        separator: String,
        /// What stands for each; references to a copy's own matters are to that copy's.
        piece: Template,
    },
}

/// How a port is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The number alone.
    Port,
    /// With the loopback address.
    Addr,
}

impl Form {
    /// The word that asks for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Port => "port",
            Self::Addr => "addr",
        }
    }
}

/// Who makes and counts entities, over a system's wire.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Driver {
    /// Name of the driver.
    pub name: String,
    /// Built in, or a program that speaks JSON lines.
    pub kind: DriverKind,
    /// The system of the run that it talks to.
    pub talk_to: Option<String>,
    /// What it talks to instead, when that is not a system of the run.
    pub remote: Option<Remote>,
    /// Kinds of entity that it makes, each with the states that it counts.
    pub entities: BTreeMap<String, Vec<String>>,
}

/// Something to drive that a file gives the address of.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Remote {
    /// Its address, with `http://` or `https://`.
    pub address: Template,
    /// Files for mutual TLS; an `https` address needs them.
    pub tls: Option<TlsFiles>,
    /// Address of this machine at which it can reach the driver; `None`: loopback.
    pub reach_at: Option<IpAddr>,
}

/// PEM files of one party of a TLS connection.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TlsFiles {
    /// Its certificate.
    pub certificate: Template,
    /// Its private key.
    pub key: Template,
    /// The authority that the other party's certificate must come from.
    pub authority: Template,
}

/// How a driver is reached.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DriverKind {
    /// One of the catalogue's drivers.
    Builtin {
        /// Its name.
        kind: String,
        /// The sub-command of this binary that it is, word by word.
        command: Vec<String>,
    },
    /// An external program: its path, then its arguments.
    Program(Vec<Template>),
}

/// One step: makes entities, then holds, then sends signals, then asks over HTTP, then runs
/// a command, then waits, under load from its start to its end, with faults in between. Or
/// it searches.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Step {
    /// Name, shown on the time axis.
    pub name: String,
    /// Entities to bring about.
    pub make: Option<Make>,
    /// A pause of this length.
    pub hold: Option<Duration>,
    /// Signals to systems.
    pub signals: Vec<SentSignal>,
    /// Requests over HTTP, one after the other.
    pub calls: Vec<Call>,
    /// A shell command; a status other than 0 ends the run with an error.
    pub run: Option<Template>,
    /// What is kept of its output.
    pub keep: Vec<Take>,
    /// Longest time that the command may take; passing it ends the run with an error.
    pub run_within: Duration,
    /// A condition to wait for.
    pub wait: Option<Wait>,
    /// What must hold all the time that the step takes.
    pub always: Vec<Expr>,
    /// Loads that run as long as the step does.
    pub loads: Vec<StepLoad>,
    /// What is broken meanwhile.
    pub faults: Vec<Fault>,
    /// A search for the highest rate of a load that holds.
    pub search: Option<Search>,
}

impl Step {
    /// The requests that it makes itself, those by which faults are done and undone too.
    pub fn requests(&self) -> impl Iterator<Item = &Call> {
        let acts = self.faults.iter().flat_map(|fault| match &fault.kind {
            FaultKind::Custom { does, undo, .. } => vec![does, undo],
            FaultKind::Process { .. } | FaultKind::Network { .. } | FaultKind::Silence { .. } => {
                Vec::new()
            }
        });
        let of_faults = acts.filter_map(|act| match act {
            Act::Request(call) => Some(&**call),
            Act::Command(_) => None,
        });
        self.calls.iter().chain(of_faults)
    }
}

/// Entities that a driver is asked to bring about.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Make {
    /// Kind of entity.
    pub what: String,
    /// How many; for lasting entities, how many there shall be afterwards.
    pub count: u64,
    /// How fast they are asked for.
    pub rate: Rate,
    /// Most requests that wait for an answer at any moment.
    pub in_flight: u32,
    /// How they are grouped, in the driver's words (`as` in the file).
    pub shape: Option<String>,
    /// Further settings, in the driver's words.
    pub options: BTreeMap<String, String>,
    /// What holds values that steps before keep, by key: `count` and settings. It takes the
    /// place of what stands above once the step begins.
    pub later: BTreeMap<String, Template>,
}

/// A pace of requests.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rate {
    /// As fast as `in_flight` allows.
    Max,
    /// So many a second, evenly spaced.
    PerSecond(f64),
}

/// A condition that ends a step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Wait {
    /// What must hold.
    pub until: Expr,
    /// For how long it must hold without a break; zero: once is enough.
    pub steady: Duration,
    /// Longest wait; passing it fails the step and ends the run.
    pub at_most: Duration,
}

/// One expectation of the verdict.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Expect {
    /// What must hold over the whole run.
    pub that: Expr,
}
