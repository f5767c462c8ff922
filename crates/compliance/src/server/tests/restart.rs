//! What follows of what is on the disk is the same after a restart.

use commit::StoreError;
use serde_json::json;

use super::*;
use crate::reports::decision::UnixMillis;
use crate::reports::runlog::RunLog;
use crate::reports::status::Status;
use crate::server::fleet::{Compliance, stored_log};
use crate::server::ledger::Reply;
use crate::server::state::Exception;

on_both_stores!(Cluster:
    a_run_of_many_changes_ago_counts,
    repairs_are_counted_once,
    a_run_that_was_under_way_when_its_node_went_counts_nothing,
);

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
/// 2018-08-24 00:00.
const DAY: UnixMillis = 1_535_068_800_000;

/// A store that no server has open any more, and the compliance that follows of it.
async fn restarted(place: &Place, now: UnixMillis) -> (Store, Compliance) {
    for _ in 0..1_000 {
        let opened = match place.store() {
            Ok(mut store) => store.connect().await.map(|_| store),
            Err(error) => Err(error),
        };
        match opened {
            Ok(store) => {
                let loaded = store.load().await.unwrap();
                let all = Compliance::load(&store, &loaded.state, now, 2)
                    .await
                    .unwrap();
                return (store, all.0);
            }
            Err(StoreError::Locked { .. }) => {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
            Err(error) => panic!("{error}"),
        }
    }
    panic!("the database is still locked");
}

async fn accepted(place: &Place) -> (Commands, commit::View<State>) {
    let (commands, view) = place.writer().await;
    let (_, certificate) = identity("a");
    commands.run(newcome("a", &certificate)).await.unwrap();
    commands.run(decide("a", true)).await.unwrap();
    (commands, view)
}

/// A configuration with two values of each of these directives of the rule `r`.
fn configuration(id: &str, begin: UnixMillis, directives: &[&str]) -> Request {
    let directives: Vec<_> = directives
        .iter()
        .map(|id| json!({"did": id, "cs": [{"vid": "File", "vs": [["a"], ["b"]]}]}))
        .collect();
    let expected = json!({
        "ms": {"gpm": {"m": "enforce", "o": true}, "gcm": "full-compliance", "gar": {"i": 5}},
        "rs": [{"rid": "r", "ds": directives}],
    });
    let record = PolicyRecord {
        expected: packed::pack(expected.to_string().as_bytes()),
        ..PolicyRecord::clone(&policy("a", id, begin))
    };
    Request::Policies(vec![Arc::new(record)])
}

/// A run with both values of the directive `d`, of this kind.
fn log(start: UnixMillis, config_id: &str, kind: &str) -> String {
    let at = jiff::Timestamp::from_millisecond(start).unwrap();
    let line = |fields: &str| {
        let (line, run) = ("%Y-%m-%dT%H:%M:%S+00:00", "%Y-%m-%d %H:%M:%S+00:00");
        let (line, run) = (at.strftime(line), at.strftime(run));
        format!("{line} R: @@T@@{fields}@@{run}##a@#m\n")
    };
    line(&format!("control@@rudder@@run@@0@@start@@{config_id}"))
        + &line(&format!("{kind}@@r@@d@@0@@File@@a"))
        + &line(&format!("{kind}@@r@@d@@0@@File@@b"))
}

fn kept(start: UnixMillis, config_id: &str, kind: &'static str) -> Request {
    let told = kind != "result_success";
    let exceptions = ["a", "b"].into_iter().filter(|_| told);
    let exceptions = exceptions.map(|key| Exception {
        rule: "r".into(),
        directive: "d".into(),
        component: "File".into(),
        key: key.into(),
        kind,
        message: "m".into(),
    });
    Request::Run(Box::new(RunRecord {
        node: "a".into(),
        start,
        received: start,
        config_id: Some(config_id.into()),
        whole: true,
        digest: start,
        reports: 3,
        message: packed::pack(log(start, config_id, kind).as_bytes()).into(),
        signed: false,
        exceptions: exceptions.collect(),
    }))
}

fn counts(all: &Compliance) -> Vec<(Status, u64)> {
    let level = *all.lock().fleet.global();
    let counts = Status::ALL
        .into_iter()
        .map(|status| (status, level[status]));
    counts.filter(|(_, count)| *count > 0).collect()
}

async fn configurations(store: &Store) -> usize {
    let mut count = 0;
    let take = |_| {
        count += 1;
        Ok(())
    };
    store.configurations(take).await.unwrap();
    count
}

async fn a_run_of_many_changes_ago_counts(place: &Place) {
    let (commands, _) = accepted(place).await;
    commands
        .run(configuration("c0", DAY - 99 * HOUR, &["d", "e"]))
        .await
        .unwrap();
    let run = kept(DAY + MINUTE, "c0", "result_success");
    assert!(matches!(commands.run(run).await, Ok(Reply::Kept(1))));
    let shown = [(Status::EnforceSuccess, 2), (Status::Pending, 2)];
    let mut commands = commands;
    // More and more of them within the time of one run; in the end more than are kept.
    for (round, changes) in [5, 6, 30].into_iter().enumerate() {
        for change in 0..changes {
            let (id, new) = (format!("c{round}-{change}"), format!("n{round}-{change}"));
            let made = configuration(&id, DAY + 2 * MINUTE, &["d", &new]);
            commands.run(made).await.unwrap();
        }
        commands.stop().await;
        let (store, all) = restarted(place, DAY + 3 * MINUTE).await;
        assert_eq!(counts(&all), shown, "round {round}");
        assert!(configurations(&store).await <= 17);
        drop((store, all));
        commands = place.writer().await.0;
    }
    // What ended days ago goes, but for the one that the last run was made with.
    for day in 3..9 {
        let made = configuration(&format!("d{day}"), DAY + day * 24 * HOUR, &["d", "f"]);
        commands.run(made).await.unwrap();
    }
    commands.stop().await;
    let (store, all) = restarted(place, DAY + 8 * 24 * HOUR + MINUTE).await;
    assert_eq!(counts(&all), shown);
    assert!(configurations(&store).await <= 6);
}

async fn repairs_are_counted_once(place: &Place) {
    let (commands, _) = accepted(place).await;
    commands
        .run(configuration("c", DAY - 99 * HOUR, &["d"]))
        .await
        .unwrap();
    commands.stop().await;
    let (store, live) = restarted(place, DAY).await;
    drop(store);
    let (commands, _) = place.writer().await;
    let now = DAY + 13 * HOUR;
    let repairs = "result_repaired";
    let runs = [
        (now - 80 * HOUR, repairs),
        (now - 71 * HOUR, repairs),
        (now - 8 * HOUR, repairs),
        (now - 7 * HOUR, "result_error"),
        (now - 7 * HOUR + MINUTE, repairs),
        (now - HOUR, repairs),
        (now, repairs),
    ];
    for (start, kind) in runs {
        let Ok(Reply::Kept(number)) = commands.run(kept(start, "c", kind)).await else {
            panic!("it is new");
        };
        let text = log(start, "c", kind);
        live.lock()
            .run(&stored_log("a", &text).unwrap(), number, now);
    }
    commands.stop().await;
    let counted = live.lock().repairs("r", now);
    let total: u32 = counted.iter().map(|(_, count)| count).sum();
    assert_eq!((counted.len(), total), (13, 10));
    let (_store, again) = restarted(place, now).await;
    assert_eq!(again.lock().repairs("r", now), counted);
}

async fn a_run_that_was_under_way_when_its_node_went_counts_nothing(place: &Place) {
    let (commands, _) = accepted(place).await;
    commands.run(configuration("c", DAY, &["d"])).await.unwrap();
    commands.stop().await;
    let (store, all) = restarted(place, DAY).await;
    drop(store);
    let (commands, view) = place.writer().await;
    let run = kept(DAY + MINUTE, "c", "result_success");
    let Ok(Reply::Kept(number)) = commands.run(run).await else {
        panic!("it is new");
    };
    commands.run(Request::Delete("a".into())).await.unwrap();
    all.lock().forget("a");
    // Only now is it this run's turn.
    let text = log(DAY + MINUTE, "c", "result_success");
    let log: RunLog<'_> = stored_log("a", &text).unwrap();
    all.run(&view, &log, number, DAY + MINUTE);
    assert_eq!(counts(&all), []);
}
