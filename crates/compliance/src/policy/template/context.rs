//! Putting values in the place of variables.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::super::expression::EvaluateError;
use super::super::inheritance::{Inherited, Properties};
use super::{DEPTH, EXPANDED_BYTES, NodeFact, Substitutions, TemplateError, Token, parse};
use crate::agent::condition::canonify;
use crate::model::mode::GlobalPolicyMode;
use crate::model::node::Node;
use crate::model::property::{self, text_of};

/// A variable that has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExpandError {
    /// The node has no such property.
    #[error(
        "there is no property {0}; set it on the node, a group or as a parameter, or give a default"
    )]
    NoProperty(String),
    /// There is no such parameter.
    #[error("there is no global parameter {0}")]
    NoParameter(String),
    /// Groups of the node disagree.
    #[error(
        "the property \"{0}\" has different values in the groups {1}, of which none inherits \
         from another; let one group's query name the others, or set it on the node"
    )]
    Conflict(String, String),
    /// Groups inherit from each other in a circle.
    #[error(
        "the property \"{0}\" has no value: the groups {1} name each other in a circle or in \
         contradictory orders"
    )]
    Circle(String, String),
    /// Its policy server is not known.
    #[error("the node's policy server \"{0}\" is not known")]
    NoServer(String),
    /// Values that name each other.
    #[error("values name other values more than {DEPTH} deep; does \"{0}\" name itself?")]
    Depth(String),
    /// More than fits.
    #[error("the expanded text is longer than {EXPANDED_BYTES} bytes")]
    Length,
    /// Too many variables.
    #[error("the text and the values that it names have more than {STEPS} variables")]
    Steps,
    /// A value of a property is no text with variables.
    #[error("the value of \"{0}\" cannot be read: {1}")]
    Value(String, TemplateError),
    /// A computed value has no result.
    #[error("the computed value has no result: {0}")]
    Evaluate(#[from] Box<EvaluateError>),
}

/// What variables stand for on one node.
#[derive(Debug, Clone, Copy)]
pub struct NodeContext<'a> {
    /// The node.
    pub node: &'a Node,
    /// Its policy server, if it is known.
    pub server: Option<&'a Node>,
    /// The mode of all nodes.
    pub global_mode: GlobalPolicyMode,
    /// What it inherits.
    pub inherited: &'a Properties,
    /// Its own properties, laid over what it inherits.
    pub own: &'a Properties,
    /// Global parameters.
    pub parameters: &'a Properties,
}

impl NodeContext<'_> {
    /// The JSON of all properties that have a value on the node. One without may be of no use to
    /// who reads this: it is left out.
    pub fn properties(&self) -> String {
        let steps = Cell::new(0);
        let context = Context::new(*self, &steps);
        let names: BTreeSet<&String> = self.own.keys().chain(self.inherited.keys()).collect();
        let values = names.into_iter().filter_map(|name| {
            // Each has the bounds of a text of its own.
            steps.set(0);
            let path: [Arc<str>; 1] = [name.as_str().into()];
            let value = context.property(&path).ok()?;
            Some((name.clone(), value.into_owned()))
        });
        Value::Object(values.collect()).to_string()
    }
}

/// Most variables that one text may need, those within values of others too.
const STEPS: u32 = 100_000;

/// A place where variables are expanded.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    node: NodeContext<'a>,
    depth: usize,
    steps: &'a Cell<u32>,
}

impl<'a> Context<'a> {
    /// That of a node; `steps` counts what one text took.
    pub fn new(node: NodeContext<'a>, steps: &'a Cell<u32>) -> Self {
        Self {
            node,
            depth: 0,
            steps,
        }
    }

    /// Adds the expanded text to `out`.
    ///
    /// # Errors
    /// The variable that has no value, and why; a text that becomes too long.
    pub fn expand(&self, tokens: &[Token], out: &mut String) -> Result<(), ExpandError> {
        if self.depth == 0 {
            self.steps.set(0);
        }
        let start = out.len();
        self.expand_from(start, tokens, out)
    }

    fn expand_from(
        &self,
        start: usize,
        tokens: &[Token],
        out: &mut String,
    ) -> Result<(), ExpandError> {
        for token in tokens {
            self.steps.set(self.steps.get() + 1);
            if self.steps.get() > STEPS {
                return Err(ExpandError::Steps);
            }
            match token {
                Token::Text(text) => out.push_str(text),
                Token::Fact(fact) => out.push_str(self.fact(*fact)?),
                Token::Property { path, default } => match (self.property(path), default) {
                    (Ok(value), _) => out.push_str(&text_of(&value)),
                    (Err(ExpandError::NoProperty(_)), Some(tokens)) => {
                        self.expand_from(start, tokens, out)?;
                    }
                    (Err(error), _) => return Err(error),
                },
                Token::Parameter(path) => {
                    let value = self.parameter(path)?;
                    out.push_str(&text_of(&value));
                }
                Token::Expression(expression) => {
                    out.push_str(&text_of(&expression.evaluate(self)?));
                }
                Token::Name(tokens) => {
                    let from = out.len();
                    self.expand_from(start, tokens, out)?;
                    let name = canonify(&out[from..]);
                    out.truncate(from);
                    out.push_str(&name);
                }
            }
            if out.len() - start > EXPANDED_BYTES {
                return Err(ExpandError::Length);
            }
        }
        Ok(())
    }

