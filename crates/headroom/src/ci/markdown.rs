//! A result as Markdown.

use lab_report::terminal::printable;
use lab_store::Outcome;

use super::{CaseResult, CiResult};

/// A heading, the verdict, and a table; what did not pass is explained below it.
pub(super) fn table(result: &CiResult) -> String {
    let (mark, word) = mark_and_word(result.outcome);
    let mut out = format!("### {mark} {}: {word}\n\n", text(&result.name));
    out += &format!("{}\n\n", text(&result.sentence));
    if let Some(picture) = &result.picture {
        out += &format!("![the changes](<{}>)\n\n", address(picture));
    }
    if result.cases.is_empty() {
        return out;
    }
    let heads: String = result
        .columns
        .iter()
        .map(|head| format!(" {head} |"))
        .collect();
    out += &format!(
        "| |{heads} |\n|---|{}---|\n",
        "---|".repeat(result.columns.len())
    );
    for case in &result.cases {
        let cells: String = case
            .cells
            .iter()
            .map(|cell| format!(" {} |", text(cell)))
            .collect();
        let (mark, word) = match case.became {
            CaseResult::Judged(outcome) => mark_and_word(outcome),
            CaseResult::LeftOut => ("–", "left out"),
        };
        out += &format!("| {} |{cells} {mark} {word} |\n", text(&case.name),);
    }
    let open = result
        .cases
        .iter()
        .filter(|case| case.became != CaseResult::Judged(Outcome::Pass));
    let open: String = open
        .map(|case| format!("- {}\n", text(&case.text)))
        .collect();
    match open.is_empty() {
        true => out + "\n",
        false => out + &format!("\n{open}\n"),
    }
}

fn mark_and_word(outcome: Outcome) -> (&'static str, &'static str) {
    match outcome {
        Outcome::Pass => ("✓", "pass"),
        Outcome::Fail => ("✗", "fail"),
        Outcome::Inconclusive => ("?", "inconclusive"),
        Outcome::Invalid => ("!", "invalid"),
        Outcome::Error => ("!", "error"),
    }
}

/// What may stand between the angle brackets of a link.
fn address(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '<' => out += "%3C",
            '>' => out += "%3E",
            '\\' => out += "%5C",
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}

/// Text that is nothing but text to Markdown, on one line.
fn text(text: &str) -> String {
    let mut out = String::new();
    for c in printable(text).chars() {
        if matches!(
            c,
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' | '~'
        ) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}
