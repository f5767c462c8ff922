//! Reading objectives.

use std::str::FromStr;

use units::UnitError;

use super::{Quantity, Slo, Statistic, Term};

/// Longest text that is read.
const LONGEST: usize = 1_000;

/// Names of quantities that stand alone.
const PLAIN: [(&str, Quantity); 3] = [
    ("errors", Quantity::Errors),
    ("sent", Quantity::Sent),
    ("rate", Quantity::Rate),
];

/// What people write for the names we know.
const ALIASES: [(&str, &str); 18] = [
    ("error", "errors"),
    ("err", "errors"),
    ("median", "p50"),
    ("avg", "mean"),
    ("average", "mean"),
    ("p99.9", "p999"),
    ("p99.99", "p9999"),
    ("p100", "max"),
    ("worst", "max"),
    ("latency", "p99"),
    ("error_rate", "errors"),
    ("failures", "errors"),
    ("failed", "errors"),
    ("throughput", "rate"),
    ("rps", "rate"),
    ("qps", "rate"),
    ("good", "rate"),
    ("achieved", "sent"),
];

impl Slo {
    /// Reads an objective: terms between commas or the word `and`.
    ///
    /// # Errors
    /// When there is no term, one cannot be understood, it compares in the direction
    /// that no objective has, or nothing could ever fulfil it.
    pub fn parse(text: &str) -> Result<Self, UnitError> {
        if text.len() > LONGEST {
            let message = format!("an objective has at most {LONGEST} bytes");
            return Err(UnitError::new(0..text.len(), message));
        }
        let mut terms = Vec::new();
        for (at, part) in parts(text) {
            let term = term(part).map_err(|error| error.shifted(at))?;
            if terms.len() == Self::MOST_TERMS {
                let message = format!("an objective has at most {} terms", Self::MOST_TERMS);
                return Err(UnitError::new(at..at + part.len(), message));
            }
            terms.push(term);
        }
        Ok(Self { terms })
    }
}

impl FromStr for Slo {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        Self::parse(text)
    }
}

/// The terms of a text with their places, without the space around them.
fn parts(text: &str) -> Vec<(usize, &str)> {
    let mut parts = Vec::new();
    let mut from = 0;
    let mut at = 0;
    let mut cut = |from: usize, to: usize| {
        let part = &text[from..to];
        let start = from + (part.len() - part.trim_start().len());
        parts.push((start, part.trim()));
    };
    while at < text.len() {
        let rest = &text[at..];
        let after_space = at == 0 || text[..at].ends_with(char::is_whitespace);
        let word = rest
            .strip_prefix("and")
            .filter(|rest| after_space && rest.starts_with(char::is_whitespace));
        let length = match word {
            Some(_) => 3,
            None if rest.starts_with(',') => 1,
            None if rest.starts_with("&&") => 2,
            None => 0,
        };
        if length > 0 {
            cut(from, at);
            from = at + length;
        }
        at += length.max(rest.chars().next().map_or(1, char::len_utf8));
    }
    cut(from, text.len());
    parts
}

