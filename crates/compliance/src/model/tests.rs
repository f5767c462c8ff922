use std::collections::HashSet;

use serde_json::json;

use super::directive::{Directive, SectionValues};
use super::group::{Group, canonify};
use super::ids::NodeIx;
use super::mode::{GlobalPolicyMode, PolicyMode, resolve, word_of_rule};
use super::node::{Node, NodeKind, NodeState};
use super::node_set::NodeSet;
use super::rule::Rule;
use super::target::{RuleTarget, Target, named, nodes_of};
use super::technique::Technique;
use super::{check_id, check_name};

const A: Option<PolicyMode> = Some(PolicyMode::Audit);
const E: Option<PolicyMode> = Some(PolicyMode::Enforce);

/// All combinations of global, node and directive mode.
#[test]
fn modes_are_resolved_by_the_table() {
    use PolicyMode::{Audit, Enforce};
    let cases = [
        // global, overridable, node, directive, result
        (Enforce, true, None, None, Enforce),
        (Enforce, true, None, A, Audit),
        (Enforce, true, None, E, Enforce),
        (Enforce, true, A, None, Audit),
        (Enforce, true, A, A, Audit),
        (Enforce, true, A, E, Audit),
        (Enforce, true, E, None, Enforce),
        (Enforce, true, E, A, Audit),
        (Enforce, true, E, E, Enforce),
        (Audit, true, None, None, Audit),
        (Audit, true, None, A, Audit),
        (Audit, true, None, E, Enforce),
        (Audit, true, A, None, Audit),
        (Audit, true, A, A, Audit),
        (Audit, true, A, E, Audit),
        (Audit, true, E, None, Enforce),
        (Audit, true, E, A, Audit),
        (Audit, true, E, E, Enforce),
    ];
    for (mode, overridable, node, directive, expected) in cases {
        let global = GlobalPolicyMode { mode, overridable };
        let found = resolve(false, global, node, directive);
        assert_eq!(found, expected, "{mode:?} {node:?} {directive:?}");
        let fixed = GlobalPolicyMode {
            mode,
            overridable: false,
        };
        assert_eq!(resolve(false, fixed, node, directive), mode);
        assert_eq!(resolve(true, fixed, node, directive), Enforce);
    }
}

/// What global, directives and nodes set, and the word for the rule.
#[test]
fn a_rule_has_one_mode_or_is_mixed() {
    use PolicyMode::{Audit, Enforce};
    for (mode, directives, nodes, expected) in [
        (Enforce, &[][..], &[A][..], "none"),
        (Enforce, &[None], &[], "enforce"),
        (Audit, &[None], &[None], "audit"),
        // All directives set none: the nodes decide, those without a mode have the global one.
        (Enforce, &[None], &[A, A], "audit"),
        (Enforce, &[None], &[A, None], "mixed"),
        (Audit, &[None], &[A, None], "audit"),
        // All nodes set none: the directives decide.
        (Audit, &[E], &[None], "enforce"),
        (Audit, &[E, None], &[None], "mixed"),
        (Enforce, &[E, None], &[None], "enforce"),
        // Both set some: all count.
        (Enforce, &[A], &[A], "audit"),
        (Enforce, &[E], &[A], "mixed"),
        (Enforce, &[A], &[A, None], "mixed"),
        (Audit, &[A, None], &[A, None], "audit"),
    ] {
        let (of_directives, of_nodes) = (
            directives.iter().copied().collect(),
            nodes.iter().copied().collect(),
        );
        let word = |overridable| {
            let global = GlobalPolicyMode { mode, overridable };
            word_of_rule(global, of_directives, of_nodes)
        };
        assert_eq!(word(true), expected, "{mode:?} {directives:?} {nodes:?}");
        if !directives.is_empty() {
            assert_eq!(word(false), mode.name());
        }
    }
}

