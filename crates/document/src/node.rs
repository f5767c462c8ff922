//! The tree of a settings file.

use std::collections::BTreeMap;

use saphyr::{LoadableYamlNode, MarkedYaml, Scalar, YamlData};
use saphyr_parser::{Event, Parser};
use toml::de::{DeTable, DeValue};

use crate::{Problem, Source, Span};

/// Tables and lists within each other; deeper ones are refused.
const MOST_DEPTH: usize = 32;

/// Values that all aliases of a file stand for together; more are refused.
const MOST_ALIASED: usize = 100_000;

/// A text behind an alias counts as one value more for each so many bytes.
const TEXT_BYTES: usize = 64;

/// A value and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Where.
    pub span: Span,
    /// What.
    pub value: Value,
}

/// A value of either language.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Nothing (YAML only).
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// Another number.
    Float(f64),
    /// A text.
    Text(String),
    /// Values in order.
    List(Vec<Node>),
    /// Values by name, in the order of the file.
    Table(Vec<Entry>),
}

/// A named value of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The name.
    pub key: String,
    /// Where the name stands.
    pub key_span: Span,
    /// The value.
    pub node: Node,
}

impl Value {
    /// What it is, in words: "a list".
    pub fn what(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Bool(_) => "a truth value",
            Self::Integer(_) | Self::Float(_) => "a number",
            Self::Text(_) => "a text",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
        }
    }
}

/// Reads TOML. The result is a table.
///
/// # Errors
/// Every place where the text is not TOML.
pub fn parse_toml(source: &Source) -> Result<Node, Vec<Problem>> {
    let (table, errors) = DeTable::parse_recoverable(&source.text);
    if !errors.is_empty() {
        return Err(errors
            .iter()
            .map(|error| {
                let message = format!("this is not TOML: {}", error.message());
                Problem::new(error.span().unwrap_or(0..0), message)
            })
            .collect());
    }
    let value = toml_table(table.get_ref(), 0).map_err(|problem| vec![problem])?;
    Ok(Node {
        span: 0..source.text.len(),
        value,
    })
}

fn toml_table(table: &DeTable<'_>, depth: usize) -> Result<Value, Problem> {
    let mut entries = Vec::with_capacity(table.len());
    for (key, value) in table {
        entries.push(Entry {
            key: key.get_ref().to_string(),
            key_span: key.span(),
            node: Node {
                span: value.span(),
                value: toml_value(value.get_ref(), value.span(), depth + 1)?,
            },
        });
    }
    // The parser sorts by name; the order of the file is that of the places.
    entries.sort_by_key(|entry| entry.key_span.start);
    Ok(Value::Table(entries))
}

fn toml_value(value: &DeValue<'_>, span: Span, depth: usize) -> Result<Value, Problem> {
    if depth > MOST_DEPTH {
        return Err(too_deep(span));
    }
    let wrong = |what: &str| Problem::new(span.clone(), format!("this {what} is out of bounds"));
    Ok(match value {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Boolean(value) => Value::Bool(*value),
        DeValue::Integer(number) => {
            let digits = number.as_str().replace('_', "");
            let number = i64::from_str_radix(&digits, number.radix());
            Value::Integer(number.map_err(|_| wrong("number"))?)
        }
        DeValue::Float(number) => {
            let number = number.as_str().replace('_', "").parse();
            Value::Float(number.map_err(|_| wrong("number"))?)
        }
        DeValue::Datetime(_) => {
            return Err(Problem::new(span, "dates have no meaning here"));
        }
        DeValue::Array(values) => {
            let mut list = Vec::with_capacity(values.len());
            for value in values {
                list.push(Node {
                    span: value.span(),
                    value: toml_value(value.get_ref(), value.span(), depth + 1)?,
                });
            }
            Value::List(list)
        }
        DeValue::Table(table) => toml_table(table, depth)?,
    })
}

fn too_deep(span: Span) -> Problem {
    let message = format!("values are nested more than {MOST_DEPTH} levels deep");
    Problem::new(span, message)
}

/// Reads YAML: one document, whose top is a table. An empty one is an empty table.
///
/// # Errors
/// Where the text is not YAML, has a second document, or is no table.
pub fn parse_yaml(source: &Source) -> Result<Node, Vec<Problem>> {
    let places = Places::of(&source.text);
    check_size(source, &places).map_err(|problem| vec![problem])?;
    let documents = MarkedYaml::load_from_str(&source.text).map_err(|error| {
        let at = places.byte(error.marker().index());
        let message = format!("this is not YAML: {}", error.info());
        vec![Problem::new(at..at, message)]
    })?;
    let node = match documents.as_slice() {
        [] => None,
        [only] => Some(yaml_node(only, &places, 0).map_err(|problem| vec![problem])?),
        [_, second, ..] => {
            let span = places.span(second.span);
            return Err(vec![Problem::new(
                span,
                "a second document begins here; expected one",
            )]);
        }
    };
    match node {
        None => Ok(empty(source)),
        Some(node) => match node.value {
            Value::Null => Ok(empty(source)),
            Value::Table(_) => Ok(node),
            other => {
                let message = format!("expected keys with values, found {}", other.what());
                Err(vec![Problem::new(node.span, message)])
            }
        },
    }
}

