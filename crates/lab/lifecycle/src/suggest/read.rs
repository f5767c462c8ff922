//! Everything that the lines of logs say, as numbers.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde_json::Value;

use super::keys::Group;
use super::kinds::{FEWEST, Kind};
use super::words::{self, Shapes};
use super::{KeyRejection, SeenField};
use crate::fields::{FieldId, Fields, MESSAGE, TIME};
use crate::interner::Interner;
use crate::line::{Format, Scanner};
use crate::miner::LineCounts;

/// Deepest member of a line that is looked at.
const DEEPEST: usize = 4;
/// Most fields, and most varying words of messages.
const MOST_FIELDS: usize = 256;
const MOST_WORDS: usize = 1_024;
/// Most values, messages and events; 24 bytes each event.
const MOST_VALUES: usize = 4_000_000;
const MOST_MESSAGES: usize = 20_000;
const MOST_EVENTS: usize = 16_000_000;
/// Longest text that may identify something, in bytes.
const MOST_BYTES: usize = 256;
/// Characters of an example.
const EXAMPLE: usize = 60;
/// Fields that every program of its kind writes, and that identify nothing.
const NEVER: [&str; 6] = [
    "source",
    "level",
    "log_level",
    "session",
    "severity",
    "logger",
];

/// A line has a value here: a field, or a varying word of a message.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Place {
    Field(String),
    Word { message: u32, number: usize },
}

/// A value in a line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Event {
    pub(super) place: u16,
    pub(super) value: u32,
    pub(super) message: u32,
    pub(super) line: u32,
    pub(super) at: i64,
}

/// What was read.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) lines: LineCounts,
    pub(super) places: Vec<Place>,
    /// Templates of messages, and their shapes.
    pub(super) messages: Interner,
    /// By message: its shape, in which every word with a digit varies.
    pub(super) shapes: Vec<u32>,
    /// A whole message of each template.
    pub(super) samples: Vec<String>,
    pub(super) values: Interner,
    /// In the order of lines.
    pub(super) events: Vec<Event>,
    pub(super) left: u64,
}

impl Read {
    pub(super) fn of(format: Format, logs: &[&[u8]]) -> Self {
        let (paths, shapes) = first_look(format, logs);
        let mut fields = Fields::new();
        let ids: Vec<FieldId> = paths.iter().map(|path| fields.register(path)).collect();
        let mut scanner = Scanner::new(fields);
        let mut read = Self {
            lines: LineCounts::default(),
            places: paths.into_iter().map(Place::Field).collect(),
            messages: Interner::new(MOST_MESSAGES),
            shapes: Vec::new(),
            samples: Vec::new(),
            values: Interner::new(MOST_VALUES),
            events: Vec::new(),
            left: 0,
        };
        let mut words: HashMap<(u32, usize), u16> = HashMap::new();
        for line in lines(logs) {
            read.lines.count(line);
            let Ok(found) = scanner.scan(format, line) else {
                read.lines.count_unreadable(line);
                continue;
            };
            let text = found.message();
            let text = String::from_utf8_lossy(&text);
            let (shape, _) = words::shape(&text);
            let (template, varying) = shapes.template(&text, &shape);
            let Some(message) = read.message(&shape, &template, &text) else {
                read.left += 1;
                continue;
            };
            let at = found.at_unix_ns();
            let line_number = read.lines.lines as u32;
            for (place, id) in ids.iter().enumerate() {
                if let Some(value) = found.field(*id) {
                    read.take(place as u16, &value, message, line_number, at);
                }
            }
            for (number, word) in varying.iter().enumerate() {
                let known = words.get(&(message, number)).copied();
                let place = match known {
                    Some(place) => place,
                    None if words.len() < MOST_WORDS => {
                        let place = read.places.len() as u16;
                        read.places.push(Place::Word { message, number });
                        words.insert((message, number), place);
                        place
                    }
                    None => {
                        read.left += 1;
                        continue;
                    }
                };
                read.take(place, word.core.as_bytes(), message, line_number, at);
            }
        }
        read
    }

    fn message(&mut self, shape: &str, template: &str, text: &str) -> Option<u32> {
        let shape = self.messages.number(shape.as_bytes())?;
        let message = self.messages.number(template.as_bytes())?;
        self.samples.resize(self.messages.len(), text.to_owned());
        self.shapes.resize(self.messages.len(), shape);
        Some(message)
    }

    fn take(&mut self, place: u16, value: &[u8], message: u32, line: u32, at: i64) {
        if value.is_empty() || value.len() > MOST_BYTES {
            return;
        }
        if self.events.len() >= MOST_EVENTS {
            self.left += 1;
            return;
        }
        match self.values.number(value) {
            Some(value) => self.events.push(Event {
                place,
                value,
                message,
                line,
                at,
            }),
            None => self.left += 1,
        }
    }

