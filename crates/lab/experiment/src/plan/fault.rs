//! Faults of a plan: what a step breaks, and puts right again.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use super::{Call, Reference, Template};

/// A fault of a step. It begins, lasts, and is undone by the end of its step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fault {
    /// What is done, and to what.
    pub kind: FaultKind,
    /// When it begins, counted from the start of the step; `None`: when the step's `hold`
    /// is over, at once if it has none.
    pub at: Option<Duration>,
    /// How long it lasts; `None`: as long as the step goes on, or a restart takes.
    pub length: Option<Duration>,
    /// Time between the end of one turn and the start of the next, if it recurs while the
    /// step goes on; the first begins so long after `at`.
    pub every: Option<Every>,
    /// The later step until whose end it goes on, beside all steps until then; `None`: until
    /// the end of its own.
    pub through: Option<String>,
    /// Whether the end of the step leaves it as it is.
    pub keep: bool,
}

impl Fault {
    /// Whether its step, which does nothing but hold for so long, goes on for it after that. The
    /// last turn of one that recurs may, and is not counted.
    pub fn outlasts(&self, hold: Duration) -> bool {
        if self.every.is_some() || self.through.is_some() || self.keep {
            return false;
        }
        match (self.at, self.length) {
            // It begins when the hold is over.
            (None, _) => true,
            (Some(at), Some(length)) => at + length > hold,
            (Some(at), None) => at >= hold || self.kind.is_restart(),
        }
    }
}

/// The time between two turns of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Every {
    /// Always the same.
    Fixed(Duration),
    /// Exponential with this mean, drawn by the seed.
    Exponential(Duration),
}

/// What passes from one to another: a system or a load that refers to the address of a
/// system.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Connection {
    /// The system or load that connects.
    pub from: String,
    /// The system that is connected to.
    pub to: String,
}

impl fmt::Display for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} -> {}", self.from, self.to)
    }
}

/// What is done to connections. `docs/faults.md` says by what means.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NetworkFault {
    /// Nothing passes.
    Partition,
    /// Everything comes later.
    Delay {
        /// By so much, in each direction.
        by: Duration,
        /// Evenly up to so much less or more.
        jitter: Duration,
    },
    /// This share of segments is lost, and sent again later.
    Lose(f64),
    /// So many bytes pass in a second, in each direction, of all connections together.
    Throttle(u64),
    /// Connections are reset, those that exist and every new one.
    Reset,
}

/// Which part of what passes is disturbed.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Part {
    /// What passes this way; `None`: both, each by itself.
    pub direction: Option<Direction>,
    /// That of this share of the connections, over UDP of the clients, above 0 and below 1, each
    /// drawn by the seed; `None`: of all.
    pub clients: Option<f64>,
}

/// A way between two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// From who connects.
    ToServer,
    /// Back to who connects.
    ToClient,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.direction {
            None => {}
            Some(Direction::ToServer) => f.write_str(", to the server alone")?,
            Some(Direction::ToClient) => f.write_str(", to the client alone")?,
        }
        match self.clients {
            None => Ok(()),
            Some(share) => write!(f, ", of {} of the clients", units::show_share(share)),
        }
    }
}

/// What a fault does to processes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProcessFault {
    /// They get a signal that ends them, and are started again when the fault ends.
    Kill(EndSignal),
    /// They are asked to end by a signal, as an operator would, and started again.
    Restart(EndSignal),
    /// They are stopped, and go on when the fault ends.
    Pause,
    /// They run for this share of the time, above 0 and below 1: they are stopped and let go
    /// on by turns.
    Slow(f64),
    /// They are left little of something.
    Exhaust(ScarceResource),
}

/// What processes are left little of: so much more than they have when the fault begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScarceResource {
    /// So many descriptors, of each process.
    Descriptors(u64),
    /// So many bytes of address space, of each process.
    Memory(u64),
    /// So many bytes of the file system of each copy.
    Disk(u64),
}

/// How far it goes, after what it is done to.
impl fmt::Display for ProcessFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Slow(share) => write!(f, " to {}", units::show_share(*share)),
            Self::Exhaust(ScarceResource::Descriptors(left)) => {
                write!(f, " but for {left} descriptors")
            }
            Self::Exhaust(ScarceResource::Memory(left)) => {
                write!(f, " but for {} of memory", units::show_bytes(*left as f64))
            }
            Self::Exhaust(ScarceResource::Disk(left)) => {
                write!(f, " but for {} of disk", units::show_bytes(*left as f64))
            }
            Self::Kill(_) | Self::Restart(_) | Self::Pause => Ok(()),
        }
    }
}

/// What a fault does, and to what.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// Processes are hit.
    Process {
        /// What is done to them.
        does: ProcessFault,
        /// Name of their system.
        system: String,
        /// Which of its copies.
        who: CopySelector,
    },
    /// What passes from some systems or loads to one system is disturbed.
    Network {
        /// What is done to it.
        does: NetworkFault,
        /// Between whom.
        connections: Vec<Connection>,
        /// Which part of it.
        part: Part,
    },
    /// Agents of a fleet fall silent, as if their network were cut.
    Silence {
        /// Name of the fleet.
        fleet: String,
        /// How many agents it has.
        agents: u32,
        /// Which of them: not those that a probe picks.
        who: CopySelector,
        /// They are silent and speak by turns of this length, each in a phase of its own;
        /// `None`: they are silent all the time.
        flap: Option<Duration>,
        /// How they speak again.
        back: Back,
    },
    /// What the file itself says how to do is done.
    Custom {
        /// What it is called.
        name: String,
        /// Does it.
        does: Act,
        /// Undoes it.
        undo: Act,
    },
}

