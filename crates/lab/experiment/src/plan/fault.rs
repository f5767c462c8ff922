//! Faults of a plan: what a step breaks, and puts right again.

use std::time::Duration;

use serde::Serialize;

/// A fault of a step. It begins, lasts, and is undone by the end of its step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fault {
    /// What is done.
    pub kind: FaultKind,
    /// Name of the system that it is done to.
    pub system: String,
    /// To which of its copies.
    pub who: Who,
    /// When it begins, counted from the begin of the step; `None`: when the step's `hold`
    /// is over, at once if it has none.
    pub at: Option<Duration>,
    /// How long it lasts; `None`: as long as the step goes on, or a restart takes.
    pub length: Option<Duration>,
    /// Whether the end of the step leaves it as it is.
    pub keep: bool,
}

/// What a fault does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// The processes get a signal that ends them, and are started again when the fault ends.
    Kill(EndSignal),
    /// The processes are asked to end by a signal, as an operator would, and started again.
    Restart(EndSignal),
    /// The processes are stopped, and go on when the fault ends.
    Pause,
}

impl FaultKind {
    /// The word that the file has for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Kill(_) => "kill",
            Self::Restart(_) => "restart",
            Self::Pause => "pause",
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
