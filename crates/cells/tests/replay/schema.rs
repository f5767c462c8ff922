//! Messages by name, read from the `.proto` files, to view and rewrite bytes.

use std::collections::HashMap;

use serde_json::{Map, Value};

/// Fields that Go's JSON view flattens into the message around them.
const EMBEDDED: &[(&str, &str)] = &[
    ("DesiredLRPSchedulingInfo", "desired_lrp_key"),
    ("DesiredLRPSchedulingInfo", "desired_lrp_resource"),
    ("DesiredLRPSchedulingInfo", "modification_tag"),
    ("ActualLRP", "actual_lrp_key"),
    ("ActualLRP", "actual_lrp_instance_key"),
    ("ActualLRP", "actual_lrp_net_info"),
    ("ActualLRPInfo", "actual_lrp_net_info"),
    ("ActualLRPInstanceChangedEvent", "actual_lrp_key"),
    ("ActualLRPInstanceChangedEvent", "actual_lrp_instance_key"),
    ("ActualLRPCrashedEvent", "actual_lrp_key"),
    ("ActualLRPCrashedEvent", "actual_lrp_instance_key"),
    ("Task", "task_definition"),
];

#[derive(Debug, Clone)]
struct Field {
    name: String,
    kind: String,
    label: Label,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Label {
    Plain,
    Optional,
    Repeated,
    Map,
}

/// All messages of the protocol.
pub struct Schema(HashMap<String, HashMap<u64, Field>>);

impl Schema {
    pub fn load() -> Self {
        let mut messages = HashMap::new();
        parse(include_str!("../../../../proto/bbs.proto"), &mut messages);
        parse(
            include_str!("../../../../proto/locket.proto"),
            &mut messages,
        );
        Self(messages)
    }

    /// The message as JSON: zeros and empty lists and maps left out.
    pub fn view(&self, message: &str, bytes: &[u8]) -> Result<Value, String> {
        let fields = self
            .0
            .get(message)
            .ok_or_else(|| format!("no message {message}"))?;
        let mut object = Map::new();
        for (number, wire) in wires(bytes)? {
            let Some(field) = fields.get(&number) else {
                object.insert(format!("unknown field {number}"), Value::Bool(true));
                continue;
            };
            if field.label == Label::Map {
                let entry = wire.bytes()?;
                let (mut key, mut value) = (String::new(), Value::Null);
                for (number, wire) in wires(entry)? {
                    match number {
                        1 => key = String::from_utf8_lossy(wire.bytes()?).into_owned(),
                        _ => value = self.value(&field.kind, &wire)?,
                    }
                }
                let map = object
                    .entry(&field.name)
                    .or_insert_with(|| Value::Object(Map::new()));
                map.as_object_mut().unwrap().insert(key, value);
                continue;
            }
            if field.label == Label::Repeated {
                let list = object
                    .entry(&field.name)
                    .or_insert_with(|| Value::Array(Vec::new()));
                list.as_array_mut()
                    .unwrap()
                    .push(self.value(&field.kind, &wire)?);
                continue;
            }
            let value = self.value(&field.kind, &wire)?;
            let embedded = EMBEDDED.contains(&(message, field.name.as_str()));
            if embedded {
                object.extend(value.as_object().unwrap().clone());
            } else if field.label == Label::Optional || !is_zero(&value, &field.kind) {
                object.insert(field.name.clone(), value);
            }
        }
        Ok(Value::Object(object))
    }

    fn value(&self, kind: &str, wire: &Wire<'_>) -> Result<Value, String> {
        Ok(match kind {
            "string" | "bytes" => String::from_utf8_lossy(wire.bytes()?).into(),
            "bool" => (wire.number()? != 0).into(),
            "int32" | "int64" => wire.number()?.cast_signed().into(),
            kind if self.0.contains_key(kind) => self.view(kind, wire.bytes()?)?,
            _ => wire.number()?.into(),
        })
    }

