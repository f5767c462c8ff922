//! How OTLP's JSON form differs from what Serde makes of the messages.

use serde::de::Deserializer;
use serde::{Deserialize, Serialize};

use super::message;
pub(super) use crate::lenient::some;

/// A number that may be written as a text.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "expected a whole number, or a text that holds one"
)]
enum Lenient<N> {
    Number(N),
    Text(String),
}

/// Ids, as hexadecimal digits; Tempo has them as protobuf's JSON has bytes, in base64.
pub(super) mod hex {
    use std::fmt::{self, Formatter};

    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde::de::{Deserializer, Error, Visitor};
    use serde::ser::Serializer;

    /// What stands for a value that is no id: no id is as short, so who reads spans refuses it.
    const BROKEN: [u8; 1] = [0];

    pub(in super::super) fn serialize<S: Serializer>(
        id: &[u8],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let text: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        serializer.serialize_str(&text)
    }

    /// A broken id costs its span, and no other of the body.
    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<u8>, D::Error> {
        deserializer.deserialize_any(Id)
    }

    struct Id;

    impl Visitor<'_> for Id {
        type Value = Vec<u8>;

        fn expecting(&self, text: &mut Formatter<'_>) -> fmt::Result {
            text.write_str("an id in hexadecimal digits")
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<Vec<u8>, E> {
            Ok(bytes(text.as_bytes()).unwrap_or_else(|| BROKEN.to_vec()))
        }

        fn visit_unit<E: Error>(self) -> Result<Vec<u8>, E> {
            Ok(Vec::new())
        }

        fn visit_u64<E: Error>(self, _: u64) -> Result<Vec<u8>, E> {
            Ok(BROKEN.to_vec())
        }

        fn visit_i64<E: Error>(self, _: i64) -> Result<Vec<u8>, E> {
            Ok(BROKEN.to_vec())
        }

        fn visit_f64<E: Error>(self, _: f64) -> Result<Vec<u8>, E> {
            Ok(BROKEN.to_vec())
        }
    }

    fn bytes(digits: &[u8]) -> Option<Vec<u8>> {
        // Neither 8 bytes nor 16 are a multiple of three: their base64 always has this end.
        if digits.ends_with(b"=") {
            return STANDARD.decode(digits).ok();
        }
        // Ids are 16 bytes at most; the reader checks how many there are.
        if !digits.len().is_multiple_of(2) || digits.len() > 32 {
            return None;
        }
        let pairs = digits.chunks_exact(2).map(|pair| {
            let byte = crate::hex::read(pair)?;
            u8::try_from(byte).ok()
        });
        pairs.collect()
    }
}

/// Numbers of 64 bits, which JSON's readers may not hold: as texts.
pub(super) mod number {
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::de::{Deserialize, Deserializer, Error};
    use serde::ser::Serializer;

    use super::Lenient;

    pub(in super::super) fn serialize<S: Serializer, N: Display>(
        number: &N,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(number)
    }

    pub(in super::super) fn deserialize<'de, D, N>(deserializer: D) -> Result<N, D::Error>
    where
        D: Deserializer<'de>,
        N: Deserialize<'de> + FromStr + Default,
    {
        match Option::deserialize(deserializer)? {
            None => Ok(N::default()),
            Some(Lenient::Number(number)) => Ok(number),
            Some(Lenient::Text(text)) => text
                .parse()
                .map_err(|_| D::Error::custom(format!("{text:?} is not a number of 64 bits"))),
        }
    }
}

/// The kind of a span: a number, or its name as some writers have it.
pub(super) fn kind<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i32, D::Error> {
    let names = [
        "UNSPECIFIED",
        "INTERNAL",
        "SERVER",
        "CLIENT",
        "PRODUCER",
        "CONSUMER",
    ];
    enumeration(deserializer, "SPAN_KIND_", &names)
}

/// The code of a status, likewise.
pub(super) fn code<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i32, D::Error> {
    enumeration(deserializer, "STATUS_CODE_", &["UNSET", "OK", "ERROR"])
}

fn enumeration<'de, D: Deserializer<'de>>(
    deserializer: D,
    prefix: &str,
    names: &[&str],
) -> Result<i32, D::Error> {
    Ok(match Option::deserialize(deserializer)? {
        None => 0,
        Some(Lenient::Number(number)) => number,
        // A name that is not known counts as unspecified, as in protobuf.
        Some(Lenient::Text(text)) => {
            let name = text.strip_prefix(prefix).unwrap_or(&text);
            let place = names.iter().position(|known| *known == name);
            place.map_or(0, |place| place as i32)
        }
    })
}

/// The value of an attribute: one of these.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct AnyValue {
    #[serde(skip_serializing_if = "Option::is_none")]
    string_value: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bool_value: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    int_value: Option<Int>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(transparent)]
struct Int(#[serde(with = "number")] i64);

impl From<AnyValue> for message::AnyValue {
    fn from(value: AnyValue) -> Self {
        use message::Value::{Bool, Int, Text};
        let text = value.string_value.map(Text);
        let value = text
            .or(value.bool_value.map(Bool))
            .or(value.int_value.map(|int| Int(int.0)));
        Self { value }
    }
}

impl From<message::AnyValue> for AnyValue {
    fn from(value: message::AnyValue) -> Self {
        let mut json = Self::default();
        match value.value {
            Some(message::Value::Text(text)) => json.string_value = Some(text),
            Some(message::Value::Bool(yes)) => json.bool_value = Some(yes),
            Some(message::Value::Int(int)) => json.int_value = Some(Int(int)),
            None => {}
        }
        json
    }
}
