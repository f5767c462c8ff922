//! Whatever changes come in whatever order: the result is that of a computation from nothing.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::build::Tally;
use super::*;
use crate::model::query::{Composition, Condition, Transform};

/// The newest of everything, for the computation from nothing.
#[derive(Default)]
struct Defined {
    changes: BTreeMap<String, Change>,
}

impl Defined {
    fn take(&mut self, change: &Change) {
        let (key, keep) = match change {
            Change::SetNode(node) => (format!("node {}", node.id), true),
            Change::SetInventory { node, .. } => (format!("of node {node}"), true),
            Change::RemoveNode(id) => {
                self.changes.remove(&format!("of node {id}"));
                (format!("node {id}"), false)
            }
            Change::SetGroup(group) => (format!("group {}", group.id), true),
            Change::RemoveGroup(id) => (format!("group {id}"), false),
            Change::SetTechnique(technique) => (format!("technique {}", technique.key()), true),
            Change::RemoveTechnique(id, version) => (format!("technique {id}/{version}"), false),
            Change::SetDirective(directive) => (format!("directive {}", directive.id), true),
            Change::RemoveDirective(id) => (format!("directive {id}"), false),
            Change::SetRule(rule) => (format!("rule {}", rule.id), true),
            Change::RemoveRule(id) => (format!("rule {id}"), false),
            Change::SetParameter(parameter) => (format!("parameter {}", parameter.id), true),
            Change::RemoveParameter(id) => (format!("parameter {id}"), false),
            Change::SetSettings(_) => ("settings".into(), true),
        };
        if keep {
            self.changes.insert(key, change.clone());
        } else {
            self.changes.remove(&key);
        }
    }
}

const TEXTS: [&str; 8] = [
    "plain",
    "${rudder.node.hostname}",
    "${node.properties[a]}",
    "${node.properties[b] | default = \"none\"}",
    "${rudder.param.a}",
    "eval: upper(${node.properties[b] | default = \"x\"}) + ${rudder.node.state}",
    "${rudder.node.policyserver.hostname}",
    "${rudder.foo}",
];
const VALUES: [&str; 5] = [
    "one",
    "two",
    "${node.properties[b]}",
    "${rudder.node.id}",
    "",
];

fn name(prefix: &str, number: u8, of: u8) -> String {
    format!("{prefix}{}", number % of)
}

/// A change made of some random bytes.
fn change(kind: u8, x: [u8; 6]) -> Change {
    let value = |byte: u8| json!(VALUES[usize::from(byte) % VALUES.len()]);
    let properties = || {
        let names = ["a", "b"].iter().zip([x[2], x[3]]);
        let names = names.filter(|(_, byte)| byte.is_multiple_of(3));
        names
            .map(|(name, byte)| Property::new(*name, value(byte / 3)))
            .collect()
    };
    let id = name("n", x[0], 6);
    match kind {
        0..=5 => {
            let mut node = node(&id);
            node.hostname = format!("{}{}.example.org", ["web", "db"][usize::from(x[1] % 2)], id);
            node.properties = properties();
            node.state = match x[4] % 8 {
                0 => NodeState::Ignored,
                1 => NodeState::EmptyPolicies,
                _ => NodeState::Enabled,
            };
            node.policy_mode = [
                None,
                None,
                Some(PolicyMode::Audit),
                Some(PolicyMode::Enforce),
            ][usize::from(x[5] % 4)];
            if id == "n5" {
                node.kind = NodeKind::Relay;
            } else if x[4] > 128 {
                node.policy_server_id = "n5".into();
            }
            set(node)
        }
        6 => Change::RemoveNode(id),
        7 => {
            let mut inventory = Inventory::default();
            let software = ["nginx", "bash", "postgresql"][usize::from(x[1] % 3)];
            inventory.push(ObjectType::Software, &[("cn", software)]);
            Change::SetInventory {
                node: "root".into(),
                inventory,
            }
        }
        8..=11 => {
            let id = name("g", x[0], 5);
            let mut group = match x[1] % 6 {
                0 => Group::of_nodes(&id, &id, vec![name("n", x[4], 6), "root".into()]),
                1 => in_group(&id, "web.*"),
                2 => in_group(&id, ".*"),
                kind => {
                    let named = [x[4], x[5]].map(|byte| Criterion::in_group(name("g", byte, 5)));
                    let mut query = Query::all_of(named);
                    match kind {
                        3 => query.transform = Some(Transform::Invert),
                        4 => query.composition = Composition::Or,
                        _ => {
                            let last = query.criteria.pop().unwrap();
                            query.criteria.push(Condition::Not {
                                not: Box::new(last),
                            });
                        }
                    }
                    Group::of_query(&id, &id, query)
                }
            };
            group.properties = properties();
            group.enabled = !x[5].is_multiple_of(8);
            Change::SetGroup(group)
        }
        12 => Change::RemoveGroup(name("g", x[0], 5)),
        13..=17 => {
            let technique = ["unique", "instances", "merged", "ntp"][usize::from(x[1] % 4)];
            let texts = [x[2], x[3]].map(|byte| TEXTS[usize::from(byte) % TEXTS.len()]);
            let mut directive = directive(&name("d", x[0], 6), technique, &texts);
            directive.priority = x[4] % 3;
            directive.enabled = !x[5].is_multiple_of(8);
            directive.policy_mode = x[5].is_multiple_of(5).then_some(PolicyMode::Audit);
            Change::SetDirective(directive)
        }
        18 => Change::RemoveDirective(name("d", x[0], 6)),
        19..=22 => {
            let target = match x[1] % 5 {
                0 => Target::All,
                1 => Target::AllExceptPolicyServers,
                2 => Target::PolicyServer("n5".into()),
                _ => Target::Group(name("g", x[2], 5)),
            };
            let directives = [name("d", x[3], 6), name("d", x[4], 6)];
            let mut rule = rule(
                &name("r", x[0], 4),
                &directives.each_ref().map(String::as_str),
                target,
            );
            rule.display_name = name("name", x[5], 5);
            rule.enabled = !x[5].is_multiple_of(8);
            Change::SetRule(rule)
        }
        23 => Change::RemoveRule(name("r", x[0], 4)),
        24 | 25 => Change::SetParameter(GlobalParameter {
            id: ["a", "b"][usize::from(x[0] % 2)].into(),
            value: value(x[1]),
            description: String::new(),
            inherit_mode: ["moo", "maa", "opp"][usize::from(x[2] % 3)]
                .to_owned()
                .try_into()
                .unwrap(),
        }),
        26 => Change::RemoveParameter(["a", "b"][usize::from(x[0] % 2)].into()),
        27 => {
            let mut root = root();
            root.hostname = name("server", x[0], 3);
            set(root)
        }
        28 => techniques().swap_remove(usize::from(x[0] % 4)),
        29 => Change::RemoveTechnique("ntp".into(), "1.0".into()),
        _ => Change::SetSettings(Settings {
            policy_mode: GlobalPolicyMode {
                overridable: x[0].is_multiple_of(2),
                ..GlobalPolicyMode::default()
            },
            ..Settings::default()
        }),
    }
}

