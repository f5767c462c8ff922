//! What is written: objects and what is set for nodes, and what is refused.

use super::*;

/// An object of each kind that can be made, and a change of it.
fn examples() -> Vec<(&'static str, Value, Value)> {
    let values = json!({"section": {"name": "sections",
        "vars": [{"var": {"name": "path", "value": "/tmp/y"}}]}});
    vec![
        (
            "groups",
            json!({"id": "new", "displayName": "New", "nodeIds": [A],
                "properties": [{"name": "n", "value": 1}]}),
            json!({"description": "changed"}),
        ),
        (
            "directives",
            json!({"id": "new", "displayName": "New", "techniqueName": "file",
                "parameters": values}),
            json!({"priority": 1, "policyMode": "audit"}),
        ),
        (
            "rules",
            json!({"id": "new", "displayName": "New", "directives": ["new"],
                "targets": [{"include": {"or": ["group:new"]}, "exclude": {"or": []}}]}),
            json!({"enabled": false}),
        ),
        (
            "parameters",
            json!({"id": "new", "value": {"deep": [1]}}),
            json!({"value": "text"}),
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn each_kind_is_made_changed_and_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let (server, admin, node) = reported(folder.path()).await;
    let before = node.policy().await.0;
    for (kind, object, _) in examples() {
        let made = admin.data(Method::PUT, kind, Some(object.clone())).await;
        let made = &made[kind][0];
        for (key, value) in object.as_object().unwrap() {
            assert_eq!(made[key], *value, "{kind}: {key}");
        }
        assert_eq!(made["managedBy"], "api");
        // Once more it is a conflict.
        let again = admin.call(Method::PUT, kind, Some(object)).await;
        assert_eq!(again.status, 409, "{}", again.body);
        assert_eq!(again.body["managedBy"], "api");
    }
    // The rule has the directive on the node.
    let after = node.policy_after(&before).await;
    assert_ne!(before, after);
    let names = [("groups", "rule"), ("directives", "rule")];
    for (kind, user) in names {
        let answer = admin
            .call(Method::DELETE, &format!("{kind}/new"), None)
            .await;
        assert_eq!(answer.status, 409, "{}", answer.body);
        let details = answer.body["errorDetails"].as_str().unwrap();
        assert!(details.contains(&format!("{user} \"new\"")), "{details}");
    }
    for (kind, object, change) in examples().into_iter().rev() {
        let path = format!("{kind}/new");
        let changed = admin.data(Method::POST, &path, Some(change.clone())).await;
        let changed = &changed[kind][0];
        for (key, value) in change.as_object().unwrap() {
            assert_eq!(changed[key], *value, "{kind}: {key}");
        }
        assert_eq!(
            changed["displayName"],
            *object.get("displayName").unwrap_or(&Value::Null)
        );
    }
    for kind in ["rules", "directives", "groups", "parameters"] {
        let path = format!("{kind}/new");
        admin.data(Method::DELETE, &path, None).await;
        assert_eq!(admin.call(Method::GET, &path, None).await.status, 404);
        // Once more it is gone as well.
        let again = admin.data(Method::DELETE, &path, None).await;
        assert_eq!(again, json!({kind: [{"id": "new"}]}));
    }
    // The server's own are not.
    let path = "rules/hasPolicyServer-root";
    assert_eq!(admin.call(Method::DELETE, path, None).await.status, 404);
    // One without an identity gets one.
    let made = json!({"displayName": "Nameless"});
    let made = admin.data(Method::PUT, "rules", Some(made)).await;
    let id = made["rules"][0]["id"].as_str().unwrap();
    assert_eq!(id.len(), 36);
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_folder_defined_is_not_changed_behind_its_back() {
    let data = tempfile::tempdir().unwrap();
    let (server, admin, _) = reported(data.path()).await;
    let before = admin.get("definitions").await;
    for (path, kind) in [
        ("rules/r", "rule"),
        ("directives/d", "directive"),
        ("groups/g", "group"),
        ("parameters/p", "parameter"),
    ] {
        for method in [Method::POST, Method::DELETE] {
            let body = (method == Method::POST).then(|| json!({}));
            let answer = admin.call(method, path, body).await;
            assert_eq!(answer.status, 409, "{}", answer.body);
            assert_eq!(answer.body["managedBy"], "folder");
            let details = answer.body["errorDetails"].as_str().unwrap();
            assert!(details.contains(&format!("the {kind} \"")), "{details}");
        }
    }
    assert_eq!(admin.get("definitions").await, before);

    // What the API made is shown in the folder's plan, and stays.
    let made = json!({"id": "mine", "displayName": "Mine", "directives": ["d"],
        "targets": ["special:all"]});
    admin.data(Method::PUT, "rules", Some(made.clone())).await;
    let plan = admin
        .data(Method::POST, "definitions/plan", Some(folder()))
        .await;
    let kept = json!([{"kind": "rule", "id": "mine", "became": "kept"}]);
    assert_eq!(plan["plan"]["objects"], kept);
    let plan = admin.apply(&folder()).await;
    assert_eq!(plan["objects"], kept);
    assert_eq!(
        admin.get("rules/mine").await["rules"][0]["managedBy"],
        "api"
    );

    // A folder that has it takes it over; from then on it is the folder's.
    let mut with = folder();
    with["rules"]["mine"] = made;
    let plan = admin.apply(&with).await;
    let taken = json!([{"kind": "rule", "id": "mine", "became": "taken"}]);
    assert_eq!(plan["objects"], taken);
    assert_eq!(
        admin.get("rules/mine").await["rules"][0]["managedBy"],
        "folder"
    );
    let plan = admin.apply(&folder()).await;
    let removed = json!([{"kind": "rule", "id": "mine", "became": "removed"}]);
    assert_eq!(plan["objects"], removed);
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_input_in_a_field_names_the_field() {
    let data = tempfile::tempdir().unwrap();
    let (server, admin, _) = reported(data.path()).await;
    for (kind, object, _) in examples() {
        admin.data(Method::PUT, kind, Some(object)).await;
    }
    let nodes = format!("nodes/{A}");
    let known = [
        "groups/new",
        "directives/new",
        "rules/new",
        "parameters/new",
        &nodes,
    ];
    // Every field that the document tells of, with values that are nothing it could be.
    let document = &admin.document;
    for path in known {
        let (root, _) = path.split_once('/').unwrap();
        let (_, _, call) = document
            .calls()
            .find(|(method, known, _)| *method == "post" && *known == format!("{root}/{{id}}"))
            .unwrap();
        let schema = &call["requestBody"]["content"]["application/json"]["schema"];
        let name = schema["$ref"].as_str().unwrap().strip_prefix('#').unwrap();
        let fields = document.0.pointer(name).unwrap()["properties"]
            .as_object()
            .unwrap();
        let mut tried = 0;
        for (field, schema) in fields {
            let shown = ["managedBy", "system", "target"].contains(&field.as_str());
            if shown || (root == "parameters" && field == "value") {
                continue;
            }
            for wrong in [json!(null), json!({"what": 1}), json!([[7]]), json!(-1.5)] {
                let answer = admin
                    .call(Method::POST, path, Some(json!({field: wrong})))
                    .await;
                assert_eq!(
                    answer.status, 400,
                    "{path} {field}: {wrong} {}",
                    answer.body
                );
                let named = answer.body["fields"][0].as_str().unwrap();
                assert!(named.starts_with(field.as_str()), "{named} {schema}");
                let details = answer.body["errorDetails"].as_str().unwrap();
                assert!(details.starts_with(named), "{details}");
                tried += 1;
            }
        }
        assert!(tried > 0, "{path}");
        let answer = admin
            .call(Method::POST, path, Some(json!({"what": 1})))
            .await;
        assert_eq!(answer.body["fields"], json!(["what"]), "{path}");
    }
    let wrong_query = json!({"where": [{"objectType": "node", "attribute": "what",
        "comparator": "eq", "value": "x"}]});
    let unknown = json!({"section": {"name": "sections",
        "vars": [{"var": {"name": "what", "value": "x"}}]}});
    for (path, change, field) in [
        (
            "rules/new",
            json!({"directives": ["new", "none"]}),
            "directives[1]",
        ),
        (
            "rules/new",
            json!({"targets": ["group:none"]}),
            "targets[0]",
        ),
        (
            "rules/new",
            json!({"targets": ["special:what"]}),
            "targets[0]",
        ),
        ("rules/new", json!({"id": "other"}), "id"),
        ("rules/new", json!({"displayName": ""}), "displayName"),
        (
            "directives/new",
            json!({"techniqueName": "none"}),
            "techniqueName",
        ),
        (
            "directives/new",
            json!({"parameters": unknown}),
            "parameters.what",
        ),
        ("directives/new", json!({"priority": 11}), "priority"),
        ("groups/new", json!({"query": wrong_query}), "query.where"),
        ("groups/new", json!({"dynamic": true}), "query"),
        (
            "groups/new",
            json!({"properties": [{"name": "a b", "value": 1}]}),
            "properties[0].name",
        ),
        (
            "groups/new",
            json!({"properties": [{"name": "a", "value": 1}, {"name": "a", "value": 2}]}),
            "properties",
        ),
        (
            "parameters/new",
            json!({"value": "x".repeat(70_000)}),
            "value",
        ),
        (
            &nodes,
            json!({"properties": [{"name": "", "value": 1}]}),
            "properties[0].name",
        ),
        (&nodes, json!({"state": "gone"}), "state"),
    ] {
        let answer = admin.call(Method::POST, path, Some(change.clone())).await;
        assert_eq!(answer.status, 400, "{path} {change}: {}", answer.body);
        assert_eq!(answer.body["fields"][0], field, "{}", answer.body);
    }
    for ((path, object), field) in cases![
        ("rules", json!({})) => "displayName";
        ("rules", json!({"displayName": "x", "id": "a@@b"})) => "id";
        ("rules", json!({"displayName": "x", "id": "hasPolicyServer-x"})) => "id";
        ("directives", json!({"displayName": "x"})) => "techniqueName";
        ("parameters", json!({"id": "x"})) => "value";
        ("parameters", json!({"id": "a b", "value": 1})) => "id";
        ("apiaccounts", json!({"id": "x"})) => "name";
        ("apiaccounts", json!({"name": "x", "authorizationType": "acl"})) => "authorizationType";
    ] {
        let answer = admin.call(Method::PUT, path, Some(object.clone())).await;
        assert_eq!(answer.status, 400, "{path} {object}: {}", answer.body);
        assert_eq!(answer.body["fields"][0], field, "{}", answer.body);
    }
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_set_for_a_node_reaches_its_policy_and_survives_an_inventory() {
    let data = tempfile::tempdir().unwrap();
    let (server, admin, node) = reported(data.path()).await;
    let before = node.policy().await.0;
    let path = format!("nodes/{A}");
    let set = json!({"properties": [{"name": "mine", "value": {"a": 1}}], "policyMode": "audit"});
    let shown = admin.data(Method::POST, &path, Some(set)).await;
    let shown = &shown["nodes"][0];
    assert_eq!(shown["policyMode"], "audit");
    let mine = json!({"name": "mine", "value": {"a": 1}});
    assert!(shown["properties"].as_array().unwrap().contains(&mine));
    node.policy_after(&before).await;
    // Another inventory leaves it.
    assert_eq!(node.enrol().await, 201);
    let shown = admin.get(&path).await;
    let properties = shown["nodes"][0]["properties"].as_array().unwrap();
    assert!(properties.contains(&mine), "{properties:?}");
    assert_eq!(shown["nodes"][0]["policyMode"], "audit");
    let gone = json!({"properties": [{"name": "mine", "value": ""}], "policyMode": "default"});
    let shown = admin.data(Method::POST, &path, Some(gone)).await;
    assert!(
        !shown["nodes"][0]["properties"]
            .as_array()
            .unwrap()
            .contains(&mine)
    );
    assert_eq!(shown["nodes"][0]["policyMode"], "default");
    // One that is ignored counts in no compliance.
    let ignored = json!({"state": "ignored"});
    admin.data(Method::POST, &path, Some(ignored)).await;
    for _ in 0..1_000 {
        if admin.get("compliance").await["globalCompliance"]["compliance"] == -1 {
            server.stop().await.unwrap();
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("an ignored node still counts");
}

#[tokio::test(flavor = "multi_thread")]
async fn properties_that_a_change_does_not_name_stay() {
    let data = tempfile::tempdir().unwrap();
    let (server, admin, _) = reported(data.path()).await;
    let of = |name: &str, value: Value| json!({"name": name, "value": value});
    let (a, b, c) = (
        of("a", json!(1)),
        of("b", json!({"k": 2})),
        of("c", json!("x")),
    );
    let made = json!({"id": "mine", "displayName": "Mine", "nodeIds": [], "properties": [a, b, c]});
    admin.data(Method::PUT, "groups", Some(made)).await;
    let b = of("b", json!([3]));
    let gone = [of("a", json!(null)), of("c", json!(""))];
    for (change, left) in [
        (json!([b]), json!([a, c, b])),
        (json!(gone), json!([b])),
        (json!([]), json!([b])),
    ] {
        let change = json!({"properties": change});
        let shown = admin.data(Method::POST, "groups/mine", Some(change)).await;
        assert_eq!(shown["groups"][0]["properties"], left);
    }
    // So do those of a node.
    let path = format!("nodes/{A}");
    for (value, stays) in [(json!(1), true), (json!(null), false)] {
        let change = json!({"properties": [of("mine", value)]});
        let shown = admin.data(Method::POST, &path, Some(change)).await;
        let properties = shown["nodes"][0]["properties"].as_array().unwrap();
        let found = properties.iter().any(|one| one["name"] == "mine");
        assert_eq!(found, stays);
    }
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_a_node_that_is_refused_leaves_its_key() {
    let data = tempfile::tempdir().unwrap();
    let (server, admin, node) = reported(data.path()).await;
    let path = format!("nodes/{A}");
    let change = json!({"keyStatus": "undefined", "policyServerId": "no-such-relay"});
    let answer = admin.call(Method::POST, &path, Some(change)).await;
    assert_eq!(answer.status, 400, "{}", answer.body);
    assert_eq!(answer.body["fields"], json!(["policyServerId"]));
    let thief = Node::new(A, &url(&server));
    assert_eq!(thief.enrol().await, 403);
    assert_eq!(node.enrol().await, 201);
    // Both that can be done are.
    let change = json!({"agentKey": {"status": "undefined"}, "policyMode": "audit"});
    let shown = admin.data(Method::POST, &path, Some(change)).await;
    assert_eq!(shown["nodes"][0]["policyMode"], "audit");
    assert_eq!(thief.enrol().await, 201);
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_name_such_as_are_there_and_no_circle() {
    let data = tempfile::tempdir().unwrap();
    let (server, admin, _) = reported(data.path()).await;
    let of = |group: &str| {
        json!({"where": [{"or": [{"objectType": "group", "attribute": "nodeGroupId",
            "comparator": "eq", "value": group}]}]})
    };
    let make = |id: &str, query: Value| Some(json!({"id": id, "displayName": id, "query": query}));
    // One that the folder defined, and a chain on top of it.
    for (id, on) in [("a", "g"), ("b", "a"), ("c", "b")] {
        admin.data(Method::PUT, "groups", make(id, of(on))).await;
        let shown = admin.get(&format!("groups/{id}")).await;
        assert_eq!(shown["groups"][0]["nodeIds"], json!([A]), "{id}");
    }
    let before = admin.get("definitions").await;
    for ((method, path, body), told) in cases![
        (Method::PUT, "groups", make("self", of("self")))
            => "the group's query names the group itself";
        (Method::PUT, "groups", make("d", of("none"))) => "there is no group \"none\"";
        (Method::POST, "groups/a", Some(json!({"query": of("a")})))
            => "the group's query names the group itself";
        (Method::POST, "groups/a", Some(json!({"query": of("c")})))
            => "groups name each other in a circle: a → c → b → a";
    ] {
        let answer = admin.call(method, path, body).await;
        assert_eq!(answer.status, 400, "{}", answer.body);
        let field = "query.where[0].or[0].value";
        assert_eq!(answer.body["fields"], json!([field]));
        let told = format!("{field}: {told}");
        assert_eq!(answer.body["errorDetails"], json!(told));
    }
    // Whom another names does not go.
    let answer = admin.call(Method::DELETE, "groups/b", None).await;
    assert_eq!(answer.status, 409, "{}", answer.body);
    let details = answer.body["errorDetails"].as_str().unwrap();
    assert!(details.contains("still named by group \"c\";"), "{details}");
    assert_eq!(admin.get("definitions").await, before);
    for id in ["c", "b", "a"] {
        admin
            .data(Method::DELETE, &format!("groups/{id}"), None)
            .await;
    }
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_that_is_dynamic_no_more_keeps_its_members() {
    let data = tempfile::tempdir().unwrap();
    let (server, admin, _) = reported(data.path()).await;
    let query = json!({"where": [
        {"objectType": "node", "attribute": "nodeId", "comparator": "exists"}]});
    let made = json!({"id": "mine", "displayName": "Mine", "query": query});
    admin.data(Method::PUT, "groups", Some(made)).await;
    let path = "groups/mine";
    for (change, nodes) in [
        (json!({"dynamic": false}), json!([A])),
        (json!({"dynamic": false, "description": "kept"}), json!([A])),
        (json!({"dynamic": true}), json!([A])),
        (json!({"dynamic": false, "nodeIds": []}), json!([])),
    ] {
        let shown = admin.data(Method::POST, path, Some(change.clone())).await;
        assert_eq!(shown["groups"][0]["dynamic"], change["dynamic"]);
        assert_eq!(shown["groups"][0]["nodeIds"], nodes, "{change}");
    }
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_makes_no_circle_of_groups_with_those_of_the_api() {
    let data = tempfile::tempdir().unwrap();
    let (server, admin, _) = reported(data.path()).await;
    let group = |id: &str, named: &str| {
        json!({"id": id, "displayName": id, "dynamic": true, "query": {"where": [
            {"objectType": "group", "attribute": "nodeGroupId", "comparator": "eq",
             "value": named}]}})
    };
    admin
        .data(Method::PUT, "groups", Some(group("mine", "g")))
        .await;
    let before = admin.get("definitions").await;
    let mut all = folder();
    all["groups"]["g"] = group("g", "mine");
    let circle = "the queries of groups name each other in a circle: g → mine";
    let path = "definitions/plan";
    let plan = admin.data(Method::POST, path, Some(all.clone())).await;
    let problems = &plan["plan"]["problems"];
    assert!(problems.to_string().contains(circle), "{problems}");
    let path = format!("definitions?base={}", before["version"]);
    let answer = admin.call(Method::PUT, &path, Some(all)).await;
    assert_eq!(answer.status, 422, "{}", answer.body);
    let told = format!("{circle}; nothing was changed");
    assert_eq!(answer.body["errorDetails"], told);
    assert_eq!(admin.get("definitions").await, before);
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn definitions_stand_under_their_identities() {
    let data = tempfile::tempdir().unwrap();
    let (server, admin, _) = reported(data.path()).await;
    let before = admin.get("definitions").await;
    let mut all = folder();
    all["rules"]["other"] = all["rules"]["r"].take();
    all["rules"].as_object_mut().unwrap().remove("r");
    all["techniques"]["file"] = technique();
    let put = format!("definitions?base={}", before["version"]);
    for (method, path) in [(Method::POST, "definitions/plan"), (Method::PUT, &*put)] {
        let answer = admin.call(method, path, Some(all.clone())).await;
        assert_eq!(answer.status, 400, "{}", answer.body);
        let fields = json!(["techniques.file", "rules.other"]);
        assert_eq!(answer.body["fields"], fields);
        let details = answer.body["errorDetails"].as_str().unwrap();
        let told = "rules.other: it is \"r\"; expected \"other\", the key that it stands under";
        assert!(details.ends_with(told), "{details}");
    }
    assert_eq!(admin.get("definitions").await, before);
    server.stop().await.unwrap();
}
