//! Kinds of values: how each is read from a node, and how TOML writes it.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use crate::{Node, Problem, Value};

/// A kind of value.
pub trait Kind: Sized {
    /// What is expected, with an example: `a length of time such as "30s"`.
    const EXPECTED: &'static str;
    /// A value as TOML, for settings that have none.
    const EXAMPLE: &'static str;

    /// The value of a node; `None` when the node is of another kind.
    fn read(value: &Value) -> Option<Self>;

    /// The value as TOML.
    fn write(&self) -> String;

    /// The value of a node, or what is wrong with it.
    ///
    /// # Errors
    /// When it is of another kind.
    fn of(node: &Node) -> Result<Self, Problem> {
        Self::read(&node.value).ok_or_else(|| {
            let found = match &node.value {
                Value::Text(text) => format!("\"{}\"", short(text)),
                Value::Integer(number) => number.to_string(),
                Value::Float(number) => number.to_string(),
                Value::Bool(value) => value.to_string(),
                other => other.what().to_owned(),
            };
            let message = format!("expected {}, found {found}", Self::EXPECTED);
            Problem::new(node.span.clone(), message)
        })
    }
}

/// A text cut to what fits a message.
fn short(text: &str) -> String {
    const MOST: usize = 60;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A text in quotes, on one line, as TOML takes it for a value and for a key. JSON escapes
/// the same characters in the same way, but for one.
fn quoted(text: &str) -> String {
    // A text always is JSON.
    let json = serde_json::to_string(text).unwrap_or_default();
    json.replace('\u{7f}', "\\u007f")
}

impl Kind for bool {
    const EXPECTED: &'static str = "true or false";
    const EXAMPLE: &'static str = "false";

    fn read(value: &Value) -> Option<Self> {
        match value {
            Value::Bool(value) => Some(*value),
            _ => None,
        }
    }

    fn write(&self) -> String {
        self.to_string()
    }
}

macro_rules! whole_number {
    ($kind:ty, $expected:literal) => {
        impl Kind for $kind {
            const EXPECTED: &'static str = $expected;
            const EXAMPLE: &'static str = "1";

            fn read(value: &Value) -> Option<Self> {
                match value {
                    Value::Integer(number) => Self::try_from(*number).ok(),
                    _ => None,
                }
            }

            fn write(&self) -> String {
                self.to_string()
            }
        }
    };
}

whole_number!(u16, "a whole number from 0 to 65535");
whole_number!(u32, "a whole number from 0 to 4294967295");
whole_number!(usize, "a whole number, 0 or more");
whole_number!(i64, "a whole number");

impl Kind for String {
    const EXPECTED: &'static str = "a text";
    const EXAMPLE: &'static str = "\"text\"";

    fn read(value: &Value) -> Option<Self> {
        match value {
            Value::Text(text) => Some(text.clone()),
            _ => None,
        }
    }

    fn write(&self) -> String {
        quoted(self)
    }
}

impl Kind for PathBuf {
    const EXPECTED: &'static str = "the path of a file";
    const EXAMPLE: &'static str = "\"path/of/file\"";

    fn read(value: &Value) -> Option<Self> {
        match value {
            Value::Text(text) if !text.is_empty() => Some(text.into()),
            _ => None,
        }
    }

    fn write(&self) -> String {
        quoted(&self.to_string_lossy())
    }
}

impl Kind for Duration {
    const EXPECTED: &'static str = "a length of time such as \"30s\" or \"1m30s\"";
    const EXAMPLE: &'static str = "\"30s\"";

    fn read(value: &Value) -> Option<Self> {
        match value {
            Value::Text(text) => units::parse_duration(text)
                .ok()
                .or_else(|| parse_go_duration(text)),
            _ => None,
        }
    }

    fn write(&self) -> String {
        quoted(&units::write_duration(*self))
    }
}

/// A length of time as Go writes it: numbers with units `ns us µs ms s m h`, in any order,
/// or `0`. `None` for other texts, negative lengths, and more than 584 years.
pub fn parse_go_duration(text: &str) -> Option<Duration> {
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    match rest {
        "0" => return Some(Duration::ZERO),
        "" => return None,
        _ => {}
    }
    let mut nanos = 0_f64;
    while !rest.is_empty() {
        let number_end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..number_end].parse().ok()?;
        rest = &rest[number_end..];
        let unit_end = rest
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(rest.len());
        nanos += number
            * match &rest[..unit_end] {
                "ns" => 1.0,
                "us" | "µs" | "μs" => 1e3,
                "ms" => 1e6,
                "s" => 1e9,
                "m" => 6e10,
                "h" => 3.6e12,
                _ => return None,
            };
        rest = &rest[unit_end..];
    }
    (nanos < u64::MAX as f64).then(|| Duration::from_nanos(nanos.round() as u64))
}

