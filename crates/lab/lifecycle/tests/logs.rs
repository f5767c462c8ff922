//! From growing log files of three programs to tables, numbers and CSV.

#![allow(clippy::unwrap_used)]

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

use lab_lifecycle::{
    Definition, Follower, Format, LoopDefinition, Miner, Table, concurrency, span, summarise,
};

/// 2016-06-02T20:40:00Z.
const START: i64 = 1_464_900_000;

fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn points(points: &[(&str, &str)]) -> Vec<(String, String)> {
    points
        .iter()
        .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
        .collect()
}

fn task() -> Definition {
    Definition {
        name: "task".into(),
        key: strings(&["task-guid", "task_guid"]),
        alias: Vec::new(),
        group: strings(&["cell-id"]),
        points: points(&[
            ("desired", "desire-task.starting"),
            ("running", "/start-task\\.(finished|done)$/"),
            ("resolved", "state=Resolving"),
        ]),
    }
}

fn instance() -> Definition {
    Definition {
        name: "lrp".into(),
        key: strings(&["instance-guid", "key.instance_guid"]),
        alias: vec![
            strings(&["process-guid", "index"]),
            strings(&["lrp.process_guid", "lrp.index"]),
        ],
        group: strings(&["cell-id", "key.cell_id"]),
        points: points(&[
            ("desired", "create-unclaimed"),
            ("auctioned", "auction.scheduled"),
            ("claimed", "claim-actual-lrp.done"),
            ("running", "start-actual-lrp.done"),
        ]),
    }
}

fn convergence() -> LoopDefinition {
    LoopDefinition {
        name: "convergence".into(),
        start: "starting-convergence".into(),
        end: "finished-convergence".into(),
    }
}

