//! From components to directives: what blocks make of the statuses inside of them.

use super::shape::{Logic, Node, Shape};
use crate::reports::level::{ComplianceLevel, Precision};
use crate::reports::status::Status;

/// The level of a directive, by those of its components that have values, each at its place.
pub(super) fn directive_level(shape: &Shape, levels: &[ComplianceLevel]) -> ComplianceLevel {
    let tree = Tree { shape, levels };
    tree.sum(0, shape.nodes.len())
}

/// The level of one component or block.
pub(super) fn node_level(shape: &Shape, levels: &[ComplianceLevel], place: u32) -> ComplianceLevel {
    let tree = Tree { shape, levels };
    let place = place as usize;
    let node = shape.nodes.get(place);
    node.map_or(ComplianceLevel::EMPTY, |node| tree.level(place, node))
}

struct Tree<'a> {
    shape: &'a Shape,
    levels: &'a [ComplianceLevel],
}

impl Tree<'_> {
    /// Of all nodes side by side within a range.
    fn sum(&self, from: usize, to: usize) -> ComplianceLevel {
        let mut sum = ComplianceLevel::EMPTY;
        for (place, node) in self.siblings(from, to) {
            sum += &self.level(place, node);
        }
        sum
    }

    fn siblings(&self, from: usize, to: usize) -> impl Iterator<Item = (usize, &Node)> {
        let mut next = from;
        std::iter::from_fn(move || {
            let place = next;
            let node = self.shape.nodes.get(place).filter(|_| place < to)?;
            // A node's end is after it.
            next = (node.end as usize).max(place + 1);
            Some((place, node))
        })
    }

    fn level(&self, place: usize, node: &Node) -> ComplianceLevel {
        let (from, to) = (place + 1, node.end as usize);
        match node.logic {
            Logic::Values => self.levels.get(place).copied().unwrap_or_default(),
            Logic::Weighted => self.sum(from, to),
            Logic::Disabled => ComplianceLevel::EMPTY,
            Logic::WorstOne => worst(&self.leaves(from, to), 1),
            Logic::WorstSum => {
                let leaves = self.leaves(from, to);
                worst(&leaves, leaves.total())
            }
            Logic::FocusWorst => self.focus_worst(from, to),
            Logic::Focus(name) => {
                let mut sum = ComplianceLevel::EMPTY;
                self.focus(self.shape.text(name), from, to, &mut sum);
                sum
            }
        }
    }

    /// Of all components within a range, whatever blocks among them make of theirs: the worst case
    /// hides nothing but what is disabled.
    fn leaves(&self, from: usize, to: usize) -> ComplianceLevel {
        let mut sum = ComplianceLevel::EMPTY;
        for (place, node) in self.siblings(from, to) {
            sum += &match node.logic {
                Logic::Values | Logic::Disabled => self.level(place, node),
                _ => self.leaves(place + 1, node.end as usize),
            };
        }
        sum
    }

    /// The level with the lowest compliance; of several, the first.
    fn focus_worst(&self, from: usize, to: usize) -> ComplianceLevel {
        let levels = self.siblings(from, to).map(|(place, node)| {
            let level = self.level(place, node);
            match node.logic {
                Logic::Values => worst(&level, 1),
                _ => level,
            }
        });
        levels
            .filter(|level| level.total() > 0)
            .min_by(|one, other| {
                let compliance =
                    |level: &ComplianceLevel| level.percents(Precision::default()).compliance();
                compliance(one).total_cmp(&compliance(other))
            })
            .unwrap_or_default()
    }

    /// Adds all nodes of a name, at any depth.
    fn focus(&self, name: &str, from: usize, to: usize, sum: &mut ComplianceLevel) {
        for (place, node) in self.siblings(from, to) {
            if self.shape.text(node.name) == name {
                *sum += &self.level(place, node);
            } else {
                self.focus(name, place + 1, node.end as usize, sum);
            }
        }
    }
}

/// So many of the worst status; nothing if there is none.
fn worst(level: &ComplianceLevel, count: u32) -> ComplianceLevel {
    let status = level.worst();
    let none = level.total() == 0 && status == Status::NoAnswer;
    ComplianceLevel::of(status, if none { 0 } else { count })
}
