//! Pairs of runs until a gate knows.

use anyhow::{Result, bail};
use lab_judgement::{Gate, GateJudgement, GateSettings, Next, Order, PairValues, Verdict};
use lab_store::Outcome;
use serde::{Deserialize, Serialize};

/// So many runs may fail before one pair has values of both: beyond them it is held that none will.
const FAILURES_MOST: usize = 3;

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Side {
    Base,
    New,
}

impl Side {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Base => "base",
            Self::New => "new",
        }
    }
}

/// What one run measured, a value for each metric of the gate.
pub(crate) struct Sample {
    pub(crate) values: Vec<Option<f64>>,
    /// Why values are missing.
    pub(crate) failure: Option<String>,
}

/// A run that failed or measured less than it should.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Failure {
    /// Counted from 1.
    pub(crate) pair: usize,
    pub(crate) side: Side,
    pub(crate) text: String,
}

/// A pair as it was run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Pair {
    pub(crate) order: Order,
    /// In the order of the gate's metrics.
    pub(crate) values: Vec<PairValues>,
}

/// A gate that has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Decided {
    pub(crate) judgement: GateJudgement,
    /// Which of each pair ran first is by this.
    pub(crate) seed: u64,
    pub(crate) pairs: Vec<Pair>,
    pub(crate) failures: Vec<Failure>,
}

/// Runs pairs until the gate knows or its budget is spent; a pair that lacks a value uses it up, too.
/// `measure` makes a run, `looked` hears what
/// can be said while more pairs are wanted.
pub(crate) fn decide(
    settings: GateSettings,
    mut measure: impl FnMut(Side) -> Result<Sample>,
    mut looked: impl FnMut(&GateJudgement, usize),
) -> Result<Decided> {
    let seed = settings.seed;
    let metrics = settings.metrics.len();
    let mut gate = Gate::new(settings)?;
    let (mut pairs, mut failures) = (Vec::new(), Vec::new());
    let mut any_whole = false;
    let mut wanted = gate.next();
    while let Next::Pairs(_) = wanted {
        let order = gate.order();
        let mut values = vec![
            PairValues {
                base: None,
                new: None
            };
            metrics
        ];
        for side in sides(order) {
            let sample = measure(side)?;
            for (pair, value) in values.iter_mut().zip(sample.values) {
                match side {
                    Side::Base => pair.base = value,
                    Side::New => pair.new = value,
                }
            }
            if let Some(text) = sample.failure {
                let pair = pairs.len() + 1;
                failures.push(Failure { pair, side, text });
            }
        }
        any_whole |= values
            .iter()
            .any(|pair| pair.base.is_some() && pair.new.is_some());
        if failures.len() > FAILURES_MOST && !any_whole {
            bail!(failed_too_often(&failures, pairs.len() + 1));
        }
        let before = wanted;
        wanted = gate.take(&values)?;
        pairs.push(Pair { order, values });
        // The last pair before a look asks for one more.
        if let (Next::Pairs(1), Next::Pairs(more)) = (before, wanted) {
            looked(&gate.judgement(), more);
        }
    }
    Ok(Decided {
        judgement: gate.judgement(),
        seed,
        pairs,
        failures,
    })
}

fn sides(order: Order) -> [Side; 2] {
    match order {
        Order::BaseFirst => [Side::Base, Side::New],
        Order::NewFirst => [Side::New, Side::Base],
    }
}

fn failed_too_often(failures: &[Failure], pairs: usize) -> String {
    let of = |side| failures.iter().filter(|one| one.side == side).count();
    let last = failures.last();
    let last = last.map_or_else(String::new, |one| {
        format!("{}: {}", one.side.word(), one.text)
    });
    format!(
        "compare: of {pairs} runs of each, {} of the base and {} of the new one failed; the last, of {last}",
        of(Side::Base),
        of(Side::New),
    )
}

/// The exit code of a verdict.
pub(crate) fn outcome(verdict: Verdict) -> Outcome {
    match verdict {
        Verdict::NotWorse => Outcome::Pass,
        Verdict::Worse => Outcome::Fail,
        Verdict::CannotTell => Outcome::Inconclusive,
    }
}

#[cfg(test)]
mod tests {
    use lab_judgement::{Direction, Gated, Metric, Unit};
    use stats::SplitMix;

    use super::*;

    fn settings() -> GateSettings {
        let metric = Metric {
            name: "time".into(),
            unit: Unit::Seconds,
            direction: Direction::LowerIsBetter,
        };
        let limit_share = 0.03;
        GateSettings::new(
            vec![Gated {
                metric,
                limit_share,
            }],
            7,
        )
    }

    fn sample(value: f64) -> Sample {
        Sample {
            values: vec![Some(value)],
            failure: None,
        }
    }

