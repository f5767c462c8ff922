//! What becomes of the methods of a technique, its blocks and its loops.

use serde_json::json;

use super::*;

#[test]
fn methods_blocks_and_foreach_become_calls_and_components() {
    let mut engine = engine();
    let time = directive("time", "ntp", &["${rudder.node.policyserver.hostname}"]);
    engine
        .apply(vec![
            Change::SetDirective(time),
            Change::SetRule(rule("time", &["time"], Target::Group("web".into()))),
        ])
        .unwrap();
    let outcome = generate(&mut engine);
    assert_eq!(updated(&outcome).len(), 4);
    let rules = user_rules(&engine, "web1");
    assert_eq!(
        rules[1]["ds"][0]["cs"],
        json!([
            {"vid": "Package", "vs": [{"id": "c1", "v": "ntp"}]},
            {"bid": "Configuration", "rl": "focus:Lines", "id": "b1", "scs": [
                {"vid": "Lines", "vs": [{"id": "c2-0", "v": "/etc/ntp.conf"}]},
                {"vid": "Lines", "vs": [{"id": "c2-1", "v": "/etc/chrony.conf"}]}]},
        ])
    );
    let document = policy(&engine, "web1").unwrap();
    let document = serde_json::to_value(PolicyDocument(&document)).unwrap();
    let calls = &document["policies"].as_array().unwrap().iter();
    let time = calls
        .clone()
        .find(|policy| policy["directive"] == "time")
        .unwrap();
    assert_eq!(
        time["calls"][2],
        json!({"id": "c2-1", "method": "file_lines_present", "component": "Lines",
            "condition": "(linux).(debian)",
            "params": [["path", "/etc/chrony.conf"], ["text", "server root.example.org"]]})
    );
    assert_eq!(time["calls"][3]["mode"], "audit");
    assert_eq!(time["calls"][3]["reported"], false);
    assert_eq!(
        document["conditions"],
        json!(["group_haspolicyserver_root", "group_web"])
    );
    assert_eq!(document["schedule"]["interval"], 5);
}

#[test]
fn what_variables_of_a_condition_stand_for_are_parts_of_names() {
    let condition =
        "file_present_${names.path}_kept.!role_${node.properties[role]}|${item.n}.${a.b}";
    let technique = json!({"id": "names", "version": "1.0", "name": "Names",
        "multiInstance": true, "body": {"methods": {
            "params": [{"id": "p1", "name": "path"}],
            "items": [{"id": "c1", "name": "C", "method": "file_present", "condition": condition,
                "params": {"path": "${names.path}"}, "foreach": [{"n": "a-b"}]}]}}});
    let mut names = directive("names", "names", &[]);
    let root = names.parameters.section;
    names.parameters.section = root.with("path", "/etc/${rudder.node.id}.conf");
    let mut engine = engine();
    let mut web = node("web1");
    web.properties = vec![Property::new("role", json!("front.end"))];
    engine
        .apply(vec![
            set(web),
            Change::SetTechnique(serde_json::from_value(technique).unwrap()),
            Change::SetDirective(names),
            Change::SetRule(rule("names", &["names"], Target::Group("web".into()))),
        ])
        .unwrap();
    generate(&mut engine);
    let document = policy(&engine, "web1").unwrap();
    let document = serde_json::to_value(PolicyDocument(&document)).unwrap();
    let mut all = document["policies"].as_array().unwrap().iter();
    let names = all.find(|policy| policy["directive"] == "names").unwrap();
    let call = &names["calls"][0];
    assert_eq!(call["params"][0][1], "/etc/web1.conf");
    let expected = "file_present__etc_web1_conf_kept.!role_front_end|a_b.${a.b}";
    assert_eq!(call["condition"], expected);
}

#[test]
fn a_policy_that_fills_templates_has_the_properties_of_its_node_and_follows_each() {
    let technique = json!({"id": "filled", "version": "1.0", "name": "Filled",
        "multiInstance": true, "body": {"methods": {"items": [
            {"id": "c1", "name": "C", "method": "file_from_template_mustache",
                "params": {"source_template": "/t", "path": "/f"}}]}}});
    let mut engine = engine();
    let mut web = node("web1");
    web.properties = vec![Property::new("role", json!("front"))];
    let mut group = in_group("web", "web.*");
    group.properties = vec![Property::new("site", json!({"node": "${rudder.node.id}"}))];
    engine
        .apply(vec![
            set(web),
            Change::SetGroup(group.clone()),
            Change::SetTechnique(serde_json::from_value(technique).unwrap()),
            Change::SetDirective(directive("filled", "filled", &[])),
            Change::SetRule(rule("filled", &["filled"], Target::Group("web".into()))),
        ])
        .unwrap();
    generate(&mut engine);
    let properties = |engine: &Engine, node: &str| {
        let document = policy(engine, node).unwrap();
        let mut document = serde_json::to_value(PolicyDocument(&document)).unwrap();
        document["properties"].take()
    };
    assert_eq!(
        properties(&engine, "web1"),
        json!({"role": "front", "site": {"node": "web1"}})
    );
    assert_eq!(
        properties(&engine, "web2"),
        json!({"site": {"node": "web2"}})
    );
    // Nothing of its policy could name one.
    assert_eq!(properties(&engine, "db1"), json!(null));
    group.properties[0].value = json!("b");
    engine.apply(vec![Change::SetGroup(group)]).unwrap();
    assert_eq!(updated(&generate(&mut engine)), ["web1", "web2"]);
    let zone = GlobalParameter {
        id: "zone".into(),
        value: json!("z"),
        description: String::new(),
        inherit_mode: Default::default(),
    };
    engine.apply(vec![Change::SetParameter(zone)]).unwrap();
    assert_eq!(updated(&generate(&mut engine)), ["web1", "web2"]);
    assert_eq!(
        properties(&engine, "web2"),
        json!({"site": "b", "zone": "z"})
    );
}

#[test]
fn foreach_within_foreach_is_bounded() {
    let sets: Vec<_> = (0..100).map(|number| json!({"n": number})).collect();
    let mut items = json!([]);
    for depth in 0..8 {
        let id = format!("b{depth}");
        items = json!([{"id": id, "name": "B", "items": items, "foreach": sets}]);
    }
    let technique = json!({"id": "many", "version": "1.0", "name": "Many",
        "multiInstance": true, "body": {"methods": {"items": items}}});
    let mut engine = engine();
    engine
        .apply(vec![
            Change::SetTechnique(serde_json::from_value(technique).unwrap()),
            Change::SetDirective(directive("motd", "many", &[])),
        ])
        .unwrap();
    assert_eq!(generate(&mut engine).failed, 4);
    let (_, failure) = engine.failures().next().unwrap();
    assert!(
        failure.to_string().contains("is a foreach inside another?"),
        "{failure}"
    );
}
