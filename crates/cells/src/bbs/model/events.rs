//! Which events tell of a change.

use std::sync::Arc;

use diego::models::ActualLrp;

use super::group;
use super::slot::{Row, Slot, UNCLAIMED};

/// What happened to one record.
#[derive(Debug, Clone, PartialEq)]
pub enum Happened {
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

use Happened::{Changed, Crashed, Created, Removed};

/// Events of the instance stream: crashed first, then created and changed, then removed.
///
/// An instance is followed by its key, also when its presence changes. A record
/// that loses its instance is two events: the new one is created, the old removed.
pub fn of_instances(before: &Slot, after: &Slot, crashed: bool) -> Vec<Happened> {
    let mut events = crash(before, after, crashed);
    let mut gone: Vec<&Arc<ActualLrp>> = before.rows().collect();
    for new in after.rows() {
        let old = gone
            .iter()
            .position(|old| old.has_instance(new.instance()))
            .or_else(|| gone.iter().position(|old| replaces(old, new, after)));
        match old.map(|at| gone.remove(at)) {
            Some(old) if old == new => {}
            Some(old) => events.push(Changed {
                before: Arc::clone(old),
                after: Arc::clone(new),
            }),
            None => events.push(Created(Arc::clone(new))),
        }
    }
    events.extend(gone.into_iter().map(|old| Removed(Arc::clone(old))));
    // Changes come before creations, as the evacuation of an instance shows them.
    let rank = |event: &Happened| match event {
        Crashed { .. } => 0,
        Changed { .. } => 1,
        Created(_) => 2,
        Removed(_) => 3,
    };
    events.sort_by_key(rank);
    events
}

/// Is `new` the next state of `old`, of another instance or of none before?
fn replaces(old: &ActualLrp, new: &ActualLrp, after: &Slot) -> bool {
    old.presence == new.presence
        && after.of_instance(old.instance()).is_none()
        && (old.state == UNCLAIMED || new.state != UNCLAIMED)
}

/// Events of the group stream.
pub fn of_groups(before: &Slot, after: &Slot, crashed: bool) -> Vec<Happened> {
    let mut events = crash(before, after, crashed);
    let pairs = [
        (group::instance(before), group::instance(after)),
        (before.evacuating.as_ref(), after.evacuating.as_ref()),
    ];
    for pair in pairs {
        match pair {
            (Some(old), Some(new)) if old == new => {}
            (Some(old), Some(new)) => {
                let (from, to) = (old.instance(), new.instance());
                let swapped = old.presence != new.presence
                    && !from.instance_guid.is_empty()
                    && !to.instance_guid.is_empty()
                    && from != to;
                if swapped {
                    events.push(Created(Arc::clone(new)));
                    events.push(Removed(Arc::clone(old)));
                } else {
                    events.push(Changed {
                        before: Arc::clone(old),
                        after: Arc::clone(new),
                    });
                }
            }
            (None, Some(new)) => events.push(Created(Arc::clone(new))),
            (Some(old), None) => events.push(Removed(Arc::clone(old))),
            (None, None) => {}
        }
    }
    events
}

fn crash(before: &Slot, after: &Slot, crashed: bool) -> Vec<Happened> {
    match (&before.ordinary, &after.ordinary) {
        (Some(before), Some(after)) if crashed => vec![Crashed {
            before: Arc::clone(before),
            after: Arc::clone(after),
        }],
        _ => Vec::new(),
    }
}
