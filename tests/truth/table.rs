//! Counts of what was said rightly and wrongly.

use std::collections::BTreeMap;
use std::fmt;

use crate::cases::{Case, Found};
use crate::strangers::{Strangers, Watch};

/// What one planting came to.
pub(crate) struct Row {
    case: String,
    found: Found,
    strangers: Strangers,
    /// Whether it counts for nothing: strangers may have hidden what was planted.
    is_hidden: bool,
}

/// How a planting ended. The order is that of severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Said {
    Right,
    Hidden,
    FalseInvalid,
    Wrong,
    FalseVerdict,
}

impl Row {
    /// Plants the truth of `case`, measures, and judges.
    pub(crate) fn of(case: &Case) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let watch = Watch::start();
        Self {
            case: case.name.clone(),
            found: (case.plant)(folder.path()),
            strangers: watch.strangers(),
            is_hidden: false,
        }
    }

    /// A limit that was not named counts for nothing where strangers can have hidden it. One
    /// that was named is right wherever it was.
    pub(crate) fn hidden_by_strangers(self) -> Self {
        let is_hidden = !self.is_right() && self.strangers.may_hide();
        Self { is_hidden, ..self }
    }

    /// Whether a load called itself INVALID, and the witness saw a disturbance too: no error of the instrument.
    pub(crate) fn is_disturbed(&self) -> bool {
        !self.found.valid && self.strangers.may_hide()
    }

    /// What rightly called itself INVALID counts for nothing.
    pub(crate) fn disturbed_by_strangers(self) -> Self {
        let is_hidden = self.is_hidden || self.is_disturbed();
        Self { is_hidden, ..self }
    }

    pub(crate) fn is_right(&self) -> bool {
        self.said() == Said::Right
    }

    fn said(&self) -> Said {
        let found = &self.found;
        if self.is_hidden {
            return Said::Hidden;
        }
        if !found.valid {
            // It says nothing, so nothing of it is wrong; but nothing is known to have disturbed it.
            return Said::FalseInvalid;
        }
        if found.claims.iter().any(|claim| !claim.holds()) {
            return Said::Wrong;
        }
        if !found.verdict_is_right {
            return Said::FalseVerdict;
        }
        Said::Right
    }
}

impl fmt::Display for Row {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "{:42} {:?}", self.case, self.said())?;
        if self.said() != Said::Right {
            writeln!(
                out,
                "    strangers used {:.2} processors, {:.2} % of the machine was stolen",
                self.strangers.cores,
                self.strangers.stolen_share * 100.0
            )?;
        }
        for claim in self.found.claims.iter().filter(|claim| !claim.holds()) {
            writeln!(out, "    wrong: {claim}")?;
        }
        if self.said() != Said::Right {
            for line in self.found.words.lines() {
                writeln!(out, "    | {line}")?;
            }
        }
        Ok(())
    }
}

#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    planted: usize,
    hidden: usize,
    false_invalid: usize,
    wrong: usize,
    false_verdict: usize,
}

/// All plantings.
#[derive(Default)]
pub(crate) struct Table(BTreeMap<String, Counts>);

impl Table {
    pub(crate) fn add(&mut self, row: Row) {
        let said = row.said();
        let counts = self.0.entry(row.case).or_default();
        counts.planted += 1;
        match said {
            Said::Right => {}
            Said::Hidden => counts.hidden += 1,
            Said::FalseInvalid => counts.false_invalid += 1,
            Said::Wrong => counts.wrong += 1,
            Said::FalseVerdict => counts.false_verdict += 1,
        }
    }

    fn sum(&self) -> Counts {
        self.0
            .values()
            .fold(Counts::default(), |sum, counts| Counts {
                planted: sum.planted + counts.planted,
                hidden: sum.hidden + counts.hidden,
                false_invalid: sum.false_invalid + counts.false_invalid,
                wrong: sum.wrong + counts.wrong,
                false_verdict: sum.false_verdict + counts.false_verdict,
            })
    }

    /// A wrong number or verdict is never in order. That nothing is said may come about on a machine that
    /// does other things: in one planting of ten.
    pub(crate) fn within_limits(&self) -> bool {
        let sum = self.sum();
        sum.planted > 0
            && sum.wrong == 0
            && sum.false_verdict == 0
            && sum.false_invalid * 10 <= sum.planted
    }

    /// The table of docs/truth.md.
    pub(crate) fn markdown(&self) -> String {
        let mut text = String::from(
            "| Planted | Times | Wrong number | Wrong verdict | False INVALID | Hidden |\n|---|---|---|---|---|---|\n",
        );
        for (name, counts) in &self.0 {
            text += &format!(
                "| {name} | {} | {} | {} | {} | {} |\n",
                counts.planted,
                counts.wrong,
                counts.false_verdict,
                counts.false_invalid,
                counts.hidden
            );
        }
        text
    }
}

impl fmt::Display for Table {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            out,
            "{:42} {:>7} {:>7} {:>8} {:>14} {:>7}",
            "", "planted", "wrong", "verdict", "false INVALID", "hidden"
        )?;
        let rows = self.0.iter().map(|(name, counts)| (name.as_str(), *counts));
        for (name, counts) in rows.chain([("all", self.sum())]) {
            writeln!(
                out,
                "{name:42} {:>7} {:>7} {:>8} {:>14} {:>7}",
                counts.planted,
                counts.wrong,
                counts.false_verdict,
                counts.false_invalid,
                counts.hidden
            )?;
        }
        Ok(())
    }
}
