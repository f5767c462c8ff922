//! The log lines of some entities of a run, within a bound: those that a reader is most
//! likely to ask for.

use std::collections::BTreeSet;
use std::path::PathBuf;

use lab_lifecycle::{Definition, Evidence, Follower, Format, Found, Row, Table};
use lab_store::{RunFile, RunFolder};
use serde::{Deserialize, Serialize};

use crate::blob::{Blob, Text, packed_len};

/// Most entities whose lines a page has, of all lifecycles together, and of one that
/// shares it with many.
const ENTITIES: usize = 240;
const LEAST_EACH: usize = 12;
/// Of a lifecycle: the slowest, and those that lack a point or go backwards.
const SLOWEST: usize = 12;
const ODD: usize = 24;
/// Most lines of an entity, and bytes shown of one.
const LINES: usize = 60;
const LINE_BYTES: usize = 500;
/// Bytes that the lines of a page take in it.
const PAGE_BYTES: usize = 200_000;
/// Logs that are longer, all together, are not read again.
const LOG_BYTES: u64 = 256 << 20;

/// A system, as the plan has it.
#[derive(Debug, Deserialize)]
pub(crate) struct PlannedSystem {
    name: String,
    #[serde(default)]
    log: String,
}

/// The lines of one lifecycle's entities.
#[derive(Debug, Default, Serialize)]
struct EntityLines {
    /// Paths inside the folder of the run.
    files: Vec<String>,
    entities: Vec<Entity>,
}

#[derive(Debug, Default, Serialize)]
struct Entity {
    /// Its row.
    row: usize,
    /// In order of time.
    lines: Vec<LogLine>,
    /// How many more there are.
    more: usize,
}

#[derive(Debug, Serialize)]
struct LogLine {
    /// Index of its file, and its number in it, counted from 1.
    file: usize,
    number: u64,
    #[serde(skip)]
    at_ns: i64,
    text: String,
    /// Whether the text is only the beginning.
    cut: bool,
    /// Indices of the points whose times come from it.
    points: Vec<usize>,
}

/// A log that is read again.
struct Log {
    path: PathBuf,
    shown: String,
    format: Format,
}

/// For each table, its entities with their lines; `None` where there are none to be had:
/// the page then says how to look into the logs. `origin_unix_ns` is the start of the run.
pub(crate) fn pack(
    run: &RunFolder,
    origin_unix_ns: i64,
    systems: &[PlannedSystem],
    planned: &[Definition],
    tables: &[Table],
    blob: &mut Blob,
) -> Vec<Option<Text>> {
    let most = (ENTITIES / tables.len().max(1)).max(LEAST_EACH);
    let sought: Vec<LineQuery<'_>> = tables
        .iter()
        .filter_map(|table| LineQuery::of(table, planned, most))
        .collect();
    let mut told = found(&logs(run, systems), origin_unix_ns, &sought);
    // What matters most comes first, so the end of each list is given up.
    while told.iter().map(|one| packed_len(&json(one))).sum::<usize>() > PAGE_BYTES {
        for one in &mut told {
            one.entities.truncate(one.entities.len() * 3 / 4);
        }
    }
    let mut told = sought.iter().zip(told);
    let mut next = told.next();
    let of = |table: &Table| {
        let (_, own) = next.take_if(|(sought, _)| std::ptr::eq(sought.table, table))?;
        next = told.next();
        (!own.entities.is_empty()).then(|| blob.push_text(&json(&own)))
    };
    tables.iter().map(of).collect()
}

fn json(told: &EntityLines) -> String {
    // Texts and numbers always have a form.
    serde_json::to_string(told).unwrap_or_default()
}

/// The entities of a table whose lines are looked for.
struct LineQuery<'t> {
    table: &'t Table,
    definition: Definition,
    /// What matters most comes first.
    rows: Vec<usize>,
}

impl<'t> LineQuery<'t> {
    /// `None` where the plan does not say how the table was made.
    fn of(table: &'t Table, planned: &[Definition], most: usize) -> Option<Self> {
        let planned = planned.iter().find(|life| life.name == table.name)?;
        let named = planned.points.iter().map(|(name, _)| name);
        let same = !planned.key.is_empty() && named.eq(&table.points);
        same.then(|| Self {
            table,
            definition: Definition {
                group: Vec::new(),
                ..planned.clone()
            },
            rows: chosen(table, most),
        })
    }
}

