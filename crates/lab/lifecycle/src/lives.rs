//! Gives lines that have only an alias to the entity they belong to.

use crate::interner::Interner;
use crate::timelines::{GroupAt, Timelines};

/// An entity under an alias: when lines tied the two together.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Life {
    pub(crate) entity: u32,
    /// The earliest line with both.
    pub(crate) first: i64,
    /// The latest line with both.
    pub(crate) last: i64,
}

/// A line that has an alias and no key, and shows a point.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Held {
    pub(crate) alias: u32,
    pub(crate) at: i64,
    pub(crate) point: u8,
    pub(crate) group: Option<u32>,
}

/// Gives each held line of one alias to a row; the rule is in the documentation of
/// [`Collector`](crate::Collector). `lives` are in order of their first line,
/// `held` in order of time. Lines of no life go to the row `rest`.
pub(crate) fn settle(
    lives: &[Life],
    held: &[Held],
    rest: u32,
    rows: &mut Timelines,
    groups: &Interner,
) {
    let mut rest_is_used = false;
    for line in held {
        let point = usize::from(line.point);
        let next = lives.partition_point(|life| life.first < line.at);
        let running = next.checked_sub(1).map(|before| lives[before]);

        let lacks = |life: &&Life| !rows.has(life.entity, point);
        let goes_on = |life: &&Life| line.at <= life.last;
        let row = match (running.as_ref().filter(lacks), lives.get(next)) {
            (Some(life), _) if goes_on(&life) => life.entity,
            (_, Some(life)) => life.entity,
            (Some(life), None) if !rest_is_used => life.entity,
            _ => {
                rest_is_used = true;
                rest
            }
        };
        rows.pass(row, point, line.at);
        if let Some(group) = line.group {
            rows.join(row, GroupAt { at: line.at, group }, groups);
        }
    }
}
