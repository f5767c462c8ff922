//! Finds a status for each expectation and each report of a directive.

use super::blocks::directive_level;
use super::pattern::{is_pattern, literal_bytes, matches};
use super::shape::{Shape, ValueKind};
use super::{DirectiveEntry, NodeExpected};
use crate::reports::level::ComplianceLevel;
use crate::reports::status::Status;

/// A report that compliance depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received<'a> {
    /// Its place in the run.
    pub report: u32,
    /// The identifier of the method call, `0` if it has none.
    pub report_id: &'a str,
    /// The component.
    pub component: &'a str,
    /// The value.
    pub key: &'a str,
    /// The status that it tells.
    pub status: Status,
}

/// A status: of a report, of an expectation without a report, or of both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Assigned {
    /// The place of the report in its run; none if it is missing.
    pub report: Option<u32>,
    /// The value, numbered over the directive in the order of the expected reports; none if the
    /// report is unexpected.
    pub value: Option<u32>,
    /// The component, numbered as it stands in the expected reports, blocks before what is in
    /// them; none if it is unknown.
    pub component: Option<u32>,
    /// What is shown.
    pub status: Status,
}

/// What became of a directive.
#[derive(Debug, Clone, Copy)]
pub struct Matched<'m> {
    /// Every report at least once, and every expectation.
    pub assigned: &'m [Assigned],
    /// What is counted of them.
    pub level: ComplianceLevel,
}

/// Matches one directive after another, in memory that it keeps.
#[derive(Debug, Default)]
pub struct Matcher {
    assigned: Vec<Assigned>,
    /// How many reports each value has.
    used: Vec<u32>,
    levels: Vec<ComplianceLevel>,
    rest: Vec<u32>,
    constants: Vec<u32>,
    /// Where among constants of one text, by the place of their first, none before is free.
    free_from: Vec<usize>,
    patterns: Vec<u32>,
    fitting: Fitting,
}

/// Patterns that a key can come of, found as far as somebody asked: reports may have one key very
/// often.
#[derive(Debug, Default)]
struct Fitting {
    /// The most specific first.
    values: Vec<u32>,
    /// Of these none before is free.
    free_from: usize,
    /// So many of the patterns were looked at.
    looked_at: usize,
}

/// Where texts of values come from.
#[derive(Clone, Copy)]
struct Texts<'a> {
    expected: &'a NodeExpected,
    entry: &'a DirectiveEntry,
}

impl<'a> Texts<'a> {
    /// The key that a value is found by; none if it is found otherwise.
    fn key(self, value: u32) -> Option<&'a str> {
        let shape: &'a Shape = &self.entry.shape;
        match shape.values.get(value as usize)?.kind {
            ValueKind::Constant(span) => Some(shape.text(span)),
            ValueKind::Own(number) => Some(self.expected.own(self.entry, number)),
            ValueKind::Id(_) => None,
        }
    }
}

impl Matcher {
    /// Matches the reports of a directive with what is expected of it.
    pub fn directive(
        &mut self,
        expected: &NodeExpected,
        entry: &DirectiveEntry,
        received: &[Received<'_>],
    ) -> Matched<'_> {
        let shape = &entry.shape;
        self.begin(shape);
        self.rest.clear();
        for (place, report) in (0_u32..).zip(received) {
            let values = shape.with_id(report.report_id);
            for value in values {
                self.assign(shape, report, *value);
            }
            if values.is_empty() {
                self.rest.push(place);
            }
        }
        self.by_component(Texts { expected, entry }, received);
        self.end(shape, expected.missing(entry, !received.is_empty()))
    }

