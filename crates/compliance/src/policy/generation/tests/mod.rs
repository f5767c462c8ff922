use std::time::Duration;

use serde_json::json;

use super::*;
use crate::model::attributes::{Comparator, ObjectType};
use crate::model::directive::SectionValues;
use crate::model::inventory::Inventory;
use crate::model::mode::PolicyMode;
use crate::model::node::{NodeKind, NodeState};
use crate::model::property::{GlobalParameter, Property};
use crate::model::query::{Criterion, Query};
use crate::model::target::{RuleTarget, Target};
use crate::policy::node_policy::{ExpectedReports, NodePolicy, PolicyDocument, overridden_digest};

mod anew;
mod methods;
mod random;
mod reported;

/// 2018-08-24 13:00:07 UTC.
const NOW: i64 = 1_535_115_607;

fn no_clock() -> Duration {
    Duration::ZERO
}

fn generate(engine: &mut Engine) -> Outcome {
    engine.generate(NOW, 2, &no_clock)
}

/// The policy that a node is given, with all its texts.
fn policy(engine: &Engine, node: &str) -> Option<NodePolicy> {
    let update = NodeUpdate {
        node: node.into(),
        policy: Some(Arc::clone(engine.issued(node)?)),
        whole: None,
        new_config: false,
    };
    let whole = |_: &NodeUpdate, policy: Option<&NodePolicy>| policy.cloned();
    let made = engine.clone().of_whole(&[update], 1, whole);
    let made = made.into_iter().flatten().flatten().next();
    Some(made.expect("what is given out is made again as it was"))
}

fn updated(outcome: &Outcome) -> Vec<&str> {
    outcome.updates.iter().map(|update| &*update.node).collect()
}

fn techniques() -> Vec<Change> {
    let section = |key: &str| {
        json!([{"name": "File", "multivalued": true, "component": true, "componentKey": key,
            "variables": [
                {"name": "PATH", "constraint": {"type": "string"}},
                {"name": "MODE", "constraint": {"type": "perm", "default": "0644"}}]}])
    };
    let list = [
        json!({"id": "unique", "version": "1.0", "name": "Unique",
            "body": {"sections": section("PATH")}}),
        json!({"id": "instances", "version": "1.0", "name": "Instances", "multiInstance": true,
            "body": {"sections": section("PATH")}}),
        json!({"id": "merged", "version": "1.0", "name": "Merged", "multiInstance": true,
            "generation": "merged", "body": {"sections": section("PATH")}}),
        json!({"id": "ntp", "version": "1.0", "name": "NTP", "multiInstance": true,
            "body": {"methods": {
                "params": [{"id": "p1", "name": "server", "constraints": {"type": "string"}}],
                "items": [
                    {"id": "c1", "name": "Package", "method": "package_present",
                        "params": {"name": "ntp", "version": "latest"}},
                    {"id": "b1", "name": "Configuration", "condition": "linux",
                        "reporting": {"mode": "focus", "id": "c2"},
                        "items": [
                            {"id": "c2", "name": "Lines", "method": "file_lines_present",
                                "condition": "debian",
                                "params": {"path": "/etc/${item.file}",
                                    "text": "server ${ntp.server}"},
                                "foreach": [{"file": "ntp.conf"}, {"file": "chrony.conf"}]},
                            {"id": "c3", "method": "service_started",
                                "params": {"name": "ntp"},
                                "policy_mode_override": "audit",
                                "reporting": {"mode": "disabled"}}]}]}}}),
    ];
    let read = |json| Change::SetTechnique(serde_json::from_value(json).unwrap());
    list.into_iter().map(read).collect()
}

fn directive(id: &str, technique: &str, paths: &[&str]) -> Directive {
    let mut directive = Directive::new(id, id, (technique, "1.0"));
    let mut root = SectionValues::new("sections");
    for path in paths {
        root = root.with_section(SectionValues::new("File").with("PATH", *path));
    }
    if technique == "ntp" {
        root = root.with("server", paths[0]);
    }
    directive.parameters.section = root;
    directive
}

