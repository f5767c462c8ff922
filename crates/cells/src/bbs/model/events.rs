//! Which events tell of a change.

use std::sync::Arc;

use diego::models::ActualLrp;
use diego::models::actual_lrp::Presence;

use super::group;
use super::slot::{CLAIMED, CRASHED, RUNNING, Row, Slot, UNCLAIMED};

/// What happened to one record.
#[derive(Debug, Clone, PartialEq)]
pub enum RecordEvent {
    /// An instance crashed.
    Crashed {
        /// The record with the instance.
        before: Arc<ActualLrp>,
        /// The record with the new count.
        after: Arc<ActualLrp>,
    },
    /// A record is new.
    Created(Arc<ActualLrp>),
    /// A record is another.
    Changed {
        /// As it was.
        before: Arc<ActualLrp>,
        /// As it is.
        after: Arc<ActualLrp>,
    },
    /// A record is gone.
    Removed(Arc<ActualLrp>),
}

use RecordEvent::{Changed, Crashed, Created, Removed};

/// Says of two records whether the second is what became of the first.
type Rule<'a> = &'a dyn Fn(&ActualLrp, &ActualLrp) -> bool;

/// Events of the instance stream: first crashes, then what brings a running
/// instance, then the rest.
///
/// An instance is followed by its key, also when its presence changes; where it has two records,
/// each by its presence. A record that loses its instance is two events: the new one is created,
/// the old removed. An evacuating record that its cell refreshes is created again.
/// `crashed` says that the ordinary instance crashed, even if the index is to be
/// placed again; one that becomes CRASHED has crashed in any case.
pub fn of_instances(before: &Slot, after: &Slot, crashed: bool) -> Vec<RecordEvent> {
    let mut events = crash(before, after, crashed);
    let mut gone: Vec<&Arc<ActualLrp>> = before.rows().collect();
    let mut pairs: Vec<_> = after.rows().map(|new| (None, new)).collect();
    let rules: [Rule<'_>; 4] = [
        &|old, new| old.presence == new.presence && old.has_instance(new.instance()),
        &|old, new| returns(old, new, before),
        &|old, new| old.has_instance(new.instance()),
        &|old, new| replaces(old, new, after),
    ];
    for continues in rules {
        for (old, new) in pairs.iter_mut().filter(|(old, _)| old.is_none()) {
            let at = gone.iter().position(|old| continues(old, new));
            *old = at.map(|at| gone.remove(at));
        }
    }
    for (old, new) in pairs {
        match old {
            Some(old) if old == new => {}
            Some(old) if is_refreshed(old, new) => events.push(Created(Arc::clone(new))),
            Some(old) => events.push(Changed {
                before: Arc::clone(old),
                after: Arc::clone(new),
            }),
            None => events.push(Created(Arc::clone(new))),
        }
    }
    events.extend(gone.into_iter().map(|old| Removed(Arc::clone(old))));
    events.sort_by_key(rank);
    events
}

/// Has an instance that was leaving taken the place that `old` kept for another?
fn returns(old: &ActualLrp, new: &ActualLrp, before: &Slot) -> bool {
    let leaving = before.evacuating.as_ref();
    old.presence == new.presence
        && old.state == UNCLAIMED
        && leaving.is_some_and(|row| row.has_instance(new.instance()))
}

/// Has the cell that the instance leaves told anew where it is?
fn is_refreshed(old: &ActualLrp, new: &ActualLrp) -> bool {
    let evacuating = i32::from(Presence::Evacuating);
    old.presence == evacuating && new.presence == evacuating
}

/// Is `new` the next state of `old`, of another instance or of none before?
fn replaces(old: &ActualLrp, new: &ActualLrp, after: &Slot) -> bool {
    old.presence == new.presence
        && after.of_instance(old.instance()).is_none()
        && (old.state == UNCLAIMED || new.state != UNCLAIMED)
}

