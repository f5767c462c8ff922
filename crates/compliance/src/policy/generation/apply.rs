//! Taking changes in, and noting what they may affect.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::{DirectiveEntry, Engine, GroupEntry, NodeEntry, Scope, Settings};
use crate::model::ModelError;
use crate::model::directive::Directive;
use crate::model::group::Group;
use crate::model::ids::GroupIx;
use crate::model::inventory::{Inventory, PooledInventory};
use crate::model::node::Node;
use crate::model::property::{GlobalParameter, Property};
use crate::model::query::CompiledQuery;
use crate::model::rule::Rule;
use crate::model::technique::Technique;
use crate::policy::inheritance::Inherited;
use crate::policy::system::{SystemObjects, is_reserved, of_server};
use crate::policy::template::{Substitutions, parse};

/// A change of what is defined.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// A node is there, or is now so. Its inventory stays.
    SetNode(Arc<Node>),
    /// The inventory of a node that is there.
    SetInventory {
        /// Identity of the node.
        node: String,
        /// The inventory.
        inventory: Inventory,
    },
    /// A node is gone.
    RemoveNode(String),
    /// A group is there, or is now so.
    SetGroup(Group),
    /// A group is gone.
    RemoveGroup(String),
    /// A technique of this version is there, or is now so.
    SetTechnique(Technique),
    /// A technique is gone: identity and version.
    RemoveTechnique(String, String),
    /// A directive is there, or is now so.
    SetDirective(Directive),
    /// A directive is gone.
    RemoveDirective(String),
    /// A rule is there, or is now so.
    SetRule(Rule),
    /// A rule is gone.
    RemoveRule(String),
    /// A global parameter is there, or is now so.
    SetParameter(GlobalParameter),
    /// A global parameter is gone.
    RemoveParameter(String),
    /// What holds for all nodes.
    SetSettings(Settings),
}

/// A change that cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// The object is wrong.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// It is the server's own.
    #[error("{kind} \"{id}\" is one of the server's own; choose another identity")]
    Reserved {
        /// The kind of object.
        kind: &'static str,
        /// Its identity.
        id: String,
    },
    /// An inventory of a node that is not there.
    #[error("there is no node \"{0}\" for this inventory; accept the node first")]
    NoNode(String),
    /// A wrong schedule.
    #[error("the schedule of all nodes: {0}")]
    Schedule(#[from] crate::model::schedule::ScheduleError),
}

fn reserved(kind: &'static str, id: &str) -> Result<(), ChangeError> {
    if is_reserved(id) {
        return Err(ChangeError::Reserved {
            kind,
            id: id.to_owned(),
        });
    }
    Ok(())
}

impl Engine {
    /// Takes changes, all or none. What they affect is computed by the next generation.
    ///
    /// # Errors
    /// The first change that cannot be taken.
    pub fn apply(&mut self, changes: Vec<Change>) -> Result<(), ChangeError> {
        let mut coming = BTreeSet::new();
        for change in &changes {
            match change {
                Change::SetNode(node) => {
                    node.check()?;
                    coming.insert(node.id.as_str());
                }
                Change::SetInventory { node, inventory } => {
                    inventory.check(node)?;
                    let known = self.nodes.named(node).is_some();
                    if !known && !coming.contains(node.as_str()) {
                        return Err(ChangeError::NoNode(node.clone()));
                    }
                }
                Change::SetGroup(group) => {
                    group.check()?;
                    reserved("group", &group.id)?;
                }
                Change::SetTechnique(technique) => {
                    technique.check()?;
                    reserved("technique", &technique.id)?;
                }
                Change::SetDirective(directive) => {
                    directive.check()?;
                    reserved("directive", &directive.id)?;
                }
                Change::SetRule(rule) => {
                    rule.check()?;
                    reserved("rule", &rule.id)?;
                }
                Change::SetParameter(parameter) => parameter.check()?,
                Change::SetSettings(settings) => settings.agent_run.check()?,
                Change::RemoveGroup(id) => reserved("group", id)?,
                Change::RemoveTechnique(id, _) => reserved("technique", id)?,
                Change::RemoveDirective(id) => reserved("directive", id)?,
                Change::RemoveRule(id) => reserved("rule", id)?,
                Change::RemoveNode(_) | Change::RemoveParameter(_) => {}
            }
        }
        changes.into_iter().for_each(|change| self.take(change));
        Ok(())
    }

