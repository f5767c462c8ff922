use proptest::prelude::*;

use crate::{Collector, Definition, Format, Miner, Row, Snapshot, Table};

fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

/// An instance: known by `process` and `index` until it gets a `guid`.
fn instance() -> Definition {
    Definition {
        name: "lrp".into(),
        key: strings(&["guid", "key.guid"]),
        alias: vec![
            strings(&["process", "index"]),
            strings(&["lrp.process", "lrp.index"]),
        ],
        group: strings(&["cell", "cell-id"]),
        points: ["desired", "placed", "running", "stopped"]
            .map(|point| (point.to_owned(), point.to_owned()))
            .to_vec(),
    }
}

fn mined(lines: &[&str]) -> Miner {
    let mut miner = Miner::new(0, &[instance()], &[]).unwrap();
    for line in lines {
        miner.feed(Format::Logfmt, format!("ts={line}").as_bytes());
    }
    assert_eq!(miner.counts().unreadable, 0);
    miner
}

fn collector(miner: &Miner) -> &Collector {
    &miner.lifecycles()[0]
}

/// Each row as `id@group desired,placed,running,stopped` in seconds.
fn rows(lines: &[&str]) -> Vec<String> {
    let table = collector(&mined(lines)).table();
    table.rows.iter().map(show).collect()
}

fn show(row: &Row) -> String {
    let seconds = |at: &Option<i64>| at.map_or("-".into(), |at| (at as f64 / 1e9).to_string());
    let times: Vec<String> = row.at_ns.iter().map(seconds).collect();
    format!(
        "{}@{} {}",
        row.id,
        row.group.as_deref().unwrap_or("-"),
        times.join(",")
    )
}

#[test]
fn points_are_set_by_point_and_the_earliest_time_stays() {
    let found = rows(&[
        "4 guid=a msg=stopped",
        "3 guid=a msg=running",
        "1 guid=a msg=desired",
        "2 guid=a msg=desired",
        "2.5 guid=b msg=desired",
    ]);
    assert_eq!(found, ["a@- 1,-,3,4", "b@- 2.5,-,-,-"]);
}

#[test]
fn the_first_key_present_wins_and_empty_is_not_present() {
    let found = rows(&[
        "1 guid=a key.guid=b msg=desired",
        "2 guid= key.guid=b msg=desired",
        "3 guid= msg=desired",
    ]);
    assert_eq!(found, ["a@- 1,-,-,-", "b@- 2,-,-,-"]);
}

#[test]
fn the_group_is_the_one_named_earliest() {
    let found = rows(&[
        "2 guid=a cell=late msg=desired",
        "1 guid=a cell-id=z",
        "1 guid=a cell=early cell-id=second",
    ]);
    assert_eq!(found, ["a@early 2,-,-,-"]);
}

#[test]
fn an_entity_without_points_is_no_row() {
    let miner = mined(&["1 guid=a msg=other", "2 guid=b msg=desired"]);
    assert_eq!(collector(&miner).table().rows.len(), 1);
    assert_eq!(collector(&miner).snapshot().entities, 1);
}

#[test]
fn a_line_may_show_several_points() {
    assert_eq!(
        rows(&["1 guid=a msg=\"desired and placed\""]),
        ["a@- 1,1,-,-"]
    );
}

#[test]
fn early_lines_follow_their_alias() {
    let early = "1 process=p index=0 msg=desired";
    let tie = "2 process=p index=0 guid=a cell=c1 msg=placed";
    let late = "3 guid=a msg=running";
    let expected = ["a@c1 1,2,3,-"];
    assert_eq!(rows(&[early, tie, late]), expected);
    assert_eq!(rows(&[late, tie, early]), expected);
    assert_eq!(rows(&[tie, early, late]), expected);
}

#[test]
fn forms_of_an_alias_mean_the_same() {
    let found = rows(&[
        "1 lrp.process=p lrp.index=0 msg=desired",
        "2 process=p index=0 guid=a",
        "1 process=p index= msg=desired",
    ]);
    assert_eq!(found, ["a@- 1,-,-,-"]);
}

#[test]
fn every_life_gets_the_early_lines_that_led_to_it() {
    let found = rows(&[
        "1 process=p index=0 msg=desired",
        "2 process=p index=0 guid=a msg=placed",
        "3 process=p index=0 guid=a msg=running",
        "4 process=p index=0 guid=a msg=crashed",
        "4 process=p index=0 msg=desired",
        "5 process=p index=0 guid=b msg=placed",
        // The first cell still writes about the life that ended.
        "5.5 process=p index=0 guid=a msg=deleted",
        "6 process=p index=0 guid=b msg=running",
    ]);
    assert_eq!(found, ["a@- 1,2,3,-", "b@- 4,5,6,-"]);
}

