//! YAML that is written, as much as manifests need: maps in the order given, lists, texts,
//! numbers.

use std::fmt::Write;

/// A YAML value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Yaml {
    /// A text; also where it looks like something else.
    Text(String),
    /// A whole number.
    Number(i64),
    /// True or false.
    Bool(bool),
    /// Values one after the other; empty: `[]`.
    List(Vec<Yaml>),
    /// Keys and values, in this order; empty: `{}`.
    Map(Vec<(String, Yaml)>),
}

/// A [`Yaml`] value as it reads: `yaml!({ "name": name, "ports": [{ "port": 80 }] })`. What is
/// neither a map, a list, a literal nor a name stands in parentheses.
#[macro_export]
macro_rules! yaml {
    ({ $($key:tt : $value:tt),* $(,)? }) => {
        $crate::Yaml::Map(vec![$(($key.to_owned(), $crate::yaml!($value))),*])
    };
    ([ $($value:tt),* $(,)? ]) => {
        $crate::Yaml::List(vec![$($crate::yaml!($value)),*])
    };
    ($value:expr) => {
        $crate::Yaml::from($value)
    };
}

/// A list of texts.
pub fn texts<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> Yaml {
    Yaml::List(texts.into_iter().map(|text| text.as_ref().into()).collect())
}

impl From<&str> for Yaml {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Yaml {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<bool> for Yaml {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<u32> for Yaml {
    fn from(value: u32) -> Self {
        Self::Number(value.into())
    }
}

impl Yaml {
    /// A map with one more entry, the last. Anything else stays as it is.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Self>) -> Self {
        if let Self::Map(entries) = &mut self {
            entries.push((key.to_owned(), value.into()));
        }
        self
    }

    /// The value as a document, with a line end.
    pub fn document(&self) -> String {
        let mut out = String::new();
        self.write(0, &mut out);
        out
    }

    /// Writes the value at the cursor, its further lines indented by `indent`, and
    /// ends the last line.
    fn write(&self, indent: usize, out: &mut String) {
        match self {
            Self::Map(entries) if !entries.is_empty() => {
                for (index, (key, value)) in entries.iter().enumerate() {
                    if index > 0 {
                        pad(indent, out);
                    }
                    scalar(key, out);
                    out.push(':');
                    if value.is_block() {
                        out.push('\n');
                        pad(indent + 2, out);
                        value.write(indent + 2, out);
                    } else {
                        out.push(' ');
                        value.write(indent, out);
                    }
                }
            }
            Self::List(values) if !values.is_empty() => {
                for (index, value) in values.iter().enumerate() {
                    if index > 0 {
                        pad(indent, out);
                    }
                    out.push_str("- ");
                    value.write(indent + 2, out);
                }
            }
            Self::Map(_) => out.push_str("{}\n"),
            Self::List(_) => out.push_str("[]\n"),
            Self::Text(text) if is_lines(text) => lines(text, indent + 2, out),
            Self::Text(text) => {
                scalar(text, out);
                out.push('\n');
            }
            Self::Number(number) => line(number, out),
            Self::Bool(value) => line(value, out),
        }
    }