fn rule(id: &str, directives: &[&str], target: Target) -> Rule {
    let mut rule = Rule::new(id, id);
    rule.directives = directives.iter().map(|&one| one.to_owned()).collect();
    rule.targets = vec![RuleTarget::Simple(target)];
    rule
}

fn node(id: &str) -> Node {
    Node::new(id, format!("{id}.example.org"))
}

fn root() -> Node {
    Node {
        kind: NodeKind::Root,
        ..node("root")
    }
}

fn set(node: Node) -> Change {
    Change::SetNode(Arc::new(node))
}

fn in_group(id: &str, pattern: &str) -> Group {
    let kind = ObjectType::Node;
    let criterion = Criterion::new(kind, "nodeHostname", Comparator::Regex, pattern);
    Group::of_query(id, id, Query::all_of([criterion]))
}

/// Root, `web1`, `web2`, `db1`; the group `web`; a directive for all, one for web servers.
fn engine() -> Engine {
    let mut engine = Engine::new(Settings::default());
    let mut changes = techniques();
    changes.extend([root(), node("web1"), node("web2"), node("db1")].map(set));
    changes.push(Change::SetGroup(in_group("web", "web.*")));
    let motd = directive("motd", "unique", &["/etc/motd"]);
    let site = directive(
        "site",
        "instances",
        &["/srv/${rudder.node.id}", "/srv/shared"],
    );
    changes.push(Change::SetDirective(motd));
    changes.push(Change::SetDirective(site));
    changes.push(Change::SetRule(rule("base", &["motd"], Target::All)));
    changes.push(Change::SetRule(rule(
        "web",
        &["site"],
        Target::Group("web".into()),
    )));
    engine.apply(changes).unwrap();
    engine
}

fn expected(engine: &Engine, node: &str) -> serde_json::Value {
    serde_json::to_value(ExpectedReports(&policy(engine, node).unwrap())).unwrap()
}

/// What user rules expect of a node: rule, directive, components.
fn user_rules(engine: &Engine, node: &str) -> serde_json::Value {
    let mut all = expected(engine, node);
    let rules = all["rs"].as_array_mut().unwrap();
    rules.retain(|rule| !system::is_reserved(rule["rid"].as_str().unwrap()));
    all["rs"].take()
}

#[test]
fn a_node_that_goes_and_comes_back_gets_its_policy_again() {
    let mut engine = engine();
    generate(&mut engine);
    let before = engine.issued("web1").unwrap().config_id.clone();
    engine
        .apply(vec![Change::RemoveNode("web1".into())])
        .unwrap();
    engine.apply(vec![set(node("web1"))]).unwrap();
    let outcome = generate(&mut engine);
    // What was kept of it went with it, though it has the same content.
    assert_eq!(updated(&outcome), ["web1"]);
    let update = &outcome.updates[0];
    assert_eq!(update.policy.as_ref().unwrap().config_id, before);
    assert!(!update.new_config);
    assert_eq!(updated(&generate(&mut engine)), [""; 0]);
    // Also if it cannot be made when the node is there again.
    let mut broken = directive("motd", "unique", &["/etc/motd"]);
    broken.technique_name = "none".into();
    let whole = directive("motd", "unique", &["/etc/motd"]);
    engine
        .apply(vec![Change::RemoveNode("web1".into())])
        .unwrap();
    engine
        .apply(vec![set(node("web1")), Change::SetDirective(broken)])
        .unwrap();
    assert_eq!(updated(&generate(&mut engine)), [""; 0]);
    engine.apply(vec![Change::SetDirective(whole)]).unwrap();
    assert_eq!(updated(&generate(&mut engine)), ["web1"]);
}

#[test]
fn a_first_generation_makes_all_policies_and_a_second_none() {
    let mut engine = engine();
    let outcome = generate(&mut engine);
    assert_eq!(updated(&outcome), ["root", "web1", "web2", "db1"]);
    assert_eq!((outcome.generated, outcome.failed, outcome.held), (4, 0, 0));
    assert_eq!(engine.problems(), []);
    let policy = engine.issued("web1").unwrap();
    let hash: String = policy.digest[..4]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert_eq!(*policy.config_id, format!("20180824-130007-{hash}"));
    let again = generate(&mut engine);
    assert_eq!((again.generated, again.updates.len()), (0, 0));
}

