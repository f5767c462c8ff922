//! What happens, and when.

use std::collections::BTreeMap;

use diego::models::{self, ActualLrp};

use super::cell::Work;
use crate::rep::container::{Answer, Call, Event as Happens};

/// Something that happens at its time.
pub(crate) enum Event {
    /// A call of a container reaches the BBS; `from` is number and incarnation of its cell.
    Call {
        from: (usize, u64),
        guid: String,
        call: u64,
        what: Call,
    },
    Answer {
        to: (usize, u64),
        guid: String,
        call: u64,
        answer: Answer,
    },
    Container {
        at: (usize, u64),
        guid: String,
        event: Happens,
    },
    Heartbeat {
        from: (usize, u64),
    },
    Held {
        to: (usize, u64),
        held: bool,
    },
    Beat {
        cell: (usize, u64),
    },
    Bulk {
        cell: (usize, u64),
    },
    Records {
        to: (usize, u64),
        before: BTreeMap<String, bool>,
        rows: Vec<ActualLrp>,
        tasks: Vec<models::Task>,
    },
    /// A command that waits for no answer.
    ToBbs(Box<super::Command>),
    Accept {
        cell: usize,
        work: Work,
    },
    Stop {
        cell: usize,
        guid: String,
    },
    /// Work reaches the auctioneer.
    Auction(Vec<Work>),
    Bbs(super::bbs::Event),
    Client(super::client::Event),
    Fault,
    Up(Who),
    Watch,
}

#[derive(Clone, Copy)]
pub(crate) enum Who {
    Cell(usize),
    Bbs,
    Auctioneer,
    Network(usize),
}

/// An event at its time; of those of one time the first that was made comes first.
pub(super) struct Entry(pub(super) i64, pub(super) u64, pub(super) Event);

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        (self.0, self.1) == (other.0, other.1)
    }
}
impl Eq for Entry {}
impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.0, self.1).cmp(&(other.0, other.1))
    }
}