/// Refuses what cannot be loaded: values so deep that the stack would not hold them, and aliases
/// of aliases that stand for more than fits into memory. What is no YAML is left to who loads it.
fn check_size(source: &Source, places: &Places) -> Result<(), Problem> {
    // What is open: its anchor, 0 without one, and how many values it has so far.
    let mut open: Vec<(usize, usize)> = Vec::new();
    let mut anchored: BTreeMap<usize, usize> = BTreeMap::new();
    let mut aliased = 0;
    for event in Parser::new_from_iter(source.text.chars()) {
        let Ok((event, at)) = event else { break };
        let span = || places.span(at);
        let (anchor, values) = match event {
            Event::SequenceStart(anchor, _) | Event::MappingStart(anchor, _) => {
                if open.len() > MOST_DEPTH {
                    return Err(too_deep(span()));
                }
                open.push((anchor, 1));
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => open.pop().unwrap_or_default(),
            Event::Scalar(text, _, anchor, _) => (anchor, 1 + text.len() / TEXT_BYTES),
            Event::Alias(anchor) => {
                let values = anchored.get(&anchor).copied().unwrap_or(1);
                aliased += values;
                if aliased > MOST_ALIASED {
                    let message = format!(
                        "up to here aliases stand for more than {MOST_ALIASED} values, where each \
                         {TEXT_BYTES} bytes of a text are one"
                    );
                    return Err(Problem::new(span(), message).help("use fewer aliases"));
                }
                (0, values)
            }
            _ => continue,
        };
        if anchor > 0 {
            anchored.insert(anchor, values);
        }
        if let Some((_, inside)) = open.last_mut() {
            *inside += values;
        }
    }
    Ok(())
}

fn empty(source: &Source) -> Node {
    Node {
        span: 0..source.text.len(),
        value: Value::Table(Vec::new()),
    }
}

fn yaml_node(yaml: &MarkedYaml<'_>, places: &Places, depth: usize) -> Result<Node, Problem> {
    let span = places.span(yaml.span);
    if depth > MOST_DEPTH {
        return Err(too_deep(span));
    }
    let value = match &yaml.data {
        YamlData::Value(Scalar::Null) => Value::Null,
        YamlData::Value(Scalar::Boolean(value)) => Value::Bool(*value),
        YamlData::Value(Scalar::Integer(number)) => Value::Integer(*number),
        YamlData::Value(Scalar::FloatingPoint(number)) => Value::Float(number.into_inner()),
        YamlData::Value(Scalar::String(text)) => Value::Text(text.to_string()),
        YamlData::Sequence(values) => Value::List(
            values
                .iter()
                .map(|value| yaml_node(value, places, depth + 1))
                .collect::<Result<_, _>>()?,
        ),
        YamlData::Mapping(mapping) => {
            let mut entries = Vec::with_capacity(mapping.len());
            for (key, value) in mapping {
                let key_span = places.span(key.span);
                let YamlData::Value(name) = &key.data else {
                    return Err(Problem::new(key_span, "expected a name here"));
                };
                let key = match name {
                    Scalar::String(name) => name.to_string(),
                    Scalar::Integer(number) => number.to_string(),
                    Scalar::Boolean(value) => value.to_string(),
                    Scalar::Null | Scalar::FloatingPoint(_) => {
                        return Err(Problem::new(key_span, "expected a name here"));
                    }
                };
                entries.push(Entry {
                    key,
                    key_span,
                    node: yaml_node(value, places, depth + 1)?,
                });
            }
            Value::Table(entries)
        }
        YamlData::Tagged(_, inner) => return yaml_node(inner, places, depth + 1),
        _ => return Err(Problem::new(span, "this value cannot be read")),
    };
    Ok(Node { span, value })
}

/// Where characters stand, in bytes: the parser of YAML counts characters.
struct Places(Option<Vec<usize>>, usize);

impl Places {
    fn of(text: &str) -> Self {
        let bytes = (!text.is_ascii()).then(|| text.char_indices().map(|(at, _)| at).collect());
        Self(bytes, text.len())
    }

    fn byte(&self, character: usize) -> usize {
        match &self.0 {
            None => character.min(self.1),
            Some(bytes) => bytes.get(character).copied().unwrap_or(self.1),
        }
    }

    fn span(&self, at: saphyr_parser::Span) -> Span {
        let start = self.byte(at.start.index());
        start..self.byte(at.end.index()).max(start)
    }
}
