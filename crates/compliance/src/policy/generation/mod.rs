//! Generation of policies as an incremental computation: changes go in, and only what they
//! affect is computed again. The result is that of a computation from nothing.

mod apply;
mod build;
mod membership;
mod outcome;
mod publish;
mod run;
mod whole;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use apply::{Change, ChangeError};
use serde::{Deserialize, Serialize};

pub use outcome::{Cause, Clock, NodeFailure, NodeUpdate, Outcome, Problem, Step};
use whole::WHOLE_BYTES;

use super::compile::CompileResult;
use super::content::Contents;
use super::inheritance::{Modes, Properties};
use super::node_policy::{Issued, Remembered};
use super::system;
use super::template::References;
use crate::model::directive::Directive;
use crate::model::group::Group;
use crate::model::ids::{DenseId, DirectiveIx, GroupIx, Interner, NodeIx, RuleIx};
use crate::model::inventory::{InventoryPool, PooledInventory};
use crate::model::mode::{ComplianceMode, GlobalPolicyMode};
use crate::model::node::Node;
use crate::model::node_set::NodeSet;
use crate::model::query::{CompiledQuery, QueryError};
use crate::model::rule::Rule;
use crate::model::schedule::AgentRun;
use crate::model::technique::Technique;

/// What holds for all nodes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Settings {
    /// The mode of all nodes.
    pub policy_mode: GlobalPolicyMode,
    /// What agents report.
    pub compliance_mode: ComplianceMode,
    /// The schedule of all nodes.
    pub agent_run: AgentRun,
    /// Identity of this installation.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub instance_id: String,
}

/// Objects by their numbers.
#[derive(Debug, Clone)]
struct Table<I, T> {
    names: Interner<I>,
    entries: Vec<Option<T>>,
}

impl<I, T> Default for Table<I, T> {
    fn default() -> Self {
        Self {
            names: Interner::default(),
            entries: Vec::new(),
        }
    }
}

impl<I: DenseId, T> Table<I, T> {
    fn get(&self, id: I) -> Option<&T> {
        self.entries.get(id.index())?.as_ref()
    }

    fn named(&self, id: &str) -> Option<(I, &T)> {
        let ix = self.names.get(id)?;
        Some((ix, self.get(ix)?))
    }

    /// The place of an object that exists or may come to be.
    fn place(&mut self, id: &str) -> (I, &mut Option<T>) {
        let ix = self.names.intern(id);
        if self.entries.len() <= ix.index() {
            self.entries.resize_with(ix.index() + 1, || None);
        }
        (ix, &mut self.entries[ix.index()])
    }

    fn iter(&self) -> impl Iterator<Item = (I, &T)> {
        let all = self.entries.iter().zip(0..);
        all.filter_map(|(entry, number)| Some((I::from_number(number), entry.as_ref()?)))
    }
}

#[derive(Debug, Clone)]
struct NodeEntry {
    node: Arc<Node>,
    inventory: PooledInventory,
}

#[derive(Debug, Clone)]
struct GroupEntry {
    group: Arc<Group>,
    /// None for a static group.
    query: Option<Result<CompiledQuery, QueryError>>,
    /// Groups that its query mentions.
    needs: Vec<GroupIx>,
    /// Identities of groups that it inherits from.
    parents: Vec<String>,
    conditions: [Arc<str>; 2],
}

#[derive(Debug, Clone)]
struct DirectiveEntry {
    directive: Arc<Directive>,
    /// None until it is needed, or after its technique changed.
    compiled: Option<CompileResult>,
}

/// What has changed since the last generation.
#[derive(Debug, Clone, Default)]
struct Pending {
    /// Nodes whose policies must be made again.
    dirty: NodeSet,
    /// Nodes whose facts or inventory have changed.
    nodes: NodeSet,
    /// Groups whose query, list of nodes or existence have changed.
    groups: BTreeSet<GroupIx>,
    /// Groups of which something that members see has changed.
    seen_groups: BTreeSet<GroupIx>,
    /// Rules that have changed.
    rules: BTreeSet<RuleIx>,
    /// Directives that have changed.
    directives: BTreeSet<DirectiveIx>,
    /// Techniques that have changed.
    techniques: BTreeSet<String>,
    /// Names of properties that have changed: on all nodes, or on members of a group.
    properties: BTreeMap<String, Scope>,
    /// Policy servers of which something has changed that nodes behind them see.
    servers: BTreeSet<String>,
}

/// Where a property has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Scope {
    All,
    Groups(BTreeSet<GroupIx>),
}

/// All that is defined and computed.
///
/// A clone shares what it can with the original: to see what changes would do, apply them to a
/// clone and generate.
#[derive(Debug, Clone)]
pub struct Engine {
    settings: Settings,
    nodes: Arc<Table<NodeIx, NodeEntry>>,
    pool: Arc<InventoryPool>,
    groups: Table<GroupIx, GroupEntry>,
    techniques: BTreeMap<String, Arc<Technique>>,
    directives: Table<DirectiveIx, DirectiveEntry>,
    rules: Table<RuleIx, Arc<Rule>>,
    parameters: Properties,
    /// Of those parameters that are not inherited in the usual way.
    modes: Modes,
    /// What values with variables name, by the name of the property that holds them. It is never
    /// less than what is true: too much costs time only.
    nested: BTreeMap<String, References>,
    pending: Pending,

