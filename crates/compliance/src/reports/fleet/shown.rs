//! What a fleet shows.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::node::Node;
use super::{Abort, DirectiveLevel, Fleet};
use crate::reports::decision::{Basis, UnixMillis};
use crate::reports::level::FleetLevel;
use crate::reports::matching::{Ids, Skipped, Types};

/// What shows something else than when somebody asked last, sorted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Changed {
    /// Nodes.
    pub nodes: Vec<Arc<str>>,
    /// Rules.
    pub rules: Vec<String>,
    /// Directives.
    pub directives: Vec<String>,
    /// Groups.
    pub groups: Vec<String>,
}

impl Fleet {
    /// The level of all users' rules.
    pub fn global(&self) -> &FleetLevel {
        &self.sums.user
    }

    /// The level of the system's own rules.
    pub fn system(&self) -> &FleetLevel {
        &self.sums.system
    }

    /// The level of a rule over its nodes.
    pub fn rule(&self, rule: &str) -> FleetLevel {
        let sum = self
            .ids
            .known(rule)
            .and_then(|rule| self.sums.rules.get(&rule));
        sum.copied().unwrap_or_default()
    }

    /// The level of a directive over its nodes.
    pub fn directive(&self, directive: &str) -> FleetLevel {
        let number = self.ids.known(directive);
        let sum = number.and_then(|number| self.sums.directives.get(&number));
        sum.copied().unwrap_or_default()
    }

    /// The levels of a group: of all users' rules on its nodes, and of those that target it.
    pub fn group(&self, group: &str) -> Option<(&FleetLevel, &FleetLevel)> {
        let (number, _) = self.groups.get(group)?;
        let group = self.sums.groups.get(*number as usize)?;
        Some((&group.global, &group.targeted))
    }

    /// The nodes of a group, in the order in which they came.
    pub fn members(&self, group: &str) -> Vec<Arc<str>> {
        let members = self.groups.get(group).map(|(_, members)| members);
        let members = members.into_iter().flatten();
        members
            .filter_map(|member| self.names.get(*member as usize).cloned())
            .collect()
    }

    /// Does a node belong to a group?
    pub fn is_member(&self, group: &str, node: &str) -> bool {
        let members = self.groups.get(group).map(|(_, members)| members);
        let number = self.numbers.get(node);
        let both = members.zip(number);
        both.is_some_and(|(members, number)| members.binary_search(number).is_ok())
    }

    fn named(&self, node: &str) -> Option<&Node> {
        let number = self.numbers.get(node)?;
        self.nodes.get(*number as usize)
    }

    /// What a node shows by directive, sorted by the numbers of rules and directives, and what
    /// that rests on.
    pub fn node(&self, node: &str) -> Option<(Basis, &[DirectiveLevel])> {
        let node = self.named(node)?;
        Some((node.basis, &node.shown))
    }

    /// When a node's last run started.
    pub fn last_run(&self, node: &str) -> Option<UnixMillis> {
        self.named(node)?.run.as_ref().map(|run| run.start)
    }

    /// Why a node's last run was given up, while what the node shows rests on that run: the modes
    /// that its policy asks for do not go together with what the agent can do.
    pub fn aborts(&self, node: &str) -> Arc<[Abort]> {
        let node = self.named(node).filter(|node| node.basis.is_of_run());
        let run = node.and_then(|node| node.run.as_ref());
        run.map_or_else(|| Arc::from([]), |run| Arc::clone(&run.aborts))
    }

    /// Directives that gave way to others in a node's current configuration.
    pub fn skipped(&self, node: &str) -> &[Skipped] {
        let current = self.named(node).and_then(|node| node.configs.last());
        current.map_or(&[], |config| &config.expected.skipped)
    }

    /// The level of a node's directives of these types.
    pub fn node_level(&self, node: &str, types: Types) -> FleetLevel {
        let mut sum = FleetLevel::default();
        let (_, shown) = self.node(node).unwrap_or((Basis::Ignored, &[]));
        for level in shown.iter().filter(|level| level.types.has(types)) {
            sum += &level.level;
        }
        sum
    }

    /// What has changed since this was called last. The levels are asked for one by one; the
    /// global one has changed if any node has.
    pub fn take_changed(&mut self) -> Changed {
        let sums = std::mem::take(&mut self.sums.changed);
        let nodes = std::mem::take(&mut self.changed_nodes);
        let node = |number: u32| self.names.get(number as usize).cloned();
        let text = |numbers: BTreeSet<u32>| {
            let texts = numbers
                .into_iter()
                .map(|number| self.ids.text(number).to_owned());
            let mut texts: Vec<String> = texts.collect();
            texts.sort_unstable();
            texts
        };
        let groups = self.groups.iter();
        let groups = groups.filter(|(_, (number, _))| sums.groups.contains(number));
        let mut changed = Changed {
            nodes: nodes.into_iter().filter_map(node).collect(),
            rules: text(sums.rules),
            directives: text(sums.directives),
            groups: groups.map(|(name, _)| name.to_string()).collect(),
        };
        changed.nodes.sort_unstable();
        changed.groups.sort_unstable();
        changed
    }

    /// Numbers of rules and directives.
    pub fn ids(&self) -> &Ids {
        &self.ids
    }

    /// Bytes of memory: of nodes, and of the shapes that they share; without those of allocation.
    pub fn bytes(&self) -> (usize, usize) {
        (
            self.nodes.iter().map(Node::bytes).sum(),
            self.shapes.size().1,
        )
    }
}
