//! Compliance of the fleet, by node, rule, directive and group, in Rudder's JSON.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::answers::ApiError;
use super::shapes::{named, sum, with_level};
use super::tree::{Trees, sources, trees};
use super::{Call, Service};
use crate::definitions::Definitions;
use crate::model::mode::resolve;
use crate::model::node::Node;
use crate::reports::decision::Basis;
use crate::reports::level::{ComplianceLevel, FleetLevel, Precision};
use crate::reports::matching::Types;

/// Levels of detail, as Rudder numbers them.
const DIRECTIVES: u8 = 2;
const COMPONENTS: u8 = 3;
/// Nodes of which components are shown at once: those of more are asked for one by one.
const DETAILED: usize = 500;

/// What one directive comes to on a node.
struct DirectiveShown {
    rule: Arc<str>,
    directive: Arc<str>,
    types: Types,
    level: ComplianceLevel,
}

/// What a node shows.
struct NodeShown {
    id: Arc<str>,
    number: i64,
    node: Arc<Node>,
    basis: Basis,
    directives: Vec<DirectiveShown>,
}

/// How much is shown, and of what.
struct Shape {
    all: Arc<Definitions>,
    level: u8,
    precision: Precision,
    types: Types,
}

impl Service {
    pub(super) async fn compliance_of(&self, call: &Call<'_>) -> Result<Value, ApiError> {
        let mut path = call.path.clone();
        if let ["compliance", rest @ ..] = &path[..] {
            // The older names of the same.
            path = match rest {
                [] => return Ok(self.global(&self.shape(call, 0)?)),
                [kind] => vec![kind, "compliance"],
                [kind, id] => vec![kind, id, "compliance"],
                _ => return Err(ApiError::no_such_call(call.method, &call.path)),
            };
        }
        // Of all, what is deeper than directives is asked for; of one it is shown.
        match &path[..] {
            ["nodes", "compliance"] => {
                let shape = self.shape(call, DIRECTIVES)?;
                let nodes = self.shown(|_| true);
                Ok(json!({"nodes": self.nodes_shown(&shape, nodes).await?}))
            }
            ["nodes", id, "compliance", rest @ ..] => {
                let mut shape = self.shape(call, 10)?;
                if rest == ["system"] {
                    shape.types = Types::SYSTEM;
                }
                let nodes = self.shown(|node| node == *id);
                if nodes.is_empty() {
                    return Err(ApiError::not_found("accepted node", id));
                }
                Ok(json!({"nodes": self.nodes_shown(&shape, nodes).await?}))
            }
            ["rules", "compliance"] => {
                let shape = self.shape(call, DIRECTIVES)?;
                let nodes = self.shown(|_| true);
                let rules = shape.all.rules.keys();
                let rules = rules.map(|id| shape.rule(id, &nodes)).collect::<Vec<_>>();
                Ok(json!({"rules": rules}))
            }
            ["rules", id, "compliance", ..] => {
                let shape = self.shape(call, 10)?;
                if !shape.all.rules.contains_key(*id) {
                    return Err(ApiError::not_found("rule", id));
                }
                let mut nodes = self.shown(|_| true);
                for node in &mut nodes {
                    node.directives.retain(|one| *one.rule == **id);
                }
                nodes.retain(|node| !node.directives.is_empty());
                let mut rule = shape.rule(id, &nodes);
                let nodes = self.nodes_shown(&shape, nodes).await?;
                rule.insert("nodes".into(), nodes.into());
                Ok(json!({"rules": [rule]}))
            }
            ["directives", "compliance"] => {
                let shape = self.shape(call, DIRECTIVES)?;
                let nodes = self.shown(|_| true);
                let ids = shape.all.directives.keys();
                let all = ids
                    .map(|id| shape.directive(id, &nodes))
                    .collect::<Vec<_>>();
                Ok(json!({"directivesCompliance": all}))
            }
            ["directives", id, "compliance", ..] => {
                let shape = self.shape(call, 10)?;
                if !shape.all.directives.contains_key(*id) {
                    return Err(ApiError::not_found("directive", id));
                }
                let mut nodes = self.shown(|_| true);
                for node in &mut nodes {
                    node.directives.retain(|one| *one.directive == **id);
                }
                nodes.retain(|node| !node.directives.is_empty());
                let mut directive = shape.directive(id, &nodes);
                let nodes = self.nodes_shown(&shape, nodes).await?;
                directive.insert("nodes".into(), nodes.into());
                Ok(json!({"directiveCompliance": directive}))
            }
            ["groups", "compliance"] => {
                let shape = self.shape(call, 1)?;
                let ids = shape.all.groups.keys();
                let all = ids.filter_map(|id| self.group(&shape, id, "global"));
                Ok(json!({"groupCompliance": all.collect::<Vec<_>>()}))
            }
            ["groups", id, "compliance", rest @ ..] => {
                let shape = self.shape(call, 1)?;
                let which = rest.first().copied().unwrap_or("global");
                let group = self.group(&shape, id, which);
                let group = group.ok_or_else(|| ApiError::not_found("group", id))?;
                Ok(json!({"groupCompliance": [group]}))
            }
            _ => Err(ApiError::no_such_call(call.method, &call.path)),
        }
    }

