//! Faults of a plan: what a step breaks, and puts right again.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

/// A fault of a step. It begins, lasts, and is undone by the end of its step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fault {
    /// What is done.
    pub kind: FaultKind,
    /// To what it is done.
    pub target: FaultTarget,
    /// When it begins, counted from the begin of the step; `None`: when the step's `hold`
    /// is over, at once if it has none.
    pub at: Option<Duration>,
    /// How long it lasts; `None`: as long as the step goes on, or a restart takes.
    pub length: Option<Duration>,
    /// Time between the end of one turn and the begin of the next, if it recurs while the
    /// step goes on; the first begins so long after `at`.
    pub every: Option<Every>,
    /// Whether the end of the step leaves it as it is.
    pub keep: bool,
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

/// What a fault is done to.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultTarget {
    /// Processes.
    Copies {
        /// Name of their system.
        system: String,
        /// Which of its copies.
        who: Who,
    },
    /// What passes from some systems or loads to one system.
    Connections(Vec<Connection>),
}

impl fmt::Display for FaultTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Copies { system, who } => match who {
                Who::Copy(0) => f.write_str(system),
                Who::Copy(index) => write!(f, "{system}.{index}"),
                Who::All => write!(f, "all of {system}"),
                Who::Number(number) => write!(f, "{number} of {system}"),
                Who::Share(share) => write!(f, "{} of {system}", units::show_share(*share)),
            },
            Self::Connections(all) => {
                let all: Vec<String> = all.iter().map(Connection::to_string).collect();
                f.write_str(&all.join(", "))
            }
        }
    }
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

/// What a fault does.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// The processes get a signal that ends them, and are started again when the fault ends.
    Kill(EndSignal),
    /// The processes are asked to end by a signal, as an operator would, and started again.
    Restart(EndSignal),
    /// The processes are stopped, and go on when the fault ends.
    Pause,
    /// Connections are disturbed.
    Network(NetworkFault),
}

impl FaultKind {
    /// The word that the file has for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Kill(_) => "kill",
            Self::Restart(_) => "restart",
            Self::Pause => "pause",
            Self::Network(NetworkFault::Partition) => "partition",
            Self::Network(NetworkFault::Delay { .. }) => "delay",
            Self::Network(NetworkFault::Lose(_)) => "lose",
            Self::Network(NetworkFault::Throttle(_)) => "throttle",
            Self::Network(NetworkFault::Reset) => "reset",
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
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Who {
    /// This one, counted from 0.
    Copy(u32),
    /// All of them.
    All,
    /// So many, drawn by the seed.
    Number(u32),
    /// A share from 0 to 1 of them, drawn by the seed; at least one.
    Share(f64),
}

impl Who {
    /// How many of `copies` are hit; a share is rounded to the nearest number, half of one
    /// upwards, and is never none.
    pub fn number(self, copies: u32) -> u32 {
        match self {
            Self::Copy(_) => 1,
            Self::All => copies,
            Self::Number(number) => number.min(copies),
            Self::Share(share) => {
                // 15 % of 10 is 1.5, although the product of the two may be a hair less.
                let number = (f64::from(copies) * share + 1e-9).round();
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "between 0 and a count of copies"
                )]
                let number = number.clamp(0.0, f64::from(copies)) as u32;
                number.max(1)
            }
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
