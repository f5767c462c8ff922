use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::{Definition, Format, Miner, Table};

fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

/// An instance: known by `process` and `index` until it gets a `guid`.
fn watched() -> Miner {
    let mut miner = unwatched();
    miner.watch();
    miner
}

fn unwatched() -> Miner {
    let definition = Definition {
        name: "lrp".into(),
        key: strings(&["guid"]),
        alias: vec![strings(&["process", "index"])],
        group: strings(&["cell"]),
        points: ["desired", "placed", "running"]
            .map(|point| (point.to_owned(), point.to_owned()))
            .to_vec(),
    };
    Miner::new(0, &[definition], &[]).unwrap()
}

fn feed(miner: &mut Miner, line: &str) {
    miner.feed(Format::Logfmt, format!("ts={line}").as_bytes());
}

/// Somebody who keeps the newest of what is told.
#[derive(Default)]
struct Kept(BTreeMap<u32, (ChangedRow, Vec<i64>)>);

impl Kept {
    /// Takes what has changed; how many rows that were.
    fn take(&mut self, miner: &mut Miner) -> usize {
        let changes = miner.changes().remove(0);
        let times = changes.at_ns.chunks(changes.points.len());
        assert_eq!(times.len(), changes.rows.len());
        for (row, at) in changes.rows.iter().zip(times) {
            self.0.insert(row.number, (row.clone(), at.to_vec()));
        }
        changes.rows.len()
    }

    /// Each row as its id, its group and its times, in order.
    fn rows(&self) -> Vec<(String, Option<String>, Vec<i64>)> {
        let shows = |at: &[i64]| at.iter().any(|at| *at != NOT_SEEN);
        let kept = self.0.values().filter(|(_, at)| shows(at));
        let mut rows: Vec<_> = kept
            .map(|(row, at)| {
                let group = row.group.as_ref().map(ToString::to_string);
                (row.id.to_string(), group, at.clone())
            })
            .collect();
        rows.sort();
        rows
    }
}

/// The same of a table.
fn rows_of(table: &Table) -> Vec<(String, Option<String>, Vec<i64>)> {
    let mut rows: Vec<_> = table
        .rows
        .iter()
        .map(|row| {
            let at = row.at_ns.iter().map(|at| at.unwrap_or(NOT_SEEN));
            let group = row.group.as_ref().map(ToString::to_string);
            (row.id.to_string(), group, at.collect())
        })
        .collect();
    rows.sort();
    rows
}

#[test]
fn only_what_has_changed_is_told_and_once() {
    let mut miner = watched();
    let mut kept = Kept::default();
    for guid in 0..100 {
        feed(&mut miner, &format!("1 guid=g{guid} msg=desired"));
    }
    assert_eq!(kept.take(&mut miner), 100);
    assert_eq!(kept.take(&mut miner), 0);
    feed(&mut miner, "2 guid=g7 msg=placed");
    feed(&mut miner, "3 guid=g7 msg=running");
    assert_eq!(kept.take(&mut miner), 1);
    assert_eq!(kept.rows(), rows_of(&miner.lifecycles()[0].table()));
}

#[test]
fn what_nobody_watches_is_not_noted() {
    let mut miner = unwatched();
    feed(&mut miner, "1 guid=a msg=desired");
    assert!(miner.changes()[0].rows.is_empty());
}

#[test]
fn a_life_that_comes_late_takes_the_row_of_its_alias() {
    let mut miner = watched();
    let mut kept = Kept::default();
    feed(&mut miner, "1 process=p index=0 msg=desired");
    kept.take(&mut miner);
    assert_eq!(kept.rows()[0].0, "p/0");
    feed(&mut miner, "2 process=p index=0 guid=a msg=placed");
    kept.take(&mut miner);
    let found = kept.rows();
    assert_eq!((found.len(), found[0].0.as_str()), (1, "a"));
    assert_eq!(found, rows_of(&miner.lifecycles()[0].table()));
}

/// A line, or nothing: somebody asks for what has changed.
fn any_line() -> impl Strategy<Value = Option<String>> {
    let point = prop_oneof!["desired", "placed", "running", "other"];
    let key = prop::option::of(0..6u8).prop_map(|key| match key {
        Some(key) => format!(" guid=g{key}"),
        None => String::new(),
    });
    let alias = prop::option::of((0..3u8, 0..2u8)).prop_map(|alias| match alias {
        Some((process, index)) => format!(" process=p{process} index={index}"),
        None => String::new(),
    });
    let cell = prop::option::of(0..3u8).prop_map(|cell| match cell {
        Some(cell) => format!(" cell=c{cell}"),
        None => String::new(),
    });
    let line = (0..12u8, point, key, alias, cell)
        .prop_map(|(at, point, key, alias, cell)| format!("{at} msg={point}{key}{alias}{cell}"));
    prop_oneof![4 => line.prop_map(Some), 1 => Just(None)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn whoever_keeps_what_changed_has_the_table(
        lines in prop::collection::vec(any_line(), 0..60),
    ) {
        let mut miner = watched();
        let mut kept = Kept::default();
        for line in lines {
            match line {
                Some(line) => feed(&mut miner, &line),
                None => {
                    kept.take(&mut miner);
                    prop_assert_eq!(kept.rows(), rows_of(&miner.lifecycles()[0].table()));
                }
            }
        }
        kept.take(&mut miner);
        prop_assert_eq!(kept.rows(), rows_of(&miner.lifecycles()[0].table()));
    }
}