/// Events of the group stream, in the order of the instance stream.
pub fn of_groups(before: &Slot, after: &Slot, crashed: bool) -> Vec<RecordEvent> {
    let mut events = crash(before, after, crashed);
    let pairs = [
        (group::instance(before), group::instance(after)),
        (before.evacuating.as_ref(), after.evacuating.as_ref()),
    ];
    for pair in pairs {
        match pair {
            (Some(old), Some(new)) if old == new => {}
            (Some(old), Some(new)) if is_swapped(old, new) => {
                events.push(Created(Arc::clone(new)));
                events.push(Removed(Arc::clone(old)));
            }
            (Some(old), Some(new)) => events.push(Changed {
                before: Arc::clone(old),
                after: Arc::clone(new),
            }),
            (None, Some(new)) => events.push(Created(Arc::clone(new))),
            (Some(old), None) => events.push(Removed(Arc::clone(old))),
            (None, None) => {}
        }
    }
    events.sort_by_key(rank);
    events
}

/// Has another instance taken the place of one?
fn is_swapped(old: &ActualLrp, new: &ActualLrp) -> bool {
    let has_instance = matches!(new.state.as_str(), CLAIMED | RUNNING);
    has_instance && !old.instance().instance_guid.is_empty() && old.instance() != new.instance()
}

/// Whoever routes requests hears of a new running instance before it loses the old.
fn rank(event: &RecordEvent) -> u8 {
    match event {
        Crashed { .. } => 0,
        Created(after) | Changed { after, .. } if after.state == RUNNING => 1,
        Created(_) | Changed { .. } | Removed(_) => 2,
    }
}

