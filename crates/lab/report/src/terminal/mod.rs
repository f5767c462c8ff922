//! The verdict as a table for the terminal.

use console::{Style as Paint, measure_text_width, truncate_str};
use lab_store::{
    Event, EventKind, Expectation, FaultRecord, FindingRecord, OmittedExpectation, Outcome, Verdict,
};
use units::{show_seconds, show_share};

/// Narrowest table that is drawn; a narrower terminal wraps it.
const WIDTH_MIN: usize = 40;
/// Widest table that is drawn: longer lines are hard to follow.
const WIDTH_MAX: usize = 120;
/// Spaces between two columns.
const GAP: usize = 2;
/// Shortest form of an expression that still says something.
const THAT_MIN: usize = 12;
/// Longest text of a measured value.
const MEASURED_MAX: usize = 20;

/// How text is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Width of the terminal in columns; the table of a verdict uses 40 to 120 of them.
    /// `usize::MAX` where there is no terminal, so that nothing is broken for its sake.
    pub width: usize,
    /// Are colours allowed?
    pub color: bool,
}

impl Style {
    /// What standard output is: plain when `NO_COLOR` is set or it is not a terminal.
    #[must_use]
    pub fn of_stdout() -> Self {
        let terminal = console::Term::stdout();
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let width = terminal
            .size_checked()
            .map_or(usize::MAX, |(_, columns)| columns.into());
        Self {
            width,
            color: terminal.is_term() && !plain,
        }
    }
}

/// Each expectation with what was measured, then the outcome of the run.
///
/// Lines are at most `style.width` columns wide (but 40 at least). Control characters
/// are shown as `\u{..}`, so that no name in a run can steer the terminal.
#[must_use]
pub fn verdict_table(verdict: &Verdict, style: Style) -> String {
    let width = style.width.clamp(WIDTH_MIN, WIDTH_MAX);
    let mut out = String::new();
    let judged = verdict.expectations.iter().map(Row::of);
    let rows: Vec<Row> = judged
        .chain(verdict.left_out.iter().map(Row::left_out))
        .collect();
    if !rows.is_empty() {
        let columns = Columns::fit(&rows, width);
        let head = columns.line(&pad("expectation", columns.that), "measured", "outcome");
        push_line(&mut out, &paint(&head, Paint::new().dim(), style));
        for row in &rows {
            push_row(&mut out, row, &columns, width, style);
        }
        out.push('\n');
    }
    let sum = format!(
        "{}  {}",
        paint(word(verdict.outcome), colour(verdict.outcome).bold(), style),
        summary(verdict)
    );
    push_line(&mut out, &sum);
    if let Some(reason) = &verdict.reason {
        for line in reason.lines() {
            push_indented(&mut out, line, width);
        }
    }
    out
}

/// What the commands of steps printed, under the names of the steps; empty if they were
/// silent.
#[must_use]
pub fn printed_by_steps(events: &[Event], style: Style) -> String {
    let width = style.width.clamp(WIDTH_MIN, WIDTH_MAX);
    let mut out = String::new();
    for event in events.iter().filter(|event| event.kind == EventKind::Said) {
        let name = printable(&event.name);
        push_line(&mut out, &paint(&name, Paint::new().bold(), style));
        for line in event.text.lines() {
            // Columns of a table stay where they are if there is room.
            match measure_text_width(line) + GAP <= width {
                true => push_line(&mut out, &format!("  {}", printable(line))),
                false => push_indented(&mut out, line, width),
            }
        }
        out.push('\n');
    }
    out
}

/// Most faults that are told in the terminal; the page has all.
const FAULTS_SHOWN: usize = 20;

/// What faults did, under the names of their steps; empty if there were none.
#[must_use]
pub fn faults(faults: &[FaultRecord], style: Style) -> String {
    let width = style.width.clamp(WIDTH_MIN, WIDTH_MAX);
    let mut out = String::new();
    for fault in faults.iter().take(FAULTS_SHOWN) {
        let targets = fault.targets.join(", ");
        let length = fault.end_s.map_or_else(
            || fault.text.clone(),
            |end_s| format!("{}, {}", show_seconds(end_s - fault.begin_s), fault.text),
        );
        let head = format!("{}: {} {targets}", fault.step, fault.kind);
        push_line(
            &mut out,
            &paint(&printable(&head), Paint::new().bold(), style),
        );
        push_indented(&mut out, &printable(&length), width);
        for effect in &fault.effects {
            let text = format!("{}: {}", effect.of, effect.text);
            push_indented(&mut out, &printable(&text), width);
        }
        out.push('\n');
    }
    if faults.len() > FAULTS_SHOWN {
        let more = faults.len() - FAULTS_SHOWN;
        push_line(
            &mut out,
            &format!("and {more} more faults, which the report has\n"),
        );
    }
    out
}