fn term(text: &str) -> Result<Term, UnitError> {
    let all = 0..text.len();
    if text.is_empty() {
        let message = "expected an objective such as p99 < 20ms, found nothing";
        return Err(UnitError::new(all, message));
    }
    let Some(at) = text.find(['<', '>', '=', '≤', '≥']) else {
        let quantity = quantity(text)?;
        let message = format!(
            "{quantity} is compared with nothing; expected {}",
            example(quantity)
        );
        return Err(UnitError::new(all, message));
    };
    let value_at = text[at..]
        .find(|c: char| !matches!(c, '<' | '>' | '=' | '≤' | '≥'))
        .map_or(text.len(), |length| at + length);
    let quantity = quantity(text[..at].trim_end())?;
    let sign = &text[at..value_at];
    let (above, inclusive) = match sign {
        "<" => (true, false),
        "<=" | "≤" => (true, true),
        ">" => (false, false),
        ">=" | "≥" => (false, true),
        _ => {
            let message = format!("unknown comparison \"{sign}\"; expected <, <=, > or >=");
            return Err(UnitError::new(at..value_at, message));
        }
    };
    if above != quantity.held_from_above() {
        let (bad, meant) = match (above, inclusive) {
            (false, false) => ("large", "<"),
            (false, true) => ("large", "<="),
            (true, false) => ("small", ">"),
            (true, true) => ("small", ">="),
        };
        let example = example(quantity);
        let message =
            format!("an objective keeps {quantity} from being too {bad}; expected {example}");
        return Err(UnitError::new(at..value_at, message).suggest(meant));
    }
    let rest = &text[value_at..];
    let value = rest.trim_start();
    let from = text.len() - value.len();
    if value.is_empty() {
        let message = format!(
            "{quantity} is compared with nothing; expected {}",
            example(quantity)
        );
        return Err(UnitError::new(at..text.len(), message));
    }
    let bound = match quantity {
        Quantity::Intended(_) | Quantity::Actual(_) => {
            units::parse_duration(value).map(|bound| bound.as_secs_f64())
        }
        Quantity::Errors | Quantity::Sent => units::parse_share(value),
        Quantity::Rate => units::parse_rate(value),
    };
    let bound = bound.map_err(|error| error.shifted(from))?;
    let term = Term {
        quantity,
        inclusive,
        bound,
    };
    let never = match quantity {
        Quantity::Intended(_) | Quantity::Actual(_) => bound == 0.0,
        Quantity::Errors => bound == 0.0 && !inclusive,
        Quantity::Sent => bound == 1.0 && !inclusive,
        Quantity::Rate => false,
    };
    if never {
        let error = UnitError::new(all, format!("{term} can never hold"));
        let inclusive = Term {
            inclusive: true,
            ..term
        };
        return Err(match quantity {
            Quantity::Intended(_) | Quantity::Actual(_) => error,
            _ => error.suggest(inclusive.to_string()),
        });
    }
    Ok(term)
}

fn quantity(text: &str) -> Result<Quantity, UnitError> {
    let mut words = text.split_whitespace();
    let (first, second, more) = (words.next(), words.next(), words.next());
    let found = match (first, second, more) {
        (Some("actual"), Some(word), None) => Statistic::named(word).map(Quantity::Actual),
        (Some("intended"), Some(word), None) => Statistic::named(word).map(Quantity::Intended),
        (Some(word), None, None) => {
            let plain = PLAIN.iter().find(|(name, _)| *name == word);
            let plain = plain.map(|(_, quantity)| *quantity);
            plain.or_else(|| Statistic::named(word).map(Quantity::Intended))
        }
        _ => None,
    };
    found.ok_or_else(|| unknown(text))
}

fn unknown(text: &str) -> UnitError {
    if text.is_empty() {
        let message = "expected a quantity before the comparison, as in p99 < 20ms";
        return UnitError::new(0..0, message);
    }
    let names = || {
        let statistics = Statistic::ALL.iter().map(|(name, _)| *name);
        statistics.chain(PLAIN.iter().map(|(name, _)| *name))
    };
    let (prefix, word) = match text.split_once(char::is_whitespace) {
        Some((prefix @ ("actual" | "intended"), word)) => (prefix, word.trim_start()),
        _ => ("", text),
    };
    let lower = word.to_lowercase();
    let at = if prefix.is_empty() {
        0
    } else {
        text.len() - word.len()
    };
    let list = names().collect::<Vec<_>>().join(" ");
    let message = format!("unknown quantity \"{word}\"; quantities are {list}, and actual p99");
    let error = UnitError::new(at..text.len(), message);
    match ALIASES.iter().find(|(alias, _)| *alias == lower) {
        Some((_, meant)) => error.suggest(*meant),
        // One that is nearly a name, or nearly what people write for one.
        None => {
            let aliases = ALIASES.iter().map(|(alias, _)| *alias);
            let mut error = error.meant(word, names().chain(aliases));
            if let Some(near) = &mut error.suggestion
                && let Some((_, meant)) = ALIASES.iter().find(|(alias, _)| alias == near)
            {
                *near = (*meant).to_owned();
            }
            error
        }
    }
}

fn example(quantity: Quantity) -> String {
    match quantity {
        Quantity::Intended(_) | Quantity::Actual(_) => format!("{quantity} < 20ms"),
        Quantity::Errors => "errors < 0.1%".to_owned(),
        Quantity::Sent => "sent >= 99%".to_owned(),
        Quantity::Rate => "rate >= 500/s".to_owned(),
    }
}
