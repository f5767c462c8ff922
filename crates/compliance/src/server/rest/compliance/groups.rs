//! Compliance of groups, and of targets that are no group.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::super::answers::{ApiError, under};
use super::super::route::{Answer, Call};
use super::super::shapes::{named, with_level};
use super::DIRECTIVES;
use super::csv::Table;
use super::found::{Part, is_table};
use super::view::{View, by_rule};
use crate::acceptance::NodeStatus;
use crate::model::node::ROOT;
use crate::model::target::{self, Target};
use crate::reports::level::FleetLevel;
use crate::reports::matching::Types;
use crate::server::service::Service;

/// A group, or the nodes of another target.
struct Nodes {
    /// As Rudder names it: a group by its identity, another target by its word.
    id: String,
    name: String,
    target: Target,
    members: HashSet<Arc<str>>,
}

impl Nodes {
    /// The rules that target them.
    fn rules<'v>(&self, view: &'v View) -> HashSet<&'v str> {
        let rules = view.all.rules.values();
        let targeting = rules.filter(|rule| target::named(&rule.targets).contains(&self.target));
        targeting.map(|rule| rule.id.as_str()).collect()
    }
}

impl Service {
    pub(super) fn all_groups(&self, call: &Call<'_>) -> Answer {
        let view = self.view_of(call, 0)?;
        let all: Vec<&str> = match call.query.get("groups") {
            None => view.all.groups.keys().map(String::as_str).collect(),
            Some(asked) => asked.split(',').filter(|one| !one.is_empty()).collect(),
        };
        // Of what is not there Rudder shows nothing here.
        let found = all
            .iter()
            .filter_map(|one| self.nodes_of_target(&view, one));
        let summaries = found.map(|nodes| {
            let (global, targeted) = self.levels(&nodes, &nodes.rules(&view));
            let shown = |level| Value::Object(group(&view, &nodes, level));
            json!({"id": nodes.id, "targeted": shown(&targeted), "global": shown(&global)})
        });
        Ok(under("groupCompliance", summaries.collect()))
    }

    pub(super) async fn one_group(&self, call: &Call<'_>, targeted: bool, part: Part) -> Answer {
        let mut view = self.view_of(call, DIRECTIVES)?;
        view.of_group = true;
        let found = self.nodes_of_target(&view, call.id());
        let found = found.ok_or_else(|| ApiError::not_found("group or target", call.id()))?;
        let (global, of_target) = self.levels(&found, &found.rules(&view));
        let level = if targeted { of_target } else { global };
        let mut whole = group(&view, &found, &level);
        if view.level == 0 && part == Part::Both {
            return Ok(under("groupCompliance", vec![whole].into()));
        }
        let mut nodes = self.shown(|node| found.members.contains(node));
        if targeted {
            let rules = found.rules(&view);
            for node in &mut nodes {
                node.directives.retain(|one| rules.contains(&*one.rule));
                node.skipped.retain(|one| rules.contains(&*one.rule));
            }
        }
        let nodes = self.detailed(call, &view, nodes).await?;
        if is_table(call) {
            let table = match part {
                Part::Nodes => Table::GroupByNode,
                _ => Table::GroupByRule,
            };
            return call
                .run_blocking(move || view.csv(table, &nodes).into())
                .await;
        }
        let made = move || match part {
            Part::Others => under("rules", rules_of(&view, &nodes)),
            Part::Nodes => under("nodes", view.nodes(&nodes)),
            Part::Both => {
                whole.insert("rules".into(), rules_of(&view, &nodes));
                whole.insert("nodes".into(), view.nodes(&nodes));
                under("groupCompliance", vec![whole].into())
            }
        };
        call.run_blocking(made).await
    }

    /// What a word names, and its accepted nodes; nothing, if there is no such group or server.
    fn nodes_of_target(&self, view: &View, word: &str) -> Option<Nodes> {
        let target: Target = word.parse().ok()?;
        let of_kind = |wanted: fn(bool) -> bool| {
            let state = self.view.read();
            let nodes = state.nodes.iter();
            let nodes = nodes.filter(|(_, record)| {
                record.known.standing == NodeStatus::Accepted
                    && wanted(record.node.kind.is_policy_server())
            });
            nodes.map(|(id, _)| Arc::clone(id)).collect()
        };
        let (name, members) = match &target {
            Target::All => ("All nodes".to_owned(), of_kind(|_| true)),
            Target::AllExceptPolicyServers => {
                ("All managed nodes".to_owned(), of_kind(|server| !server))
            }
            Target::AllPolicyServers => ("All policy servers".to_owned(), of_kind(|server| server)),
            Target::PolicyServer(id) => {
                let servers: HashSet<Arc<str>> = of_kind(|server| server);
                let this = servers.get(&**id).cloned();
                // The server itself is always there, and no node of its own.
                if this.is_none() && id != ROOT {
                    return None;
                }
                (id.clone(), this.into_iter().collect())
            }
            Target::Group(id) => {
                let group = view.all.groups.get(id)?;
                let members = self.compliance.lock().fleet.members(id);
                (group.display_name.clone(), members.into_iter().collect())
            }
        };
        let id = match &target {
            Target::Group(id) => id.clone(),
            other => other.to_string(),
        };
        Some(Nodes {
            id,
            name,
            target,
            members,
        })
    }

    /// What nodes come to: with all rules, and with these.
    fn levels(&self, nodes: &Nodes, rules: &HashSet<&str>) -> (FleetLevel, FleetLevel) {
        let all = self.compliance.lock();
        let fleet = &all.fleet;
        if let Target::Group(id) = &nodes.target {
            // Of groups the sums are always there.
            let levels = fleet.group(id);
            return levels.map_or_else(Default::default, |(global, targeted)| (*global, *targeted));
        }
        let numbers = rules.iter().filter_map(|rule| fleet.ids().known(rule));
        let numbers: HashSet<u32> = numbers.collect();
        let (mut global, mut targeted) = (FleetLevel::default(), FleetLevel::default());
        let levels = nodes.members.iter().filter_map(|node| fleet.node(node));
        for one in levels.flat_map(|(_, levels)| levels) {
            if !one.types.has(Types::USER) {
                continue;
            }
            global += &one.level;
            if numbers.contains(&one.rule) {
                targeted += &one.level;
            }
        }
        (global, targeted)
    }
}

/// A group without its rules and nodes.
fn group(view: &View, nodes: &Nodes, level: &FleetLevel) -> Map<String, Value> {
    let mut object = named(&nodes.id, &nodes.name);
    object.insert("mode".into(), view.mode().into());
    with_level(object, level, view.precision)
}

/// The rules that these nodes have.
fn rules_of(view: &View, nodes: &[super::view::NodeShown]) -> Value {
    let (rules, portions) = (view.all.rules.keys(), by_rule(nodes));
    let rules = rules.filter_map(|id| {
        let mut rule = view.rule(id, portions.get(&**id)?);
        // The mode is that of all compliance, which stands above them.
        rule.remove("mode");
        Some(Value::Object(rule))
    });
    rules.collect()
}