/// Most findings that are told in the terminal; the page has all.
const FINDINGS_SHOWN: usize = 5;

/// What limited the run, the most important first, each followed by what it explains; empty
/// if nothing was found.
#[must_use]
pub fn findings(findings: &[FindingRecord], style: Style) -> String {
    let width = style.width.clamp(WIDTH_MIN, WIDTH_MAX);
    let mut out = String::new();
    if findings.is_empty() {
        return out;
    }
    push_line(
        &mut out,
        &paint("what limited it", Paint::new().dim(), style),
    );
    for finding in findings.iter().take(FINDINGS_SHOWN) {
        let [low, high] = finding.interval.map(show_share);
        let effect = format!("{low} to {high} of {}", finding.of);
        let head = format!("{} of {}", finding.kind, printable(&finding.system));
        let head = paint(&head, Paint::new().bold(), style);
        let indent = match finding.explained_by {
            Some(_) => "  follows: ",
            None => "",
        };
        push_line(&mut out, &format!("{indent}{head}  {effect}"));
        push_indented(&mut out, &finding.text, width);
    }
    if findings.len() > FINDINGS_SHOWN {
        let more = findings.len() - FINDINGS_SHOWN;
        push_line(&mut out, &format!("and {more} more, which the report has"));
    }
    out.push('\n');
    out
}

/// Where the report is.
#[must_use]
pub fn ending(report: &std::path::Path) -> String {
    // The path is not cut: people copy it.
    format!("report  {}\n", printable(&report.display().to_string()))
}

struct Row {
    that: String,
    measured: String,
    /// Without one it was not judged.
    outcome: Option<Outcome>,
    note: String,
}

impl Row {
    fn of(expectation: &Expectation) -> Self {
        let measured = printable(&expectation.measured);
        Self {
            that: printable(&expectation.that),
            measured: if measured.is_empty() {
                "-".to_owned()
            } else {
                measured
            },
            outcome: Some(expectation.outcome),
            note: printable(&expectation.note),
        }
    }

    fn left_out(expectation: &OmittedExpectation) -> Self {
        Self {
            that: printable(&expectation.that),
            measured: "-".to_owned(),
            outcome: None,
            note: printable(&expectation.why),
        }
    }

    fn outcome_text(&self) -> &'static str {
        self.outcome.map_or("– left out", mark_and_word)
    }
}

/// Widths of the columns.
struct Columns {
    that: usize,
    measured: usize,
}

impl Columns {
    /// Gives the expression what the short columns leave, and no more than it needs.
    fn fit(rows: &[Row], width: usize) -> Self {
        let widest = |head: &str, of: fn(&Row) -> &str| {
            rows.iter()
                .map(|row| measure_text_width(of(row)))
                .fold(measure_text_width(head), usize::max)
        };
        let outcome = widest("outcome", Row::outcome_text);
        let measured = widest("measured", |row| &row.measured);
        let measured = measured
            .min(MEASURED_MAX)
            .min(width - outcome - 2 * GAP - THAT_MIN);
        let room = width
            .saturating_sub(measured + outcome + 2 * GAP)
            .max(THAT_MIN);
        Self {
            that: widest("expectation", |row| &row.that).min(room),
            measured,
        }
    }

    fn line(&self, that: &str, measured: &str, outcome: &str) -> String {
        let measured = truncate_str(measured, self.measured, "…");
        let indent = self.measured.saturating_sub(measure_text_width(&measured));
        format!("{that}  {}{measured}  {outcome}", " ".repeat(indent))
    }
}

