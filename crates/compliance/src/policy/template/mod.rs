//! Text with variables: `${rudder.node.hostname}`, `${node.properties[a][b] | default = "x"}`,
//! `${rudder.param.name}`, and after `eval:` an expression. Variables that are not the server's
//! stay as they are, for the agent.

mod context;
mod parse;

#[cfg(test)]
pub(in crate::policy) mod tests;

use std::sync::Arc;

pub use context::{Context, ExpandError, NodeContext};
pub(super) use parse::variable_at;
pub use parse::{Substitutions, TemplateError, parse};

use super::expression::Expression;
use crate::agent::PROPERTY;

/// Longest text with variables, in bytes.
pub const SOURCE_BYTES: usize = 1 << 20;
/// Longest text that variables are expanded to, in bytes.
pub const EXPANDED_BYTES: usize = 1 << 20;
/// Deepest nesting: of defaults in a text, and of values that name other values.
pub const DEPTH: usize = 16;
/// What a computed value begins with.
pub const EXPRESSION_PREFIX: &str = "eval:";

/// A fact of a node that a variable names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NodeFact {
    /// `id`
    Id,
    /// `hostname`
    Hostname,
    /// `admin`: the account that its agent runs as.
    Admin,
    /// `state`
    State,
    /// `policymode`: its own or the global one.
    PolicyMode,
    /// `policyserver.id`
    ServerId,
    /// `policyserver.hostname`
    ServerHostname,
    /// `policyserver.admin`
    ServerAdmin,
}

/// A part of a text with variables.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Token {
    /// Text, among it variables for the agent.
    Text(Arc<str>),
    /// A fact of the node.
    Fact(NodeFact),
    /// A property: its name, then keys within it.
    Property {
        /// Name and keys.
        path: Arc<[Arc<str>]>,
        /// What stands for it if it is missing.
        default: Option<Arc<[Token]>>,
    },
    /// A global parameter: its name, then keys within it.
    Parameter(Arc<[Arc<str>]>),
    /// A computed value.
    Expression(Arc<Expression>),
    /// What these stand for, written as a part of the name of a condition.
    Name(Arc<[Token]>),
}

/// A text with variables, read.
pub type Template = Vec<Token>;

/// What a text names, so that it is known whom a change affects.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct References {
    /// Names of properties.
    pub properties: std::collections::BTreeSet<Arc<str>>,
    /// Names of global parameters.
    pub parameters: std::collections::BTreeSet<Arc<str>>,
    /// Whatever properties there are: what only the agent reads may name any of them.
    pub all_properties: bool,
}

impl References {
    /// Adds what these tokens name.
    pub fn add(&mut self, tokens: &[Token]) {
        for token in tokens {
            match token {
                // One that is left to the agent: which one, only the agent reads.
                Token::Text(text) => self.all_properties |= text.contains(PROPERTY),
                Token::Fact(_) => {}
                Token::Property { path, default } => {
                    self.properties.extend(path.first().cloned());
                    self.add(default.as_deref().unwrap_or_default());
                }
                Token::Parameter(path) => self.parameters.extend(path.first().cloned()),
                Token::Name(tokens) => self.add(tokens),
                Token::Expression(expression) => {
                    expression.variables(&mut |token| self.add(std::slice::from_ref(token)));
                }
            }
        }
    }
}
