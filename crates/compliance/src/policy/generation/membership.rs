//! Who belongs to which group, and to which rule.

use std::collections::BTreeSet;

use super::{Engine, Problem, slot};
use crate::model::ids::{DenseId, GroupIx, NodeIx};
use crate::model::node_set::NodeSet;
use crate::model::query::{Scan, Subject};
use crate::model::rule::Rule;
use crate::model::target::{RuleTarget, Target, nodes_of};

impl Engine {
    /// Brings the members of all groups up to date; gives the nodes that now belong to other
    /// groups than before.
    pub(super) fn update_members(&mut self) -> NodeSet {
        let mut flipped = NodeSet::default();
        let (order, circles) = self.order_of_groups();
        self.problems.extend(circles.iter().map(|circle| {
            let names = circle.iter().map(|&group| self.groups.names.text(group));
            let mut names: Vec<String> = names.map(str::to_owned).collect();
            let first = names.iter().zip(0..).min().map_or(0, |(_, at)| at);
            names.rotate_left(first);
            Problem::Circle(names)
        }));
        let in_circle = if circles.is_empty() {
            BTreeSet::new()
        } else {
            self.groups
                .iter()
                .map(|(group, _)| group)
                .filter(|&group| self.needs_itself(group))
                .collect()
        };
        let mut moved: BTreeSet<GroupIx> = BTreeSet::new();
        let groups = self.groups.entries.len();
        slot(&mut self.members, groups);
        for group in order {
            let old = std::mem::take(&mut self.members[group.index()]);
            let needs = self.needs(group);
            let anew = self.pending.groups.contains(&group)
                || in_circle.contains(&group)
                || self.circular.contains(&group)
                || needs.iter().any(|need| moved.contains(need));
            let new = self.members_of(group, &old, anew, in_circle.contains(&group));
            let difference = old.difference(&new);
            if !difference.is_empty() {
                flipped.union_with(&difference);
                moved.insert(group);
            }
            self.members[group.index()] = new;
        }
        self.circular = in_circle;
        flipped
    }

    fn members_of(&self, group: GroupIx, old: &NodeSet, anew: bool, circle: bool) -> NodeSet {
        let entry = match self.groups.get(group) {
            Some(entry) if entry.group.enabled && !circle => entry,
            _ => return NodeSet::default(),
        };
        let query = match &entry.query {
            None => {
                let listed = entry.group.node_ids.iter();
                return listed
                    .filter_map(|id| Some(self.nodes.named(id)?.0))
                    .collect();
            }
            Some(Err(_)) => return NodeSet::default(),
            Some(Ok(query)) => query,
        };
        let member = |group: GroupIx, node: NodeIx| self.is_member(group, node);
        if anew {
            let all = self.nodes.iter().filter_map(|(ix, _)| self.subject(ix));
            return query.find(all, member);
        }
        let mut members = old.clone();
        let mut scan = Scan::default();
        for node in self.pending.nodes.iter() {
            let matches = self.subject(node).is_some_and(|subject| {
                query.matches(&subject, &|group| member(group, node), &mut scan)
            });
            members.set(node, matches);
        }
        members
    }

