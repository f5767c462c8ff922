//! What is read: every call of the document, and the shapes of Rudder.

use super::*;

/// An argument that is there.
fn argument(path: &str) -> String {
    if !path.contains('{') {
        return path.to_owned();
    }
    let id = match path.split('/').find(|part| *part != "compliance") {
        Some("groups") if path.contains("categories") => "GroupRoot",
        Some("rules") if path.contains("categories") => "rootRuleCategory",
        Some("nodes") => A,
        Some("rules") => "r",
        Some("directives") => "d",
        Some("groups") => "g",
        Some("parameters") => "p",
        Some("settings") => "run_frequency",
        Some("techniques") => "file",
        Some("apiaccounts") => "reader",
        other => panic!("{other:?} has no example"),
    };
    path.replace("{id}", id).replace("{version}", "1.0")
}

#[tokio::test(flavor = "multi_thread")]
async fn every_call_that_reads_answers_as_the_document_says() {
    let folder = tempfile::tempdir().unwrap();
    let (server, admin, _) = reported(folder.path()).await;
    let reader = json!({"id": "reader", "name": "a reader"});
    admin.data(Method::PUT, "apiaccounts", Some(reader)).await;
    let document = &admin.document;
    let reads: Vec<String> = document
        .calls()
        .filter(|(method, _, _)| *method == "get")
        .map(|(_, path, _)| path.to_owned())
        .collect();
    assert!(reads.len() > 40, "{reads:?}");
    for path in &reads {
        if *path == "nodes/pending/{id}" {
            let answer = admin.call(Method::GET, &argument(path), None).await;
            assert_eq!(answer.status, 404, "an accepted node is not pending");
            continue;
        }
        let data = admin.get(&argument(path)).await;
        let list =
            ["system/healthcheck", "nodes/{id}/inheritedProperties"].contains(&path.as_str());
        assert!(data.is_object() || list, "{path}: {data}");
        // Of what is not there nothing is told.
        if path.contains("{id}") && !path.ends_with("changes") {
            let none = path.replace("{id}", "none").replace("{version}", "1.0");
            let answer = admin.call(Method::GET, &none, None).await;
            assert_eq!(answer.status, 404, "{none}: {}", answer.body);
            assert_eq!(answer.body["result"], "error");
        }
        // Each parameter is checked.
        let (_, _, call) = document
            .calls()
            .find(|(method, known, _)| *method == "get" && known == path)
            .unwrap();
        for parameter in call["parameters"].as_array().unwrap() {
            if parameter["in"] == "query" && parameter["schema"]["type"] == "integer" {
                let name = parameter["name"].as_str().unwrap();
                for wrong in ["x", "-1", "11", ""] {
                    let path = format!("{}?{name}={wrong}", argument(path));
                    let answer = admin.call(Method::GET, &path, None).await;
                    assert_eq!(answer.status, 400, "{path}: {}", answer.body);
                    assert_eq!(answer.body["fields"], json!([name]), "{path}");
                }
            }
        }
    }
    server.stop().await.unwrap();
}

