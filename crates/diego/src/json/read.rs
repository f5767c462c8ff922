//! From JSON to bytes.

use std::borrow::Cow;
use std::fmt;

use prost::encoding::{WireType, encode_key, encode_varint};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{DEPTH_MOST, Field, Form, Kind, MAP_KEY, MAP_VALUE, Shape};

/// Why a text is not the JSON of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadJson {
    /// Where, for instance `env[0].name`; empty for the whole.
    at: String,
    cause: String,
}

impl fmt::Display for BadJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.at.is_empty() {
            f.write_str(&self.cause)
        } else {
            write!(f, "{}: {}", self.at, self.cause)
        }
    }
}

impl std::error::Error for BadJson {}

/// The message that `text` says, in protobuf. As Go reads it: keys that the shape does not know are
/// skipped, capitals in keys do not matter where no key fits exactly, `null` is nothing, and of a
/// key that is there twice the last one counts.
///
/// # Errors
/// When it is not JSON, not an object, or a value does not fit its key.
pub fn read(shape: &'static Shape, text: &str) -> Result<Vec<u8>, BadJson> {
    let whole: &RawValue = serde_json::from_str(text).map_err(|error| BadJson {
        at: String::new(),
        cause: error.to_string(),
    })?;
    let mut reader = Reader { at: Vec::new() };
    reader.object(shape, whole)
}

/// The members of an object, their values unread.
struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(key) = map.next_key::<Key<'de>>()? {
                    members.push((key.0, map.next_value()?));
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(Object).map(Self)
    }
}

/// A key, borrowed where it has no escapes.
#[derive(serde::Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

/// A step on the way to a value.
enum Step {
    Key(String),
    Element(usize),
}

struct Reader {
    at: Vec<Step>,
}

impl Reader {
    fn object(&mut self, shape: &'static Shape, raw: &RawValue) -> Result<Vec<u8>, BadJson> {
        if self.at.len() > 2 * DEPTH_MOST {
            return Err(self.bad(format!("nested more than {DEPTH_MOST} deep")));
        }
        let members = self.members(raw)?;
        let mut out = Vec::new();
        self.fields(shape, &members, &mut out)?;
        Ok(out)
    }

