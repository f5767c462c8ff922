//! One description of settings, for reading them and for printing them.

mod files;
mod foreign;
mod printed;

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::kind::{Kind, Size};
use crate::{Entry, Node, Problem, Problems, Source, Span, Value};

/// Walks over settings. A description calls a method for each setting, in order; the form
/// either fills the setting from the file or prints it.
///
/// ```text
/// fn describe(form: &mut Form<'_>, settings: &mut Settings) {
///     form.value("listen", "Where connections are accepted.", &mut settings.listen);
///     form.section("limits", "Bounds.", |form| {
///         form.size("head", "Bytes of a head.", &mut settings.head);
///     });
/// }
/// ```
pub struct Form<'a> {
    mode: Mode<'a>,
    problems: Vec<Problem>,
    warnings: Vec<Problem>,
    /// Files that settings name are looked up here.
    folder: PathBuf,
    /// The text of a file that another program defined.
    foreign: Option<&'a str>,
}

enum Mode<'a> {
    Read(Vec<Open<'a>>),
    Print { text: String, path: Vec<String> },
}

/// A table that is being read.
struct Open<'a> {
    entries: &'a [Entry],
    known: Vec<&'static str>,
}

impl<'a> Form<'a> {
    /// Reads a tree. Files that it names are looked up from `folder` on.
    pub fn reading(root: &'a Node, folder: &Path) -> Self {
        let entries: &[Entry] = match &root.value {
            Value::Table(entries) => entries,
            _ => &[],
        };
        let open = Open {
            entries,
            known: Vec::new(),
        };
        Self {
            mode: Mode::Read(vec![open]),
            problems: Vec::new(),
            warnings: Vec::new(),
            folder: folder.to_path_buf(),
            foreign: None,
        }
    }

    /// Reads a tree of YAML that was written for another program: scalars are coerced as
    /// there, and unknown keys are named in warnings, since that program does not look at
    /// them either.
    pub fn reading_foreign(root: &'a Node, source: &'a Source, folder: &Path) -> Self {
        Self {
            foreign: Some(&source.text),
            ..Self::reading(root, folder)
        }
    }

    /// Prints TOML that reads back to the same.
    pub fn printing() -> Self {
        Self {
            mode: Mode::Print {
                text: String::new(),
                path: Vec::new(),
            },
            problems: Vec::new(),
            warnings: Vec::new(),
            folder: PathBuf::new(),
            foreign: None,
        }
    }

    /// Ends the reading: warnings, as text, or every problem.
    ///
    /// # Errors
    /// When anything was wrong.
    pub fn finish(mut self, source: &Source) -> Result<Vec<String>, Problems> {
        self.close();
        self.warnings.sort_by_key(|one| one.span.start);
        let mut warnings = self.warnings.iter().map(|one| source.show(one));
        if self.problems.is_empty() {
            return Ok(warnings.collect());
        }
        let mut problems = Problems::of(source, self.problems);
        // A key that is missing may stand there with a slip in its name.
        problems
            .0
            .extend(warnings.by_ref().map(|one| format!("warning: {one}")));
        Err(problems)
    }

    /// Ends the printing.
    pub fn into_text(self) -> String {
        match self.mode {
            Mode::Print { text, .. } => text,
            Mode::Read(_) => String::new(),
        }
    }

    /// A setting.
    pub fn value<T: Kind>(&mut self, key: &'static str, about: &str, into: &mut T) {
        match self.find(key) {
            Found::Node(node) => {
                let foreign = self.foreign;
                let coerced = || foreign.and_then(|text| foreign::coerced(node, text));
                match T::of(node).or_else(|problem| coerced().ok_or(problem)) {
                    Ok(value) => *into = value,
                    Err(problem) => self.problems.push(problem),
                }
            }
            Found::Nothing => {}
            Found::Printing => self.print(key, about, &into.write(), T::EXAMPLE),
        }
    }

    /// A setting with bounds.
    pub fn within<T: Kind + PartialOrd + std::fmt::Display>(
        &mut self,
        key: &'static str,
        about: &str,
        range: RangeInclusive<T>,
        into: &mut T,
    ) {
        self.value(key, about, into);
        if let (Some(span), false) = (self.span(key), range.contains(into)) {
            let (least, most) = (range.start(), range.end());
            let message = format!("expected a number from {least} to {most}, found {into}");
            self.problems.push(Problem::new(span, message));
        }
    }

