//! A sweep: the runs of an experiment with other constants, as one table and one page.

mod page;
mod table;

use std::collections::BTreeMap;

use lab_store::{Outcome, Verdict};
use serde::{Deserialize, Serialize};
use stats::nearest_rank;

pub use page::html;
pub use table::terminal;

/// Everything that a sweep found, as it is stored beside the runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SweepRecord {
    /// Name of the experiment.
    pub name: String,
    /// The seed, which decided the order of the runs.
    pub seed: u64,
    /// The constants, in the order of the file.
    pub over: Vec<String>,
    /// Values of the constants in each setting, in the order of the table.
    pub settings: Vec<Vec<String>>,
    /// How often each setting was to be run.
    pub times: u32,
    /// The runs that were made, in the order in which they were.
    pub runs: Vec<SweepRun>,
    /// What was found, where the highest value was looked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<SweepAnswer>,
}

/// The highest value of a constant with which all holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SweepAnswer {
    /// In words.
    pub text: String,
    /// A pass when there is one, and a failure when the lowest value fails.
    pub outcome: Outcome,
}

/// One run of a sweep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SweepRun {
    /// Index of its setting.
    pub setting: usize,
    /// Path of its folder, beside the record; empty when it could not be made.
    pub folder: String,
    /// What it said.
    pub verdict: Verdict,
}

impl SweepRecord {
    /// The outcome of the whole: that of the run which decides most. An error before a
    /// failure, a failure before what is invalid, and so on.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        // A search needs runs that fail.
        if let Some(answer) = &self.answer {
            return answer.outcome;
        }
        let weight = |outcome: &Outcome| match outcome {
            Outcome::Pass => 0,
            Outcome::Inconclusive => 1,
            Outcome::Invalid => 2,
            Outcome::Fail => 3,
            Outcome::Error => 4,
        };
        let outcomes = self.runs.iter().map(|run| run.verdict.outcome);
        outcomes.max_by_key(weight).unwrap_or(Outcome::Error)
    }

    /// How many runs were made, and of how many if that was known before.
    fn progress(&self) -> String {
        let (made, planned) = (self.runs.len(), self.settings.len() * self.times as usize);
        match &self.answer {
            Some(_) => format!("{made} runs"),
            None => format!("{made} of {planned} runs"),
        }
    }

    /// Settings in the order of the table: those of a search by their number.
    fn rows(&self) -> Vec<usize> {
        let mut rows: Vec<usize> = (0..self.settings.len()).collect();
        if self.answer.is_some() {
            let number = |at: &usize| {
                let text = self.settings[*at].first().map_or("", |text| text);
                let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.');
                text[..digits.unwrap_or(text.len())]
                    .parse::<f64>()
                    .unwrap_or(0.0)
            };
            rows.sort_by(|a, b| number(a).total_cmp(&number(b)));
        }
        rows
    }

    /// The expectations, as they are told apart: with the constants that differ not filled in
    /// they would be the same, so it is their number that counts. Each with the text of the
    /// first run.
    fn expectations(&self) -> Vec<&str> {
        let most = self.runs.iter().map(|run| &run.verdict.expectations);
        let most = most.max_by_key(|expectations| expectations.len());
        let texts = most.into_iter().flatten();
        texts.map(|expectation| &*expectation.that).collect()
    }

    fn runs_of(&self, setting: usize) -> impl Iterator<Item = &SweepRun> {
        self.runs.iter().filter(move |run| run.setting == setting)
    }

    /// What one expectation came to in a setting.
    fn cell(&self, setting: usize, expectation: usize) -> Cell {
        let mut cell = Cell::default();
        for run in self.runs_of(setting) {
            let Some(found) = run.verdict.expectations.get(expectation) else {
                continue;
            };
            cell.outcomes.push(found.outcome);
            cell.texts.push(found.measured.clone());
            for (metric, value) in &found.values {
                cell.values.entry(metric.clone()).or_default().push(*value);
            }
        }
        cell
    }
}

/// What one expectation came to in all runs of a setting.
#[derive(Debug, Default, PartialEq)]
struct Cell {
    outcomes: Vec<Outcome>,
    texts: Vec<String>,
    values: BTreeMap<String, Vec<f64>>,
}

impl Cell {
    /// What was measured: of several runs the one in the middle, and of two there the smaller by its
    /// number, as everywhere.
    fn measured(&self) -> Option<&str> {
        let mut only = self.values.values();
        let by_number = only
            .next()
            .filter(|values| values.len() == self.texts.len());
        let text = match by_number {
            Some(values) if self.values.len() == 1 => {
                let mut order: Vec<usize> = (0..values.len()).collect();
                order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
                nearest_rank(&order, 0.5).map(|middle| &self.texts[middle])
            }
            _ => self.texts.first(),
        };
        text.map(|text| &**text).filter(|text| !text.is_empty())
    }

    /// The runs in which it held, of all.
    fn held(&self) -> (usize, usize) {
        let held = self.outcomes.iter().filter(|one| **one == Outcome::Pass);
        (held.count(), self.outcomes.len())
    }
}

#[cfg(test)]
mod tests;
