//! The highest value of a constant with which an experiment holds, found by whole runs.

use std::collections::BTreeMap;

use crate::plan::Range;

/// Runs at one value that neither hold nor fail before the search gives up.
const UNCLEAR: usize = 3;

/// What a run decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunVerdict {
    /// Everything that was expected held.
    Held,
    /// Something did not.
    Failed,
    /// It cannot be told: the run was invalid, inconclusive or broken.
    Unclear,
}

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// Make a run with this value.
    Run(f64),
    /// It is over.
    Done(Answer),
}

/// What a search found.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// It holds up to the first value and fails at the second.
    Between(f64, f64),
    /// It holds at the end of the range.
    AtLeast(f64),
    /// It fails at the start of the range.
    Below(f64),
    /// At this value nothing could be told.
    Unclear(f64),
}

/// A search that doubles until a value fails and then halves the gap between what holds and
/// what fails, by the geometric mean.
///
/// A failure counts when it comes again: a single run on a busy machine is none. So does the
/// value that the answer names as holding. Two of three decide.
#[derive(Debug, Clone)]
pub struct Highest {
    range: Range,
    /// Runs by value, in bits that sort as the values do, for values are positive.
    runs: BTreeMap<u64, Vec<RunVerdict>>,
}

impl Highest {
    /// A search that has not begun.
    pub fn new(range: Range) -> Self {
        Self {
            range,
            runs: BTreeMap::new(),
        }
    }

    /// Takes in what a run with this value said.
    pub fn take(&mut self, value: f64, said: RunVerdict) {
        self.runs.entry(value.to_bits()).or_default().push(said);
    }

    /// What to do next, a function of the runs so far. Ends after at most some dozen values
    /// with five runs each, for each value at least halves the gap's logarithm.
    pub fn next(&self) -> Next {
        let (mut holds, mut fails) = (None, None);
        for (bits, said) in &self.runs {
            let value = f64::from_bits(*bits);
            if count(said, RunVerdict::Unclear) >= UNCLEAR {
                return Next::Done(Answer::Unclear(value));
            }
            match decided(said) {
                Decided::Failed if fails.is_none() => fails = Some(value),
                // What holds above a value that fails twice is chance.
                Decided::Held(_) if fails.is_none() => holds = Some(value),
                Decided::Open => return Next::Run(value),
                _ => {}
            }
        }
        match (holds, fails) {
            (None, None) => Next::Run(self.range.from),
            (None, Some(fails)) if fails <= self.range.from => {
                Next::Done(Answer::Below(self.range.from))
            }
            (None, Some(_)) => Next::Run(self.range.from),
            (Some(holds), None) if holds >= self.range.to => {
                self.confirmed(holds, Answer::AtLeast(holds))
            }
            (Some(holds), None) => Next::Run(self.rounded(holds * 2.0).min(self.range.to)),
            (Some(holds), Some(fails)) => {
                let middle = self.rounded((holds * fails).sqrt());
                let is_close = fails <= holds * (1.0 + self.range.within);
                match is_close || middle <= holds || middle >= fails {
                    true => self.confirmed(holds, Answer::Between(holds, fails)),
                    false => Next::Run(middle),
                }
            }
        }
    }

    /// The answer, once the value that it says to hold has held twice.
    fn confirmed(&self, holds: f64, answer: Answer) -> Next {
        let said = self.runs.get(&holds.to_bits()).map(Vec::as_slice);
        match decided(said.unwrap_or_default()) {
            Decided::Held(times) if times >= 2 => Next::Done(answer),
            _ => Next::Run(holds),
        }
    }

    /// A value as it is written: whole, or with three digits.
    fn rounded(&self, value: f64) -> f64 {
        if self.range.is_whole {
            return value.round();
        }
        let digits = 2 - value.abs().log10().floor() as i32;
        let scale = 10_f64.powi(digits);
        (value * scale).round() / scale
    }
}

enum Decided {
    /// So often.
    Held(usize),
    Failed,
    /// Another run is needed.
    Open,
}

fn decided(said: &[RunVerdict]) -> Decided {
    let (held, failed) = (
        count(said, RunVerdict::Held),
        count(said, RunVerdict::Failed),
    );
    match (held, failed) {
        (0, 0) => Decided::Open,
        (_, 0) => Decided::Held(held),
        (0, 1) | (1, 1) => Decided::Open,
        (held, failed) if held > failed => Decided::Held(held),
        (held, failed) if held < failed => Decided::Failed,
        _ => Decided::Open,
    }
}

