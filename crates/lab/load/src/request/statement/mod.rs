//! Statements of SQL whose variables are parameters.
//!
//! A variable becomes `$1`, `$2`, … of a statement that each connection prepares once, so its value
//! can neither end a text nor add to the statement.

use units::UnitError;

use super::compile::Compiler;
use super::compiled::{Context, Escape, Template};
use super::error::RequestError;
use super::template::{self, Part};
use super::{Body, Step};

/// Most parameters of a statement: their number has 16 bits.
const MOST_PARAMETERS: usize = 65_535;

/// A statement made ready.
#[derive(Debug)]
pub(super) struct Statement {
    pub(super) sql: String,
    pub(super) parameters: Vec<Template>,
}

/// A statement with the values of one request.
#[derive(Clone, Copy)]
pub struct Bound<'c> {
    pub(super) statement: &'c Statement,
    pub(super) context: Context<'c>,
}

impl<'c> Bound<'c> {
    /// The text, with `$1` for the first parameter.
    pub fn sql(&self) -> &'c str {
        &self.statement.sql
    }

    /// How many parameters it has.
    pub fn parameters(&self) -> usize {
        self.statement.parameters.len()
    }

    /// Appends the value of a parameter, counted from 0, as text.
    ///
    /// # Errors
    /// A value of an earlier answer that was not taken; in words.
    pub fn write(&self, parameter: usize, out: &mut Vec<u8>) -> Result<(), String> {
        match self.statement.parameters.get(parameter) {
            Some(template) => template.write(self.context, out),
            None => Ok(()),
        }
    }
}

impl Compiler<'_> {
    /// The statement of a step.
    pub(super) fn statement(&mut self, step: &Step) -> Result<Statement, RequestError> {
        let place = || format!("step \"{}\", sql", step.name);
        let text = match &step.body {
            Body::Template(text) => text,
            Body::Empty => "",
            Body::Bytes(_) => {
                let error = UnitError::new(0..0, "a statement of SQL is text, not a file");
                return Err(RequestError::new(place(), "", error));
            }
        };
        let statement = self.parameters(text);
        statement.map_err(|fault| RequestError::new(place(), text, fault))
    }

    fn parameters(&mut self, text: &str) -> Result<Statement, UnitError> {
        let mut statement = Statement {
            sql: String::new(),
            parameters: Vec::new(),
        };
        // The kind of quote that is open; a doubled one closes it and opens it again.
        let mut quote = None;
        for part in template::split(text)? {
            match part {
                Part::Text(literal, _) => {
                    for letter in literal.chars().filter(|c| matches!(c, '\'' | '"')) {
                        quote = match quote {
                            None => Some(letter),
                            Some(open) if open == letter => None,
                            other => other,
                        };
                    }
                    statement.sql += &literal;
                }
                Part::Variable(at) => {
                    if quote.is_some() {
                        let message = "a variable is a parameter and stands outside quotes: \
                                       write 'key:' || {seq}";
                        return Err(UnitError::new(at, message));
                    }
                    let mut template = Template::default();
                    template.push(self.variable(text, at, Escape::None)?);
                    statement.parameters.push(template);
                    statement.sql += &format!("${}", statement.parameters.len());
                }
            }
        }
        let all = 0..text.len();
        if statement.sql.trim().is_empty() {
            let message = "a request is a statement of SQL, such as SELECT 1";
            return Err(UnitError::new(all, message));
        }
        if statement.sql.contains('\0') {
            return Err(UnitError::new(all, "a statement has no zero bytes"));
        }
        if statement.parameters.len() > MOST_PARAMETERS {
            let message = format!("a statement has at most {MOST_PARAMETERS} variables");
            return Err(UnitError::new(all, message));
        }
        let own = |at: usize| text[at + 1..].starts_with(|c: char| c.is_ascii_digit());
        match text.match_indices('$').find(|(at, _)| own(*at)) {
            Some((at, _)) => {
                let message = "parameters are variables in braces, such as {uniform 1 1000}";
                Err(UnitError::new(at..at + 2, message))
            }
            None => Ok(statement),
        }
    }
}

#[cfg(test)]
mod tests;