    fn take(&mut self, change: Change) {
        match change {
            Change::SetNode(node) => self.set_node(node),
            Change::SetInventory { node, inventory } => {
                let (pool, nodes) = (
                    Arc::make_mut(&mut self.pool),
                    Arc::make_mut(&mut self.nodes),
                );
                let pooled = pool.intern(&inventory);
                let (ix, place) = nodes.place(&node);
                // Checked with the other changes.
                if let Some(entry) = place {
                    entry.inventory = pooled;
                    self.pending.nodes.insert(ix);
                }
                if pool.is_slack() {
                    let entries = nodes.entries.iter_mut().flatten();
                    pool.compact(entries.map(|entry| &mut entry.inventory));
                }
            }
            Change::RemoveNode(id) => self.remove_node(&id),
            Change::SetGroup(group) => self.set_group(group),
            Change::RemoveGroup(id) => self.remove_group(&id),
            Change::SetTechnique(technique) => {
                let key = technique.key();
                self.pending.techniques.insert(key.clone());
                self.techniques.insert(key, Arc::new(technique));
            }
            Change::RemoveTechnique(id, version) => {
                let key = crate::model::technique::technique_key(&id, &version);
                self.techniques.remove(&key);
                self.pending.techniques.insert(key);
            }
            Change::SetDirective(directive) => self.set_directive(directive),
            Change::RemoveDirective(id) => {
                let (ix, place) = self.directives.place(&id);
                *place = None;
                self.pending.directives.insert(ix);
            }
            Change::SetRule(rule) => self.set_rule(rule),
            Change::RemoveRule(id) => self.remove_rule(&id),
            Change::SetParameter(parameter) => {
                self.note_nested(&parameter.id, &parameter.value);
                self.touch(&parameter.id, None);
                match parameter.inherit_mode.is_usual() {
                    true => self.modes.remove(&parameter.id),
                    false => self
                        .modes
                        .insert(parameter.id.clone(), parameter.inherit_mode),
                };
                let value = Inherited::Value(parameter.value);
                self.parameters.insert(parameter.id, value);
            }
            Change::RemoveParameter(id) => {
                self.parameters.remove(&id);
                self.modes.remove(&id);
                self.touch(&id, None);
            }
            Change::SetSettings(settings) => {
                if settings != self.settings {
                    let all = self.nodes.iter().map(|(ix, _)| ix);
                    let all: Vec<_> = all.collect();
                    for ix in all {
                        self.pending.dirty.insert(ix);
                        self.pending.nodes.insert(ix);
                    }
                    self.settings = settings;
                }
            }
        }
    }

    fn set_directive(&mut self, directive: Directive) {
        let (ix, place) = self.directives.place(&directive.id);
        *place = Some(DirectiveEntry {
            directive: Arc::new(directive),
            compiled: None,
        });
        self.pending.directives.insert(ix);
    }

    fn set_rule(&mut self, rule: Rule) {
        let (ix, place) = self.rules.place(&rule.id);
        *place = Some(Arc::new(rule));
        self.pending.rules.insert(ix);
    }

    fn remove_rule(&mut self, id: &str) {
        let (ix, place) = self.rules.place(id);
        *place = None;
        self.pending.rules.insert(ix);
    }

    fn set_node(&mut self, node: Arc<Node>) {
        for property in &node.properties {
            self.note_nested(&property.name, &property.value);
        }
        let new_system = of_server(&node);
        let id = node.id.clone();
        let (ix, place) = Arc::make_mut(&mut self.nodes).place(&id);
        let before = place.take();
        let inventory = before.as_ref().map(|entry| entry.inventory.clone());
        let old = before.map(|entry| entry.node);
        let seen = |node: &Node| {
            let mut seen = node.clone();
            // Policies do not show these; queries may.
            seen.last_inventory = None;
            seen.accepted = None;
            seen.time_zone = None;
            seen.ram = None;
            seen.swap = None;
            seen.ip_addresses = Vec::new();
            seen.accounts = Vec::new();
            seen.os = Default::default();
            seen.architecture_description = String::new();
            seen.agent.version = String::new();
            seen.agent.capabilities = Vec::new();
            seen
        };
        let same = old.as_ref().is_some_and(|old| seen(old) == seen(&node));
        *place = Some(NodeEntry {
            node,
            inventory: inventory.unwrap_or_else(PooledInventory::default),
        });
        self.pending.nodes.insert(ix);
        if !same {
            self.pending.dirty.insert(ix);
            self.pending.servers.insert(id);
        }
        let old_system = old.map(|old| of_server(&old)).unwrap_or_default();
        if old_system != new_system {
            self.remove_system(old_system);
            self.add_system(new_system);
        }
    }

