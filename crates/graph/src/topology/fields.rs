//! One table that is being read: whatever nobody asks for is an unknown key.

use document::{Entry, Node, Problem, Value};

/// What was read; a problem is noted, and it is as if nothing had been there.
pub(super) fn noted<T>(read: Result<T, Problem>, problems: &mut Vec<Problem>) -> Option<T> {
    read.map_err(|problem| problems.push(problem)).ok()
}

/// The keys of a table.
pub(super) struct Fields<'a> {
    entries: &'a [Entry],
    known: Vec<&'static str>,
}

impl<'a> Fields<'a> {
    /// Those of a node; `None`: it is no table, which is noted.
    pub(super) fn of(node: &'a Node, problems: &mut Vec<Problem>) -> Option<Self> {
        let Value::Table(entries) = &node.value else {
            let message = format!("expected a table, found {}", node.value.what());
            problems.push(Problem::new(node.span.clone(), message));
            return None;
        };
        Some(Self {
            entries,
            known: Vec::new(),
        })
    }

    /// The entry of a key, which becomes known. YAML's `key:` without a value says nothing.
    pub(super) fn entry(&mut self, key: &'static str) -> Option<&'a Entry> {
        if !self.known.contains(&key) {
            self.known.push(key);
        }
        let mut entries = self.entries.iter();
        entries.find(|entry| entry.key == key && entry.node.value != Value::Null)
    }

    /// The value of a key, which becomes known.
    pub(super) fn node(&mut self, key: &'static str) -> Option<&'a Node> {
        self.entry(key).map(|entry| &entry.node)
    }

    /// Reads the value of a key; a problem is noted, and the key is as if it were not there.
    pub(super) fn read<T>(
        &mut self,
        key: &'static str,
        problems: &mut Vec<Problem>,
        read: impl FnOnce(&'a Node) -> Result<T, Problem>,
    ) -> Option<T> {
        noted(read(self.node(key)?), problems)
    }

    /// Reads the value of a key into a place that keeps what it has if there is none.
    pub(super) fn fill<T>(
        &mut self,
        key: &'static str,
        problems: &mut Vec<Problem>,
        into: &mut T,
        read: impl FnOnce(&'a Node) -> Result<T, Problem>,
    ) {
        if let Some(value) = self.read(key, problems, read) {
            *into = value;
        }
    }

    /// Ends the table: notes every key that nobody asked for.
    pub(super) fn finish(self, problems: &mut Vec<Problem>) {
        self.finish_or(&[], problems);
    }

    /// As [`Self::finish`]; an unknown key may have been meant as one of `others`, too.
    pub(super) fn finish_or(self, others: &[&'static str], problems: &mut Vec<Problem>) {
        for entry in self.entries {
            if self.known.contains(&entry.key.as_str()) {
                continue;
            }
            let message = format!("unknown key \"{}\"", entry.key);
            let known = self.known.iter().chain(others).copied();
            let problem = Problem::new(entry.key_span.clone(), message);
            problems.push(match units::nearest(&entry.key, known) {
                Some(near) => problem.suggest(near),
                None => problem.help(format!("keys here: {}", self.known.join(", "))),
            });
        }
    }
}
