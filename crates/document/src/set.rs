//! Values of a TOML file that are said beside it.

use toml_edit::{DocumentMut, InlineTable, Item, Key, TableLike, Value};

use crate::Source;

/// Why a value could not be put into a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SetError {
    /// What names the value is no path.
    #[error(
        "set {path}: expected the path of a value, such as defaults.timeout, or steps.0.cpu for the first of a list"
    )]
    Path {
        /// As it was said.
        path: String,
    },
    /// The file is no TOML, so nothing can be put into it.
    #[error("set {path} in {file}: it is not TOML: {why}")]
    File {
        /// As it was said.
        path: String,
        /// The file's name.
        file: String,
        /// Where and why.
        why: String,
    },
    /// The path goes through something that has no parts, or beyond the end of a list.
    #[error("set {path} in {file}: there is no \"{part}\" there; expected {expected}")]
    Nowhere {
        /// As it was said.
        path: String,
        /// The file's name.
        file: String,
        /// The part of the path that leads nowhere.
        part: String,
        /// What could stand in its place.
        expected: String,
    },
}

/// A part of a path that leads nowhere, and what could stand in its place.
struct Nowhere {
    part: String,
    expected: String,
}

impl Source {
    /// Puts a value at a path of a TOML text, such as `services.front.steps.0.cpu`; the rest
    /// stays as it is written. The value is TOML; what is not is taken as a text, so that
    /// `2s` needs no quotes. Tables that are not there are added.
    ///
    /// # Errors
    /// When the text is no TOML, or the path leads through what has no parts.
    pub fn set(&mut self, path: &str, value: &str) -> Result<(), SetError> {
        let keys = Key::parse(path).map_err(|_| SetError::Path { path: path.into() })?;
        let document = self.text.parse::<DocumentMut>();
        let mut document = document.map_err(|error| SetError::File {
            path: path.into(),
            file: self.name.clone(),
            why: error.to_string(),
        })?;
        let value = value.parse().unwrap_or_else(|_| Value::from(value));
        in_table(document.as_table_mut(), &keys, value).map_err(|found| SetError::Nowhere {
            path: path.into(),
            file: self.name.clone(),
            part: found.part,
            expected: found.expected,
        })?;
        self.text = document.to_string();
        Ok(())
    }
}

fn in_table(table: &mut dyn TableLike, path: &[Key], value: Value) -> Result<(), Nowhere> {
    let Some((key, rest)) = path.split_first() else {
        return Ok(());
    };
    match table.get_mut(key) {
        Some(item) if !rest.is_empty() => in_item(item, rest, value),
        Some(item) => {
            let mut value = value;
            // Comments and spaces around it.
            if let Item::Value(before) = item {
                before.decor().clone_into(value.decor_mut());
            }
            *item = Item::Value(value);
            Ok(())
        }
        None => {
            table.insert(key, Item::Value(within(rest, value)));
            Ok(())
        }
    }
}

fn in_item(item: &mut Item, path: &[Key], value: Value) -> Result<(), Nowhere> {
    match item {
        Item::Table(table) => in_table(table, path, value),
        Item::ArrayOfTables(tables) => {
            let Some((key, rest)) = path.split_first() else {
                return Ok(());
            };
            let count = tables.len();
            let table = place(key).and_then(|place| tables.get_mut(place));
            in_table(table.ok_or_else(|| beyond(key, count))?, rest, value)
        }
        Item::Value(within) => in_value(within, path, value),
        Item::None => {
            *item = Item::Value(within(path, value));
            Ok(())
        }
    }
}

fn in_value(within: &mut Value, path: &[Key], value: Value) -> Result<(), Nowhere> {
    let Some((key, rest)) = path.split_first() else {
        *within = value;
        return Ok(());
    };
    match within {
        Value::InlineTable(table) => in_table(table, path, value),
        Value::Array(values) => {
            let count = values.len();
            let found = place(key).and_then(|place| values.get_mut(place));
            in_value(found.ok_or_else(|| beyond(key, count))?, rest, value)
        }
        other => Err(Nowhere {
            part: key.get().to_owned(),
            expected: format!("nothing below {}", other.to_string().trim()),
        }),
    }
}

