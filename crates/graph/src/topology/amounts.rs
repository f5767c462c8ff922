//! Amounts in a graph's file: constants, distributions and quantiles of a time, a size or
//! a count.

use document::{Node, Problem, Value};
use units::UnitError;

use super::value::{expected, of_unit, size, time};
use crate::amount::Amount;
use crate::script::bound;

/// What an amount is of, and the largest that a file can name.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Scale {
    unit: Unit,
    most: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Unit {
    Time,
    Size,
    Count,
}

/// Times, in nanoseconds.
pub(super) const TIME: Scale = Scale {
    unit: Unit::Time,
    most: bound::TIME as f64,
};

/// Sizes of bodies and files, in bytes.
pub(super) const SIZE: Scale = Scale {
    unit: Unit::Size,
    most: bound::BYTES as f64,
};

/// Steps of work: to 10^12, which take minutes.
pub(super) const STEPS: Scale = Scale {
    unit: Unit::Count,
    most: 1e12,
};

/// Calls made at once.
pub(super) const CALLS: Scale = Scale {
    unit: Unit::Count,
    most: bound::COUNT as f64,
};

impl Scale {
    fn parse(self, text: &str) -> Result<f64, UnitError> {
        let value = match self.unit {
            Unit::Time => units::parse_duration(text)?.as_nanos() as f64,
            Unit::Size => units::parse_bytes(text)? as f64,
            Unit::Count => count(text)?,
        };
        self.bounded(value).map_err(|message| wrong(text, message))
    }

    fn bounded(self, value: f64) -> Result<f64, String> {
        match (0.0..=self.most).contains(&value) {
            true => Ok(value),
            false => Err(format!("expected at most {}", self.write(self.most))),
        }
    }

    fn write(self, value: f64) -> String {
        // Texts hold whole nanoseconds and bytes; amounts are not negative.
        let whole = value.round() as u64;
        match self.unit {
            Unit::Time => units::write_duration(std::time::Duration::from_nanos(whole)),
            Unit::Size => units::write_bytes(whole),
            Unit::Count => value.to_string(),
        }
    }

    fn example(self) -> &'static str {
        match self.unit {
            Unit::Time => {
                "a length of time: \"5ms\", \"uniform 1ms 2ms\", \"exponential 1ms\", \
                 \"lognormal 1ms p99=4ms\" or { p50 = \"1ms\", p99 = \"4ms\" }"
            }
            Unit::Size => {
                "a size: \"1KiB\", \"uniform 1KiB 4KiB\", \"exponential 1KiB\", \
                 \"lognormal 1KiB p99=4KiB\" or { p50 = \"1KiB\", p99 = \"4KiB\" }"
            }
            Unit::Count => {
                "a count: 2, \"uniform 1 3\", \"exponential 2\", \"lognormal 2 p99=9\" \
                 or { p50 = 1, p99 = 4 }"
            }
        }
    }
}

/// Reads an amount.
pub(super) fn read(node: &Node, scale: Scale) -> Result<Amount, Problem> {
    match &node.value {
        Value::Text(text) => distribution(text, scale).map_err(|error| of_unit(error, text, node)),
        Value::Table(_) => quantiles(node, scale),
        Value::Integer(_) | Value::Float(_) => constant(node, scale).map(Amount::Constant),
        _ => Err(expected(scale.example(), node)),
    }
}

fn constant(node: &Node, scale: Scale) -> Result<f64, Problem> {
    let number = match &node.value {
        Value::Text(text) => return scale.parse(text).map_err(|e| of_unit(e, text, node)),
        Value::Integer(number) => *number as f64,
        Value::Float(number) => *number,
        _ => return Err(expected(scale.example(), node)),
    };
    match scale.unit {
        Unit::Count => scale.bounded(number).map_err(|_| {
            let most = scale.write(scale.most);
            expected(&format!("a number from 0 to {most}"), node)
        }),
        Unit::Time => time(node).map(|nanos| nanos as f64),
        Unit::Size => size(node).map(|bytes| bytes as f64),
    }
}

/// A number without a unit, to the last bit.
fn count(text: &str) -> Result<f64, UnitError> {
    let digits = text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    match text.parse() {
        Ok(number) if digits => Ok(number),
        _ => units::parse_number(text),
    }
}

fn wrong(text: &str, message: impl Into<String>) -> UnitError {
    UnitError {
        message: message.into(),
        at: 0..text.len(),
        suggestion: None,
    }
}

const FORMS: [&str; 3] = ["uniform", "exponential", "lognormal"];

