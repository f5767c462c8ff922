//! The page of error answers, for people in browsers (`html_error_template_file`): the part of
//! Go's `html/template` that such pages use.
//!
//! ```text
//! text ──tokens──▶ parse ──▶ Node ──▶ run, with what gorouter gives it ──▶ page
//! ```

mod parse;
mod run;
#[cfg(test)]
mod tests;
mod tokens;

use super::exchange::Exchange;
use super::reason::reason;
use run::{Data, Run};

/// A template. It knows `.Status`, `.StatusText`, `.Message` and `.Header`, the actions `if`,
/// `with`, `range`, `else`, `end` and comments, `{{-` and `-}}`, variables, and the functions
/// `eq`, `ne`, `lt`, `le`, `gt`, `ge`, `and`, `or`, `not`, `len` and `index`.
#[derive(Debug, Clone, PartialEq)]
pub struct ErrorTemplate(Vec<Node>);

/// A part of a template.
#[derive(Debug, Clone, PartialEq)]
enum Node {
    /// Written as it is.
    Text(String),
    /// `{{ value }}`, escaped.
    Print(Expr),
    /// `if`, and `with` if the value becomes the dot.
    If {
        value: Expr,
        /// A name for the value.
        name: Option<String>,
        becomes_dot: bool,
        then: Vec<Node>,
        otherwise: Vec<Node>,
    },
    /// `range`: once for each element, which becomes the dot.
    Range {
        over: Expr,
        /// Names for the element, and before it for its key.
        names: Vec<String>,
        each: Vec<Node>,
        otherwise: Vec<Node>,
    },
}

/// A value to be found when the page is written.
#[derive(Debug, Clone, PartialEq)]
enum Expr {
    /// `.`, `.Status`, `$name.X`
    Path(Base, Vec<String>),
    /// `.Header.Get "name"`
    Get(Box<Expr>, Box<Expr>),
    Text(String),
    Number(i64),
    Truth(bool),
    Call(Function, Vec<Expr>),
}

/// Where a path begins.
#[derive(Debug, Clone, PartialEq)]
enum Base {
    Dot,
    /// `$`: what the template was given.
    Root,
    Variable(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Function {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    And,
    Or,
    Not,
    Len,
    Index,
}

/// Why a template is of no use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ErrorTemplateError {
    /// Two braces open and none close.
    #[error("read the error template: found {{{{ in line {0} without }}}} behind it")]
    Open(usize),
    /// An action that is not understood.
    #[error(
        "read the error template: found {{{{ {found} }}}} in line {line}; expected .Status, \
         .StatusText, .Message, .Header.Get \"X-Cf-RouterError\", or if, with and range of them"
    )]
    Action {
        /// What stands between the braces.
        found: String,
        /// Its line.
        line: usize,
    },
    /// An `else` or `end` of nothing.
    #[error(
        "read the error template: found {{{{ {found} }}}} in line {line} without an if, with or range before it"
    )]
    Stray {
        /// What stands between the braces.
        found: String,
        /// Its line.
        line: usize,
    },
    /// An `if`, `with` or `range` that does not end.
    #[error(
        "read the error template: found {{{{ {found} }}}} in line {line} without its {{{{ end }}}}"
    )]
    Unended {
        /// What stands between the braces.
        found: String,
        /// Its line.
        line: usize,
    },
    /// Actions within each other without end.
    #[error("read the error template: actions in line {0} are more than {most} levels deep", most = parse::MOST_DEPTH)]
    Deep(usize),
}

impl ErrorTemplate {
    /// Reads a template.
    ///
    /// # Errors
    /// When it has an action that is not understood.
    pub fn parse(text: &str) -> Result<Self, ErrorTemplateError> {
        parse::parse(text).map(Self)
    }

    /// Appends the page.
    pub(super) fn write(
        &self,
        status: u16,
        message: &[u8],
        exchange: &Exchange,
        out: &mut Vec<u8>,
    ) {
        let data = Data {
            status,
            status_text: reason(status).unwrap_or_default(),
            message,
            router_error: exchange.router_error.as_bytes(),
        };
        Run::new(data).write(&self.0, out);
    }
}
