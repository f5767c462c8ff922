//! What is answered with success is on the disk; what is not, is not.

use super::*;
use crate::acceptance::{Arrival, NodeStatus};
use crate::definitions::{Definitions, Delta, Edit, Object};
use crate::model::property::Property;
use crate::model::rule::Rule;
use crate::server::administered::Administered;
use crate::server::ledger::{Refusal, Reply};
use crate::server::state::{Access, RefusedRecord, TokenRecord};
use crate::server::store::Stored;

on_both_stores!(Cluster:
    everything_is_there_again,
    a_run_of_a_node_that_is_not_accepted_is_refused,
    a_log_without_a_start_takes_no_runs_place,
    definitions_change_only_what_was_looked_at,
    single_changes_and_tokens_are_there_again,
    a_property_of_the_inventory_is_not_set_by_hand_and_one_set_by_hand_stays,
    a_purge_leaves_the_last_run_of_each_node,
);

async fn everything_is_there_again(place: &Place) {
    let (_, certificate) = identity("a");
    let (commands, view) = place.writer().await;
    let arrived = commands.run(newcome("a", &certificate)).await.unwrap();
    assert!(matches!(arrived, Reply::Arrived(Arrival::NewPending, _)));
    let Ok(Reply::Decided(decided)) = commands.run(decide("a", true)).await else {
        panic!("it is decided");
    };
    assert_eq!(decided[0].as_ref().unwrap().inventory, packed::pack(b"{}"));
    let definitions = Request::Definitions(Arc::new(Definitions::default()), 0);
    assert!(matches!(
        commands.run(definitions).await,
        Ok(Reply::Version(1))
    ));
    let first = Request::Policies(vec![policy("a", "c1", 5)]);
    commands.run(first).await.unwrap();
    let second = Request::Policies(vec![policy("a", "c2", 6), policy("gone", "x", 6)]);
    commands.run(second).await.unwrap();
    assert!(matches!(
        commands.run(run("a", 10, b"one")).await,
        Ok(Reply::Kept(1))
    ));
    assert_eq!(&*view.read().policies["a"].config_id, "c2");
    commands.stop().await;

    let (commands, view) = place.writer().await;
    {
        let state = view.read();
        let record = &state.nodes["a"];
        assert_eq!(record.known.standing, NodeStatus::Accepted);
        assert_eq!(&*record.certificate, certificate);
        assert_eq!(state.version, 1);
        assert_eq!(&*state.policies["a"].config_id, "c2");
        assert_eq!(state.policies["a"].digest, [7; 32]);
    }
    // The same run is known; another gets the next number.
    assert!(matches!(
        commands.run(run("a", 10, b"one")).await,
        Ok(Reply::Duplicate)
    ));
    assert!(matches!(
        commands.run(run("a", 11, b"two")).await,
        Ok(Reply::Kept(2))
    ));
    let looked = commands.look(|ledger| {
        Box::pin(async {
            let store = &mut ledger.store;
            let last = store.last_run(1).await.unwrap().unwrap();
            let known = store.expected(1, Some("c1")).await.unwrap().is_some();
            let unknown = store.expected(1, Some("c9")).await.unwrap().is_some();
            (last, known, unknown, store.stored().await.unwrap())
        })
    });
    let (last, known, unknown, stored) = looked.await.unwrap();
    assert_eq!(packed::unpack(&last.message).unwrap(), b"two");
    assert_eq!((known, unknown), (true, false));
    let bytes = [b"one", b"two"].map(|text| packed::pack(text).len());
    let expected = Stored {
        runs: 2,
        reports: 6,
        bytes: i64::try_from(bytes.iter().sum::<usize>()).unwrap(),
        exceptions: 0,
        refused: 0,
    };
    assert_eq!(stored, expected);
}

async fn a_run_of_a_node_that_is_not_accepted_is_refused(place: &Place) {
    let (commands, _) = place.writer().await;
    let (_, certificate) = identity("a");
    commands.run(newcome("a", &certificate)).await.unwrap();
    for node in ["a", "nobody"] {
        let answer = commands.run(run(node, 1, b"x")).await;
        assert!(matches!(answer, Err(Refusal::UnknownNode(_))), "{answer:?}");
    }
    commands.run(decide("a", false)).await.unwrap();
    let again = commands.run(newcome("a", &certificate)).await.unwrap();
    assert!(matches!(again, Reply::Arrived(Arrival::NewPending, _)));
    let (_, other) = identity("a");
    let answer = commands.run(newcome("a", &other)).await;
    assert!(matches!(answer, Err(Refusal::Rejected(_))), "{answer:?}");
}

/// A run, or a log without a start.
fn log_of(start: i64, message: &[u8], whole: bool) -> Request {
    let Request::Run(mut record) = run("a", start, message) else {
        panic!("it is a run");
    };
    record.whole = whole;
    Request::Run(record)
}

