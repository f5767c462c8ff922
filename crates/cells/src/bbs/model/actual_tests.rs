//! The whole transition table of actual LRPs, and random walks through it.

use std::sync::Arc;

use diego::error::Type;
use diego::models::actual_lrp::Presence;
use diego::models::{
    ActualLrp, ActualLrpInstanceKey, ActualLrpInternalRoute, ActualLrpKey, ActualLrpNetInfo,
};
use proptest::prelude::*;

use super::Context;
use super::actual::{self, CRASH_RESET_NS, Crash, Running};
use super::evacuation::{self, Strategy as Replace};
use super::events::{RecordEvent, of_groups, of_instances};
use super::slot::{CLAIMED, CRASHED, RUNNING, Row, Slot, UNCLAIMED, new_row};

fn key() -> ActualLrpKey {
    ActualLrpKey {
        process_guid: "p".into(),
        index: 0,
        domain: "d".into(),
    }
}

fn instance(guid: &str) -> ActualLrpInstanceKey {
    ActualLrpInstanceKey {
        instance_guid: guid.into(),
        cell_id: format!("cell-{guid}"),
    }
}

fn running() -> Running {
    Running {
        net_info: ActualLrpNetInfo {
            address: "1.2.3.4".into(),
            ..Default::default()
        },
        routable: true,
        ..Running::default()
    }
}

fn in_state(state: &str) -> Slot {
    let mut row = new_row(key(), state, "e".into(), 1);
    if matches!(state, CLAIMED | RUNNING) {
        row.actual_lrp_instance_key = Some(instance("a"));
    }
    if state == RUNNING {
        running().write(&mut row);
    }
    Slot {
        ordinary: Some(Arc::new(row)),
        ..Slot::default()
    }
}

