//! What this machine's clock and generator cost, measured where they are used.

use serde::{Deserialize, Serialize};

use super::spin::{self, thread_cpu};
use crate::Nanos;
use crate::topology::{Action, Endpoint, Service, Topology, Work};

/// Processor time of one run, long beside the clock's own cost.
const RUN_NS: Nanos = 50_000;
/// Runs; their median is not moved by a tick of the kernel in some.
const RUNS: usize = 41;
/// Readings of the clock in a batch, and batches.
const READINGS: u32 = 32;
const BATCHES: usize = 16;
/// Share by which the speed may change before results must not be compared.
const DRIFT: f64 = 0.05;

/// The cost of what work is made of. Good for the machine, the load and the moment: see
/// [`Calibration::recheck`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Nanoseconds of one operation of `ops`: the median over short runs. Runs that meet a
    /// tick of the kernel or a slower clock rate count as they are.
    pub op_ns: f64,
    /// The same of the fastest run: the machine at its best, 1 % to 4 % below the median.
    pub op_best_ns: f64,
    /// Nanoseconds of one reading of the thread's processor time, a call into the kernel.
    pub clock_ns: f64,
}

/// How far the machine is now from where it was calibrated.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Drift {
    /// Nanoseconds of an operation when it was calibrated.
    pub before_ns: f64,
    /// Nanoseconds of an operation now.
    pub now_ns: f64,
}

impl Drift {
    /// The change as a share: 0.1 is 10 % slower, negative is faster.
    pub fn share(&self) -> f64 {
        self.now_ns / self.before_ns - 1.0
    }

    /// Whether work of a fixed number of operations meant something else at the end: more
    /// than 5 % changed.
    pub fn is_too_large(&self) -> bool {
        let share = self.share();
        share.is_nan() || share.abs() > DRIFT
    }

    /// What it means for the services of a topology, for people; `None`: nothing, as it is small or
    /// nobody does a fixed number of operations.
    pub fn warning(&self, topology: &Topology) -> Option<String> {
        let counts = |service: &Service| service.endpoints.iter().any(counts_operations);
        let matters = self.is_too_large() && topology.services.iter().any(counts);
        matters.then(|| {
            format!(
                "an operation takes {:.2} ns and took {:.2} ns at the start: times of `ops` and \
                 `primes` of this run cannot be compared, neither with each other nor with other runs",
                self.now_ns, self.before_ns
            )
        })
    }
}

/// Does it work by number, not by time?
fn counts_operations(endpoint: &Endpoint) -> bool {
    let mut counts = false;
    endpoint.each_step(|step| {
        counts |= matches!(step.action, Action::Work(Work::Ops(_) | Work::Primes(_)));
    });
    counts
}

impl Calibration {
    /// Measures; takes 3 ms of processor time of the calling thread.
    pub fn measure() -> Self {
        let clock_ns = clock_ns();
        let runs = runs(clock_ns);
        Self {
            op_ns: middle(&runs),
            op_best_ns: runs.first().copied().unwrap_or(1.0),
            clock_ns,
        }
    }

    /// Measures again, at the end of what was measured with this.
    pub fn recheck(&self) -> Drift {
        Drift {
            before_ns: self.op_ns,
            now_ns: middle(&runs(clock_ns())),
        }
    }

    /// Operations that take so long.
    pub(crate) fn ops_in(&self, time: f64) -> u64 {
        (time / self.op_ns) as u64
    }
}

/// The median of what is sorted.
fn middle(sorted: &[f64]) -> f64 {
    sorted.get(sorted.len() / 2).copied().unwrap_or(1.0)
}

/// One reading: the median over batches.
fn clock_ns() -> f64 {
    let mut costs: Vec<f64> = (0..BATCHES)
        .map(|_| {
            let begun = thread_cpu();
            let mut last = begun;
            for _ in 0..READINGS {
                last = thread_cpu();
            }
            (last - begun) as f64 / f64::from(READINGS)
        })
        .collect();
    costs.sort_by(f64::total_cmp);
    middle(&costs).max(1.0)
}

/// Nanoseconds of an operation in each run, sorted.
fn runs(clock_ns: f64) -> Vec<f64> {
    let timed = |ops: u64| {
        let begun = thread_cpu();
        spin::ops(ops);
        thread_cpu() - begun
    };
    let mut ops = 1024;
    // 2^32 operations take seconds on any machine.
    while ops < 1 << 32 && timed(ops) < RUN_NS {
        ops *= 2;
    }
    let one = |_| ((timed(ops) as f64 - clock_ns) / ops as f64).max(1e-3);
    let mut runs: Vec<f64> = (0..RUNS).map(one).collect();
    runs.sort_by(f64::total_cmp);
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::of_text;

    #[test]
    fn costs_are_those_of_this_machine() {
        let calibration = Calibration::measure();
        let ops = calibration.ops_in(1e6);
        // The median of several tries: one may meet whatever else runs here.
        let mut took: Vec<f64> = (0..15)
            .map(|_| {
                let begun = thread_cpu();
                spin::ops(ops);
                (thread_cpu() - begun) as f64
            })
            .collect();
        took.sort_by(f64::total_cmp);
        // Fixed work takes other times when the machine's speed changes; never twice.
        let took = middle(&took) / 1e6;
        assert!((0.5..2.0).contains(&took), "{took} ms for 1 ms");
        assert!(calibration.op_best_ns <= calibration.op_ns);
        assert!((1.0..100_000.0).contains(&calibration.clock_ns));
    }

    #[test]
    fn drift_is_told_in_both_directions() {
        let drift = |now_ns| Drift {
            before_ns: 2.0,
            now_ns,
        };
        assert!((drift(2.2).share() - 0.1).abs() < 1e-12);
        assert!(drift(2.2).is_too_large() && drift(1.8).is_too_large());
        assert!(!drift(2.08).is_too_large() && !drift(1.92).is_too_large());
        assert!(drift(f64::NAN).is_too_large());
    }

    /// Only who counts operations needs the machine to stay as fast as it was.
    #[test]
    fn a_machine_that_became_slower_is_told_where_work_is_counted() {
        let topology = |work: &str| {
            of_text(&format!(
                "[services.a]\nentry = true\nsteps = [{{ {work} }}]\n"
            ))
        };
        let drift = |now_ns| Drift {
            before_ns: 2.0,
            now_ns,
        };
        let (counted, timed) = (topology("ops = 50000"), topology("cpu = \"1ms\""));
        let told = drift(2.2).warning(&counted).unwrap();
        assert!(told.starts_with("an operation takes 2.20 ns and took 2.00 ns"));
        assert!(drift(1.8).warning(&topology("primes = 1000")).is_some());
        assert_eq!(drift(2.08).warning(&counted), None);
        assert_eq!(drift(2.2).warning(&timed), None);
    }
}
