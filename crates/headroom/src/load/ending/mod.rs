//! What a load came to: printed, written, and as an exit code.

use anyhow::Result;
use lab_load::Summary;
use lab_load::slo::{Judgement, Measured, Quantity};
use lab_report::load::load_text;
use lab_report::terminal::Style;
use lab_store::Outcome;
use serde::Serialize;
use units::{show_rate, show_seconds, show_share};

use super::Done;
use super::args::LoadArgs;
use super::files::Files;
use super::plan::Plan;
use crate::output::{self, eprint, print};

/// Prints and writes the result, and says what it means.
pub(super) fn report(
    args: &LoadArgs,
    plan: &Plan,
    done: &Done,
    summary: &Summary,
    files: Files,
) -> Result<Outcome> {
    let judged = super::judged(args, plan, done);
    let written = files.finish(summary);
    let mut expectations = String::new();
    for measured in judged.iter().flat_map(|judged| &judged.measured) {
        expectations += &line(measured);
    }
    if args.json {
        let measured = judged.as_ref().map_or(&[][..], |judged| &judged.measured);
        print(&json(summary, measured)?)?;
        if !expectations.is_empty() {
            eprint(expectations.trim_end());
        }
    } else {
        let mut text = load_text(summary, Style::of_stdout());
        if !expectations.is_empty() {
            text += &format!("\n{expectations}");
        }
        if let Some(report) = args.report.as_ref().filter(|_| written.is_ok()) {
            text += &format!("\nreport  {}\n", report.display());
        }
        print(&text)?;
    }
    // The result is told even when a file cannot be written.
    written?;
    Ok(outcome(summary, judged.as_ref()))
}

/// What `--json` prints: the result, and what `--expect` asked of it.
#[derive(Serialize)]
struct JsonResult<'a> {
    #[serde(flatten)]
    summary: &'a Summary,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    expectations: Vec<Expectation>,
}

/// A term that was expected to hold.
#[derive(Serialize)]
struct Expectation {
    that: String,
    measured: Option<f64>,
    holds: Option<bool>,
}

fn json(summary: &Summary, measured: &[Measured]) -> Result<String> {
    let expectations = measured.iter().map(|measured| Expectation {
        that: measured.term.to_string(),
        measured: measured.value,
        holds: measured.holds,
    });
    output::json(&JsonResult {
        summary,
        expectations: expectations.collect(),
    })
}

/// The outcome: a load that says nothing about its target is neither passed nor failed.
fn outcome(summary: &Summary, judged: Option<&Judgement>) -> Outcome {
    if !summary.validity.valid {
        return Outcome::Invalid;
    }
    if let Some(capacity) = &summary.capacity {
        return match capacity.limit.as_str() {
            "none" => Outcome::Fail,
            _ if capacity.knee.is_none() || summary.partial.is_some() => Outcome::Inconclusive,
            _ => Outcome::Pass,
        };
    }
    let held = judged.map(|judged| judged.holds);
    let answered = summary.requests.answered > summary.requests.refused;
    match held {
        Some(Some(false)) => Outcome::Fail,
        _ if summary.partial.is_some() => Outcome::Inconclusive,
        Some(None) => Outcome::Inconclusive,
        Some(Some(true)) => Outcome::Pass,
        None if answered => Outcome::Pass,
        None => Outcome::Fail,
    }
}

fn line(measured: &Measured) -> String {
    let mark = match measured.holds {
        Some(true) => "✓",
        Some(false) => "✗",
        None => "?",
    };
    let value = match measured.value {
        None => "nothing was measured".to_owned(),
        Some(value) => show(value, measured.term.quantity),
    };
    let show = |value: f64| show(value, measured.term.quantity);
    let why = match (measured.holds, measured.at_best) {
        (None, Some(best)) if measured.doubtful() => {
            format!(", or {} if the generator made the difference", show(best))
        }
        (None, _) => ", too few requests to tell".to_owned(),
        (Some(_), _) => String::new(),
    };
    format!("{mark} {}   {value}{why}\n", measured.term)
}

fn show(value: f64, quantity: Quantity) -> String {
    match quantity {
        Quantity::Intended(_) | Quantity::Actual(_) => show_seconds(value),
        Quantity::Errors | Quantity::Sent => show_share(value),
        Quantity::Rate => show_rate(value),
    }
}

#[cfg(test)]
mod tests;