#[test]
fn targets_are_rudders_words() {
    for word in [
        "special:all",
        "special:all_exceptPolicyServers",
        "special:all_policyServers",
        "policyServer:root",
        "group:3f1a",
    ] {
        let target: Target = word.parse().unwrap();
        assert_eq!(target.to_string(), word);
    }
    assert_eq!("3f1a".parse(), Ok(Target::Group("3f1a".into())));
    for word in ["", "special:some", "group:", "else:x"] {
        assert!(word.parse::<Target>().is_err(), "{word}");
    }
    let composite = json!({
        "include": {"or": ["special:all", "group:a"]}, "exclude": {"or": ["group:b"]}
    });
    let target: RuleTarget = serde_json::from_value(composite.clone()).unwrap();
    assert_eq!(target.size(), 3);
    assert_eq!(serde_json::to_value(&target).unwrap(), composite);
}

#[test]
fn what_one_target_of_a_rule_excludes_no_other_brings_back() {
    let of = |target: &Target| -> NodeSet {
        let nodes: &[u32] = match target {
            Target::All => &[0, 1, 2],
            Target::Group(id) if id == "a" => &[0, 1],
            _ => &[1],
        };
        nodes.iter().map(|&node| NodeIx(node)).collect()
    };
    let targets = |list| -> Vec<RuleTarget> { serde_json::from_value(list).unwrap() };
    let but = |include: &str| json!({"include": {"or": [include]}, "exclude": {"or": ["group:b"]}});
    for (list, expected) in [
        (json!(["group:a", "group:b"]), "0 1"),
        (json!([but("special:all")]), "0 2"),
        (json!(["group:a", but("special:all")]), "0 2"),
        (json!([but("group:a"), "group:b"]), "0"),
    ] {
        let found = nodes_of(&targets(list.clone()), &of);
        let found: Vec<_> = found.iter().map(|node| node.0.to_string()).collect();
        assert_eq!(found.join(" "), expected, "{list}");
    }
    let both = targets(json!([but("special:all"), "group:b"]));
    assert_eq!(named(&both), HashSet::from([&Target::All]));
}

#[test]
fn a_rule_reads_and_writes_the_shape_of_the_rest_api() {
    let text = json!({
        "id": "32377fd7-02fd-43d0-aab7-28460a91347b", "displayName": "Base",
        "shortDescription": "", "longDescription": "", "directives": ["d1", "d2"],
        "targets": ["special:all", {"include": {"or": ["group:a"]}, "exclude": {"or": []}}],
        "enabled": true, "system": false, "categoryId": "rootRuleCategory",
        "tags": [{"team": "web"}]
    });
    let rule: Rule = serde_json::from_value(text.clone()).unwrap();
    assert_eq!(rule.check(), Ok(()));
    assert_eq!(serde_json::to_value(&rule).unwrap(), text);
}

#[test]
fn a_directive_reads_and_writes_the_shape_of_the_rest_api() {
    let text = json!({
        "id": "d1", "displayName": "Users", "shortDescription": "", "longDescription": "",
        "techniqueName": "userManagement", "techniqueVersion": "8.0",
        "parameters": {"section": {"name": "sections", "sections": [
            {"section": {"name": "Users", "vars": [
                {"var": {"name": "USERGROUP_USER_LOGIN", "value": "alice"}}]}},
            {"section": {"name": "Users", "vars": [
                {"var": {"name": "USERGROUP_USER_LOGIN", "value": "bob"}}]}},
        ]}},
        "priority": 5, "enabled": true, "system": false, "policyMode": "default", "tags": []
    });
    let directive: Directive = serde_json::from_value(text.clone()).unwrap();
    assert_eq!(directive.check(), Ok(()));
    let section = &directive.parameters.section;
    assert_eq!(section.instances("Users").count(), 2);
    assert_eq!(section.value("USERGROUP_USER_LOGIN"), None);
    assert_eq!(
        section.value_anywhere("USERGROUP_USER_LOGIN"),
        Some("alice")
    );
    assert_eq!(serde_json::to_value(&directive).unwrap(), text);
}

