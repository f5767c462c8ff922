//! The policy of one node.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;

use super::{Cause, Clock, Engine, NodeFailure, Problem};
use crate::model::ids::{DirectiveIx, GroupIx, NodeIx};
use crate::model::mode::{self, Modes};
use crate::model::node::{Node, NodeKind, NodeState};
use crate::model::property::Property;
use crate::model::schedule::AgentRun;
use crate::policy::compile::{CompileError, CompileResult, compile};
use crate::policy::conflicts::{self, Draft, Resolved};
use crate::policy::content::{Content, ContentError};
use crate::policy::inheritance::{GroupLayer, Inherited, Properties, inherit, lay_own};
use crate::policy::node_policy::{Entry, Header, NodePolicy};
use crate::policy::template::NodeContext;

/// A draft with its directive's number.
#[derive(Debug, Clone)]
pub(super) struct Item {
    pub(super) draft: Arc<Draft>,
    pub(super) directive: DirectiveIx,
}

impl AsRef<Draft> for Item {
    fn as_ref(&self) -> &Draft {
        &self.draft
    }
}

/// Directives of merged techniques, by their parts in order.
pub(super) type Merged = HashMap<Vec<DirectiveIx>, CompileResult>;

/// What nodes inherit, by the groups that matter to it.
pub(super) type InheritedBy = HashMap<Box<[GroupIx]>, Arc<Properties>>;

/// What the policies of all nodes are made from.
pub(super) struct Shared<'e> {
    pub(super) engine: &'e Engine,
    /// For each rule its drafts.
    pub(super) drafts: Vec<Vec<Item>>,
    /// Groups with properties, or that inherit.
    pub(super) layers: Vec<GroupIx>,
    pub(super) inherited: InheritedBy,
    pub(super) merged: Mutex<Merged>,
}

/// What one thread found beside policies.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) resolve: Duration,
    pub(super) expand: Duration,
    pub(super) hash: Duration,
    pub(super) unstable: Vec<(NodeIx, Problem)>,
    buffer: String,
}

/// The groups of a node that matter to what it inherits.
pub(super) fn layers_of(engine: &Engine, layers: &[GroupIx], node: NodeIx) -> Box<[GroupIx]> {
    let member = |group: &&GroupIx| engine.is_member(**group, node);
    layers.iter().filter(member).copied().collect()
}

/// What members of exactly these groups inherit.
pub(super) fn inherited_by(engine: &Engine, groups: &[GroupIx]) -> Properties {
    let entries = groups.iter().filter_map(|&group| engine.groups.get(group));
    let layers: Vec<_> = entries
        .map(|entry| GroupLayer {
            id: &entry.group.id,
            properties: &entry.group.properties,
            parents: &entry.parents,
        })
        .collect();
    let globals = engine
        .parameters
        .iter()
        .filter_map(|(name, value)| match value {
            Inherited::Value(value) => Some((name.clone(), value.clone())),
            _ => None,
        });
    inherit(&layers, globals, &engine.modes)
}

impl Engine {
    /// Groups with properties, or that inherit.
    pub(super) fn layers(&self) -> Vec<GroupIx> {
        let matter = self
            .groups
            .iter()
            .filter(|(_, entry)| !entry.group.properties.is_empty() || !entry.parents.is_empty());
        matter.map(|(group, _)| group).collect()
    }

