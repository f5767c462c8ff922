//! Keeps when each entity passed each point.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::changes::{Changes, Known, Tracker};
use crate::definition::{Definition, DefinitionError};
use crate::fields::{FieldId, Fields};
use crate::identity::{self, Identity};
use crate::interner::Interner;
use crate::line::Line;
use crate::lives::{self, Held, Life};
use crate::table::{Row, Table};
use crate::timelines::{GroupAt, Timelines};

/// Most entities that a collector keeps, and most aliases; lines of further ones
/// only count as overflow.
const MAX_ENTITIES: usize = 2_000_000;
/// Most points shown by lines without a key that a collector keeps, and most pairs
/// of alias and entity.
const MAX_HELD: usize = 4_000_000;
/// Most pairs of point and second of which repeats are counted.
const MAX_REPEATED: usize = 1_000_000;
/// Nanoseconds.
const SECOND: i64 = 1_000_000_000;
/// Most groups.
const MAX_GROUPS: usize = 1_000_000;

/// Collects the timelines of one lifecycle from lines in any order.
///
/// An entity is a row once a line showed one of its points. Its first time at a
/// point, by the clock of the lines, is the one that stays. Its group is the one
/// named by its earliest line that names any (of equally early ones, the first by
/// name). So the table does not depend on the order in which lines or files come,
/// unless there was no room for all of them.
///
/// # Aliases
///
/// A line without a key but with an alias is held under that alias. A line with
/// both ties the entity to the alias: the entity is a *life* of the alias, which
/// starts with its first such line and goes on until its last. One alias may live
/// several lives, one after the other. When the table is made, every point `p`
/// shown by a held line at time `t` is given to a row, in order of time:
///
/// 1. to the life that started last before `t`, when it goes on until `t` or
///    beyond and has no time for `p` yet;
/// 2. otherwise to the next life: the one that starts first at `t` or after;
/// 3. otherwise, when there is no next life, to the last one, if it has no time
///    for `p` and no line of this alias was left over before;
/// 4. otherwise to a row of its own, whose id is the alias: the values of its
///    fields, joined by `/`. It shows what never came to a key.
///
/// So early lines of an instance that crashed and came back go to the life they
/// led to, lines written by others in the course of a life go to that life, and a
/// life that never began is a row too. Lives that start at the same time are taken
/// in order of their ids.
#[derive(Debug)]
pub struct Collector {
    name: String,
    points: Vec<String>,
    origin_unix_ns: i64,
    key: Vec<Identity>,
    alias: Vec<Vec<FieldId>>,
    group: Vec<Identity>,

    entities: Interner,
    rows: Timelines,
    groups: Interner,
    aliases: Interner,
    /// By alias and entity.
    lives: HashMap<(u32, u32), Life>,
    /// By alias: has it a life?
    lived: Vec<bool>,
    held: Vec<Held>,

    keyed: u64,
    matched: Vec<u64>,
    reached: Vec<u64>,
    visible: u64,
    repeats: u64,
    /// By point and second since the origin.
    repeated: BTreeMap<(usize, i64), u64>,
    overflow: u64,
    alias_text: Vec<u8>,
    /// `None`: nobody asks for changes.
    tracker: Option<Tracker>,
}

/// What a collector has found so far; cheap at any time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Snapshot {
    /// Entities with at least one point. Exact, except that an alias counts as one
    /// more entity as long as it has no life.
    pub entities: u64,
    /// By point: how many entities passed it. A line that has only an alias counts
    /// each time, so with repeated lines of that kind this can be too high.
    pub reached: Vec<u64>,
    /// Lines that showed a point which their entity had passed already, without
    /// lines that have only an alias.
    pub repeats: u64,
    /// How often there was no room for what a line said: its entity, alias or group.
    pub overflow: u64,
}

impl Collector {
    /// A collector of this lifecycle; times in the table count from the origin.
    /// Adds the fields it needs.
    pub(crate) fn new(
        definition: &Definition,
        origin_unix_ns: i64,
        fields: &mut Fields,
    ) -> Result<Self, DefinitionError> {
        let (key, group) = (definition.keys(fields)?, definition.groups(fields)?);
        let mut want = |paths: &[String]| -> Vec<FieldId> {
            paths.iter().map(|path| fields.register(path)).collect()
        };
        let points: Vec<String> = definition
            .points
            .iter()
            .map(|(name, _)| name.clone())
            .collect();
        Ok(Self {
            name: definition.name.clone(),
            origin_unix_ns,
            key,
            alias: definition.alias.iter().map(|paths| want(paths)).collect(),
            group,
            entities: Interner::new(MAX_ENTITIES),
            rows: Timelines::new(points.len()),
            groups: Interner::new(MAX_GROUPS),
            aliases: Interner::new(MAX_ENTITIES),
            lives: HashMap::new(),
            lived: Vec::new(),
            held: Vec::new(),
            keyed: 0,
            matched: vec![0; points.len()],
            reached: vec![0; points.len()],
            visible: 0,
            repeats: 0,
            repeated: BTreeMap::new(),
            overflow: 0,
            alias_text: Vec::new(),
            tracker: None,
            points,
        })
    }