    /// A size in bytes.
    pub fn size(&mut self, key: &'static str, about: &str, into: &mut usize) {
        let mut size = Size(*into);
        self.value(key, about, &mut size);
        *into = size.0;
    }

    /// A length of time above zero: a wait of nothing would fail whatever waits.
    pub fn time(&mut self, key: &'static str, about: &str, into: &mut Duration) {
        self.value(key, about, into);
        if into.is_zero() {
            self.wrong(key, "expected a length of time above 0, found 0");
        }
    }

    /// A setting with named values.
    pub fn choice<T: Clone + PartialEq>(
        &mut self,
        key: &'static str,
        about: &str,
        choices: &[(&str, T)],
        into: &mut T,
    ) {
        let names = || choices.iter().map(|(name, _)| *name);
        let listed = names().collect::<Vec<_>>().join(", ");
        match self.find(key) {
            Found::Node(node) => {
                let found = match &node.value {
                    Value::Text(text) => choices.iter().find(|(name, _)| name == text),
                    _ => None,
                };
                if let Some((_, value)) = found {
                    *into = value.clone();
                    return;
                }
                let mut problem =
                    Problem::new(node.span.clone(), format!("expected one of {listed}"));
                if let Value::Text(text) = &node.value {
                    problem.message += &format!(", found \"{text}\"");
                    problem = problem.suggest_near(text, names());
                }
                self.problems.push(problem);
            }
            Found::Nothing => {}
            Found::Printing => {
                let name = choices.iter().find(|(_, value)| value == into);
                let text = name
                    .map(|(name, _)| format!("\"{name}\""))
                    .unwrap_or_default();
                let about = format!("{about} One of: {listed}.");
                self.print(key, &about, &text, "\"\"");
            }
        }
    }

    /// A list of named values.
    pub fn choices<T: Clone + PartialEq>(
        &mut self,
        key: &'static str,
        about: &str,
        choices: &[(&str, T)],
        into: &mut Vec<T>,
    ) {
        let name_of = |value: &T| choices.iter().find(|(_, other)| other == value);
        let listed = choices.iter().map(|(name, _)| *name).collect::<Vec<_>>();
        let listed = listed.join(", ");
        let mut names: Vec<String> = into
            .iter()
            .filter_map(|value| name_of(value).map(|(name, _)| (*name).to_owned()))
            .collect();
        self.value(key, &format!("{about} Of: {listed}."), &mut names);
        let Some(span) = self.span(key) else { return };
        into.clear();
        for name in names {
            match choices.iter().find(|(known, _)| *known == name) {
                Some((_, value)) => into.push(value.clone()),
                None => {
                    let message = format!("expected some of {listed}, found \"{name}\"");
                    let problem = Problem::new(span.clone(), message);
                    let names = choices.iter().map(|(name, _)| *name);
                    self.problems.push(problem.suggest_near(&name, names));
                }
            }
        }
    }

    /// A table of settings.
    pub fn section(&mut self, key: &'static str, about: &str, visit: impl FnOnce(&mut Self)) {
        match self.find(key) {
            Found::Printing => {
                self.open_printed(key, about, false);
                visit(self);
                self.close_printed();
            }
            Found::Node(node) => {
                if let Some(entries) = self.table(node) {
                    self.open(entries);
                    visit(self);
                    self.close();
                }
            }
            Found::Nothing => {}
        }
    }

    /// A table whose presence means something: `into` is `None` without it.
    pub fn optional<T: Default>(
        &mut self,
        key: &'static str,
        about: &str,
        into: &mut Option<T>,
        visit: impl FnOnce(&mut Self, &mut T),
    ) {
        match self.find(key) {
            Found::Node(_) => {
                let mut value = into.take().unwrap_or_default();
                self.section(key, about, |form| visit(form, &mut value));
                *into = Some(value);
            }
            Found::Printing => match into {
                Some(value) => self.section(key, about, |form| visit(form, value)),
                None => self.print_absent(key, about, visit),
            },
            Found::Nothing => {}
        }
    }