#[test]
fn expected_reports_are_rudders_json() {
    let mut engine = engine();
    generate(&mut engine);
    assert_eq!(
        user_rules(&engine, "web1"),
        json!([
            {"rid": "base", "ds": [{"did": "motd", "pm": "enforce",
                "cs": [{"vid": "File", "vs": [["/etc/motd"]]}]}]},
            {"rid": "web", "ds": [{"did": "site", "pm": "enforce", "cs": [{"vid": "File",
                "vs": [["/srv/web1", "/srv/${rudder.node.id}"], ["/srv/shared"]]}]}]},
        ])
    );
    let all = expected(&engine, "db1");
    assert_eq!(
        all["ms"],
        json!({"gpm": {"m": "enforce", "o": true}, "gcm": "full-compliance",
            "gar": {"i": 5, "sm": 0, "sh": 0, "st": 4}})
    );
    let system: Vec<_> = all["rs"].as_array().unwrap()[..2].iter().collect();
    assert_eq!(system[0]["rid"], "hasPolicyServer-root");
    assert_eq!(system[0]["ds"][0]["did"], "common-root");
    assert_eq!(system[0]["ds"][0]["t"], json!(["rudderSystem"]));
    assert_eq!(system[0]["ds"][0]["cs"][0]["vs"], json!([[]]));
    assert_eq!(system[1]["rid"], "inventory-all");
    let root = expected(&engine, "root");
    let services = root["rs"].as_array().unwrap().iter();
    let services = services.filter(|rule| rule["rid"] == "policy-server-root");
    assert_eq!(
        services
            .flat_map(|rule| rule["ds"].as_array().unwrap())
            .count(),
        6
    );
}

#[test]
fn only_nodes_that_a_change_affects_get_a_new_config() {
    let mut engine = engine();
    generate(&mut engine);
    let mut after = |changes: Vec<Change>| {
        engine.apply(changes).unwrap();
        let outcome = engine.generate(NOW + 60, 1, &no_clock);
        let names: Vec<_> = updated(&outcome)
            .iter()
            .map(|&one| one.to_owned())
            .collect();
        (outcome.generated, names.join(" "))
    };
    // One directive's value.
    let other = Change::SetDirective(directive(
        "site",
        "instances",
        &["/srv/${rudder.node.id}/x"],
    ));
    assert_eq!(after(vec![other]), (2, "web1 web2".into()));
    // A description is nobody's business.
    let mut described = directive("motd", "unique", &["/etc/motd"]);
    described.long_description = "Message of the day".into();
    assert_eq!(after(vec![Change::SetDirective(described)]).1, "");
    // A parameter nobody names, then one that a directive names.
    let parameter = |value: &str| {
        Change::SetParameter(GlobalParameter {
            id: "zone".into(),
            value: json!(value),
            description: String::new(),
            inherit_mode: Default::default(),
        })
    };
    assert_eq!(after(vec![parameter("eu")]), (0, String::new()));
    let site = directive("site", "instances", &["/srv/${rudder.param.zone}"]);
    assert_eq!(after(vec![Change::SetDirective(site)]).1, "web1 web2");
    assert_eq!(after(vec![parameter("us")]), (2, "web1 web2".into()));
    // A node comes, one leaves, one is renamed and so leaves its group.
    assert_eq!(after(vec![set(node("web3"))]), (1, "web3".into()));
    assert_eq!(
        after(vec![Change::RemoveNode("db1".into())]),
        (1, "db1".into())
    );
    let mut renamed = node("web2");
    renamed.hostname = "mail.example.org".into();
    assert_eq!(after(vec![set(renamed)]), (1, "web2".into()));
    // Facts that policies do not show.
    let mut larger = node("web1");
    larger.ram = Some(1 << 40);
    assert_eq!(after(vec![set(larger)]), (0, String::new()));
    let mut ignored = node("web1");
    ignored.state = NodeState::Ignored;
    assert_eq!(after(vec![set(ignored)]), (1, "web1".into()));
    assert!(engine.issued("web1").is_none() && engine.issued("db1").is_none());
}