/// A value in tables of its own, by the rest of its path.
fn within(path: &[Key], value: Value) -> Value {
    path.iter().rev().fold(value, |value, key| {
        let mut table = InlineTable::new();
        table.insert(key.get(), value);
        Value::InlineTable(table)
    })
}

/// A part of a path as the place in a list, counted from 0.
fn place(key: &Key) -> Option<usize> {
    key.get().parse().ok()
}

fn beyond(key: &Key, count: usize) -> Nowhere {
    Nowhere {
        part: key.get().to_owned(),
        expected: match count {
            0 => "an entry in the list: it has none".to_owned(),
            _ => format!("a place in the list, 0 to {}", count - 1),
        },
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Node, parse_toml};

    const TEXT: &str = "\
# A shop.
seed = 1 # the first
[services.front]
steps = [{ cpu = \"1ms\" }, { parallel = [{ call = \"b\" }] }]
[services.front.endpoints.\"/x y\"]
response = \"1B\"
[[background]]
cpu = 0.5
";

    fn source() -> Source {
        Source {
            name: "shop.toml".into(),
            text: TEXT.into(),
        }
    }

    /// The node at a path, whose parts are given.
    fn at(source: &Source, path: &[&str]) -> Option<crate::Value> {
        let mut node: Node = parse_toml(source).unwrap();
        for part in path {
            node = match node.value {
                crate::Value::Table(entries) => {
                    entries.into_iter().find(|one| one.key == *part)?.node
                }
                crate::Value::List(nodes) => nodes.into_iter().nth(part.parse().ok()?)?,
                _ => return None,
            };
        }
        Some(node.value)
    }

    #[test]
    fn values_are_put_where_they_belong() {
        let text = |text: &str| crate::Value::Text(text.into());
        for (path, parts, value, expected) in [
            ("seed", &["seed"][..], "7", crate::Value::Integer(7)),
            (
                "services.front.steps.0.cpu",
                &["services", "front", "steps", "0", "cpu"],
                "2ms",
                text("2ms"),
            ),
            (
                "services.front.steps.1.parallel.0.timeout",
                &[
                    "services", "front", "steps", "1", "parallel", "0", "timeout",
                ],
                "\"1s\"",
                text("1s"),
            ),
            (
                "services.front.endpoints.\"/x y\".response",
                &["services", "front", "endpoints", "/x y", "response"],
                "echo",
                text("echo"),
            ),
            (
                "services.front.faults.delay.by",
                &["services", "front", "faults", "delay", "by"],
                "5ms",
                text("5ms"),
            ),
            (
                "background.0.cpu",
                &["background", "0", "cpu"],
                "0.25",
                crate::Value::Float(0.25),
            ),
            (
                "defaults.timeout",
                &["defaults", "timeout"],
                "2s",
                text("2s"),
            ),
        ] {
            let mut source = source();
            source.set(path, value).unwrap();
            assert_eq!(at(&source, parts), Some(expected), "{}", source.text);
            // What else was there stays, its comments too.
            assert!(source.text.contains("# A shop."), "{}", source.text);
        }
    }

    #[test]
    fn what_leads_nowhere_is_told() {
        for (path, said) in [
            (
                "services..x",
                "set services..x: expected the path of a value",
            ),
            (
                "background.1.cpu",
                "no \"1\" there; expected a place in the list, 0 to 0",
            ),
            ("services.front.steps.first.cpu", "no \"first\" there"),
            ("seed.x", "no \"x\" there; expected nothing below 1"),
        ] {
            let mut source = source();
            let error = source.set(path, "1").unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
            assert_eq!(source.text, TEXT);
        }
        let mut broken = Source {
            name: "x.toml".into(),
            text: "a = ".into(),
        };
        let error = broken.set("a", "1").unwrap_err().to_string();
        assert!(error.contains("set a in x.toml: it is not TOML"), "{error}");
    }

    proptest! {
        /// Whatever is said, the text stays TOML, and what was put there is there.
        #[test]
        fn what_is_set_can_be_read(key in "[a-z]{1,4}(\\.[a-z0-9]{1,3}){0,3}", value in ".{0,12}") {
            let mut source = source();
            if source.set(&key, &value).is_ok() {
                let parts: Vec<&str> = key.split('.').collect();
                prop_assert!(at(&source, &parts).is_some(), "{}", source.text);
            }
        }
    }
}
