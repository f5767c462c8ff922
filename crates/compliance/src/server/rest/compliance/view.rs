//! What compliance looks like: nodes, rules and directives in Rudder's JSON.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::super::shapes::{named, sum, with_level};
use super::tree::{Component, Trees};
use crate::definitions::Definitions;
use crate::model::mode::{PolicyMode, resolve, word_of_rule};
use crate::model::node::Node;
use crate::reports::decision::Basis;
use crate::reports::fleet::Abort;
use crate::reports::level::{ComplianceLevel, FleetLevel, Precision};
use crate::reports::matching::Types;

/// The word for a mode that is not the same of all directives.
const MIXED: &str = "mixed";
/// The word for the mode of what gave way: it is in none.
const SKIPPED: &str = "skipped";

/// What one directive comes to on a node.
pub(super) struct DirectiveShown {
    pub(super) rule: Arc<str>,
    pub(super) directive: Arc<str>,
    pub(super) types: Types,
    pub(super) level: ComplianceLevel,
}

/// A directive that gave way to another on a node.
pub(super) struct SkippedShown {
    pub(super) rule: Arc<str>,
    pub(super) directive: Arc<str>,
    /// The rule that brought what took its place.
    pub(super) by_rule: Arc<str>,
}

/// What a node shows.
pub(super) struct NodeShown {
    pub(super) id: Arc<str>,
    pub(super) number: i64,
    pub(super) node: Arc<Node>,
    pub(super) basis: Basis,
    pub(super) directives: Vec<DirectiveShown>,
    pub(super) skipped: Vec<SkippedShown>,
    /// Why its last run gave up.
    pub(super) aborts: Arc<[Abort]>,
    /// Components, if they are shown.
    pub(super) trees: Trees,
}

/// What one rule, or one directive, comes to on a node.
pub(super) struct Portion<'n> {
    pub(super) shown: &'n NodeShown,
    pub(super) directives: Vec<&'n DirectiveShown>,
    pub(super) skipped: Vec<&'n SkippedShown>,
}

/// Portions of nodes by what they are of.
pub(super) type Portions<'n> = HashMap<&'n str, Vec<Portion<'n>>>;

/// What nodes show by rule. A fleet has many of both, so that nodes are gone through once.
pub(super) fn by_rule(nodes: &[NodeShown]) -> Portions<'_> {
    portions(nodes, |one| &one.rule, |one| &one.rule)
}

/// The same by directive.
pub(super) fn by_directive(nodes: &[NodeShown]) -> Portions<'_> {
    portions(nodes, |one| &one.directive, |one| &one.directive)
}

fn portions(
    nodes: &[NodeShown],
    of: fn(&DirectiveShown) -> &str,
    of_skipped: fn(&SkippedShown) -> &str,
) -> Portions<'_> {
    let mut all = Portions::new();
    for shown in nodes {
        for one in &shown.directives {
            portion(&mut all, of(one), shown).directives.push(one);
        }
        for one in &shown.skipped {
            portion(&mut all, of_skipped(one), shown).skipped.push(one);
        }
    }
    all
}

/// The portion of a node, which comes last if it is there.
fn portion<'a, 'n>(
    all: &'a mut Portions<'n>,
    key: &'n str,
    shown: &'n NodeShown,
) -> &'a mut Portion<'n> {
    let portions = all.entry(key).or_default();
    let known = portions
        .last()
        .is_some_and(|last| std::ptr::eq(last.shown, shown));
    if !known {
        portions.push(Portion {
            shown,
            directives: Vec::new(),
            skipped: Vec::new(),
        });
    }
    let last = portions.len() - 1;
    &mut portions[last]
}

/// How much is shown, and of what.
pub(super) struct View {
    pub(super) all: Arc<Definitions>,
    pub(super) level: u8,
    pub(super) precision: Precision,
    pub(super) types: Types,
    /// Is it of a group? Rudder tells there of a rule on a node that it gave way.
    pub(super) of_group: bool,
}