#[test]
fn properties_of_groups_reach_their_members_alone() {
    let mut engine = engine();
    let mut web = in_group("web", "web.*");
    let owner = |value: &str| vec![Property::new("owner", json!(value))];
    web.properties = owner("alice");
    let own = "/home/${node.properties[owner] | default = \"nobody\"}";
    let shared = Change::SetDirective(directive("motd", "unique", &[own]));
    engine
        .apply(vec![Change::SetGroup(web.clone()), shared])
        .unwrap();
    generate(&mut engine);
    let value = |engine: &Engine, node: &str| {
        user_rules(engine, node)[0]["ds"][0]["cs"][0]["vs"][0][0].clone()
    };
    assert_eq!(value(&engine, "web1"), "/home/alice");
    assert_eq!(value(&engine, "db1"), "/home/nobody");
    web.properties = owner("bob");
    engine.apply(vec![Change::SetGroup(web.clone())]).unwrap();
    let outcome = generate(&mut engine);
    assert_eq!(
        (outcome.generated, updated(&outcome)),
        (2, vec!["web1", "web2"])
    );
    // A second group that says otherwise: its nodes fail, keep what they have, and are named.
    let before = Arc::clone(engine.issued("web1").unwrap());
    let mut other = in_group("one", "web1.*");
    other.properties = owner("carol");
    engine.apply(vec![Change::SetGroup(other)]).unwrap();
    let outcome = generate(&mut engine);
    assert_eq!((updated(&outcome).len(), outcome.failed), (0, 1));
    let (failed, failure) = engine.failures().next().unwrap();
    assert_eq!(failed, "web1");
    assert_eq!(
        failure.to_string(),
        "rule \"base\", directive \"motd\", variable \"PATH\": the property \"owner\" has \
         different values in the groups one, web, of which none inherits from another; let one \
         group's query name the others, or set it on the node"
    );
    assert_eq!(engine.issued("web1"), Some(&before));
    let mut mended = node("web1");
    mended.properties = owner("dave");
    engine.apply(vec![set(mended)]).unwrap();
    assert_eq!(updated(&generate(&mut engine)), ["web1"]);
    assert_eq!(
        (value(&engine, "web1"), engine.failures().count()),
        (json!("/home/dave"), 0)
    );
}

#[test]
fn values_that_name_values_are_followed() {
    let mut engine = engine();
    let parameter = |id: &str, value: &str| {
        Change::SetParameter(GlobalParameter {
            id: id.into(),
            value: json!(value),
            description: String::new(),
            inherit_mode: Default::default(),
        })
    };
    let site = directive("site", "instances", &["${node.properties[outer]}"]);
    engine
        .apply(vec![
            parameter("outer", "/x/${rudder.param.inner}"),
            parameter("inner", "a"),
            Change::SetDirective(site),
        ])
        .unwrap();
    generate(&mut engine);
    engine.apply(vec![parameter("inner", "b")]).unwrap();
    assert_eq!(updated(&generate(&mut engine)), ["web1", "web2"]);
    let vs = &user_rules(&engine, "web1")[1]["ds"][0]["cs"][0]["vs"];
    assert_eq!(*vs, json!([["/x/b", "${node.properties[outer]}"]]));
}