fn crash(before: &Slot, after: &Slot, crashed: bool) -> Vec<RecordEvent> {
    match (&before.ordinary, &after.ordinary) {
        (Some(before), Some(after))
            if crashed || (before.state != CRASHED && after.state == CRASHED) =>
        {
            vec![Crashed {
                before: Arc::clone(before),
                after: Arc::clone(after),
            }]
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use diego::models::{ActualLrpInstanceKey, ActualLrpKey};

    use super::*;
    use crate::bbs::model::Context;
    use crate::bbs::model::actual::{self, Running};
    use crate::bbs::model::evacuation::{self, Strategy};

    fn key() -> ActualLrpKey {
        ActualLrpKey {
            process_guid: "p".into(),
            index: 0,
            domain: "d".into(),
        }
    }

    fn on(guid: &str, cell: &str) -> ActualLrpInstanceKey {
        ActualLrpInstanceKey {
            instance_guid: guid.into(),
            cell_id: cell.into(),
        }
    }

    fn context(new_guid: &mut dyn FnMut() -> String) -> Context<'_> {
        Context { now: 7, new_guid }
    }

    fn claimed(by: &ActualLrpInstanceKey) -> Slot {
        let mut guid = || "epoch".to_owned();
        let mut slot = Slot {
            ordinary: Some(Arc::new(actual::unclaimed(key(), &mut context(&mut guid)))),
            ..Slot::default()
        };
        actual::claim(&mut slot, by, 1).unwrap();
        slot
    }

    fn started(mut slot: Slot, by: &ActualLrpInstanceKey) -> Slot {
        let mut guid = || "epoch".to_owned();
        let context = &mut context(&mut guid);
        actual::start(&mut slot, &key(), by, Running::default(), context).unwrap();
        slot
    }

    fn names(events: &[RecordEvent]) -> Vec<String> {
        let row = |row: &ActualLrp| format!("{} {}", row.state, row.instance().instance_guid);
        let name = |event: &RecordEvent| match event {
            Crashed { before, after } => format!("crashed {} to {}", row(before), after.state),
            Created(new) => format!("created {}", row(new)),
            Changed { before, after } => format!("changed {} to {}", row(before), row(after)),
            Removed(old) => format!("removed {}", row(old)),
        };
        events.iter().map(name).collect()
    }

    #[test]
    fn a_start_by_another_instance_swaps_the_group_and_changes_the_record() {
        let before = claimed(&on("a", "c1"));
        let after = started(before.clone(), &on("b", "c2"));
        let instances = of_instances(&before, &after, false);
        assert_eq!(names(&instances), ["changed CLAIMED a to RUNNING b"]);
        let groups = of_groups(&before, &after, false);
        assert_eq!(names(&groups), ["created RUNNING b", "removed CLAIMED a"]);
    }

    #[test]
    fn an_instance_that_crashes_for_good_on_a_leaving_cell_has_crashed() {
        for (crashes, expected) in [
            (0, &["created UNCLAIMED ", "removed CLAIMED a"][..]),
            (
                2,
                &[
                    "crashed CLAIMED a to CRASHED",
                    "changed CLAIMED a to CRASHED ",
                ],
            ),
        ] {
            let mut before = claimed(&on("a", "c1"));
            let row = before.ordinary.as_deref().unwrap().clone();
            before.ordinary = Some(Arc::new(ActualLrp {
                crash_count: crashes,
                ..row
            }));
            let mut after = before.clone();
            evacuation::crashed(&mut after, &on("a", "c1"), "why", 9).unwrap();
            let events = of_instances(&before, &after, false);
            assert_eq!(names(&events), expected, "after {crashes} crashes");
        }
    }

    #[test]
    fn groups_hear_of_the_evacuating_instance_before_the_other_is_unclaimed() {
        let before = started(claimed(&on("a", "c1")), &on("a", "c1"));
        let mut after = before.clone();
        let mut guid = || "epoch".to_owned();
        evacuation::running(
            &mut after,
            &key(),
            &on("a", "c1"),
            Running::default(),
            Strategy::Rolling,
            &mut context(&mut guid),
        )
        .unwrap();
        let groups = of_groups(&before, &after, false);
        let expected = ["created RUNNING a", "changed RUNNING a to UNCLAIMED "];
        assert_eq!(names(&groups), expected);
        let instances = of_instances(&before, &after, false);
        let expected = ["changed RUNNING a to RUNNING a", "created UNCLAIMED "];
        assert_eq!(names(&instances), expected);
        // The replacement runs: the evacuating record goes after it is announced.
        let running = started(after.clone(), &on("b", "c2"));
        let groups = of_groups(&after, &running, false);
        let expected = ["changed UNCLAIMED  to RUNNING b", "removed RUNNING a"];
        assert_eq!(names(&groups), expected);
    }

    /// An instance that leaves and comes back has two records: each is followed by its presence.
    #[test]
    fn an_instance_that_comes_back_does_not_take_the_event_of_its_leaving_record() {
        let mut before = started(claimed(&on("a", "c1")), &on("a", "c1"));
        let mut guid = || "epoch".to_owned();
        let (key, a) = (key(), on("a", "c1"));
        let (sent, context) = (Running::default(), &mut context(&mut guid));
        evacuation::running(&mut before, &key, &a, sent, Strategy::Rolling, context).unwrap();
        let mut again = before.clone();
        actual::claim(&mut again, &a, 9).unwrap();
        let told = of_instances(&before, &again, false);
        assert_eq!(names(&told), ["changed UNCLAIMED  to CLAIMED a"]);

        for from in [&before, &again] {
            let after = started(from.clone(), &a);
            let told = of_instances(from, &after, false);
            let old = from.ordinary.as_deref().unwrap();
            let changed = format!(
                "changed {} {} to RUNNING a",
                old.state,
                old.instance().instance_guid
            );
            assert_eq!(names(&told), [changed.as_str(), "removed RUNNING a"]);
            let Some(Removed(gone)) = told.last() else {
                panic!("{told:?}");
            };
            assert_eq!(gone.presence(), Presence::Evacuating);
        }
    }
}
