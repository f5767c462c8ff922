//! A sweep for the terminal: a row for each setting, a column for each expectation. Where the
//! terminal is too narrow for that, cells are broken into lines, and where that would be too
//! many, each setting is a paragraph. Nothing is cut.

use console::{Style as Paint, measure_text_width};

use super::{Cell, SweepRecord};
use crate::terminal::{Style, pad, paint, printable, word, wrap};

/// Narrowest terminal that lines are broken for.
const NARROWEST: usize = 20;
/// Spaces between two columns.
const GAP: usize = 2;
/// Most lines of a row; with more of them a table is no longer read along its rows.
const MOST_LINES: usize = 3;
/// After which characters a heading, which is mostly a name, may be broken; and a cell.
const IN_HEADS: &[char] = &[' ', '-', '_', '.'];
const IN_CELLS: &[char] = &[' '];
/// Between a constant and its value, and inside of a cell whose parts stay on one line.
const JOINED: char = '\u{a0}';

/// The sweep as a table, under the expectations by their numbers.
///
/// Lines are at most `style.width` columns wide, but for a terminal of fewer than 20.
#[must_use]
pub fn terminal(sweep: &SweepRecord, style: Style) -> String {
    let width = style.width.max(NARROWEST);
    let mut out = String::new();
    let expectations = sweep.expectations();
    for (number, that) in (1..).zip(&expectations) {
        push_hanging(&mut out, &format!("[{number}] "), &printable(that), width);
    }
    if !expectations.is_empty() {
        out.push('\n');
    }
    let rows = Rows::of(sweep, expectations.len());
    out += &rows.table(width, style).unwrap_or_else(|| rows.list(width));
    out += &format!("\n{}  {}\n", word(sweep.outcome()), sweep.progress());
    if let Some(answer) = &sweep.answer {
        push_hanging(&mut out, "  ", &printable(&answer.text), width);
    }
    for run in &sweep.runs {
        if let Some(reason) = &run.verdict.reason {
            let setting = sweep.settings[run.setting].join(" ");
            let first = reason.lines().next().unwrap_or_default();
            let text = format!("{}: {}", printable(&setting), printable(first));
            push_hanging(&mut out, "  ", &text, width);
        }
    }
    out
}

/// What stands in the table, all of it printable.
struct Rows {
    /// Names of the constants, then numbers of the expectations.
    head: Vec<String>,
    /// As many cells each.
    rows: Vec<Vec<Shown>>,
    /// How many of the columns are constants.
    constants: usize,
}

/// A cell: `1.2 s ✓` is measured, and then marked.
#[derive(Clone)]
struct Shown {
    measured: String,
    mark: String,
}

impl Shown {
    /// On one line, or where it is broken: a mark stays with the last word.
    fn text(&self) -> String {
        match (&*self.measured, &*self.mark) {
            (measured, "") => measured.to_owned(),
            (measured, mark) => format!("{measured}{JOINED}{mark}"),
        }
    }
}

impl Rows {
    fn of(sweep: &SweepRecord, expectations: usize) -> Self {
        let constants = sweep.over.len();
        let numbers = (1..=expectations).map(|number| format!("[{number}]"));
        let head = sweep.over.iter().map(|name| printable(name)).chain(numbers);
        let row = |at: usize| {
            let values = sweep.settings[at].iter().map(|value| Shown {
                measured: printable(value),
                mark: String::new(),
            });
            let cells = (0..expectations).map(|number| shown(&sweep.cell(at, number)));
            values.chain(cells).collect()
        };
        Self {
            head: head.collect(),
            rows: sweep.rows().into_iter().map(row).collect(),
            constants,
        }
    }

    /// As a table, if it fits: as it is, with headings of several lines, with a unit in the
    /// heading of a column that has one for all of its values, or with cells of several lines.
    fn table(&self, width: usize, style: Style) -> Option<String> {
        let lean = self.with_units_in_the_head();
        let mut ways = vec![(self, 1, 1), (self, MOST_LINES, 1)];
        ways.extend((1..=MOST_LINES).map(|lines| (&lean, MOST_LINES, lines)));
        let mut ways = ways.into_iter();
        ways.find_map(|(rows, head, lines)| rows.laid_out(width, head, lines, style))
    }

    /// The same with the unit of a column in its heading: `[1] ms` over `19 ✓`.
    fn with_units_in_the_head(&self) -> Self {
        let mut lean = Self {
            head: self.head.clone(),
            rows: self.rows.clone(),
            constants: self.constants,
        };
        for column in self.constants..self.head.len() {
            let measured = || self.rows.iter().filter_map(|row| row.get(column));
            let mut units = measured()
                .map(|cell| &*cell.measured)
                .filter(|text| *text != NOTHING)
                .map(unit);
            let Some(Some(first)) = units.next() else {
                continue;
            };
            if !units.all(|other| other == Some(first)) {
                continue;
            }
            lean.head[column] = format!("{}{JOINED}{first}", self.head[column]);
            for row in &mut lean.rows {
                let cell = &mut row[column].measured;
                if let Some(number) = cell.strip_suffix(first) {
                    *cell = number.trim_end().to_owned();
                }
            }
        }
        lean
    }

