//! One row of timestamps per entity.

use std::sync::Arc;

/// The mined timelines of one kind of entity.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table {
    /// Name of the lifecycle.
    pub name: String,
    /// Names of the points, in order.
    pub points: Vec<String>,
    /// Entities, in order of their first time, then of their id.
    pub rows: Vec<Row>,
}

/// The timeline of one entity.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Identity of the entity.
    pub id: Arc<str>,
    /// Where it ran (a cell, a host), when a line said so.
    pub group: Option<Arc<str>>,
    /// When it passed each point, in nanoseconds since the start of the run;
    /// `None`: no line showed that point. As long as [`Table::points`].
    pub at_ns: Vec<Option<i64>>,
}

impl Row {
    /// From its earliest time to its latest, in nanoseconds; `None` without any.
    pub fn length_ns(&self) -> Option<i64> {
        let times = || self.at_ns.iter().flatten();
        let ends = times().max().zip(times().min());
        ends.map(|(last, first)| last.saturating_sub(*first))
    }
}
