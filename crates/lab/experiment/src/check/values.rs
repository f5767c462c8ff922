//! Values of each form, with names filled in.

use std::ops::RangeInclusive;
use std::time::Duration;

use document::{Problem, listed};
use toml::de::DeValue;

use super::fields::{Field, described};
use crate::catalogue::OwnNetwork;
use crate::expr::in_name;
use crate::names::{Place, Scope};
use crate::plan::{Reference, Template};
use crate::text::Text;
use crate::words;
use units::{UnitError, grouped};

/// Most items of any list.
const MOST_ITEMS: usize = 1_000;
/// Longest name.
const LONGEST_NAME: usize = 64;

/// Reads values of one file and gathers what is wrong with them.
pub(super) struct Reader<'a> {
    pub(super) file: &'a str,
    pub(super) scope: Scope,
    pub(super) problems: Vec<Problem>,
    /// Whether file systems may be mounted.
    pub(super) may_mount: bool,
    /// Tries whether the run can have a network of its own.
    pub(super) own_network: OwnNetwork,
}

/// A word of a command line: as it is written, and with names filled in.
pub(super) struct CommandWord {
    pub(super) written: Text,
    pub(super) filled: Template,
}

impl Reader<'_> {
    pub(super) fn problem(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    /// Reports a problem, and gives nothing.
    pub(super) fn refuse<T>(&mut self, problem: Problem) -> Option<T> {
        self.problem(problem);
        None
    }

    /// Whether the file has a system or fleet of this name. One that is wrong itself is told where it
    /// stands, and what refers to it is no second mistake.
    pub(super) fn declares(&self, name: &str) -> bool {
        self.scope.systems.iter().any(|known| known == name)
    }

    /// Reports that a value has another form, and gives nothing.
    pub(super) fn mismatch<T>(&mut self, field: Field<'_>, expected: &str) -> Option<T> {
        let found = described(field.value.get_ref());
        let message = format!("\"{}\" must be {expected}, found {found}", field.key);
        self.refuse(Problem::new(field.span(), message))
    }

    /// A string as it is written, without names filled in.
    pub(super) fn verbatim(&mut self, field: Field<'_>, expected: &str) -> Option<Text> {
        let DeValue::String(decoded) = field.value.get_ref() else {
            return self.mismatch(field, expected);
        };
        let text = Text::of_value(self.file, field.span(), decoded);
        if let Some(at) = decoded.find('\0') {
            let message = format!("\"{}\" holds a NUL character", field.key);
            return self.refuse(Problem::new(text.span(at..at + 1), message));
        }
        Some(text)
    }

    /// A string with constants filled in.
    pub(super) fn text(&mut self, field: Field<'_>, expected: &str) -> Option<Text> {
        let text = self.verbatim(field, expected)?;
        self.scope.text(&text, &mut self.problems)
    }

    /// A string that is not empty, with constants filled in.
    pub(super) fn line(&mut self, field: Field<'_>, expected: &str) -> Option<String> {
        let text = self.text(field, expected)?;
        let blank = text.as_str().trim().is_empty();
        if blank || text.as_str().contains(char::is_control) {
            let what = if blank { "empty" } else { "of several lines" };
            let message = format!("\"{}\" must be {expected}, it is {what}", field.key);
            return self.refuse(Problem::new(field.span(), message));
        }
        Some(text.as_str().to_owned())
    }

    /// A string that may refer to running systems.
    pub(super) fn template(&mut self, field: Field<'_>, place: Place) -> Option<Template> {
        let text = self.verbatim(field, "a string")?;
        self.scope.template(&text, place, &mut self.problems)
    }

    /// A string that holds something that a step has kept; `None`: another value, of which
    /// those who read it tell what is wrong.
    pub(super) fn kept(&self, field: Field<'_>) -> Option<Template> {
        let decoded = field.value.get_ref().as_str();
        let decoded = decoded.filter(|decoded| !decoded.contains('\0'))?;
        let text = Text::of_value(self.file, field.span(), decoded);
        let scope = &self.scope;
        let template = scope.template(&text, Place::Command, &mut Vec::new())?;
        let is_kept = |reference: &Reference| matches!(reference, Reference::Kept(_));
        let holds = template.references().any(is_kept);
        holds.then_some(template)
    }

    /// A command line, split into words. Names are filled in after the split, so
    /// what stands for a name never becomes several words.
    pub(super) fn command(&mut self, field: Field<'_>, place: Place) -> Option<Vec<CommandWord>> {
        let line = self.verbatim(field, "a command line")?;
        let words = match words::split(&line) {
            Ok(words) => words,
            Err(problem) => return self.refuse(problem),
        };
        all(words.into_iter().map(|written| {
            let filled = self.scope.template(&written, place, &mut self.problems)?;
            Some(CommandWord { written, filled })
        }))
    }

    /// A command line that begins with a program.
    pub(super) fn program(
        &mut self,
        field: Field<'_>,
        place: Place,
    ) -> Option<(Template, Vec<Template>)> {
        let mut words = self
            .command(field, place)?
            .into_iter()
            .map(|word| word.filled);
        match words.next() {
            Some(program) if program != Template::literal("") && !program.0.is_empty() => {
                Some((program, words.collect()))
            }
            _ => self.mismatch(field, "a program and its arguments"),
        }
    }

    /// One of several words.
    pub(super) fn choice<T: Copy>(&mut self, field: Field<'_>, choices: &[(&str, T)]) -> Option<T> {
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        let text = self.text(field, &format!("one of {}", listed(&names)))?;
        let found = choices.iter().find(|(name, _)| *name == text.as_str());
        if found.is_none() {
            let message = format!("\"{}\" cannot be \"{}\"", field.key, text.as_str());
            self.problem(Problem::new(text.whole(), message).suggest_from(
                text.as_str(),
                "choices",
                names,
            ));
        }
        found.map(|(_, value)| *value)
    }

    /// A problem with a word that is none of the known ones.
    pub(super) fn unknown<'n>(
        &self,
        word: &Text,
        what: &str,
        all: &str,
        known: impl IntoIterator<Item = &'n str>,
    ) -> Problem {
        let message = format!("unknown {what} \"{}\"", word.as_str());
        Problem::new(word.whole(), message).suggest_from(word.as_str(), all, known)
    }

    /// A whole number within bounds; a string may stand for it.
    pub(super) fn count(&mut self, field: Field<'_>, bounds: RangeInclusive<u64>) -> Option<u64> {
        let expected = format!(
            "a whole number from {} to {}",
            grouped(*bounds.start()),
            grouped(*bounds.end())
        );
        let count = match field.value.get_ref() {
            DeValue::Integer(number) => {
                let read = i128::from_str_radix(number.as_str(), number.radix());
                read.ok().and_then(|number| u64::try_from(number).ok())
            }
            DeValue::String(_) => {
                let text = self.text(field, &expected)?;
                match units::parse_count(text.as_str()) {
                    Ok(count) if bounds.contains(&count) => return Some(count),
                    _ => {
                        let found = text.as_str();
                        let message =
                            format!("\"{}\" must be {expected}, found \"{found}\"", field.key);
                        return self.refuse(Problem::new(text.whole(), message));
                    }
                }
            }
            _ => None,
        };
        match count.filter(|count| bounds.contains(count)) {
            Some(count) => Some(count),
            None => self.mismatch(field, &expected),
        }
    }

    /// A number that fits; a string may stand for it.
    pub(super) fn number(
        &mut self,
        field: Field<'_>,
        expected: &str,
        fits: impl Fn(f64) -> bool,
    ) -> Option<f64> {
        let number = match field.value.get_ref() {
            DeValue::Integer(number) => number.as_str().parse::<f64>().ok(),
            DeValue::Float(number) => number.as_str().parse().ok(),
            DeValue::String(_) => units::parse_number(self.text(field, expected)?.as_str()).ok(),
            _ => None,
        };
        let number = number.filter(|number| fits(*number));
        number.or_else(|| self.mismatch(field, expected))
    }

    /// `true` or `false`.
    pub(super) fn boolean(&mut self, field: Field<'_>) -> Option<bool> {
        match field.value.get_ref() {
            DeValue::Boolean(value) => Some(*value),
            _ => self.mismatch(field, "true or false"),
        }
    }

    /// A length of time within bounds.
    pub(super) fn duration(
        &mut self,
        field: Field<'_>,
        bounds: RangeInclusive<Duration>,
    ) -> Option<Duration> {
        let time = self.quantity(
            field,
            "a length of time such as \"30s\"",
            units::parse_duration,
        )?;
        if !bounds.contains(&time) {
            let message = format!(
                "\"{}\" must be from {} to {}, found {}",
                field.key,
                units::write_duration(*bounds.start()),
                units::write_duration(*bounds.end()),
                units::write_duration(time),
            );
            return self.refuse(Problem::new(field.span(), message));
        }
        Some(time)
    }

    /// A quantity that is written as a string with a unit.
    pub(super) fn quantity<T>(
        &mut self,
        field: Field<'_>,
        expected: &str,
        read: impl Fn(&str) -> Result<T, UnitError>,
    ) -> Option<T> {
        let text = self.text(field, expected)?;
        self.read(&text, read)
    }

    /// A rate, or what may stand in its place: a string, or a number that stands for so many
    /// a second.
    pub(super) fn rate<T>(
        &mut self,
        field: Field<'_>,
        expected: &str,
        read: impl Fn(&str) -> Result<T, UnitError>,
    ) -> Option<T> {
        let text = self.text_or_number(field, expected)?;
        self.read(&text, read)
    }

    /// A string with constants filled in, or the digits of a decimal number.
    pub(super) fn text_or_number(&mut self, field: Field<'_>, expected: &str) -> Option<Text> {
        match field.value.get_ref() {
            DeValue::Integer(number) if number.radix() == 10 => {
                Some(Text::at(number.as_str(), field.span()))
            }
            DeValue::Float(number) => Some(Text::at(number.as_str(), field.span())),
            _ => self.text(field, expected),
        }
    }

    /// What a text means; what is wrong with it becomes a problem at its place.
    pub(super) fn read<T>(
        &mut self,
        text: &Text,
        read: impl Fn(&str) -> Result<T, UnitError>,
    ) -> Option<T> {
        match read(text.as_str()) {
            Ok(value) => Some(value),
            Err(error) => {
                let problem = Problem::new(text.span(error.at), error.message);
                self.refuse(problem.suggest_if(error.suggestion))
            }
        }
    }

    /// The items of a list.
    pub(super) fn list<'t>(&mut self, field: Field<'t>, expected: &str) -> Option<Vec<Field<'t>>> {
        match field.value.get_ref() {
            DeValue::Array(items) if items.len() > MOST_ITEMS => {
                let message = format!("\"{}\" has more than {MOST_ITEMS} items", field.key);
                self.refuse(Problem::new(field.span(), message))
            }
            DeValue::Array(items) => Some(
                items
                    .iter()
                    .map(|value| Field {
                        key: field.key,
                        value,
                    })
                    .collect(),
            ),
            _ => self.mismatch(field, expected),
        }
    }

    /// A list of strings with constants filled in; empty strings are problems.
    pub(super) fn lines(&mut self, field: Field<'_>, expected: &str) -> Option<Vec<String>> {
        let items = self.list(field, expected)?;
        all(items.into_iter().map(|item| self.line(item, "a string")))
    }

    /// A name that other parts of the file can use.
    pub(super) fn name(&mut self, field: Field<'_>) -> Option<String> {
        let text = self.text(field, "a name")?;
        match name_problem(text.as_str()) {
            None => Some(text.as_str().to_owned()),
            Some(problem) => self.refuse(Problem::new(field.span(), problem)),
        }
    }
}

/// What was read of each, if all of it was good: what is wrong does not hide what follows.
pub(super) fn all<T, C: FromIterator<T>>(read: impl Iterator<Item = Option<T>>) -> Option<C> {
    let read: Vec<Option<T>> = read.collect();
    read.into_iter().collect()
}

/// Why a text cannot be a name.
pub(super) fn name_problem(text: &str) -> Option<String> {
    let why = if text.len() > LONGEST_NAME {
        format!("it has more than {LONGEST_NAME} characters")
    } else if !text.starts_with(|c: char| c.is_ascii_alphabetic()) {
        "a name begins with a letter from a to z".to_owned()
    } else {
        let wrong = match text.chars().find(|&c| !in_name(c))? {
            ' ' => "a space".to_owned(),
            wrong => wrong.escape_debug().to_string(),
        };
        format!("{wrong} cannot stand in a name, only letters, digits, - and _")
    };
    Some(format!("\"{text}\" is no name: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert_eq!(name_problem("cell-1_a"), None);
        for text in ["", "1a", "a b", "a.b", "é", &"a".repeat(65)] {
            assert!(name_problem(text).is_some(), "{text}");
        }
    }
}