    /// The fields, with what became of them.
    pub(super) fn seen_fields(&self, groups: &[Group], kinds: &[Kind]) -> Vec<SeenField> {
        let mut lines = vec![0_u64; self.places.len()];
        let mut values: Vec<HashMap<u32, u32>> = vec![HashMap::new(); self.places.len()];
        let mut several: Vec<HashSet<u32>> = vec![HashSet::new(); self.places.len()];
        for event in &self.events {
            let place = event.place as usize;
            lines[place] += 1;
            let first = *values[place].entry(event.value).or_insert(event.message);
            if first != event.message {
                several[place].insert(event.value);
            }
        }
        let mut seen = Vec::new();
        for (place, what) in self.places.iter().enumerate() {
            let Place::Field(path) = what else { continue };
            let of = &values[place];
            let in_group = groups.iter().any(|group| group.has(place as u16));
            let no_key = if kinds.iter().any(|kind| kind.key.contains(&(place as u16))) {
                None
            } else if of.len() < FEWEST {
                Some(KeyRejection::FewValues)
            } else if several[place].is_empty() {
                Some(KeyRejection::OneMessage)
            } else if in_group
                && kinds
                    .iter()
                    .any(|kind| kind.group.contains(&(place as u16)))
            {
                Some(KeyRejection::Covered)
            } else {
                Some(KeyRejection::NoPattern)
            };
            let example = of.keys().min().map(|value| self.values.text(*value));
            let example = example.map(|text| text.chars().take(EXAMPLE).collect());
            seen.push(SeenField {
                path: path.clone(),
                lines: lines[place],
                values: of.len() as u64,
                example: example.unwrap_or_default(),
                no_key,
            });
        }
        seen.retain(|field| field.lines > 0);
        seen.sort_by(|a, b| (b.lines, &a.path).cmp(&(a.lines, &b.path)));
        seen
    }
}

/// Lines that are not blank.
fn lines<'a>(logs: &'a [&'a [u8]]) -> impl Iterator<Item = &'a [u8]> {
    logs.iter()
        .flat_map(|log| log.split(|byte| *byte == b'\n'))
        .map(<[u8]>::trim_ascii)
        .filter(|line| !line.is_empty())
}

/// Which fields there are, and which words of messages vary.
///
/// Lines with the same message have the same fields nearly always, so of each message ever
/// fewer lines are taken apart.
fn first_look(format: Format, logs: &[&[u8]]) -> (Vec<String>, Shapes) {
    let mut scanner = Scanner::new(Fields::new());
    let mut shapes = Shapes::default();
    let mut times: HashMap<Vec<u8>, u32> = HashMap::new();
    let mut paths: BTreeSet<String> = BTreeSet::new();
    for line in lines(logs) {
        let Ok(found) = scanner.scan(format, line) else {
            continue;
        };
        let message = found.message().into_owned();
        let count = match times.len() < MOST_MESSAGES || times.contains_key(&message) {
            true => times.entry(message.clone()).or_insert(0),
            false => &mut 0,
        };
        *count += 1;
        if *count == 1 {
            shapes.learn(&String::from_utf8_lossy(&message));
        }
        if *count <= 3 || count.is_power_of_two() {
            paths.extend(field_names(line));
        }
    }
    let paths = paths.into_iter().filter(|path| {
        let never = TIME.iter().chain(&MESSAGE).chain(&NEVER);
        !never.into_iter().any(|name| name == path)
    });
    (paths.take(MOST_FIELDS).collect(), shapes)
}

/// The paths of all fields of a line, as a lifecycle names them: members of `data` without
/// it, members of other objects as `a.b`, down to four levels. Lists are no fields.
pub fn field_names(line: &[u8]) -> Vec<String> {
    let start = line.iter().position(|byte| *byte == b'{');
    let object = start.and_then(|start| {
        let object: Value = serde_json::from_slice(&line[start..]).ok()?;
        // As lines are read: behind a text it may be the value of a pair.
        let is_alone = line[..start].trim_ascii().is_empty();
        let is_line = is_alone || TIME.iter().any(|name| object.get(*name).is_some());
        is_line.then_some(object)
    });
    let mut names = Vec::new();
    match object {
        Some(value) => members(&value, "", 0, &mut names),
        None => {
            let text = String::from_utf8_lossy(line);
            let words = text.split_ascii_whitespace();
            let pairs = words.filter_map(|word| word.split_once('='));
            let is_name = |name: &str| {
                let part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '@');
                !name.is_empty() && name.chars().all(part)
            };
            names.extend(
                pairs
                    .filter(|(name, _)| is_name(name))
                    .map(|(name, _)| name.to_owned()),
            );
        }
    }
    names.sort_unstable();
    names.dedup();
    names
}

fn members(value: &Value, before: &str, depth: usize, names: &mut Vec<String>) {
    let Value::Object(object) = value else { return };
    for (name, member) in object {
        let path = match before {
            "" | "data" => name.clone(),
            before => format!("{before}.{name}"),
        };
        match member {
            Value::Object(_) if depth < DEEPEST => members(member, &path, depth + 1, names),
            Value::Object(_) | Value::Array(_) | Value::Null => {}
            _ => names.push(path),
        }
    }
}