#[test]
fn objects_out_of_bounds_are_refused() {
    let mut directive = Directive::new("d", "d", ("t", "1.0"));
    directive.priority = 11;
    assert!(directive.check().is_err());
    directive.priority = 10;
    let mut deep = SectionValues::new("deep");
    for _ in 0..20 {
        deep = SectionValues::new("deep").with_section(deep);
    }
    directive.parameters.section = deep;
    assert!(directive.check().unwrap_err().message.contains("nested"));
    assert!(check_id("rule", "a@@b").is_err());
    assert!(check_id("rule", "a\nb").is_err());
    assert!(check_id("rule", &"x".repeat(256)).is_err());
    assert!(check_name("rule", "r", "").is_err());
    let mut node = Node::new("n", "n.example.org");
    assert_eq!(node.check(), Ok(()));
    node.kind = NodeKind::Root;
    assert!(node.check().is_err());
    node.kind = NodeKind::Relay;
    node.policy_server_id = "n".into();
    assert!(node.check().is_err());
    let mut group = Group::of_nodes("g", "g", vec![]);
    group.dynamic = true;
    assert!(group.check().unwrap_err().message.contains("query"));
}

#[test]
fn a_node_reads_what_it_writes() {
    let text = json!({
        "id": "n1", "hostname": "n1.example.org", "kind": "relay", "state": "preparing-eol",
        "policyMode": "audit", "policyServerId": "root",
        "os": {"type": "Linux", "name": "Debian", "version": "12", "fullName": "Debian 12",
            "kernelVersion": "6.1"},
        "properties": [{"name": "a", "value": {"b": 1}, "provider": "inventory"}]
    });
    let node: Node = serde_json::from_value(text).unwrap();
    assert_eq!(node.state, NodeState::PreparingEndOfLife);
    let again: Node = serde_json::from_value(serde_json::to_value(&node).unwrap()).unwrap();
    assert_eq!(again, node);
    for state in [
        "initializing",
        "enabled",
        "empty-policies",
        "ignored",
        "preparing-eol",
    ] {
        let read: NodeState = serde_json::from_value(json!(state)).unwrap();
        assert_eq!(read.name(), state);
    }
}

#[test]
fn techniques_of_both_forms_are_data() {
    let sections = json!({
        "id": "userManagement", "version": "8.0", "name": "Users", "multiInstance": true,
        "generation": "merged",
        "body": {"sections": [{"name": "Users", "multivalued": true, "component": true,
            "componentKey": "LOGIN",
            "variables": [{"name": "LOGIN", "constraint": {"type": "string"}}]}]}
    });
    let mut technique: Technique = serde_json::from_value(sections).unwrap();
    assert_eq!(technique.check(), Ok(()));
    if let super::technique::Body::Sections(sections) = &mut technique.body {
        sections[0].component_key = Some("NAME".into());
    }
    let message = technique.check().unwrap_err().to_string();
    assert!(message.contains("has no variable \"NAME\""), "{message}");
    let methods = json!({
        "id": "ntp", "version": "1.0", "name": "NTP",
        "body": {"methods": {
            "params": [{"id": "p1", "name": "server", "constraints": {"allow_empty": false}}],
            "items": [{"id": "b1", "name": "Block", "reporting": {"mode": "focus", "id": "c1"},
                "items": [{"id": "c1", "method": "package_present",
                    "params": {"name": "ntp"}, "condition": "debian"}]}]}}
    });
    let technique: Technique = serde_json::from_value(methods.clone()).unwrap();
    assert_eq!(technique.check(), Ok(()));
    let mut wrong = methods;
    wrong["body"]["methods"]["items"][0]["reporting"] = json!({"mode": "focus"});
    let technique: Technique = serde_json::from_value(wrong).unwrap();
    assert!(technique.check().is_err());
}

#[test]
fn parameters_of_a_method_keep_their_order() {
    let text =
        r#"[{"id": "c", "method": "m", "params": {"path": "/a", "lines": "b", "enforce": "c"}}]"#;
    let items: Vec<super::technique::MethodItem> = serde_json::from_str(text).unwrap();
    let super::technique::Action::Call { params, .. } = &items[0].action else {
        panic!("a call was read as a block");
    };
    let names: Vec<_> = params.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["path", "lines", "enforce"]);
}

#[test]
fn conditions_of_a_group() {
    let group = Group::of_nodes("3F1A-22", "Web servers (Lyon)", vec![]);
    assert_eq!(
        group.conditions(),
        ["group_3f1a_22", "group_web_servers__lyon_"]
    );
    assert_eq!(canonify("é"), "_");
}