fn same(incremental: &Engine, scratch: &Engine) -> Result<(), TestCaseError> {
    let failures = |engine: &Engine| -> BTreeMap<String, NodeFailure> {
        let all = engine.failures();
        all.map(|(node, failure)| (node.to_owned(), failure.clone()))
            .collect()
    };
    prop_assert_eq!(failures(incremental), failures(scratch));
    let held = |engine: &Engine| -> BTreeSet<String> {
        let all = engine.held.iter();
        all.map(|&node| engine.nodes.names.text(node).to_owned())
            .collect()
    };
    // From nothing, what waits for a policy server is nowhere given out yet.
    prop_assert!(held(incremental).is_subset(&held(scratch)));
    let all: NodeSet = scratch.nodes.iter().map(|(ix, _)| ix).collect();
    let mut scratch = scratch.clone();
    let shared = scratch.shared(&all);
    let (scratch, mut tally) = (shared.engine, Tally::default());
    for (ix, entry) in scratch.nodes.iter() {
        let id = entry.node.id.as_str();
        if scratch.failures.contains_key(&ix) || held(incremental).contains(id) {
            continue;
        }
        let one = policy(incremental, id);
        let other = shared.policy(ix, &no_clock, &mut tally).unwrap();
        prop_assert_eq!(one.is_some(), other.is_some(), "{}", id);
        if let (Some(one), Some(other)) = (one, other) {
            let json = |policy: &NodePolicy| {
                serde_json::to_string(&ExpectedReports(policy)).unwrap_or_default()
            };
            prop_assert_eq!(json(&one), json(&other), "{}", id);
            let issued = incremental.issued(id).unwrap();
            prop_assert!(issued.same_content(&Issued::of(&other)), "{}", id);
        }
    }
    for (_, entry) in scratch.groups.iter() {
        let mut lists = [incremental, scratch].map(|one| one.members(&entry.group.id));
        lists.iter_mut().for_each(|list| list.sort_unstable());
        prop_assert_eq!(&lists[0], &lists[1]);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Also when changes are tried on a clone, as a server does it: the clone may take the place of
    /// the original, and what is only tried leaves no trace.
    #[test]
    fn incremental_equals_from_scratch(
        steps in proptest::collection::vec(
            (any::<bool>(), proptest::collection::vec((0u8..32, any::<[u8; 6]>()), 1..6)), 1..14),
        whole_bytes in 0..4_000_usize,
    ) {
        let from_scratch = |defined: &Defined| {
            let mut scratch = Engine::new(Settings::default());
            scratch.apply(defined.changes.values().cloned().collect()).unwrap();
            generate(&mut scratch);
            scratch
        };
        let mut incremental = Engine::new(Settings::default());
        incremental.whole_bytes = whole_bytes;
        let mut defined = Defined::default();
        let mut start = techniques();
        start.push(set(root()));
        start.iter().for_each(|change| defined.take(change));
        incremental.apply(start).unwrap();
        generate(&mut incremental);
        let mut before = from_scratch(&defined);
        for (replaces, step) in steps {
            let changes: Vec<_> = step.iter().map(|&(kind, bytes)| change(kind, bytes)).collect();
            changes.iter().for_each(|change| defined.take(change));
            let mut tried = incremental.clone();
            tried.apply(changes.clone()).unwrap();
            let outcome = generate(&mut tried);
            same(&incremental, &before)?;
            if replaces {
                incremental = tried;
            } else {
                incremental.apply(changes).unwrap();
                let again = generate(&mut incremental);
                prop_assert_eq!(updated(&again), updated(&outcome));
            }
            // What is kept of an update is what its node is given.
            let json = |policy: &NodePolicy| serde_json::to_string(&PolicyDocument(policy)).ok();
            let made = incremental.of_whole(&outcome.updates, 2, |_, whole| whole.and_then(json));
            for (update, made) in outcome.updates.iter().zip(made) {
                let given = policy(&incremental, &update.node);
                prop_assert_eq!(made, Some(given.as_ref().and_then(json)), "{}", update.node);
            }
            before = from_scratch(&defined);
            same(&incremental, &before)?;
        }
    }
}
