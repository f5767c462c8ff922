use super::*;
use crate::{Turn, Turns};

fn definition(points: usize) -> Definition {
    Definition {
        name: "task".into(),
        key: vec!["id".into()],
        points: (0..points)
            .map(|n| (format!("p{n}"), format!("point {n}!")))
            .collect(),
        ..Definition::default()
    }
}

fn definition_error(change: impl FnOnce(&mut Definition)) -> String {
    let mut task = definition(2);
    change(&mut task);
    Miner::new(0, &[task], &[]).unwrap_err().to_string()
}

#[test]
fn a_definition_is_checked() {
    assert_eq!(
        definition_error(|task| task.key.clear()),
        "lifecycle `task` has no key; name the field that identifies an entity"
    );
    assert_eq!(
        definition_error(|task| task.points.clear()),
        "lifecycle `task` has no points; name at least one"
    );
    assert_eq!(
        definition_error(|task| task.points = definition(65).points),
        "lifecycle `task` has 65 points; at most 64 are possible"
    );
    assert_eq!(
        definition_error(|task| task.alias.push(Vec::new())),
        "lifecycle `task` has an alias without fields; name them or remove it"
    );
    let message = definition_error(|task| task.points[1].1 = "/a(/".into());
    assert!(message.starts_with("`p1` of `task`: the regular expression has a fault at byte 2"));
    let bad = LoopDefinition {
        name: "sync".into(),
        start: "x".into(),
        end: String::new(),
    };
    let message = Miner::new(0, &[], &[bad]).unwrap_err().to_string();
    assert!(
        message.starts_with("`end` of `sync`: the matcher is empty"),
        "{message}"
    );
}

#[test]
fn the_most_points_fit() {
    let mut miner = Miner::new(0, &[definition(64)], &[]).unwrap();
    for n in 0..64 {
        miner.feed(
            Format::Auto,
            format!("ts={n} id=a msg=\"point {n}!\"").as_bytes(),
        );
    }
    let table = miner.lifecycles()[0].table();
    let expected: Vec<Option<i64>> = (0..64).map(|n| Some(n * 1_000_000_000)).collect();
    assert_eq!(table.rows[0].at_ns, expected);
}

#[test]
fn what_cannot_be_read_is_counted_and_the_first_is_kept() {
    let mut miner = Miner::new(0, &[definition(1)], &[]).unwrap();
    let long = format!(
        "ts=1 id=b msg=\"point 0!\" pad={}",
        "x".repeat(MAX_LINE_BYTES)
    );
    for line in [
        "ts=1 id=a msg=x\r\n",
        "panic: \u{1f4a5}",
        "",
        " \t",
        "{broken",
        &long,
    ] {
        miner.feed(Format::Auto, line.as_bytes());
    }
    let expected = LineCounts {
        lines: 4,
        bytes: (15 + 11 + 7 + long.len()) as u64,
        unreadable: 2,
        unreadable_sample: Some("panic: \u{1f4a5}".into()),
        overlong: 1,
    };
    assert_eq!(*miner.counts(), expected);
    assert_eq!(miner.lifecycles()[0].table().rows.len(), 1);

    let mut miner = Miner::new(0, &[], &[]).unwrap();
    miner.feed(Format::Auto, &vec![b'x'; MAX_LINE_BYTES]);
    assert_eq!(miner.counts().overlong, 0);
    assert_eq!(
        miner.counts().unreadable_sample,
        Some("x".repeat(SAMPLE_BYTES))
    );
}

/// The turns found in logfmt lines, and unmatched starts and ends.
fn turns(lines: &[&str]) -> (Vec<(i64, i64)>, u64, u64) {
    let sync = LoopDefinition {
        name: "sync".into(),
        start: "/^(start|tick)/".into(),
        end: "/^(end|tick)/".into(),
    };
    let mut miner = Miner::new(0, &[], &[sync]).unwrap();
    for line in lines {
        miner.feed(Format::Logfmt, format!("ts={line}").as_bytes());
    }
    assert_eq!(miner.loops()[0].name(), "sync");
    let Turns {
        turns,
        unmatched_starts,
        unmatched_ends,
        overflow,
    } = miner.loops()[0].turns();
    assert_eq!(overflow, 0);
    let seconds = |Turn {
                       start_ns, end_ns, ..
                   }| (start_ns / 1_000_000_000, end_ns / 1_000_000_000);
    (
        turns.into_iter().map(seconds).collect(),
        unmatched_starts,
        unmatched_ends,
    )
}

#[test]
fn a_start_and_the_next_end_make_a_turn() {
    assert_eq!(
        turns(&[
            "1 msg=start",
            "2 msg=end",
            "5 msg=start",
            "5 msg=end",
            "9 msg=start"
        ]),
        (vec![(1, 2), (5, 5)], 1, 0)
    );
    assert_eq!(
        turns(&["1 msg=end", "2 msg=start", "3 msg=start", "4 msg=end"]),
        (vec![(3, 4)], 1, 1)
    );
}

#[test]
fn turns_of_different_places_do_not_mix() {
    assert_eq!(
        turns(&[
            "1 source=a msg=start",
            "2 source=b msg=start",
            "3 source=a msg=end",
            "4 source=b session=1 msg=end",
            "5 source=b session=2 msg=start",
            "6 source=b msg=end",
            "7 source=b session=2 msg=end",
        ]),
        (vec![(1, 3), (2, 6), (5, 7)], 0, 1)
    );
}

#[test]
fn lines_of_a_loop_may_come_in_any_order() {
    assert_eq!(
        turns(&["4 msg=end", "3 msg=start", "2 msg=end", "1 msg=start"]).0,
        [(1, 2), (3, 4)]
    );
}

#[test]
fn a_line_may_end_one_turn_and_start_the_next() {
    assert_eq!(
        turns(&["1 msg=tick", "4 msg=tick", "6 msg=tick"]),
        (vec![(1, 4), (4, 6)], 1, 1)
    );
}
