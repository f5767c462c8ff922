//! What a run shows of each place, in sums over stretches of the run, so that every figure
//! can be asked how sure it is.

use std::collections::HashMap;

use super::cause::Cause;
use super::floors::Floors;
use super::known::Known;
use super::ledger::{Ledger, Part};
use super::resample::{Estimate, Resamples};

/// Sums over the stretches of a run.
pub(super) type Sums = Vec<f64>;

/// Late beyond the floor, and how often it could have been.
#[derive(Debug, Clone)]
pub(super) struct Late {
    pub(super) excess: Sums,
    pub(super) events: Sums,
}

/// A run, ready to be asked.
pub(super) struct Evidence<'a> {
    pub(super) ledger: &'a Ledger,
    pub(super) budget: Option<&'a Ledger>,
    pub(super) floors: Floors,
    pub(super) known: Option<&'a Known>,
    pub(super) resamples: Resamples,
    /// Lengths of each part.
    lengths: Vec<Sums>,
    /// Requests that each part was in.
    within: Vec<Sums>,
    /// Of work, wherever it ran.
    done: Vec<Sums>,
    /// What the budget has of each part, in the mean; and of work wherever it ran.
    budgeted: HashMap<Part, f64>,
    budgeted_done: HashMap<Part, f64>,
    /// What everything took beyond what was expected; of all, if nothing is expected.
    pub(super) surplus: Estimate,
    /// What the budget does not resolve.
    pub(super) unresolved: f64,
}

impl<'a> Evidence<'a> {
    /// `None`: too few requests to judge.
    pub(super) fn of(
        ledger: &'a Ledger,
        budget: Option<&'a Ledger>,
        floors: Floors,
        known: Option<&'a Known>,
    ) -> Option<Self> {
        let resamples = Resamples::of(ledger.starts())?;
        let parts = ledger.parts.len();
        let within = ledger
            .lengths()
            .map(|(part, request, _)| (part, request, 1));
        let expected = budget.map_or(0.0, Ledger::mean);
        let surplus = resamples.mean(&resamples.totals(ledger)).less(expected);
        let means_of = |parts: &[Part], means| parts.iter().cloned().zip(means).collect();
        let mut evidence = Self {
            ledger,
            budget,
            floors,
            known,
            lengths: resamples.sums(parts, ledger.lengths()),
            within: resamples.sums(parts, within),
            done: resamples.sums(ledger.done_parts.len(), ledger.done()),
            resamples,
            budgeted: budget.map_or_else(HashMap::new, |one| means_of(&one.parts, one.means())),
            budgeted_done: budget.map_or_else(HashMap::new, |one| {
                means_of(&one.done_parts, one.done_means())
            }),
            surplus,
            unresolved: 0.0,
        };
        evidence.unresolved = evidence.spread();
        Some(evidence)
    }

    /// How far the time of a request scatters by what the machine takes for hops and such.
    fn spread(&self) -> f64 {
        let requests = self.ledger.totals.len().max(1) as f64;
        let parts = self.ledger.parts.iter().enumerate();
        // They scatter each for itself.
        let squares = parts.map(|(at, part)| {
            let spread = self.floors.of_cause(part.cause).spread_ns;
            spread * spread * self.ledger.often(at) / requests
        });
        squares.sum::<f64>().sqrt()
    }

    /// What a request takes without contention, in the mean.
    pub(super) fn expected(&self) -> Option<f64> {
        let budget = self.budget.filter(|one| !one.totals.is_empty());
        budget.map(Ledger::mean)
    }

    /// The mean length of parts together, less that of the budget.
    pub(super) fn beyond_budget(&self, parts: &[usize]) -> Estimate {
        let sums = self.sum(parts.iter().map(|at| &self.lengths[*at]));
        let expected: f64 = parts
            .iter()
            .map(|at| self.budgeted(&self.ledger.parts[*at]))
            .sum();
        self.resamples.mean(&sums).less(expected)
    }

    /// What the budget has for a part, in the mean.
    pub(super) fn budgeted(&self, part: &Part) -> f64 {
        self.budgeted.get(part).copied().unwrap_or(0.0)
    }

    /// Work of a part wherever it ran, on the critical path or not, less what the budget has.
    pub(super) fn done_beyond_budget(&self, part: &Part) -> Estimate {
        let parts = &self.ledger.done_parts;
        let sums = match parts.iter().position(|one| one == part) {
            Some(place) => self.done[place].clone(),
            None => vec![0.0; self.resamples.stretches()],
        };
        self.resamples.mean(&sums).less(self.budgeted_done(part))
    }

    /// Processors that the work of a service used in the mean of the run.
    pub(super) fn processors_used(&self, service: &str) -> f64 {
        let starts = self.ledger.starts();
        let first = starts.iter().min().copied().unwrap_or(0);
        let last = starts.iter().max().copied().unwrap_or(0);
        let parts = self.ledger.done_parts.iter().zip(&self.done);
        let used: f64 = parts
            .filter(|(part, _)| part.cause == Cause::Cpu && *part.service == *service)
            .flat_map(|(_, sums)| sums)
            .sum();
        used / last.saturating_sub(first).max(1) as f64
    }

