//! From bytes to JSON.

use std::collections::BTreeMap;

use prost::encoding::{WireType, decode_key, decode_varint};

use super::{DEPTH_MOST, Field, Form, Kind, MAP_KEY, MAP_VALUE, Shape};

/// Why bytes cannot be printed as a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("these bytes are no {message}: {cause}")]
pub struct BadMessage {
    message: &'static str,
    cause: String,
}

/// The message in `bytes` as JSON on one line. Fields that the shape does not know are skipped.
///
/// # Errors
/// When the bytes are not a message of this shape, or messages lie within it more than 100 deep.
pub fn print(shape: &'static Shape, bytes: &[u8]) -> Result<String, BadMessage> {
    let mut out = String::with_capacity(bytes.len() * 2);
    object(shape, bytes, DEPTH_MOST, &mut out)?;
    Ok(out)
}

/// A value as it came.
#[derive(Debug, Clone, Copy)]
enum Sent<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

type Fields<'a> = Vec<(u32, Sent<'a>)>;

/// The fields of a message in the order in which they came.
fn fields<'a>(message: &'static str, mut rest: &'a [u8]) -> Result<Fields<'a>, BadMessage> {
    let bad = |cause: &dyn std::fmt::Display| BadMessage {
        message,
        cause: cause.to_string(),
    };
    let mut found = Vec::new();
    while !rest.is_empty() {
        let (number, kind) = decode_key(&mut rest).map_err(|error| bad(&error))?;
        match kind {
            WireType::Varint => {
                let value = decode_varint(&mut rest).map_err(|error| bad(&error))?;
                found.push((number, Sent::Number(value)));
            }
            WireType::LengthDelimited => {
                let length = decode_varint(&mut rest).map_err(|error| bad(&error))?;
                found.push((
                    number,
                    Sent::Bytes(take(&mut rest, length).map_err(|error| bad(&error))?),
                ));
            }
            // No field of the protocol: one of a later version, which is skipped.
            WireType::SixtyFourBit => drop(take(&mut rest, 8).map_err(|error| bad(&error))?),
            WireType::ThirtyTwoBit => drop(take(&mut rest, 4).map_err(|error| bad(&error))?),
            WireType::StartGroup | WireType::EndGroup => {
                return Err(bad(&"it holds a group, which the protocol has not"));
            }
        }
    }
    Ok(found)
}

fn take<'a>(rest: &mut &'a [u8], length: u64) -> Result<&'a [u8], &'static str> {
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    let (head, tail) = rest
        .split_at_checked(length)
        .ok_or("a field is longer than what is left")?;
    *rest = tail;
    Ok(head)
}

fn object(
    shape: &'static Shape,
    bytes: &[u8],
    depth: usize,
    out: &mut String,
) -> Result<(), BadMessage> {
    let Some(depth) = depth.checked_sub(1) else {
        return Err(BadMessage {
            message: shape.name,
            cause: format!("messages lie within it more than {DEPTH_MOST} deep"),
        });
    };
    out.push('{');
    let mut first = true;
    Printer { shape, depth, out }.members(&fields(shape.name, bytes)?, &mut first)?;
    out.push('}');
    Ok(())
}

struct Printer<'o> {
    shape: &'static Shape,
    depth: usize,
    out: &'o mut String,
}

