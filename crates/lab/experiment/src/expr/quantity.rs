//! The right side of a comparison.

use super::lexer::Fault;
use super::parser::Word;
use super::{Dimension, Metric};
use units::UnitError;

/// Does it have values below zero? What shrank, phases whose end was told before their start, and
/// numbers that a system tells.
fn may_be_negative(metric: &Metric) -> bool {
    match (metric, metric.dimension()) {
        (Metric::Growth { .. }, _) | (_, Dimension::Number) => true,
        (Metric::Interval { .. }, dimension) => dimension == Dimension::Seconds,
        _ => false,
    }
}

/// The right side in the metric's unit.
pub(super) fn quantity(word: &Word, metric: &Metric) -> Result<f64, Fault> {
    let (sign, text) = match word.text.strip_prefix('-') {
        Some(text) => (-1.0, text),
        None => (1.0, word.text.as_str()),
    };
    let dimension = metric.dimension();
    let is_growth = matches!(metric, Metric::Growth { .. });
    if sign < 0.0 && !may_be_negative(metric) {
        let sign = word.at.start..word.at.start + 1;
        let fault = Fault::new(sign, "a quantity has no sign");
        return Err(fault.help(format!("{metric} is never negative")));
    }
    let read = match dimension {
        // What grows may become several times as large.
        Dimension::Share if is_growth => units::parse_ratio(text),
        Dimension::Seconds => units::parse_duration(text).map(|time| time.as_secs_f64()),
        Dimension::Bytes => units::parse_bytes(text).map(|bytes| bytes as f64),
        Dimension::Share => units::parse_share(text),
        Dimension::Count | Dimension::Number => units::parse_number(text),
        Dimension::Rate => units::parse_rate(text),
        Dimension::Cores => {
            let number = text
                .strip_suffix("cores")
                .or_else(|| text.strip_suffix("core"));
            units::parse_number(number.unwrap_or(text).trim_end())
        }
    };
    read.map(|quantity| sign * quantity).map_err(
        |UnitError {
             message,
             suggestion,
             ..
         }| {
            let alone = text
                .chars()
                .all(|c| c.is_ascii_digit() || matches!(c, '.' | '_'));
            // A near miss within the right unit keeps its own message.
            let message = match suggestion.is_some() || alone {
                true => message,
                false => format!(
                    "{metric} is compared with {}, found \"{text}\"",
                    dimension.example()
                ),
            };
            Fault {
                at: word.at.clone(),
                message,
                help: None,
                suggestion,
            }
        },
    )
}