fn distribution(text: &str, scale: Scale) -> Result<Amount, UnitError> {
    let place = |word: &str| word.as_ptr() as usize - text.as_ptr() as usize;
    let value = |word: &str| scale.parse(word).map_err(|e| e.shifted(place(word)));
    let words: Vec<&str> = text.split_whitespace().collect();
    match words.as_slice() {
        ["uniform", from, to] => match (value(from)?, value(to)?) {
            (from, to) if from <= to => Ok(Amount::Uniform { from, to }),
            _ => Err(wrong(
                text,
                "the first bound of uniform is above the second",
            )),
        },
        ["exponential", mean] => Ok(Amount::Exponential { mean: value(mean)? }),
        ["lognormal", median, high] if high.starts_with("p99=") => {
            match (value(median)?, value(&high["p99=".len()..])?) {
                (median, p99) if 0.0 < median && median <= p99 => {
                    Ok(Amount::LogNormal { median, p99 })
                }
                _ => Err(wrong(text, "lognormal needs 0 < median <= p99")),
            }
        }
        [word, ..] if FORMS.contains(word) => {
            let message = format!("{word} has other parameters; expected {}", scale.example());
            Err(wrong(text, message))
        }
        [one] if one.starts_with(|first: char| first.is_ascii_digit()) => {
            value(one).map(Amount::Constant)
        }
        [word, ..] => {
            let at = place(word);
            let near = units::nearest(word, FORMS);
            Err(UnitError {
                message: format!("expected {}, found \"{text}\"", scale.example()),
                at: at..at + word.len(),
                suggestion: near.map(str::to_owned),
            })
        }
        [] => Err(wrong(
            text,
            format!("expected {}, found nothing", scale.example()),
        )),
    }
}

/// A table whose keys are percentiles: `p50`, `"p99.9"`, and `max`.
fn quantiles(node: &Node, scale: Scale) -> Result<Amount, Problem> {
    let Value::Table(entries) = &node.value else {
        return Err(expected(scale.example(), node));
    };
    let mut points: Vec<(f64, f64, &Node)> = Vec::with_capacity(entries.len());
    for entry in entries {
        let quantile = parse_quantile(&entry.key).ok_or_else(|| {
            let message = format!(
                "expected a percentile such as p50 or \"p99.9\", or max; found \"{}\"",
                entry.key
            );
            Problem::new(entry.key_span.clone(), message)
        })?;
        points.push((quantile, constant(&entry.node, scale)?, &entry.node));
    }
    if points.is_empty() {
        return Err(expected(scale.example(), node));
    }
    points.sort_by(|one, other| one.0.total_cmp(&other.0));
    for pair in points.windows(2) {
        let [(low, below, _), (high, above, place)] = pair else {
            continue;
        };
        if low == high {
            return Err(Problem::new(
                node.span.clone(),
                "a percentile stands here twice",
            ));
        }
        if below > above {
            let message = format!(
                "{} is {}, below {} with {}; a higher percentile has no lower value",
                write_quantile(*high),
                scale.write(*above),
                write_quantile(*low),
                scale.write(*below)
            );
            return Err(Problem::new(place.span.clone(), message));
        }
    }
    let points = points.iter().map(|&(quantile, value, _)| (quantile, value));
    Ok(Amount::Quantiles(points.collect()))
}

/// `p99.9` is 0.999, to the last bit: the decimal point moves before the text is read.
fn parse_quantile(key: &str) -> Option<f64> {
    if key == "max" {
        return Some(1.0);
    }
    let percent = key.strip_prefix('p')?;
    let plain = percent.starts_with(|first: char| first.is_ascii_digit())
        && percent
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.');
    let quantile: f64 = format!("{percent}e-2").parse().ok().filter(|_| plain)?;
    (0.0 < quantile && quantile <= 1.0).then_some(quantile)
}

/// The key of a quantile; [`parse_quantile`] reads the same back.
fn write_quantile(quantile: f64) -> String {
    if quantile == 1.0 {
        return "max".to_owned();
    }
    // Below 1, so the text is `0.` and digits.
    let digits = quantile.to_string();
    let digits = digits.strip_prefix("0.").unwrap_or_default();
    let (percent, rest) = digits.split_at(digits.len().min(2));
    let percent = format!("{percent:0<2}");
    let percent = percent.strip_prefix('0').unwrap_or(&percent);
    match rest.is_empty() {
        true => format!("p{percent}"),
        false => format!("\"p{percent}.{rest}\""),
    }
}

/// An amount as TOML; [`read`] reads the same back if it is of whole nanoseconds or bytes.
pub(super) fn write(amount: &Amount, scale: Scale) -> String {
    let number = |value: f64| scale.write(value);
    let quoted = |value: f64| match scale.unit {
        Unit::Count => number(value),
        Unit::Time | Unit::Size => format!("\"{}\"", number(value)),
    };
    match amount {
        Amount::Constant(value) => quoted(*value),
        Amount::Uniform { from, to } => format!("\"uniform {} {}\"", number(*from), number(*to)),
        Amount::Exponential { mean } => format!("\"exponential {}\"", number(*mean)),
        Amount::LogNormal { median, p99 } => {
            format!("\"lognormal {} p99={}\"", number(*median), number(*p99))
        }
        Amount::Quantiles(points) => {
            let points: Vec<String> = points
                .iter()
                .map(|&(quantile, value)| {
                    format!("{} = {}", write_quantile(quantile), quoted(value))
                })
                .collect();
            format!("{{ {} }}", points.join(", "))
        }
    }
}
