//! A generation: from what has changed to new policies of the nodes that it affects.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::build::{InheritedBy, Item, Shared, Tally, inherited_by, layers_of};
use super::whole::{Made, Room};
use super::{Clock, Engine, NodeFailure, Outcome, Pending, Problem, Scope, Step, slot};
use crate::cores;
use crate::model::directive::Directive;
use crate::model::ids::{DenseId, DirectiveIx, NodeIx};
use crate::model::node_set::NodeSet;
use crate::model::technique::{Technique, technique_key};
use crate::policy::compile::{CompileError, compile};
use crate::policy::conflicts::Draft;

/// What became of a node.
pub(super) type Built = (NodeIx, Result<Option<Made>, NodeFailure>);

impl Engine {
    /// Makes the policies of all nodes that changes since the last generation affect. `now` is
    /// in seconds since 1970 and becomes part of new config ids; `threads` is how many threads
    /// work at once, at least one.
    pub fn generate(&mut self, now: i64, threads: usize, clock: &Clock<'_>) -> Outcome {
        let mut steps = Vec::new();
        let mut last = clock();
        let mut step = |name: &'static str| {
            let end = clock();
            steps.push(Step {
                name,
                duration: end.saturating_sub(std::mem::replace(&mut last, end)),
                summed: false,
            });
        };
        self.problems
            .retain(|problem| matches!(problem, Problem::Unstable(..)));
        let mut dirty = std::mem::take(&mut self.pending.dirty);
        dirty.union_with(&self.update_members());
        step("groups");
        self.update_compiled();
        step("directives");
        dirty.union_with(&self.update_rules());
        self.check_names();
        step("rules");
        dirty.union_with(&self.affected_by_properties());
        dirty.union_with(&self.affected_by_servers());
        dirty.union_with(&self.held.iter().copied().collect());
        let pending = std::mem::take(&mut self.pending);
        self.forget_merged(&pending);
        step("affected nodes");
        let shared = self.shared(&dirty);
        step("contexts");
        let (built, tally) = build_all(&shared, &dirty, threads.max(1), clock);
        let merged = shared.merged.into_inner();
        self.merged = merged.unwrap_or_else(PoisonError::into_inner);
        step("build");
        let mut outcome = self.publish(now, built);
        self.note_unstable(&dirty, tally.unstable);
        step("publish");
        for (name, duration) in [
            ("build: resolve", tally.resolve),
            ("build: expand", tally.expand),
            ("build: hash", tally.hash),
        ] {
            steps.push(Step {
                name,
                duration,
                summed: true,
            });
        }
        outcome.steps = steps;
        outcome
    }

    pub(super) fn technique_of(&self, directive: &Directive) -> Option<&Technique> {
        let key = technique_key(&directive.technique_name, &directive.technique_version);
        self.techniques.get(&key).map(|technique| &**technique)
    }

    /// Compiles directives that have changed or whose technique has.
    fn update_compiled(&mut self) {
        for (ix, entry) in self.directives.iter() {
            let directive = &entry.directive;
            let key = technique_key(&directive.technique_name, &directive.technique_version);
            if self.pending.techniques.contains(&key) {
                self.pending.directives.insert(ix);
            }
        }
        for &ix in &self.pending.directives {
            let Some(entry) = self.directives.get(ix) else {
                continue;
            };
            let directive = Arc::clone(&entry.directive);
            let compiled = match self.technique_of(&directive) {
                Some(technique) => compile(technique, &[&directive]).map(Arc::new),
                None => Err(CompileError::NoTechnique(technique_key(
                    &directive.technique_name,
                    &directive.technique_version,
                ))),
            };
            if let Some(Some(entry)) = self.directives.entries.get_mut(ix.index()) {
                entry.compiled = Some(compiled);
            }
        }
    }

    /// Brings the nodes of all rules up to date; gives the nodes that rules or directives that
    /// have changed affect.
    fn update_rules(&mut self) -> NodeSet {
        let mut dirty = NodeSet::default();
        let changed_directives: BTreeSet<&str> = self
            .pending
            .directives
            .iter()
            .map(|&ix| self.directives.names.text(ix))
            .collect();
        let count = self.rules.entries.len();
        let mut all = std::mem::take(&mut self.rule_nodes);
        slot(&mut all, count);
        for (at, nodes) in all.iter_mut().enumerate().take(count) {
            let ix = crate::model::ids::RuleIx(at as u32);
            let rule = self.rules.get(ix);
            let new = rule.map(|rule| self.nodes_of(rule)).unwrap_or_default();
            dirty.union_with(&nodes.difference(&new));
            let names = rule.map(|rule| &rule.directives[..]).unwrap_or_default();
            let changed = self.pending.rules.contains(&ix)
                || names
                    .iter()
                    .any(|id| changed_directives.contains(id.as_str()));
            if changed {
                dirty.union_with(&new);
            }
            *nodes = new;
        }
        self.rule_nodes = all;
        for group in &self.pending.seen_groups {
            if let Some(members) = self.members.get(group.index()) {
                dirty.union_with(members);
            }
        }
        dirty
    }

    /// Nodes with a directive that names a property that has changed for them.
    fn affected_by_properties(&self) -> NodeSet {
        let mut dirty = NodeSet::default();
        if self.pending.properties.is_empty() {
            return dirty;
        }
        // Values may name values: what they name counts as what names them.
        let mut changed: BTreeMap<&str, Scope> = BTreeMap::new();
        for (name, scope) in &self.pending.properties {
            changed.insert(name, scope.clone());
        }
        loop {
            let mut more: Vec<&str> = Vec::new();
            for (name, mentions) in &self.nested {
                let named = mentions.properties.iter().chain(&mentions.parameters);
                let all = changed.get(name.as_str()) == Some(&Scope::All);
                if !all && named.into_iter().any(|one| changed.contains_key(&**one)) {
                    more.push(name);
                }
            }
            if more.is_empty() {
                break;
            }
            changed.extend(more.into_iter().map(|name| (name, Scope::All)));
        }
        let mut rules_of: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (ix, rule) in self.rules.iter() {
            for id in &rule.directives {
                rules_of.entry(id).or_default().push(ix.index());
            }
        }
        for (_, entry) in self.directives.iter() {
            let Some(Ok(compiled)) = &entry.compiled else {
                continue;
            };
            let mentions = &compiled.mentions;
            let named = mentions.properties.iter().chain(&mentions.parameters);
            let scopes: Vec<&Scope> = match mentions.all_properties {
                true => changed.values().collect(),
                false => named.filter_map(|name| changed.get(&**name)).collect(),
            };
            for scope in scopes {
                let within = match scope {
                    Scope::All => None,
                    Scope::Groups(groups) => {
                        let mut nodes = NodeSet::default();
                        let members = groups.iter().map(|group| self.members.get(group.index()));
                        members.flatten().for_each(|one| nodes.union_with(one));
                        Some(nodes)
                    }
                };
                for &rule in rules_of
                    .get(entry.directive.id.as_str())
                    .into_iter()
                    .flatten()
                {
                    let mut nodes = self.rule_nodes[rule].clone();
                    if let Some(within) = &within {
                        nodes.intersect_with(within);
                    }
                    dirty.union_with(&nodes);
                }
            }
        }
        dirty
    }

    /// Nodes behind policy servers that have changed.
    fn affected_by_servers(&self) -> NodeSet {
        let servers = &self.pending.servers;
        let behind = self.nodes.iter().filter(|(_, entry)| {
            !servers.is_empty() && servers.contains(&entry.node.policy_server_id)
        });
        behind.map(|(ix, _)| ix).collect()
    }

    fn forget_merged(&mut self, pending: &Pending) {
        let changed = |ix: &DirectiveIx| pending.directives.contains(ix);
        self.merged.retain(|key, _| !key.iter().any(changed));
    }

    pub(super) fn shared(&mut self, dirty: &NodeSet) -> Shared<'_> {
        let merged = Mutex::new(std::mem::take(&mut self.merged));
        let engine = &*self;
        let mut drafts: Vec<Vec<Item>> = vec![Vec::new(); engine.rules.entries.len()];
        let mut names: BTreeMap<DirectiveIx, [Arc<str>; 3]> = BTreeMap::new();
        for (ix, rule) in engine.rules.iter() {
            let rule_id: Arc<str> = rule.id.as_str().into();
            let rule_name: Arc<str> = rule.display_name.as_str().into();
            let mut seen = BTreeSet::new();
            for id in rule.directives.iter().filter(|id| seen.insert(id.as_str())) {
                let Some((directive, entry)) = engine.directives.named(id) else {
                    continue;
                };
                let facts = &entry.directive;
                if !facts.enabled {
                    continue;
                }
                let technique = engine.technique_of(facts);
                let [directive_id, directive_name, technique_id] = names
                    .entry(directive)
                    .or_insert_with(|| {
                        [&facts.id, &facts.display_name, &facts.technique_name]
                            .map(|text| text.as_str().into())
                    })
                    .clone();
                drafts[ix.index()].push(Item {
                    directive,
                    draft: Arc::new(Draft {
                        rule_id: Arc::clone(&rule_id),
                        rule_name: Arc::clone(&rule_name),
                        directive_id,
                        directive_name,
                        technique: technique_id,
                        priority: facts.priority,
                        system: facts.system,
                        multi_instance: technique.is_some_and(|one| one.multi_instance),
                        generation: technique.map(|one| one.generation).unwrap_or_default(),
                    }),
                });
            }
        }
        let layers = engine.layers();
        let mut inherited = InheritedBy::new();
        for node in dirty.iter() {
            let groups = layers_of(engine, &layers, node);
            if let Entry::Vacant(place) = inherited.entry(groups) {
                let all = inherited_by(engine, place.key());
                place.insert(Arc::new(all));
            }
        }
        Shared {
            engine,
            drafts,
            layers,
            inherited,
            merged,
        }
    }
}

fn build_all(
    shared: &Shared<'_>,
    dirty: &NodeSet,
    threads: usize,
    clock: &Clock<'_>,
) -> (Vec<Built>, Tally) {
    let nodes: Vec<NodeIx> = dirty.iter().collect();
    let room = Room::new(shared.engine.whole_bytes);
    let build = |ix: &NodeIx, tally: &mut Tally| {
        let policy = shared.policy(*ix, clock, tally);
        let made = policy.map(|policy| policy.map(|one| shared.made(*ix, one, &room)));
        (*ix, made)
    };
    let (built, tallies) = cores::shared_with(threads, &nodes, Tally::default, build);
    let mut tally = Tally::default();
    for one in tallies {
        add(&mut tally, one);
    }
    (built, tally)
}

fn add(all: &mut Tally, one: Tally) {
    let sum = |a: &mut Duration, b| *a = a.saturating_add(b);
    sum(&mut all.resolve, one.resolve);
    sum(&mut all.expand, one.expand);
    sum(&mut all.hash, one.hash);
    all.unstable.extend(one.unstable);
}