    fn failed() -> Sample {
        Sample {
            values: vec![None],
            failure: Some("it fell over".into()),
        }
    }

    fn decided(slower: f64, noise: f64) -> Decided {
        let mut random = SplitMix::new(2);
        let run = |side| {
            let of = if side == Side::New { slower } else { 1.0 };
            Ok(sample(of * (noise * random.normal()).exp()))
        };
        decide(settings(), run, |_, _| {}).unwrap()
    }

    #[test]
    fn each_verdict_comes_of_its_truth() {
        let worse = decided(1.3, 0.01);
        assert_eq!(worse.judgement.verdict, Verdict::Worse);
        // Eight pairs alone are not enough while sixteen more may follow.
        assert_eq!((worse.pairs.len(), worse.judgement.pairs), (12, 12));
        assert_eq!(decided(1.0, 0.01).judgement.verdict, Verdict::NotWorse);
        let noisy = decided(1.0, 0.3);
        assert_eq!(noisy.judgement.verdict, Verdict::CannotTell);
        assert_eq!(noisy.pairs.len(), 24);
    }

    #[test]
    fn the_order_is_that_of_the_seed() {
        let mut ran = Vec::new();
        let run = |side| {
            ran.push(side);
            Ok(sample(1.0))
        };
        let found = decide(settings(), run, |_, _| {}).unwrap();
        let orders = found.pairs.iter().flat_map(|pair| sides(pair.order));
        assert!(orders.eq(ran.iter().copied()));
        let first = |at: &usize| ran[2 * at] == Side::Base;
        let firsts = (0..found.pairs.len()).filter(first).count();
        assert!((1..found.pairs.len()).contains(&firsts), "{firsts}");
    }

    #[test]
    fn looks_are_told_while_more_is_wanted() {
        let mut random = SplitMix::new(3);
        let mut told = Vec::new();
        let run = |_| Ok(sample((0.3 * random.normal()).exp()));
        decide(settings(), run, |judgement, more| {
            told.push((judgement.pairs, more));
        })
        .unwrap();
        assert_eq!(told, [(8, 4), (12, 4), (16, 4), (20, 4)]);
    }

    #[test]
    fn a_new_program_that_fails_once_does_not_pass() {
        let mut runs = 0;
        let found = decide(
            settings(),
            |side| {
                runs += usize::from(side == Side::New);
                Ok(match (side, runs) {
                    (Side::New, 3) => failed(),
                    _ => sample(1.0),
                })
            },
            |_, _| {},
        );
        let found = found.unwrap();
        assert_eq!(found.judgement.verdict, Verdict::CannotTell);
        assert_eq!((found.failures.len(), found.failures[0].pair), (1, 3));
        assert_eq!(found.failures[0].side, Side::New);
    }

    /// Every third run of a side fails, of a slower program or of the same.
    fn failing(side_that_fails: Side, slower: f64) -> Decided {
        let mut random = SplitMix::new(5);
        let mut runs = 0;
        let run = |side| {
            runs += usize::from(side == side_that_fails);
            let of = if side == Side::New { slower } else { 1.0 };
            Ok(match side == side_that_fails && runs % 3 == 0 {
                true => failed(),
                false => sample(of * (0.005 * random.normal()).exp()),
            })
        };
        decide(settings(), run, |_, _| {}).unwrap()
    }

    #[test]
    fn runs_without_a_value_use_up_the_budget_and_end_nothing() {
        let worse = failing(Side::Base, 1.3);
        assert_eq!(worse.judgement.verdict, Verdict::Worse);
        let equal = failing(Side::Base, 1.0);
        assert_eq!(equal.judgement.verdict, Verdict::NotWorse);
        assert!(equal.judgement.metrics[0].missing.in_base >= 4);
        // What the new program fails to do is never a pass; all that was measured stays.
        let new = failing(Side::New, 1.0);
        assert_eq!(new.judgement.verdict, Verdict::CannotTell);
        assert_eq!((new.pairs.len(), new.failures.len()), (24, 8));
        assert!(
            new.judgement.metrics[0]
                .effect
                .unwrap()
                .high_share
                .is_some()
        );
        assert_eq!(failing(Side::New, 1.3).judgement.verdict, Verdict::Worse);
    }

    #[test]
    fn one_that_fails_from_the_first_on_is_an_error() {
        let run = |side| match side {
            Side::New => Ok(failed()),
            Side::Base => Ok(sample(1.0)),
        };
        let error = decide(settings(), run, |_, _| {}).unwrap_err();
        let error = error.to_string();
        assert!(
            error.contains("0 of the base and 4 of the new one") && error.contains("it fell over"),
            "{error}"
        );
    }
}