    /// As a table whose heading and whose rows have at most so many lines.
    fn laid_out(&self, width: usize, head: usize, lines: usize, style: Style) -> Option<String> {
        let row = |row: &Vec<Shown>| row.iter().map(Shown::text).collect();
        let rows: Vec<Vec<String>> = self.rows.iter().map(row).collect();
        let gaps = GAP * self.head.len().saturating_sub(1);
        let mut columns = Vec::new();
        for (column, name) in self.head.iter().enumerate() {
            let mut parts = vec![(name.as_str(), IN_HEADS, head)];
            let cells = rows.iter().filter_map(|row| row.get(column));
            parts.extend(cells.map(|cell| (cell.as_str(), IN_CELLS, lines)));
            columns.push(Column { parts });
        }
        let widths = fitted(&columns, width.checked_sub(gaps)?)?;
        let mut out = String::new();
        let head = std::iter::once((&self.head, IN_HEADS));
        for (number, (row, breaks)) in head
            .chain(rows.iter().map(|row| (row, IN_CELLS)))
            .enumerate()
        {
            let cells: Vec<Vec<String>> = row
                .iter()
                .zip(&widths)
                .map(|(text, width)| broken_after(text, breaks, *width))
                .collect();
            for line in 0..cells.iter().map(Vec::len).max().unwrap_or(0) {
                let parts = cells.iter().zip(&widths).map(|(cell, width)| {
                    let text = cell.get(line).map_or("", |text| text);
                    pad(text, *width)
                });
                let line = parts.collect::<Vec<_>>().join(&" ".repeat(GAP));
                let line = line.trim_end();
                out += &match number {
                    0 => paint(line, Paint::new().dim(), style),
                    _ => line.to_owned(),
                };
                out.push('\n');
            }
        }
        Some(out)
    }

    /// A paragraph for each setting.
    fn list(&self, width: usize) -> String {
        let mut out = String::new();
        for row in &self.rows {
            let named = self.head.iter().zip(row);
            let constants: Vec<String> = named
                .clone()
                .take(self.constants)
                .map(|(name, value)| format!("{name}{JOINED}{}", value.measured))
                .collect();
            push_hanging(&mut out, "", &constants.join(", "), width);
            for (name, cell) in named.skip(self.constants) {
                push_hanging(&mut out, &format!("  {name} "), &cell.text(), width);
            }
        }
        out
    }
}

/// A column: its texts, after which characters each may be broken, and into how many lines.
struct Column<'a> {
    parts: Vec<(&'a str, &'static [char], usize)>,
}

impl Column<'_> {
    /// Width of its widest text.
    fn natural(&self) -> usize {
        let texts = self.parts.iter().map(|(text, ..)| measure_text_width(text));
        texts.max().unwrap_or(0)
    }

    /// What of this width its lines take once they are broken.
    fn needed(&self, width: usize) -> usize {
        let parts = self.parts.iter();
        let lines = parts.flat_map(|(text, breaks, _)| broken_after(text, breaks, width));
        lines
            .map(|line| measure_text_width(&line))
            .max()
            .unwrap_or(0)
    }

    /// Whether each text has no more lines than it may, and none of its words is cut.
    fn fits(&self, width: usize) -> bool {
        self.parts.iter().all(|(text, breaks, most)| {
            let lines = broken_after(text, breaks, width);
            lines.len() <= *most && lines.iter().all(|line| measure_text_width(line) <= width)
        })
    }
}

/// Widths of the columns that fit into the room together, if there are such: the widest column
/// gives way first.
fn fitted(columns: &[Column<'_>], room: usize) -> Option<Vec<usize>> {
    let mut widths: Vec<usize> = columns.iter().map(Column::natural).collect();
    let mut stuck = vec![false; widths.len()];
    while widths.iter().sum::<usize>() > room {
        let able = (0..widths.len()).filter(|at| !stuck[*at] && widths[*at] > 1);
        let widest = able.max_by_key(|at| widths[*at])?;
        match columns[widest].fits(widths[widest] - 1) {
            true => widths[widest] -= 1,
            false => stuck[widest] = true,
        }
    }
    let needed = columns.iter().zip(widths);
    Some(needed.map(|(column, width)| column.needed(width)).collect())
}

/// Lines that end after one of `breaks`, each of at most `width` columns where a part allows it.
fn broken_after(text: &str, breaks: &[char], width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for part in text.split_inclusive(breaks) {
        let used: usize = lines.last().map_or(0, |line| measure_text_width(line));
        if used > 0 && used + measure_text_width(part.trim_end_matches(' ')) > width {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            line.push_str(part);
        }
    }
    let plain = lines
        .iter()
        .map(|line| line.trim_end_matches(' ').replace(JOINED, " "));
    plain.collect()
}

/// Text behind a lead, its further lines as far in as the lead is wide and two columns at least.
fn push_hanging(out: &mut String, lead: &str, text: &str, width: usize) {
    let lead_width = measure_text_width(lead);
    let indent = lead_width.max(GAP);
    let lines = wrap(text, width.saturating_sub(indent).max(1));
    for (number, line) in lines.iter().enumerate() {
        match number {
            0 => out.push_str(lead),
            _ => out.push_str(&" ".repeat(indent)),
        }
        out.push_str(&line.replace(JOINED, " "));
        out.push('\n');
    }
}

/// Stands where nothing was measured.
const NOTHING: &str = "–";

/// `1.2 s ✓`, and of several runs how many held: `1.2 s 2/3`.
fn shown(cell: &Cell) -> Shown {
    let measured = printable(cell.measured().unwrap_or(NOTHING));
    let (measured, mark) = match cell.held() {
        (_, 0) => (NOTHING.to_owned(), String::new()),
        (1, 1) => (measured, "✓".to_owned()),
        (0, 1) => (measured, "✗".to_owned()),
        (held, all) => (measured, format!("{held}/{all}")),
    };
    Shown { measured, mark }
}

/// The unit of a text that is one number with one: `ms` of `19 ms`.
fn unit(text: &str) -> Option<&str> {
    let (number, unit) = text.split_once(' ')?;
    let is_number = number.replace(',', "").parse::<f64>().is_ok();
    (is_number && !unit.is_empty() && !unit.contains(' ')).then_some(unit)
}