/// For each table its entities with their lines, or nothing at all.
fn found(logs: &[Log], origin_unix_ns: i64, sought: &[LineQuery<'_>]) -> Vec<EntityLines> {
    let length = |log: &Log| std::fs::metadata(&log.path).map_or(0, |file| file.len());
    let none = || sought.iter().map(|_| EntityLines::default()).collect();
    if logs.iter().map(length).sum::<u64>() > LOG_BYTES {
        return none();
    }
    let of = |one: &LineQuery<'_>| {
        let rows = one.rows.iter().filter_map(|row| one.table.rows.get(*row));
        (one.definition.clone(), rows.cloned().collect())
    };
    let wanted: Vec<(Definition, Vec<Row>)> = sought.iter().map(of).collect();
    let Ok(mut evidence) = Evidence::new(origin_unix_ns, &wanted) else {
        return none();
    };
    let files = || Follower::new(logs.iter().map(|log| &log.path));
    let format = |file: usize| logs.get(file).map_or(Format::Auto, |log| log.format);
    // What cannot be read has no lines to show; that is no reason to have no report.
    if evidence.must_learn() {
        let _ = files().finish(|file, line| evidence.learn(format(file), line));
    }
    let mut told: Vec<EntityLines> = sought
        .iter()
        .map(|one| EntityLines::of(logs, &one.rows))
        .collect();
    let mut numbers = vec![0; logs.len()];
    let _ = files().finish(|file, line| {
        let Some(number) = numbers.get_mut(file) else {
            return;
        };
        *number += 1;
        let number = *number;
        evidence.find(format(file), line, |found| {
            if let Some(told) = told.get_mut(found.lifecycle) {
                told.take(found, file, number, line);
            }
        });
    });
    told.into_iter().map(EntityLines::sorted).collect()
}

impl EntityLines {
    fn of(logs: &[Log], rows: &[usize]) -> Self {
        let entity = |row: &usize| Entity {
            row: *row,
            ..Entity::default()
        };
        Self {
            files: logs.iter().map(|log| log.shown.clone()).collect(),
            entities: rows.iter().map(entity).collect(),
        }
    }

    fn take(&mut self, found: Found, file: usize, number: u64, line: &[u8]) {
        let Some(entity) = self.entities.get_mut(found.entity) else {
            return;
        };
        if entity.lines.len() >= LINES {
            entity.more += 1;
            // A line that made a point is worth more than one that only mentions it.
            let idle = entity.lines.iter().rposition(|line| line.points.is_empty());
            match idle.filter(|_| found.made != 0) {
                Some(idle) => entity.lines.remove(idle),
                None => return,
            };
        }
        let line = line.trim_ascii();
        let kept = line.get(..LINE_BYTES).unwrap_or(line);
        entity.lines.push(LogLine {
            file,
            number,
            at_ns: found.at_ns,
            text: String::from_utf8_lossy(kept).into_owned(),
            cut: kept.len() < line.len(),
            points: (0..u64::BITS as usize)
                .filter(|point| found.made >> point & 1 == 1)
                .collect(),
        });
    }

    /// Entities that have lines, these in order of time.
    fn sorted(mut self) -> Self {
        self.entities.retain(|entity| !entity.lines.is_empty());
        for entity in &mut self.entities {
            entity
                .lines
                .sort_by_key(|line| (line.at_ns, line.file, line.number));
        }
        self
    }
}

/// Rows of a table by how likely a reader asks for them: the slowest in all, the slowest of
/// each phase, those that lack a point or go backwards, and some of all others.
fn chosen(table: &Table, most: usize) -> Vec<usize> {
    let phase = |row: &Row, point: usize| {
        let (from, to) = (row.at_ns.get(point)?, row.at_ns.get(point + 1)?);
        to.zip(*from).map(|(to, from)| to.saturating_sub(from))
    };
    let rows = || table.rows.iter().enumerate();
    let lengths = rows().map(|(n, row)| (n, row.length_ns()));
    let mut slowest: Vec<(usize, Option<i64>)> = lengths.collect();
    slowest.sort_by_key(|(n, length)| (std::cmp::Reverse(*length), *n));
    let phases = 0..table.points.len().saturating_sub(1);
    let worst = phases.clone().filter_map(|point| {
        let lengths =
            rows().filter_map(|(n, row)| Some((phase(row, point)?, std::cmp::Reverse(n))));
        lengths.max().map(|(_, n)| n.0)
    });
    let odd = rows().filter(|(_, row)| {
        let backwards = |point| phase(row, point).is_some_and(|length| length < 0);
        row.at_ns.contains(&None) || phases.clone().any(backwards)
    });
    let every = table.rows.len().div_ceil(most.max(1)).max(1);
    let ranked = slowest.iter().take(SLOWEST).map(|(n, _)| *n);
    let ranked = ranked.chain(worst).chain(odd.take(ODD).map(|(n, _)| n));
    let mut seen = BTreeSet::new();
    let all = ranked.chain((0..table.rows.len()).step_by(every));
    all.filter(|n| seen.insert(*n)).take(most).collect()
}