    // What is computed.
    members: Vec<NodeSet>,
    /// Groups that had no members because their queries led back to them.
    circular: BTreeSet<GroupIx>,
    rule_nodes: Vec<NodeSet>,
    /// The policy of each node that is given out.
    published: Vec<Option<Arc<Issued>>>,
    /// Policies that nodes had before this engine was made, until they are made again.
    remembered: BTreeMap<NodeIx, Remembered>,
    failures: BTreeMap<NodeIx, NodeFailure>,
    /// Nodes with another policy that waits for their policy server: it is made again each time.
    held: BTreeSet<NodeIx>,
    /// Nodes whose policies were given out and could not be kept.
    owed: BTreeSet<NodeIx>,
    /// Nodes that were removed since their policies were given out: what was kept of these is
    /// gone, whether or not the nodes have come back since.
    gone: BTreeSet<NodeIx>,
    problems: Vec<Problem>,
    unstable: BTreeMap<NodeIx, BTreeSet<Problem>>,
    merged: build::Merged,
    contents: Arc<Contents>,
    whole_bytes: usize,
}

impl Engine {
    /// Nothing but what the server has itself.
    pub fn new(settings: Settings) -> Self {
        let mut engine = Self {
            settings,
            nodes: Arc::default(),
            pool: Arc::default(),
            groups: Table::default(),
            techniques: BTreeMap::new(),
            directives: Table::default(),
            rules: Table::default(),
            parameters: Properties::new(),
            modes: Modes::new(),
            nested: BTreeMap::new(),
            pending: Pending::default(),
            members: Vec::new(),
            circular: BTreeSet::new(),
            rule_nodes: Vec::new(),
            published: Vec::new(),
            remembered: BTreeMap::new(),
            failures: BTreeMap::new(),
            held: BTreeSet::new(),
            owed: BTreeSet::new(),
            gone: BTreeSet::new(),
            problems: Vec::new(),
            unstable: BTreeMap::new(),
            merged: build::Merged::new(),
            contents: Arc::new(Contents::default()),
            whole_bytes: WHOLE_BYTES,
        };
        engine.add_system(system::of_all());
        engine
    }

    /// Says which policy a node had before this engine was made: if the first one that is generated
    /// for it is the same, it keeps its config id; if nothing at all differs, it is no update.
    pub fn remember(&mut self, node: &str, policy: Remembered) {
        let ix = Arc::make_mut(&mut self.nodes).names.intern(node);
        self.remembered.insert(ix, policy);
    }

    /// Says of which nodes the policies that were given out could not be kept: the next generation
    /// gives them out again.
    pub fn owe<'n>(&mut self, nodes: impl IntoIterator<Item = &'n str>) {
        for node in nodes {
            if let Some(ix) = self.nodes.names.get(node) {
                self.owed.insert(ix);
                self.pending.dirty.insert(ix);
            }
        }
    }

    /// The policy that a node is given; none if it has none yet, or gets none.
    pub fn issued(&self, node: &str) -> Option<&Arc<Issued>> {
        let ix = self.nodes.names.get(node)?;
        self.published.get(ix.index())?.as_ref()
    }

    /// All policies that are given out, by the order in which nodes came.
    pub fn all_issued(&self) -> impl Iterator<Item = &Arc<Issued>> {
        self.published.iter().flatten()
    }

    /// Nodes whose last generation failed, by their identities.
    pub fn failures(&self) -> impl Iterator<Item = (&str, &NodeFailure)> {
        let all = self.failures.iter();
        all.map(|(&node, failure)| (self.nodes.names.text(node), failure))
    }

    /// What is wrong in what is defined, as the last generation found it.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// A node.
    pub fn node(&self, id: &str) -> Option<&Arc<Node>> {
        self.nodes.named(id).map(|(_, entry)| &entry.node)
    }

    /// A group's members, as the last generation found them.
    pub fn member_set(&self, group: &str) -> Option<&NodeSet> {
        let group = self.groups.names.get(group)?;
        self.members.get(group.index())
    }

    fn is_member(&self, group: GroupIx, node: NodeIx) -> bool {
        let members = self.members.get(group.index());
        members.is_some_and(|members| members.contains(node))
    }

    /// Identities of a group's members, as the last generation found them.
    pub fn members(&self, group: &str) -> Vec<&str> {
        let members = self.member_set(group);
        let members = members.into_iter().flat_map(NodeSet::iter);
        members.map(|node| self.nodes.names.text(node)).collect()
    }
}

/// The entry at a place, which is made if it is not there.
fn slot<T: Default>(list: &mut Vec<T>, at: usize) -> &mut T {
    if list.len() <= at {
        list.resize_with(at + 1, T::default);
    }
    &mut list[at]
}
