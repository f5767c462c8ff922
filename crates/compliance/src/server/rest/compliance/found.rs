//! What is asked about compliance, put together of what nodes show.

use std::collections::HashMap;
use std::sync::Arc;

use super::super::answers::under;
use super::csv::Table;
use super::tree::{Trees, read, trees};
use super::view::{DirectiveShown, NodeShown, SkippedShown, View, by_directive, by_rule};
use super::*;
use crate::reports::fleet::Fleet;
use crate::reports::level::Precision;
use crate::reports::matching::Types;
use crate::server::state::NodeRecord;

/// Nodes of which components are shown at once: those of more are asked for one by one.
const DETAILED: usize = 500;
/// Reports and expected values of these that are shown at once: a gigabyte of answer, of which each
/// node alone may make a fifth.
const VALUES_AT_ONCE: usize = 1_000_000;

/// Which parts of a rule or directive are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Nodes,
    /// Directives of a rule, rules of a directive or group.
    Others,
    Both,
}

/// Is a table asked for instead of JSON?
pub(super) fn is_table(call: &Call<'_>) -> bool {
    call.query.get("format") == Some("csv")
}

impl Service {
    pub(super) async fn all_nodes(&self, call: &Call<'_>) -> Answer {
        // Of all, what is deeper than directives is asked for; of one it is shown.
        let view = self.view_of(call, DIRECTIVES)?;
        let nodes = self.detailed(call, &view, self.shown(|_| true)).await?;
        call.run_blocking(move || under("nodes", view.nodes(&nodes)))
            .await
    }

    pub(super) async fn one_node(&self, call: &Call<'_>, system: bool) -> Answer {
        let mut view = self.view_of(call, DEEPEST)?;
        if system {
            view.types = Types::SYSTEM;
        }
        let node = self.shown_one(call.id());
        let node = node.ok_or_else(|| ApiError::not_found("accepted node", call.id()))?;
        let nodes = self.detailed(call, &view, vec![node]).await?;
        let table = is_table(call);
        let made = move || match table {
            true => Value::from(view.csv(Table::Node, &nodes)),
            false => under("nodes", view.nodes(&nodes)),
        };
        call.run_blocking(made).await
    }

    pub(super) async fn all_rules(&self, call: &Call<'_>) -> Answer {
        let view = self.view_of(call, DIRECTIVES)?;
        let nodes = self.detailed(call, &view, self.shown(|_| true)).await?;
        let made = move || {
            let (rules, portions) = (view.all.rules.keys(), by_rule(&nodes));
            let rules = rules.map(|id| {
                let nodes = portions.get(&**id).map_or(&[][..], Vec::as_slice);
                let mut rule = view.rule(id, nodes);
                // Above that level there may be all nodes of the fleet in each rule.
                if view.level >= COMPONENTS {
                    rule.insert("nodes".into(), view.nodes_of_rule(nodes));
                }
                Value::Object(rule)
            });
            under("rules", rules.collect())
        };
        call.run_blocking(made).await
    }

    pub(super) async fn one_rule(&self, call: &Call<'_>, part: Part) -> Answer {
        let view = self.view_of(call, DEEPEST)?;
        let id = call.id().to_owned();
        if !view.all.rules.contains_key(&id) {
            return Err(ApiError::not_found("rule", &id));
        }
        let nodes = self.shown_of(|rule, _| *rule == *id);
        let nodes = self.detailed(call, &view, nodes).await?;
        if is_table(call) {
            let table = match part {
                Part::Nodes => Table::RuleByNode,
                _ => Table::RuleByDirective,
            };
            return call
                .run_blocking(move || view.csv(table, &nodes).into())
                .await;
        }
        let made = move || {
            let portions = by_rule(&nodes);
            let nodes = portions.get(&*id).map_or(&[][..], Vec::as_slice);
            let mut rule = view.rule(&id, nodes);
            if part == Part::Nodes {
                rule.remove("directives");
            }
            if part != Part::Others && view.level >= DIRECTIVES {
                rule.insert("nodes".into(), view.nodes_of_rule(nodes));
            }
            match part {
                Part::Both => under("rules", vec![rule].into()),
                _ => rule.into(),
            }
        };
        call.run_blocking(made).await
    }

    pub(super) async fn all_directives(&self, call: &Call<'_>) -> Answer {
        let view = self.view_of(call, DIRECTIVES)?;
        let nodes = self.shown(|_| true);
        let made = move || {
            let (ids, portions) = (view.all.directives.keys(), by_directive(&nodes));
            let all = ids.map(|id| {
                let nodes = portions.get(&**id).map_or(&[][..], Vec::as_slice);
                Value::Object(view.directive(id, nodes))
            });
            under("directivesCompliance", all.collect())
        };
        call.run_blocking(made).await
    }