/// The logs of systems whose lines are read, by name.
fn logs(run: &RunFolder, systems: &[PlannedSystem]) -> Vec<Log> {
    let mut logs = Vec::new();
    for entry in std::fs::read_dir(run.path().join("logs"))
        .into_iter()
        .flatten()
        .flatten()
    {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        let format = systems
            .iter()
            .find(|system| system.wrote(&name))
            .and_then(PlannedSystem::format);
        if let Some(format) = format.filter(|_| path.is_file()) {
            let shown = format!("logs/{name}");
            logs.push(Log {
                path,
                shown,
                format,
            });
        }
    }
    logs.sort_by(|a, b| a.shown.cmp(&b.shown));
    logs
}

impl PlannedSystem {
    /// `bbs.log`, `bbs.err.log`, `bbs.files.log`, and of several copies `cell.3.log`.
    fn wrote(&self, file: &str) -> bool {
        let own = RunFile::Log(&self.name).relative_path();
        let own = own
            .file_stem()
            .map(|stem| stem.to_string_lossy().into_owned());
        let stem = file.strip_suffix(".log").unwrap_or_default();
        let ends = [".err", ".files"];
        let stem = ends
            .iter()
            .find_map(|end| stem.strip_suffix(end))
            .unwrap_or(stem);
        let rest = own.as_deref().and_then(|own| stem.strip_prefix(own));
        rest.is_some_and(|rest| {
            let copy = rest.strip_prefix('.');
            rest.is_empty() || copy.is_some_and(|copy| copy.parse::<u32>().is_ok())
        })
    }

    fn format(&self) -> Option<Format> {
        match self.log.as_str() {
            "text" => None,
            "lager" => Some(Format::Lager),
            "json" => Some(Format::Json),
            "logfmt" => Some(Format::Logfmt),
            _ => Some(Format::Auto),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rows: usize, odd: &[usize]) -> Table {
        Table {
            name: "task".into(),
            points: ["a", "b", "c"].map(String::from).to_vec(),
            rows: (0..rows)
                .map(|n| Row {
                    id: n.to_string().into(),
                    group: None,
                    at_ns: vec![
                        Some(0),
                        (!odd.contains(&n)).then_some(5),
                        Some(10 + n as i64 % 700),
                    ],
                })
                .collect(),
        }
    }

    #[test]
    fn the_slowest_the_odd_and_some_others_are_chosen() {
        let found = chosen(&table(1000, &[3, 998]), 100);
        assert_eq!(found.len(), 100);
        assert_eq!(found[..2], [699, 698]);
        for one in [3, 998, 0, 10, 500] {
            assert!(found.contains(&one), "{one} in {found:?}");
        }
        let few = chosen(&table(7, &[]), 100);
        assert_eq!(BTreeSet::from_iter(few), (0..7).collect());
        assert_eq!(chosen(&table(0, &[]), 100), [0; 0]);
    }

    #[test]
    fn an_entity_keeps_the_lines_that_made_it() {
        let mut told = EntityLines {
            files: Vec::new(),
            entities: vec![Entity::default()],
        };
        let found = |at_ns, made| Found {
            lifecycle: 0,
            entity: 0,
            at_ns,
            made,
        };
        for n in 0..LINES as i64 + 5 {
            told.take(found(n, 0), 0, 1, b" mentions it ");
        }
        told.take(found(-1, 0b101), 0, 99, &[b'x'; LINE_BYTES + 1]);
        let told = told.sorted();
        let entity = &told.entities[0];
        assert_eq!((entity.lines.len(), entity.more), (LINES, 6));
        let first = &entity.lines[0];
        assert_eq!((first.number, first.cut), (99, true));
        assert_eq!(
            (first.text.len(), &*first.points),
            (LINE_BYTES, &[0, 2][..])
        );
        assert_eq!(entity.lines[1].text, "mentions it");
    }

    #[test]
    fn logs_are_those_of_systems_that_are_read() {
        let system = |name: &str, log: &str| PlannedSystem {
            name: name.into(),
            log: log.into(),
        };
        let bbs = system("bbs", "auto");
        let wrote = [
            "bbs.log",
            "bbs.err.log",
            "bbs.12.log",
            "bbs.0.err.log",
            "bbs.files.log",
        ];
        assert!(wrote.iter().all(|name| bbs.wrote(name)));
        let others = ["bbs2.log", "bbs.x.log", "driver-bbs.log", "bbs"];
        assert!(others.iter().all(|name| !bbs.wrote(name)));
        assert_eq!(system("a", "text").format(), None);
        assert_eq!(system("a", "lager").format(), Some(Format::Lager));
    }
}
