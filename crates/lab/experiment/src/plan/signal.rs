//! Signals of a step.

use std::fmt;

use serde::Serialize;

use super::{CopySelector, EndSignal};

/// A signal that a step sends to the first process of each copy of a system that is chosen.
/// It is not undone.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SentSignal {
    /// Which signal.
    pub signal: EndSignal,
    /// Name of the system.
    pub system: String,
    /// Which of its copies.
    pub who: CopySelector,
}

impl fmt::Display for SentSignal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let target = self.who.of(&self.system);
        write!(f, "signal {} to {target}", self.signal.word())
    }
}

impl EndSignal {
    /// Its name, without the `SIG` in front.
    pub fn word(self) -> &'static str {
        match self {
            Self::Kill => "KILL",
            Self::Term => "TERM",
            Self::Int => "INT",
            Self::Hup => "HUP",
            Self::Quit => "QUIT",
            Self::Abrt => "ABRT",
            Self::Usr1 => "USR1",
            Self::Usr2 => "USR2",
        }
    }
}