impl Printer<'_> {
    fn members(&mut self, sent: &Fields<'_>, first: &mut bool) -> Result<(), BadMessage> {
        for field in self.shape.fields {
            let all = || sent.iter().filter(|(number, _)| *number == field.number);
            // Of a field that is sent twice the last one counts.
            let last = || all().next_back().map(|(_, value)| *value);
            match field.form {
                Form::Flat | Form::FlatIfSent => {
                    let bytes = match last() {
                        Some(value) => self.bytes(field, value)?,
                        None if field.form == Form::Flat => &[],
                        None => continue,
                    };
                    self.flat(field, bytes, first)?;
                }
                Form::List | Form::ListOrNull => {
                    self.list(field, all().map(|(_, value)| *value), first)?;
                }
                Form::Map | Form::MapAlways => {
                    self.map(field, all().map(|(_, value)| *value), first)?;
                }
                Form::Within { key, false_too } => {
                    self.key(field.key, first);
                    match last() {
                        None => self.out.push_str("null"),
                        Some(value) if false_too || self.number(field, value)? != 0 => {
                            let is = self.number(field, value)? != 0;
                            self.out.push_str(&format!("{{\"{key}\":{is}}}"));
                        }
                        Some(_) => self.out.push_str("{}"),
                    }
                }
                Form::Always | Form::Whole | Form::UnlessZero | Form::IfSent => {
                    self.single(field, last(), first)?;
                }
            }
        }
        Ok(())
    }

    fn single(
        &mut self,
        field: &'static Field,
        sent: Option<Sent<'_>>,
        first: &mut bool,
    ) -> Result<(), BadMessage> {
        let value = match (sent, field.form, field.kind) {
            (None, Form::UnlessZero | Form::IfSent, _) => return Ok(()),
            (None, Form::Whole, _) => Sent::Bytes(&[]),
            (None, _, Kind::Message(_) | Kind::Routes) => {
                self.key(field.key, first);
                self.out.push_str("null");
                return Ok(());
            }
            (None, _, Kind::Text) => Sent::Bytes(&[]),
            (None, _, _) => Sent::Number(0),
            (Some(value), _, _) => value,
        };
        let nothing = match (value, field.kind) {
            (_, Kind::Message(_) | Kind::Routes) => false,
            (Sent::Number(number), _) => number == 0,
            (Sent::Bytes(bytes), _) => bytes.is_empty(),
        };
        if nothing && field.form == Form::UnlessZero {
            return Ok(());
        }
        self.key(field.key, first);
        // Routes that are no pointer in Go are null when there are none.
        if matches!(field.kind, Kind::Routes) && field.form == Form::Always {
            let bytes = self.bytes(field, value)?;
            if fields(self.shape.name, bytes)?.is_empty() {
                self.out.push_str("null");
                return Ok(());
            }
        }
        self.value(field, value)
    }

    fn list<'a>(
        &mut self,
        field: &'static Field,
        values: impl Iterator<Item = Sent<'a>>,
        first: &mut bool,
    ) -> Result<(), BadMessage> {
        let mut begun = false;
        let mut begin = |printer: &mut Self| {
            if begun {
                printer.out.push(',');
            } else {
                printer.key(field.key, first);
                printer.out.push('[');
                begun = true;
            }
        };
        for value in values {
            match (field.kind, value) {
                (Kind::Text | Kind::Message(_) | Kind::Routes, _) | (_, Sent::Number(_)) => {
                    begin(self);
                    self.value(field, value)?;
                }
                // Numbers may come packed.
                (_, Sent::Bytes(mut packed)) => {
                    while !packed.is_empty() {
                        let number = decode_varint(&mut packed);
                        let number = number.map_err(|error| self.bad(field, &error.to_string()))?;
                        begin(self);
                        self.value(field, Sent::Number(number))?;
                    }
                }
            }
        }
        if begun {
            self.out.push(']');
        } else if field.form == Form::ListOrNull {
            self.key(field.key, first);
            self.out.push_str("null");
        }
        Ok(())
    }

    fn map<'a>(
        &mut self,
        field: &'static Field,
        entries: impl Iterator<Item = Sent<'a>>,
        first: &mut bool,
    ) -> Result<(), BadMessage> {
        let mut sorted = BTreeMap::new();
        for entry in entries {
            let (key, value) = self.entry(field, self.bytes(field, entry)?)?;
            sorted.insert(key, value);
        }
        if sorted.is_empty() && field.form == Form::Map {
            return Ok(());
        }
        self.key(field.key, first);
        self.out.push('{');
        let mut first = true;
        for (key, value) in sorted {
            self.key(&String::from_utf8_lossy(key), &mut first);
            self.value(field, Sent::Bytes(value))?;
        }
        self.out.push('}');
        Ok(())
    }

    /// Key and value of one entry of a map; all maps of the protocol have values of bytes.
    fn entry<'a>(
        &self,
        field: &'static Field,
        bytes: &'a [u8],
    ) -> Result<(&'a [u8], &'a [u8]), BadMessage> {
        let (mut key, mut value): (&[u8], &[u8]) = (&[], &[]);
        for (number, sent) in fields(self.shape.name, bytes)? {
            match number {
                MAP_KEY => key = self.bytes(field, sent)?,
                MAP_VALUE => value = self.bytes(field, sent)?,
                _ => {}
            }
        }
        Ok((key, value))
    }

    fn flat(
        &mut self,
        field: &'static Field,
        bytes: &[u8],
        first: &mut bool,
    ) -> Result<(), BadMessage> {
        let Kind::Message(shape) = field.kind else {
            return Ok(());
        };
        let (depth, out) = (self.depth, &mut *self.out);
        Printer { shape, depth, out }.members(&fields(shape.name, bytes)?, first)
    }

    fn value(&mut self, field: &'static Field, value: Sent<'_>) -> Result<(), BadMessage> {
        match field.kind {
            Kind::Text => {
                let text = String::from_utf8_lossy(self.bytes(field, value)?);
                quote(&text, self.out);
            }
            Kind::Message(shape) => {
                object(shape, self.bytes(field, value)?, self.depth, self.out)?;
            }
            Kind::Routes => self.routes(field, self.bytes(field, value)?)?,
            Kind::Bool => self.plain(self.number(field, value)? != 0),
            Kind::Int32 => self.plain(self.small(field, value)?),
            Kind::Int64 => self.plain(self.number(field, value)?.cast_signed()),
            Kind::Uint32 => self.plain(self.small(field, value)?.cast_unsigned()),
            Kind::Uint64 => self.plain(self.number(field, value)?),
            Kind::Named(names) => {
                let number = self.small(field, value)?;
                match names.iter().find(|(of, _)| *of == number) {
                    Some((_, name)) => quote(name, self.out),
                    // Of a later version.
                    None => quote(&number.to_string(), self.out),
                }
            }
        }
        Ok(())
    }

    /// A number or a Boolean.
    fn plain(&mut self, value: impl ToString) {
        self.out.push_str(&value.to_string());
    }

    /// Each route's value is JSON, which is printed as such.
    fn routes(&mut self, field: &'static Field, bytes: &[u8]) -> Result<(), BadMessage> {
        let mut sorted = BTreeMap::new();
        for (number, sent) in fields(self.shape.name, bytes)? {
            if number == 1 {
                let (key, value) = self.entry(field, self.bytes(field, sent)?)?;
                sorted.insert(key, value);
            }
        }
        self.out.push('{');
        let mut first = true;
        for (key, value) in sorted {
            self.key(&String::from_utf8_lossy(key), &mut first);
            let compacted = compact(value).map_err(|cause| {
                self.bad(field, &format!("a route's value is not JSON: {cause}"))
            })?;
            self.out.push_str(&compacted);
        }
        self.out.push('}');
        Ok(())
    }

    fn key(&mut self, key: &str, first: &mut bool) {
        if !std::mem::take(first) {
            self.out.push(',');
        }
        quote(key, self.out);
        self.out.push(':');
    }

    fn bytes<'a>(&self, field: &Field, value: Sent<'a>) -> Result<&'a [u8], BadMessage> {
        match value {
            Sent::Bytes(bytes) => Ok(bytes),
            Sent::Number(_) => Err(self.bad(field, "it is a number")),
        }
    }

    fn number(&self, field: &Field, value: Sent<'_>) -> Result<u64, BadMessage> {
        match value {
            Sent::Number(number) => Ok(number),
            Sent::Bytes(_) => Err(self.bad(field, "it is no number")),
        }
    }

    /// Of 32 bits: what is above is cut off, as all decoders do.
    #[allow(clippy::cast_possible_truncation, reason = "meant")]
    fn small(&self, field: &Field, value: Sent<'_>) -> Result<i32, BadMessage> {
        Ok(self.number(field, value)? as i32)
    }

    fn bad(&self, field: &Field, cause: &str) -> BadMessage {
        BadMessage {
            message: self.shape.name,
            cause: format!("field {} ({}): {cause}", field.number, field.key),
        }
    }
}

/// Puts a text in quotes, as Go does: `<`, `>`, `&` and the two separators of lines that
/// JavaScript knows are escaped as well.
pub fn quote(text: &str, out: &mut String) {
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\0'..' ' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                out.push_str(&format!("\\u{:04x}", u32::from(letter)));
            }
            letter => out.push(letter),
        }
    }
    out.push('"');
}

/// JSON on one line, without the spaces between its parts; else as it was written, numbers included.
///
/// # Errors
/// When it is not one JSON value.
pub fn compact(json: &[u8]) -> Result<String, serde_json::Error> {
    let value: &serde_json::value::RawValue = serde_json::from_slice(json)?;
    let text = value.get();
    let mut out = String::with_capacity(text.len());
    let (mut quoted, mut escaped) = (false, false);
    for letter in text.chars() {
        match letter {
            ' ' | '\n' | '\r' | '\t' if !quoted => continue,
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                out.push_str(&format!("\\u{:04x}", u32::from(letter)));
                escaped = false;
                continue;
            }
            '"' if !escaped => quoted = !quoted,
            _ => {}
        }
        escaped = quoted && letter == '\\' && !escaped;
        out.push(letter);
    }
    Ok(out)
}
