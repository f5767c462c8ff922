//! The compliance of a whole fleet, always current: a run comes in, sums change.
//!
//! What a node shows is a pure function of its configurations, its last run and the time. It is
//! held by directive; the statuses of single components are found again from the stored run when
//! somebody looks at them. With 20,000 nodes of 1,100 components that makes a few bytes a
//! component instead of a tree.

mod node;
mod shown;
mod sums;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

pub use node::{Abort, CONFIGS, DirectiveLevel, MOST_CONFIGS};
pub use shown::Changed;

use super::decision::{Basis, UnixMillis};
use super::expected::ExpectedReports;
use super::matching::{
    CompileError, Ids, LooseExpected, Matcher, NodeExpected, Received, ShapePool,
};
use super::runlog::RunLog;
use super::status::Status;
use node::{Config, Node, Numbered, Run, run_levels};
use sums::{Group, Sign, Sums};

/// What became of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunOutcome {
    /// It counts. Did what is shown change?
    Counted {
        /// It did.
        changed: bool,
    },
    /// It was counted before.
    Duplicate,
    /// It has no start: its reports only inform.
    Partial,
    /// Nobody knows the node.
    UnknownNode,
}

/// What became of a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Configured {
    /// Did what is shown change?
    pub changed: bool,
    /// The last run was made with this configuration before it was known: it should be given
    /// again, for only then it is matched with it.
    pub wants_run: bool,
}

/// The fleet.
#[derive(Debug, Default)]
pub struct Fleet {
    ids: Ids,
    shapes: ShapePool,
    matcher: Matcher,
    numbers: HashMap<Arc<str>, u32>,
    names: Vec<Arc<str>>,
    nodes: Vec<Node>,
    changed_nodes: BTreeSet<u32>,
    expirations: BTreeSet<(UnixMillis, u32)>,
    sums: Sums,
    groups: HashMap<Box<str>, (u32, Vec<u32>)>,
}

impl Fleet {
    /// Adds a node, if it is not there.
    pub fn add(&mut self, node: &str) {
        self.number(node);
    }

    /// Says whether compliance is computed for a node.
    pub fn set_node(&mut self, node: &str, enabled: bool, now: UnixMillis) -> bool {
        let number = self.number(node);
        if let Some(node) = self.nodes.get_mut(number as usize) {
            node.enabled = enabled;
        }
        self.update(number, now)
    }

    /// Says of each node how many milliseconds its last compliance is kept when reports stay
    /// away; 0 or less: not at all.
    pub fn set_keep_last(&mut self, keep_last: impl Fn(&str) -> i64, now: UnixMillis) {
        for (number, name) in (0_u32..).zip(self.names.clone()) {
            let keep_last = keep_last(&name).max(0);
            if let Some(node) = self.nodes.get_mut(number as usize)
                && node.keep_last != keep_last
            {
                node.keep_last = keep_last;
                self.update(number, now);
            }
        }
    }

    /// Forgets all of a node: its configurations, its run and its groups.
    pub fn remove(&mut self, node: &str) -> bool {
        let Some(number) = self.numbers.get(node).copied() else {
            return false;
        };
        self.show(number, Basis::Ignored, None, Arc::from([]));
        for (_, members) in self.groups.values_mut() {
            members.retain(|member| *member != number);
        }
        if let Some(node) = self.nodes.get_mut(number as usize) {
            *node = Node::new();
        }
        true
    }

    /// A node has a new configuration since `begin`; the one before it ends. A configuration
    /// that a node has already changes nothing but what gave way in it.
    ///
    /// # Errors
    /// The expected reports are larger than what can be held.
    pub fn configure(
        &mut self,
        node: &str,
        id: &str,
        begin: UnixMillis,
        expected: &ExpectedReports,
        now: UnixMillis,
    ) -> Result<Configured, CompileError> {
        let expected = LooseExpected::compile(expected)?;
        let (number, wants_run) = self.add_config(node, id, begin, expected);
        if let Some(node) = self.nodes.get_mut(number as usize) {
            node.forget_configs();
        }
        let changed = self.update(number, now);
        Ok(Configured { changed, wants_run })
    }

    /// A node had this configuration when the process before this one ended. All of them are
    /// held, and nothing new is shown, until the fleet is [settled](Self::settle): which run was
    /// the last is not known yet.
    pub fn restore_config(
        &mut self,
        node: &str,
        id: &str,
        begin: UnixMillis,
        expected: LooseExpected,
    ) {
        self.add_config(node, id, begin, expected);
    }

    /// All that was there when the process before this one ended is restored, runs too: what no
    /// run is awaited of goes, and each node shows what follows.
    pub fn settle(&mut self, now: UnixMillis) {
        let mut number = 0;
        while let Some(node) = self.nodes.get_mut(number as usize) {
            node.forget_configs();
            self.update(number, now);
            number += 1;
        }
    }

    /// The node's number, and whether its last run should be given again.
    fn add_config(
        &mut self,
        node: &str,
        id: &str,
        begin: UnixMillis,
        expected: LooseExpected,
    ) -> (u32, bool) {
        let expected = NodeExpected::join(expected, &mut self.ids, &mut self.shapes);
        let number = self.number(node);
        let mut wants_run = false;
        let Some(node) = self.nodes.get_mut(number as usize) else {
            return (number, wants_run);
        };
        match node.configs.last_mut() {
            // What gave way may change without a new configuration: agents never had it.
            Some(last) if *last.id == *id => last.expected.skipped = expected.skipped,
            _ => {
                let run_id = node.run.as_ref().and_then(|run| run.config_id.as_deref());
                wants_run = run_id == Some(id) && node.config(id).is_none();
                node.configure(Config {
                    id: id.into(),
                    begin,
                    end: None,
                    expected,
                });
            }
        }
        (number, wants_run)
    }

