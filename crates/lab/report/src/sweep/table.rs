//! A sweep for the terminal: a row for each setting, a column for each expectation.

use console::{Style as Paint, measure_text_width};

use super::{Cell, SweepRecord};
use crate::terminal::{Style, paint, printable, word};

/// Longest text of a cell.
const WIDEST: usize = 28;

/// The sweep as a table, under the expectations by their numbers.
#[must_use]
pub fn terminal(sweep: &SweepRecord, style: Style) -> String {
    let mut out = String::new();
    let expectations = sweep.expectations();
    for (number, that) in (1..).zip(&expectations) {
        out += &format!("[{number}] {}\n", printable(that));
    }
    if !expectations.is_empty() {
        out.push('\n');
    }
    let mut head = sweep.over.clone();
    head.extend((1..=expectations.len()).map(|number| format!("[{number}]")));
    let mut rows = vec![head];
    for at in sweep.rows() {
        let mut row = sweep.settings[at].clone();
        row.extend((0..expectations.len()).map(|number| shown(&sweep.cell(at, number))));
        rows.push(row);
    }
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.iter().map(|text| cut(&printable(text))).collect())
        .collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let texts = rows.iter().filter_map(|row| row.get(column));
        texts
            .map(|text| measure_text_width(text))
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for (number, row) in rows.iter().enumerate() {
        let cells: Vec<String> = row
            .iter()
            .zip(&widths)
            .map(|(text, width)| format!("{text}{}", " ".repeat(width - measure_text_width(text))))
            .collect();
        let line = cells.join("  ");
        let line = line.trim_end();
        out += &match number {
            0 => paint(line, Paint::new().dim(), style),
            _ => line.to_owned(),
        };
        out.push('\n');
    }
    out += &format!("\n{}  {}\n", word(sweep.outcome()), sweep.progress());
    if let Some(answer) = &sweep.answer {
        out += &format!("  {}\n", printable(&answer.text));
    }
    for run in &sweep.runs {
        if let Some(reason) = &run.verdict.reason {
            let setting = sweep.settings[run.setting].join(" ");
            let first = reason.lines().next().unwrap_or_default();
            out += &format!("  {}: {}\n", printable(&setting), printable(first));
        }
    }
    out
}

/// `1.2 s ✓`, and of several runs how many held: `1.2 s 2/3`.
fn shown(cell: &Cell) -> String {
    let measured = cell.measured().unwrap_or("–");
    match cell.held() {
        (_, 0) => "–".to_owned(),
        (1, 1) => format!("{measured} ✓"),
        (0, 1) => format!("{measured} ✗"),
        (held, all) => format!("{measured} {held}/{all}"),
    }
}

fn cut(text: &str) -> String {
    console::truncate_str(text, WIDEST, "…").into_owned()
}
