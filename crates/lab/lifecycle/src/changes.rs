//! What has become of the rows of a lifecycle since somebody asked last.
//!
//! Lines with a key change the row of their entity alone. Lines with an alias may change the rows of all
//! lives of that alias, and so of all other aliases of these lives. So what is told anew is whatever is tied
//! to what a line was about; all else stays as it was told.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::interner::Interner;
use crate::lives::{self, Held, Life};
use crate::timelines::Timelines;

/// Stands for "no line showed that point" in [`Changes::at_ns`].
pub const NOT_SEEN: i64 = i64::MIN;

/// Marks the number of an alias that has a row of its own.
const OF_ALIAS: u32 = 1 << 31;

/// The rows of one lifecycle that are not as they were told before.
///
/// Whoever keeps the newest of what was told of each number, and drops those that are empty, has the rows of
/// [`Collector::table`](crate::Collector::table), in another order.
#[derive(Debug, Clone, PartialEq)]
pub struct Changes {
    /// Name of the lifecycle.
    pub name: String,
    /// Names of its points, in order.
    pub points: Vec<String>,
    /// The rows, each once.
    pub rows: Vec<ChangedRow>,
    /// When each of them passed each point, row by row, in nanoseconds since the start of the run, or
    /// [`NOT_SEEN`]. A row that shows no point is none (any more).
    pub at_ns: Vec<i64>,
}

/// Whose times were told, of one row.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangedRow {
    /// Stays the same as long as the lifecycle is followed.
    pub number: u32,
    /// Identity of the entity.
    pub id: Arc<str>,
    /// Where it ran, when a line said so.
    pub group: Option<Arc<str>>,
}

/// Numbers that something has happened to, each once.
#[derive(Debug, Default)]
struct Touched {
    is: Vec<bool>,
    numbers: Vec<u32>,
}

impl Touched {
    fn touch(&mut self, number: u32) {
        let at = number as usize;
        if at >= self.is.len() {
            self.is.resize((at + 1).max(2 * self.is.len()), false);
        }
        if !std::mem::replace(&mut self.is[at], true) {
            self.numbers.push(number);
        }
    }

    fn take(&mut self) -> Vec<u32> {
        for number in &self.numbers {
            self.is[*number as usize] = false;
        }
        std::mem::take(&mut self.numbers)
    }
}

/// Notes what happens to rows, for the next time that somebody asks.
#[derive(Debug, Default)]
pub(crate) struct Tracker {
    entities: Touched,
    aliases: Touched,
    /// Who is tied to whom.
    aliases_of: HashMap<u32, Vec<u32>>,
    entities_of: HashMap<u32, Vec<u32>>,
    /// By alias the places of its held lines.
    held_of: HashMap<u32, Vec<u32>>,
}

/// What a collector knows, as far as rows are made from it.
pub(crate) struct Known<'a> {
    pub(crate) rows: &'a Timelines,
    pub(crate) entities: &'a Interner,
    pub(crate) aliases: &'a Interner,
    pub(crate) groups: &'a Interner,
    pub(crate) lives: &'a HashMap<(u32, u32), Life>,
    pub(crate) held: &'a [Held],
    pub(crate) origin_unix_ns: i64,
}

impl Tracker {
    /// A line was about this entity.
    pub(crate) fn entity(&mut self, entity: u32) {
        self.entities.touch(entity);
    }

    /// A line tied the two; is it the first one that does?
    pub(crate) fn tied(&mut self, alias: u32, entity: u32, first: bool) {
        self.aliases.touch(alias);
        if first {
            self.aliases_of.entry(entity).or_default().push(alias);
            self.entities_of.entry(alias).or_default().push(entity);
        }
    }

    /// A line of the alias is held at this place.
    pub(crate) fn held(&mut self, alias: u32, place: usize) {
        self.aliases.touch(alias);
        let places = self.held_of.entry(alias).or_default();
        // There are no more held lines than a collector has room for.
        places.push(place as u32);
    }

