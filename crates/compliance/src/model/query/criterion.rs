//! One criterion, ready to be asked of values.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::net::IpAddr;

use regex::Regex;
use serde_json::Value;
use serde_json_path::JsonPath;

use super::super::attributes::{AttributeType, Comparator};
use super::super::property::{Property, text_of};
use super::VALUE_BYTES;
use super::value::{Network, When, full_match, parse_memory, parse_when};

/// What values are compared with.
#[derive(Debug, Clone)]
enum Operand {
    None,
    Text(String),
    AnyCase(String),
    Pattern(Regex),
    Number(i64),
    Memory(i64),
    When(When),
    Network(Network),
    AnyCfengine,
}

/// A comparison with the values of an attribute: does it hold of some value, or of none?
#[derive(Debug, Clone)]
pub(super) struct ValueTest {
    operand: Operand,
    order: fn(Ordering) -> bool,
    negated: bool,
}

/// Does a comparator say that something holds of no value?
fn is_negative(comparator: Comparator) -> bool {
    use Comparator::{NotEq, NotExists, NotRegex};
    matches!(comparator, NotExists | NotEq | NotRegex)
}

/// Checks a value's length, and that it is there where it is needed.
fn check_length(comparator: Comparator, value: &str) -> Result<(), String> {
    let optional = matches!(comparator, Comparator::Exists | Comparator::NotExists);
    if value.is_empty() && !optional {
        return Err(format!("{} needs a value", comparator.name()));
    }
    if value.len() > VALUE_BYTES {
        return Err(format!("the value is longer than {VALUE_BYTES} bytes"));
    }
    Ok(())
}

impl ValueTest {
    /// # Errors
    /// A value that such an attribute cannot be compared with.
    pub(super) fn new(
        kind: AttributeType,
        comparator: Comparator,
        value: &str,
    ) -> Result<Self, String> {
        check_length(comparator, value)?;
        let expected = |what: &str| format!("\"{value}\" is not {what}");
        let operand = match comparator {
            Comparator::Exists | Comparator::NotExists => Operand::None,
            Comparator::Regex | Comparator::NotRegex => Operand::Pattern(full_match(value)?),
            _ => match kind {
                AttributeType::Number => {
                    let number = value.parse();
                    Operand::Number(number.map_err(|_| expected("a whole number"))?)
                }
                AttributeType::Memory => {
                    let bytes = parse_memory(value);
                    Operand::Memory(bytes.ok_or_else(|| expected("a size such as 300 MB"))?)
                }
                AttributeType::Date => {
                    let when = parse_when(value);
                    Operand::When(when.ok_or_else(|| expected("a date such as 2026-05-01"))?)
                }
                AttributeType::Address => {
                    let network = Network::parse(value);
                    Operand::Network(network.ok_or_else(|| expected("an address or network"))?)
                }
                AttributeType::ChoiceAnyCase => Operand::AnyCase(value.to_lowercase()),
                AttributeType::Agent if value.eq_ignore_ascii_case("cfengine") => {
                    Operand::AnyCfengine
                }
                AttributeType::Agent if value.eq_ignore_ascii_case("community") => {
                    Operand::Text("cfengine-community".into())
                }
                _ => Operand::Text(value.to_owned()),
            },
        };
        let order: fn(Ordering) -> bool = match comparator {
            Comparator::Gt => Ordering::is_gt,
            Comparator::Lt => Ordering::is_lt,
            Comparator::GtEq => Ordering::is_ge,
            Comparator::LtEq => Ordering::is_le,
            _ => Ordering::is_eq,
        };
        Ok(Self {
            operand,
            order,
            negated: is_negative(comparator),
        })
    }

    /// What it denies, if it says that something holds of no value.
    pub(super) fn denied(&self) -> Option<Self> {
        self.negated.then(|| Self {
            negated: false,
            ..self.clone()
        })
    }

    /// Asks it of all values of an attribute: `any` says whether a question holds of any.
    pub(super) fn holds(&self, any: impl FnOnce(&mut dyn FnMut(&str) -> bool) -> bool) -> bool {
        any(&mut |value| self.holds_of(value)) != self.negated
    }