    pub(super) async fn one_directive(&self, call: &Call<'_>, part: Part) -> Answer {
        let view = self.view_of(call, DEEPEST)?;
        let id = call.id().to_owned();
        if !view.all.directives.contains_key(&id) {
            return Err(ApiError::not_found("directive", &id));
        }
        let nodes = self.shown_of(|_, directive| *directive == *id);
        let nodes = self.detailed(call, &view, nodes).await?;
        if is_table(call) {
            let table = match part {
                Part::Nodes => Table::DirectiveByNode,
                _ => Table::DirectiveByRule,
            };
            return call
                .run_blocking(move || view.csv(table, &nodes).into())
                .await;
        }
        let made = move || {
            let portions = by_directive(&nodes);
            let nodes = portions.get(&*id).map_or(&[][..], Vec::as_slice);
            match part {
                Part::Nodes => under("nodes", view.nodes_of_directive(&id, nodes)),
                Part::Others => under("rules", view.rules_of_directive(&id, nodes)),
                Part::Both => {
                    let mut directive = view.directive(&id, nodes);
                    if view.level >= DIRECTIVES {
                        directive.insert("nodes".into(), view.nodes_of_directive(&id, nodes));
                    }
                    under("directiveCompliance", directive.into())
                }
            }
        };
        call.run_blocking(made).await
    }

    /// How much is shown: as asked, or to this level; in a table all of it.
    pub(super) fn view_of(&self, call: &Call<'_>, level: u8) -> Result<View, ApiError> {
        // What is asked was checked; what is not asked has its usual number.
        let number = |key: &str| call.query.get(key).and_then(|text| text.parse().ok());
        Ok(View {
            all: Arc::clone(&self.view.read().definitions),
            level: match is_table(call) {
                true => DEEPEST,
                false => number("level").unwrap_or(level),
            },
            precision: number("precision")
                .and_then(Precision::new)
                .unwrap_or_default(),
            types: Types::USER,
            of_group: false,
        })
    }

    /// What accepted nodes show, by their identities.
    pub(super) fn shown(&self, wanted: impl Fn(&str) -> bool) -> Vec<NodeShown> {
        let state = self.view.read();
        let all = self.compliance.lock();
        let mut texts = HashMap::new();
        let nodes = state.nodes.iter().filter(|(id, _)| wanted(id));
        nodes
            .filter_map(|(id, record)| node_shown(&all.fleet, &mut texts, id, record))
            .collect()
    }

    fn shown_one(&self, id: &str) -> Option<NodeShown> {
        let state = self.view.read();
        let (id, record) = state.nodes.get_key_value(id)?;
        let all = self.compliance.lock();
        node_shown(&all.fleet, &mut HashMap::new(), id, record)
    }

    /// Nodes that have such directives, by rule and directive, with these alone.
    fn shown_of(&self, wanted: impl Fn(&str, &str) -> bool) -> Vec<NodeShown> {
        let mut nodes = self.shown(|_| true);
        for node in &mut nodes {
            node.directives
                .retain(|one| wanted(&one.rule, &one.directive));
            node.skipped.retain(|one| wanted(&one.rule, &one.directive));
        }
        nodes.retain(|node| !node.directives.is_empty() || !node.skipped.is_empty());
        nodes
    }

    /// The same with components, if they are shown.
    pub(super) async fn detailed(
        &self,
        call: &Call<'_>,
        view: &View,
        mut nodes: Vec<NodeShown>,
    ) -> Result<Vec<NodeShown>, ApiError> {
        if view.level < COMPONENTS {
            return Ok(nodes);
        }
        if nodes.len() > DETAILED {
            let message = format!(
                "{} of {} nodes; components are shown of at most {DETAILED} nodes at once: ask \
                 for level 2, or for one node",
                view.level,
                nodes.len()
            );
            return Err(ApiError::field("level", message));
        }
        let mut values = 0;
        for node in &mut nodes {
            let read = read(self, node.number, node.basis).await?;
            let (id, basis) = (Arc::clone(&node.id), node.basis);
            let (level, precision) = (view.level, view.precision);
            // One node after the other: whoever no longer waits costs one more at most.
            let made = call.run_blocking(move || trees(&id, basis, &read, level, precision));
            let made = made.await?.map_err(ApiError::unavailable)?;
            values += made.values;
            if values > VALUES_AT_ONCE {
                let message = format!(
                    "{level}; these nodes have more than {VALUES_AT_ONCE} reports and values, \
                     which is shown at most: ask for level 2, or for one node"
                );
                return Err(ApiError::field("level", message));
            }
            node.trees = made.trees;
        }
        Ok(nodes)
    }
}

/// What a node shows; nothing, if it is not accepted. Texts are made once for each number.
fn node_shown(
    fleet: &Fleet,
    texts: &mut HashMap<u32, Arc<str>>,
    id: &Arc<str>,
    record: &NodeRecord,
) -> Option<NodeShown> {
    let (basis, levels) = fleet.node(id)?;
    let mut text = |number: u32| {
        let text = texts.entry(number);
        Arc::clone(text.or_insert_with(|| fleet.ids().text(number).into()))
    };
    let directives = levels.iter().map(|level| DirectiveShown {
        rule: text(level.rule),
        directive: text(level.directive),
        types: level.types,
        level: level.level,
    });
    let directives = directives.collect();
    let skipped = fleet.skipped(id).iter().map(|one| SkippedShown {
        rule: text(one.rule),
        directive: text(one.directive),
        by_rule: text(one.by_rule),
    });
    Some(NodeShown {
        id: Arc::clone(id),
        number: record.number,
        node: Arc::clone(&record.node),
        basis,
        directives,
        skipped: skipped.collect(),
        aborts: fleet.aborts(id),
        trees: Trees::default(),
    })
}

impl View {
    pub(super) fn nodes(&self, nodes: &[NodeShown]) -> Value {
        nodes.iter().map(|node| self.node(node)).collect()
    }
}
