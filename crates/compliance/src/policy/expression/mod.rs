//! Computed values: a small language without loops, input or output, of which every evaluation
//! ends within a number of steps and bytes.
//!
//! | Part | Written as |
//! |---|---|
//! | texts, numbers, truth | `"text"`, `'text'`, `12`, `true`, `false` |
//! | lists | `["a", "b"]`, `list[0]` |
//! | variables | `${rudder.node.hostname}`, `${node.properties[a]}`, with its type in JSON |
//! | operators | `+ - * / %`, `== != < <= > >=`, `&&`, `||`, `!`, `condition ? a : b` |
//! | functions | `upper(text)` and those of [`functions`] |

mod evaluate;
pub mod functions;
mod parse;

#[cfg(test)]
mod tests;

pub use evaluate::{BYTES, EvaluateError, STEPS};

use regex::Regex;

use super::template::Token;
use functions::Function;

/// Longest expression, in bytes.
pub const SOURCE_BYTES: usize = 16 * 1024;
/// Deepest nesting of an expression.
pub const DEPTH: usize = 64;
/// Most operators of an expression: one after the other they are as deep as brackets.
pub const OPERATORS: usize = 500;

/// An expression, read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Expression {
    root: Node,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Node {
    Text(String),
    Integer(i64),
    Boolean(bool),
    /// A text with variables; of one variable its value.
    Variable(Vec<Token>),
    List(Vec<Node>),
    Index(Box<[Node; 2]>),
    Not(Box<Node>),
    Negative(Box<Node>),
    Binary(Operator, Box<[Node; 2]>),
    And(Box<[Node; 2]>),
    Or(Box<[Node; 2]>),
    /// Condition, then, else.
    Choice(Box<[Node; 3]>),
    Matches(Box<Node>, Pattern),
    Call(Function, Vec<Node>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// A regular expression, compiled once for all nodes.
#[derive(Debug, Clone)]
struct Pattern(Regex);

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl Eq for Pattern {}

impl std::hash::Hash for Pattern {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.as_str().hash(state);
    }
}

impl Expression {
    /// Gives every variable of it to `seen`.
    pub fn variables(&self, seen: &mut dyn FnMut(&Token)) {
        self.root.variables(seen);
    }
}

impl Node {
    fn variables(&self, seen: &mut dyn FnMut(&Token)) {
        match self {
            Self::Text(_) | Self::Integer(_) | Self::Boolean(_) => {}
            Self::Variable(tokens) => tokens.iter().for_each(seen),
            Self::List(nodes) | Self::Call(_, nodes) => {
                nodes.iter().for_each(|node| node.variables(seen));
            }
            Self::Index(nodes) | Self::Binary(_, nodes) | Self::And(nodes) | Self::Or(nodes) => {
                nodes.iter().for_each(|node| node.variables(seen));
            }
            Self::Choice(nodes) => nodes.iter().for_each(|node| node.variables(seen)),
            Self::Not(node) | Self::Negative(node) | Self::Matches(node, _) => {
                node.variables(seen);
            }
        }
    }
}
