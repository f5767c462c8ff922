//! What hops, handling and handing over take on this machine, by what a run itself shows.

use serde::{Deserialize, Serialize};
use stats::nearest_rank;

use super::cause::Cause;
use super::ledger::{Ledger, Part};
use crate::Nanos;

/// A run is as fast as its machine unless it takes this much longer than the machine did
/// when it was measured: others run now.
const SLOWER: f64 = 3.0;

/// A length, and how far it scatters: from the first to the third quartile.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Measure {
    /// The median, in nanoseconds.
    pub median_ns: f64,
    /// Third quartile less first.
    pub spread_ns: f64,
}

impl Measure {
    fn of(mut samples: Vec<Nanos>) -> Option<Self> {
        samples.sort_unstable();
        let at = |share| nearest_rank(&samples, share).map(|value| value as f64);
        Some(Self {
            median_ns: at(0.5)?,
            spread_ns: at(0.75)? - at(0.25)?,
        })
    }

    /// Of several places the one in the middle; of two the faster one. What is slow in one
    /// place is no property of the machine.
    fn middle(mut all: Vec<Self>) -> Self {
        all.sort_by(|one, other| one.median_ns.total_cmp(&other.median_ns));
        let at = all.len().saturating_sub(1) / 2;
        all.get(at).copied().unwrap_or_default()
    }

    /// This, unless the whole run was much slower than the machine is.
    fn at_most(self, machine: Self) -> Self {
        let bound = (machine.median_ns + machine.spread_ns) * SLOWER;
        match self.median_ns > bound && bound > 0.0 {
            true => machine,
            false => self,
        }
    }
}

/// What the machine takes of every request: nobody's fault.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Floors {
    /// A request on its way.
    pub out: Measure,
    /// An answer on its way.
    pub back: Measure,
    /// A service's handling of a request.
    pub handling: Measure,
    /// Work until a worker that is free has begun it.
    pub handoff: Measure,
}

impl Floors {
    /// As the requests of a run show them; `is_machine` says of a service's handling, or its
    /// waiting for workers, whether it is the machine's.
    pub(super) fn of(ledger: &Ledger, is_machine: &dyn Fn(&Part) -> bool) -> Self {
        let middle = |cause: Cause, work: bool| {
            let parts = ledger.parts.iter().zip(ledger.samples());
            let parts = parts
                .filter(|(part, _)| part.cause == cause && part.work.is_empty() != work)
                .filter(|(part, _)| cause != Cause::Queue || part.peer.is_empty())
                .filter(|(part, _)| is_machine(part));
            Measure::middle(parts.filter_map(|(_, all)| Measure::of(all)).collect())
        };
        Self {
            out: middle(Cause::WireOut, false),
            back: middle(Cause::WireBack, false),
            handling: middle(Cause::Own, false),
            handoff: middle(Cause::Queue, true),
        }
    }

    /// The most that any machine is taken to need, where it was not measured.
    pub(super) fn of_slow_machine() -> Self {
        let measure = |median_ns| Measure {
            median_ns,
            spread_ns: median_ns / 4.0,
        };
        Self {
            out: measure(100_000.0),
            back: measure(100_000.0),
            handling: measure(200_000.0),
            handoff: measure(100_000.0),
        }
    }

    /// These, except for what the machine did much faster when nothing else ran.
    pub(super) fn at_most(self, machine: &Self) -> Self {
        Self {
            out: self.out.at_most(machine.out),
            back: self.back.at_most(machine.back),
            handling: self.handling.at_most(machine.handling),
            handoff: self.handoff.at_most(machine.handoff),
        }
    }

    /// Both ways.
    pub fn hop_ns(&self) -> f64 {
        self.out.median_ns + self.back.median_ns
    }

    /// What a piece of time takes at least, and how far that scatters. Only what comes from
    /// the machine has a floor.
    pub(super) fn of_cause(&self, cause: Cause) -> Measure {
        match cause {
            Cause::WireOut => self.out,
            Cause::WireBack => self.back,
            Cause::Own => self.handling,
            Cause::Queue => self.handoff,
            _ => Measure::default(),
        }
    }
}
