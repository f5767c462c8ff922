//! Proposes lifecycles for logs that nobody has described yet.
//!
//! A field (or a part of messages) is a key when many values of it are each seen with several
//! messages, and the values agree on which messages these are and in which order. So:
//!
//! 1. [`read`]: every field and every message of the logs, messages without their numbers;
//! 2. [`keys`]: fields that have the same values are names of one thing;
//! 3. [`kinds`]: values that are seen with the same messages are entities of one kind;
//! 4. [`order`]: which of these messages are points, and in which order they come;
//! 5. [`naming`]: names and matchers for a person to read.
//!
//! What is proposed is then mined from the same logs, as a run would mine it, and these are
//! the numbers that are told.

mod keys;
mod kinds;
mod naming;
mod order;
mod read;
mod words;

use std::collections::HashSet;

use crate::definition::Definition;
use crate::line::Format;
use crate::miner::{LineCounts, Miner};
use crate::summary::{is_complete, span};

pub use kinds::{PointRejection, RejectedMessage};
pub use read::field_names;

/// Most lifecycles that are proposed.
const MOST: usize = 8;
/// One that explains less than so manieth part of what the best explains is chance.
const PART: u64 = 200;

/// What logs seem to tell.
#[derive(Debug, Clone, PartialEq)]
pub struct Suggestions {
    /// The lines, and how many could be read.
    pub lines: LineCounts,
    /// Lifecycles, the one that explains most lines first.
    pub lifecycles: Vec<Suggested>,
    /// Every field that was seen, the one that most lines have first.
    pub fields: Vec<SeenField>,
    /// Values and messages for which there was no room; 0: everything was looked at.
    pub left: u64,
}

/// A lifecycle that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Suggested {
    /// To be put into an experiment.
    pub definition: Definition,
    /// Entities that it gives in these logs, without the others.
    pub entities: u64,
    /// Those with a time at every point.
    pub complete: u64,
    /// Entities of another kind that become rows as well: the same places name them, and they
    /// show some of these points too.
    pub others: u64,
    /// Its points, in order.
    pub points: Vec<SeenPoint>,
    /// Messages of its entities that are no points, and why.
    pub left_out: Vec<RejectedMessage>,
}

/// A point, in these logs.
#[derive(Debug, Clone, PartialEq)]
pub struct SeenPoint {
    /// Its name.
    pub name: String,
    /// Entities that passed it.
    pub entities: u64,
    /// Median of the time since the point before, in nanoseconds, over entities with both;
    /// `None`: for the first point, or when there is no such entity.
    pub since_before_ns: Option<i64>,
}

/// A field of the logs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenField {
    /// Its path.
    pub path: String,
    /// Lines that have it.
    pub lines: u64,
    /// Different values.
    pub values: u64,
    /// One of them, at most 60 characters.
    pub example: String,
    /// Why it is the key of no lifecycle; `None`: it is.
    pub no_key: Option<KeyRejection>,
}

/// Why a field is no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyRejection {
    /// Fewer than five values.
    FewValues,
    /// Its values are seen with one message each: nothing goes on from one line to another.
    OneMessage,
    /// Its values do not share two messages that each comes once for most of them.
    NoPattern,
    /// Another key tells the same, or more.
    Covered,
}

/// Looks for lifecycles in whole logs.
pub fn suggest(format: Format, logs: &[&[u8]]) -> Suggestions {
    let read = read::Read::of(format, logs);
    let groups = keys::groups(&read);
    let mut kinds: Vec<kinds::Kind> = groups
        .iter()
        .flat_map(|group| kinds::of(&read, group))
        .collect();
    kinds.sort_by_key(|kind| std::cmp::Reverse(kind.explained()));
    let worth = kinds.first().map_or(0, kinds::Kind::explained) / PART;
    let mut kept: Vec<kinds::Kind> = Vec::new();
    for kind in kinds {
        let is_told = kept.iter().any(|better| better.tells_all_of(&kind));
        if !is_told && kind.explained() >= worth && kept.len() < MOST {
            kept.push(kind);
        }
    }
    let definitions = naming::definitions(&read, &kept);
    let fields = read.seen_fields(&groups, &kept);
    let lifecycles = kept
        .into_iter()
        .zip(definitions)
        .filter_map(|(kind, definition)| mined(format, logs, &read, kind, definition))
        .collect();
    Suggestions {
        lines: read.lines,
        lifecycles,
        fields,
        left: read.left,
    }
}

/// What the definition gives when a run mines it.
fn mined(
    format: Format,
    logs: &[&[u8]],
    read: &read::Read,
    kind: kinds::Kind,
    definition: Definition,
) -> Option<Suggested> {
    let mut miner = Miner::new(0, std::slice::from_ref(&definition), &[]).ok()?;
    for log in logs {
        log.split(|byte| *byte == b'\n')
            .for_each(|line| miner.feed(format, line));
    }
    let mut table = miner.lifecycles().first()?.table();
    let all = table.rows.len();
    let members = kind.members.iter().map(|value| &**read.values.text(*value));
    let members: HashSet<&str> = members.collect();
    table.rows.retain(|row| members.contains(&*row.id));
    let complete = table.rows.iter().filter(|row| is_complete(row)).count();
    let points = definition.points.iter().enumerate().map(|(at, (name, _))| {
        let passed = table.rows.iter().filter(|row| row.at_ns[at].is_some());
        let before = at.checked_sub(1).map(|before| &definition.points[before].0);
        let since = before.and_then(|before| span(&table, before, name).ok());
        SeenPoint {
            name: name.clone(),
            entities: passed.count() as u64,
            since_before_ns: since.and_then(|span| stats::nearest_rank(&span.sorted_ns, 0.5)),
        }
    });
    Some(Suggested {
        points: points.collect(),
        entities: table.rows.len() as u64,
        complete: complete as u64,
        others: (all - table.rows.len()) as u64,
        left_out: kind.left_out,
        definition,
    })
}

#[cfg(test)]
mod tests;
