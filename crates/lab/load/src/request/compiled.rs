//! Templates and steps made ready to be written.

use std::io::Write as _;
use std::time::Duration;

use super::AnswerEnd;
use super::answer::{Check, Place};
use super::command::Command;
use super::composer::Needs;
use super::cookies::Cookies;
use super::field::{encode_value, may_be_value, write_link};
use super::statement::Statement;
use super::variable::Variable;

/// What the variables of one request depend on.
#[derive(Clone, Copy)]
pub(super) struct Context<'v> {
    pub(super) seed: u64,
    pub(super) arrival: u64,
    pub(super) values: &'v [Option<String>],
}

/// What may stand where a value is put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Escape {
    /// Anything: a body.
    None,
    /// A part of a path or query; other characters are percent-encoded.
    Path,
    /// A path of its own.
    Link,
    /// The value of a header field.
    Field,
}

#[derive(Debug, Clone)]
pub(super) enum Piece {
    Text(Vec<u8>),
    Variable {
        variable: Variable,
        /// Tells the variables of a mix apart.
        position: u64,
        escape: Escape,
    },
}

/// A template made ready.
#[derive(Debug, Clone, Default)]
pub(super) struct Template(Vec<Piece>);

impl Template {
    pub(super) fn text(text: impl Into<Vec<u8>>) -> Self {
        let mut template = Self::default();
        template.push(Piece::Text(text.into()));
        template
    }

    /// Adds a piece; neighbouring texts become one.
    pub(super) fn push(&mut self, piece: Piece) {
        match (self.0.last_mut(), piece) {
            (_, Piece::Text(text)) if text.is_empty() => {}
            (Some(Piece::Text(before)), Piece::Text(text)) => before.extend(text),
            (_, piece) => self.0.push(piece),
        }
    }

    pub(super) fn append(&mut self, other: &Self) {
        for piece in &other.0 {
            self.push(piece.clone());
        }
    }

    pub(super) fn push_text(&mut self, text: &str) {
        self.push(Piece::Text(text.as_bytes().to_vec()));
    }

    /// What is written for every arrival, when that is always the same.
    pub(super) fn constant(&self) -> Option<&[u8]> {
        match self.0.as_slice() {
            [] => Some(b""),
            [Piece::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// Appends the text for this context.
    ///
    /// # Errors
    /// A value from a table or an answer that may not stand here; in words.
    pub(super) fn write(&self, context: Context<'_>, out: &mut Vec<u8>) -> Result<(), String> {
        let Context {
            seed,
            arrival,
            values,
        } = context;
        for piece in &self.0 {
            let (variable, position, escape) = match piece {
                Piece::Text(text) => {
                    out.extend_from_slice(text);
                    continue;
                }
                Piece::Variable {
                    variable,
                    position,
                    escape,
                } => (variable, *position, *escape),
            };
            match (variable.text(seed, arrival, values), escape) {
                (None, _) if matches!(variable, Variable::Taken(_)) => {
                    return Err("a value was not taken before it is used".to_owned());
                }
                (None, _) => variable.write_made(seed, arrival, position, out),
                (Some(value), Escape::None) => out.extend_from_slice(value.as_bytes()),
                (Some(value), Escape::Path) => encode_value(value, out),
                (Some(value), Escape::Link) if write_link(value, out) => {}
                (Some(value), Escape::Field) if may_be_value(value) => {
                    out.extend_from_slice(value.as_bytes());
                }
                (Some(value), Escape::Link) => {
                    let start: String = value.chars().take(40).collect();
                    return Err(format!(
                        "a path begins with /, the value is \"{}\"",
                        start.escape_debug()
                    ));
                }
                (Some(_), Escape::Field) => {
                    return Err(
                        "a value with a line break cannot stand in a header field".to_owned()
                    );
                }
            }
        }
        Ok(())
    }
}

/// A step made ready.
#[derive(Debug)]
pub(super) struct Compiled {
    pub(super) name: String,
    pub(super) method: String,
    pub(super) path: Template,
    pub(super) authority: Template,
    /// Other header fields, names in lower case.
    pub(super) fields: Vec<(String, Template)>,
    pub(super) body: Template,
    /// The command, instead of a body (Redis).
    pub(super) command: Option<Command>,
    /// The statement, instead of a body (PostgreSQL).
    pub(super) statement: Option<Statement>,
    /// The body was given as text.
    pub(super) text: bool,
    /// HTTP/1.1: the first line and all fields but `Cookie` and `Content-Length`.
    pub(super) head: Option<Template>,
    /// `Content-Length` is sent.
    pub(super) sized: bool,
    /// Cookies of the journey may be sent.
    pub(super) cookies: bool,
    /// All bytes, when they are always the same.
    pub(super) whole: Option<Vec<u8>>,
    pub(super) needs: Needs,
    pub(super) think: Duration,
    pub(super) answer: AnswerEnd,
    /// Each with the number of the refusal when it does not hold.
    pub(super) checks: Vec<(Check, usize)>,
    /// Each with the number of its value, and of the refusal when it is not found.
    pub(super) takes: Vec<(Place, usize, usize)>,
    /// The refusal when a body is too long to be searched.
    pub(super) too_long: usize,
    /// The next step, unless it is the last of its journey.
    pub(super) has_next: bool,
}

impl Compiled {
    /// Appends the bytes of the request: HTTP/1.1, or the message alone where there is
    /// no such head.
    pub(super) fn write(
        &self,
        context: Context<'_>,
        cookies: Option<&Cookies>,
        out: &mut Vec<u8>,
    ) -> Result<(), String> {
        let start = out.len();
        let written = self.write_from(start, context, cookies, out);
        if written.is_err() {
            out.truncate(start);
        }
        written
    }

    fn write_from(
        &self,
        start: usize,
        context: Context<'_>,
        cookies: Option<&Cookies>,
        out: &mut Vec<u8>,
    ) -> Result<(), String> {
        // The head names the length of the body, so the body is written first and then
        // changes places with the head.
        if let Some(command) = &self.command {
            return command.write(context, out);
        }
        self.body.write(context, out)?;
        let Some(head) = &self.head else {
            return Ok(());
        };
        let length = out.len() - start;
        head.write(context, out)?;
        if let Some(cookies) = cookies {
            out.extend_from_slice(b"Cookie: ");
            cookies.write(out);
            out.extend_from_slice(b"\r\n");
        }
        if self.sized {
            // Writing into a vector cannot fail.
            let _ = write!(out, "Content-Length: {length}\r\n");
        }
        out.extend_from_slice(b"\r\n");
        out[start..].rotate_left(length);
        Ok(())
    }
}