/// How agents speak again after they were silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Back {
    /// All at once: each says at once what it would have to say at its next turn.
    AtOnce,
    /// Each when its own turn comes.
    InTurn,
}

/// What does a fault of the file's own, or undoes it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Act {
    /// A command, run by a shell.
    Command(Template),
    /// A request.
    Request(Box<Call>),
}

impl Act {
    /// Whether it refers to a system or the folder of the run, with which ends whatever it is
    /// about.
    pub fn is_about_the_run(&self) -> bool {
        let template = match self {
            Self::Command(command) => command,
            Self::Request(call) => &call.target,
        };
        let mut references = template.references();
        references.any(|reference| !matches!(reference, Reference::Kept(_)))
    }
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(command) => write!(f, "`{command}`"),
            Self::Request(call) => {
                let (request, target) = (&call.request, &call.target);
                write!(f, "{} {target}{}", request.method, request.path)
            }
        }
    }
}

impl FaultKind {
    /// The word that the file has for it.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Process { does, .. } => match does {
                ProcessFault::Kill(_) => "kill",
                ProcessFault::Restart(_) => "restart",
                ProcessFault::Pause => "pause",
                ProcessFault::Slow(_) => "slow",
                ProcessFault::Exhaust(_) => "exhaust",
            },
            Self::Network { does, .. } => match does {
                NetworkFault::Partition => "partition",
                NetworkFault::Delay { .. } => "delay",
                NetworkFault::Lose(_) => "lose",
                NetworkFault::Throttle(_) => "throttle",
                NetworkFault::Reset => "reset",
            },
            Self::Silence { .. } => "silence",
            Self::Custom { .. } => "custom",
        }
    }

    /// Whether what undoes it has to be on the disk before it is done.
    pub fn is_on_ledger(&self) -> bool {
        match self {
            Self::Process { does, .. } => matches!(does, ProcessFault::Exhaust(_)),
            // A fleet ends with the run.
            Self::Network { .. } | Self::Silence { .. } => false,
            Self::Custom { undo, .. } => !undo.is_about_the_run(),
        }
    }

    /// Whether it is over when its processes are ready again.
    pub fn is_restart(&self) -> bool {
        matches!(self, Self::Process { does, .. } if matches!(does, ProcessFault::Restart(_)))
    }
}

/// What is done and to what: `kill etcd.0`.
impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.word())?;
        match self {
            Self::Process { does, system, who } => write!(f, "{}{does}", who.of(system)),
            Self::Network {
                connections, part, ..
            } => {
                let all: Vec<String> = connections.iter().map(Connection::to_string).collect();
                write!(f, "{}{part}", all.join(", "))
            }
            Self::Silence {
                fleet,
                agents,
                who,
                flap,
                back,
            } => {
                match who {
                    CopySelector::Copy(agent) => write!(f, "{fleet}.{agent}")?,
                    CopySelector::All => write!(f, "all {agents} of {fleet}")?,
                    who => f.write_str(&who.of(fleet))?,
                }
                if let Some(flap) = flap {
                    write!(
                        f,
                        " by turns of {}",
                        units::show_seconds(flap.as_secs_f64())
                    )?;
                }
                match back {
                    Back::AtOnce => Ok(()),
                    Back::InTurn => f.write_str(", back in turn"),
                }
            }
            Self::Custom { name, .. } => f.write_str(name),
        }
    }
}

/// A signal that is meant to end a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum EndSignal {
    /// Cannot be caught: as a crash of the machine is to the process.
    Kill,
    /// Asks to end.
    Term,
    /// As Ctrl-C does.
    Int,
    /// As the loss of a terminal does.
    Hup,
    /// Asks for a core dump.
    Quit,
    /// As a failed assertion does.
    Abrt,
    /// What the program makes of it: often to serve what it has begun, and then to end.
    Usr1,
    /// The same.
    Usr2,
}

/// Which copies of a system are hit.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CopySelector {
    /// The one that there is.
    Only,
    /// This one of several, counted from 0.
    Copy(u32),
    /// All of them.
    All,
    /// So many, drawn by the seed.
    Number(u32),
    /// A share of them, above 0 and at most 1, drawn by the seed: rounded to the nearest
    /// number, half of one upwards, and never none.
    Share(f64),
    /// Those that a probe picks: whose newest answer was 1 or true, or whose name or address
    /// was the newest answer of a probe that asks once.
    Probe {
        /// Its name.
        probe: String,
        /// Longest wait until there is one.
        within: Duration,
    },
}

impl CopySelector {
    /// Which copies of `system`, in words: `2 of etcd`.
    pub fn of(&self, system: &str) -> String {
        match self {
            Self::Only => system.to_owned(),
            Self::Copy(index) => format!("{system}.{index}"),
            Self::All => format!("all of {system}"),
            Self::Number(number) => format!("{number} of {system}"),
            Self::Share(share) => format!("{} of {system}", units::show_share(*share)),
            Self::Probe { probe, .. } => format!("the {system} that {probe} picks"),
        }
    }
}

/// What the end of a system's process means while the run goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnExit {
    /// The run ends with an error: it needed the system.
    Error,
    /// Nothing: the system may end.
    Expected,
    /// It is started again after this time, as a supervisor would.
    Restart(Duration),
}