macro_rules! parsed_text {
    ($kind:ty, $expected:literal, $example:literal) => {
        impl Kind for $kind {
            const EXPECTED: &'static str = $expected;
            const EXAMPLE: &'static str = $example;

            fn read(value: &Value) -> Option<Self> {
                match value {
                    Value::Text(text) => text.parse().ok(),
                    _ => None,
                }
            }

            fn write(&self) -> String {
                quoted(&self.to_string())
            }
        }
    };
}

parsed_text!(
    SocketAddr,
    "an address with a port such as \"127.0.0.1:8081\"",
    "\"127.0.0.1:8081\""
);
parsed_text!(
    IpAddr,
    "an IP address such as \"10.0.0.7\"",
    "\"127.0.0.1\""
);

impl Kind for Vec<String> {
    const EXPECTED: &'static str = "a list of texts such as [\"a\", \"b\"]";
    const EXAMPLE: &'static str = "[]";

    fn read(value: &Value) -> Option<Self> {
        match value {
            Value::List(nodes) => nodes.iter().map(|node| String::read(&node.value)).collect(),
            _ => None,
        }
    }

    fn write(&self) -> String {
        let texts: Vec<String> = self.iter().map(|text| quoted(text)).collect();
        format!("[{}]", texts.join(", "))
    }
}

impl Kind for Vec<(String, String)> {
    const EXPECTED: &'static str = "names with texts such as { X-Frame-Options = \"DENY\" }";
    const EXAMPLE: &'static str = "{}";

    fn read(value: &Value) -> Option<Self> {
        match value {
            Value::Table(entries) => entries
                .iter()
                .map(|entry| Some((entry.key.clone(), String::read(&entry.node.value)?)))
                .collect(),
            _ => None,
        }
    }

    fn write(&self) -> String {
        let pairs: Vec<String> = self
            .iter()
            .map(|(name, text)| format!("{} = {}", quoted(name), quoted(text)))
            .collect();
        match pairs.is_empty() {
            true => "{}".to_owned(),
            false => format!("{{ {} }}", pairs.join(", ")),
        }
    }
}

/// An empty text is none, so that what is there by default can be switched off.
impl<T: Kind> Kind for Option<T> {
    const EXPECTED: &'static str = T::EXPECTED;
    const EXAMPLE: &'static str = T::EXAMPLE;

    fn read(value: &Value) -> Option<Self> {
        match value {
            Value::Text(text) if text.is_empty() => Some(None),
            value => T::read(value).map(Some),
        }
    }

    fn write(&self) -> String {
        self.as_ref().map_or_else(|| "\"\"".to_owned(), T::write)
    }
}

/// A size in bytes, written with its unit: `"64KiB"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size(pub(super) usize);

impl Kind for Size {
    const EXPECTED: &'static str = "a size such as \"64KiB\" or \"1MiB\"";
    const EXAMPLE: &'static str = "\"64KiB\"";

    fn read(value: &Value) -> Option<Self> {
        match value {
            Value::Text(text) => {
                let bytes = units::parse_bytes(text).ok()?;
                usize::try_from(bytes).ok().map(Self)
            }
            _ => None,
        }
    }

    fn write(&self) -> String {
        quoted(&units::write_bytes(self.0 as u64))
    }
}