#[test]
fn lines_by_others_in_the_course_of_a_life_go_to_it() {
    let found = rows(&[
        "1 process=p index=0 msg=desired",
        "2 process=p index=0 guid=a msg=allocated",
        // The auctioneer does not know the guid and writes after the cell did.
        "2.5 process=p index=0 msg=placed",
        "3 process=p index=0 guid=a msg=running",
        "7 process=p index=0 guid=b msg=allocated",
        "7.5 process=p index=0 msg=placed",
        "8 process=p index=0 guid=b msg=running",
        "9 process=p index=0 msg=stopped",
    ]);
    assert_eq!(found, ["a@- 1,2.5,3,-", "b@- -,7.5,8,9"]);

    // To the end of a life belongs what happens at the same instant.
    let found = rows(&[
        "2 process=p index=0 guid=a msg=allocated",
        "3 process=p index=0 guid=a msg=running",
        "3 process=p index=0 msg=placed",
        "4 process=p index=0 guid=b msg=running",
    ]);
    assert_eq!(found, ["a@- -,3,3,-", "b@- -,-,4,-"]);
}

#[test]
fn a_life_that_never_began_is_a_row() {
    let found = rows(&[
        "1 process=p index=3 msg=desired cell=c1",
        "2 process=p index=4 msg=placed",
    ]);
    assert_eq!(found, ["p/3@c1 1,-,-,-", "p/4@- -,2,-,-"]);

    let found = rows(&[
        "1 process=p index=0 msg=desired",
        "2 process=p index=0 guid=a msg=running",
        "4 process=p index=0 msg=desired",
        "5 process=p index=0 msg=stopped",
    ]);
    assert_eq!(found, ["a@- 1,-,2,-", "p/0@- 4,-,-,5"]);
}

#[test]
fn a_repeated_early_line_is_a_repeat() {
    let found = rows(&[
        "1 process=p index=0 msg=desired",
        "1.5 process=p index=0 msg=desired",
        "2 process=p index=0 guid=a msg=placed",
        "2 process=p index=0 msg=desired",
    ]);
    assert_eq!(found, ["a@- 1,2,-,-"]);
}

#[test]
fn a_clock_that_is_behind_is_kept_as_it_is() {
    assert_eq!(
        rows(&["5 guid=a msg=desired", "4 guid=a msg=placed"]),
        ["a@- 5,4,-,-"]
    );
}

#[test]
fn times_count_from_the_origin() {
    let mut miner = Miner::new(10_000_000_000, &[instance()], &[]).unwrap();
    miner.feed(Format::Auto, b"ts=12 guid=a msg=desired");
    miner.feed(Format::Auto, b"ts=9 guid=b msg=desired");
    let shown: Vec<String> = collector(&miner).table().rows.iter().map(show).collect();
    assert_eq!(shown, ["b@- -1,-,-,-", "a@- 2,-,-,-"]);
}

#[test]
fn lines_that_come_again_are_counted_by_point_and_second() {
    let miner = mined(&[
        "1 guid=a msg=desired",
        "3 guid=a msg=running",
        "3.2 guid=a msg=running",
        "3.9 guid=a msg=running",
        "4 guid=a msg=running",
        "4 guid=b msg=desired",
        "4.5 guid=b msg=desired",
        // Nobody knows whose they are.
        "4.5 process=p index=0 msg=desired",
        "4.6 process=p index=0 msg=desired",
    ]);
    let repeated: Vec<_> = collector(&miner).repeated().iter().collect();
    assert_eq!(repeated, [(&(0, 4), &1), (&(2, 3), &2), (&(2, 4), &1)]);
}

#[test]
fn a_snapshot_counts_without_a_table() {
    let miner = mined(&[
        "1 guid=a msg=desired",
        "2 guid=a msg=desired",
        "2 guid=a msg=running",
        "1 guid=b msg=desired",
        "1 process=p index=0 msg=desired",
        "1 process=p index=1 msg=desired",
        "2 process=p index=1 guid=c msg=running",
        "3 msg=desired",
    ]);
    let expected = Snapshot {
        entities: 4,
        reached: vec![4, 0, 2, 0],
        repeats: 1,
        overflow: 0,
    };
    assert_eq!(collector(&miner).snapshot(), expected);
    assert_eq!(collector(&miner).table().rows.len(), 4);
}

