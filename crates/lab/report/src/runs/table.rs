//! Runs for the terminal, a line each.

use console::{Style as Paint, measure_text_width};
use units::{show_bytes, show_seconds};

use super::ListedRun;
use crate::terminal::{Style, colour, mark_and_word, pad, paint, printable};

/// The runs in the order given, under a head; empty without any.
#[must_use]
pub fn terminal(runs: &[ListedRun], style: Style) -> String {
    if runs.is_empty() {
        return String::new();
    }
    let head = ["run", "began (UTC)", "took", "size", "outcome", "held"].map(str::to_owned);
    let mut rows = vec![head];
    rows.extend(runs.iter().map(row));
    let width = |column: usize| {
        let texts = rows.iter().map(|row| measure_text_width(&row[column]));
        texts.max().unwrap_or(0)
    };
    let widths: [usize; 6] = std::array::from_fn(width);
    let mut out = String::new();
    for (number, row) in rows.iter().enumerate() {
        let padded: Vec<String> = row
            .iter()
            .zip(widths)
            .map(|(text, width)| pad(text, width))
            .collect();
        let run = number.checked_sub(1).and_then(|at| runs.get(at));
        let outcome = match run.and_then(|run| run.outcome) {
            Some(outcome) => paint(&padded[4], colour(outcome), style),
            None => padded[4].clone(),
        };
        let [first, last] = [&padded[..4], &padded[5..]].map(|part| part.join("  "));
        let line = format!("{first}  {outcome}  {last}");
        let line = line.trim_end();
        out += &match run {
            None => paint(line, Paint::new().dim(), style),
            Some(_) => line.to_owned(),
        };
        out.push('\n');
    }
    out
}

fn row(run: &ListedRun) -> [String; 6] {
    [
        printable(&run.run),
        run.began.clone(),
        run.duration_s.map_or_else(String::new, show_seconds),
        show_bytes(run.bytes as f64),
        run.how_it_ended(mark_and_word).to_owned(),
        run.score(),
    ]
}
