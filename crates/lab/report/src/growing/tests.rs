use std::collections::BTreeMap;
use std::path::Path;

use lab_lifecycle::{ChangedRow, NOT_SEEN, Row, Table};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::sent::Grown;
use super::*;
use crate::blob::{Blob, Coding, Column};
use crate::timelines::Timelines;

const POINTS: usize = 3;

/// What a run has at one moment: by number the id, the group, and the times.
type Known = BTreeMap<u32, (String, Option<String>, [i64; POINTS])>;

/// An entity as a page has it: its id, its group, and its numbers.
type Entity = (String, Option<String>, [i32; POINTS]);

fn table(known: &Known) -> Table {
    let mut rows: Vec<Row> = known
        .values()
        .map(|(id, group, at)| Row {
            id: id.as_str().into(),
            group: group.as_deref().map(Into::into),
            at_ns: at.map(|at| (at != NOT_SEEN).then_some(at)).to_vec(),
        })
        .collect();
    rows.sort_by(|a, b| {
        let first = |row: &Row| row.at_ns.iter().flatten().min().copied();
        (first(a), &a.id).cmp(&(first(b), &b.id))
    });
    Table {
        name: "task".into(),
        points: (0..POINTS).map(|point| format!("p{point}")).collect(),
        rows,
    }
}

/// The numbers of a column of a report that rounds nothing.
fn column(place: &Column, left: &[Vec<Option<u32>>], blob: &[u8]) -> Vec<Option<u32>> {
    let mut before = 0;
    (0..place.n)
        .map(|row| {
            let byte = |plane: usize| i64::from(blob[place.at + plane * place.n + row]);
            let stored: i64 = (0..place.planes)
                .map(|plane| byte(plane) << (8 * plane))
                .sum();
            let folded = stored.checked_sub(1).filter(|folded| *folded >= 0)?;
            let nearest = left.iter().rev().find_map(|column| column[row]);
            let predicted = match place.coding {
                Coding::Plain => 0,
                Coding::Above => before,
                Coding::Left => nearest.map_or(before, i64::from),
            };
            before = predicted + (folded >> 1 ^ -(folded & 1));
            Some(u32::try_from(before).unwrap())
        })
        .collect()
}

/// The entities of a report of this moment, in order of their ids, with its scale.
fn reported(known: &Known) -> (Vec<Entity>, [f64; 2]) {
    let (table, mut blob) = (table(known), Blob::default());
    let packed = Timelines::pack(&table, f64::INFINITY, &mut blob).unwrap();
    let places = serde_json::to_value(&packed).unwrap();
    let mut columns: Vec<Vec<Option<u32>>> = Vec::new();
    for place in packed.at() {
        columns.push(column(place, &columns, blob.bytes()));
    }
    let number = |row: usize, point: usize| columns[point][row].map_or(-1, |n| n as i32);
    let mut entities: Vec<Entity> = table
        .rows
        .iter()
        .enumerate()
        .map(|(place, row)| {
            let group = row.group.as_ref().map(ToString::to_string);
            let numbers = std::array::from_fn(|point| number(place, point));
            (row.id.to_string(), group, numbers)
        })
        .collect();
    entities.sort();
    let scale = ["origin_s", "unit_s"].map(|name| places[name].as_f64().unwrap());
    (entities, scale)
}

/// An open page, which writes what it is told into what it has.
#[derive(Debug, Clone, Default)]
struct Page {
    moment: Option<u32>,
    ids: Vec<String>,
    groups: Vec<String>,
    group: Vec<i32>,
    numbers: Vec<[i32; POINTS]>,
    scale: [f64; 2],
}

impl Page {
    /// How many rows it was told.
    fn ask(&mut self, growing: &Growing) -> usize {
        let (grown, bytes, moment) = growing.since(self.moment);
        self.moment = Some(moment);
        assert!(grown.len() <= 1);
        grown.iter().map(|grown| self.take(grown, &bytes)).sum()
    }

