//! A folder of files that says what is to hold, for a version control system to keep.
//!
//! ```text
//! settings.yml          what holds for all nodes
//! parameters.yml        name: value
//! groups/ID.yml         nodes that are listed, or that a query finds
//! techniques/ID.yml     what can be configured: calls of methods
//! directives/ID.yml     a technique with values
//! rules/ID.yml          which directives hold on which nodes
//! ```
//!
//! Files may be YAML (`.yml`, `.yaml`) or TOML (`.toml`). Every mistake is shown at its place.

mod calls;
mod check;
mod deserialize;
mod files;
mod groups;
mod load;
mod params;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use document::{Node, Problem, Problems, Source, Span, parse_toml, parse_yaml};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::definitions::Definitions;
use crate::model::property::GlobalParameter;
use crate::policy::generation::Settings;
use files::{DirectiveFile, GroupFile, RuleFile, TechniqueFile};

pub use load::{FolderError, load};

/// A file of the folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderFile {
    /// Its path within the folder, with `/`.
    pub path: String,
    /// Its text, and its name in messages.
    pub source: Source,
}

/// A file that was read as a tree.
struct Read<'f> {
    file: &'f FolderFile,
    node: Node,
}

/// Where an object stands.
type Places<'f> = BTreeMap<String, Read<'f>>;

/// What was read so far.
#[derive(Default)]
struct Reading<'f> {
    definitions: Definitions,
    /// Where settings and parameters stand.
    settings: Option<Read<'f>>,
    parameters: Option<Read<'f>>,
    groups: Places<'f>,
    techniques: Places<'f>,
    directives: Places<'f>,
    rules: Places<'f>,
    problems: Vec<Problems>,
}

/// Reads a folder's files.
///
/// # Errors
/// What is wrong, by file: other languages, unknown keys and values, names of what is not there,
/// values that a technique does not accept.
pub fn read(files: &[FolderFile]) -> Result<Definitions, Vec<Problems>> {
    let mut reading = Reading::default();
    for file in files {
        if let Err(problems) = reading.file(file) {
            reading.problems.push(Problems::of(&file.source, problems));
        }
    }
    // What cannot be read need not be named twice.
    if reading.problems.is_empty() {
        reading.check();
    }
    if reading.problems.is_empty() {
        return Ok(reading.definitions);
    }
    Err(reading.problems)
}

impl<'f> Reading<'f> {
    fn file(&mut self, file: &'f FolderFile) -> Result<(), Vec<Problem>> {
        let (folder, name) = file.path.rsplit_once('/').unwrap_or(("", &file.path));
        let (stem, ending) = name.rsplit_once('.').unwrap_or((name, ""));
        let node = match ending {
            "yml" | "yaml" => parse_yaml(&file.source)?,
            _ => parse_toml(&file.source)?,
        };
        let read = Read { file, node };
        let all = &mut self.definitions;
        match (folder, stem) {
            ("", "settings") => {
                all.settings = read.value::<Settings>()?;
                self.settings = Some(read);
            }
            ("", "parameters") => {
                let values: Map<String, Value> = read.value()?;
                for (id, value) in values {
                    let parameter = GlobalParameter {
                        id: id.clone(),
                        value,
                        description: String::new(),
                        inherit_mode: Default::default(),
                    };
                    all.parameters.insert(id, parameter);
                }
                self.parameters = Some(read);
            }
            ("groups", stem) => {
                let group = read.value::<GroupFile>()?.into_group(stem);
                put(
                    &mut all.groups,
                    &mut self.groups,
                    group.id.clone(),
                    group,
                    read,
                )?;
            }
            ("techniques", stem) => {
                let technique = read.value::<TechniqueFile>()?.into_technique(stem);
                let (all, key) = (&mut all.techniques, technique.key());
                put(all, &mut self.techniques, key, technique, read)?;
            }
            ("directives", stem) => {
                let directive = read.value::<DirectiveFile>()?.into_directive(stem);
                let (all, id) = (&mut all.directives, directive.id.clone());
                put(all, &mut self.directives, id, directive, read)?;
            }
            ("rules", stem) => {
                let rule = read.value::<RuleFile>()?.into_rule(stem);
                put(&mut all.rules, &mut self.rules, rule.id.clone(), rule, read)?;
            }
            _ => {
                let problem = Problem::new(0..0, "no file belongs here");
                let help = "expected settings.yml, parameters.yml, or files in groups, \
                            techniques, directives and rules";
                return Err(vec![problem.help(help)]);
            }
        }
        Ok(())
    }
}

impl Read<'_> {
    fn value<T: DeserializeOwned>(&self) -> Result<T, Vec<Problem>> {
        deserialize::read(&self.file.source.text, &self.node)
    }

    /// The value at a path of keys and places in lists, or the nearest above it.
    fn at(&self, path: &[&str]) -> &Node {
        self.way(path).0
    }

    /// The same, and the key that it has if the whole path is there and ends with a key.
    fn way(&self, path: &[&str]) -> (&Node, Option<&Span>) {
        let mut node = &self.node;
        let mut key = None;
        for step in path {
            key = None;
            let next = match &node.value {
                document::Value::Table(entries) => {
                    let entry = entries.iter().find(|entry| entry.key == *step);
                    key = entry.map(|entry| &entry.key_span);
                    entry.map(|entry| &entry.node)
                }
                document::Value::List(nodes) => {
                    step.parse().ok().and_then(|at: usize| nodes.get(at))
                }
                _ => None,
            };
            match next {
                Some(next) => node = next,
                None => break,
            }
        }
        (node, key)
    }

    /// Is there a value of this key in the table at a path?
    fn has(&self, path: &[&str], key: &str) -> bool {
        match &self.at(path).value {
            document::Value::Table(entries) => entries.iter().any(|entry| entry.key == key),
            _ => false,
        }
    }
}

/// Adds an object that is not there yet.
fn put<'f, T>(
    all: &mut BTreeMap<String, T>,
    places: &mut Places<'f>,
    id: String,
    object: T,
    read: Read<'f>,
) -> Result<(), Vec<Problem>> {
    if let Some(other) = places.get(&id) {
        let message = format!("\"{id}\" is also in {}", other.file.path);
        let span = read.at(&["id"]).span.clone();
        return Err(vec![
            Problem::new(span, message).help("give one of them another id"),
        ]);
    }
    all.insert(id.clone(), object);
    places.insert(id, read);
    Ok(())
}