    fn shape(&self, call: &Call<'_>, level: u8) -> Result<Shape, ApiError> {
        let number = |key: &str, default: u8, most: u8| match call.query.get(key) {
            None => Ok(default),
            Some(text) => match text.parse() {
                Ok(number) if number <= most => Ok(number),
                _ => Err(ApiError::bad(format!(
                    "{key} is {text:?}; expected a number from 0 to {most}"
                ))),
            },
        };
        let precision = Precision::new(number("precision", 2, 5)?).unwrap_or_default();
        Ok(Shape {
            all: Arc::clone(&self.view.read().definitions),
            level: number("level", level, 10)?,
            precision,
            types: Types::USER,
        })
    }

    fn global(&self, shape: &Shape) -> Value {
        let level = *self.compliance.lock().fleet.global();
        let percent = level.global_percent().map_or(-1, i64::from);
        let details = super::shapes::details(&level, shape.precision);
        json!({"globalCompliance": {"compliance": percent, "complianceDetails": details}})
    }

    /// What accepted nodes show, by their identities.
    fn shown(&self, wanted: impl Fn(&str) -> bool) -> Vec<NodeShown> {
        let state = self.view.read();
        let all = self.compliance.lock();
        let mut texts: HashMap<u32, Arc<str>> = HashMap::new();
        let mut text = |number: u32| {
            let text = texts.entry(number);
            Arc::clone(text.or_insert_with(|| all.fleet.ids().text(number).into()))
        };
        let mut shown = Vec::new();
        for (id, record) in state.nodes.iter().filter(|(id, _)| wanted(id)) {
            let Some((basis, levels)) = all.fleet.node(id) else {
                continue;
            };
            let directives = levels.iter().map(|level| DirectiveShown {
                rule: text(level.rule),
                directive: text(level.directive),
                types: level.types,
                level: level.level,
            });
            shown.push(NodeShown {
                id: Arc::clone(id),
                number: record.number,
                node: Arc::clone(&record.node),
                basis,
                directives: directives.collect(),
            });
        }
        shown
    }

    async fn nodes_shown(
        &self,
        shape: &Shape,
        nodes: Vec<NodeShown>,
    ) -> Result<Vec<Map<String, Value>>, ApiError> {
        if shape.level >= COMPONENTS && nodes.len() > DETAILED {
            return Err(ApiError::bad(format!(
                "level {} of {} nodes; components are shown of at most {DETAILED} nodes at once: \
                 ask for level 2, or for one node",
                shape.level,
                nodes.len()
            )));
        }
        let mut shown = Vec::with_capacity(nodes.len());
        for node in nodes {
            let trees = match shape.level >= COMPONENTS {
                false => Trees::default(),
                true => {
                    let sources = sources(&self.commands, node.number).await;
                    let sources = sources.map_err(ApiError::unavailable)?;
                    let made = trees(&node.id, node.basis, &sources, shape.level, shape.precision);
                    made.map_err(ApiError::unavailable)?
                }
            };
            shown.push(shape.node(&node, &trees));
        }
        Ok(shown)
    }

    fn group(&self, shape: &Shape, id: &str, which: &str) -> Option<Map<String, Value>> {
        let group = shape.all.groups.get(id)?;
        let all = self.compliance.lock();
        let (global, targeted) = all.fleet.group(id).unzip();
        let level = if which == "targeted" {
            targeted
        } else {
            global
        };
        let level = level.copied().unwrap_or_default();
        let mut object = named(id, &group.display_name);
        object.insert("mode".into(), shape.mode().into());
        Some(with_level(object, &level, shape.precision))
    }
}

impl Shape {
    fn mode(&self) -> &'static str {
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

    fn directive_name<'s>(&'s self, id: &'s str) -> &'s str {
        let known = self.all.directives.get(id);
        known.map_or(id, |directive| directive.display_name.as_str())
    }

