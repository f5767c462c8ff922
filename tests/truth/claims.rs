//! What is held against the truth.

use std::fmt;

/// One statement of the instrument beside what is true.
#[derive(Debug, Clone)]
pub(crate) struct Claim {
    what: String,
    told: Told,
    truth: Truth,
}

#[derive(Debug, Clone)]
enum Told {
    Number(Option<f64>),
    Words(String),
}

#[derive(Debug, Clone)]
enum Truth {
    Between(f64, f64),
    Says(String),
}

impl Claim {
    /// A number that lies between two others if the instrument is right. One that is withheld is not wrong.
    pub(crate) fn number(what: &str, told: Option<f64>, least: f64, most: f64) -> Self {
        Self {
            what: what.to_owned(),
            told: Told::Number(told),
            truth: Truth::Between(least, most),
        }
    }

    /// A text in which something has to stand.
    pub(crate) fn says(what: &str, text: &str, part: &str) -> Self {
        Self {
            what: what.to_owned(),
            told: Told::Words(text.to_owned()),
            truth: Truth::Says(part.to_owned()),
        }
    }

    pub(crate) fn holds(&self) -> bool {
        match (&self.told, &self.truth) {
            (Told::Number(None), _) => true,
            (Told::Number(Some(told)), Truth::Between(least, most)) => {
                (*least..=*most).contains(told)
            }
            (Told::Words(text), Truth::Says(part)) => text.contains(part.as_str()),
            _ => false,
        }
    }
}

impl fmt::Display for Claim {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: ", self.what)?;
        match &self.told {
            Told::Number(Some(told)) => write!(out, "told {told:.6}")?,
            Told::Number(None) => write!(out, "withheld")?,
            Told::Words(text) => write!(out, "told {text:?}")?,
        }
        match &self.truth {
            Truth::Between(least, most) => write!(out, ", true is {least:.6} to {most:.6}"),
            Truth::Says(part) => write!(out, ", which must say {part:?}"),
        }
    }
}