#[test]
fn a_wrong_directive_fails_its_nodes_and_the_rest_goes_on() {
    let mut engine = engine();
    let wrong = directive("site", "instances", &["${rudder.foo}"]);
    let gone = directive("motd", "nothing", &[]);
    engine.apply(vec![Change::SetDirective(wrong)]).unwrap();
    let outcome = generate(&mut engine);
    assert_eq!(updated(&outcome), ["root", "db1"]);
    let failed: Vec<_> = engine
        .failures()
        .map(|(node, failure)| (node, failure.to_string()))
        .collect();
    assert_eq!(failed.len(), 2);
    assert_eq!(
        failed[0].1,
        "rule \"web\", directive \"site\", variable \"PATH\": the variable \"PATH\": byte 9: \
         expected node.FACT, param.NAME or parameters[NAME] after rudder."
    );
    engine.apply(vec![Change::SetDirective(gone)]).unwrap();
    assert_eq!(generate(&mut engine).failed, 4);
    let (_, failure) = engine.failures().next().unwrap();
    assert_eq!(
        failure.to_string(),
        "rule \"base\", directive \"motd\": there is no technique nothing/1.0"
    );
}

#[test]
fn a_node_behind_a_failed_relay_waits_for_it() {
    let mut engine = engine();
    let mut relay = node("relay");
    relay.kind = NodeKind::Relay;
    let mut child = node("web9");
    child.policy_server_id = "relay".into();
    engine.apply(vec![set(relay), set(child)]).unwrap();
    generate(&mut engine);
    let before = engine.issued("web9").unwrap().digest;
    let bad = Change::SetDirective(directive("bad", "instances", &["${node.properties[no]}"]));
    let only = rule("relays", &["bad"], Target::PolicyServer("relay".into()));
    let site = Change::SetDirective(directive("site", "instances", &["/new"]));
    engine
        .apply(vec![bad, Change::SetRule(only), site])
        .unwrap();
    let outcome = generate(&mut engine);
    assert_eq!((outcome.failed, outcome.held), (1, 1));
    assert_eq!(engine.issued("web9").unwrap().digest, before);
    engine
        .apply(vec![Change::RemoveRule("relays".into())])
        .unwrap();
    let outcome = generate(&mut engine);
    assert_eq!(updated(&outcome), ["web9"]);
    assert_ne!(engine.issued("web9").unwrap().digest, before);
}

#[test]
fn merged_directives_come_together_and_must_have_one_mode() {
    let mut engine = engine();
    let (one, mut two) = (
        directive("one", "merged", &["/a"]),
        directive("two", "merged", &["/b", "/c"]),
    );
    two.priority = 1;
    let both = rule("both", &["one", "two"], Target::Group("web".into()));
    engine
        .apply(vec![
            Change::SetDirective(one),
            Change::SetDirective(two.clone()),
            Change::SetRule(both),
        ])
        .unwrap();
    generate(&mut engine);
    let rules = user_rules(&engine, "web1");
    assert_eq!(rules[1]["ds"].as_array().unwrap().len(), 1);
    assert_eq!(rules[1]["ds"][0]["did"], "one");
    assert_eq!(
        rules[1]["ds"][0]["cs"][0]["vs"],
        json!([["/b"], ["/c"], ["/a"]])
    );
    two.policy_mode = Some(PolicyMode::Audit);
    engine.apply(vec![Change::SetDirective(two)]).unwrap();
    assert_eq!(generate(&mut engine).failed, 2);
    assert!(
        engine
            .failures()
            .all(|(_, failure)| failure.cause == Cause::Modes)
    );
}

#[test]
fn overridden_directives_are_named_with_what_holds_instead() {
    let mut engine = engine();
    let mut strict = directive("strict", "unique", &["/etc/issue"]);
    strict.priority = 0;
    engine
        .apply(vec![
            Change::SetDirective(strict),
            Change::SetRule(rule("zz", &["strict"], Target::Group("web".into()))),
        ])
        .unwrap();
    generate(&mut engine);
    let all = expected(&engine, "web1");
    assert_eq!(
        all["os"],
        json!([{"p": {"rid": "base", "did": "motd"}, "ob": {"rid": "zz", "did": "strict"}}])
    );
    let rules = user_rules(&engine, "web1");
    assert_eq!(
        (&rules[0]["rid"], &rules[1]["rid"]),
        (&json!("web"), &json!("zz"))
    );
    assert_eq!(expected(&engine, "db1")["os"], json!([]));
}

