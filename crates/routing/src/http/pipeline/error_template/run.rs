//! A template with what gorouter gives it becomes a page.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::{Base, Expr, Function, Node};
use crate::http::pipeline::text::decimal;

/// The only field of an error answer that a template can ask for.
const ROUTER_ERROR: &str = "X-Cf-Routererror";

/// What a template is given.
#[derive(Debug, Clone, Copy)]
pub(super) struct Data<'d> {
    pub(super) status: u16,
    pub(super) status_text: &'d str,
    pub(super) message: &'d [u8],
    /// Empty: there is no such field.
    pub(super) router_error: &'d [u8],
}

/// A value.
#[derive(Debug, Clone, PartialEq)]
enum Value<'d> {
    Nothing,
    /// All that is given.
    Root,
    /// The header fields.
    Header,
    /// The values of one field.
    List(&'d [u8]),
    Text(Cow<'d, [u8]>),
    Number(i64),
    Truth(bool),
}

/// One run of a template.
pub(super) struct Run<'d> {
    data: Data<'d>,
    dot: Value<'d>,
    variables: Vec<(&'d str, Value<'d>)>,
}

impl<'d> Run<'d> {
    pub(super) fn new(data: Data<'d>) -> Self {
        Self {
            data,
            dot: Value::Root,
            variables: Vec::new(),
        }
    }

    /// Appends parts.
    pub(super) fn write(&mut self, nodes: &'d [Node], out: &mut Vec<u8>) {
        for node in nodes {
            match node {
                Node::Text(text) => out.extend_from_slice(text.as_bytes()),
                Node::Print(value) => print(&self.value(value), out),
                Node::If {
                    value,
                    name,
                    becomes_dot,
                    then,
                    otherwise,
                } => {
                    let value = self.value(value);
                    let nodes = if self.is_true(&value) {
                        then
                    } else {
                        otherwise
                    };
                    let dot = (*becomes_dot && self.is_true(&value)).then(|| value.clone());
                    let names = name.iter().map(|name| (&**name, value.clone())).collect();
                    self.within(dot, names, nodes, out);
                }
                Node::Range {
                    over,
                    names,
                    each,
                    otherwise,
                } => self.range(over, names, (each, otherwise), out),
            }
        }
    }

    fn range(
        &mut self,
        over: &'d Expr,
        names: &'d [String],
        (each, otherwise): (&'d [Node], &'d [Node]),
        out: &mut Vec<u8>,
    ) {
        let text = |text: &'d [u8]| Value::Text(Cow::Borrowed(text));
        // Of each kind there is one element at most.
        let element = match self.value(over) {
            Value::Header if !self.data.router_error.is_empty() => Some((
                text(ROUTER_ERROR.as_bytes()),
                Value::List(self.data.router_error),
            )),
            Value::List(one) => Some((Value::Number(0), text(one))),
            _ => None,
        };
        let Some((key, element)) = element else {
            return self.within(None, Vec::new(), otherwise, out);
        };
        let named = match names {
            [] => Vec::new(),
            [one] => vec![(&**one, element.clone())],
            [first, second, ..] => vec![(&**first, key), (&**second, element.clone())],
        };
        self.within(Some(element), named, each, out);
    }

    /// Appends parts with another dot, if there is one, and more names.
    fn within(
        &mut self,
        dot: Option<Value<'d>>,
        names: Vec<(&'d str, Value<'d>)>,
        nodes: &'d [Node],
        out: &mut Vec<u8>,
    ) {
        let known = self.variables.len();
        self.variables.extend(names);
        let before = dot.map(|dot| std::mem::replace(&mut self.dot, dot));
        self.write(nodes, out);
        if let Some(before) = before {
            self.dot = before;
        }
        self.variables.truncate(known);
    }