    /// The values that nodes have of a property, their own or inherited, by the nodes'
    /// identities. Of whom groups give it different values has none.
    pub fn values_of(&self, name: &str) -> HashMap<&str, Value> {
        let named = |all: &[Property]| all.iter().any(|one| one.name == name);
        let groups = self.groups.iter();
        let inherited = self.parameters.contains_key(name)
            || groups
                .into_iter()
                .any(|(_, entry)| named(&entry.group.properties));
        let layers = if inherited { self.layers() } else { Vec::new() };
        let mut by_groups: HashMap<Box<[GroupIx]>, Properties> = HashMap::new();
        let mut values = HashMap::new();
        for (ix, entry) in self.nodes.iter() {
            let own: Vec<_> = entry
                .node
                .properties
                .iter()
                .filter(|one| one.name == name)
                .cloned()
                .collect();
            if own.is_empty() && !inherited {
                continue;
            }
            let groups = layers_of(self, &layers, ix);
            let above = by_groups.entry(groups).or_insert_with_key(|groups| {
                let mut all = inherited_by(self, groups);
                all.retain(|inherited, _| inherited == name);
                all
            });
            let value = lay_own(above, &own, &self.modes)
                .remove(name)
                .or_else(|| above.get(name).cloned());
            if let Some(Inherited::Value(value)) = value {
                values.insert(self.nodes.names.text(ix), value);
            }
        }
        values
    }
}