impl View {
    pub(super) fn mode(&self) -> &'static str {
        self.all.settings.compliance_mode.name()
    }

    fn policy_mode(&self, node: Option<&Node>, directive: Option<&str>) -> &'static str {
        let directive = directive.and_then(|id| self.all.directives.get(id));
        let global = self.all.settings.policy_mode;
        let node = node.and_then(|node| node.policy_mode);
        let system = self.types == Types::SYSTEM;
        resolve(
            system,
            global,
            node,
            directive.and_then(|one| one.policy_mode),
        )
        .name()
    }

    /// The mode of a rule on a node, by those of its directives there; of what gave way only where
    /// nothing else is left, and among the nodes of a group not even there.
    fn rule_mode_on(
        &self,
        shown: &NodeShown,
        directives: &[&DirectiveShown],
        skipped: &[&SkippedShown],
    ) -> &'static str {
        if self.of_group && directives.is_empty() && !skipped.is_empty() {
            return SKIPPED;
        }
        let mode = |id: &str| self.policy_mode(Some(&shown.node), Some(id));
        let modes = directives.iter().map(|one| mode(&one.directive));
        let gave_way = skipped.iter().map(|one| mode(&one.directive));
        let gave_way = gave_way.filter(|_| directives.is_empty());
        let same = |one: &'static str, other| if one == other { one } else { MIXED };
        let mode = modes.chain(gave_way).reduce(same);
        mode.unwrap_or_else(|| self.policy_mode(Some(&shown.node), None))
    }

    /// The mode of a rule on those of these nodes that have it.
    fn rule_mode(&self, id: &str, nodes: &[&Portion<'_>]) -> &'static str {
        let rule = self.all.rules.get(id);
        let directives = rule.map_or(&[][..], |rule| &rule.directives);
        if self.types == Types::SYSTEM && !directives.is_empty() {
            return PolicyMode::Enforce.name();
        }
        let having = nodes.iter().filter(|node| !node.directives.is_empty());
        word_of_rule(
            self.all.settings.policy_mode,
            self.all.modes_of(directives),
            having.map(|node| node.shown.node.policy_mode).collect(),
        )
    }

    pub(super) fn directive_name<'s>(&'s self, id: &'s str) -> &'s str {
        let known = self.all.directives.get(id);
        known.map_or(id, |directive| directive.display_name.as_str())
    }

    pub(super) fn rule_name<'s>(&'s self, id: &'s str) -> &'s str {
        let known = self.all.rules.get(id);
        known.map_or(id, |rule| rule.display_name.as_str())
    }

    /// What has an identity, a name, a policy mode, and a level.
    fn object(&self, id: &str, name: &str, mode: &str, level: &FleetLevel) -> Map<String, Value> {
        let mut object = named(id, name);
        object.insert("policyMode".into(), mode.into());
        with_level(object, level, self.precision)
    }

    /// A node with its rules.
    pub(super) fn node(&self, shown: &NodeShown) -> Map<String, Value> {
        let wanted = shown
            .directives
            .iter()
            .filter(|one| one.types.has(self.types));
        let mut by_rule: BTreeMap<&str, Vec<&DirectiveShown>> = BTreeMap::new();
        for one in wanted {
            by_rule.entry(&one.rule).or_default().push(one);
        }
        let mut skipped: HashMap<&str, Vec<&SkippedShown>> = HashMap::new();
        for one in self.skipped(shown) {
            by_rule.entry(&one.rule).or_default();
            skipped.entry(&one.rule).or_default().push(one);
        }
        let level = sum(by_rule.values().flatten().map(|one| &one.level));
        let mode = self.policy_mode(Some(&shown.node), None);
        let mut object = self.object(&shown.id, &shown.node.hostname, mode, &level);
        object.insert("mode".into(), self.mode().into());
        if !shown.aborts.is_empty() {
            let aborts = shown.aborts.iter();
            let aborts = aborts.map(|one| json!({"cause": one.cause, "message": one.message}));
            object.insert("policyModeInconsistency".into(), aborts.collect());
        }
        if self.level >= 1 {
            let rules = by_rule.iter().map(|(rule, directives)| {
                let level = sum(directives.iter().map(|one| &one.level));
                let skipped = skipped.get(rule).map_or(&[][..], Vec::as_slice);
                let mode = self.rule_mode_on(shown, directives, skipped);
                let mut object = self.object(rule, self.rule_name(rule), mode, &level);
                if self.level >= super::DIRECTIVES {
                    let directives = directives.iter();
                    let directives = directives.map(|one| self.directive_of(shown, one));
                    let skipped = skipped.iter();
                    let skipped = skipped.map(|one| self.skipped_directive(one));
                    object.insert("directives".into(), directives.chain(skipped).collect());
                }
                object
            });
            let rules: Vec<_> = rules.collect();
            object.insert("rules".into(), rules.into());
        }
        object
    }

    /// What gave way on a node, of what is looked at: the system's own directives never do.
    fn skipped<'s>(&self, shown: &'s NodeShown) -> impl Iterator<Item = &'s SkippedShown> {
        let users = self.types == Types::USER;
        shown.skipped.iter().filter(move |_| users)
    }

    /// A directive that gave way to another, on a node or over several.
    fn skipped_directive(&self, one: &SkippedShown) -> Map<String, Value> {
        let id = &*one.directive;
        self.gave_way(named(id, self.directive_name(id)), one)
    }

    /// What gave way to another: it has no components, and counts for nothing.
    fn gave_way(&self, mut object: Map<String, Value>, one: &SkippedShown) -> Map<String, Value> {
        object.insert("policyMode".into(), SKIPPED.into());
        object.insert("compliance".into(), 0.0.into());
        object.insert("complianceDetails".into(), Map::new().into());
        let by = json!({
            "overridingRuleId": one.by_rule,
            "overridingRuleName": self.rule_name(&one.by_rule),
        });
        object.insert("skippedDetails".into(), by);
        if self.level >= super::COMPONENTS {
            object.insert("components".into(), Value::Array(Vec::new()));
        }
        object
    }

    /// What one directive comes to on a node.
    fn directive_of(&self, shown: &NodeShown, one: &DirectiveShown) -> Map<String, Value> {
        let id = &*one.directive;
        let mode = self.policy_mode(Some(&shown.node), Some(id));
        let mut object = self.object(id, self.directive_name(id), mode, &one.level.into());
        if self.level >= super::COMPONENTS {
            object.insert("components".into(), components_of(shown, one));
        }
        object
    }

    /// The nodes of a rule, each with the rule's directives.
    pub(super) fn nodes_of_rule(&self, nodes: &[Portion<'_>]) -> Value {
        let nodes = nodes.iter().filter_map(|portion| {
            let (shown, of_rule) = (portion.shown, &portion.directives);
            let mut object = self.node_of(shown, of_rule, None)?;
            if self.level >= super::COMPONENTS {
                let directives = of_rule.iter().map(|one| self.directive_of(shown, one));
                object.insert("directives".into(), directives.collect());
            }
            Some(object)
        });
        nodes.collect()
    }

    /// The nodes of a directive, each with the rules that bring it.
    pub(super) fn nodes_of_directive(&self, directive: &str, nodes: &[Portion<'_>]) -> Value {
        let nodes = nodes.iter().filter_map(|portion| {
            let (shown, brought) = (portion.shown, &portion.directives);
            let mut object = self.node_of(shown, brought, Some(directive))?;
            if self.level >= super::COMPONENTS {
                let rules = brought.iter().map(|one| {
                    let (rule, name) = (&one.rule, self.rule_name(&one.rule));
                    let mode = self.policy_mode(Some(&shown.node), Some(directive));
                    let mut object = self.object(rule, name, mode, &one.level.into());
                    if self.level >= super::NODES {
                        object.insert("components".into(), components_of(shown, one));
                    }
                    object
                });
                object.insert("rules".into(), rules.collect());
            }
            Some(object)
        });
        nodes.collect()
    }

    /// A node with what these directives come to; nothing, if there are none.
    fn node_of(
        &self,
        shown: &NodeShown,
        directives: &[&DirectiveShown],
        mode_of: Option<&str>,
    ) -> Option<Map<String, Value>> {
        if directives.is_empty() {
            return None;
        }
        let mode = self.policy_mode(Some(&shown.node), mode_of);
        let level = sum(directives.iter().map(|one| &one.level));
        Some(self.object(&shown.id, &shown.node.hostname, mode, &level))
    }

    /// A rule with its directives, over these nodes.
    pub(super) fn rule(&self, id: &str, nodes: &[Portion<'_>]) -> Map<String, Value> {
        let all = nodes.iter().flat_map(|node| &node.directives);
        let mut by_directive: BTreeMap<&str, FleetLevel> = BTreeMap::new();
        for one in all {
            *by_directive.entry(&one.directive).or_default() += &one.level;
        }
        let mut level = FleetLevel::default();
        by_directive.values().for_each(|one| level += one);
        let all: Vec<_> = nodes.iter().collect();
        let mode = self.rule_mode(id, &all);
        let mut object = self.object(id, self.rule_name(id), mode, &level);
        object.insert("mode".into(), self.mode().into());
        if self.level >= super::DIRECTIVES {
            let directives = by_directive.iter().map(|(directive, level)| {
                let name = self.directive_name(directive);
                let mode = self.policy_mode(None, Some(directive));
                let mut object = self.object(directive, name, mode, level);
                if self.level >= super::COMPONENTS {
                    let components = self.components((id, directive), nodes);
                    object.insert("components".into(), components.into());
                }
                object
            });
            let mut directives: Vec<_> = directives.collect();
            // What gave way on every node: elsewhere it has its level.
            let users = self.types == Types::USER;
            let skipped = nodes.iter().flat_map(|node| &node.skipped);
            let skipped = skipped.filter(|_| users);
            let skipped = skipped.map(|one| (&*one.directive, *one));
            let mut skipped: BTreeMap<&str, &SkippedShown> = skipped.collect();
            skipped.retain(|directive, _| !by_directive.contains_key(directive));
            directives.extend(skipped.values().map(|one| self.skipped_directive(one)));
            object.insert("directives".into(), directives.into());
        }
        object
    }

    /// A directive with its rules, over these nodes.
    pub(super) fn directive(&self, id: &str, nodes: &[Portion<'_>]) -> Map<String, Value> {
        let all = nodes.iter().flat_map(|node| &node.directives);
        let mut level = FleetLevel::default();
        all.for_each(|one| level += &one.level);
        let mode = self.policy_mode(None, Some(id));
        let mut object = self.object(id, self.directive_name(id), mode, &level);
        object.insert("mode".into(), self.mode().into());
        if self.level >= 1 {
            object.insert("rules".into(), self.rules_of_directive(id, nodes));
        }
        object
    }

    /// The rules that bring a directive, over these nodes.
    pub(super) fn rules_of_directive(&self, id: &str, nodes: &[Portion<'_>]) -> Value {
        let all = nodes.iter().flat_map(|node| &node.directives);
        let mut by_rule: BTreeMap<&str, FleetLevel> = BTreeMap::new();
        for one in all {
            *by_rule.entry(&one.rule).or_default() += &one.level;
        }
        let brought = by_rule.iter().map(|(rule, level)| {
            let brings =
                |node: &&Portion<'_>| node.directives.iter().any(|one| *one.rule == **rule);
            let having: Vec<_> = nodes.iter().filter(brings).collect();
            let mode = self.rule_mode(rule, &having);
            let mut object = self.object(rule, self.rule_name(rule), mode, level);
            if self.level >= super::COMPONENTS {
                let components = self.components((rule, id), nodes);
                object.insert("components".into(), components.into());
            }
            object
        });
        // What gave way on every node: elsewhere it has its level.
        let skipped = nodes.iter().flat_map(|node| &node.skipped);
        let mut skipped: BTreeMap<&str, &SkippedShown> =
            skipped.map(|one| (&*one.rule, *one)).collect();
        skipped.retain(|rule, _| !by_rule.contains_key(rule));
        let gave_way = skipped
            .iter()
            .map(|(rule, one)| self.gave_way(named(rule, self.rule_name(rule)), one));
        brought.chain(gave_way).collect()
    }

    /// Components of a rule's directive, each with the nodes that have it.
    fn components(
        &self,
        (rule, directive): (&str, &str),
        nodes: &[Portion<'_>],
    ) -> Vec<Map<String, Value>> {
        let key = (rule.to_owned(), directive.to_owned());
        let nodes = nodes.iter().map(|portion| portion.shown);
        let all = nodes.flat_map(|node| {
            let of_node = node.trees.get(&key).into_iter().flatten();
            of_node.map(move |component| (node, component))
        });
        self.joined(directive, all.collect())
    }

    /// Components of one name as one: a block with what is in it, any other with its nodes.
    fn joined(
        &self,
        directive: &str,
        all: Vec<(&NodeShown, &Component)>,
    ) -> Vec<Map<String, Value>> {
        let mut order: Vec<&str> = Vec::new();
        let mut by_name: HashMap<&str, Vec<(&NodeShown, &Component)>> = HashMap::new();
        for (node, component) in all {
            let name = component.object.get("name").and_then(Value::as_str);
            let name = name.unwrap_or_default();
            let of_name = by_name.entry(name).or_insert_with(|| {
                order.push(name);
                Vec::new()
            });
            of_name.push((node, component));
        }
        let components = order.into_iter().map(|name| {
            let all = by_name.remove(name).unwrap_or_default();
            let mut level = FleetLevel::default();
            all.iter().for_each(|(_, one)| level += &one.level);
            let mut object = Map::new();
            object.insert("name".into(), name.into());
            let mut object = with_level(object, &level, self.precision);
            let is_block = |(_, one): &(&NodeShown, &Component)| !one.within.is_empty();
            let (blocks, others): (Vec<_>, Vec<_>) = all.into_iter().partition(is_block);
            if !blocks.is_empty() {
                let within = blocks.into_iter().flat_map(|(node, block)| {
                    let within = block.within.iter();
                    within.map(move |component| (node, component))
                });
                let within = self.joined(directive, within.collect());
                object.insert("components".into(), within.into());
            }
            if self.level >= super::NODES && !others.is_empty() {
                let nodes = others.into_iter().map(|(node, component)| {
                    let mut shown = named(&node.id, &node.node.hostname);
                    let mode = self.policy_mode(Some(&node.node), Some(directive));
                    shown.insert("policyMode".into(), mode.into());
                    let parts = component.object.iter().filter(|(key, _)| *key != "name");
                    shown.extend(parts.map(|(key, part)| (key.clone(), part.clone())));
                    shown
                });
                object.insert("nodes".into(), nodes.collect());
            }
            object
        });
        components.collect()
    }
}

/// The components of a directive on a node.
fn components_of(shown: &NodeShown, one: &DirectiveShown) -> Value {
    let key = (one.rule.to_string(), one.directive.to_string());
    let components = shown.trees.get(&key).into_iter().flatten();
    components.map(Component::whole).collect()
}