/// Applies a call at `now`; tells whether it was a crash.
fn apply(slot: &mut Slot, call: Call, now: i64) -> Result<bool, Type> {
    let mut guids = 0..;
    let mut new_guid = || format!("g-{now}-{}", guids.next().unwrap_or_default());
    let context = &mut Context {
        now,
        new_guid: &mut new_guid,
    };
    let done = match call {
        Call::Claim(who) => actual::claim(slot, &instance(who), now),
        Call::Start(who) => actual::start(slot, &key(), &instance(who), running(), context),
        Call::Crash(who) => {
            let crash = actual::crash(slot, &instance(who), "why", now);
            return crash
                .map(|crash| crash != Crash::SuspectGone)
                .map_err(|error| error.r#type());
        }
        Call::Fail => actual::fail(slot, "no cell", now),
        Call::Remove(who) => actual::remove(slot, Some(&instance(who))),
        Call::Retire => actual::retire(slot).map(drop),
        Call::Unclaim => actual::unclaim(slot, now),
        Call::Evacuate(who) => {
            let (key, who) = (key(), instance(who));
            evacuation::running(slot, &key, &who, running(), Replace::Rolling, context).map(drop)
        }
        Call::EvacuateClaimed(who) => evacuation::claimed(slot, &instance(who), now).map(drop),
        Call::EvacuateStopped(who) => evacuation::stopped(slot, &instance(who)).map(drop),
        Call::RemoveEvacuating(who) => evacuation::remove_evacuating(slot, &instance(who)),
    };
    done.map(|()| false).map_err(|error| error.r#type())
}

#[derive(Debug, Clone, Copy)]
enum Call {
    Claim(&'static str),
    Start(&'static str),
    Crash(&'static str),
    Fail,
    Remove(&'static str),
    Retire,
    Unclaim,
    Evacuate(&'static str),
    EvacuateClaimed(&'static str),
    EvacuateStopped(&'static str),
    RemoveEvacuating(&'static str),
}

fn state(slot: &Slot) -> Option<&str> {
    slot.ordinary.as_ref().map(|row| row.state.as_str())
}

#[test]
fn every_call_in_every_state_does_what_the_table_says() {
    use Type::{
        ActualLrpCannotBeClaimed as Claim, ActualLrpCannotBeCrashed as Crash,
        ActualLrpCannotBeFailed as Fail, ActualLrpCannotBeStarted as Start,
        ActualLrpCannotBeUnclaimed as Unclaim, ResourceNotFound as NotFound,
    };
    let calls = [
        Call::Claim("a"),
        Call::Claim("b"),
        Call::Start("a"),
        Call::Start("b"),
        Call::Crash("a"),
        Call::Crash("b"),
        Call::Fail,
        Call::Unclaim,
        Call::Remove("a"),
        Call::Remove("b"),
    ];
    type Row = (&'static str, [Result<Option<&'static str>, Type>; 10]);
    #[rustfmt::skip]
    let table: [Row; 5] = [
        ("", [Err(NotFound), Err(NotFound), Ok(Some(RUNNING)), Ok(Some(RUNNING)), Err(NotFound),
            Err(NotFound), Ok(None), Err(NotFound), Err(NotFound), Err(NotFound)]),
        (UNCLAIMED, [Ok(Some(CLAIMED)), Ok(Some(CLAIMED)), Ok(Some(RUNNING)), Ok(Some(RUNNING)),
            Err(Crash), Err(Crash), Ok(Some(UNCLAIMED)), Err(Unclaim), Err(NotFound), Err(NotFound)]),
        (CLAIMED, [Ok(Some(CLAIMED)), Err(Claim), Ok(Some(RUNNING)), Ok(Some(RUNNING)),
            Ok(Some(UNCLAIMED)), Err(Crash), Err(Fail), Ok(Some(UNCLAIMED)), Ok(None), Err(NotFound)]),
        (RUNNING, [Ok(Some(CLAIMED)), Err(Claim), Ok(Some(RUNNING)), Err(Start),
            Ok(Some(UNCLAIMED)), Err(Crash), Err(Fail), Ok(Some(UNCLAIMED)), Ok(None), Err(NotFound)]),
        (CRASHED, [Err(Claim), Err(Claim), Err(Start), Err(Start), Err(Crash),
            Err(Crash), Err(Fail), Ok(Some(UNCLAIMED)), Err(NotFound), Err(NotFound)]),
    ];
    for (from, expected) in table {
        for (call, expected) in calls.into_iter().zip(expected) {
            let before = if from.is_empty() {
                Slot::default()
            } else {
                in_state(from)
            };
            let mut after = before.clone();
            let found = apply(&mut after, call, 9).map(|_| state(&after));
            assert_eq!(found, expected, "{call:?} in {from}");
            if found.is_err() {
                assert_eq!(
                    before, after,
                    "{call:?} in {from} failed and changed the slot"
                );
            }
        }
    }
}

#[test]
fn an_identical_start_writes_nothing() {
    let before = in_state(RUNNING);
    let mut after = before.clone();
    apply(&mut after, Call::Start("a"), 9).unwrap();
    assert_eq!(before, after);
}

#[test]
fn the_third_crash_waits_and_a_long_run_counts_anew() {
    let mut slot = in_state(UNCLAIMED);
    for (count, expected) in [(1, UNCLAIMED), (2, UNCLAIMED), (3, CRASHED)] {
        apply(&mut slot, Call::Claim("a"), 10).unwrap();
        apply(&mut slot, Call::Crash("a"), 20).unwrap();
        let row = slot.ordinary.as_ref().unwrap();
        assert_eq!((row.crash_count, row.state.as_str()), (count, expected));
    }
    apply(&mut slot, Call::Unclaim, 30).unwrap();
    apply(&mut slot, Call::Start("a"), 40).unwrap();
    let mut short = slot.clone();
    apply(&mut short, Call::Crash("a"), 40 + CRASH_RESET_NS).unwrap();
    assert_eq!(short.ordinary.unwrap().crash_count, 4);
    apply(&mut slot, Call::Crash("a"), 41 + CRASH_RESET_NS).unwrap();
    assert_eq!(slot.ordinary.unwrap().crash_count, 1);
}

#[test]
fn names_that_no_record_holds_are_refused_after_the_transition() {
    let long = ActualLrpInstanceKey {
        instance_guid: "ü".repeat(256),
        cell_id: "c".into(),
    };
    let refused = |from: &str| {
        let mut slot = in_state(from);
        let claimed = actual::claim(&mut slot, &long, 9).unwrap_err();
        assert_eq!(slot, in_state(from));
        claimed.r#type()
    };
    assert_eq!(refused(UNCLAIMED), Type::InvalidRequest);
    assert_eq!(refused(RUNNING), Type::ActualLrpCannotBeClaimed);
    let mut slot = Slot::default();
    let zone = Running {
        availability_zone: "z".repeat(256),
        ..running()
    };
    let mut guid = || "g".to_owned();
    let context = &mut Context {
        now: 9,
        new_guid: &mut guid,
    };
    let started = actual::start(&mut slot, &key(), &instance("a"), zone, context);
    assert_eq!(started.unwrap_err().r#type(), Type::InvalidRequest);
    assert_eq!(slot, Slot::default());
}

#[test]
fn the_evacuating_record_of_another_instance_is_taken_over() {
    let mut slot = in_state(RUNNING);
    apply(&mut slot, Call::Evacuate("a"), 9).unwrap();
    apply(&mut slot, Call::Claim("b"), 10).unwrap();
    let epoch = |slot: &Slot| {
        let row = slot.evacuating.as_ref().unwrap();
        let tag = row.modification_tag.clone().unwrap();
        (row.instance().instance_guid.clone(), tag.epoch, tag.index)
    };
    let (of, first, index) = epoch(&slot);
    assert_eq!((of.as_str(), index), ("a", 0));
    apply(&mut slot, Call::Evacuate("b"), 11).unwrap();
    assert_eq!(epoch(&slot), ("b".into(), first, 1));
    assert_eq!(state(&slot), Some(UNCLAIMED));
}

/// The record of an index that is being placed anew, of an instance that leaves.
fn leaving() -> Slot {
    let mut slot = in_state(RUNNING);
    let mut row = slot.ordinary.as_deref().unwrap().clone();
    row.actual_lrp_internal_routes = vec![ActualLrpInternalRoute {
        hostname: "h1".into(),
    }];
    row.metric_tags = [("app".to_owned(), "x".to_owned())].into();
    row.routable = Some(false);
    slot.ordinary = Some(Arc::new(row));
    apply(&mut slot, Call::Evacuate("a"), 10).unwrap();
    slot
}

fn tells(slot: &mut Slot, key: &ActualLrpKey, sent: Running) -> bool {
    let mut new_guid = || "g".to_owned();
    let context = &mut Context {
        now: 11,
        new_guid: &mut new_guid,
    };
    let who = instance("a");
    let done = evacuation::running(slot, key, &who, sent, Replace::Rolling, context);
    done.unwrap().keep_container
}

#[test]
fn a_leaving_instance_keeps_its_routes_and_tags_where_it_is_reached_as_before() {
    let before = leaving();
    for sent in [
        running(),
        Running {
            metric_tags: [("app".to_owned(), "y".to_owned())].into(),
            availability_zone: "z".into(),
            ..running()
        },
    ] {
        let mut after = before.clone();
        assert!(tells(&mut after, &key(), sent));
        assert_eq!(before, after);
    }
}

#[test]
fn a_leaving_instance_that_is_reached_elsewhere_is_told_anew_but_for_its_traffic() {
    let before = leaving();
    let elsewhere = Running {
        net_info: ActualLrpNetInfo {
            address: "9.9.9.9".into(),
            ..Default::default()
        },
        ..running()
    };
    let mut after = before.clone();
    assert!(tells(&mut after, &key(), elsewhere.clone()));
    let row = after.evacuating.as_deref().unwrap();
    assert_eq!(row.modification_tag.as_ref().unwrap().index, 1);
    let expected = Running {
        routable: false,
        ..elsewhere
    };
    assert_eq!(Running::of(row), expected);
    assert_eq!(before.ordinary, after.ordinary);
    let told = of_instances(&before, &after, false);
    assert_eq!(
        told,
        [RecordEvent::Created(after.evacuating.clone().unwrap())]
    );
    let told = of_groups(&before, &after, false);
    assert!(
        matches!(&told[..], [RecordEvent::Changed { .. }]),
        "{told:?}"
    );

    let mut moved = before.clone();
    let another = ActualLrpKey {
        domain: "another".into(),
        ..key()
    };
    assert!(tells(&mut moved, &another, running()));
    assert_eq!(moved.evacuating.as_deref().unwrap().key(), &another);
}

fn calls() -> impl proptest::strategy::Strategy<Value = Call> {
    let who = prop_oneof![Just("a"), Just("b"), Just("c")];
    prop_oneof![
        who.clone().prop_map(Call::Claim),
        who.clone().prop_map(Call::Start),
        who.clone().prop_map(Call::Crash),
        Just(Call::Fail),
        who.clone().prop_map(Call::Remove),
        Just(Call::Retire),
        Just(Call::Unclaim),
        who.clone().prop_map(Call::Evacuate),
        who.clone().prop_map(Call::EvacuateClaimed),
        who.clone().prop_map(Call::EvacuateStopped),
        who.prop_map(Call::RemoveEvacuating),
    ]
}

/// A subscriber's view, kept by events alone.
fn follow(view: &mut Vec<ActualLrp>, events: &[RecordEvent]) {
    for event in events {
        match event {
            RecordEvent::Crashed { .. } => {}
            RecordEvent::Created(row) => {
                // An evacuating record that is refreshed is created again. Of others a new one comes
                // before the old one goes, and both may be of no instance.
                let leaves = row.presence() == Presence::Evacuating;
                let is_same = |old: &ActualLrp| {
                    old.presence == row.presence && old.instance() == row.instance()
                };
                view.retain(|old| !(leaves && is_same(old)));
                view.push(ActualLrp::clone(row));
            }
            RecordEvent::Changed { before, after } => {
                let at = view
                    .iter()
                    .position(|row| row == &**before)
                    .expect("changed unknown row");
                view[at] = ActualLrp::clone(after);
            }
            RecordEvent::Removed(row) => {
                let at = view
                    .iter()
                    .position(|old| old == &**row)
                    .expect("removed unknown row");
                view.remove(at);
            }
        }
    }
}

#[test]
fn one_that_crashed_for_good_is_told_to_be_placed_again() {
    let mut slot = in_state(UNCLAIMED);
    let mut view: Vec<ActualLrp> = slot.rows().map(|row| ActualLrp::clone(row)).collect();
    let crashes = ["a", "b", "c"].map(|who| [Call::Claim(who), Call::Start(who), Call::Crash(who)]);
    for call in crashes.into_iter().flatten().chain([Call::Unclaim]) {
        let before = slot.clone();
        let crashed = apply(&mut slot, call, 10).unwrap();
        follow(&mut view, &of_instances(&before, &slot, crashed));
        let rows: Vec<ActualLrp> = slot.rows().map(|row| ActualLrp::clone(row)).collect();
        assert_eq!(view, rows);
    }
    assert_eq!(state(&slot), Some(UNCLAIMED));
}

proptest! {
    #[test]
    fn any_walk_keeps_the_records_consistent_and_events_tell_all_of_it(
        calls in proptest::collection::vec(calls(), 1..60)
    ) {
        let mut slot = in_state(UNCLAIMED);
        let start: Vec<ActualLrp> = slot.rows().map(|row| ActualLrp::clone(row)).collect();
        let (mut instances, mut groups) = (start.clone(), start);
        for (step, call) in calls.into_iter().enumerate() {
            let before = slot.clone();
            let done = apply(&mut slot, call, 10 + step as i64);
            if done.is_err() {
                prop_assert_eq!(&before, &slot);
            }
            let crashed = done == Ok(true);
            follow(&mut instances, &of_instances(&before, &slot, crashed));
            follow(&mut groups, &of_groups(&before, &slot, crashed));
            let mut rows: Vec<ActualLrp> = slot.rows().map(|row| ActualLrp::clone(row)).collect();
            let order = |row: &ActualLrp| row.presence;
            for list in [&mut rows, &mut instances, &mut groups] {
                list.sort_by_key(order);
            }
            prop_assert_eq!(&rows, &instances);
            prop_assert_eq!(&rows, &groups);
            for row in &rows {
                let placed = matches!(row.state.as_str(), CLAIMED | RUNNING);
                prop_assert_eq!(placed, !row.instance().instance_guid.is_empty());
                prop_assert!(row.presence() != Presence::Evacuating || row.state == RUNNING);
            }
            if let Some(row) = &slot.ordinary {
                prop_assert_eq!(row.presence(), Presence::Ordinary);
                prop_assert!(row.state != CRASHED || row.crash_count >= 3);
            }
        }
    }
}
