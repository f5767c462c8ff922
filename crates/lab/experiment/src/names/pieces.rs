//! Strings as they are written: literal text, names in braces, variables.

use document::{Problem, Span};

use super::Place;
use crate::text::Text;

/// A part of a string as it is written.
pub(super) enum Piece {
    Literal(Text),
    /// A name in braces; `span` includes the braces.
    Name {
        name: Text,
        span: Span,
    },
    /// What stands between the braces of a variable.
    Variable(Text),
}

/// Splits a string at its braces; stops at the first problem.
pub(super) fn pieces(text: &Text, place: Place) -> impl Iterator<Item = Result<Piece, Problem>> {
    let mut at = 0;
    let mut braces = Braces::default();
    std::iter::from_fn(move || {
        let rest = text.as_str().get(at..).filter(|rest| !rest.is_empty())?;
        let (piece, used) = match place {
            Place::Request => braces.piece(text, at, rest),
            _ => piece(text, at, rest),
        };
        at = if piece.is_ok() { at + used } else { text.len() };
        Some(piece)
    })
}

fn piece(text: &Text, at: usize, rest: &str) -> (Result<Piece, Problem>, usize) {
    let doubled = |brace: &str| {
        let mut literal = text.slice(at..at);
        literal.push_at(brace, &text.span(at..at + 2));
        (Ok(Piece::Literal(literal)), 2)
    };
    let stray = |message: &str, brace: char| {
        let problem = Problem::new(text.span(at..at + 1), message).help(format!(
            "write {brace}{brace} for a brace that is no reference"
        ));
        (Err(problem), 1)
    };
    if rest.starts_with("{{") {
        return doubled("{");
    }
    if rest.starts_with("}}") {
        return doubled("}");
    }
    if rest.starts_with('}') {
        return stray("this brace closes nothing", '}');
    }
    if let Some(inner) = rest.strip_prefix('{') {
        let end = match is_of_copies(inner) {
            true => closing(inner),
            false => inner
                .find(['{', '}'])
                .filter(|&end| inner[end..].starts_with('}')),
        };
        let Some(length) = end else {
            return stray("this brace is not closed", '{');
        };
        let used = length + 2;
        let name = text.slice(at + 1..at + 1 + length);
        let is_name = |name: &str| !name.is_empty() && name.chars().all(in_reference);
        if !is_name(name.as_str()) && !is_of_copies(inner) {
            return stray("there is no name in these braces", '{');
        }
        return (
            Ok(Piece::Name {
                name,
                span: text.span(at..at + used),
            }),
            used,
        );
    }
    let used = rest.find(['{', '}']).unwrap_or(rest.len());
    (Ok(Piece::Literal(text.slice(at..at + used))), used)
}

/// Braces of the language of requests. A brace begins a name only before a letter or
/// `_`, so JSON needs no escapes; `{{` stands for one brace, and so does the `}}` that
/// closes it.
#[derive(Debug, Default)]
pub(super) struct Braces {
    /// Those that are open; whether each is written twice.
    open: Vec<bool>,
}

impl Braces {
    /// How a character of plain text is written, if not as itself.
    pub(super) fn write(&mut self, c: char) -> Option<&'static str> {
        match c {
            '{' => {
                self.open.push(true);
                Some("{{")
            }
            '}' => self.open.pop().map(|_| "}}"),
            _ => None,
        }
    }

    /// The next part of a text, and its length.
    fn piece(&mut self, text: &Text, at: usize, rest: &str) -> (Result<Piece, Problem>, usize) {
        let literal = |length: usize| (Ok(Piece::Literal(text.slice(at..at + length))), length);
        let doubled = |brace: &str| {
            let mut literal = text.slice(at..at);
            literal.push_at(brace, &text.span(at..at + 2));
            (Ok(Piece::Literal(literal)), 2)
        };
        let begins_a_name = |c: char| c.is_alphabetic() || c == '_';
        match (rest.strip_prefix('{'), rest.strip_prefix('}')) {
            (Some(inner), _) if inner.starts_with('{') => {
                self.open.push(true);
                doubled("{")
            }
            (Some(inner), _) if inner.starts_with(begins_a_name) => {
                name_or_variable(text, at, inner)
            }
            (Some(_), _) => {
                self.open.push(false);
                literal(1)
            }
            (_, Some(inner)) => match self.open.pop() {
                Some(true) if inner.starts_with('}') => doubled("}"),
                _ => literal(1),
            },
            _ => literal(rest.find(['{', '}']).unwrap_or(rest.len())),
        }
    }
}

/// What begins with a brace at `at`, which `inner` follows. Braces within a variable
/// belong to constants.
fn name_or_variable(text: &Text, at: usize, inner: &str) -> (Result<Piece, Problem>, usize) {
    let Some(length) = closing(inner) else {
        let problem = Problem::new(text.span(at..at + 1), "this brace is not closed")
            .help("write {{ for a brace that is sent");
        return (Err(problem), 1);
    };
    let name = text.slice(at + 1..at + 1 + length);
    let used = length + 2;
    let is_name = name.as_str().chars().all(in_reference);
    let piece = match is_name || is_of_copies(inner) {
        true => Piece::Name {
            name,
            span: text.span(at..at + used),
        },
        false => Piece::Variable(name),
    };
    (Ok(piece), used)
}

fn in_reference(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.')
}

/// Where the brace stands that closes the one before `inner`, which may hold pairs of them.
fn closing(inner: &str) -> Option<usize> {
    let mut depth = 0_usize;
    inner.char_indices().find_map(|(at, c)| {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => return Some(at),
            '}' => depth -= 1,
            _ => {}
        }
        None
    })
}

/// Whether what follows a brace is about copies of a system: a name, then a bracket.
fn is_of_copies(inner: &str) -> bool {
    let rest = inner.trim_start_matches(in_reference);
    rest.len() < inner.len() && rest.starts_with('[')
}