#[test]
fn entities_beyond_the_limit_only_count() {
    let mut miner = mined(&[]);
    miner.lifecycles_mut()[0].limit_entities(2);
    for line in [
        "ts=1 guid=a msg=desired",
        "ts=2 guid=b msg=desired",
        "ts=3 guid=c msg=desired",
    ] {
        miner.feed(Format::Logfmt, line.as_bytes());
    }
    miner.feed(Format::Logfmt, b"ts=4 guid=a msg=placed");
    let snapshot = collector(&miner).snapshot();
    assert_eq!((snapshot.entities, snapshot.overflow), (2, 1));
    assert_eq!(collector(&miner).table().rows.len(), 2);
}

fn any_line() -> impl Strategy<Value = String> {
    let point = prop_oneof!["desired", "placed", "running", "stopped", "other"];
    let key = prop::option::of(0..4u8).prop_map(|key| match key {
        Some(key) => format!(" guid=g{key}"),
        None => String::new(),
    });
    let alias = prop::option::of((0..2u8, 0..2u8)).prop_map(|alias| match alias {
        Some((process, index)) => format!(" process=p{process} index={index}"),
        None => String::new(),
    });
    let cell = prop::option::of(0..3u8).prop_map(|cell| match cell {
        Some(cell) => format!(" cell=c{cell}"),
        None => String::new(),
    });
    (0..12u8, point, key, alias, cell)
        .prop_map(|(at, point, key, alias, cell)| format!("{at} msg={point}{key}{alias}{cell}"))
}

fn table_of(lines: &[String]) -> Table {
    collector(&mined(
        &lines.iter().map(String::as_str).collect::<Vec<_>>(),
    ))
    .table()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn the_order_of_lines_does_not_matter(
        (lines, shuffled) in prop::collection::vec(any_line(), 0..25)
            .prop_flat_map(|lines| (Just(lines.clone()), Just(lines).prop_shuffle()))
    ) {
        prop_assert_eq!(table_of(&lines), table_of(&shuffled));
    }

    /// Every line that shows a point of something with an identity is in the table:
    /// its point has a row whose time is not later.
    #[test]
    fn no_point_gets_lost(lines in prop::collection::vec(any_line(), 0..25)) {
        let table = table_of(&lines);
        for line in lines.iter().filter(|line| line.contains("guid") || line.contains("process")) {
            let at = line.split(' ').next().unwrap().parse::<i64>().unwrap() * 1_000_000_000;
            for (point, name) in table.points.iter().enumerate() {
                if line.contains(name.as_str()) {
                    let kept = table.rows.iter().filter_map(|row| row.at_ns[point]).any(|t| t <= at);
                    prop_assert!(kept, "{} in {:?}", line, table);
                }
            }
        }
    }

    /// A snapshot needs no table, but without aliases it says the same.
    #[test]
    fn a_snapshot_agrees_with_the_table(lines in prop::collection::vec(any_line(), 0..25)) {
        let lines: Vec<&str> = lines.iter().map(String::as_str).filter(|line| !line.contains("process")).collect();
        let miner = mined(&lines);
        let (table, snapshot) = (collector(&miner).table(), collector(&miner).snapshot());
        prop_assert_eq!(snapshot.entities, table.rows.len() as u64);
        let reached = (0..table.points.len())
            .map(|point| table.rows.iter().filter(|row| row.at_ns[point].is_some()).count() as u64);
        prop_assert_eq!(snapshot.reached, reached.collect::<Vec<_>>());
    }
}

#[test]
fn entities_and_groups_may_be_named_in_messages() {
    let definition = Definition {
        name: "job".into(),
        key: strings(&["id", r"/job (\d+)/"]),
        alias: Vec::new(),
        group: strings(&[r"/ on (\S+)/"]),
        points: vec![
            ("queued".into(), "queued".into()),
            ("done".into(), "done".into()),
        ],
    };
    let mut miner = Miner::new(0, std::slice::from_ref(&definition), &[]).unwrap();
    for line in [
        r#"ts=1 msg="queued job 7""#,
        r#"ts=2 msg="queued job 8""#,
        r#"ts=3 msg="job 7 done on b""#,
        r#"ts=4 msg=done id=8"#,
        r#"ts=5 msg="done with all""#,
    ] {
        miner.feed(Format::Logfmt, line.as_bytes());
    }
    let rows: Vec<String> = collector(&miner).table().rows.iter().map(show).collect();
    assert_eq!(rows, ["7@b 1,3", "8@- 2,4"]);
    assert_eq!(collector(&miner).keyed(), 4);

    let groupless = Definition {
        key: strings(&["/job [0-9]+/"]),
        ..definition
    };
    let refused = Miner::new(0, &[groupless], &[]).unwrap_err().to_string();
    assert!(
        refused.contains("`/job [0-9]+/` in the key of lifecycle `job`"),
        "{refused}"
    );
}