    fn rule_name<'s>(&'s self, id: &'s str) -> &'s str {
        let known = self.all.rules.get(id);
        known.map_or(id, |rule| rule.display_name.as_str())
    }

    fn object(&self, object: Map<String, Value>, level: &FleetLevel) -> Map<String, Value> {
        with_level(object, level, self.precision)
    }

    /// A node with its rules.
    fn node(&self, shown: &NodeShown, trees: &Trees) -> Map<String, Value> {
        let wanted = shown
            .directives
            .iter()
            .filter(|one| one.types.has(self.types));
        let mut by_rule: BTreeMap<&str, Vec<&DirectiveShown>> = BTreeMap::new();
        for one in wanted {
            by_rule.entry(&one.rule).or_default().push(one);
        }
        let level = sum(by_rule.values().flatten().map(|one| &one.level));
        let mut object = named(&shown.id, &shown.node.hostname);
        object.insert("mode".into(), self.mode().into());
        let mode = self.policy_mode(Some(&shown.node), None);
        object.insert("policyMode".into(), mode.into());
        let mut object = self.object(object, &level);
        if self.level >= 1 {
            let rules = by_rule.iter().map(|(rule, directives)| {
                let level = sum(directives.iter().map(|one| &one.level));
                let mut object = named(rule, self.rule_name(rule));
                object.insert("policyMode".into(), mode.into());
                let mut object = self.object(object, &level);
                if self.level >= DIRECTIVES {
                    let directives = directives.iter().map(|one| {
                        let id = &*one.directive;
                        let mut object = named(id, self.directive_name(id));
                        let mode = self.policy_mode(Some(&shown.node), Some(id));
                        object.insert("policyMode".into(), mode.into());
                        let mut object = self.object(object, &one.level.into());
                        if self.level >= COMPONENTS {
                            let key = (one.rule.to_string(), one.directive.to_string());
                            let components = trees.get(&key).cloned().unwrap_or_default();
                            object.insert("components".into(), components.into());
                        }
                        object
                    });
                    let directives: Vec<_> = directives.collect();
                    object.insert("directives".into(), directives.into());
                }
                object
            });
            let rules: Vec<_> = rules.collect();
            object.insert("rules".into(), rules.into());
        }
        object
    }

    /// A rule with its directives, over these nodes.
    fn rule(&self, id: &str, nodes: &[NodeShown]) -> Map<String, Value> {
        let all = nodes.iter().flat_map(|node| &node.directives);
        let mut by_directive: BTreeMap<&str, FleetLevel> = BTreeMap::new();
        for one in all.filter(|one| *one.rule == *id) {
            *by_directive.entry(&one.directive).or_default() += &one.level;
        }
        let mut level = FleetLevel::default();
        by_directive.values().for_each(|one| level += one);
        let mut object = named(id, self.rule_name(id));
        object.insert("mode".into(), self.mode().into());
        object.insert("policyMode".into(), self.policy_mode(None, None).into());
        let mut object = self.object(object, &level);
        if self.level >= DIRECTIVES {
            let directives = by_directive.iter().map(|(id, level)| {
                let mut object = named(id, self.directive_name(id));
                let mode = self.policy_mode(None, Some(id));
                object.insert("policyMode".into(), mode.into());
                self.object(object, level)
            });
            let directives: Vec<_> = directives.collect();
            object.insert("directives".into(), directives.into());
        }
        object
    }

    /// A directive with its rules, over these nodes.
    fn directive(&self, id: &str, nodes: &[NodeShown]) -> Map<String, Value> {
        let all = nodes.iter().flat_map(|node| &node.directives);
        let mut by_rule: BTreeMap<&str, FleetLevel> = BTreeMap::new();
        for one in all.filter(|one| *one.directive == *id) {
            *by_rule.entry(&one.rule).or_default() += &one.level;
        }
        let mut level = FleetLevel::default();
        by_rule.values().for_each(|one| level += one);
        let mut object = named(id, self.directive_name(id));
        object.insert("mode".into(), self.mode().into());
        let mode = self.policy_mode(None, Some(id));
        object.insert("policyMode".into(), mode.into());
        let mut object = self.object(object, &level);
        if self.level >= 1 {
            let rules = by_rule.iter().map(|(id, level)| {
                let mut object = named(id, self.rule_name(id));
                object.insert("policyMode".into(), mode.into());
                self.object(object, level)
            });
            let rules: Vec<_> = rules.collect();
            object.insert("rules".into(), rules.into());
        }
        object
    }
}