    /// Takes in a line; bit `i` of `shows` is set when it shows point `i`.
    pub(crate) fn feed(&mut self, line: &Line<'_>, shows: u64) {
        points(shows).for_each(|point| self.matched[point] += 1);
        match identity::first(&self.key, line) {
            Some(key) => self.feed_entity(line, &key, shows),
            None if shows != 0 && self.find_alias(line) => self.hold(line, shows),
            None => {}
        }
    }

    fn feed_entity(&mut self, line: &Line<'_>, key: &[u8], shows: u64) {
        self.keyed += 1;
        let at = line.at_unix_ns();
        let Some(entity) = self.entities.number(key) else {
            self.overflow += 1;
            return;
        };
        self.rows.grow_to(self.entities.len());
        if shows != 0 {
            if self.rows.is_empty(entity) {
                self.visible += 1;
            }
            for point in points(shows) {
                match self.rows.pass(entity, point, at) {
                    true => self.reached[point] += 1,
                    false => self.repeat(point, at),
                }
            }
        }
        if let Some(tracker) = &mut self.tracker {
            tracker.entity(entity);
        }
        if let Some(group) = self.group_of(line) {
            self.rows.join(entity, GroupAt { at, group }, &self.groups);
        }
        if self.find_alias(line) {
            self.tie(entity, at);
        }
    }

    fn repeat(&mut self, point: usize, at: i64) {
        self.repeats += 1;
        let second = at.saturating_sub(self.origin_unix_ns).div_euclid(SECOND);
        let room = self.repeated.len() < MAX_REPEATED;
        match self.repeated.get_mut(&(point, second)) {
            Some(count) => *count += 1,
            None if room => drop(self.repeated.insert((point, second), 1)),
            // Only clocks that are wrong show so many seconds.
            None => {}
        }
    }

    fn tie(&mut self, entity: u32, at: i64) {
        let Some(alias) = self.alias_number() else {
            return;
        };
        if self.lives.len() >= MAX_HELD && !self.lives.contains_key(&(alias, entity)) {
            self.overflow += 1;
            return;
        }
        self.lived[alias as usize] = true;
        if let Some(tracker) = &mut self.tracker {
            tracker.tied(alias, entity, !self.lives.contains_key(&(alias, entity)));
        }
        let life = self.lives.entry((alias, entity)).or_insert(Life {
            entity,
            first: at,
            last: at,
        });
        life.first = life.first.min(at);
        life.last = life.last.max(at);
    }

    fn hold(&mut self, line: &Line<'_>, shows: u64) {
        let Some(alias) = self.alias_number() else {
            return;
        };
        let group = self.group_of(line);
        for point in points(shows) {
            if self.held.len() >= MAX_HELD {
                self.overflow += 1;
                return;
            }
            if let Some(tracker) = &mut self.tracker {
                tracker.held(alias, self.held.len());
            }
            self.held.push(Held {
                alias,
                at: line.at_unix_ns(),
                point: point as u8,
                group,
            });
            self.reached[point] += 1;
        }
    }

    fn group_of(&mut self, line: &Line<'_>) -> Option<u32> {
        let group = self.groups.number(&identity::first(&self.group, line)?);
        self.overflow += u64::from(group.is_none());
        group
    }

    /// Puts the text of the line's alias into `alias_text`; false: it has none.
    fn find_alias(&mut self, line: &Line<'_>) -> bool {
        self.alias.iter().any(|fields| {
            self.alias_text.clear();
            fields.iter().enumerate().all(|(index, field)| {
                if index > 0 {
                    self.alias_text.push(b'/');
                }
                let text = line.field(*field).filter(|text| !text.is_empty());
                text.is_some_and(|text| {
                    self.alias_text.extend_from_slice(&text);
                    true
                })
            })
        })
    }

    /// The number of the alias in `alias_text`.
    fn alias_number(&mut self) -> Option<u32> {
        let alias = self.aliases.number(&self.alias_text);
        match alias {
            Some(_) => self.lived.resize(self.aliases.len(), false),
            None => self.overflow += 1,
        }
        alias
    }

    /// Sets the limit of entities, which is else too high to be reached by a test.
    #[cfg(test)]
    pub(crate) fn limit_entities(&mut self, limit: usize) {
        self.entities = Interner::new(limit);
    }

    /// Name of the lifecycle.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Names of the points, in order.
    pub fn points(&self) -> &[String] {
        &self.points
    }

    /// Lines that had a key.
    pub fn keyed(&self) -> u64 {
        self.keyed
    }

