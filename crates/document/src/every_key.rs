//! Wrong values for every key of a form of settings. Which keys there are the form says
//! itself: whoever gives a table an unknown key is told the known ones.

use crate::{Problems, Source};

/// A key that no table has, and no key is near to.
const UNKNOWN: &str = "qqqqqqqqqqqq";

/// What no setting is.
const NONSENSE: &str = "[[{}]]";

/// Wrong values by what is expected: of another kind, or out of range.
const WRONG: [(&str, &[&str]); 14] = [
    ("expected a whole number from 0", &["-7", "0.5", "\"7\""]),
    ("expected a whole number, 0", &["-7", "0.5", "true"]),
    ("expected a whole number", &["0.5", "\"7\""]),
    (
        "expected a length of time",
        &["\"-5s\"", "\"5 parsecs\"", "5", "\"\""],
    ),
    ("expected a size", &["\"-1KiB\"", "\"5 stones\"", "5"]),
    (
        "expected an address with a port",
        &["\"127.0.0.1:70000\"", "\"8080\"", "80"],
    ),
    ("expected an address", &["\"300.1.1.1\"", "7"]),
    ("expected true or false", &["\"yes\"", "1"]),
    ("expected one of", &["\"no-such-name\"", "7"]),
    ("expected some of", &["[\"no-such-name\"]"]),
    ("expected a text", &["7", "true"]),
    ("expected the path of a file", &["7", "true"]),
    ("expected a list of texts", &["[7]", "\"one\""]),
    ("expected names with texts", &["{a: 7}", "7"]),
];

/// A form of settings.
pub struct SettingsForm<'a> {
    /// Reads a text; gives its warnings.
    pub read: &'a dyn Fn(&Source) -> Result<Vec<String>, Problems>,
    /// A text that gives the key at a path a value.
    pub write: fn(&[&str], &str) -> String,
    /// Keys, with dots, and values that are right although they look wrong.
    pub right: &'a [(&'a str, &'a str)],
}

impl SettingsForm<'_> {
    /// Gives every key wrong values, each of which must be told with its line and with what
    /// was expected. Says which keys there are.
    pub fn every_key(&self) -> Vec<String> {
        let (mut all, mut wrong) = (Vec::new(), Vec::new());
        self.walk(&mut Vec::new(), &mut all, &mut wrong);
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        all
    }

    fn walk(&self, path: &mut Vec<String>, all: &mut Vec<String>, wrong: &mut Vec<String>) {
        let Some(keys) = self.keys(path) else {
            self.refuse(path, wrong);
            all.push(path.join("."));
            return;
        };
        if !path.is_empty() {
            wrong.extend(self.refused(path, NONSENSE).err());
        }
        for key in keys {
            path.push(key);
            self.walk(path, all, wrong);
            path.pop();
        }
    }

    fn read_with(&self, path: &[String], value: &str) -> Result<Vec<String>, String> {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        let source = Source {
            name: "file".to_owned(),
            text: format!("# a first line\n{}\n", (self.write)(&path, value)),
        };
        (self.read)(&source).map_err(|problems| problems.to_string())
    }

    /// The keys of a table; `None`: it is none.
    fn keys(&self, path: &[String]) -> Option<Vec<String>> {
        let mut path = path.to_vec();
        path.push(UNKNOWN.to_owned());
        let told = self.read_with(&path, "1").err()?;
        let (_, after) = told.split_once(&format!("unknown key \"{UNKNOWN}\""))?;
        let (_, keys) = after.split_once("keys here: ")?;
        let keys = keys.lines().next()?;
        Some(keys.split(", ").map(str::to_owned).collect())
    }

    fn refuse(&self, path: &[String], wrong: &mut Vec<String>) {
        let told = match self.refused(path, NONSENSE) {
            Ok(Some(told)) => told,
            Ok(None) => return,
            Err(found) => return wrong.push(found),
        };
        let kind = WRONG.iter().find(|(expected, _)| told.contains(expected));
        for value in kind.map_or(&[][..], |(_, values)| values) {
            let value = match value.strip_prefix("{a: ") {
                Some(rest) => (self.write)(&["a"], rest.trim_end_matches('}')),
                None => (*value).to_owned(),
            };
            if !self.right.contains(&(&path.join("."), &value)) {
                wrong.extend(self.refused(path, &value).err());
            }
        }
    }

    /// What is told of a wrong value; `None`: the key has no effect, and that is told.
    fn refused(&self, path: &[String], value: &str) -> Result<Option<String>, String> {
        let named = path.join(".");
        match self.read_with(path, value) {
            Ok(warnings) => {
                let ignored = warnings
                    .iter()
                    .any(|one| one.contains("has no effect here"));
                let taken = || format!("{named}: {value} is taken without a word");
                ignored.then_some(None).ok_or_else(taken)
            }
            Err(told) => {
                let first = told.lines().next().unwrap_or_default();
                let whole = first.starts_with("file:2:") && first.contains("expected");
                let lacking = format!("{named} = {value}: no place, or nothing expected: {told}");
                whole.then_some(Some(told)).ok_or(lacking)
            }
        }
    }
}

/// A key of TOML, with dots, and its value.
pub fn toml(path: &[&str], value: &str) -> String {
    format!("{} = {value}", path.join("."))
}

/// The same in YAML, on one line.
pub fn yaml(path: &[&str], value: &str) -> String {
    path.iter()
        .rev()
        .fold(value.to_owned(), |inner, key| format!("{{{key}: {inner}}}"))
}
