//! Finds again the log lines that a few entities of a table were made from.

use std::collections::HashMap;
use std::sync::Arc;

use crate::classify::Classifier;
use crate::definition::{Definition, DefinitionError};
use crate::fields::{FieldId, Fields};
use crate::identity::{self, Identity};
use crate::interner::shown;
use crate::line::{Format, Line, Scanner};
use crate::table::Row;

/// Most aliases that are learnt of a lifecycle's chosen entities.
const MAX_ALIASES: usize = 100_000;

/// The log lines of chosen entities.
///
/// Lines are to be given twice, in any order: first all of them to [`Evidence::learn`], then
/// all of them to [`Evidence::find`]. The first pass can be left out where no lifecycle has
/// an alias ([`Evidence::must_learn`]).
#[derive(Debug)]
pub struct Evidence {
    scanner: Scanner,
    classifier: Classifier,
    origin_unix_ns: i64,
    lifecycles: Vec<Wanted>,
}

/// A line that tells about an entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// Number of the lifecycle, in the order of [`Evidence::new`].
    pub lifecycle: usize,
    /// Number of the entity among those that were chosen of it.
    pub entity: usize,
    /// When, in nanoseconds since the start of the run.
    pub at_ns: i64,
    /// Bit `i` is set where the entity's time at point `i` comes from this line.
    pub made: u64,
}

#[derive(Debug)]
struct Wanted {
    key: Vec<Identity>,
    alias: Vec<Vec<FieldId>>,
    /// Entities by their id; one that never had a key has its alias for one.
    ids: HashMap<Arc<str>, usize>,
    /// Entities that lived under an alias.
    lived: HashMap<Box<[u8]>, Vec<usize>>,
    times: Vec<Vec<Option<i64>>>,
}

impl Evidence {
    /// Looks for these entities of each lifecycle. `origin_unix_ns` is where the times of
    /// the rows begin, in nanoseconds since the Unix epoch.
    ///
    /// # Errors
    /// When a definition cannot be used.
    pub fn new(
        origin_unix_ns: i64,
        chosen: &[(Definition, Vec<Row>)],
    ) -> Result<Self, DefinitionError> {
        let (mut fields, mut classifier) = (Fields::new(), Classifier::default());
        let mut lifecycles = Vec::with_capacity(chosen.len());
        for (definition, rows) in chosen {
            classifier.add(definition.matchers()?, &mut fields);
            let key = definition.keys(&mut fields)?;
            let mut want = |paths: &[String]| -> Vec<FieldId> {
                paths.iter().map(|path| fields.register(path)).collect()
            };
            let ids = rows.iter().enumerate();
            lifecycles.push(Wanted {
                key,
                alias: definition.alias.iter().map(|paths| want(paths)).collect(),
                ids: ids.map(|(n, row)| (row.id.clone(), n)).collect(),
                lived: HashMap::new(),
                times: rows.iter().map(|row| row.at_ns.clone()).collect(),
            });
        }
        Ok(Self {
            scanner: Scanner::new(fields),
            classifier,
            origin_unix_ns,
            lifecycles,
        })
    }

    /// Whether the first pass finds anything out.
    pub fn must_learn(&self) -> bool {
        self.lifecycles
            .iter()
            .any(|wanted| !wanted.alias.is_empty())
    }

    /// First pass: under which aliases the entities lived.
    pub fn learn(&mut self, format: Format, line: &[u8]) {
        let Ok(line) = self.scanner.scan(format, line.trim_ascii()) else {
            return;
        };
        for wanted in &mut self.lifecycles {
            let Some(entity) = wanted.keyed(&line).flatten() else {
                continue;
            };
            let Some(alias) = line.joined(&wanted.alias) else {
                continue;
            };
            if wanted.lived.len() >= MAX_ALIASES {
                continue;
            }
            let lived = wanted.lived.entry(alias.into()).or_default();
            if !lived.contains(&entity) {
                lived.push(entity);
            }
        }
    }

    /// Second pass: the entities that this line tells about.
    pub fn find(&mut self, format: Format, line: &[u8], mut found: impl FnMut(Found)) {
        let Ok(line) = self.scanner.scan(format, line.trim_ascii()) else {
            return;
        };
        let at_ns = line.at_unix_ns().saturating_sub(self.origin_unix_ns);
        let shows = self.classifier.classify(&line);
        for (lifecycle, (wanted, shows)) in self.lifecycles.iter().zip(shows).enumerate() {
            let mut tell = |entity: usize, always: bool| {
                let made = wanted.made(entity, at_ns, *shows);
                if always || made != 0 {
                    found(Found {
                        lifecycle,
                        entity,
                        at_ns,
                        made,
                    });
                }
            };
            match wanted.keyed(&line) {
                Some(Some(entity)) => tell(entity, true),
                Some(None) => {}
                // Which of an alias's lives it went to, its time tells.
                None if *shows != 0 => {
                    let alias = line.joined(&wanted.alias).unwrap_or_default();
                    let lived = wanted.lived.get(&*alias).into_iter().flatten();
                    let own = wanted.ids.get(&*shown(&alias));
                    lived.chain(own).for_each(|entity| tell(*entity, false));
                }
                None => {}
            }
        }
    }
}

