//! Techniques that are made by the API.

use super::*;

/// A technique of calls within a block; nothing in it has an identity yet.
fn text() -> Value {
    json!({
        "id": "text", "version": "1.0", "name": "A text", "category": "files",
        "body": {"methods": {
            "params": [{"name": "path"},
                       {"name": "mode", "constraints": {"type": "perm", "default": "644"}}],
            "items": [{"name": "All of it", "items": [
                {"name": "Text", "method": "file_absent", "params": [["path", "${text.path}"]]}]}],
        }},
    })
}

fn directive(id: &str) -> Value {
    let values = json!({"section": {"name": "sections",
        "vars": [{"var": {"name": "path", "value": "/tmp/y"}}]}});
    json!({"id": id, "displayName": id, "techniqueName": "text", "techniqueVersion": "1.0",
        "parameters": values})
}

fn unpacked(policy: &[u8]) -> String {
    std::io::read_to_string(flate2::read::GzDecoder::new(policy)).unwrap()
}

/// Has a rule for all bring a directive of the technique; the node's policy with it.
async fn in_use(admin: &Admin, node: &Node) -> String {
    let (before, _) = node.policy().await;
    let directive = directive("t");
    admin.data(Method::PUT, "directives", Some(directive)).await;
    let rule = json!({"id": "t", "displayName": "T", "directives": ["t"],
        "targets": ["special:all"]});
    admin.data(Method::PUT, "rules", Some(rule)).await;
    node.policy_after(&before).await
}