fn count(said: &[RunVerdict], what: RunVerdict) -> usize {
    said.iter().filter(|one| **one == what).count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use stats::SplitMix;

    use super::*;

    fn range(from: f64, to: f64, within: f64, is_whole: bool) -> Range {
        Range {
            from,
            to,
            within,
            is_whole,
            unit: String::new(),
        }
    }

    fn found(range: Range, mut run: impl FnMut(f64) -> RunVerdict) -> (Answer, usize) {
        let mut search = Highest::new(range);
        for runs in 0..500 {
            match search.next() {
                Next::Run(value) => {
                    let said = run(value);
                    search.take(value, said);
                }
                Next::Done(answer) => return (answer, runs),
            }
        }
        panic!("no end: {search:?}");
    }

    fn up_to(limit: f64) -> impl FnMut(f64) -> RunVerdict {
        move |value| match value <= limit {
            true => RunVerdict::Held,
            false => RunVerdict::Failed,
        }
    }

    #[test]
    fn a_limit_is_found_between_two_values() {
        let (answer, runs) = found(range(10.0, 1_000.0, 0.05, true), up_to(333.0));
        let Answer::Between(holds, fails) = answer else {
            panic!("{answer:?}");
        };
        assert!(
            holds <= 333.0 && fails > 333.0 && fails <= holds * 1.05,
            "{answer:?}"
        );
        assert!(runs <= 20, "{runs}");
    }

    #[test]
    fn the_ends_of_the_range_are_told_as_such() {
        let whole = || range(10.0, 1_000.0, 0.05, true);
        assert_eq!(found(whole(), up_to(5.0)).0, Answer::Below(10.0));
        assert_eq!(found(whole(), up_to(1e9)).0, Answer::AtLeast(1_000.0));
        assert_eq!(found(whole(), up_to(10.0)).0, Answer::Between(10.0, 11.0));
        assert_eq!(
            found(whole(), |_| RunVerdict::Unclear),
            (Answer::Unclear(10.0), 3)
        );
    }

    #[test]
    fn one_failure_by_chance_is_forgiven() {
        let mut runs = 0;
        let (answer, _) = found(range(10.0, 1_000.0, 0.05, true), |value| {
            runs += 1;
            // The first run at 40 fails.
            if value == 40.0 && runs == 3 {
                RunVerdict::Failed
            } else {
                up_to(500.0)(value)
            }
        });
        assert!(
            matches!(answer, Answer::Between(holds, _) if holds > 450.0),
            "{answer:?}"
        );
    }

    #[test]
    fn with_runs_that_fail_by_chance_most_answers_are_near() {
        let mut near = 0;
        for seed in 0..300 {
            let mut random = SplitMix::new(seed);
            let (answer, _) = found(range(10.0, 10_000.0, 0.05, false), |value| {
                // Fails more and more often within 4 % around the limit, and in 5 % anyway.
                let slope = 1.0 / (1.0 + ((1_234.0 / value).ln() / 0.02).exp());
                match random.unit() < slope.max(0.05) {
                    true => RunVerdict::Failed,
                    false => RunVerdict::Held,
                }
            });
            let (Answer::Between(holds, _), true) = (&answer, true) else {
                continue;
            };
            near += u32::from((*holds / 1_234.0).ln().abs() < 0.08);
        }
        assert!(near >= 270, "{near} of 300");
    }

    proptest! {
        #[test]
        fn every_limit_is_enclosed(
            from in 1.0..100.0_f64,
            times in 2.0..1e4_f64,
            share in 0.0..1.0_f64,
            within in 0.01..0.5_f64,
            is_whole: bool,
        ) {
            let round = |value: f64| if is_whole { value.round() } else { value };
            let (from, to) = (round(from), round(from * times) + 1.0);
            let limit = from * (to / from).powf(share);
            let (answer, runs) = found(range(from, to, within, is_whole), up_to(limit));
            prop_assert!(runs < 200, "{} runs", runs);
            match answer {
                Answer::Between(holds, fails) => {
                    prop_assert!(holds <= limit && limit < fails);
                    let close = fails <= holds * (1.0 + within) || is_whole && fails - holds <= 1.0
                        // As near as three digits allow.
                        || (fails / holds).ln() < 0.02;
                    prop_assert!(close, "{} {}", holds, fails);
                }
                Answer::AtLeast(value) => prop_assert!(value == to && limit >= to * (1.0 - 1e-9)),
                other => prop_assert!(false, "{:?}", other),
            }
        }
    }
}
