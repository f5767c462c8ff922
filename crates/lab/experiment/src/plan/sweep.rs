//! `[sweep]`: the experiment again and again, with other constants.

use serde::Serialize;
use stats::SplitMix;

/// Values of constants, all combinations of which are run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sweep {
    /// Constants of `[let]` in file order, each with its values as an override has them.
    pub over: Vec<(String, Vec<String>)>,
    /// How often each combination is run.
    pub times: u32,
    /// A constant whose highest value is looked for, instead of combinations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub highest: Option<(String, Range)>,
}

/// Values among which the highest one is looked for with which everything holds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Range {
    /// The lowest value, above zero.
    pub from: f64,
    /// The highest.
    pub to: f64,
    /// The search ends when what fails is at most this share above what holds.
    pub within: f64,
    /// Whether values are whole numbers.
    pub is_whole: bool,
    /// What stands behind the number, for instance `/s`.
    pub unit: String,
}

impl Range {
    /// A value as an override has it.
    pub fn written(&self, value: f64) -> String {
        format!("{value}{}", self.unit)
    }
}

/// A combination: each constant with its value.
pub type Setting = Vec<(String, String)>;

impl Sweep {
    /// Every combination once, the last constant's values changing first.
    pub fn settings(&self) -> Vec<Setting> {
        let mut settings: Vec<Setting> = vec![Vec::new()];
        for (name, values) in &self.over {
            let longer = settings.into_iter().flat_map(|setting| {
                values.iter().map(move |value| {
                    let mut setting = setting.clone();
                    setting.push((name.clone(), value.clone()));
                    setting
                })
            });
            settings = longer.collect();
        }
        settings
    }

    /// Indices of [`settings`](Self::settings) in the order in which they are run: each round
    /// has every combination once, in an order of its own drawn from the seed. What a machine
    /// does over time falls on combinations by chance, and a round that was cut off leaves
    /// whole ones.
    pub fn order(&self, seed: u64) -> Vec<usize> {
        let count = self.settings().len();
        (0..self.times)
            .flat_map(|round| {
                let mut random = SplitMix::at(seed, [u64::from(round), 0x5eed]);
                let mut order: Vec<usize> = (0..count).collect();
                for last in (1..count).rev() {
                    order.swap(last, random.below(last + 1));
                }
                order
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sweep(times: u32) -> Sweep {
        let values = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect();
        Sweep {
            over: vec![
                ("a".to_owned(), values(&["1", "2"])),
                ("b".to_owned(), values(&["x", "y", "z"])),
            ],
            times,
            highest: None,
        }
    }

    #[test]
    fn every_combination_comes_once_in_a_round() {
        let settings = sweep(1).settings();
        let shown: Vec<String> = settings
            .iter()
            .map(|setting| setting.iter().map(|(_, value)| &**value).collect())
            .collect();
        assert_eq!(shown, ["1x", "1y", "1z", "2x", "2y", "2z"]);
        let order = sweep(50).order(7);
        for round in order.chunks(6) {
            let mut round = round.to_vec();
            round.sort_unstable();
            assert_eq!(round, [0, 1, 2, 3, 4, 5]);
        }
        assert_eq!(order, sweep(50).order(7), "the same seed, the same order");
        assert_ne!(order, sweep(50).order(8));
        // Each is first about as often as any other.
        let first = |which: usize| order.chunks(6).filter(|round| round[0] == which).count();
        assert!((0..6).all(|which| (1..25).contains(&first(which))));
    }
}