    fn take(&mut self, grown: &Grown, bytes: &[u8]) -> usize {
        let Grown { rows, named, .. } = *grown;
        let mut rest = &bytes[grown.at..];
        let mut next = |n: usize| -> Vec<i32> {
            let (own, after) = rest.split_at(4 * n);
            rest = after;
            own.as_chunks::<4>()
                .0
                .iter()
                .map(|four| i32::from_le_bytes(*four))
                .collect()
        };
        let places: Vec<usize> = match grown.whole {
            true => (0..rows).collect(),
            false => next(rows)
                .into_iter()
                .map(|place| usize::try_from(place).unwrap())
                .collect(),
        };
        if grown.whole {
            *self = Self {
                moment: self.moment,
                ..Self::default()
            };
        }
        let columns: [Vec<i32>; POINTS] = std::array::from_fn(|_| next(rows));
        let group = next(rows);
        self.ids.resize(grown.entities, String::new());
        self.group.resize(grown.entities, -1);
        self.numbers.resize(grown.entities, [0; POINTS]);
        self.groups.truncate(grown.groups_from);
        assert_eq!(self.groups.len(), grown.groups_from, "no name is missing");
        self.groups.extend(grown.groups.iter().cloned());
        self.scale = [grown.origin_s, grown.unit_s];
        let width = grown.form.iter().map(|n| usize::from(*n)).sum::<usize>() / 2;
        for (k, place) in places.iter().enumerate() {
            self.numbers[*place] = std::array::from_fn(|point| columns[point][k]);
            self.group[*place] = group[k];
            if k < named {
                self.ids[*place] = match grown.odd.iter().position(|odd| *odd == k) {
                    Some(odd) => grown.texts[odd].clone(),
                    None => text(&rest[k * width..][..width], &grown.form),
                };
            }
        }
        assert_eq!(bytes.len() % 4, 0);
        rows
    }

    fn entities(&self) -> Vec<Entity> {
        let group = |place: i32| {
            usize::try_from(place)
                .ok()
                .map(|at| self.groups[at].clone())
        };
        let mut entities: Vec<Entity> = (0..self.ids.len())
            .map(|at| {
                (
                    self.ids[at].clone(),
                    group(self.group[at]),
                    self.numbers[at],
                )
            })
            .collect();
        entities.sort();
        entities
    }
}

/// An id of this form.
fn text(bytes: &[u8], form: &[u8]) -> String {
    let mut digits = bytes
        .iter()
        .flat_map(|byte| format!("{byte:02x}").into_bytes());
    let parts = form.iter().map(|n| {
        let part = digits.by_ref().take(usize::from(*n)).collect();
        String::from_utf8(part).unwrap()
    });
    parts.collect::<Vec<_>>().join("-")
}

/// What happens to one row: its number, an id, a group, and times; without times it is no more.
type Told = (u32, u8, Option<u8>, [Option<i64>; POINTS]);

fn changes(told: &[Told]) -> Changes {
    let mut changes = Changes {
        name: "task".into(),
        points: (0..POINTS).map(|point| format!("p{point}")).collect(),
        rows: Vec::new(),
        at_ns: Vec::new(),
    };
    for (number, kind, group, at) in told {
        changes.rows.push(ChangedRow {
            number: *number,
            id: id(*number, *kind).as_str().into(),
            group: group.map(|group| format!("cell-{group}").as_str().into()),
        });
        changes.at_ns.extend(at.map(|at| at.unwrap_or(NOT_SEEN)));
    }
    changes
}

/// Stays the same for each number.
fn id(number: u32, kind: u8) -> String {
    match kind {
        0 => format!("task-{number:x}"),
        _ => format!("{number:08x}-{:04x}", number.wrapping_mul(40_503) & 0xffff),
    }
}

fn happen(known: &mut Known, told: &[Told]) {
    for (number, kind, group, at) in told {
        let times = at.map(|at| at.unwrap_or(NOT_SEEN));
        match at.iter().any(Option::is_some) {
            true => {
                let group = group.map(|group| format!("cell-{group}"));
                known.insert(*number, (id(*number, *kind), group, times));
            }
            false => drop(known.remove(number)),
        }
    }
}

fn any_time() -> impl Strategy<Value = Option<i64>> {
    let near = (0..5_000_000_i64).prop_map(|us| Some(us * 1000 + us % 1000));
    // Clocks that are wrong, and runs that are longer than their times fit into microseconds.
    let far = (-1_000_000..9_000_000_i64).prop_map(|ms| Some(ms * 1_000_000));
    prop_oneof![12 => near, 1 => far, 6 => Just(None)]
}

fn any_told() -> impl Strategy<Value = Told> {
    let number = prop_oneof![3 => 0..12_u32, 1 => (0..4_u32).prop_map(|n| n | 1 << 31)];
    let group = prop::option::of(0..4_u8);
    (number, group, prop::array::uniform3(any_time()))
        .prop_map(|(number, group, at)| (number, u8::from(number % 5 != 0), group, at))
}

/// What one of three pages does after some changes.
#[derive(Debug, Clone)]
enum Does {
    Nothing,
    Asks(usize),
    /// It has forgotten what it had.
    ComesBack(usize),
    /// It asks with the moment that it had before, for its question was lost.
    AsksAgain(usize),
}

