//! Types that serde can read, from a tree that knows where each value stands: every error has
//! its place, and a key that nobody asks for is one.

use std::cell::RefCell;
use std::fmt;

use document::{Entry, Node, Problem, Span, Value};
use serde::de::value::{StrDeserializer, StringDeserializer};
use serde::de::{self, DeserializeSeed, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;

/// Why a value cannot be read; where, once that is known.
#[derive(Debug)]
pub(super) struct Wrong {
    message: String,
    span: Option<Span>,
    /// A word that is none of these.
    near: Option<(String, &'static [&'static str])>,
}

impl Wrong {
    fn at(mut self, span: &Span) -> Self {
        self.span.get_or_insert_with(|| span.clone());
        self
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Wrong {}

impl de::Error for Wrong {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self {
            message: message.to_string(),
            span: None,
            near: None,
        }
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        Self {
            message: format!("unknown word \"{variant}\""),
            span: None,
            near: Some((variant.to_owned(), expected)),
        }
    }
}

/// Reads a value of this type.
///
/// # Errors
/// Every unknown key, and the first value that cannot be read.
pub(super) fn read<T: de::DeserializeOwned>(text: &str, node: &Node) -> Result<T, Vec<Problem>> {
    let unknown = RefCell::new(Vec::new());
    let from = From {
        text,
        node,
        unknown: &unknown,
    };
    let read = T::deserialize(from);
    let mut problems = unknown.into_inner();
    match read {
        Ok(value) if problems.is_empty() => Ok(value),
        Ok(_) => Err(problems),
        Err(wrong) => {
            let span = wrong.span.unwrap_or_else(|| node.span.clone());
            let problem = Problem::new(span, wrong.message);
            problems.push(match wrong.near {
                None => problem,
                Some((word, known)) => {
                    problem.suggest_from(&word, "words here", known.iter().copied())
                }
            });
            Err(problems)
        }
    }
}

/// A node that is being read.
#[derive(Clone, Copy)]
struct From<'de> {
    text: &'de str,
    node: &'de Node,
    unknown: &'de RefCell<Vec<Problem>>,
}

impl<'de> From<'de> {
    fn of(self, node: &'de Node) -> Self {
        Self { node, ..self }
    }

    /// A number or truth value as it is written: `1.0` and `0644` are texts where one is asked
    /// for.
    fn written(&self) -> &'de str {
        let span = self.node.span.clone();
        self.text.get(span).unwrap_or_default().trim()
    }

    fn table<V: Visitor<'de>>(
        self,
        entries: &'de [Entry],
        fields: Option<&'static [&'static str]>,
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        visitor.visit_map(Entries {
            from: self,
            entries: entries.iter(),
            value: None,
            fields,
        })
    }

    fn any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match &self.node.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Integer(number) if self.written() == number.to_string() => {
                visitor.visit_i64(*number)
            }
            Value::Integer(_) => visitor.visit_str(self.written()),
            Value::Float(number) => visitor.visit_f64(*number),
            Value::Text(text) => visitor.visit_str(text),
            Value::List(nodes) => visitor.visit_seq(Items {
                from: self,
                nodes: nodes.iter(),
            }),
            Value::Table(entries) => self.table(entries, None, visitor),
        }
    }
}

impl<'de> de::Deserializer<'de> for From<'de> {
    type Error = Wrong;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        let span = &self.node.span;
        self.any(visitor).map_err(|wrong| wrong.at(span))
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        let span = &self.node.span;
        match &self.node.value {
            Value::Integer(_) | Value::Float(_) | Value::Bool(_) => {
                let read = visitor.visit_str(self.written());
                read.map_err(|wrong: Wrong| wrong.at(span))
            }
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        self.deserialize_string(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match &self.node.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        match &self.node.value {
            Value::Table(entries) => {
                let span = &self.node.span;
                let read = self.table(entries, Some(fields), visitor);
                read.map_err(|wrong| wrong.at(span))
            }
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        let span = &self.node.span;
        let read = match &self.node.value {
            Value::Text(text) => {
                let from: StrDeserializer<'_, Wrong> = text.as_str().into_deserializer();
                de::Deserializer::deserialize_enum(from, name, variants, visitor)
            }
            Value::Table(entries) => {
                let entries = Entries {
                    from: self,
                    entries: entries.iter(),
                    value: None,
                    fields: None,
                };
                let from = de::value::MapAccessDeserializer::new(entries);
                de::Deserializer::deserialize_enum(from, name, variants, visitor)
            }
            _ => self.any(visitor),
        };
        read.map_err(|wrong| wrong.at(span))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char bytes byte_buf unit
        unit_struct seq tuple tuple_struct map identifier
    }
}

struct Items<'de, I> {
    from: From<'de>,
    nodes: I,
}

impl<'de, I: Iterator<Item = &'de Node>> SeqAccess<'de> for Items<'de, I> {
    type Error = Wrong;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Wrong> {
        let next = self.nodes.next();
        next.map(|node| {
            let read = seed.deserialize(self.from.of(node));
            read.map_err(|wrong| wrong.at(&node.span))
        })
        .transpose()
    }
}

struct Entries<'de, I> {
    from: From<'de>,
    entries: I,
    value: Option<&'de Node>,
    /// The keys that there may be.
    fields: Option<&'static [&'static str]>,
}

impl<'de, I: Iterator<Item = &'de Entry>> MapAccess<'de> for Entries<'de, I> {
    type Error = Wrong;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Wrong> {
        for entry in self.entries.by_ref() {
            if let Some(fields) = self.fields
                && !fields.contains(&entry.key.as_str())
            {
                let message = format!("unknown key \"{}\"", entry.key);
                let problem = Problem::new(entry.key_span.clone(), message);
                let problem = problem.suggest_from(&entry.key, "keys here", fields.iter().copied());
                self.from.unknown.borrow_mut().push(problem);
                continue;
            }
            self.value = Some(&entry.node);
            let key: StringDeserializer<Wrong> = entry.key.clone().into_deserializer();
            let read = seed.deserialize(key);
            return read.map(Some).map_err(|wrong| wrong.at(&entry.key_span));
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Wrong> {
        let node = self.value.take();
        let node = node.ok_or_else(|| de::Error::custom("a value without a key"))?;
        let read = seed.deserialize(self.from.of(node));
        read.map_err(|wrong| wrong.at(&node.span))
    }
}