impl Shared<'_> {
    /// The policy of a node; none if it gets none.
    pub(super) fn policy(
        &self,
        ix: NodeIx,
        clock: &Clock<'_>,
        tally: &mut Tally,
    ) -> Result<Option<NodePolicy>, NodeFailure> {
        let engine = self.engine;
        let node = engine.nodes.get(ix).map(|entry| &*entry.node);
        let Some(node) = node.filter(|node| node.state != NodeState::Ignored) else {
            return Ok(None);
        };
        let start = clock();
        let system_only = node.state == NodeState::EmptyPolicies;
        let mut drafts: Vec<Item> = Vec::new();
        for (nodes, items) in engine.rule_nodes.iter().zip(&self.drafts) {
            if !items.is_empty() && nodes.contains(ix) {
                let all = items.iter();
                drafts.extend(
                    all.filter(|item| !system_only || item.draft.system)
                        .cloned(),
                );
            }
        }
        let resolution = conflicts::resolve(&drafts);
        tally
            .unstable
            .extend(resolution.unstable.iter().map(|pair| {
                let mut ids =
                    [&pair.draft, &pair.by].map(|item| item.draft.directive_id.to_string());
                ids.sort_unstable();
                let [one, other] = ids;
                (ix, Problem::Unstable(one, other))
            }));
        let resolved = clock();

        let groups = layers_of(engine, &self.layers, ix);
        let nothing = Properties::new();
        let inherited = self.inherited.get(&groups).map_or(&nothing, |all| &**all);
        let own = lay_own(inherited, &node.properties, &engine.modes);
        let server = engine.nodes.named(&node.policy_server_id);
        let server = server.map(|(_, entry)| &*entry.node);
        let context = NodeContext {
            node,
            server,
            global_mode: engine.settings.policy_mode,
            inherited,
            own: &own,
            parameters: &engine.parameters,
        };
        let mut entries = Vec::with_capacity(resolution.policies.len());
        for policy in &resolution.policies {
            entries.push(self.entry(policy, context, &mut tally.buffer)?);
        }
        let expanded = clock();
        let fills = |entry: &Entry| entry.content.compiled.mentions.all_properties;
        let properties = entries.iter().any(fills).then(|| context.properties());
        let header = Header {
            properties: properties.map(String::into_boxed_str),
            ..self.header(ix, node, server)?
        };
        let overridden = resolution.overridden.into_iter();
        let overridden = overridden.map(|pair| (pair.draft.draft, pair.by.draft));
        let policy = NodePolicy::new(header, entries, overridden.collect());
        let end = clock();
        tally.resolve += resolved.saturating_sub(start);
        tally.expand += expanded.saturating_sub(resolved);
        tally.hash += end.saturating_sub(expanded);
        Ok(Some(policy))
    }

    fn entry(
        &self,
        policy: &Resolved<Item>,
        context: NodeContext<'_>,
        buffer: &mut String,
    ) -> Result<Entry, NodeFailure> {
        let failed = |variable: Arc<str>, cause: Cause| NodeFailure {
            rule: Arc::clone(&policy.main.draft.rule_id),
            directive: Arc::clone(&policy.main.draft.directive_id),
            variable,
            cause,
        };
        let compiled = self.compiled(policy).map_err(|error| {
            let variable = match &error {
                CompileError::Value { variable, .. } => variable.as_str().into(),
                _ => "".into(),
            };
            failed(variable, error.into())
        })?;
        let mut mode = None;
        for part in &policy.parts {
            let directive = self.engine.directives.get(part.directive);
            let of_directive = directive.and_then(|entry| entry.directive.policy_mode);
            let (global, node) = (context.global_mode, context.node.policy_mode);
            let resolved = mode::resolve(part.draft.system, global, node, of_directive);
            if mode
                .replace(resolved)
                .is_some_and(|before| before != resolved)
            {
                return Err(failed("".into(), Cause::Modes));
            }
        }
        let content = Content::expand(&compiled, context, buffer)
            .map_err(|ContentError { variable, cause }| failed(variable, cause.into()))?;
        Ok(Entry {
            draft: Arc::clone(&policy.main.draft),
            mode: mode.unwrap_or(context.global_mode.mode),
            content: self.engine.contents.share(content),
        })
    }

    fn compiled(&self, policy: &Resolved<Item>) -> CompileResult {
        let engine = self.engine;
        if let [part] = &policy.parts[..] {
            let entry = engine.directives.get(part.directive);
            let compiled = entry.and_then(|entry| entry.compiled.clone());
            return compiled.unwrap_or_else(|| {
                Err(CompileError::NoTechnique(part.draft.technique.to_string()))
            });
        }
        let key: Vec<_> = policy.parts.iter().map(|part| part.directive).collect();
        let mut merged = self.merged.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = merged.get(&key) {
            return known.clone();
        }
        let directives = key.iter().filter_map(|&ix| engine.directives.get(ix));
        let directives: Vec<_> = directives.map(|entry| &*entry.directive).collect();
        let main = engine.directives.get(policy.main.directive);
        let technique = main.and_then(|entry| engine.technique_of(&entry.directive));
        let compiled = match technique {
            Some(technique) => compile(technique, &directives).map(Arc::new),
            None => Err(CompileError::NoTechnique(
                policy.main.draft.technique.to_string(),
            )),
        };
        merged.insert(key, compiled.clone());
        compiled
    }

    fn header(
        &self,
        ix: NodeIx,
        node: &Node,
        server: Option<&Node>,
    ) -> Result<Header, NodeFailure> {
        let engine = self.engine;
        let settings = &engine.settings;
        let run = AgentRun::for_node(node.kind, settings.agent_run, node.agent_run);
        let first_run = run.first_run(match node.kind {
            // The root server starts at once.
            NodeKind::Root => "",
            _ => &node.id,
        });
        let first_run = first_run.map_err(|error| NodeFailure {
            rule: "".into(),
            directive: "".into(),
            variable: "".into(),
            cause: Cause::Schedule(error.to_string()),
        })?;
        let mut conditions: Vec<Arc<str>> = Vec::new();
        for (group, entry) in engine.groups.iter() {
            if engine.is_member(group, ix) {
                conditions.extend(entry.conditions.iter().cloned());
            }
        }
        conditions.sort_unstable();
        conditions.dedup();
        Ok(Header {
            node_id: node.id.as_str().into(),
            hostname: node.hostname.as_str().into(),
            kind: node.kind,
            server_id: node.policy_server_id.as_str().into(),
            server_hostname: server.map_or("", |server| &server.hostname).into(),
            modes: Modes {
                global: settings.policy_mode,
                node: node.policy_mode,
                compliance: settings.compliance_mode,
                run: settings.agent_run,
                node_run: node.agent_run,
            },
            run,
            first_run,
            conditions: conditions.into(),
            properties: None,
        })
    }
}