fn any_step() -> impl Strategy<Value = (Vec<Told>, Does)> {
    let does = prop_oneof![
        2 => Just(Does::Nothing),
        4 => (0..3_usize).prop_map(Does::Asks),
        1 => (0..3_usize).prop_map(Does::ComesBack),
        1 => (0..3_usize).prop_map(Does::AsksAgain),
    ];
    (prop::collection::vec(any_told(), 0..5), does)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn whoever_takes_what_changed_has_what_the_report_holds(
        steps in prop::collection::vec(any_step(), 1..40),
    ) {
        let (growing, mut known) = (Growing::default(), Known::new());
        let mut pages: [Page; 3] = Default::default();
        let mut before: [Option<u32>; 3] = [None; 3];
        growing.take(&[changes(&[])]);
        for (told, does) in steps {
            growing.take(&[changes(&told)]);
            happen(&mut known, &told);
            let who = match does {
                Does::Nothing => continue,
                Does::Asks(who) => who,
                Does::ComesBack(who) => {
                    pages[who] = Page::default();
                    who
                }
                Does::AsksAgain(who) => {
                    pages[who].moment = before[who].min(pages[who].moment);
                    who
                }
            };
            before[who] = pages[who].moment;
            pages[who].ask(&growing);
            let (entities, scale) = reported(&known);
            prop_assert_eq!(pages[who].entities(), entities);
            prop_assert_eq!(pages[who].scale, scale);
        }
        for page in &mut pages {
            page.ask(&growing);
            prop_assert_eq!(page.entities(), reported(&known).0);
            prop_assert_eq!(page.ask(&growing), 0, "nothing is told twice");
        }
    }
}

#[test]
fn only_changed_rows_are_told_and_an_unknown_moment_gets_all() {
    let growing = Growing::default();
    let row = |number: u32, at: i64| -> Told { (number, 1, Some(1), [Some(at), None, None]) };
    let all: Vec<Told> = (0..1000).map(|n| row(n, i64::from(n) * 1000)).collect();
    growing.take(&[changes(&all)]);
    let mut page = Page::default();
    assert_eq!(page.ask(&growing), 1000);
    growing.take(&[changes(&[row(7, 9_000), row(8, 8_000)])]);
    assert_eq!(page.ask(&growing), 1, "that of 8 is as it was");
    // A server that was started anew knows no such moment.
    let mut other = Page {
        moment: Some(99),
        ..Page::default()
    };
    assert_eq!(other.ask(&growing), 1000);
    assert_eq!(other.entities(), page.entities());
}

/// What the page's own tests read: updates from the code above, and the report of their end.
fn recorded() -> Value {
    let hex = |bytes: &[u8]| {
        bytes
            .iter()
            .fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
    };
    let (growing, mut known) = (Growing::default(), Known::new());
    let mut dice = stats::SplitMix::new(16);
    let mut pick = |n: f64| (dice.unit() * n) as u32;
    let (mut updates, mut moment) = (Vec::new(), None);
    for step in 0..24 {
        let told: Vec<Told> = (0..pick(7.0))
            .map(|_| {
                let number = pick(60.0);
                let mut at = 2_000_000_000 + i64::from(step) * 50_000_000;
                let times = std::array::from_fn(|_| {
                    at += i64::from(pick(3e7)) * 10;
                    (pick(6.0) > 0).then_some(at)
                });
                (
                    number,
                    u8::from(number % 5 != 0),
                    (pick(4.0) > 0).then_some((number % 7) as u8),
                    times,
                )
            })
            .collect();
        growing.take(&[changes(&told)]);
        happen(&mut known, &told);
        // Somebody who asks is away now and then.
        if pick(4.0) > 0 || step == 23 {
            let (grown, bytes, now) = growing.since(moment);
            moment = Some(now);
            updates.push(json!({"grown": grown, "bytes": hex(&bytes)}));
        }
    }
    let mut blob = Blob::default();
    let packed = Timelines::pack(&table(&known), f64::INFINITY, &mut blob).unwrap();
    json!({"updates": updates, "report": {"lifecycle": packed, "blob": hex(blob.bytes())}})
}

/// `REWRITE=1 cargo test -p lab-report growing` writes it anew.
#[test]
fn the_pages_tests_read_what_this_code_sends() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../web/test/growing.json");
    let now = recorded().to_string() + "\n";
    if std::env::var_os("REWRITE").is_some() {
        std::fs::write(&path, &now).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap();
    assert!(
        written == now,
        "{} is not what is sent; REWRITE=1 cargo test -p lab-report growing writes it anew, and the page's tests must pass then",
        path.display()
    );
}