    fn remove_node(&mut self, id: &str) {
        let (ix, place) = Arc::make_mut(&mut self.nodes).place(id);
        let Some(entry) = place.take() else {
            return;
        };
        self.pending.nodes.insert(ix);
        self.pending.dirty.insert(ix);
        self.pending.servers.insert(id.to_owned());
        self.gone.insert(ix);
        self.remove_system(of_server(&entry.node));
    }

    pub(super) fn add_system(&mut self, objects: SystemObjects) {
        for technique in objects.techniques {
            self.take(Change::SetTechnique(technique));
        }
        for group in objects.groups {
            self.set_group(group);
        }
        for directive in objects.directives {
            self.set_directive(directive);
        }
        for rule in objects.rules {
            self.set_rule(rule);
        }
    }

    fn remove_system(&mut self, objects: SystemObjects) {
        for rule in objects.rules {
            self.remove_rule(&rule.id);
        }
        for directive in objects.directives {
            self.take(Change::RemoveDirective(directive.id));
        }
        for group in objects.groups {
            self.remove_group(&group.id);
        }
        for technique in objects.techniques {
            self.take(Change::RemoveTechnique(technique.id, technique.version));
        }
    }

    fn set_group(&mut self, group: Group) {
        for property in &group.properties {
            self.note_nested(&property.name, &property.value);
        }
        let mut needs = Vec::new();
        let query = group.query.as_ref().filter(|_| group.dynamic);
        let compiled = query.map(|query| {
            for id in query.groups() {
                needs.push(self.groups.place(id).0);
            }
            CompiledQuery::new(query, &mut |id| self.groups.place(id).0)
        });
        let parents = query.map(|query| query.parents().map(str::to_owned).collect());
        let conditions = group.conditions().map(Arc::from);
        let entry = GroupEntry {
            query: compiled,
            needs,
            parents: parents.unwrap_or_default(),
            conditions,
            group: Arc::new(group),
        };
        let (ix, place) = self.groups.place(&entry.group.id);
        let old = place.replace(entry.clone());
        self.group_changed(ix, old, Some(entry));
    }

    fn remove_group(&mut self, id: &str) {
        let (ix, place) = self.groups.place(id);
        let old = place.take();
        self.group_changed(ix, old, None);
    }

    fn group_changed(&mut self, ix: GroupIx, old: Option<GroupEntry>, new: Option<GroupEntry>) {
        let (Some(old), Some(new)) = (&old, &new) else {
            self.pending.groups.insert(ix);
            self.pending.seen_groups.insert(ix);
            return;
        };
        let (one, other) = (&old.group, &new.group);
        if one.query != other.query
            || one.dynamic != other.dynamic
            || one.enabled != other.enabled
            || one.node_ids != other.node_ids
        {
            self.pending.groups.insert(ix);
        }
        if old.conditions != new.conditions || old.parents != new.parents {
            self.pending.seen_groups.insert(ix);
        }
        let by_name = |list: &[Property], name: &str| {
            let found = list.iter().find(|property| property.name == name);
            found.map(|property| property.value.clone())
        };
        let names = one.properties.iter().chain(&other.properties);
        let names: BTreeSet<String> = names.map(|property| property.name.clone()).collect();
        for name in names {
            if by_name(&one.properties, &name) != by_name(&other.properties, &name) {
                self.touch(&name, Some(ix));
            }
        }
    }

    /// A property has changed, of all nodes or of the members of a group.
    fn touch(&mut self, name: &str, group: Option<GroupIx>) {
        let all = &mut self.pending.properties;
        match (all.get_mut(name), group) {
            (Some(Scope::All), _) => {}
            (Some(Scope::Groups(groups)), Some(group)) => {
                groups.insert(group);
            }
            (None, Some(group)) => {
                all.insert(name.to_owned(), Scope::Groups([group].into()));
            }
            (_, None) => {
                all.insert(name.to_owned(), Scope::All);
            }
        }
    }

    /// Notes what the texts of a value name.
    fn note_nested(&mut self, name: &str, value: &Value) {
        match value {
            Value::String(text) => {
                // What cannot be read names nothing: expanding it fails.
                let tokens = parse(text, &Substitutions::new()).unwrap_or_default();
                let mut mentions = crate::policy::template::References::default();
                mentions.add(&tokens);
                if mentions != crate::policy::template::References::default() {
                    let all = self.nested.entry(name.to_owned()).or_default();
                    all.add(&tokens);
                }
            }
            Value::Array(list) => list.iter().for_each(|one| self.note_nested(name, one)),
            Value::Object(map) => map.values().for_each(|one| self.note_nested(name, one)),
            _ => {}
        }
    }
}
