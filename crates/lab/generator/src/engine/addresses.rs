//! Where a target is.

use std::fmt;
use std::net::SocketAddr;

/// The addresses of a target, one at least. Connections take them in turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Addresses {
    first: SocketAddr,
    others: Vec<SocketAddr>,
    /// What a reader of the result should know of them.
    pub(crate) note: Option<String>,
}

impl Addresses {
    pub(crate) fn new(first: SocketAddr, others: Vec<SocketAddr>) -> Self {
        Self {
            first,
            others,
            note: None,
        }
    }

    /// Where the connection with this number goes.
    pub(crate) fn of(&self, number: u64) -> SocketAddr {
        let all = self.others.len() as u64 + 1;
        match number % all {
            0 => self.first,
            turn => self.others[turn as usize - 1],
        }
    }

    /// Whether there are more than one.
    pub(crate) fn are_several(&self) -> bool {
        !self.others.is_empty()
    }
}

impl fmt::Display for Addresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.first)?;
        for other in &self.others {
            write!(f, ", {other}")?;
        }
        Ok(())
    }
}
