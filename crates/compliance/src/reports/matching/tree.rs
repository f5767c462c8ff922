//! A directive's components with their values and messages, for those who look at them.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::blocks::node_level;
use super::matcher::component_levels;
use super::{Assigned, Shape};
use crate::reports::expected::{Component, ExpectedDirective, ExpectedValue};
use crate::reports::level::ComplianceLevel;
use crate::reports::runlog::Report;
use crate::reports::status::Status;

/// A component or a block of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComponentTree<'a> {
    /// Its name; that of its reports if they were found by their identifier.
    pub name: &'a str,
    /// What is counted of it.
    pub level: ComplianceLevel,
    /// What is in the block.
    pub components: Vec<ComponentTree<'a>>,
    /// The component's values.
    pub values: Vec<ValueTree<'a>>,
}

/// A value and what was reported of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueTree<'a> {
    /// As it was reported, or else as it was expected.
    pub value: &'a str,
    /// As it was written, if it was expected.
    pub unexpanded: Option<&'a str>,
    /// One for each report; one without a text if nothing was reported.
    pub messages: Vec<Message<'a>>,
}

/// A status and the text that came with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'a> {
    /// The status.
    pub status: Status,
    /// The message of the report; none if nothing was reported.
    pub text: Option<&'a str>,
}

/// Makes the tree of a directive: what was expected, the same as a shape, what was matched with
/// it, and the reports of the run. Components that nobody expected come last.
pub fn directive_tree<'a>(
    directive: &'a ExpectedDirective,
    shape: &Shape,
    assigned: &[Assigned],
    reports: &'a [Report<'a>],
) -> Vec<ComponentTree<'a>> {
    let mut levels = Vec::new();
    component_levels(shape, assigned, &mut levels);
    let mut sorted = assigned.to_vec();
    sorted.sort_by_key(order_of);
    let mut walk = Walk {
        shape,
        levels: &levels,
        assigned: &sorted,
        reports,
        component: 0,
        value: 0,
    };
    let mut components = walk.components(&directive.components);
    // Where each name that nobody expected stands: nodes make up as many as a run has reports.
    let mut places: HashMap<&str, usize> = HashMap::new();
    for assigned in sorted
        .iter()
        .filter(|assigned| assigned.component.is_none())
    {
        let Some(report) = walk.report(assigned) else {
            continue;
        };
        let value = walk.unexpected(assigned, report);
        let level = ComplianceLevel::of(assigned.status, 1);
        match places.entry(&report.component) {
            Entry::Occupied(known) => {
                if let Some(component) = components.get_mut(*known.get()) {
                    component.level += &level;
                    component.values.push(value);
                }
            }
            Entry::Vacant(new) => {
                new.insert(components.len());
                components.push(ComponentTree {
                    name: &report.component,
                    level,
                    components: Vec::new(),
                    values: vec![value],
                });
            }
        }
    }
    components
}

/// Sorts by component and value; what is unknown comes last.
fn order(component: Option<u32>, value: Option<u32>) -> (u64, u64) {
    let last = |number: Option<u32>| number.map_or(u64::MAX, u64::from);
    (last(component), last(value))
}

fn order_of(assigned: &Assigned) -> (u64, u64) {
    order(assigned.component, assigned.value)
}

/// Goes through expected components in the order in which they are numbered.
struct Walk<'a, 'm> {
    shape: &'m Shape,
    levels: &'m [ComplianceLevel],
    assigned: &'m [Assigned],
    reports: &'a [Report<'a>],
    component: u32,
    value: u32,
}

impl<'a, 'm> Walk<'a, 'm> {
    fn components(&mut self, components: &'a [Component]) -> Vec<ComponentTree<'a>> {
        components
            .iter()
            .map(|component| self.one(component))
            .collect()
    }

    fn one(&mut self, component: &'a Component) -> ComponentTree<'a> {
        let place = self.component;
        self.component += 1;
        let level = node_level(self.shape, self.levels, place);
        match component {
            Component::Block {
                name, components, ..
            } => ComponentTree {
                name,
                level,
                components: self.components(components),
                values: Vec::new(),
            },
            Component::Values { name, values } => {
                let (mut name, mut trees) = (name.as_str(), Vec::with_capacity(values.len()));
                for value in values {
                    let (tree, reported) = self.value(place, value);
                    trees.push(tree);
                    name = reported.unwrap_or(name);
                }
                for assigned in self.of(place, None) {
                    if let Some(report) = self.report(assigned) {
                        trees.push(self.unexpected(assigned, report));
                    }
                }
                ComponentTree {
                    name,
                    level,
                    components: Vec::new(),
                    values: trees,
                }
            }
        }
    }

    /// A value, and the component's name by its reports if these were found by an identifier.
    fn value(
        &mut self,
        component: u32,
        value: &'a ExpectedValue,
    ) -> (ValueTree<'a>, Option<&'a str>) {
        let number = self.value;
        self.value += 1;
        let (expected, unexpanded, by_id) = match value {
            ExpectedValue::Key {
                expanded,
                unexpanded,
            } => (expanded, unexpanded, false),
            ExpectedValue::Id { value, .. } => (value, value, true),
        };
        let (mut value, mut name) = (expected.as_str(), None);
        let mut messages = Vec::new();
        for assigned in self.of(component, Some(number)) {
            let report = self.report(assigned);
            if let Some(report) = report {
                value = &report.key_value;
                name = by_id.then_some(&*report.component);
            }
            messages.push(Message {
                status: assigned.status,
                text: report.map(|report| &*report.msg),
            });
        }
        let unexpanded = Some(unexpanded.as_str());
        (
            ValueTree {
                value,
                unexpanded,
                messages,
            },
            name,
        )
    }

    /// What is assigned to a component's value, or to none of its values.
    fn of(&self, component: u32, value: Option<u32>) -> &'m [Assigned] {
        let key = order(Some(component), value);
        let start = self
            .assigned
            .partition_point(|assigned| order_of(assigned) < key);
        let rest = self.assigned.get(start..).unwrap_or_default();
        let count = rest
            .iter()
            .take_while(|assigned| order_of(assigned) == key)
            .count();
        rest.get(..count).unwrap_or_default()
    }

    fn report(&self, assigned: &Assigned) -> Option<&'a Report<'a>> {
        self.reports.get(assigned.report? as usize)
    }

    fn unexpected(&self, assigned: &Assigned, report: &'a Report<'a>) -> ValueTree<'a> {
        ValueTree {
            value: &report.key_value,
            unexpanded: None,
            messages: vec![Message {
                status: assigned.status,
                text: Some(&report.msg),
            }],
        }
    }
}