async fn a_log_without_a_start_takes_no_runs_place(place: &Place) {
    let (commands, _) = place.writer().await;
    let (_, certificate) = identity("a");
    commands.run(newcome("a", &certificate)).await.unwrap();
    commands.run(decide("a", true)).await.unwrap();
    let part = |message| log_of(10, message, false);
    let whole = |message| log_of(10, message, true);
    // All of it twice: as it comes, and when it is there again.
    let all = async |commands: &Commands, first: bool| {
        for request in [part(b"one"), part(b"two"), whole(b"all"), part(b"late")] {
            let answer = commands.run(request).await;
            match first {
                true => assert!(matches!(answer, Ok(Reply::Kept(_))), "{answer:?}"),
                false => assert!(matches!(answer, Ok(Reply::Duplicate)), "{answer:?}"),
            }
        }
        // Nothing is answered with success that is lost.
        let other = commands.run(whole(b"other")).await;
        assert!(matches!(other, Err(Refusal::OtherRun)), "{other:?}");
    };
    all(&commands, true).await;
    all(&commands, false).await;
    // In one batch it is the same.
    let together = [
        log_of(11, b"x", false),
        log_of(11, b"y", true),
        log_of(11, b"y", true),
    ];
    let (a, b, c) = tokio::join!(
        commands.run(log_of(12, b"x", false)),
        commands.run(log_of(12, b"y", true)),
        commands.run(log_of(12, b"y", true)),
    );
    assert!(matches!(
        (a, b, c),
        (Ok(Reply::Kept(_)), Ok(Reply::Kept(_)), Ok(Reply::Duplicate))
    ));
    for request in together {
        commands.run(request).await.unwrap();
    }
    commands.stop().await;
    let (commands, _) = place.writer().await;
    all(&commands, false).await;
    let stored = commands.look(|ledger| {
        Box::pin(async {
            let last = ledger.store.last_run(1).await.unwrap().unwrap();
            (last, ledger.store.stored().await.unwrap().runs)
        })
    });
    let (last, runs) = stored.await.unwrap();
    assert_eq!(
        (packed::unpack(&last.message).unwrap(), runs),
        (b"y".to_vec(), 8)
    );
}

async fn definitions_change_only_what_was_looked_at(place: &Place) {
    let (commands, view) = place.writer().await;
    let request = |base| Request::Definitions(Arc::new(Definitions::default()), base);
    commands.run(request(0)).await.unwrap();
    let late = commands.run(request(0)).await;
    assert!(
        matches!(late, Err(Refusal::Version { found: 1, base: 0 })),
        "{late:?}"
    );
    assert_eq!(view.read().version, 1);
}

async fn single_changes_and_tokens_are_there_again(place: &Place) {
    let (commands, view) = place.writer().await;
    let put = |id: &str| {
        let edit = Edit::Put(Object::Rule(Rule::new(id, id)));
        Request::Edit(Box::new(edit), None)
    };
    commands.run(put("before")).await.unwrap();
    // All definitions at once, and changes after them: only these are carried out again.
    let whole = Arc::clone(&view.read().definitions);
    let request = Request::Definitions(whole, 1);
    commands.run(request).await.unwrap();
    commands.run(put("after")).await.unwrap();
    let gone = Edit::Remove(Object::Rule(Rule::new("before", "before")));
    let gone = Request::Edit(Box::new(gone), None);
    commands.run(gone).await.unwrap();
    // What differs from what was looked at, and from nothing else.
    let mut folder = Definitions::clone(&view.read().definitions);
    folder
        .rules
        .insert("folder".into(), Rule::new("folder", "Folder"));
    let delta = Delta::between(&view.read().definitions, &folder);
    let delta = |base| {
        let edit = Edit::Folder(Box::new(delta.clone()));
        Request::Edit(Box::new(edit), Some(base))
    };
    let late = commands.run(delta(3)).await;
    assert!(
        matches!(late, Err(Refusal::Version { found: 4, base: 3 })),
        "{late:?}"
    );
    commands.run(delta(4)).await.unwrap();
    assert_eq!(*view.read().definitions, folder);
    let token = |id: &str| {
        Request::Token(Arc::new(TokenRecord {
            id: id.into(),
            name: id.to_owned(),
            access: Access::Write,
            hash: [3; 32],
            created: 7,
        }))
    };
    commands.run(token("a")).await.unwrap();
    commands.run(token("b")).await.unwrap();
    let again = commands.run(token("a")).await;
    assert!(matches!(again, Err(Refusal::KnownToken(_))), "{again:?}");
    commands.run(Request::Revoke("b".into())).await.unwrap();
    let again = commands.run(Request::Revoke("b".into())).await;
    assert!(matches!(again, Err(Refusal::UnknownToken(_))), "{again:?}");
    let (before, version) = (Arc::clone(&view.read().definitions), view.read().version);
    commands.stop().await;

    let (_, view) = place.writer().await;
    let state = view.read();
    assert_eq!((state.version, version), (5, 5));
    assert_eq!(state.definitions, before);
    assert_eq!(state.definitions.made.rules, ["after".to_owned()].into());
    let tokens: Vec<_> = state.tokens.values().collect();
    assert_eq!(tokens.len(), 1);
    assert_eq!((tokens[0].access, tokens[0].hash), (Access::Write, [3; 32]));
}