    /// The same, to give further numbers.
    pub fn ids_mut(&mut self) -> &mut Ids {
        &mut self.ids
    }

    /// A run came in. The last one that comes counts, whenever it started; the same again does
    /// not. Older ones than the last are for the store to recognise.
    pub fn run(&mut self, run: &RunLog<'_>, now: UnixMillis) -> RunOutcome {
        let Some(number) = self.numbers.get(&*run.info.node_id).copied() else {
            return RunOutcome::UnknownNode;
        };
        if !run.is_run() {
            return RunOutcome::Partial;
        }
        let reports = numbered(run, &mut self.ids);
        let Some(node) = self.nodes.get_mut(number as usize) else {
            return RunOutcome::UnknownNode;
        };
        let start = run.start().unix_millis();
        let config_id = run.config_id.as_deref();
        let config = config_id.and_then(|id| node.config(id));
        // Node and start are a run's identity. One that was matched with nothing is taken again.
        let counted = |last: &Run| last.start == start && (last.matched || config.is_none());
        if node.run.as_ref().is_some_and(counted) {
            return RunOutcome::Duplicate;
        }
        let levels = run_levels(config, &reports, &mut self.matcher);
        let matched = config.is_some();
        node.run = Some(Run {
            start,
            config_id: config_id.map(Box::from),
            matched,
            aborts: Abort::of(run),
            levels,
        });
        let changed = self.update(number, now);
        RunOutcome::Counted { changed }
    }

    /// Lets what has expired expire. Returns how many nodes show something else.
    pub fn expire(&mut self, now: UnixMillis) -> usize {
        let mut changed = 0;
        while let Some((_, number)) = self.expirations.first().filter(|(until, _)| *until < now) {
            changed += usize::from(self.update(*number, now));
        }
        changed
    }

    /// Makes or changes a group: a set of nodes, and the rules that target it.
    pub fn set_group<'a>(
        &mut self,
        group: &str,
        nodes: impl IntoIterator<Item = &'a str>,
        rules: impl IntoIterator<Item = &'a str>,
    ) {
        let mut members: Vec<u32> = nodes.into_iter().map(|node| self.number(node)).collect();
        members.sort_unstable();
        members.dedup();
        let next = u32::try_from(self.sums.groups.len()).unwrap_or(u32::MAX);
        let known = self.groups.get(group);
        let (number, old) =
            known.map_or((next, Vec::new()), |(number, old)| (*number, old.clone()));
        let rules = rules
            .into_iter()
            .map(|rule| self.ids.number(rule))
            .collect();
        let fresh = Group {
            rules,
            ..Group::default()
        };
        match self.sums.groups.get_mut(number as usize) {
            Some(group) => *group = fresh,
            None => self.sums.groups.push(fresh),
        }
        self.sums.changed.groups.insert(number);
        for member in old {
            if let Some(node) = self.nodes.get_mut(member as usize) {
                node.groups.retain(|group| *group != number);
            }
        }
        for member in &members {
            if let Some(node) = self.nodes.get_mut(*member as usize) {
                node.groups.push(number);
                for level in &*node.shown {
                    self.sums.change_group(number, level, Sign::Add);
                }
            }
        }
        self.groups.insert(group.into(), (number, members));
    }

    /// Lets go of what configurations that are gone left behind.
    pub fn sweep(&mut self) {
        self.shapes.sweep();
    }

    fn number(&mut self, node: &str) -> u32 {
        if let Some(number) = self.numbers.get(node) {
            return *number;
        }
        let number = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
        let name: Arc<str> = Arc::from(node);
        self.nodes.push(Node::new());
        self.names.push(Arc::clone(&name));
        self.numbers.insert(name, number);
        number
    }

    fn update(&mut self, number: u32, now: UnixMillis) -> bool {
        let Some(node) = self.nodes.get(number as usize) else {
            return false;
        };
        let (basis, expires, shown) = node.evaluate(now, &mut self.matcher);
        self.show(number, basis, expires, shown)
    }

    fn show(
        &mut self,
        number: u32,
        basis: Basis,
        expires: Option<UnixMillis>,
        shown: Arc<[DirectiveLevel]>,
    ) -> bool {
        let Some(node) = self.nodes.get_mut(number as usize) else {
            return false;
        };
        if let Some(expires) = node.expires {
            self.expirations.remove(&(expires, number));
        }
        if let Some(expires) = expires {
            self.expirations.insert((expires, number));
        }
        let changed = self.sums.replace(&node.groups, &node.shown, &shown);
        node.basis = basis;
        node.expires = expires;
        node.shown = shown;
        if changed {
            self.changed_nodes.insert(number);
        }
        changed
    }
}

/// The reports of a run that compliance depends on, sorted by rule and directive.
fn numbered<'a>(run: &'a RunLog<'_>, ids: &mut Ids) -> Vec<Numbered<'a>> {
    let mut numbered = Vec::with_capacity(run.reports.len());
    let mut last = ("", "", (0, 0));
    for (place, report) in (0_u32..).zip(&run.reports) {
        let Some(status) = Status::of_report(report.kind()) else {
            continue;
        };
        // Reports of a directive come one after another.
        if (last.0, last.1) != (report.rule_id, report.directive_id) {
            let key = (
                ids.reported(report.rule_id),
                ids.reported(report.directive_id),
            );
            last = (report.rule_id, report.directive_id, key);
        }
        let received = Received {
            report: place,
            report_id: report.report_id,
            component: &report.component,
            key: &report.key_value,
            status,
        };
        numbered.push((last.2, received));
    }
    numbered.sort_by_key(|(key, _)| *key);
    numbered
}