    pub(super) fn budgeted_done(&self, part: &Part) -> f64 {
        self.budgeted_done.get(part).copied().unwrap_or(0.0)
    }

    /// The mean length of a part, without asking how sure that is.
    pub(super) fn mean_of(&self, part: usize) -> f64 {
        let sum: f64 = self.lengths[part].iter().sum();
        sum / self.ledger.totals.len().max(1) as f64
    }

    /// What parts take beyond the machine's floor, and how often they came up.
    pub(super) fn late(&self, parts: impl IntoIterator<Item = usize>) -> Late {
        let nothing = vec![0.0; self.resamples.stretches()];
        let mut all = Late {
            excess: nothing.clone(),
            events: nothing,
        };
        for at in parts {
            let floor = self.floors.of_cause(self.ledger.parts[at].cause).median_ns;
            let within: f64 = self.within[at].iter().sum();
            let each = self.ledger.often(at) / within.max(1.0);
            let pairs = self.lengths[at].iter().zip(&self.within[at]);
            for (stretch, (length, within)) in pairs.enumerate() {
                let events = within * each;
                all.excess[stretch] += length - floor * events;
                all.events[stretch] += events;
            }
        }
        all
    }

    /// How far these parts scatter each time, by the machine alone.
    pub(super) fn spread_of(&self, parts: &[usize]) -> f64 {
        let often = |at: &usize| self.ledger.often(*at);
        let sum: f64 = parts
            .iter()
            .map(|at| self.floors.of_cause(self.ledger.parts[*at].cause).spread_ns * often(at))
            .sum();
        sum / parts.iter().map(often).sum::<f64>().max(1.0)
    }

    /// The mean of what parts take beyond the floor.
    pub(super) fn beyond_floor(&self, parts: &[usize]) -> Estimate {
        self.resamples
            .mean(&self.late(parts.iter().copied()).excess)
    }

    /// The mean length of parts together.
    pub(super) fn mean_length(&self, parts: &[usize]) -> f64 {
        self.resamples.mean(&self.length(parts)).value
    }

    /// The sum of lengths of parts over stretches.
    pub(super) fn length(&self, parts: &[usize]) -> Sums {
        self.sum(parts.iter().map(|at| &self.lengths[*at]))
    }

    fn sum<'s>(&'s self, all: impl Iterator<Item = &'s Sums>) -> Sums {
        let mut sums = vec![0.0; self.resamples.stretches()];
        for one in all {
            for (sum, more) in sums.iter_mut().zip(one) {
                *sum += more;
            }
        }
        sums
    }

    /// The share of the tail that each of some groups of parts holds; nothing without a tail.
    pub(super) fn tail_shares(&self, groups: &[Vec<usize>]) -> Vec<Estimate> {
        let ledger = self.ledger;
        let vectors = groups.iter().map(|group| {
            let mut lengths = vec![0.0; ledger.totals.len()];
            for (at, sum) in lengths.iter_mut().enumerate() {
                let parts = ledger.request(at).iter();
                let own = parts.filter(|(part, _)| group.contains(&(*part as usize)));
                *sum = own.map(|(_, length)| *length as f64).sum();
            }
            lengths
        });
        let vectors: Vec<Vec<f64>> = vectors.collect();
        self.resamples.tail_shares(ledger, &vectors)
    }

    /// The places of parts that `of` chooses.
    pub(super) fn parts(&self, of: impl Fn(&Part) -> bool) -> Vec<usize> {
        let parts = self.ledger.parts.iter().enumerate();
        parts
            .filter(|(_, part)| of(part))
            .map(|(at, _)| at)
            .collect()
    }

    /// Whether a service's own time can be held to the machine's: what services of other
    /// systems do is not known, and neither is how long a delay of the profile takes.
    pub(super) fn handles_only(&self, service: &str) -> bool {
        let known = self.known.and_then(|one| one.service(service));
        known.is_some_and(|one| !one.adds_time)
    }

    /// Whether a part is lateness of a service that wanted to run: of its handling, its
    /// wake-ups, what it had yet to read.
    pub(super) fn is_lateness(&self, part: &Part, full: &dyn Fn(&str) -> bool) -> bool {
        match part.cause {
            Cause::WireOut | Cause::WireBack => true,
            Cause::Queue => part.peer.is_empty() && (part.work.is_empty() || !full(&part.service)),
            Cause::Own => part.work.is_empty() && self.handles_only(&part.service),
            _ => false,
        }
    }
}

/// The service that has to run for a part that is lateness to end.
pub(super) fn runs_at(part: &Part) -> &str {
    match part.cause {
        Cause::WireOut => &part.peer,
        _ => &part.service,
    }
}