fn push_row(out: &mut String, row: &Row, columns: &Columns, width: usize, style: Style) {
    let colour = row.outcome.map_or_else(|| Paint::new().dim(), colour);
    let outcome = paint(row.outcome_text(), colour, style);
    // Several values do not fit into a column of numbers.
    let long = measure_text_width(&row.measured) > columns.measured;
    for (index, part) in wrap(&row.that, columns.that).into_iter().enumerate() {
        if index == 0 {
            let measured = if long { "below" } else { &row.measured };
            push_line(
                out,
                &columns.line(&pad(&part, columns.that), measured, &outcome),
            );
        } else {
            push_line(out, &part);
        }
    }
    if long {
        push_indented(out, &format!("measured {}", row.measured), width);
    }
    if !row.note.is_empty() {
        for line in wrap(&row.note, width - GAP) {
            push_line(out, &paint(&format!("  {line}"), Paint::new().dim(), style));
        }
    }
}

fn summary(verdict: &Verdict) -> String {
    let all = verdict.expectations.len();
    let held = verdict
        .expectations
        .iter()
        .filter(|one| one.outcome == Outcome::Pass)
        .count();
    let length = format!("after {:.1} s", verdict.duration_s);
    let left_out = match verdict.left_out.len() {
        0 => String::new(),
        count => format!("{count} left out, "),
    };
    match all {
        // Nothing failed because nothing was asked.
        0 if verdict.outcome == Outcome::Pass => format!("nothing was expected, {length}"),
        0 => left_out + &length,
        1 => format!("{held} of 1 expectation held, {left_out}{length}"),
        _ => format!("{held} of {all} expectations held, {left_out}{length}"),
    }
}

pub(crate) fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Pass => "PASS",
        Outcome::Fail => "FAIL",
        Outcome::Inconclusive => "INCONCLUSIVE",
        Outcome::Invalid => "INVALID",
        Outcome::Error => "ERROR",
    }
}

pub(crate) fn mark_and_word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Pass => "✓ pass",
        Outcome::Fail => "✗ fail",
        Outcome::Inconclusive => "? inconclusive",
        Outcome::Invalid => "! invalid",
        Outcome::Error => "! error",
    }
}

pub(crate) fn colour(outcome: Outcome) -> Paint {
    match outcome {
        Outcome::Pass => Paint::new().green(),
        Outcome::Fail | Outcome::Error => Paint::new().red(),
        Outcome::Inconclusive | Outcome::Invalid => Paint::new().yellow(),
    }
}

pub(crate) fn paint(text: &str, with: Paint, style: Style) -> String {
    // Forced both ways: the caller decides, not the library's look at the terminal.
    with.force_styling(style.color).apply_to(text).to_string()
}

fn push_line(out: &mut String, line: &str) {
    out.push_str(line.trim_end());
    out.push('\n');
}

/// A line of text, two columns further in than it was and broken to fit.
fn push_indented(out: &mut String, line: &str, width: usize) {
    let text = line.trim_start_matches(' ');
    let indent = (line.len() - text.len()).min(THAT_MIN) + GAP;
    for part in wrap(&printable(text), width - indent) {
        push_line(out, &format!("{}{part}", " ".repeat(indent)));
    }
}

pub(crate) fn pad(text: &str, width: usize) -> String {
    format!(
        "{text}{}",
        " ".repeat(width.saturating_sub(measure_text_width(text)))
    )
}

/// Text on one line, which cannot steer the terminal: what would move the cursor, change colours or turn
/// the direction of writing around is written out.
#[must_use]
pub fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        let turns = matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        match character {
            '\n' | '\t' => out.push(' '),
            _ if character.is_control() || turns => out.extend(character.escape_unicode()),
            _ => out.push(character),
        }
    }
    out
}

/// Lines of at most `width` columns, broken at spaces where there are some.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let long = measure_text_width(word);
        if used > 0 && used + 1 + long > width {
            lines.push(String::new());
            used = 0;
        }
        if used > 0 {
            push_last(&mut lines, ' ');
            used += 1;
        }
        for character in word.chars() {
            let wide = measure_text_width(character.encode_utf8(&mut [0; 4]));
            if used + wide > width {
                lines.push(String::new());
                used = 0;
            }
            push_last(&mut lines, character);
            used += wide;
        }
    }
    lines
}

fn push_last(lines: &mut [String], character: char) {
    if let Some(line) = lines.last_mut() {
        line.push(character);
    }
}

#[cfg(test)]
mod tests;
