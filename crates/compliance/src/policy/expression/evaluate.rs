//! Evaluating expressions.

use std::cmp::Ordering;

use serde_json::Value;

use super::super::template::{Context, ExpandError};
use super::functions::{integer, wrong_kind};
use super::{Expression, Node, Operator};
use crate::model::property::text_of;

/// Most steps of one evaluation: values, operators and calls.
pub const STEPS: u32 = 5_000;
/// Most bytes that one evaluation makes in all.
pub const BYTES: usize = 1 << 20;

/// An expression without result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EvaluateError {
    /// A value of another kind.
    #[error("{what} needs {expected}, not {found}")]
    Kind {
        /// The operator or function.
        what: &'static str,
        /// The kind that it needs.
        expected: &'static str,
        /// The kind that it was given.
        found: &'static str,
    },
    /// A number beyond 64 bits.
    #[error("the number is beyond 64 bits")]
    Overflow,
    /// A division.
    #[error("a number is divided by zero")]
    DividedByZero,
    /// An entry that is not there.
    #[error("the list or object has no entry {0}")]
    NoEntry(String),
    /// Too long.
    #[error("it takes more than {STEPS} steps")]
    Steps,
    /// Too large.
    #[error("it makes more than {BYTES} bytes")]
    Bytes,
    /// A variable without value.
    #[error(transparent)]
    Variable(#[from] ExpandError),
}

impl Expression {
    /// Its value on a node.
    ///
    /// # Errors
    /// A value of a wrong kind, a variable without value, or a limit that is passed.
    pub fn evaluate(&self, context: &Context<'_>) -> Result<Value, Box<EvaluateError>> {
        let mut evaluation = Evaluation {
            context,
            steps: 0,
            bytes: 0,
        };
        evaluation.value(&self.root).map_err(Box::new)
    }
}

struct Evaluation<'c> {
    context: &'c Context<'c>,
    steps: u32,
    bytes: usize,
}

type Evaluated = Result<Value, EvaluateError>;

impl Evaluation<'_> {
    /// Counts what a value takes.
    fn count(&mut self, value: Value) -> Evaluated {
        self.bytes += size(&value);
        if self.bytes > BYTES {
            return Err(EvaluateError::Bytes);
        }
        Ok(value)
    }

    fn value(&mut self, node: &Node) -> Evaluated {
        self.steps += 1;
        if self.steps > STEPS {
            return Err(EvaluateError::Steps);
        }
        let value = match node {
            Node::Text(text) => text.as_str().into(),
            Node::Integer(number) => (*number).into(),
            Node::Boolean(truth) => (*truth).into(),
            Node::Variable(tokens) => self.context.value(tokens)?.into_owned(),
            Node::List(nodes) => Value::Array(self.values(nodes)?),
            Node::Index(pair) => self.entry(pair)?,
            Node::Not(node) => (!self.truth("!", node)?).into(),
            Node::Negative(node) => {
                let number = integer("-", &self.value(node)?)?;
                number.checked_neg().ok_or(EvaluateError::Overflow)?.into()
            }
            Node::And(pair) => (self.truth("&&", &pair[0])? && self.truth("&&", &pair[1])?).into(),
            Node::Or(pair) => (self.truth("||", &pair[0])? || self.truth("||", &pair[1])?).into(),
            Node::Choice(nodes) => {
                let chosen = usize::from(!self.truth("?", &nodes[0])?);
                return self.value(&nodes[1 + chosen]);
            }
            Node::Binary(operator, pair) => {
                let (left, right) = (self.value(&pair[0])?, self.value(&pair[1])?);
                binary(*operator, &left, &right)?
            }
            Node::Matches(node, pattern) => {
                let text = self.value(node)?;
                pattern.0.is_match(&text_of(&text)).into()
            }
            Node::Call(function, nodes) => {
                let values = self.values(nodes)?;
                function.call(&values, BYTES - self.bytes)?
            }
        };
        self.count(value)
    }

    fn values(&mut self, nodes: &[Node]) -> Result<Vec<Value>, EvaluateError> {
        nodes.iter().map(|node| self.value(node)).collect()
    }

    fn truth(&mut self, what: &'static str, node: &Node) -> Result<bool, EvaluateError> {
        match self.value(node)? {
            Value::Bool(truth) => Ok(truth),
            other => Err(wrong_kind(what, "true or false", &other)),
        }
    }

    fn entry(&mut self, [of, key]: &[Node; 2]) -> Evaluated {
        let (of, key) = (self.value(of)?, self.value(key)?);
        let found = match &of {
            Value::Array(list) => {
                let place = integer("[ ]", &key)?;
                usize::try_from(place).ok().and_then(|at| list.get(at))
            }
            Value::Object(map) => map.get(&*text_of(&key)),
            other => return Err(wrong_kind("[ ]", "a list or object", other)),
        };
        let missing = || EvaluateError::NoEntry(text_of(&key).into_owned());
        found.cloned().ok_or_else(missing)
    }
}

fn binary(operator: Operator, left: &Value, right: &Value) -> Evaluated {
    let both =
        |what: &'static str| Ok::<_, EvaluateError>((integer(what, left)?, integer(what, right)?));
    let arithmetic = |what, compute: fn(i64, i64) -> Option<i64>| -> Evaluated {
        let (left, right) = both(what)?;
        let value = compute(left, right).ok_or(EvaluateError::Overflow)?;
        Ok(Value::from(value))
    };
    let division = |what, compute: fn(i64, i64) -> Option<i64>| -> Evaluated {
        if both(what)?.1 == 0 {
            return Err(EvaluateError::DividedByZero);
        }
        arithmetic(what, compute)
    };
    match operator {
        Operator::Add => match (left, right) {
            (Value::Number(_), Value::Number(_)) => arithmetic("+", i64::checked_add),
            (Value::Array(one), Value::Array(other)) => {
                Ok(one.iter().chain(other).cloned().collect())
            }
            (Value::String(_), _) | (_, Value::String(_)) => {
                Ok(format!("{}{}", text_of(left), text_of(right)).into())
            }
            _ => Err(wrong_kind("+", "two numbers, two lists or a text", left)),
        },
        Operator::Subtract => arithmetic("-", i64::checked_sub),
        Operator::Multiply => arithmetic("*", i64::checked_mul),
        Operator::Divide => division("/", i64::checked_div),
        Operator::Remainder => division("%", i64::checked_rem),
        Operator::Equal => Ok((left == right).into()),
        Operator::NotEqual => Ok((left != right).into()),
        Operator::Less => Ok(compare("<", left, right)?.is_lt().into()),
        Operator::LessOrEqual => Ok(compare("<=", left, right)?.is_le().into()),
        Operator::Greater => Ok(compare(">", left, right)?.is_gt().into()),
        Operator::GreaterOrEqual => Ok(compare(">=", left, right)?.is_ge().into()),
    }
}

/// Numbers by size, texts by their letters.
fn compare(what: &'static str, left: &Value, right: &Value) -> Result<Ordering, EvaluateError> {
    match (left, right) {
        (Value::String(left), Value::String(right)) => Ok(left.cmp(right)),
        _ => Ok(integer(what, left)?.cmp(&integer(what, right)?)),
    }
}

/// About how many bytes a value takes.
fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(list) => list.iter().map(|one| 32 + size(one)).sum(),
        Value::Object(map) => map
            .iter()
            .map(|(key, one)| 64 + key.len() + size(one))
            .sum(),
        _ => 8,
    }
}