    /// Whether it takes lines of its own.
    fn is_block(&self) -> bool {
        match self {
            Self::Map(entries) => !entries.is_empty(),
            Self::List(values) => !values.is_empty(),
            Self::Text(_) | Self::Number(_) | Self::Bool(_) => false,
        }
    }
}

fn pad(indent: usize, out: &mut String) {
    out.extend(std::iter::repeat_n(' ', indent));
}

fn line(value: impl std::fmt::Display, out: &mut String) {
    // Writing to a String cannot fail.
    let _ = writeln!(out, "{value}");
}

/// Whether a text can stand as it is, line by line: people read and edit it so. Its last
/// line ends, none before the first letter could be taken for its indentation, and no
/// character is another one to a reader.
fn is_lines(text: &str) -> bool {
    let plain = |char: char| {
        let special = "\u{85}\u{2028}\u{2029}\u{feff}\u{fffe}\u{ffff}";
        char == '\n' || !char.is_control() && !special.contains(char)
    };
    text.ends_with('\n')
        && !text.ends_with("\n\n")
        && !text.starts_with([' ', '\n'])
        && text.chars().all(plain)
}

fn lines(text: &str, indent: usize, out: &mut String) {
    out.push_str("|\n");
    for line in text.lines() {
        if !line.is_empty() {
            pad(indent, out);
            out.push_str(line);
        }
        out.push('\n');
    }
}

/// A text without quotes where nothing could take it for anything else, in double
/// quotes otherwise.
fn scalar(text: &str, out: &mut String) {
    if is_plain(text) {
        out.push_str(text);
        return;
    }
    out.push('"');
    for char in text.chars() {
        let code = u32::from(char);
        let _ = match char {
            '"' | '\\' => write!(out, "\\{char}"),
            '\n' => write!(out, "\\n"),
            '\t' => write!(out, "\\t"),
            '\r' => write!(out, "\\r"),
            // Line ends of Unicode, the byte order mark and whatever is no character.
            '\u{85}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => {
                write!(out, "\\u{code:04x}")
            }
            char if char.is_control() => write!(out, "\\u{code:04x}"),
            char => write!(out, "{char}"),
        };
    }
    out.push('"');
}

fn is_plain(text: &str) -> bool {
    const WORDS: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let inner =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'/');
    text.as_bytes().first().is_some_and(u8::is_ascii_alphabetic)
        && text.bytes().all(inner)
        && !WORDS.contains(&text.to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use saphyr::{LoadableYamlNode, Yaml as Read};

    use super::*;

    fn read(text: &str) -> Yaml {
        let read = Read::load_from_str(text).unwrap();
        assert_eq!(read.len(), 1, "{text}");
        found(&read[0])
    }

    fn found(yaml: &Read) -> Yaml {
        if let Some(text) = yaml.as_str() {
            return text.into();
        }
        if let Some(number) = yaml.as_integer() {
            return Yaml::Number(number);
        }
        if let Some(value) = yaml.as_bool() {
            return value.into();
        }
        if let Some(values) = yaml.as_sequence() {
            return Yaml::List(values.iter().map(found).collect());
        }
        let entries = yaml.as_mapping().unwrap_or_else(|| panic!("{yaml:?}"));
        let entry = |(key, value): (&Read, &Read)| (key.as_str().unwrap().to_owned(), found(value));
        Yaml::Map(entries.iter().map(entry).collect())
    }

    #[test]
    fn lines_stand_as_they_are() {
        let value = yaml!({ "data": { "file": "a = 1\n\n[b]\n  c = \"x\"\n" } });
        let expected = "data:\n  file: |\n    a = 1\n\n    [b]\n      c = \"x\"\n";
        assert_eq!(value.document(), expected);
    }

    #[test]
    fn yaml_is_written_as_people_write_it() {
        let value = yaml!({
            "kind": "Job",
            "list": [{ "a": 1, "b": "yes" }, "x y"],
            "empty": [],
        });
        let expected = "\
kind: Job
list:
  - a: 1
    b: \"yes\"
  - \"x y\"
empty: []
";
        assert_eq!(value.document(), expected);
        assert_eq!(
            value.clone().with("c", 2).document(),
            format!("{expected}c: 2\n")
        );
    }

    fn values() -> impl Strategy<Value = Yaml> {
        let text = prop_oneof![
            any::<String>(),
            "[ -~]{0,12}",
            prop::sample::select(vec![
                "yes",
                "No",
                "null",
                "~",
                "1",
                "1e3",
                "0x1",
                "- a",
                "a: b",
                "#",
                "",
                ".nan",
                "2001-01-01",
                "|",
                ">",
                "&a",
                "*a",
                "!t",
                "%",
                "@",
                "`"
            ])
            .prop_map(str::to_owned),
        ];
        let leaf = prop_oneof![
            text.clone().prop_map(Yaml::Text),
            any::<i64>().prop_map(Yaml::Number),
            any::<bool>().prop_map(Yaml::Bool),
        ];
        leaf.prop_recursive(4, 40, 5, move |inner| {
            let entries = proptest::collection::btree_map(text.clone(), inner.clone(), 0..5);
            prop_oneof![
                proptest::collection::vec(inner, 0..5).prop_map(Yaml::List),
                entries.prop_map(|entries| Yaml::Map(entries.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn whatever_is_written_is_read_as_it_was_meant(value in values()) {
            let text = value.document();
            prop_assert_eq!(read(&text), value, "{}", text);
        }

        #[test]
        fn lines_are_read_as_they_were_meant(text in "([ a-c:#|\\t\u{85}é-]{0,5}\n){0,4}[ab]{0,1}") {
            let value = yaml!({ "list": [{ "text": (text.as_str()), "more": 1 }] });
            prop_assert_eq!(read(&value.document()), value);
        }
    }
}