    /// The same without reports: every value has one status.
    pub fn without_reports(&mut self, entry: &DirectiveEntry, status: Status) -> Matched<'_> {
        self.begin(&entry.shape);
        self.end(&entry.shape, status)
    }

    fn begin(&mut self, shape: &Shape) {
        self.assigned.clear();
        self.used.clear();
        self.used.resize(shape.values.len(), 0);
    }

    /// Values without a report have this status.
    fn end(&mut self, shape: &Shape, missing: Status) -> Matched<'_> {
        for (index, (value, used)) in (0_u32..).zip(shape.values.iter().zip(&self.used)) {
            if *used == 0 {
                self.assigned.push(Assigned {
                    report: None,
                    value: Some(index),
                    component: Some(value.node),
                    status: missing,
                });
            }
        }
        let level = self.level(shape);
        let assigned = &self.assigned;
        Matched { assigned, level }
    }

    /// The level of a directive of which every value has the same status.
    pub fn uniform(&mut self, shape: &Shape, status: Status) -> ComplianceLevel {
        self.levels.clear();
        self.levels
            .resize(shape.nodes.len(), ComplianceLevel::EMPTY);
        for value in &shape.values {
            if let Some(level) = self.levels.get_mut(value.node as usize) {
                level.count(status, 1);
            }
        }
        directive_level(shape, &self.levels)
    }

    fn level(&mut self, shape: &Shape) -> ComplianceLevel {
        let unknown = component_levels(shape, &self.assigned, &mut self.levels);
        let mut level = directive_level(shape, &self.levels);
        level += &unknown;
        level
    }

    fn assign(&mut self, shape: &Shape, report: &Received<'_>, value: u32) {
        let at = value as usize;
        if let Some(used) = self.used.get_mut(at) {
            *used += 1;
        }
        self.assigned.push(Assigned {
            report: Some(report.report),
            value: Some(value),
            component: shape.values.get(at).map(|value| value.node),
            status: report.status,
        });
    }

    /// Matches what is left by component and key: longer keys first, as they are more specific, and
    /// of one length those of constants. Keys are sorted, so that the order of reports does not
    /// matter.
    fn by_component(&mut self, texts: Texts<'_>, received: &[Received<'_>]) {
        let mut rest = std::mem::take(&mut self.rest);
        let report = |place: &u32| received.get(*place as usize);
        let component = |place: &u32| report(place).map(|report| report.component);
        rest.sort_by_key(component);
        for group in rest.chunk_by_mut(|one, other| component(one) == component(other)) {
            let Some(name) = group.first().and_then(component) else {
                continue;
            };
            let unexpected = self.find_values(texts, name);
            group.sort_by_cached_key(|place| {
                report(place).map(|report| {
                    let other = !self.is_constant(texts, report.key);
                    (std::cmp::Reverse(report.key.len()), other, report.key)
                })
            });
            let first = self.assigned.len();
            let key = |place: &u32| report(place).map(|report| report.key);
            for same in group.chunk_by(|one, other| key(one) == key(other)) {
                self.fitting.values.clear();
                (self.fitting.free_from, self.fitting.looked_at) = (0, 0);
                let mut last = None;
                for received in same.iter().filter_map(report) {
                    last = self.by_key(texts, unexpected, received, last);
                }
            }
            // More reports than one for a constant: none of them can be trusted.
            for assigned in self.assigned.iter_mut().skip(first) {
                let Some(value) = assigned.value else {
                    continue;
                };
                let used = self.used.get(value as usize).copied().unwrap_or(0);
                if used > 1 && texts.key(value).is_some_and(|key| !is_pattern(key)) {
                    assigned.status = Status::Unexpected;
                }
            }
        }
        self.rest = rest;
    }

    /// Lists the values that components of a name may report: constants sorted by their texts,
    /// patterns from the most specific. Returns the first of these components.
    fn find_values(&mut self, texts: Texts<'_>, name: &str) -> Option<u32> {
        self.constants.clear();
        self.patterns.clear();
        let shape = &texts.entry.shape;
        let nodes = shape.with_name(name);
        for node in nodes {
            let Some(node) = shape.nodes.get(*node as usize) else {
                continue;
            };
            for value in node.first_value..node.first_value + node.value_count {
                match texts.key(value) {
                    Some(key) if is_pattern(key) => self.patterns.push(value),
                    Some(_) => self.constants.push(value),
                    None => {}
                }
            }
        }
        self.constants.sort_by_key(|value| texts.key(*value));
        self.free_from.clear();
        self.free_from.extend(0..self.constants.len());
        self.patterns.sort_by_cached_key(|value| {
            std::cmp::Reverse(texts.key(*value).map_or(0, literal_bytes))
        });
        nodes.first().copied()
    }

    /// Is a key that of a constant?
    fn is_constant(&self, texts: Texts<'_>, key: &str) -> bool {
        let found = self
            .constants
            .binary_search_by(|value| texts.key(*value).cmp(&Some(key)));
        found.is_ok()
    }

    /// Takes a free value that matches. Without one a report goes where the `last` of its key went:
    /// a constant that is told again is not what a variable stands for, which another key has
    /// taken. Else a pattern takes it, which may be used often. Returns what was taken.
    fn by_key(
        &mut self,
        texts: Texts<'_>,
        unexpected: Option<u32>,
        received: &Received<'_>,
        last: Option<u32>,
    ) -> Option<u32> {
        let key = received.key;
        let start = self
            .constants
            .partition_point(|value| texts.key(*value) < Some(key));
        let equal = |value: &u32| texts.key(*value) == Some(key);
        let found = self
            .free_constant(start, equal)
            .or_else(|| self.free_pattern(texts, key))
            .or(last)
            .or_else(|| self.fitting.values.first().copied());
        match found {
            Some(value) => self.assign(&texts.entry.shape, received, value),
            None => self.assigned.push(Assigned {
                report: Some(received.report),
                value: None,
                component: unexpected,
                status: Status::Unexpected,
            }),
        }
        found
    }

    /// The first free one of the equal constants that begin at a place. None becomes free again,
    /// so that each is passed once.
    fn free_constant(&mut self, start: usize, equal: impl Fn(&u32) -> bool) -> Option<u32> {
        let free_from = self.free_from.get_mut(start)?;
        loop {
            let value = *self
                .constants
                .get(*free_from)
                .filter(|value| equal(value))?;
            if self.used.get(value as usize) == Some(&0) {
                return Some(value);
            }
            *free_from += 1;
        }
    }

    /// A free pattern that a key can come of.
    fn free_pattern(&mut self, texts: Texts<'_>, key: &str) -> Option<u32> {
        let fitting = &mut self.fitting;
        loop {
            match fitting.values.get(fitting.free_from) {
                Some(value) if self.used.get(*value as usize) == Some(&0) => return Some(*value),
                Some(_) => fitting.free_from += 1,
                None => {
                    let value = self.patterns.get(fitting.looked_at)?;
                    fitting.looked_at += 1;
                    if texts.key(*value).is_some_and(|text| matches(text, key)) {
                        fitting.values.push(*value);
                    }
                }
            }
        }
    }
}

/// Counts what belongs to each component, and what belongs to none.
pub(super) fn component_levels(
    shape: &Shape,
    assigned: &[Assigned],
    levels: &mut Vec<ComplianceLevel>,
) -> ComplianceLevel {
    levels.clear();
    levels.resize(shape.nodes.len(), ComplianceLevel::EMPTY);
    let mut unknown = ComplianceLevel::EMPTY;
    for assigned in assigned {
        let node = assigned.component.map(|node| node as usize);
        let level = match node.and_then(|node| levels.get_mut(node)) {
            Some(level) => level,
            None => &mut unknown,
        };
        level.count(assigned.status, 1);
    }
    unknown
}
