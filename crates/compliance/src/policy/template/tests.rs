use std::cell::Cell;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::model::mode::{GlobalPolicyMode, PolicyMode};
use crate::model::node::{Node, NodeKind};
use crate::policy::inheritance::{Inherited, Properties};

fn read(text: &str) -> Result<Template, TemplateError> {
    parse(text, &Substitutions::new())
}

fn properties(pairs: &[(&str, serde_json::Value)]) -> Properties {
    let pairs = pairs.iter();
    pairs
        .map(|(name, value)| ((*name).to_owned(), Inherited::Value(value.clone())))
        .collect()
}

/// Expands a text on the node `n1` behind `root`, with some properties and parameters.
pub(in crate::policy) fn expanded(text: &str) -> Result<String, String> {
    let mut node = Node::new("n1", "n1.example.org");
    node.policy_mode = Some(PolicyMode::Audit);
    let mut server = Node::new("root", "server.example.org");
    server.kind = NodeKind::Root;
    server.agent.owner = "admin".into();
    let mut inherited = properties(&[
        (
            "datacenter",
            json!({"Europe": {"city": "Paris", "racks": [1, "two"]}}),
        ),
        ("greeting", json!("hello ${rudder.node.hostname}")),
        ("loop", json!("${node.properties[loop]}")),
        ("wide", json!("${node.properties[empty]}".repeat(2_000))),
        ("wider", json!("${node.properties[wide]}".repeat(2_000))),
        ("empty", json!("")),
        ("port", json!(8080)),
        ("list", json!(["a", "${rudder.node.id}"])),
        ("broken", json!("${rudder.foo}")),
    ]);
    inherited.insert(
        "clash".into(),
        Inherited::Conflict(vec!["g1".into(), "g2".into()]),
    );
    let own = properties(&[("role", json!("web"))]);
    let parameters = properties(&[("p1", json!("value")), ("p2", json!({"k": 7}))]);
    let steps = Cell::new(0);
    let context = Context::new(
        NodeContext {
            node: &node,
            server: Some(&server),
            global_mode: GlobalPolicyMode::default(),
            inherited: &inherited,
            own: &own,
            parameters: &parameters,
        },
        &steps,
    );
    let tokens = read(text).map_err(|error| error.to_string())?;
    let mut out = String::from("> ");
    context
        .expand(&tokens, &mut out)
        .map_err(|error| error.to_string())?;
    Ok(out[2..].to_owned())
}