/// The control plane: lager with seconds since the epoch.
fn bbs() -> String {
    let line = |at: f64, session: &str, message: &str, data: &str| {
        let (whole, millis) = (START + at.trunc() as i64, (at.fract() * 1000.0).round());
        format!(
            r#"{{"timestamp":"{whole}.{millis:03}000000","source":"bbs","message":"bbs.{message}","log_level":1,"data":{{"session":"{session}"{data}}}}}"#
        ) + "\n"
    };
    let lrp = r#","lrp":{"process_guid":"web","index":0,"domain":"d"}"#;
    let key = |guid: &str, cell: u8| {
        format!(r#"{lrp},"key":{{"instance_guid":"{guid}","cell_id":"cell-{cell}"}}"#)
    };
    [
        line(1.0, "4.1", "desire-task.starting", r#","task-guid":"t-1""#),
        line(1.5, "4.2", "desire-task.starting", r#","task-guid":"t-2""#),
        line(
            2.0,
            "4.3",
            "start-task.finished",
            r#","task_guid":"t-1","cell-id":"cell-1""#,
        ),
        line(3.0, "5.1", "converge-lrps.starting-convergence", ""),
        line(3.25, "5.1", "converge-lrps.finished-convergence", ""),
        line(
            5.0,
            "4.4",
            "resolving-task",
            r#","task_guid":"t-1","state":"Resolving""#,
        ),
        line(10.0, "6.1", "create-unclaimed-actual-lrp", lrp),
        line(11.0, "6.2", "claim-actual-lrp.done", &key("i-1", 1)),
        line(12.0, "6.3", "start-actual-lrp.done", &key("i-1", 1)),
        line(20.0, "6.4", "crash-actual-lrp.done", &key("i-1", 1)),
        line(20.0, "6.4", "create-unclaimed-actual-lrp", lrp),
        line(21.0, "6.5", "claim-actual-lrp.done", &key("i-2", 2)),
        line(22.0, "6.6", "start-actual-lrp.done", &key("i-2", 2)),
        line(
            30.0,
            "6.7",
            "create-unclaimed-actual-lrp",
            r#","process-guid":"web","index":1"#,
        ),
    ]
    .concat()
}

/// The auctioneer: lager with RFC 3339 and a prefix; it does not know the instance.
fn auctioneer() -> String {
    [10.5, 20.5]
        .map(|at: f64| {
            format!(
                r#"auctioneer/0: {{"timestamp":"2016-06-02T20:40:{at:04.1}Z","level":"info","source":"auctioneer","message":"auction.scheduled","data":{{"process-guid":"web","index":0}}}}"#
            ) + "\n"
        })
        .concat()
}

/// A foreign cell: logfmt, with a clock that is a second behind, and a crash.
fn cell() -> String {
    "time=2016-06-02T20:40:00.5Z level=info msg=\"start-task.done\" task-guid=t-2 cell-id=cell-2\n\
     panic: out of luck\n"
        .into()
}

fn append(path: &Path, text: &str) {
    let mut file: File = OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

/// Mines the files while they grow by so many bytes at a time.
fn mined(names: [&str; 3], step: usize) -> Miner {
    let folder = tempfile::tempdir().unwrap();
    let paths = names.map(|name| folder.path().join(name));
    let mut miner = Miner::new(
        START * 1_000_000_000,
        &[task(), instance()],
        &[convergence()],
    )
    .unwrap();
    let mut follower = Follower::new(&paths);
    for (path, name) in paths.iter().zip(names) {
        let text = match name {
            "bbs" => bbs(),
            "auctioneer" => auctioneer(),
            _ => cell(),
        };
        for piece in text.as_bytes().chunks(step) {
            append(path, std::str::from_utf8(piece).unwrap());
            follower
                .poll(|_, line| miner.feed(Format::Auto, line))
                .unwrap();
        }
    }
    follower
        .finish(|_, line| miner.feed(Format::Auto, line))
        .unwrap();
    miner
}

fn csv(table: &Table) -> String {
    let mut out = Vec::new();
    table.write_csv(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn three_programs_one_table() {
    let miner = mined(["bbs", "auctioneer", "cell"], 1000);
    assert_eq!((miner.counts().lines, miner.counts().unreadable), (18, 1));
    assert_eq!(
        miner.counts().unreadable_sample.as_deref(),
        Some("panic: out of luck")
    );

    let tasks = miner.lifecycles()[0].table();
    assert_eq!(
        csv(&tasks),
        "id,group,desired,running,resolved\n\
         t-2,cell-2,1500000000,500000000,\n\
         t-1,cell-1,1000000000,2000000000,5000000000\n"
    );
    let instances = miner.lifecycles()[1].table();
    assert_eq!(
        csv(&instances),
        "id,group,desired,auctioned,claimed,running\n\
         i-1,cell-1,10000000000,10500000000,11000000000,12000000000\n\
         i-2,cell-2,20000000000,20500000000,21000000000,22000000000\n\
         web/1,,30000000000,,,\n"
    );
    for table in [&tasks, &instances] {
        let read = Table::read_csv(csv(table).as_bytes(), &table.name).unwrap();
        assert_eq!(read, *table);
    }
}

#[test]
fn the_table_does_not_depend_on_how_files_are_read() {
    let expected = mined(["bbs", "auctioneer", "cell"], 1000);
    for (names, step) in [
        (["cell", "auctioneer", "bbs"], 7),
        (["auctioneer", "bbs", "cell"], 100_000),
    ] {
        let miner = mined(names, step);
        for (one, other) in miner.lifecycles().iter().zip(expected.lifecycles()) {
            assert_eq!(one.table(), other.table());
        }
    }
}

#[test]
fn numbers_come_from_the_table() {
    let miner = mined(["bbs", "auctioneer", "cell"], 1000);
    let turns = miner.loops()[0].turns();
    assert_eq!(
        (turns.turns[0].start_ns, turns.turns[0].end_ns),
        (3_000_000_000, 3_250_000_000)
    );

    let tasks = summarise(&miner.lifecycles()[0].table());
    assert_eq!((tasks.entities, tasks.complete, tasks.skewed), (2, 1, 1));
    assert_eq!(tasks.missing[2], ("resolved".to_owned(), 1));
    assert_eq!(
        tasks.phases[0].durations.as_ref().unwrap().min_ns,
        -1_000_000_000
    );

    let instances = miner.lifecycles()[1].table();
    let whole = span(&instances, "desired", "running").unwrap();
    assert_eq!(
        (whole.sorted_ns.as_slice(), whole.missing),
        ([2_000_000_000; 2].as_slice(), 1)
    );
    assert_eq!(whole.makespan_ns, Some(12_000_000_000));
    // The instance that was never placed waits until the end.
    assert_eq!(
        concurrency(&instances, 0, 0, 10_000_000_000, 4),
        [0, 1, 1, 1]
    );
}
