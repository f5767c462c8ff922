//! The right side of a comparison.

use super::lexer::Fault;
use super::parser::Word;
use super::{Dimension, Metric};
use units::UnitError;

/// The right side in the metric's unit.
pub(super) fn quantity(word: &Word, metric: &Metric) -> Result<f64, Fault> {
    let text = word.text.as_str();
    let dimension = metric.dimension();
    let read = match dimension {
        Dimension::Seconds => units::parse_duration(text).map(|time| time.as_secs_f64()),
        Dimension::Bytes if text == "0" => Ok(0.0),
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
    read.map_err(
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