#[test]
fn variables_have_their_values() {
    let cases = [
        ("", ""),
        ("plain $ { } text", "plain $ { } text"),
        ("${rudder.node.id}", "n1"),
        ("a ${ RudDer . node . hostname } b", "a n1.example.org b"),
        ("${rudder.node.admin}/${rudder.node.state}", "root/enabled"),
        ("${rudder.node.policymode}", "audit"),
        ("${rudder.node.policyserver.id}", "root"),
        ("${rudder.node.policyserver.hostname}", "server.example.org"),
        ("${rudder.node.policyserver.admin}|", "admin|"),
        ("${node.properties[role]}", "web"),
        ("${node . properties [ role ] }!", "web!"),
        ("${node.properties[datacenter][Europe][city]}", "Paris"),
        ("${node.properties[datacenter][Europe][racks][1]}", "two"),
        (
            "${node.properties[datacenter][Europe]}",
            r#"{"city":"Paris","racks":[1,"two"]}"#,
        ),
        ("${node.properties[port]}", "8080"),
        ("${node.properties[greeting]}", "hello n1.example.org"),
        ("${node.properties[list]}", r#"["a","n1"]"#),
        ("${rudder.param.p1}", "value"),
        ("${rudder.parameters[p2][k]}", "7"),
        ("${node.properties[none]|default= \"\"}", ""),
        ("${node.properties[none]|default= \"a {} b\" }.", "a {} b."),
        (
            "${node.properties[none] | default = \"\"\"say \"x\" \"\"\"}",
            "say \"x\" ",
        ),
        (
            "${node.properties[none]|default=${rudder.node.hostname}}",
            "n1.example.org",
        ),
        (
            "${node.properties[none]|default=\" at ${node.properties[role]}\"}",
            " at web",
        ),
        (
            "${node.properties[none]|default=${node.properties[no]|default=\"in ${vars.x}\"}}",
            "in ${vars.x}",
        ),
        (
            "${node.properties[datacenter][Asia] | default = \"-\"}",
            "-",
        ),
        (
            "${node.properties[role]|node} x",
            "${node.properties[role]|node} x",
        ),
        ("${bla.foo} $(bla.foo)", "${bla.foo} $(bla.foo)"),
        (
            "${something.cfengine[foo bar]}",
            "${something.cfengine[foo bar]}",
        ),
        ("${rudder_parameters.foo}", "${rudder_parameters.foo}"),
        ("${rudderthings.foo}", "${rudderthings.foo}"),
        ("${node.thing.foo}", "${node.thing.foo}"),
        ("${nodething.foo}", "${nodething.foo}"),
        ("${datathing.foo}", "${datathing.foo}"),
        ("^{i àié$rudder ut ${ ending", "^{i àié$rudder ut ${ ending"),
        ("=\r= \n${node.properties[role]} =\n=", "=\r= \nweb =\n="),
    ];
    for (text, expected) in cases {
        assert_eq!(expanded(text).as_deref(), Ok(expected), "{text}");
    }
}

#[test]
fn wrong_variables_are_refused_when_they_are_read() {
    for text in [
        "${rudder.}",
        "${rudder.foo}",
        "${rudder.foo.bar}",
        "${rudder.node.foo}",
        "${rudder.node.policyserver}",
        "${node.properties}",
        "${node.properties[]}",
        "${node.properties[a][]}",
        "${node.properties[bad\"bad]}",
        "${node.properties[bad$bad]}",
        "${node.properties[bad[bad]}",
        "${node.properties[bad]bad]}",
        "${node.properties[bad bad]}",
        "${node.properties[bad\nbad]}",
        "${node.properties[bad\u{10}bad]}",
        "${node.properties[a]|default= \"missing end}",
        "${node.properties[a]|default= x}",
        "${node.properties[a]|other}",
        "${node.properties[a]",
        "${data.test[foo] | option1 = boo}",
        "evaljs: 1 + 1",
    ] {
        assert!(read(text).is_err(), "{text}");
    }
    let deep = "${node.properties[a]|default=".repeat(40) + "\"x\"" + &"}".repeat(40);
    assert!(read(&deep).unwrap_err().message.contains("deeper"));
    assert!(read(&"x".repeat(SOURCE_BYTES + 1)).is_err());
}

#[test]
fn missing_values_say_why() {
    let cases = [
        ("${node.properties[none]}", "no property [none]"),
        (
            "${node.properties[datacenter][Asia]}",
            "no property [datacenter][Asia]",
        ),
        ("${rudder.param.none}", "no global parameter [none]"),
        (
            "${node.properties[clash]}",
            "different values in the groups g1, g2",
        ),
        (
            "${node.properties[clash]|default=\"x\"}",
            "different values",
        ),
        ("${node.properties[loop]}", "does \"loop\" name itself"),
        ("${node.properties[wider]}", "more than 100000 variables"),
        (
            "${node.properties[broken]}",
            "the value of \"broken\" cannot be read",
        ),
    ];
    for (text, message) in cases {
        let error = expanded(text).unwrap_err();
        assert!(error.contains(message), "{text}: {error}");
    }
    let long = "${node.properties[greeting]}".repeat(60_000);
    assert!(expanded(&long).is_err());
}

#[test]
fn what_a_text_names() {
    let text = "${node.properties[a][b]|default=${node.properties[c]}} ${rudder.param.p}";
    let mut mentions = References::default();
    mentions.add(&read(text).unwrap());
    mentions.add(&read("eval: ${node.properties[d]} + ${rudder.parameters[q][k]}").unwrap());
    let names = |set: &std::collections::BTreeSet<Arc<str>>| {
        set.iter()
            .map(|name| name.to_string())
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(names(&mentions.properties), "a c d");
    assert_eq!(names(&mentions.parameters), "p q");
    // Which one the agent is to look up only the agent reads.
    assert!(!mentions.all_properties);
    mentions.add(&read("x ${node.properties[e] | node}").unwrap());
    assert!(mentions.all_properties);
    let written = read("x ${ Node . properties [e] | node }").unwrap();
    assert_eq!(
        written,
        [Token::Text("x ${node.properties[e] | node }".into())]
    );
}

#[test]
fn substitutions_stand_for_texts_with_variables() {
    let mut substitutions = Substitutions::new();
    substitutions.insert("ntp.server".into(), read("${rudder.node.id}.pool").unwrap());
    let tokens = parse("server ${ntp.server} ${ntp.other}", &substitutions).unwrap();
    assert_eq!(tokens.len(), 3);
    assert_eq!(tokens[1], Token::Fact(NodeFact::Id));
    assert_eq!(tokens[2], Token::Text(".pool ${ntp.other}".into()));
}

#[test]
fn substitutions_do_not_grow_without_bound() {
    let mut substitutions = Substitutions::new();
    substitutions.insert("a".into(), vec![Token::Text("x".repeat(10_000).into())]);
    substitutions.insert("b".into(), vec![Token::Fact(NodeFact::Id); 1_000]);
    assert!(parse(&"${a}".repeat(100), &substitutions).is_ok());
    assert!(parse("eval: ${a} + '!'", &substitutions).is_ok());
    for text in ["${a}".repeat(200), "${b}".repeat(200), "eval: ${b}".into()] {
        let error = parse(&text, &substitutions).unwrap_err();
        assert!(error.message.contains("too long"), "{error}");
    }
}

proptest! {
    /// Any text is read or refused, and a text without variables is itself.
    #[test]
    fn any_text_is_read_or_refused(text in "(\\PC|\\$\\{|\\}|node\\.properties\\[a\\]| \\| default ?= ?\"){0,30}") {
        let out = expanded(&text);
        if !text.contains("${") && !text.starts_with("eval") {
            prop_assert_eq!(out, Ok(text));
        }
    }
}