    /// The value that one variable stands for; a text with variables is a text.
    ///
    /// # Errors
    /// As [`Context::expand`].
    pub fn value(&self, tokens: &[Token]) -> Result<Cow<'a, Value>, ExpandError> {
        match tokens {
            [Token::Property { path, default }] => match (self.property(path), default) {
                (Err(ExpandError::NoProperty(_)), Some(tokens)) => self.value(tokens),
                (found, _) => found,
            },
            [Token::Parameter(path)] => self.parameter(path),
            tokens => {
                let mut text = String::new();
                // Its variables count with those around it.
                self.expand_from(0, tokens, &mut text)?;
                Ok(Cow::Owned(Value::String(text)))
            }
        }
    }

    fn fact(&self, fact: NodeFact) -> Result<&'a str, ExpandError> {
        let node = self.node.node;
        let server = || {
            let unknown = || ExpandError::NoServer(node.policy_server_id.clone());
            self.node.server.ok_or_else(unknown)
        };
        Ok(match fact {
            NodeFact::Id => &node.id,
            NodeFact::Hostname => &node.hostname,
            NodeFact::Admin => &node.agent.owner,
            NodeFact::State => node.state.name(),
            NodeFact::PolicyMode => {
                let global = self.node.global_mode;
                let own = node.policy_mode.filter(|_| global.overridable);
                own.unwrap_or(global.mode).name()
            }
            NodeFact::ServerId => &node.policy_server_id,
            NodeFact::ServerHostname => &server()?.hostname,
            NodeFact::ServerAdmin => &server()?.agent.owner,
        })
    }

    fn property(&self, path: &[Arc<str>]) -> Result<Cow<'a, Value>, ExpandError> {
        let name = path.first().map(|name| &**name).unwrap_or_default();
        let layers = [self.node.own, self.node.inherited];
        let found = layers.iter().find_map(|layer| layer.get(name));
        let value = match found {
            Some(Inherited::Value(value)) => value,
            Some(Inherited::Conflict(groups)) => {
                return Err(ExpandError::Conflict(name.to_owned(), groups.join(", ")));
            }
            Some(Inherited::Circle(groups)) => {
                return Err(ExpandError::Circle(name.to_owned(), groups.join(", ")));
            }
            None => return Err(ExpandError::NoProperty(written(path))),
        };
        let within = within(value, path);
        let value = within.ok_or_else(|| ExpandError::NoProperty(written(path)))?;
        self.resolved(name, value)
    }

    fn parameter(&self, path: &[Arc<str>]) -> Result<Cow<'a, Value>, ExpandError> {
        let name = path.first().map(|name| &**name).unwrap_or_default();
        match self.node.parameters.get(name) {
            Some(Inherited::Value(value)) => match within(value, path) {
                Some(value) => self.resolved(name, value),
                None => Err(ExpandError::NoParameter(written(path))),
            },
            _ => Err(ExpandError::NoParameter(written(path))),
        }
    }

    /// A value with the variables in its texts expanded.
    fn resolved(&self, name: &str, value: &'a Value) -> Result<Cow<'a, Value>, ExpandError> {
        if !has_variable(value) {
            return Ok(Cow::Borrowed(value));
        }
        if self.depth >= DEPTH {
            return Err(ExpandError::Depth(name.to_owned()));
        }
        let deeper = Self {
            depth: self.depth + 1,
            ..*self
        };
        let mut left = EXPANDED_BYTES;
        deeper.rebuilt(name, value, &mut left).map(Cow::Owned)
    }

    fn rebuilt(&self, name: &str, value: &Value, left: &mut usize) -> Result<Value, ExpandError> {
        Ok(match value {
            Value::String(text) => {
                let tokens = parse(text, &Substitutions::new())
                    .map_err(|error| ExpandError::Value(name.to_owned(), error))?;
                let mut out = String::new();
                self.expand(&tokens, &mut out)?;
                *left = left.checked_sub(out.len()).ok_or(ExpandError::Length)?;
                Value::String(out)
            }
            Value::Array(list) => {
                let list = list.iter().map(|one| self.rebuilt(name, one, left));
                Value::Array(list.collect::<Result<_, _>>()?)
            }
            Value::Object(map) => {
                let map = map
                    .iter()
                    .map(|(key, one)| Ok((key.clone(), self.rebuilt(name, one, left)?)));
                Value::Object(map.collect::<Result<_, ExpandError>>()?)
            }
            other => other.clone(),
        })
    }
}

/// Does a text in the value hold a variable?
pub(in crate::policy) fn has_variable(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains("${") || text.starts_with(super::EXPRESSION_PREFIX),
        Value::Array(list) => list.iter().any(has_variable),
        Value::Object(map) => map.values().any(has_variable),
        _ => false,
    }
}

/// The part of a value that the keys after the name lead to; a number leads into a list.
fn within<'v>(value: &'v Value, path: &[Arc<str>]) -> Option<&'v Value> {
    let mut keys = path.iter().skip(1);
    keys.try_fold(value, |value, key| property::within(value, key))
}

fn written(path: &[Arc<str>]) -> String {
    path.iter().map(|key| format!("[{key}]")).collect()
}