/// The parameter `p` is `{"a": 1}` for all; one group has more of it, a second inherits from that one.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_node_inherits_is_told_with_whom_from() {
    let data = tempfile::tempdir().unwrap();
    let (server, admin, node) = reported(data.path()).await;
    let before = node.policy().await.0;
    let mut all = folder();
    let property = |name: &str, value: Value| json!({"name": name, "value": value});
    all["groups"]["g"]["properties"] = json!([
        property("p", json!({"b": 2})),
        property("site", json!("here")),
        property("mixed", json!("text")),
        property("joined", json!({"l": [2], "t": "b"}))
    ]);
    all["parameters"]["p"]["description"] = json!("For all");
    all["parameters"]["mixed"] = json!({"id": "mixed", "value": [1]});
    all["parameters"]["joined"] =
        json!({"id": "joined", "value": {"l": [1], "t": "a"}, "inheritMode": "map"});
    let inner = json!({"where": [{"objectType": "group", "attribute": "nodeGroupId",
        "comparator": "eq", "value": "g"}]});
    all["groups"]["inner"] = json!({"id": "inner", "displayName": "Inner", "dynamic": true,
        "query": inner, "properties": [property("p", json!({"c": 3}))]});
    let clashing = |id: &str, value: i32| {
        json!({"id": id, "displayName": id, "nodeIds": [A],
            "properties": [property("clash", json!(value))]})
    };
    all["groups"]["one"] = clashing("one", 1);
    all["groups"]["two"] = clashing("two", 2);
    // The node's policy shows that its groups are known.
    all["directives"]["d"]["parameters"] = json!({"section": {"name": "sections",
        "vars": [{"var": {"name": "path", "value": "/tmp/${node.properties[p][c]}"}}]}});
    admin.apply(&all).await;
    node.policy_after(&before).await;
    let own = json!({"properties": [property("site", json!("there")), property("mine", json!(7))]});
    let path = format!("nodes/{A}");
    admin.data(Method::POST, &path, Some(own)).await;

    let told = admin.get(&format!("{path}/inheritedProperties")).await;
    assert_eq!(told[0]["nodeId"], A);
    let named = |name: &str| {
        let properties = told[0]["properties"].as_array().unwrap();
        properties
            .iter()
            .find(|one| one["name"] == name)
            .cloned()
            .unwrap()
    };
    let global = json!({"kind": "global", "value": {"a": 1}});
    let group = json!({"kind": "group", "name": "G", "id": "g", "value": {"b": 2},
        "resolvedValue": {"a": 1, "b": 2}, "parent": global});
    let typed = |name: &str, id: &str, kind: &str, parent: &Value| json!({"kind": "group", "name": name, "id": id, "valueType": kind, "parent": parent});
    let objects = typed(
        "G",
        "g",
        "Object",
        &json!({"kind": "global", "valueType": "Object"}),
    );
    assert_eq!(
        named("p"),
        json!({
            "name": "p", "value": {"a": 1, "b": 2, "c": 3}, "provider": "inherited",
            "description": "For all", "origval": {"c": 3},
            "hierarchy": {"kind": "group", "name": "Inner", "id": "inner", "value": {"c": 3},
                "resolvedValue": {"a": 1, "b": 2, "c": 3}, "parent": group},
            "hierarchyStatus": {"hasChildTypeConflicts": false,
                "fullHierarchy": typed("Inner", "inner", "Object", &objects)},
        })
    );
    let name = format!("{A}.example.org");
    let site = named("site");
    assert_eq!(
        (&site["value"], &site["provider"], &site["origval"]),
        (&json!("there"), &json!("overridden"), &json!("there"))
    );
    assert_eq!(
        site["hierarchy"],
        json!({"kind": "node", "name": name, "id": A, "value": "there", "resolvedValue": "there",
            "parent": {"kind": "group", "name": "G", "id": "g", "value": "here",
                "resolvedValue": "here"}})
    );
    assert_eq!(
        named("mine"),
        json!({"name": "mine", "value": 7, "origval": 7,
            "hierarchy": {"kind": "node", "name": name, "id": A, "value": 7, "resolvedValue": 7},
            "hierarchyStatus": {"hasChildTypeConflicts": false,
                "fullHierarchy": {"kind": "node", "name": name, "id": A, "valueType": "Number"}}})
    );
    let joined = named("joined");
    let (value, mode) = (json!({"l": [1, 2], "t": "ba"}), json!("map"));
    assert_eq!((&joined["value"], &joined["inheritMode"]), (&value, &mode));
    assert_eq!(joined["hierarchy"]["resolvedValue"], value);
    let parameter = admin.get("parameters/joined").await["parameters"][0].clone();
    assert_eq!(parameter["inheritMode"], mode);
    let wrong = json!({"id": "wrong", "value": 1, "inheritMode": "all"});
    let answer = admin.call(Method::PUT, "parameters", Some(wrong)).await;
    assert_eq!(answer.status, 400);
    assert_eq!(answer.body["fields"], json!(["inheritMode"]));
    let clash = named("clash");
    assert_eq!(clash["value"], Value::Null);
    let why = "groups give it different values: one, two";
    assert_eq!(clash["hierarchyStatus"]["errorMessage"], why);
    // What is laid over it is of another type: it holds, and that is told.
    let mixed = named("mixed");
    assert_eq!(mixed["value"], "text");
    let status = &mixed["hierarchyStatus"];
    assert_eq!(status["hasChildTypeConflicts"], true);
    assert_eq!(status["errorMessage"], "its values are of different types");
    assert_eq!(status["fullHierarchy"]["valueType"], "String");
    assert_eq!(status["fullHierarchy"]["parent"]["valueType"], "List");
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn shapes_are_those_of_rudder() {
    let folder = tempfile::tempdir().unwrap();
    let (server, admin, node) = reported(folder.path()).await;
    let name = format!("{}.example.org", node.id);
    let full = json!({"successRepaired": 100.0});
    let values = json!([{"value": "/tmp/x",
        "reports": [{"status": "successRepaired", "message": "said"}]}]);
    let component = json!({"name": "Text", "compliance": 100.0, "complianceDetails": full,
        "values": values});
    let of_node = json!({"id": "d", "name": "D", "compliance": 100.0, "policyMode": "enforce",
        "complianceDetails": full, "components": [component]});
    let rule = json!({"id": "r", "name": "R", "compliance": 100.0, "policyMode": "enforce",
        "complianceDetails": full, "directives": [of_node]});
    let shown = json!({"id": A, "name": name, "compliance": 100.0, "mode": "full-compliance",
        "policyMode": "enforce", "complianceDetails": full, "rules": [rule]});
    let path = format!("nodes/{A}/compliance");
    assert_eq!(admin.get(&path).await, json!({"nodes": [shown]}));

    // By rule: the components of a directive tell their nodes.
    let by_rule = admin.get("rules/r/compliance").await;
    let of_rule = json!({"name": "Text", "compliance": 100.0, "complianceDetails": full,
        "nodes": [{"id": A, "name": name, "policyMode": "enforce", "compliance": 100.0,
                   "complianceDetails": full, "values": values}]});
    let components = &by_rule["rules"][0]["directives"][0]["components"];
    assert_eq!(*components, json!([of_rule]));
    let node_of = |key: &str, inner: &Value| {
        let mut node = json!({"id": A, "name": name, "compliance": 100.0,
            "policyMode": "enforce", "complianceDetails": full});
        node[key] = json!([inner]);
        node
    };
    let node_of_rule = node_of("directives", &of_node);
    assert_eq!(by_rule["rules"][0]["nodes"], json!([node_of_rule]));
    let all = admin.get("rules/compliance?level=10").await;
    assert_eq!(all, by_rule);
    let all = admin.get("rules/compliance").await;
    assert_eq!(all["rules"][0].get("nodes"), None);

    // By directive: rules with the components and their nodes, and nodes with rules.
    let by_directive = admin.get("directives/d/compliance").await;
    let rule_with = |component: &Value| {
        json!({"id": "r", "name": "R", "compliance": 100.0, "policyMode": "enforce",
            "complianceDetails": full, "components": [component]})
    };
    let directive = &by_directive["directiveCompliance"];
    assert_eq!(directive["rules"], json!([rule_with(&of_rule)]));
    let node_of_directive = node_of("rules", &rule_with(&component));
    assert_eq!(directive["nodes"], json!([node_of_directive]));
    let only = admin.get("directives/d/compliance?level=1").await;
    assert_eq!(only["directiveCompliance"].get("nodes"), None);
    let only = admin.get("rules/r/compliance?level=1").await;
    assert_eq!(only["rules"][0].get("nodes"), None);
    let of = async |path: &str| admin.get(path).await;
    let only = of("directives/d/compliance/byNode").await;
    assert_eq!(only, json!({"nodes": [node_of_directive]}));
    let only = of("directives/d/compliance/byRule").await;
    assert_eq!(only, json!({"rules": [rule_with(&of_rule)]}));
    let mut rule = json!({"id": "r", "name": "R", "compliance": 100.0, "mode": "full-compliance",
        "policyMode": "enforce", "complianceDetails": full, "nodes": [node_of_rule]});
    assert_eq!(of("rules/r/compliance/byNode").await, rule);
    rule.as_object_mut().unwrap().remove("nodes");
    rule["directives"] = by_rule["rules"][0]["directives"].clone();
    assert_eq!(of("rules/r/compliance/byDirective").await, rule);
    let only = of("rules/r/compliance/byDirective?level=2").await;
    let directive = json!({"id": "d", "name": "D", "compliance": 100.0,
        "policyMode": "enforce", "complianceDetails": full});
    let rule = json!({"id": "r", "name": "R", "compliance": 100.0, "mode": "full-compliance",
        "policyMode": "enforce", "complianceDetails": full, "directives": [directive]});
    assert_eq!(only, rule);
    let global = json!({"compliance": 100, "complianceDetails": full});
    let shown = admin.get("compliance?precision=0").await;
    assert_eq!(shown, json!({"globalCompliance": global}));
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_pending_is_told_and_does_not_count() {
    let folder = tempfile::tempdir().unwrap();
    let (server, admin, node) = reported(folder.path()).await;
    let before = node.policy().await.0;
    let mut all = super::folder();
    let mut second = all["directives"]["d"].clone();
    second["id"] = json!("e");
    all["directives"]["e"] = second;
    all["rules"]["r"]["directives"] = json!(["d", "e"]);
    admin.apply(&all).await;
    node.policy_after(&before).await;
    let details = json!({"applying": 50.0, "successRepaired": 50.0});
    let of_node = admin.get(&format!("nodes/{A}/compliance")).await;
    let of_rule = admin.get("rules/r/compliance").await;
    let of_group = admin.get("groups/g/compliance").await;
    for shown in [
        &of_node["nodes"][0],
        &of_node["nodes"][0]["rules"][0],
        &of_rule["rules"][0],
        &of_group["groupCompliance"][0],
    ] {
        assert_eq!(shown["compliance"], 100.0, "{shown}");
        assert_eq!(shown["complianceDetails"], details, "{shown}");
    }
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_has_the_mode_of_its_directives() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path()).await;
    let admin = Admin::of(folder.path(), &url(&server)).await;
    let mut all = super::folder();
    for (id, mode) in [("audited", "audit"), ("enforced", "enforce")] {
        let mut directive = all["directives"]["d"].clone();
        directive["id"] = json!(id);
        directive["policyMode"] = json!(mode);
        all["directives"][id] = directive;
    }
    for (directives, mode) in [
        (json!(["d"]), "enforce"),
        (json!(["audited"]), "audit"),
        (json!(["d", "enforced"]), "enforce"),
        (json!(["d", "audited"]), "mixed"),
        (json!([]), "none"),
    ] {
        all["rules"]["r"]["directives"] = directives;
        admin.apply(&all).await;
        let shown = admin.get("rules/r/compliance").await;
        assert_eq!(shown["rules"][0]["policyMode"], mode, "{shown}");
    }
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_gave_way_is_shown_with_the_rule_that_won_and_counts_for_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (server, admin, node) = reported(folder.path()).await;
    let before = node.policy().await.0;
    // One instance of the technique, which a rule of a better priority brings as well.
    let mut all = super::folder();
    all["techniques"]["file/1.0"]["multiInstance"] = json!(false);
    all["directives"]["d"]["priority"] = json!(5);
    let mut better = all["directives"]["d"].clone();
    better["id"] = json!("better");
    better["priority"] = json!(0);
    all["directives"]["better"] = better;
    all["rules"]["won"] = json!({"id": "won", "displayName": "Won", "directives": ["better"],
        "targets": ["group:g"]});
    admin.apply(&all).await;
    node.policy_after(&before).await;
    let skipped = json!({
        "id": "d", "name": "D", "compliance": 0.0, "complianceDetails": {}, "policyMode": "skipped",
        "components": [],
        "skippedDetails": {"overridingRuleId": "won", "overridingRuleName": "Won"},
    });
    let shown = admin.get(&format!("nodes/{A}/compliance")).await;
    let rules = shown["nodes"][0]["rules"].as_array().unwrap();
    let of = |id: &str| rules.iter().find(|rule| rule["id"] == id).unwrap().clone();
    assert_eq!(of("r")["directives"], json!([skipped]), "{shown}");
    assert_eq!(of("r")["complianceDetails"], json!({}));
    assert_eq!(of("won")["directives"][0]["id"], "better");
    assert_eq!(of("won")["directives"][0].get("skippedDetails"), None);
    // Nothing is left of the rule on the node, which is told among the nodes of a group.
    assert_eq!(of("r")["policyMode"], "enforce");
    for (path, mode) in [("byNode", "skipped"), ("byRule", "enforce")] {
        let shown = admin
            .get(&format!("groups/g/compliance/global/{path}"))
            .await;
        let rules = match path {
            "byNode" => &shown["nodes"][0]["rules"],
            _ => &shown["rules"],
        };
        let mut rules = rules.as_array().unwrap().iter();
        let rule = rules.find(|rule| rule["id"] == "r").unwrap();
        assert_eq!(rule["policyMode"], mode, "{shown}");
        assert_eq!(rule["directives"][0]["policyMode"], "skipped", "{shown}");
    }
    let shown = admin.get("rules/r/compliance").await;
    assert_eq!(shown["rules"][0]["directives"], json!([skipped]), "{shown}");
    assert_eq!(shown["rules"][0]["policyMode"], "enforce");
    let shown = admin.get("directives/d/compliance").await;
    let mut rule = skipped.clone();
    rule["id"] = json!("r");
    rule["name"] = json!("R");
    let directive = &shown["directiveCompliance"];
    assert_eq!(directive["rules"], json!([rule]), "{shown}");
    assert_eq!(directive["nodes"], json!([]), "{shown}");
    // The directive that won is brought as ever.
    let shown = admin.get("directives/better/compliance/byRule").await;
    assert_eq!(shown["rules"][0]["policyMode"], "enforce", "{shown}");
    assert_eq!(shown["rules"][0].get("skippedDetails"), None);
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fleet_of_nobody_has_no_details() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path()).await;
    let admin = Admin::of(folder.path(), &url(&server)).await;
    let none = json!({"globalCompliance": {"compliance": -1}});
    assert_eq!(admin.get("compliance").await, none);
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_of_a_query_are_refused_rather_than_all_shown() {
    let folder = tempfile::tempdir().unwrap();
    let (server, admin, _) = reported(folder.path()).await;
    for asked in ["query", "where", "composition", "select"] {
        for path in ["nodes", "nodes/pending"] {
            let path = format!("{path}?{asked}=%5B%5D");
            let answer = admin.call(Method::GET, &path, None).await;
            assert_eq!(answer.status, 400, "{}", answer.body);
            assert_eq!(answer.body["fields"], json!([asked]));
        }
    }
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_in_a_path_may_have_a_plus() {
    let folder = tempfile::tempdir().unwrap();
    let (server, admin, node) = reported(folder.path()).await;
    let made = json!({"id": "a+b", "value": 1});
    admin.data(Method::PUT, "parameters", Some(made)).await;
    for path in ["parameters/a+b", "parameters/a%2Bb"] {
        let found = admin.get(path).await;
        assert_eq!(found["parameters"][0]["id"], "a+b", "{path}");
    }
    // As Apache takes it: `:`, `+` and `@` of a run's name may be escaped.
    let (config_id, _) = node.policy().await;
    let start = jiff::Timestamp::now().as_second() + 1;
    let path = node.path(start).replace(':', "%3A").replace('+', "%2b");
    let report = "A file@@result_repaired@@r@@d@@i1@@Text@@/tmp/x";
    let message = node.signed(node.log(start, &config_id, &[report]).as_bytes());
    assert_eq!(node.put(&path, message.clone()).await, 201);
    assert_eq!(node.put(&node.path(start), message).await, 200);
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_are_shown_as_rudder_does_and_tell_who_manages_them() {
    let folder = tempfile::tempdir().unwrap();
    let (server, admin, _) = reported(folder.path()).await;
    let rule = json!({"id": "r", "displayName": "R", "shortDescription": "",
        "longDescription": "", "directives": ["d"], "targets": ["group:g"], "enabled": true,
        "system": false, "categoryId": "rootRuleCategory", "tags": [], "managedBy": "folder",
        "policyMode": "enforce", "status": {"value": "In application"}});
    assert_eq!(admin.get("rules/r").await, json!({"rules": [rule]}));
    let query = json!({"select": "node", "composition": "and", "where": [
        {"objectType": "node", "attribute": "nodeId", "comparator": "exists", "value": ""}]});
    let group = json!({"id": "g", "displayName": "G", "description": "", "category": "GroupRoot",
        "dynamic": true, "query": query, "nodeIds": [A], "enabled": true, "properties": [],
        "target": "group:g", "groupClass": ["group_g", "group_g"], "system": false,
        "managedBy": "folder"});
    assert_eq!(admin.get("groups/g").await, json!({"groups": [group]}));
    let parameter = json!({"id": "p", "value": {"a": 1}, "description": "",
        "managedBy": "folder"});
    assert_eq!(
        admin.get("parameters/p").await,
        json!({"parameters": [parameter]})
    );
    let directives = admin.get("techniques/file/1.0/directives").await;
    assert_eq!(directives, admin.get("directives").await);
    let frequency = admin.get("settings/run_frequency").await;
    assert_eq!(frequency, json!({"settings": {"run_frequency": 5}}));

    // The envelope tells what was asked, of what.
    let answer = admin.call(Method::GET, "rules/r", None).await;
    assert_eq!(answer.body["action"], "ruleDetails");
    assert_eq!(answer.body["id"], "r");
    assert_eq!(answer.body["result"], "success");
    let token = ("x-api-token", &*admin.token);
    let pretty = "/rudder/api/latest/rules?prettify=true";
    assert!(
        admin
            .node
            .get(pretty, &[token])
            .await
            .1
            .contains("\n  \"action\"")
    );
    // The version stands in the path or in a header; one that is not spoken is not there.
    let by_header = [token, ("x-api-version", "24")];
    assert_eq!(admin.node.get("/rudder/api/rules", &by_header).await.0, 200);
    for wrong in ["25", "0", "last"] {
        let path = format!("/rudder/api/{wrong}/rules");
        assert_eq!(admin.node.get(&path, &[token]).await.0, 404, "{path}");
    }
    let answer = admin.call(Method::PUT, "rules/r", Some(json!({}))).await;
    assert_eq!(answer.status, 405);
    server.stop().await.unwrap();
}

/// A rule's mode and status, of the list and of itself: both must tell the same.
async fn mode_and_status(admin: &Admin, id: &str) -> (Value, Value, Value) {
    let one = admin.get(&format!("rules/{id}")).await["rules"][0].clone();
    let all = admin.get("rules").await;
    let all = all["rules"].as_array().unwrap();
    assert!(all.contains(&one), "{all:?}");
    let status = one["status"].clone();
    (
        one["policyMode"].clone(),
        status["value"].clone(),
        status["details"].clone(),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_tells_whether_it_is_applied_and_why_not() {
    let folder = tempfile::tempdir().unwrap();
    let (server, admin, _) = reported(folder.path()).await;
    let with_rule = |rule: Value| {
        let mut all = super::folder();
        let mut off = all["directives"]["d"].clone();
        off["id"] = json!("off");
        off["displayName"] = json!("Off");
        off["enabled"] = json!(false);
        all["directives"]["off"] = off;
        let nobody = json!({"id": "nobody", "displayName": "Nobody", "nodeIds": []});
        all["groups"]["nobody"] = nobody;
        let mut shut = all["groups"]["g"].clone();
        shut["id"] = json!("shut");
        shut["enabled"] = json!(false);
        all["groups"]["shut"] = shut;
        for (key, value) in rule.as_object().unwrap() {
            all["rules"]["r"][key] = value.clone();
        }
        all
    };
    let all_but = json!([{"include": {"or": ["special:all"]}, "exclude": {"or": ["group:g"]}}]);
    for ((rule, value), details) in cases![
        (json!({}), "In application") => None;
        (json!({"targets": ["special:all_exceptPolicyServers"]}), "In application") => None;
        (json!({"directives": ["d", "off"]}), "Partially applied")
            => Some("Directive 'Off' disabled");
        (json!({"directives": ["off"]}), "Not applied") => Some("Directive 'Off' disabled");
        (json!({"directives": []}), "Not applied") => Some("Rule unapplied, No policy defined");
        (json!({"targets": []}), "Not applied") => Some("Rule unapplied, Empty groups");
        (json!({"targets": ["group:nobody"]}), "Not applied") => Some("Empty groups");
        (json!({"targets": all_but}), "Not applied") => Some("Empty groups");
        (json!({"targets": ["special:all_policyServers"]}), "Not applied") => Some("Empty groups");
        (json!({"targets": ["group:g", "group:shut"]}), "Not applied") => Some("Group disabled");
        (json!({"enabled": false}), "Disabled") => Some("This rule is disabled. ");
        (json!({"enabled": false, "directives": ["off"], "targets": ["group:nobody"]}), "Disabled")
            => Some("This rule is disabled. , Empty groups, Directive 'Off' disabled");
    ] {
        admin.apply(&with_rule(rule.clone())).await;
        let (_, found, why) = mode_and_status(&admin, "r").await;
        assert_eq!((found, why), (json!(value), json!(details)), "{rule}");
    }
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_mode_of_a_rule_is_that_of_its_nodes_and_directives() {
    let folder = tempfile::tempdir().unwrap();
    let (server, admin, _) = reported(folder.path()).await;
    let node = format!("nodes/{A}");
    for (global, overridable, of_node, directive, mode) in [
        ("enforce", true, "default", "default", "enforce"),
        ("audit", true, "default", "default", "audit"),
        ("enforce", true, "audit", "default", "audit"),
        ("audit", true, "default", "enforce", "enforce"),
        ("enforce", true, "audit", "enforce", "mixed"),
        ("audit", true, "enforce", "enforce", "enforce"),
        ("enforce", false, "audit", "audit", "enforce"),
    ] {
        let mut all = super::folder();
        all["directives"]["d"]["policyMode"] = json!(directive);
        all["settings"] = json!({"policyMode": {"m": global, "o": overridable}});
        admin.apply(&all).await;
        let body = json!({"policyMode": of_node});
        admin.data(Method::POST, &node, Some(body)).await;
        let (found, ..) = mode_and_status(&admin, "r").await;
        let which = (global, overridable, of_node, directive);
        assert_eq!(found, mode, "{which:?}");
    }
    // What is only shown may be sent back.
    let rule = json!({"id": "own", "displayName": "Own", "directives": ["d"], "targets": []});
    let made = admin.data(Method::PUT, "rules", Some(rule)).await["rules"][0].clone();
    let mut again = made.clone();
    again["targets"] = json!(["special:all"]);
    let sent = admin.data(Method::POST, "rules/own", Some(again)).await;
    assert_eq!(made["status"]["value"], "Not applied");
    assert_eq!(
        sent["rules"][0]["status"],
        json!({"value": "In application"})
    );
    server.stop().await.unwrap();
}