    /// By point: lines that its matcher matched, with a key or without one.
    pub fn matched(&self) -> &[u64] {
        &self.matched
    }

    /// What has been found so far, in time proportional to the number of aliases.
    pub fn snapshot(&self) -> Snapshot {
        let waiting = self.lived.iter().filter(|lived| !**lived).count() as u64;
        Snapshot {
            entities: self.visible + waiting,
            reached: self.reached.clone(),
            repeats: self.repeats,
            overflow: self.overflow,
        }
    }

    /// Lines with a key that showed a point which their entity had passed already: by the number of the point
    /// and the second since the origin. Of at most a million such pairs; those of further ones are not counted.
    pub fn repeated(&self) -> &BTreeMap<(usize, i64), u64> {
        &self.repeated
    }

    /// From now on notes what changes, for [`Collector::changes`]. To be called before the first line.
    pub(crate) fn watch(&mut self) {
        self.tracker = Some(Tracker::default());
    }

    /// The rows that are not as they were told before, or may not be. In time proportional to their number,
    /// and to what is tied to them by aliases.
    pub(crate) fn changes(&mut self) -> Changes {
        let mut told = Changes {
            name: self.name.clone(),
            points: self.points.clone(),
            rows: Vec::new(),
            at_ns: Vec::new(),
        };
        let known = Known {
            rows: &self.rows,
            entities: &self.entities,
            aliases: &self.aliases,
            groups: &self.groups,
            lives: &self.lives,
            held: &self.held,
            origin_unix_ns: self.origin_unix_ns,
        };
        if let Some(tracker) = &mut self.tracker {
            tracker.take(&known, &mut told);
        }
        told
    }

    /// Makes the table of everything found so far. Rows are in order of their first
    /// time, then of their id: the same lines always give the same table.
    pub fn table(&self) -> Table {
        let (rows, aliases) = self.settled();
        let entities = self.entities.len();
        let mut keyed: Vec<(Option<i64>, Row)> = (0..rows.len() as u32)
            .filter(|row| !rows.is_empty(*row))
            .map(|row| {
                let id = match (row as usize).checked_sub(entities) {
                    None => self.entities.text(row),
                    Some(rest) => self.aliases.text(aliases[rest]),
                };
                let since_origin = |at: i64| at.saturating_sub(self.origin_unix_ns);
                let row_of_table = Row {
                    id: Arc::clone(id),
                    group: rows
                        .group(row)
                        .map(|group| Arc::clone(self.groups.text(group))),
                    at_ns: rows.times(row).map(|at| at.map(since_origin)).collect(),
                };
                (rows.times(row).flatten().min(), row_of_table)
            })
            .collect();
        keyed.sort_unstable_by(|(first, a), (other, b)| {
            (first, &a.id, &a.at_ns, &a.group).cmp(&(other, &b.id, &b.at_ns, &b.group))
        });
        Table {
            name: self.name.clone(),
            points: self.points.clone(),
            rows: keyed.into_iter().map(|(_, row)| row).collect(),
        }
    }

    /// All rows with held lines given to theirs. After the entities comes one row
    /// for each alias in the list, for what belongs to no life.
    fn settled(&self) -> (Timelines, Vec<u32>) {
        let mut rows = self.rows.clone();
        let mut lives: Vec<(u32, Life)> = self
            .lives
            .iter()
            .map(|((alias, _), life)| (*alias, *life))
            .collect();
        lives.sort_unstable_by_key(|(alias, life)| {
            (*alias, life.first, self.entities.text(life.entity))
        });
        let mut held = self.held.clone();
        held.sort_unstable_by_key(|line| {
            let group = line.group.map(|group| self.groups.text(group));
            (line.alias, line.at, line.point, group)
        });
        let mut of_alias: Vec<&[Held]> = held.chunk_by(|a, b| a.alias == b.alias).collect();
        // Numbers of aliases tell in which order lines came; their texts do not.
        of_alias.sort_unstable_by_key(|lines| self.aliases.text(lines[0].alias));

        let mut aliases = Vec::with_capacity(of_alias.len());
        for lines in of_alias {
            let alias = lines[0].alias;
            let from = lives.partition_point(|(other, _)| *other < alias);
            let lives: Vec<Life> = lives[from..]
                .iter()
                .take_while(|(other, _)| *other == alias)
                .map(|(_, life)| *life)
                .collect();
            let rest = rows.len() as u32;
            rows.grow_to(rows.len() + 1);
            aliases.push(alias);
            lives::settle(&lives, lines, rest, &mut rows, &self.groups);
        }
        (rows, aliases)
    }
}

/// The numbers of the bits that are set.
fn points(mut shows: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let point = (shows != 0).then(|| shows.trailing_zeros() as usize)?;
        shows &= shows - 1;
        Some(point)
    })
}

#[cfg(test)]
#[path = "collector_tests.rs"]
mod tests;
