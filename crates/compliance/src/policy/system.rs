//! Rules, directives, techniques and groups that the server makes itself.

use crate::model::attributes::{Comparator, ObjectType};
use crate::model::directive::Directive;
use crate::model::group::Group;
use crate::model::node::{Node, NodeKind};
use crate::model::query::{Criterion, Query, Select};
use crate::model::rule::Rule;
use crate::model::target::{RuleTarget, Target};
use crate::model::technique::{Body, PolicyGeneration, Section, Technique};

/// Version of the server's own techniques.
const VERSION: &str = "1.0";

/// Components of the technique that every agent has, as agents report them.
const COMMON: [&str; 7] = [
    "Binaries update",
    "CRON Daemon",
    "Log system for reports",
    "Monitoring",
    "Process checking",
    "Security parameters",
    "ncf Initialization",
];
/// Services of the root server, a technique and directive each.
const SERVICES: [&str; 5] = ["apache", "postgresql", "relayd", "slapd", "webapp"];

/// Objects that exist because policy servers do.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SystemObjects {
    /// Groups.
    pub groups: Vec<Group>,
    /// Techniques.
    pub techniques: Vec<Technique>,
    /// Directives.
    pub directives: Vec<Directive>,
    /// Rules.
    pub rules: Vec<Rule>,
}

fn technique(id: &str, name: &str, components: &[&str]) -> Technique {
    let sections = components.iter().map(|component| Section {
        name: (*component).to_owned(),
        component: true,
        ..Section::default()
    });
    Technique {
        id: id.to_owned(),
        version: VERSION.to_owned(),
        name: name.to_owned(),
        category: "system".to_owned(),
        description: String::new(),
        // Each policy server brings its own directive to the nodes behind it.
        multi_instance: true,
        generation: PolicyGeneration::Separated,
        system: true,
        body: Body::Sections(sections.collect()),
    }
}

fn directive(id: String, technique: &str) -> Directive {
    let mut directive = Directive::new(id.clone(), id, (technique, VERSION));
    directive.system = true;
    directive
}

fn rule(id: String, directives: Vec<String>, target: Target) -> Rule {
    let mut rule = Rule::new(id.clone(), id);
    rule.directives = directives;
    rule.targets = vec![RuleTarget::Simple(target)];
    rule.system = true;
    rule
}

/// Is this the identity of an object that only the server makes?
pub fn is_reserved(id: &str) -> bool {
    let fixed = ["inventory-all", "server-common", "policy-server-root"];
    fixed.contains(&id)
        || id.starts_with("hasPolicyServer-")
        || id.starts_with("common-")
        || id.starts_with("rudder-service-")
        || id.starts_with("rudder-system-")
}

/// What every installation has, whatever its nodes: the inventory of all.
pub fn of_all() -> SystemObjects {
    SystemObjects {
        techniques: vec![
            technique("rudder-system-inventory", "Inventory", &["inventory"]),
            technique("rudder-system-common", "Common", &COMMON),
        ],
        directives: vec![directive("inventory-all".into(), "rudder-system-inventory")],
        rules: vec![rule(
            "inventory-all".into(),
            vec!["inventory-all".into()],
            Target::All,
        )],
        groups: Vec::new(),
    }
}

/// What a policy server brings: the common policy of the nodes behind it, and the services of
/// the root server. Nothing for a node that serves no policies.
pub fn of_server(node: &Node) -> SystemObjects {
    let mut objects = SystemObjects::default();
    if node.kind == NodeKind::Node {
        return objects;
    }
    let id = &node.id;
    let common = format!("common-{id}");
    objects
        .directives
        .push(directive(common.clone(), "rudder-system-common"));
    let behind = format!("hasPolicyServer-{id}");
    let criterion = Criterion::new(ObjectType::Node, "policyServerId", Comparator::Eq, id);
    let query = Query {
        select: Select::NodeAndPolicyServer,
        ..Query::all_of([criterion])
    };
    objects
        .groups
        .push(Group::of_query(behind.clone(), behind.clone(), query));
    let target = Target::Group(behind.clone());
    objects.rules.push(rule(behind, vec![common], target));
    if node.kind == NodeKind::Root {
        let mut all = Vec::new();
        let mut add = |name: String, component: &str| {
            let by_technique = format!("rudder-system-{name}");
            objects
                .techniques
                .push(technique(&by_technique, &name, &[component]));
            objects
                .directives
                .push(directive(name.clone(), &by_technique));
            all.push(name);
        };
        add("server-common".into(), "Server");
        for service in SERVICES {
            add(format!("rudder-service-{service}"), service);
        }
        let target = Target::PolicyServer(id.clone());
        objects
            .rules
            .push(rule("policy-server-root".into(), all, target));
    }
    objects
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_servers_own_objects_are_whole_and_reserved() {
        let mut root = Node::new("root", "server.example.org");
        root.kind = NodeKind::Root;
        let mut relay = Node::new("relay-1", "relay.example.org");
        relay.kind = NodeKind::Relay;
        let (all, root, relay) = (of_all(), of_server(&root), of_server(&relay));
        let directives: Vec<_> = [&all, &root, &relay]
            .iter()
            .flat_map(|objects| objects.directives.iter().map(|one| one.id.clone()))
            .collect();
        for objects in [&all, &root, &relay] {
            for one in &objects.techniques {
                assert_eq!(one.check(), Ok(()));
                assert!(is_reserved(&one.id) && one.system);
            }
            for one in &objects.directives {
                assert_eq!(one.check(), Ok(()));
                assert!(is_reserved(&one.id) && one.system);
            }
            for one in &objects.groups {
                assert_eq!(one.check(), Ok(()));
                assert!(is_reserved(&one.id));
            }
            for one in &objects.rules {
                assert_eq!(one.check(), Ok(()));
                assert!(is_reserved(&one.id) && one.system);
                assert!(one.directives.iter().all(|id| directives.contains(id)));
            }
        }
        assert_eq!(root.rules[0].id, "hasPolicyServer-root");
        assert_eq!(root.rules[0].directives, ["common-root"]);
        assert_eq!(relay.rules.len(), 1);
        assert_eq!(of_server(&Node::new("n", "n")), SystemObjects::default());
        assert!(!is_reserved("32377fd7-02fd-43d0-aab7-28460a91347b"));
    }
}