    fn value(&self, expr: &'d Expr) -> Value<'d> {
        match expr {
            Expr::Text(text) => Value::Text(Cow::Borrowed(text.as_bytes())),
            Expr::Number(number) => Value::Number(*number),
            Expr::Truth(truth) => Value::Truth(*truth),
            Expr::Path(base, path) => {
                let base = match base {
                    Base::Dot => self.dot.clone(),
                    Base::Root => Value::Root,
                    Base::Variable(name) => {
                        let mut known = self.variables.iter().rev();
                        let found = known.find(|(known, _)| known == name);
                        found.map_or(Value::Nothing, |(_, value)| value.clone())
                    }
                };
                path.iter()
                    .fold(base, |value, name| self.field(&value, name))
            }
            Expr::Get(of, name) => match (self.value(of), self.value(name)) {
                (Value::Header, Value::Text(name)) => self.header(&name).map_or_else(
                    || Value::Text(Cow::Borrowed(b"")),
                    |value| Value::Text(Cow::Borrowed(value)),
                ),
                _ => Value::Nothing,
            },
            Expr::Call(function, arguments) => self.call(*function, arguments),
        }
    }

    fn field(&self, of: &Value<'d>, name: &str) -> Value<'d> {
        match (of, name) {
            (Value::Root, "Status") => Value::Number(i64::from(self.data.status)),
            (Value::Root, "StatusText") => {
                Value::Text(Cow::Borrowed(self.data.status_text.as_bytes()))
            }
            (Value::Root, "Message") => Value::Text(Cow::Borrowed(self.data.message)),
            (Value::Root, "Header") => Value::Header,
            _ => Value::Nothing,
        }
    }

    fn header(&self, name: &[u8]) -> Option<&'d [u8]> {
        let known = name.eq_ignore_ascii_case(ROUTER_ERROR.as_bytes());
        (known && !self.data.router_error.is_empty()).then_some(self.data.router_error)
    }

    fn call(&self, function: Function, arguments: &'d [Expr]) -> Value<'d> {
        let mut values = arguments.iter().map(|argument| self.value(argument));
        let first = values.next().unwrap_or(Value::Nothing);
        match function {
            // The first value that decides, or the last.
            Function::And | Function::Or => {
                let wanted = function == Function::Or;
                let mut last = first;
                for value in values {
                    if self.is_true(&last) == wanted {
                        break;
                    }
                    last = value;
                }
                last
            }
            Function::Not => Value::Truth(!self.is_true(&first)),
            Function::Len => Value::Number(self.length(&first)),
            Function::Index => values.fold(first, |of, at| self.index(&of, &at)),
            // Equal to any of the others.
            Function::Eq => {
                Value::Truth(values.any(|other| order(&first, &other).is_some_and(Ordering::is_eq)))
            }
            _ => {
                let second = values.next().unwrap_or(Value::Nothing);
                let order = order(&first, &second);
                Value::Truth(match function {
                    Function::Ne => order != Some(Ordering::Equal),
                    Function::Lt => order == Some(Ordering::Less),
                    Function::Le => order.is_some_and(Ordering::is_le),
                    Function::Gt => order == Some(Ordering::Greater),
                    _ => order.is_some_and(Ordering::is_ge),
                })
            }
        }
    }

    fn index(&self, of: &Value<'d>, at: &Value<'d>) -> Value<'d> {
        match (of, at) {
            (Value::Header, Value::Text(name)) => {
                self.header(name).map_or(Value::Nothing, Value::List)
            }
            (Value::List(one), Value::Number(0)) => Value::Text(Cow::Borrowed(one)),
            _ => Value::Nothing,
        }
    }

    fn length(&self, of: &Value<'d>) -> i64 {
        match of {
            Value::Text(text) => i64::try_from(text.len()).unwrap_or(i64::MAX),
            Value::List(_) => 1,
            Value::Header => i64::from(!self.data.router_error.is_empty()),
            _ => 0,
        }
    }

    /// As Go has it: not what is empty, zero or nothing.
    fn is_true(&self, value: &Value<'_>) -> bool {
        match value {
            Value::Nothing => false,
            Value::Root | Value::List(_) => true,
            Value::Header => !self.data.router_error.is_empty(),
            Value::Text(text) => !text.is_empty(),
            Value::Number(number) => *number != 0,
            Value::Truth(truth) => *truth,
        }
    }
}

/// How two values of one kind compare.
fn order(one: &Value<'_>, other: &Value<'_>) -> Option<Ordering> {
    match (one, other) {
        (Value::Text(one), Value::Text(other)) => Some(one.cmp(other)),
        (Value::Number(one), Value::Number(other)) => Some(one.cmp(other)),
        (Value::Truth(one), Value::Truth(other)) if one == other => Some(Ordering::Equal),
        _ => None,
    }
}

/// Appends a value, escaped.
fn print(value: &Value<'_>, out: &mut Vec<u8>) {
    match value {
        Value::Text(text) => escape(text, out),
        Value::List(one) => {
            out.push(b'[');
            escape(one, out);
            out.push(b']');
        }
        Value::Number(number) => {
            if *number < 0 {
                out.push(b'-');
            }
            decimal(number.unsigned_abs(), out);
        }
        Value::Truth(truth) => out.extend_from_slice(if *truth { b"true" } else { b"false" }),
        Value::Nothing | Value::Root | Value::Header => {}
    }
}

/// Appends a text with the entities that Go's `html/template` writes.
fn escape(text: &[u8], out: &mut Vec<u8>) {
    for byte in text {
        match byte {
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            b'&' => out.extend_from_slice(b"&amp;"),
            b'"' => out.extend_from_slice(b"&#34;"),
            b'\'' => out.extend_from_slice(b"&#39;"),
            b'+' => out.extend_from_slice(b"&#43;"),
            0 => out.extend_from_slice("\u{fffd}".as_bytes()),
            byte => out.push(*byte),
        }
    }
}