    fn members<'a>(&self, raw: &'a RawValue) -> Result<Members<'a>, BadJson> {
        if !raw.get().starts_with('{') {
            return Err(self.mismatch("an object", raw));
        }
        serde_json::from_str(raw.get()).map_err(|error| self.bad(error.to_string()))
    }

    /// Writes the fields that have a member; tells whether any has.
    fn fields(
        &mut self,
        shape: &'static Shape,
        members: &Members<'_>,
        out: &mut Vec<u8>,
    ) -> Result<bool, BadJson> {
        let mut any = false;
        for field in shape.fields {
            if let (Form::Flat | Form::FlatIfSent, Kind::Message(shape)) = (field.form, field.kind)
            {
                let mut within = Vec::new();
                if self.fields(shape, members, &mut within)? {
                    put_bytes(field.number, &within, out);
                    any = true;
                }
                continue;
            }
            let exact = members.0.iter().rfind(|(key, _)| key == field.key);
            let member = exact.or_else(|| {
                let mut members = members.0.iter();
                members.rfind(|(key, _)| key.eq_ignore_ascii_case(field.key))
            });
            let Some((key, raw)) = member else {
                continue;
            };
            if raw.get() == "null" {
                continue;
            }
            any = true;
            self.at.push(Step::Key(key.to_string()));
            self.field(field, raw, out)?;
            self.at.pop();
        }
        Ok(any)
    }

    fn field(
        &mut self,
        field: &'static Field,
        raw: &RawValue,
        out: &mut Vec<u8>,
    ) -> Result<(), BadJson> {
        match field.form {
            Form::List | Form::ListOrNull => {
                if !raw.get().starts_with('[') {
                    return Err(self.mismatch("a list", raw));
                }
                let elements: Vec<&RawValue> =
                    serde_json::from_str(raw.get()).map_err(|error| self.bad(error.to_string()))?;
                for (number, element) in elements.into_iter().enumerate() {
                    self.at.push(Step::Element(number));
                    self.value(field.number, field.kind, element, out)?;
                    self.at.pop();
                }
                Ok(())
            }
            Form::Map | Form::MapAlways => {
                for (key, raw) in self.members(raw)?.0 {
                    self.at.push(Step::Key(key.to_string()));
                    let mut entry = Vec::new();
                    put_bytes(MAP_KEY, key.as_bytes(), &mut entry);
                    self.value(MAP_VALUE, field.kind, raw, &mut entry)?;
                    put_bytes(field.number, &entry, out);
                    self.at.pop();
                }
                Ok(())
            }
            Form::Within { key, .. } => {
                let members = self.members(raw)?;
                match members.0.iter().rfind(|(found, _)| found == key) {
                    Some((_, raw)) => self.value(field.number, field.kind, raw, out),
                    None => Ok(()),
                }
            }
            _ => self.value(field.number, field.kind, raw, out),
        }
    }

    fn value(
        &mut self,
        number: u32,
        kind: Kind,
        raw: &RawValue,
        out: &mut Vec<u8>,
    ) -> Result<(), BadJson> {
        let text = raw.get();
        match kind {
            Kind::Text => {
                let text = self.text(raw)?;
                put_bytes(number, text.as_bytes(), out);
            }
            Kind::Bool => {
                let bit = match text {
                    "true" => 1,
                    "false" => 0,
                    _ => return Err(self.mismatch("true or false", raw)),
                };
                put_number(number, bit, out);
            }
            Kind::Int32 => {
                let value: i32 = self.number(raw)?;
                put_number(number, i64::from(value).cast_unsigned(), out);
            }
            Kind::Int64 => {
                let value: i64 = self.number(raw)?;
                put_number(number, value.cast_unsigned(), out);
            }
            Kind::Uint32 => {
                let value: u32 = self.number(raw)?;
                put_number(number, value.into(), out);
            }
            Kind::Uint64 => {
                let value: u64 = self.number(raw)?;
                put_number(number, value, out);
            }
            Kind::Named(names) => {
                let name = self.text(raw)?;
                let Some((value, _)) = names.iter().find(|(_, known)| *known == name) else {
                    let known: Vec<&str> = names.iter().map(|(_, name)| *name).collect();
                    return Err(self.mismatch(&format!("one of {}", known.join(", ")), raw));
                };
                put_number(number, i64::from(*value).cast_unsigned(), out);
            }
            Kind::Message(shape) => {
                let within = self.object(shape, raw)?;
                put_bytes(number, &within, out);
            }
            Kind::Routes => {
                let routes = self.routes(raw)?;
                put_bytes(number, &routes, out);
            }
        }
        Ok(())
    }

    /// Each value stays the JSON that it is.
    fn routes(&mut self, raw: &RawValue) -> Result<Vec<u8>, BadJson> {
        let mut routes = Vec::new();
        for (key, value) in self.members(raw)?.0 {
            if value.get() == "null" {
                self.at.push(Step::Key(key.to_string()));
                return Err(self.mismatch("any JSON but null", value));
            }
            let mut entry = Vec::new();
            put_bytes(MAP_KEY, key.as_bytes(), &mut entry);
            put_bytes(MAP_VALUE, value.get().as_bytes(), &mut entry);
            put_bytes(1, &entry, &mut routes);
        }
        Ok(routes)
    }

    fn text(&self, raw: &RawValue) -> Result<String, BadJson> {
        if !raw.get().starts_with('"') {
            return Err(self.mismatch("a text", raw));
        }
        serde_json::from_str(raw.get()).map_err(|error| self.bad(error.to_string()))
    }

    /// A whole number within the bounds of its type, written without a point or an exponent.
    fn number<N: std::str::FromStr + Bounds>(&self, raw: &RawValue) -> Result<N, BadJson> {
        let number = raw.get().parse();
        number.map_err(|_| self.mismatch(&format!("a whole number {}", N::BOUNDS), raw))
    }

    fn mismatch(&self, expected: &str, raw: &RawValue) -> BadJson {
        const SHOWN: usize = 40;
        let text = raw.get();
        let cut = text.floor_char_boundary(SHOWN);
        let more = if cut < text.len() { "…" } else { "" };
        self.bad(format!("expected {expected}, found {}{more}", &text[..cut]))
    }

    fn bad(&self, cause: String) -> BadJson {
        let mut at = String::new();
        for step in &self.at {
            match step {
                Step::Key(key) if at.is_empty() => at.push_str(key),
                Step::Key(key) => {
                    at.push('.');
                    at.push_str(key);
                }
                Step::Element(number) => at.push_str(&format!("[{number}]")),
            }
        }
        BadJson { at, cause }
    }
}

/// What a type of numbers holds, in words.
trait Bounds {
    const BOUNDS: &str;
}

impl Bounds for i32 {
    const BOUNDS: &str = "from -2147483648 to 2147483647";
}
impl Bounds for u32 {
    const BOUNDS: &str = "from 0 to 4294967295";
}
impl Bounds for i64 {
    const BOUNDS: &str = "of 64 bits";
}
impl Bounds for u64 {
    const BOUNDS: &str = "from 0 on, of 64 bits";
}

fn put_number(number: u32, value: u64, out: &mut Vec<u8>) {
    encode_key(number, WireType::Varint, out);
    encode_varint(value, out);
}

fn put_bytes(number: u32, bytes: &[u8], out: &mut Vec<u8>) {
    encode_key(number, WireType::LengthDelimited, out);
    encode_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}