    fn subject(&self, ix: NodeIx) -> Option<Subject<'_>> {
        let entry = self.nodes.get(ix)?;
        Some(Subject {
            ix,
            node: &entry.node,
            inventory: &entry.inventory,
            pool: &self.pool,
            instance_id: &self.settings.instance_id,
        })
    }

    /// All groups, each after those that its query names, and circles among them.
    fn order_of_groups(&self) -> (Vec<GroupIx>, Vec<Vec<GroupIx>>) {
        #[derive(Clone, Copy, PartialEq)]
        enum Mark {
            New,
            Open,
            Done,
        }
        let count = self.groups.entries.len();
        let mut marks = vec![Mark::New; count];
        let mut order = Vec::with_capacity(count);
        let mut circles = Vec::new();
        for start in 0..count {
            // Without recursion: a chain of groups may be long.
            let mut path: Vec<(GroupIx, usize)> = Vec::new();
            if marks[start] == Mark::New {
                marks[start] = Mark::Open;
                path.push((GroupIx(start as u32), 0));
            }
            while let Some((group, next)) = path.last_mut() {
                let group = *group;
                let Some(&need) = self.needs(group).get(*next) else {
                    marks[group.index()] = Mark::Done;
                    order.push(group);
                    path.pop();
                    continue;
                };
                *next += 1;
                match marks.get(need.index()) {
                    Some(Mark::New) => {
                        marks[need.index()] = Mark::Open;
                        path.push((need, 0));
                    }
                    Some(Mark::Open) => {
                        let from = path.iter().position(|(group, _)| *group == need);
                        let circle = path.iter().skip(from.unwrap_or(0));
                        circles.push(circle.map(|(group, _)| *group).collect());
                    }
                    _ => {}
                }
            }
        }
        (order, circles)
    }

    /// The groups that a group's query mentions.
    fn needs(&self, group: GroupIx) -> &[GroupIx] {
        let entry = self.groups.get(group);
        entry.map(|entry| &entry.needs[..]).unwrap_or_default()
    }

    /// Does a group's query lead back to the group?
    fn needs_itself(&self, group: GroupIx) -> bool {
        let mut seen = BTreeSet::new();
        let mut left = vec![group];
        while let Some(next) = left.pop() {
            for &need in self.needs(next) {
                if need == group {
                    return true;
                }
                if seen.insert(need) {
                    left.push(need);
                }
            }
        }
        false
    }

    /// The nodes of a rule; none of one that does not hold.
    pub(super) fn nodes_of(&self, rule: &Rule) -> NodeSet {
        if !rule.enabled {
            return NodeSet::default();
        }
        nodes_of(&rule.targets, &|target| self.nodes_of_target(target))
    }

    fn nodes_of_target(&self, target: &Target) -> NodeSet {
        let those = |wanted: fn(bool) -> bool| {
            let nodes = self.nodes.iter();
            let nodes = nodes.filter(|(_, entry)| wanted(entry.node.kind.is_policy_server()));
            nodes.map(|(ix, _)| ix).collect()
        };
        match target {
            Target::All => those(|_| true),
            Target::AllExceptPolicyServers => those(|server| !server),
            Target::AllPolicyServers => those(|server| server),
            Target::PolicyServer(id) => {
                let server = self.nodes.named(id);
                let server = server.filter(|(_, entry)| entry.node.kind.is_policy_server());
                server.map(|(ix, _)| ix).into_iter().collect()
            }
            Target::Group(id) => {
                let group = self.groups.names.get(id);
                let members = group.and_then(|group| self.members.get(group.index()));
                members.cloned().unwrap_or_default()
            }
        }
    }

    /// Notes what groups and rules name that is not there.
    pub(super) fn check_names(&mut self) {
        let mut found = Vec::new();
        for (_, entry) in self.groups.iter() {
            let group = &entry.group.id;
            if let Some(Err(error)) = &entry.query {
                found.push(Problem::query(group, error));
            }
            let missing = entry
                .needs
                .iter()
                .filter(|need| self.groups.get(**need).is_none());
            found.extend(missing.map(|&need| Problem::NoGroupOfQuery {
                group: group.clone(),
                named: self.groups.names.text(need).to_owned(),
            }));
        }
        for (_, rule) in self.rules.iter() {
            let named = rule.directives.iter();
            let missing = named.filter(|id| self.directives.named(id).is_none());
            found.extend(missing.map(|id| Problem::NoDirective {
                rule: rule.id.clone(),
                directive: id.clone(),
            }));
            let targets = rule.targets.iter().flat_map(RuleTarget::simple);
            found.extend(targets.filter_map(|target| match target {
                Target::Group(id) if self.groups.named(id).is_none() => Some(Problem::NoGroup {
                    rule: rule.id.clone(),
                    group: id.clone(),
                }),
                _ => None,
            }));
        }
        self.problems.extend(found);
    }
}