#[tokio::test(flavor = "multi_thread")]
async fn one_is_made_used_changed_and_deleted() {
    let data = tempfile::tempdir().unwrap();
    let (server, admin, node) = reported(data.path()).await;
    let made = admin.data(Method::PUT, "techniques", Some(text())).await;
    let made = &made["techniques"][0];
    assert_eq!(made["managedBy"], "api");
    assert_eq!(made["multiInstance"], true);
    let methods = &made["body"]["methods"];
    assert_eq!(methods["params"][0]["id"], "path");
    assert_eq!(methods["items"][0]["id"], "text-1");
    assert_eq!(methods["items"][0]["items"][0]["id"], "text-1-1");
    let again = admin.call(Method::PUT, "techniques", Some(text())).await;
    assert_eq!(again.status, 409, "{}", again.body);
    let details = again.body["errorDetails"].as_str().unwrap();
    assert!(details.contains("POST /techniques/text/1.0"), "{details}");
    // What is read can be sent back, and is the same.
    let path = "techniques/text/1.0";
    let read = admin.get(path).await;
    assert_eq!(read["techniques"][0], *made);
    let same = admin.data(Method::POST, path, Some(made.clone())).await;
    assert_eq!(same["techniques"][0], *made);

    let used = in_use(&admin, &node).await;
    let policy = unpacked(&node.policy().await.1);
    assert!(policy.contains("text-1-1"), "{policy}");
    // A change reaches the nodes that have it.
    let mut items = methods["items"].clone();
    items[0]["items"][0]["method"] = json!("directory_absent");
    let mut body = made["body"].clone();
    body["methods"]["items"] = items;
    let change = json!({"description": "Other", "body": body});
    let changed = admin.data(Method::POST, path, Some(change)).await;
    let changed = &changed["techniques"][0];
    assert_eq!(changed["description"], "Other");
    assert_eq!(changed["name"], "A text");
    node.policy_after(&used).await;
    let policy = unpacked(&node.policy().await.1);
    assert!(policy.contains("directory_absent"), "{policy}");

    // Another version of it stands beside it.
    let mut second = text();
    second["version"] = json!("2.0");
    admin.data(Method::PUT, "techniques", Some(second)).await;
    let all = admin.get("techniques/text").await;
    assert_eq!(all["techniques"].as_array().unwrap().len(), 2);

    // As long as a directive names it, it stays.
    let refused = admin.call(Method::DELETE, path, None).await;
    assert_eq!(refused.status, 409, "{}", refused.body);
    let details = refused.body["errorDetails"].as_str().unwrap();
    assert!(details.contains("technique \"text/1.0\""), "{details}");
    assert!(details.contains("directive \"t\""), "{details}");
    assert_eq!(admin.get(path).await["techniques"][0], *changed);
    admin
        .data(Method::DELETE, "techniques/text/2.0", None)
        .await;
    admin.data(Method::DELETE, "rules/t", None).await;
    admin.data(Method::DELETE, "directives/t", None).await;
    let gone = admin.data(Method::DELETE, path, None).await;
    assert_eq!(gone["techniques"][0], *changed);
    for method in [Method::GET, Method::DELETE] {
        assert_eq!(admin.call(method, path, None).await.status, 404);
    }
    assert_eq!(
        admin
            .call(Method::GET, "techniques/text", None)
            .await
            .status,
        404
    );
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn by_rule_a_block_tells_its_components_and_these_their_nodes() {
    let data = tempfile::tempdir().unwrap();
    let (server, admin, node) = reported(data.path()).await;
    admin.data(Method::PUT, "techniques", Some(text())).await;
    let config_id = in_use(&admin, &node).await;
    let second = jiff::Timestamp::now().as_second() + 5;
    let report = "A text@@result_error@@t@@t@@text-1-1@@Text@@/tmp/y";
    assert_eq!(node.run(second, &config_id, &[report]).await, 201);
    let shown = admin.get("rules/t/compliance").await;
    let block = &shown["rules"][0]["directives"][0]["components"][0];
    assert_eq!(block["name"], "All of it", "{shown}");
    assert_eq!(block["complianceDetails"], json!({"error": 100.0}));
    assert_eq!(block.get("nodes"), None);
    let component = &block["components"][0];
    assert_eq!(component["name"], "Text", "{shown}");
    let of_node = &component["nodes"][0];
    assert_eq!(of_node["id"], A, "{shown}");
    assert_eq!(of_node["values"][0]["value"], "/tmp/y");
    // By node the same block has the values.
    let by_node = admin.get(&format!("nodes/{A}/compliance")).await;
    let mut rules = by_node["nodes"][0]["rules"].as_array().unwrap().iter();
    let of_rule = rules.find(|rule| rule["id"] == "t").unwrap();
    let block = &of_rule["directives"][0]["components"][0];
    let component = &block["components"][0];
    assert_eq!(component["values"], of_node["values"]);
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn one_stands_beside_the_folder_and_is_there_after_a_restart() {
    let data = tempfile::tempdir().unwrap();
    let (server, admin, _) = reported(data.path()).await;
    // The folder's own is not changed behind its back.
    for method in [Method::POST, Method::DELETE] {
        let body = (method == Method::POST).then(|| json!({}));
        let answer = admin.call(method, "techniques/file/1.0", body).await;
        assert_eq!(answer.status, 409, "{}", answer.body);
        assert_eq!(answer.body["managedBy"], "folder");
    }
    admin.data(Method::PUT, "techniques", Some(text())).await;
    let plan = admin.apply(&folder()).await;
    let kept = json!([{"kind": "technique", "id": "text/1.0", "became": "kept"}]);
    assert_eq!(plan["objects"], kept);
    let all = admin.get("techniques").await;
    server.stop().await.unwrap();

    let server = crate::peers::server(data.path()).await;
    let admin = Admin::of(data.path(), &url(&server)).await;
    assert_eq!(admin.get("techniques").await, all);
    let mut with = folder();
    let own = admin.get("techniques/text/1.0").await;
    with["techniques"]["text/1.0"] = own["techniques"][0].clone();
    let plan = admin.apply(&with).await;
    let mut taken = plan["objects"].as_array().unwrap().iter();
    let taken = taken.find(|one| one["became"] == "taken");
    assert_eq!(taken.unwrap()["id"], "text/1.0", "{plan}");
    let shown = admin.get("techniques/text/1.0").await;
    assert_eq!(shown["techniques"][0]["managedBy"], "folder");
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_input_in_a_field_names_the_field() {
    let data = tempfile::tempdir().unwrap();
    let (server, admin, _) = reported(data.path()).await;
    admin.data(Method::PUT, "techniques", Some(text())).await;
    admin
        .data(Method::PUT, "directives", Some(directive("t")))
        .await;
    let before = admin.get("definitions").await;
    let path = "techniques/text/1.0";
    let items = |items: Value| json!({"body": {"methods": {"items": items}}});
    for (change, field) in [
        (json!({"what": 1}), "what"),
        (json!({"name": ""}), "name"),
        (json!({"id": "other"}), "id"),
        (json!({"version": "2.0"}), "version"),
        (json!({"multiInstance": 1}), "multiInstance"),
        (json!({"generation": "each"}), "generation"),
        (json!({"body": null}), "body"),
        (json!({"body": {"what": 1}}), "body"),
        (
            json!({"body": {"methods": {"calls": []}}}),
            "body.methods.calls",
        ),
        (items(json!([{}])), "body.methods.items[0]"),
        (
            items(json!([{"method": "m", "params": {"path": "x"}}])),
            "body.methods.items[0].params",
        ),
        (
            items(json!([{"method": "m", "params": [["path"]]}])),
            "body.methods.items[0].params[0]",
        ),
        (
            items(json!([{"name": "B", "items": [{"method": "m", "reporting": {"mode": "x"}}]}])),
            "body.methods.items[0].items[0].reporting.mode",
        ),
        // What the model finds is told of the body.
        (
            items(json!([{"method": "m", "reporting": {"mode": "focus"}}])),
            "body",
        ),
        (
            json!({"body": {"sections": [{"name": "S", "componentKey": "NONE"}]}}),
            "body",
        ),
    ] {
        let answer = admin.call(Method::POST, path, Some(change.clone())).await;
        assert_eq!(answer.status, 400, "{change}: {}", answer.body);
        assert_eq!(answer.body["fields"][0], field, "{change}: {}", answer.body);
    }
    // A change that a directive of it could not live with names the directive.
    let other = json!({"body": {"methods": {"params": [{"name": "file"}], "items": []}}});
    let answer = admin.call(Method::POST, path, Some(other)).await;
    assert_eq!(answer.status, 400, "{}", answer.body);
    assert_eq!(answer.body["fields"][0], "body");
    let details = answer.body["errorDetails"].as_str().unwrap();
    assert!(details.contains("directive \"t\""), "{details}");
    assert!(details.contains("no parameter \"path\""), "{details}");

    for (change, field) in [
        (json!({"id": null}), "id"),
        (json!({"version": "1/0"}), "version"),
        (json!({"id": "hasPolicyServer-x"}), "id"),
        (json!({"id": "a@@b"}), "id"),
    ] {
        let mut object = text();
        for (key, value) in change.as_object().unwrap() {
            object[key] = value.clone();
        }
        let answer = admin.call(Method::PUT, "techniques", Some(object)).await;
        assert_eq!(answer.status, 400, "{change}: {}", answer.body);
        assert_eq!(answer.body["fields"][0], field, "{}", answer.body);
    }
    let answer = admin.call(Method::PUT, "techniques", Some(json!({}))).await;
    assert_eq!(
        answer.body["fields"],
        json!(["id", "version", "name", "body"])
    );
    assert_eq!(admin.get("definitions").await, before);
    server.stop().await.unwrap();
}
