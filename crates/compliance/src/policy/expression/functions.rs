//! Functions of expressions.

use std::ops::RangeInclusive;

use aws_lc_rs::digest;
use serde_json::Value;

use super::evaluate::EvaluateError;
use crate::model::property::text_of;

macro_rules! functions {
    ($($(#[$doc:meta])* $variant:ident $name:literal $arguments:expr, $usage:literal;)*) => {
        /// A function.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Function {
            $($(#[$doc])* $variant,)*
        }

        impl Function {
            const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Its name.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// How many arguments it takes.
            pub fn arguments(self) -> RangeInclusive<usize> {
                match self { $(Self::$variant => $arguments,)* }
            }

            /// What it takes, in words.
            pub fn usage(self) -> &'static str {
                match self { $(Self::$variant => $usage,)* }
            }
        }
    };
}

functions! {
    /// The number of letters of a text, or of entries of a list or object.
    Length "length" 1..=1, "(TEXT or LIST)";
    /// In small letters.
    Lower "lower" 1..=1, "(TEXT)";
    /// In capital letters.
    Upper "upper" 1..=1, "(TEXT)";
    /// Without spaces at both ends.
    Trim "trim" 1..=1, "(TEXT)";
    /// With every occurrence of one text replaced by another.
    Replace "replace" 3..=3, "(TEXT, FROM, TO)";
    /// From a letter, counted from 0, to the end or for a number of letters.
    Substring "substring" 2..=3, "(TEXT, START[, LENGTH])";
    /// The parts of a text between separators.
    Split "split" 2..=2, "(TEXT, SEPARATOR)";
    /// The entries of a list as one text.
    Join "join" 2..=2, "(LIST, SEPARATOR)";
    /// Has the text the part, the list the entry, the object the key?
    Contains "contains" 2..=2, "(TEXT or LIST, PART)";
    /// Does the text start so?
    StartsWith "starts_with" 2..=2, "(TEXT, START)";
    /// Does the text end so?
    EndsWith "ends_with" 2..=2, "(TEXT, END)";
    /// The text filled on the left to a length.
    PadLeft "pad_left" 3..=3, "(TEXT, LENGTH, FILL)";
    /// The whole number that a text is.
    Integer "integer" 1..=1, "(TEXT)";
    /// The text of a value: of a list or object its JSON.
    Text "text" 1..=1, "(VALUE)";
    /// The smallest of some numbers.
    Min "min" 1..=16, "(NUMBER, …)";
    /// The largest of some numbers.
    Max "max" 1..=16, "(NUMBER, …)";
    /// SHA-256 of a text, in hexadecimal digits.
    Sha256 "sha256" 1..=1, "(TEXT)";
    /// SHA-512 of a text, in hexadecimal digits.
    Sha512 "sha512" 1..=1, "(TEXT)";
    /// A number from 0 to below the second that the text always gets: spreads nodes over
    /// minutes or servers.
    Spread "spread" 2..=2, "(TEXT, NUMBER)";
}

impl Function {
    /// The function of this name.
    pub fn named(name: &str) -> Option<Self> {
        let mut all = Self::ALL.iter().copied();
        all.find(|function| function.name() == name)
    }

    /// All names.
    pub fn names() -> impl Iterator<Item = &'static str> {
        Self::ALL.iter().map(|function| function.name())
    }

    /// Its value. `left` is how many bytes it may make.
    pub(super) fn call(self, given: &[Value], left: usize) -> Result<Value, EvaluateError> {
        let text = |at: usize| text_of(given.get(at).unwrap_or(&Value::Null));
        let number = |at: usize| integer(self.name(), given.get(at).unwrap_or(&Value::Null));
        let size = |at: usize| Ok::<_, EvaluateError>(usize::try_from(number(at)?).unwrap_or(0));
        let fits = |bytes: usize| {
            if bytes > left {
                return Err(EvaluateError::Bytes);
            }
            Ok(())
        };
        let hash = |algorithm| hex(digest::digest(algorithm, text(0).as_bytes()).as_ref());
        Ok(match self {
            Self::Length => match &given[0] {
                Value::Array(list) => list.len().into(),
                Value::Object(map) => map.len().into(),
                _ => text(0).chars().count().into(),
            },
            Self::Lower => text(0).to_lowercase().into(),
            Self::Upper => text(0).to_uppercase().into(),
            Self::Trim => text(0).trim().into(),
            Self::Replace => {
                let (whole, from, to) = (text(0), text(1), text(2));
                if from.is_empty() {
                    return Ok(whole.into_owned().into());
                }
                let count = whole.matches(&*from).count();
                fits(count.saturating_mul(to.len()))?;
                whole.replace(&*from, &to).into()
            }
            Self::Substring => {
                let whole = text(0);
                let letters = whole.chars().skip(size(1)?);
                match given.get(2) {
                    Some(_) => letters.take(size(2)?).collect::<String>().into(),
                    None => letters.collect::<String>().into(),
                }
            }
            Self::Split => {
                let (whole, separator) = (text(0), text(1));
                if separator.is_empty() {
                    return Ok(Value::Array(vec![whole.into_owned().into()]));
                }
                fits(whole.matches(&*separator).count().saturating_mul(32))?;
                whole.split(&*separator).map(Value::from).collect()
            }
            Self::Join => {
                let Value::Array(list) = &given[0] else {
                    return Err(wrong_kind(self.name(), "a list", &given[0]));
                };
                let separator = text(1);
                fits(list.len().saturating_mul(separator.len()))?;
                let parts: Vec<_> = list.iter().map(text_of).collect();
                parts.join(&separator).into()
            }
            Self::Contains => match &given[0] {
                Value::Array(list) => list.contains(&given[1]).into(),
                Value::Object(map) => map.contains_key(&*text(1)).into(),
                _ => text(0).contains(&*text(1)).into(),
            },
            Self::StartsWith => text(0).starts_with(&*text(1)).into(),
            Self::EndsWith => text(0).ends_with(&*text(1)).into(),
            Self::PadLeft => {
                let (whole, fill) = (text(0), text(2));
                let length = size(1)?;
                let missing = length.saturating_sub(whole.chars().count());
                fits(missing.saturating_mul(4))?;
                let filling = fill.chars().cycle().take(missing);
                filling.chain(whole.chars()).collect::<String>().into()
            }
            Self::Integer => match &given[0] {
                Value::String(text) => match text.trim().parse::<i64>() {
                    Ok(number) => number.into(),
                    Err(_) => return Err(wrong_kind(self.name(), "a whole number", &given[0])),
                },
                other => integer(self.name(), other)?.into(),
            },
            Self::Text => text(0).into_owned().into(),
            Self::Min | Self::Max => {
                let mut all = (0..given.len())
                    .map(number)
                    .collect::<Result<Vec<_>, _>>()?;
                all.sort_unstable();
                let found = if self == Self::Min {
                    all.first()
                } else {
                    all.last()
                };
                found.copied().unwrap_or_default().into()
            }
            Self::Sha256 => hash(&digest::SHA256).into(),
            Self::Sha512 => hash(&digest::SHA512).into(),
            Self::Spread => {
                let over = u64::try_from(number(1)?).unwrap_or(0);
                let digest = digest::digest(&digest::SHA256, text(0).as_bytes());
                let first = digest.as_ref().first_chunk().copied();
                let number = u64::from_be_bytes(first.unwrap_or_default());
                match number.checked_rem(over) {
                    Some(rest) => rest.into(),
                    None => return Err(EvaluateError::DividedByZero),
                }
            }
        })
    }
}

/// The whole number that a value is.
pub(super) fn integer(what: &'static str, value: &Value) -> Result<i64, EvaluateError> {
    value
        .as_i64()
        .ok_or_else(|| wrong_kind(what, "a whole number", value))
}

/// That something was given a value of another kind; the value itself may be a secret.
pub(super) fn wrong_kind(
    what: &'static str,
    expected: &'static str,
    found: &Value,
) -> EvaluateError {
    let found = match found {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(number) if number.is_f64() => "a number with a fraction",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    EvaluateError::Kind {
        what,
        expected,
        found,
    }
}

/// Bytes in hexadecimal digits.
fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