    /// The bytes with `from` replaced by `to` in every text.
    pub fn rewrite(&self, message: &str, bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
        let (Some(fields), Ok(wires)) = (self.0.get(message), wires(bytes)) else {
            return bytes.to_vec();
        };
        let mut out = Vec::new();
        for (number, wire) in wires {
            let field = fields.get(&number);
            match (wire, field.map(|field| (field.kind.as_str(), field.label))) {
                (Wire::Bytes(text), Some(("string", Label::Plain | Label::Optional))) => {
                    let text = String::from_utf8_lossy(text).replace(from, to);
                    put_bytes(&mut out, number, text.as_bytes());
                }
                (Wire::Bytes(inner), Some((kind, label)))
                    if label != Label::Map && self.0.contains_key(kind) =>
                {
                    let inner = self.rewrite(kind, inner, from, to);
                    put_bytes(&mut out, number, &inner);
                }
                (Wire::Bytes(inner), _) => put_bytes(&mut out, number, inner),
                (Wire::Number(value), _) => {
                    prost::encoding::encode_varint(number << 3, &mut out);
                    prost::encoding::encode_varint(value, &mut out);
                }
            }
        }
        out
    }
}

fn put_bytes(out: &mut Vec<u8>, number: u64, bytes: &[u8]) {
    prost::encoding::encode_varint(number << 3 | 2, out);
    prost::encoding::encode_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

fn is_zero(value: &Value, kind: &str) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Bool(bit) => !bit,
        Value::Number(number) => number.as_i64() == Some(0),
        // An empty map of routes is as good as none; other messages are told apart.
        Value::Object(object) => kind == "ProtoRoutes" && object.is_empty(),
        _ => false,
    }
}

enum Wire<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Wire<'a> {
    fn bytes(&self) -> Result<&'a [u8], String> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            Self::Number(_) => Err("a number where text should be".into()),
        }
    }

    fn number(&self) -> Result<u64, String> {
        match self {
            Self::Number(number) => Ok(*number),
            Self::Bytes(_) => Err("text where a number should be".into()),
        }
    }
}

/// Field numbers with values. The protocol has varints and lengths only.
fn wires(mut bytes: &[u8]) -> Result<Vec<(u64, Wire<'_>)>, String> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes)?;
        let value = varint(&mut bytes)?;
        match tag & 7 {
            0 => found.push((tag >> 3, Wire::Number(value))),
            2 => {
                let (head, tail) = bytes
                    .split_at_checked(value as usize)
                    .ok_or("a length goes beyond the end")?;
                found.push((tag >> 3, Wire::Bytes(head)));
                bytes = tail;
            }
            other => return Err(format!("wire type {other}")),
        }
    }
    Ok(found)
}

fn varint(bytes: &mut &[u8]) -> Result<u64, String> {
    prost::encoding::decode_varint(bytes).map_err(|error| error.to_string())
}

/// Reads messages and their fields; enums are numbers and need no entry.
fn parse(text: &str, messages: &mut HashMap<String, HashMap<u64, Field>>) {
    let mut current = String::new();
    let mut in_enum = false;
    for line in text.lines().map(str::trim) {
        if let Some(rest) = line.strip_prefix("message ") {
            current = rest.split([' ', '{']).next().unwrap().to_owned();
            messages.insert(current.clone(), HashMap::new());
        } else if line.starts_with("enum ") {
            in_enum = true;
        } else if line == "}" && in_enum {
            in_enum = false;
        } else if !in_enum && line.contains(" = ") && line.ends_with(';') {
            let (left, right) = line.split_once(" = ").unwrap();
            let number = right.trim_end_matches(';').split(' ').next().unwrap();
            let Ok(number) = number.parse() else { continue };
            let (kind, name) = left.rsplit_once(' ').unwrap();
            let (label, kind) = if let Some(rest) = kind.strip_prefix("repeated ") {
                (Label::Repeated, rest)
            } else if let Some(rest) = kind.strip_prefix("optional ") {
                (Label::Optional, rest)
            } else if let Some(rest) = kind.strip_prefix("map<string, ") {
                (Label::Map, rest.trim_end_matches('>'))
            } else {
                (Label::Plain, kind)
            };
            // A map of routes is the message itself, as in Go's view.
            let field = Field {
                name: name.into(),
                kind: kind.into(),
                label,
            };
            messages.get_mut(&current).unwrap().insert(number, field);
        }
    }
}
