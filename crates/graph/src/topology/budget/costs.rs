//! What work and hops take.

use serde::Serialize;

use crate::Nanos;
use crate::amount::Amount;
use crate::topology::Work;
use crate::work::CHEAP;

/// How long a machine takes for what is not asked for in time. The defaults are what one
/// virtual processor of a server of 2021 took (AMD EPYC, 2.6 GHz); those of a machine are
/// measured by [`crate::work::Calibration`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Costs {
    /// Added to the callee's time in the caller's: both kernels, both wake-ups and the
    /// handling of a call, in nanoseconds. 25 us: warm connections, one processor.
    pub hop: Nanos,
    /// A service's own handling of a request, in nanoseconds. 0: the hop has it.
    pub handling: Nanos,
    /// Until a free worker has begun what is given to it, in nanoseconds.
    pub handoff: Nanos,
    /// Added to a call over a connection of its own, in nanoseconds: making and closing it.
    pub connect: Nanos,
    /// An operation of `ops`; also of a number that is sieved for primes. Nanoseconds.
    pub op: f64,
    /// A cache line of `memory` that is touched, in nanoseconds.
    pub touch: f64,
    /// Starting a program and waiting for its end, in nanoseconds.
    pub fork: Nanos,
    /// A byte of a file that is read or written, in nanoseconds.
    pub byte: f64,
    /// Having the disk keep what was written, in nanoseconds.
    pub sync: Nanos,
    /// A job of stress-ng, in nanoseconds. Its file says it; this stands for no other work.
    pub stress_ng: Nanos,
}

impl Default for Costs {
    fn default() -> Self {
        Self {
            hop: 25_000,
            handling: 0,
            handoff: 0,
            connect: 35_000,
            op: 1.0,
            touch: 5.0,
            fork: 650_000,
            byte: 0.25,
            sync: 1_000_000,
            stress_ng: 9_000_000,
        }
    }
}

impl Costs {
    /// Whether work is given to a worker: it waits, or some draw of it takes more than
    /// [`CHEAP`].
    pub(crate) fn is_handed_over(&self, work: &Work) -> bool {
        let most = |amount: &Amount| amount.at(1.0, f64::INFINITY);
        let longest = match work {
            Work::Cpu(amount) => most(amount),
            Work::Ops(amount) => most(amount) * self.op,
            // A number costs the sieve about an operation.
            Work::Primes(limit) => *limit as f64 * self.op,
            Work::Memory { touches, .. } => most(touches) * self.touch,
            _ => f64::INFINITY,
        };
        longest > CHEAP as f64
    }

    /// How long work takes, and how much of that it needs a processor: amounts are those
    /// that [`crate::script::Command::Work`] says.
    pub fn of(&self, work: &Work, amount: f64, second: f64) -> (Nanos, Nanos) {
        let rounded = |nanos: f64| nanos.round() as Nanos;
        let busy = |nanos: f64| (rounded(nanos), rounded(nanos));
        let waiting = |nanos: Nanos| (nanos, 0);
        match work {
            Work::Cpu(_) | Work::Lock { .. } => busy(amount),
            Work::Ops(_) | Work::Primes(_) => busy(amount * self.op),
            Work::Memory { .. } => busy(amount * self.touch),
            // The program computes; where is its own affair.
            Work::Fork(_) => (self.fork, self.fork),
            Work::Disk { sync, .. } => {
                let bytes = rounded((amount + second) * self.byte);
                let kept = if *sync { self.sync } else { 0 };
                (bytes + kept, bytes)
            }
            Work::Sleep(_) => waiting(rounded(amount)),
            Work::StressNg { .. } => (self.stress_ng, self.stress_ng),
            Work::StressNgBackground { .. } | Work::StressNgStatus => waiting(0),
        }
    }
}