    /// Tells the rows that may have changed, and forgets which they are.
    pub(crate) fn take(&mut self, known: &Known<'_>, told: &mut Changes) {
        let touched = self.entities.take();
        let aliases = self.aliases.take();
        let (tied, mut aliases) = self.tied_to(&touched, aliases);
        for entity in touched.iter().filter(|entity| !tied.contains(entity)) {
            told.push(
                known,
                *entity,
                known.entities.text(*entity),
                known.rows,
                *entity,
            );
        }
        // As a table does it: one alias after the other, by their texts.
        aliases.retain(|alias| self.held_of.contains_key(alias));
        aliases.sort_unstable_by_key(|alias| known.aliases.text(*alias));
        let mut tied: Vec<u32> = tied.into_iter().collect();
        tied.sort_unstable();
        // The rows without what aliases give them, and behind them one for each alias.
        let mut rows = Timelines::new(known.rows.points());
        let mut place_of = HashMap::with_capacity(tied.len());
        for entity in &tied {
            place_of.insert(*entity, rows.len() as u32);
            rows.push_copy(known.rows, *entity);
        }
        for alias in &aliases {
            let rest = rows.len() as u32;
            rows.grow_to(rows.len() + 1);
            let lives = self.lives_of(*alias, known, &place_of);
            let held = self.lines_of(*alias, known);
            lives::settle(&lives, &held, rest, &mut rows, known.groups);
        }
        for (place, entity) in tied.iter().enumerate() {
            told.push(
                known,
                *entity,
                known.entities.text(*entity),
                &rows,
                place as u32,
            );
        }
        for (place, alias) in aliases.iter().enumerate() {
            let place = (tied.len() + place) as u32;
            told.push(
                known,
                *alias | OF_ALIAS,
                known.aliases.text(*alias),
                &rows,
                place,
            );
        }
    }

    /// The entities and aliases that hang together with these, in no order that tells anything.
    fn tied_to(&self, entities: &[u32], aliases: Vec<u32>) -> (HashSet<u32>, Vec<u32>) {
        let (mut reached, mut open) = (HashSet::new(), aliases);
        for entity in entities {
            open.extend(self.aliases_of.get(entity).into_iter().flatten());
        }
        let mut found = HashSet::new();
        while let Some(alias) = open.pop() {
            if !found.insert(alias) {
                continue;
            }
            for entity in self.entities_of.get(&alias).into_iter().flatten() {
                if reached.insert(*entity) {
                    open.extend(self.aliases_of.get(entity).into_iter().flatten());
                }
            }
        }
        (reached, found.into_iter().collect())
    }

    /// The lives of an alias in their order, at the places of their rows.
    fn lives_of(&self, alias: u32, known: &Known<'_>, place_of: &HashMap<u32, u32>) -> Vec<Life> {
        let entities = self.entities_of.get(&alias).into_iter().flatten();
        let mut lives: Vec<Life> = entities
            .filter_map(|entity| known.lives.get(&(alias, *entity)).copied())
            .collect();
        lives.sort_unstable_by_key(|life| (life.first, known.entities.text(life.entity)));
        for life in &mut lives {
            life.entity = place_of[&life.entity];
        }
        lives
    }

    /// The held lines of an alias in their order.
    fn lines_of(&self, alias: u32, known: &Known<'_>) -> Vec<Held> {
        let places = self.held_of.get(&alias).into_iter().flatten();
        let mut held: Vec<Held> = places.map(|place| known.held[*place as usize]).collect();
        held.sort_unstable_by_key(|line| {
            let group = line.group.map(|group| known.groups.text(group));
            (line.at, line.point, group)
        });
        held
    }
}

impl Changes {
    fn push(
        &mut self,
        known: &Known<'_>,
        number: u32,
        id: &Arc<str>,
        rows: &Timelines,
        place: u32,
    ) {
        let group = rows.group(place);
        self.rows.push(ChangedRow {
            number,
            id: Arc::clone(id),
            group: group.map(|group| Arc::clone(known.groups.text(group))),
        });
        let since_origin = |at: i64| at.saturating_sub(known.origin_unix_ns);
        self.at_ns.extend(
            rows.times(place)
                .map(|at| at.map_or(NOT_SEEN, since_origin)),
        );
    }
}

#[cfg(test)]
#[path = "changes_tests.rs"]
mod tests;