#[test]
fn queries_in_a_circle_are_named_and_their_groups_are_empty() {
    let mut engine = engine();
    let named =
        |id: &str, of: &str| Group::of_query(id, id, Query::all_of([Criterion::in_group(of)]));
    engine
        .apply(vec![
            Change::SetGroup(named("a", "b")),
            Change::SetGroup(named("b", "a")),
            Change::SetGroup(named("c", "web")),
            Change::SetRule(rule("r", &["none"], Target::Group("gone".into()))),
        ])
        .unwrap();
    generate(&mut engine);
    assert!(engine.members("a").is_empty());
    assert_eq!(engine.members("c"), ["web1", "web2"]);
    let problems: Vec<_> = engine.problems().iter().map(ToString::to_string).collect();
    assert_eq!(
        problems,
        [
            "the queries of groups name each other in a circle: a → b",
            "the rule \"r\" names the directive \"none\", which does not exist",
            "the rule \"r\" names the group \"gone\", which does not exist",
        ]
    );
}

#[test]
fn a_clone_shows_what_changes_would_do() {
    let mut engine = engine();
    generate(&mut engine);
    let mut preview = engine.clone();
    let other = Change::SetDirective(directive("motd", "unique", &["/etc/issue"]));
    preview.apply(vec![other]).unwrap();
    assert_eq!(updated(&generate(&mut preview)).len(), 4);
    assert_eq!(generate(&mut engine).updates.len(), 0);
    assert_eq!(
        user_rules(&engine, "db1")[0]["ds"][0]["cs"][0]["vs"],
        json!([["/etc/motd"]])
    );
}

#[test]
fn nodes_share_content_that_is_the_same() {
    let mut engine = engine();
    let outcome = generate(&mut engine);
    let content = |node: &str, rule: &str| {
        let update = outcome.updates.iter().find(|update| &*update.node == node);
        let policy = update.unwrap().whole.as_ref().unwrap();
        let entry = policy
            .entries
            .iter()
            .find(|entry| &*entry.draft.rule_id == rule);
        Arc::clone(&entry.unwrap().content)
    };
    assert!(Arc::ptr_eq(
        &content("web1", "base"),
        &content("db1", "base")
    ));
    assert!(!Arc::ptr_eq(
        &content("web1", "web"),
        &content("web2", "web")
    ));
}

#[test]
fn changes_are_taken_whole_or_not_at_all() {
    let mut engine = engine();
    let mut bad = directive("x", "unique", &[]);
    bad.priority = 12;
    let wrong = vec![set(node("new")), Change::SetDirective(bad)];
    assert!(engine.apply(wrong).is_err());
    assert!(engine.node("new").is_none());
    let reserved = Change::RemoveRule("hasPolicyServer-root".into());
    assert!(matches!(
        engine.apply(vec![reserved]),
        Err(ChangeError::Reserved { .. })
    ));
    let nobody = Change::SetInventory {
        node: "nobody".into(),
        inventory: Inventory::default(),
    };
    assert_eq!(
        engine.apply(vec![nobody]),
        Err(ChangeError::NoNode("nobody".into()))
    );
}

#[test]
fn steps_are_timed_by_the_clock_that_is_given() {
    let ticks = std::sync::atomic::AtomicU64::new(0);
    let clock = || Duration::from_secs(ticks.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
    let outcome = engine().generate(NOW, 1, &clock);
    let names: Vec<_> = outcome.steps.iter().map(|step| step.name).collect();
    assert_eq!(
        names,
        [
            "groups",
            "directives",
            "rules",
            "affected nodes",
            "contexts",
            "build",
            "publish",
            "build: resolve",
            "build: expand",
            "build: hash"
        ]
    );
    let seconds = |name: &str| {
        let step = outcome.steps.iter().find(|step| step.name == name).unwrap();
        (step.duration.as_secs(), step.summed)
    };
    // Four readings a node, four nodes, and the one at the end of the step.
    assert_eq!(seconds("build"), (17, false));
    assert_eq!(seconds("build: expand"), (4, true));
}
