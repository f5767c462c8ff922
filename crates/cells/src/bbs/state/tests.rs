//! A state after batches is what plain maps say.

use std::collections::BTreeMap;

use diego::models::{ActualLrp, ActualLrpInstanceKey, ActualLrpKey, DesiredLrp};
use proptest::prelude::*;

use super::*;
use crate::bbs::model::slot::Slot;

fn row(index: i32, cell: &str, presence: i32) -> ActualLrp {
    ActualLrp {
        actual_lrp_key: Some(ActualLrpKey {
            process_guid: "p".into(),
            index,
            domain: "d".into(),
        }),
        actual_lrp_instance_key: Some(ActualLrpInstanceKey {
            instance_guid: format!("i-{index}"),
            cell_id: cell.into(),
        }),
        presence,
        ..ActualLrp::default()
    }
}

/// What a batch does to one place: puts a row on a cell (none: on no cell), or removes it.
type Change = (i32, i32, Option<usize>, bool);

const CELLS: [&str; 3] = ["", "a", "b"];

proptest! {
    #[test]
    fn rows_and_cells_are_as_plain_maps_say(
        batches in prop::collection::vec(
            prop::collection::vec(
                (0..12i32, 0..3i32, prop::option::of(0..3usize), any::<bool>()), 0..20,
            ),
            0..12,
        )
    ) {
        let (mut state, mut names) = (State::default(), Names::default());
        let mut next = NextIds::default();
        let mut plain: BTreeMap<Place, &str> = BTreeMap::new();
        for batch in batches {
            let mut over = Batch::new(&state, &mut names, &mut next);
            for (index, presence, cell, _) in batch as Vec<Change> {
                let mut before = over.slot("p", index).unwrap();
                let mut after = Slot { ..before.clone() };
                let at = diego::models::actual_lrp::Presence::try_from(presence).unwrap();
                *after.place(at) = cell.map(|cell| row(index, CELLS[cell], presence).into());
                over.put_slot("p", index, &mut before, &mut after);
                match cell {
                    Some(cell) => plain.insert((index, presence), CELLS[cell]),
                    None => plain.remove(&(index, presence)),
                };
                let indices: Vec<i32> = over.indices("p", 3);
                let mut expected: Vec<i32> =
                    plain.keys().map(|place| place.0).filter(|index| *index >= 3).collect();
                expected.dedup();
                prop_assert_eq!(indices, expected);
            }
            let overlay = over.into_overlay();
            state.merge(overlay);
            let rows: Vec<(Place, String)> = state.processes.get("p").into_iter()
                .flat_map(|process| &process.actual)
                .map(|row| (row.place(), row.cell.to_string()))
                .collect();
            let expected: Vec<(Place, String)> =
                plain.iter().map(|(place, cell)| (*place, (*cell).to_owned())).collect();
            prop_assert_eq!(rows, expected);
            for cell in ["a", "b"] {
                let on: Vec<Place> = state.on_cell(cell).into_iter()
                    .flat_map(|on| on.rows.iter().map(|(_, place)| *place))
                    .collect();
                let expected: Vec<Place> = plain.iter()
                    .filter(|(_, at)| **at == cell).map(|(place, _)| *place).collect();
                prop_assert_eq!(on, expected);
            }
        }
    }
}

#[test]
fn an_instance_is_routable_while_one_of_its_copies_is() {
    let (mut state, mut names) = (State::default(), Names::default());
    let mut next = NextIds::default();
    let mut put = |copies: [bool; 3], desired: i32| {
        let mut over = Batch::new(&state, &mut names, &mut next);
        over.put_desired(DesiredLrp {
            process_guid: "p".into(),
            instances: desired,
            ..DesiredLrp::default()
        });
        let mut before = over.slot("p", 0).unwrap();
        let copy = |presence: i32| {
            let runs = copies[presence as usize].then(|| ActualLrp {
                state: "RUNNING".into(),
                routable: Some(true),
                ..row(0, "a", presence)
            });
            runs.map(Arc::new)
        };
        let mut after = Slot {
            ordinary: copy(0),
            evacuating: copy(1),
            suspect: copy(2),
        };
        over.put_slot("p", 0, &mut before, &mut after);
        let overlay = over.into_overlay();
        state.merge(overlay);
        (state.counts().routable, state.gone_dark())
    };
    assert_eq!(put([true, false, false], 1), (1, 0));
    assert_eq!(put([false, true, false], 1), (1, 0), "handed over");
    assert_eq!(put([true, true, true], 1), (1, 0), "once each");
    assert_eq!(put([false, false, true], 1), (1, 0), "suspect");
    assert_eq!(put([false, false, false], 1), (0, 1));
    assert_eq!(put([true, false, false], 1), (1, 1));
    assert_eq!(put([false, false, false], 0), (0, 1), "nobody wants it");
}

#[test]
fn a_batch_costs_what_it_changes_and_not_what_the_process_has() {
    let (mut names, mut next) = (Names::default(), NextIds::default());
    let mut state = State::default();
    let put = |over: &mut Batch<'_>, index, cell| {
        let mut before = over.slot("p", index).unwrap();
        let mut after = Slot {
            ordinary: Some(row(index, cell, 0).into()),
            ..Slot::default()
        };
        over.put_slot("p", index, &mut before, &mut after);
    };
    let mut over = Batch::new(&state, &mut names, &mut next);
    (0..5000).for_each(|index| put(&mut over, index, ""));
    over.put_desired(DesiredLrp {
        process_guid: "p".into(),
        instances: 5000,
        ..DesiredLrp::default()
    });
    let overlay = over.into_overlay();
    state.merge(overlay);
    let mut over = Batch::new(&state, &mut names, &mut next);
    put(&mut over, 17, "a");
    let overlay = over.into_overlay();
    let changed: usize = overlay
        .processes
        .values()
        .map(|layer| layer.rows.changes().count())
        .sum();
    assert_eq!(changed, 1);
}

#[test]
fn a_stop_is_marked_until_the_last_of_its_instances_is_gone() {
    let (mut names, mut next) = (Names::default(), NextIds::default());
    let mut state = State::default();
    let mut over = Batch::new(&state, &mut names, &mut next);
    for index in 0..3 {
        let mut after = Slot {
            ordinary: Some(row(index, "a", 0).into()),
            ..Slot::default()
        };
        over.put_slot("p", index, &mut Slot::default(), &mut after);
    }
    over.put_stop_from("p", Some(1));
    let overlay = over.into_overlay();
    state.merge(overlay);
    for (index, marked) in [(0, true), (2, true), (1, false)] {
        let mut over = Batch::new(&state, &mut names, &mut next);
        let mut before = over.slot("p", index).unwrap();
        over.put_slot("p", index, &mut before, &mut Slot::default());
        let overlay = over.into_overlay();
        state.merge(overlay);
        assert_eq!(state.stopping().count() == 1, marked, "index {index}");
    }
    assert!(state.processes.is_empty());
}