async fn a_property_of_the_inventory_is_not_set_by_hand_and_one_set_by_hand_stays(place: &Place) {
    let (commands, view) = place.writer().await;
    let (_, certificate) = identity("a");
    let arrives = |names: &[&str]| {
        let Request::Inventory(mut newcome) = newcome("a", &certificate) else {
            panic!("it is an inventory");
        };
        let all = names.iter().map(|name| Property {
            provider: Some("inventory".into()),
            ..Property::new(*name, "theirs".into())
        });
        newcome.node.properties = all.collect();
        Request::Inventory(newcome)
    };
    let set = |name: &str| Request::Administer {
        node: "a".into(),
        change: Administered {
            properties: vec![(name.to_owned(), Some("ours".into()))],
            ..Administered::default()
        },
    };
    commands.run(arrives(&["site"])).await.unwrap();
    let early = commands.run(set("mine")).await;
    assert!(matches!(early, Err(Refusal::UnknownNode(_))), "{early:?}");
    commands.run(decide("a", true)).await.unwrap();
    let theirs = commands.run(set("site")).await;
    assert!(
        matches!(theirs, Err(Refusal::Provided { .. })),
        "{theirs:?}"
    );
    commands.run(set("mine")).await.unwrap();
    let wrong = commands.run(set("a b")).await;
    assert!(matches!(wrong, Err(Refusal::Model(_))), "{wrong:?}");
    // The next inventory has another property, and one that was set by hand.
    commands.run(arrives(&["rack", "mine"])).await.unwrap();
    let properties = view.read().nodes["a"].node.properties.clone();
    let shown: Vec<_> = properties
        .iter()
        .map(|one| (&*one.name, one.value.as_str().unwrap()))
        .collect();
    assert_eq!(shown, [("rack", "theirs"), ("mine", "ours")]);
}

#[tokio::test]
async fn a_full_disk_refuses_and_loses_nothing() {
    let place = Place::sqlite();
    let (commands, _) = place.writer().await;
    let (_, certificate) = identity("a");
    commands.run(newcome("a", &certificate)).await.unwrap();
    commands.run(decide("a", true)).await.unwrap();
    commands.run(run("a", 1, b"small")).await.unwrap();
    commands.tend(|ledger| ledger.store.limit_pages(1)).await;
    let noise: Vec<u8> = (0..1_000_000_u32)
        .map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let refused = commands.run(run("a", 2, &noise)).await;
    assert!(matches!(refused, Err(Refusal::Store(_))), "{refused:?}");
    let refused = commands.run(newcome("b", &identity("b").1)).await;
    let full = matches!(refused, Err(Refusal::Store(_)));
    commands
        .tend(|ledger| ledger.store.limit_pages(1 << 30))
        .await;
    // What was refused has left nothing: it is as new.
    if full {
        let arrived = commands.run(newcome("b", &identity("b").1)).await.unwrap();
        assert!(matches!(arrived, Reply::Arrived(Arrival::NewPending, _)));
    }
    assert!(matches!(
        commands.run(run("a", 2, &noise)).await,
        Ok(Reply::Kept(_))
    ));
    assert!(matches!(
        commands.run(run("a", 1, b"small")).await,
        Ok(Reply::Duplicate)
    ));
}

async fn a_purge_leaves_the_last_run_of_each_node(place: &Place) {
    let (commands, _) = place.writer().await;
    for node in ["a", "b"] {
        let (_, certificate) = identity(node);
        commands.run(newcome(node, &certificate)).await.unwrap();
        commands.run(decide(node, true)).await.unwrap();
    }
    for (node, start) in [("a", 1), ("b", 2), ("a", 3), ("a", 4), ("b", 50)] {
        commands.run(run(node, start, b"x")).await.unwrap();
    }
    for name in 0..1_005 {
        let refused = RefusedRecord {
            at: 0,
            name: name.to_string(),
            why: String::new(),
            body: bytes::Bytes::new(),
        };
        commands.run(Request::Refused(refused)).await.unwrap();
    }
    let looked = commands.look(|ledger| {
        Box::pin(async {
            let more = ledger.purge(50).await.unwrap();
            let all = [(1, 1, 0), (2, 2, 0), (1, 3, 0), (1, 4, 0), (2, 50, 0)];
            let left = ledger.store.known_runs(&all).await.unwrap();
            let refused = ledger.store.stored().await.unwrap().refused;
            (more, all.map(|run| left.contains_key(&run)), refused)
        })
    });
    let (more, left, refused) = looked.await.unwrap();
    assert_eq!((more, left), (false, [false, false, false, true, true]));
    assert_eq!(refused, 1_000);
}