impl Wanted {
    /// The chosen entity of the line's key; `None`: it has no key.
    fn keyed(&self, line: &Line<'_>) -> Option<Option<usize>> {
        let key = identity::first(&self.key, line)?;
        Some(self.ids.get(&*shown(&key)).copied())
    }

    /// Of the points that are shown, those at which the entity has this time.
    fn made(&self, entity: usize, at_ns: i64, shows: u64) -> u64 {
        let times = self.times.get(entity).into_iter().flatten().enumerate();
        let same = times.filter(|(_, at)| **at == Some(at_ns));
        same.map(|(point, _)| 1 << point)
            .fold(0, |all, bit: u64| all | bit)
            & shows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Miner;

    const LINES: &str = "\
ts=1000000001 msg=made process=p index=0
ts=1000000002 msg=other id=b
ts=1000000003 msg=placed id=a process=p index=0
ts=1000000004 msg=done id=a
ts=1000000005 msg=done id=a
ts=1000000006 msg=made process=p index=0
nonsense
ts=1000000007 msg=placed id=c process=p index=0
ts=1000000008 msg=made process=q index=1
";

    fn definition() -> Definition {
        let point = |name: &str| (name.to_owned(), name.to_owned());
        Definition {
            name: "life".into(),
            key: vec!["id".into()],
            alias: vec![vec!["process".into(), "index".into()]],
            group: Vec::new(),
            points: ["made", "placed", "done"].map(point).to_vec(),
        }
    }

    /// Every time of the table comes from a line that is found, and from no other.
    #[test]
    fn an_entity_has_the_lines_that_made_it() {
        const ORIGIN: i64 = 1_000_000_000_000_000_000;
        let mut miner = Miner::new(ORIGIN, &[definition()], &[]).unwrap();
        let lines: Vec<&[u8]> = LINES.lines().map(str::as_bytes).collect();
        lines.iter().for_each(|line| miner.feed(Format::Auto, line));
        let table = miner.lifecycles()[0].table();
        let mut evidence = Evidence::new(ORIGIN, &[(definition(), table.rows.clone())]).unwrap();
        assert!(evidence.must_learn());
        lines
            .iter()
            .for_each(|line| evidence.learn(Format::Auto, line));
        let mut told: Vec<(&str, usize, u64)> = Vec::new();
        for (number, line) in lines.iter().enumerate() {
            evidence.find(Format::Auto, line, |found| {
                told.push((&*table.rows[found.entity].id, number, found.made));
            });
        }
        told.sort_unstable();
        let expected = [
            ("a", 0, 0b001),
            ("a", 2, 0b010),
            ("a", 3, 0b100),
            ("a", 4, 0),
            ("c", 5, 0b001),
            ("c", 7, 0b010),
            ("q/1", 8, 0b001),
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn ids_that_differ_in_bytes_which_are_no_text_are_two_entities() {
        let lines: [&[u8]; 3] = [
            b"ts=1000000001 msg=made id=a\xff",
            b"ts=1000000002 msg=made id=a\xfe",
            b"ts=1000000003 msg=placed id=a\xfe",
        ];
        let mut miner = Miner::new(0, &[definition()], &[]).unwrap();
        for line in lines {
            miner.feed(Format::Logfmt, line);
        }
        let rows = miner.lifecycles()[0].table().rows;
        let mut ids: Vec<&str> = rows.iter().map(|row| &*row.id).collect();
        ids.sort_unstable();
        assert_eq!(ids, [r"a\xfe", r"a\xff"]);
        let mut evidence = Evidence::new(0, &[(definition(), rows.clone())]).unwrap();
        let mut told: Vec<(&str, i64)> = Vec::new();
        for line in lines {
            evidence.find(Format::Logfmt, line, |found| {
                told.push((&*rows[found.entity].id, found.at_ns / 1_000_000_000));
            });
        }
        let (one, two) = (r"a\xfe", r"a\xff");
        assert_eq!(
            told,
            [
                (two, 1_000_000_001),
                (one, 1_000_000_002),
                (one, 1_000_000_003)
            ]
        );
    }
}