    /// A list of tables. Not printed.
    pub fn tables<T: Default>(
        &mut self,
        key: &'static str,
        into: &mut Vec<T>,
        mut visit: impl FnMut(&mut Self, &mut T),
    ) {
        let Found::Node(node) = self.find(key) else {
            return;
        };
        let nodes = match &node.value {
            Value::List(nodes) => nodes.as_slice(),
            Value::Table(_) => std::slice::from_ref(node),
            other => {
                let message = format!("expected a list of tables, found {}", other.what());
                self.problems.push(Problem::new(node.span.clone(), message));
                return;
            }
        };
        into.clear();
        for node in nodes {
            let Some(entries) = self.table(node) else {
                continue;
            };
            let mut value = T::default();
            self.open(entries);
            visit(self, &mut value);
            self.close();
            into.push(value);
        }
    }

    /// Keys that are known, and have no effect here: each is named in a warning that says
    /// why, and nothing more is looked at.
    pub fn ignored(&mut self, keys: &[(&'static str, &str)]) {
        for (key, why) in keys {
            if let (Found::Node(_), Some(span)) = (self.find(key), self.key_span(key)) {
                let message = format!("\"{key}\" has no effect here: {why}");
                self.warnings.push(Problem::new(span, message));
            }
        }
    }

    /// Says that a value is wrong, if it was in the file.
    pub fn wrong(&mut self, key: &str, message: impl Into<String>) {
        if let Some(span) = self.span(key) {
            self.problems.push(Problem::new(span, message));
        }
    }

    /// Says that a value has no or another effect here, if it was in the file.
    pub fn warn(&mut self, key: &str, message: impl Into<String>) {
        if let Some(span) = self.span(key) {
            self.warnings.push(Problem::new(span, message));
        }
    }

    /// Whether the file has this key in the table that is being read.
    pub fn has(&self, key: &str) -> bool {
        self.span(key).is_some()
    }

    /// The value of a key in the table that is being read, which becomes known.
    pub fn node(&mut self, key: &'static str) -> Option<&'a Node> {
        match self.find(key) {
            Found::Node(node) => Some(node),
            _ => None,
        }
    }

    fn entry(&self, key: &str) -> Option<&'a Entry> {
        match &self.mode {
            Mode::Read(tables) => tables.last()?.entries.iter().find(|entry| entry.key == key),
            Mode::Print { .. } => None,
        }
    }

    fn span(&self, key: &str) -> Option<Span> {
        self.entry(key).map(|entry| entry.node.span.clone())
    }

    fn key_span(&self, key: &str) -> Option<Span> {
        self.entry(key).map(|entry| entry.key_span.clone())
    }

    fn find(&mut self, key: &'static str) -> Found<'a> {
        let entry = self.entry(key);
        match &mut self.mode {
            Mode::Print { .. } => Found::Printing,
            Mode::Read(tables) => {
                if let Some(table) = tables.last_mut()
                    && !table.known.contains(&key)
                {
                    table.known.push(key);
                }
                match entry {
                    // YAML's `key:` without a value says nothing.
                    Some(entry) if entry.node.value != Value::Null => Found::Node(&entry.node),
                    _ => Found::Nothing,
                }
            }
        }
    }

    fn table(&mut self, node: &'a Node) -> Option<&'a [Entry]> {
        match &node.value {
            Value::Table(entries) => Some(entries),
            other => {
                let message = format!("expected a table, found {}", other.what());
                self.problems.push(Problem::new(node.span.clone(), message));
                None
            }
        }
    }

    fn open(&mut self, entries: &'a [Entry]) {
        if let Mode::Read(tables) = &mut self.mode {
            tables.push(Open {
                entries,
                known: Vec::new(),
            });
        }
    }

    /// Ends a table: what nobody asked for is unknown.
    fn close(&mut self) {
        let Mode::Read(tables) = &mut self.mode else {
            return;
        };
        let Some(table) = tables.pop() else { return };
        for entry in table.entries {
            if table.known.contains(&entry.key.as_str()) {
                continue;
            }
            let message = format!("unknown key \"{}\"", entry.key);
            let known = table.known.iter().copied();
            if self.foreign.is_some() {
                let ignored = Problem::new(entry.key_span.clone(), message + " has no effect here");
                self.warnings.push(ignored.suggest_near(&entry.key, known));
                continue;
            }
            let problem = Problem::new(entry.key_span.clone(), message);
            self.problems
                .push(problem.suggest_from(&entry.key, "keys here", known));
        }
    }
}

enum Found<'a> {
    Node(&'a Node),
    Nothing,
    Printing,
}
