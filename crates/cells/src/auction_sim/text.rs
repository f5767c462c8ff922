//! An outcome for people in a terminal.

use std::fmt;

use units::columns::table;
use units::{grouped, show_seconds};

use super::evenness::Summary;
use super::{Outcome, Reason};

/// Characters of the longest bar.
const BAR: usize = 50;
/// Most bars of a picture.
const BARS: usize = 20;

/// A bar of a picture.
pub(super) struct Bar {
    /// From here on, up to the next bar.
    pub(super) from: f64,
    /// Numbers in it.
    pub(super) count: usize,
}

/// Numbers in at most [`BARS`] bars of equal width, which is a round number.
pub(super) fn bars(numbers: impl Iterator<Item = f64> + Clone) -> (f64, Vec<Bar>) {
    let least = numbers.clone().fold(f64::INFINITY, f64::min);
    let most = numbers.clone().fold(f64::NEG_INFINITY, f64::max);
    if least > most {
        return (1.0, Vec::new());
    }
    let mut width = 1e-3;
    let mut factors = [2.0, 2.5, 2.0].into_iter().cycle();
    let place = |number: f64, width: f64| (number / width + 1e-9).floor() as i64;
    while place(most, width) - place(least, width) >= BARS as i64 {
        width *= factors.next().unwrap_or(2.0);
    }
    let first = place(least, width);
    let mut bars: Vec<Bar> = (first..=place(most, width))
        .map(|place| Bar {
            from: place as f64 * width,
            count: 0,
        })
        .collect();
    for number in numbers {
        let at = usize::try_from(place(number, width) - first).unwrap_or(0);
        if let Some(bar) = bars.get_mut(at) {
            bar.count += 1;
        }
    }
    (width, bars)
}

/// A share, with the digits that the narrowest bar needs.
pub(super) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn whole(number: f64) -> String {
    grouped(number.round() as u64)
}

fn row(name: &str, of: &Summary, shown: impl Fn(f64) -> String) -> Vec<String> {
    vec![
        name.to_owned(),
        shown(of.min),
        shown(of.p50),
        shown(of.p99),
        shown(of.max),
        format!("{:.3}", of.variation),
    ]
}

impl Outcome {
    /// The rows about evenness.
    pub(super) fn spread_rows(&self) -> Vec<Vec<String>> {
        vec![
            row("memory used, of a cell", &self.memory, percent),
            row("disk used, of a cell", &self.disk, percent),
            row("instances of a cell", &self.containers, whole),
            row(
                "zones of a process, fullest − emptiest",
                &self.zones.difference,
                whole,
            ),
        ]
    }

    /// What is known of cells with several instances of a process.
    pub(super) fn stacking_text(&self) -> String {
        let stacking = &self.stacking;
        format!(
            "{} cells have several instances of one process; {} of them while a cell of their zone was free for it, {} while one of another zone was",
            grouped(stacking.cells as u64),
            grouped(stacking.cells_beside_free as u64),
            grouped(stacking.cells_beside_free_elsewhere as u64),
        )
    }

    /// The scenario in one line.
    pub(super) fn heading(&self) -> String {
        format!(
            "auction of {} instances of {} processes on {} cells in {} zones, seed {}",
            grouped(self.instances as u64),
            grouped(self.processes as u64),
            grouped(self.cells as u64),
            grouped(self.scenario.zones.into()),
            self.scenario.seed,
        )
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(text, "{}", self.heading())?;
        writeln!(text)?;
        let rounds = grouped(self.rounds.len() as u64);
        writeln!(text, "placed   {}", grouped(self.placed as u64))?;
        writeln!(text, "refused  {}", grouped(self.refused as u64))?;
        for Reason {
            text: why,
            instances,
        } in &self.reasons
        {
            writeln!(text, "         {}: {why}", grouped(*instances as u64))?;
        }
        let again: usize = self.rounds.iter().map(|round| round.again).sum();
        writeln!(text, "rounds   {rounds}")?;
        if again > 0 {
            let again = grouped(again as u64);
            writeln!(text, "         {again} instances were asked for again")?;
        }
        let heads = ["spread", "min", "p50", "p99", "max", "variation"];
        table(text, &heads, &self.spread_rows())?;
        writeln!(text)?;
        writeln!(text, "{}", self.stacking_text())?;
        let times = [vec![
            "placement".to_owned(),
            show_seconds(self.time.total),
            show_seconds(self.time.per_instance_us / 1e6),
            show_seconds(self.time.round.p50),
            show_seconds(self.time.round.max),
        ]];
        let heads = ["processor time", "in all", "an instance", "a round", "most"];
        table(text, &heads, &times)?;
        writeln!(text)?;
        writeln!(text, "cells by used memory")?;
        let (_, bars) = bars(self.by_cell.iter().map(|cell| cell.0));
        let most = bars.iter().map(|bar| bar.count).max().unwrap_or(1).max(1);
        for bar in bars {
            let length = (bar.count * BAR).div_ceil(most);
            let (from, count) = (percent(bar.from), grouped(bar.count as u64));
            let line = format!("{from:>8}  {} {count}", "█".repeat(length));
            writeln!(text, "{}", line.trim_end())?;
        }
        Ok(())
    }
}
