//! The percentile plot: latency over 1/(1-q), both logarithmic.
//!
//! The solid part is what the target took, the light part above it what a request
//! waited before it was sent.

use lab_load::Summary;
use lab_load::recording::Latencies;
use measure::Histogram;

use super::words::grouped;
use super::{LABEL, Page};

/// Height in rows.
const ROWS: usize = 10;
/// Parts of a row that characters can show.
const PARTS: usize = 8;
const SOLID: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const LIGHT: char = '░';
const LOST: char = '×';
/// Fewest answers that a plot says something about.
const ANSWERS: u64 = 100;
/// Percentiles that are named below the plot.
const MARKS: [(&str, f64); 7] = [
    ("0", 0.0),
    ("p50", 0.5),
    ("p90", 0.9),
    ("p99", 0.99),
    ("p99.9", 0.999),
    ("p99.99", 0.9999),
    ("p99.999", 0.99999),
];

pub(super) fn lines(page: &Page, summary: &Summary) -> Vec<String> {
    let read = |text: &str| Histogram::from_base64(text).ok();
    let histograms = &summary.histograms;
    let Some((intended, actual)) = read(&histograms.intended).zip(read(&histograms.actual)) else {
        return Vec::new();
    };
    if intended.count() < ANSWERS {
        return Vec::new();
    }
    let columns = page.width - LABEL - 1;
    let lost = summary.latency.intended.unanswered;
    let plot = Plot::of(
        Latencies::of(&intended, lost),
        Latencies::of(&actual, lost),
        columns,
    );
    let mut lines = Vec::new();
    for row in (0..ROWS).rev() {
        let label = page
            .paint
            .dim(&format!("{:>width$} ┤", plot.label(row), width = LABEL - 2));
        lines.push(format!("{label}{}", plot.row(row, page)));
    }
    lines.push(
        page.paint
            .dim(&format!("{:>LABEL$}{}", "└", "─".repeat(columns))),
    );
    lines.push(
        page.paint
            .dim(&format!("{:LABEL$}{}", "", plot.marks(columns))),
    );
    let took = format!("{} the target took", SOLID[7]);
    let legend = match plot.waited {
        true => format!("{took}   {LIGHT} waited before it was sent"),
        false => took,
    };
    let legend = match plot.columns() < columns {
        true => format!("{legend}   {LOST} no answer"),
        false => legend,
    };
    let count = grouped(intended.count());
    lines.push(
        page.paint
            .dim(&format!("{:LABEL$}{legend}   {count} answers", "")),
    );
    lines
}

struct Plot {
    /// For each column, height of the actual and of the intended latency,
    /// in parts of a row; absent where there was no answer.
    heights: Vec<Option<(usize, usize)>>,
    /// Lowest and highest latency, in seconds.
    low: f64,
    high: f64,
    /// Decades of 1/(1-q) that are shown.
    decades: f64,
    /// Is there anything light to be seen?
    waited: bool,
}

impl Plot {
    fn of(intended: Latencies<'_>, actual: Latencies<'_>, columns: usize) -> Self {
        // The last column is the percentile with ten requests beyond it.
        let decades = (intended.count() as f64 / 10.0).log10().max(1.0);
        let share = |column: usize| {
            1.0 - 10f64.powf(-decades * column as f64 / (columns - 1).max(1) as f64)
        };
        let at = |latencies: Latencies<'_>, column| {
            let time = latencies.percentile(share(column));
            time.map_or(1e-6, |time| time.max(1e-6))
        };
        let curve = |latencies| -> Vec<f64> { (0..columns).map(|c| at(latencies, c)).collect() };
        let (felt, took) = (curve(intended), curve(actual));
        // The few fastest answers would take half of the scale.
        let fast = actual.percentile(0.02).filter(|time| time.is_finite());
        let low = fast.unwrap_or(1e-6).max(1e-6);
        let known = took.iter().chain(&felt).copied();
        let high = known.filter(|time| time.is_finite()).fold(low, f64::max);
        // Equal latencies still need a scale.
        let (low, high) = (low / 1.3, (high * 1.05).max(low * 2.0));
        let height = |time: f64| {
            let place = (time / low).ln() / (high / low).ln();
            ((place * (ROWS * PARTS) as f64).round() as usize).clamp(1, ROWS * PARTS)
        };
        let heights: Vec<Option<(usize, usize)>> = took
            .iter()
            .zip(&felt)
            .map(|(took, felt)| felt.is_finite().then(|| (height(*took), height(*felt))))
            .collect();
        let answered = heights.iter().flatten();
        let waited = answered
            .into_iter()
            .any(|(took, felt)| *felt >= took + PARTS / 2);
        Self {
            heights,
            low,
            high,
            decades,
            waited,
        }
    }

    /// Columns in which there was an answer.
    fn columns(&self) -> usize {
        self.heights.iter().flatten().count()
    }

    /// The roundest latency that lies in a row; powers of ten only, where there are
    /// enough of them.
    fn label(&self, row: usize) -> String {
        let at = |row: usize| self.low * (self.high / self.low).powf(row as f64 / ROWS as f64);
        let decades = (self.high / self.low).log10();
        let steps: &[f64] = if decades >= 2.5 {
            &[1.0]
        } else {
            &[1.0, 5.0, 2.0]
        };
        let power = 10f64.powf(at(row).log10().floor());
        let rounds = [power, power * 10.0];
        let values = steps
            .iter()
            .flat_map(|step| rounds.map(|round| round * step));
        let mut within = values.filter(|value| (at(row)..at(row + 1)).contains(value));
        // Two digits take away what floating point added.
        within
            .next()
            .map_or(String::new(), |value| units::seconds(value, 2).text)
    }

    fn row(&self, row: usize, page: &Page) -> String {
        let bottom = row * PARTS;
        let mut text = String::new();
        let mut run = String::new();
        let mut light = false;
        for heights in &self.heights {
            let Some((took, felt)) = heights else {
                run.push(if row + 1 == ROWS { LOST } else { ' ' });
                continue;
            };
            let (solid, total) = (took.saturating_sub(bottom), felt.saturating_sub(bottom));
            let (character, is_light) = match (solid, total) {
                (0, 0) => (' ', light),
                // Half a row of waiting is worth a character.
                (0, total) if total < PARTS / 2 => (' ', light),
                (0, _) => (LIGHT, true),
                (solid, _) => (SOLID[solid.min(PARTS) - 1], false),
            };
            if is_light != light {
                text += &paint(page, &run, light);
                run.clear();
                light = is_light;
            }
            run.push(character);
        }
        text + &paint(page, &run, light)
    }

    fn marks(&self, columns: usize) -> String {
        let mut line = String::new();
        let mut used = 0;
        for (name, share) in MARKS {
            let decade = -(1.0 - share).log10();
            let column = (decade / self.decades * (columns - 1) as f64).round() as usize;
            let start = column.saturating_sub(name.len() / 2);
            if start < used || start + name.len() > columns || (used > 0 && start < used + 1) {
                continue;
            }
            line += &" ".repeat(start - used);
            line += name;
            used = start + name.len();
        }
        line
    }
}

fn paint(page: &Page, run: &str, light: bool) -> String {
    match (run.is_empty(), light) {
        (true, _) => String::new(),
        (_, true) => page.paint.second(run),
        (_, false) => page.paint.first(run),
    }
}