    fn holds_of(&self, value: &str) -> bool {
        let order = match &self.operand {
            Operand::None => return true,
            Operand::Pattern(pattern) => return pattern.is_match(value),
            Operand::Network(network) => {
                let address = value.parse::<IpAddr>();
                return address.is_ok_and(|address| network.contains(address));
            }
            Operand::AnyCfengine => {
                return value.starts_with("cfengine") || value.eq_ignore_ascii_case("community");
            }
            Operand::AnyCase(text) => return value.to_lowercase() == *text,
            Operand::Text(text) => Some(value.cmp(text)),
            Operand::Number(number) => value.parse::<i64>().ok().map(|one| one.cmp(number)),
            Operand::Memory(bytes) => parse_memory(value).map(|one| one.cmp(bytes)),
            Operand::When(asked) => parse_when(value).and_then(|one| one.compare(*asked)),
        };
        order.is_some_and(self.order)
    }
}

/// A comparison with keys and values.
#[derive(Debug, Clone)]
pub(super) struct KeyTest {
    question: KeyQuestion,
    negated: bool,
}

#[derive(Debug, Clone)]
enum KeyQuestion {
    Any,
    Has(String),
    Equal(String, String),
    Pattern(Regex),
    Select(String, Box<JsonPath>),
}

impl KeyTest {
    /// # Errors
    /// A value that is no `key=value`, regular expression or JSONPath.
    pub(super) fn new(comparator: Comparator, value: &str) -> Result<Self, String> {
        check_length(comparator, value)?;
        let question = match comparator {
            Comparator::Exists | Comparator::NotExists => KeyQuestion::Any,
            Comparator::Regex | Comparator::NotRegex => KeyQuestion::Pattern(full_match(value)?),
            Comparator::HasKey => KeyQuestion::Has(value.to_owned()),
            Comparator::JsonSelect => {
                let (key, path) = value.split_once(':').unwrap_or((value, ""));
                let path = json_path(path)?;
                KeyQuestion::Select(key.to_owned(), Box::new(path))
            }
            _ => {
                let pair = value.split_once('=');
                let (key, value) = pair.ok_or_else(|| format!("\"{value}\" is not key=value"))?;
                KeyQuestion::Equal(key.to_owned(), value.to_owned())
            }
        };
        Ok(Self {
            question,
            negated: is_negative(comparator),
        })
    }

    /// Asks it of the variables of an environment.
    pub(super) fn holds_of_pairs<'p>(
        &self,
        mut pairs: impl Iterator<Item = (&'p str, &'p str)>,
    ) -> bool {
        pairs.any(|(key, value)| self.asks(key, || value.into(), None)) != self.negated
    }

    /// Asks it of properties.
    pub(super) fn holds_of_properties(&self, properties: &[Property]) -> bool {
        let found = properties.iter().any(|one| {
            let json = &one.value;
            self.asks(&one.name, || text_of(json), Some(json))
        });
        found != self.negated
    }

    fn asks<'v>(
        &self,
        key: &str,
        text: impl FnOnce() -> Cow<'v, str>,
        json: Option<&Value>,
    ) -> bool {
        match &self.question {
            KeyQuestion::Any => true,
            KeyQuestion::Has(asked) => key == asked,
            KeyQuestion::Equal(asked, value) => key == asked && text() == value.as_str(),
            KeyQuestion::Pattern(pattern) => pattern.is_match(&format!("{key}={}", text())),
            // The environment has no JSON, and no such comparator.
            KeyQuestion::Select(asked, path) => {
                key == asked && json.is_some_and(|json| !path.query(json).is_empty())
            }
        }
    }
}

/// Reads a JSONPath. As in Rudder `a.b` means `$.a.b`, an empty path the whole value, and
/// `a.[0]` is `a[0]`.
fn json_path(path: &str) -> Result<JsonPath, String> {
    let path = path.replace(".[", "[");
    let path = match path.chars().next() {
        None => "$".to_owned(),
        Some('$') => path,
        Some('[') => format!("${path}"),
        Some(_) => format!("$.{path}"),
    };
    JsonPath::parse(&path).map_err(|error| format!("the JSONPath {path} cannot be used: {error}"))
}
