//! What clients of Rudder ask beside what is read and written most.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn of_a_node_is_shown_what_is_included() {
    let folder = tempfile::tempdir().unwrap();
    let (server, admin, node) = reported(folder.path()).await;
    let one = async |include: &str| {
        let all = admin.get(&format!("nodes?include={include}")).await;
        let path = format!("nodes/{A}?include={include}");
        assert_eq!(all, admin.get(&path).await);
        all["nodes"][0].as_object().unwrap().clone()
    };
    let minimal = one("minimal").await;
    let keys: Vec<_> = minimal.keys().collect();
    assert_eq!(keys, ["hostname", "id", "status"]);
    let some = one("minimal,os,software").await;
    let keys: Vec<_> = some.keys().collect();
    assert_eq!(keys, ["hostname", "id", "os", "software", "status"]);
    let usual = admin.get("nodes").await["nodes"][0].clone();
    assert_eq!(Value::from(one("default").await), usual);
    assert_eq!(usual.get("software"), None);
    let full = one("full").await;
    for (key, value) in usual.as_object().unwrap() {
        assert_eq!(full[key], *value);
    }
    let software = full["software"].as_array().unwrap();
    assert!(
        software.iter().all(|one| one["name"].is_string()),
        "{software:?}"
    );
    let interface = &full["networkInterfaces"][0];
    assert!(interface["ipAddresses"][0].is_string(), "{interface}");
    assert!(
        full["fileSystems"][0]["totalSpace"].is_u64(),
        "{}",
        full["fileSystems"]
    );
    assert_eq!(full["fileSystems"][0]["name"], "swap");
    let process = &full["processes"][0];
    assert!(
        process["pid"].is_u64() && process["memory"].is_number(),
        "{process}"
    );
    assert!(full["machine"].is_object());
    let setting = admin.get("settings/instance_id").await["settings"].clone();
    assert_eq!(full["instanceId"], setting["instance_id"]);
    let agent = &full["managementTechnologyDetails"];
    assert_eq!(agent["cfengineUser"], "root");
    let key = agent["cfengineKeys"][0].as_str().unwrap();
    assert!(key.starts_with("-----BEGIN CERTIFICATE-----"), "{key}");
    assert!(full.contains_key("swap"));
    assert_eq!(usual["managementTechnology"][0]["nodeKind"], "node");
    assert_eq!(usual["managementTechnology"][0]["name"], "Rudder");
    assert_eq!(
        usual["managementTechnology"][0]["capabilities"][0],
        "cfengine"
    );
    let zone = json!({"name": "UTC", "offset": "+0000"});
    assert_eq!(usual["timezone"], zone);
    let accepted = usual["acceptanceDate"].as_str().unwrap();
    assert!(accepted.parse::<jiff::Timestamp>().is_ok(), "{accepted}");
    let updates = one("minimal,softwareUpdate").await;
    assert_eq!(updates["softwareUpdate"], full["softwareUpdate"]);
    let update = &updates["softwareUpdate"][0];
    assert!(
        update["name"].is_string() && update["kind"].is_string(),
        "{update}"
    );
    assert_eq!(update.get("ids"), None);
    let run = usual["lastRunDate"].as_str().unwrap();
    assert!(run.parse::<jiff::Timestamp>().is_ok(), "{run}");
    // A name alone is shown beside what is usual; one that means nothing is told.
    let mut more = one("software").await;
    assert_eq!(more.remove("software").as_ref(), Some(&full["software"]));
    assert_eq!(Value::from(more), usual);
    for path in ["nodes", "nodes/pending", &format!("nodes/{A}")] {
        let path = format!("{path}?include=minimal,tenant");
        let answer = admin.call(Method::GET, &path, None).await;
        assert_eq!(answer.status, 400, "{}", answer.body);
        assert_eq!(answer.body["fields"], json!(["include"]));
        let details = answer.body["errorDetails"].as_str().unwrap();
        assert!(
            details.contains("\"tenant\"; there are acceptanceDate"),
            "{details}"
        );
    }
    // What is asked beside changes nothing.
    assert_eq!(admin.get("nodes?unknown=1").await["nodes"][0], usual);
    // Another inventory is no other acceptance.
    assert_eq!(node.enrol().await, 201);
    let again = admin.get("nodes").await["nodes"][0].clone();
    assert_eq!(again["acceptanceDate"], usual["acceptanceDate"]);
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn things_stand_in_their_categories() {
    let folder = tempfile::tempdir().unwrap();
    let (server, admin, _) = reported(folder.path()).await;
    let rule = json!({"id": "copy", "displayName": "Copy", "source": "r", "category": "web"});
    let answer = admin.call(Method::PUT, "rules", Some(rule)).await;
    assert_eq!((answer.status, &answer.body["id"]), (200, &json!("copy")));
    let copy = &answer.body["data"]["rules"][0];
    // A copy does nothing before somebody enables it.
    let expected = json!([["d"], ["group:g"], false, "web", "api"]);
    let fields = [
        "directives",
        "targets",
        "enabled",
        "categoryId",
        "managedBy",
    ];
    assert_eq!(json!(fields.map(|field| &copy[field])), expected);
    let none = json!({"displayName": "X", "source": "none"});
    let answer = admin.call(Method::PUT, "rules", Some(none)).await;
    assert_eq!(
        (answer.status, &answer.body["fields"]),
        (400, &json!(["source"]))
    );

    let tree = admin.get("rules/tree").await["ruleCategories"].clone();
    assert_eq!(
        (&tree["id"], &tree["rules"][0]["id"]),
        (&json!("rootRuleCategory"), &json!("r"))
    );
    let web = &tree["categories"][0];
    assert_eq!(
        (&web["id"], &web["parent"]),
        (&json!("web"), &json!("rootRuleCategory"))
    );
    assert_eq!(web["rules"][0], *copy);
    let all = admin.get("rules/categories").await["ruleCategories"].clone();
    let ids: Vec<_> = all
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["id"])
        .collect();
    assert_eq!(ids, ["rootRuleCategory", "web"]);
    let one = admin.get("rules/categories/web").await["ruleCategories"].clone();
    assert_eq!(
        (&one["rules"], &one["categories"]),
        (&json!(["copy"]), &json!([]))
    );
    let tree = admin.get("groups/tree").await["groupCategories"].clone();
    assert_eq!(
        (&tree["id"], &tree["groups"][0]["id"]),
        (&json!("GroupRoot"), &json!("g"))
    );
    let tree = admin.get("directives/tree").await["directives"][0].clone();
    let technique = &tree["techniques"][0];
    assert_eq!(
        (&technique["id"], &technique["directives"][0]["id"]),
        (&json!("file"), &json!("d"))
    );
    // What is shown is taken back.
    let mut group = admin.get("groups/g").await["groups"][0].clone();
    assert_eq!(admin.get("groups/g/reload").await["groups"][0], group);
    group["id"] = "h".into();
    admin.data(Method::PUT, "groups", Some(group)).await;
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_tried_and_policies_are_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let (server, admin, node) = reported(folder.path()).await;
    let own = json!({"id": "own", "displayName": "Own", "source": "d"});
    admin.data(Method::PUT, "directives", Some(own)).await;
    let before = admin.get("directives/own").await;
    let change = json!({"priority": 3});
    let tried = admin
        .data(Method::POST, "directives/own/check", Some(change))
        .await;
    assert_eq!(tried["directives"][0]["priority"], 3);
    let wrong = json!({"techniqueName": "none"});
    let answer = admin
        .call(Method::POST, "directives/own/check", Some(wrong))
        .await;
    assert_eq!(
        (answer.status, &answer.body["fields"]),
        (400, &json!(["techniqueName"]))
    );
    assert_eq!(admin.get("directives/own").await, before);

    let (config_id, _) = node.policy().await;
    let made = crate::peers::metric(&node, "compliance_policies_computed_total").await;
    let started = json!({"policies": "Started"});
    for path in ["system/update/policies", "system/regenerate/policies"] {
        assert_eq!(admin.data(Method::POST, path, None).await, started);
    }
    crate::peers::until(
        async || crate::peers::metric(&node, "compliance_policies_computed_total").await != made,
        "policies",
    )
    .await;
    // They are as they were.
    assert_eq!(node.policy().await.0, config_id);
    let health = admin.get("system/healthcheck").await;
    assert!(
        health
            .as_array()
            .unwrap()
            .iter()
            .all(|one| one["status"] == "Ok"),
        "{health}"
    );
    for path in ["/rudder/api/status", "/rudder/api/latest/status"] {
        let (status, text) = node.get(path, &[]).await;
        assert_eq!(status, 200);
        assert!(text.contains("\"global\":\"OK\""), "{text}");
    }
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn forms_are_taken_as_json_is() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = crate::peers::config(folder.path());
    config.acceptance = compliance::server::Acceptance::Manual;
    let server = compliance::server::start(config, crate::peers::logger())
        .await
        .unwrap();
    let admin = Admin::of(folder.path(), &url(&server)).await;
    let node = Node::new(A, &url(&server));
    let headers = |kind: &'static str| [("x-api-token", &*admin.token), ("content-type", kind)];
    let form = headers("application/x-www-form-urlencoded; charset=utf-8");
    let post = async |path: &str, headers: &[(&str, &str)], body: Vec<u8>| {
        let path = format!("/rudder/api/latest/{path}");
        let answer = node
            .request(Method::POST, &path, headers, body)
            .await
            .unwrap();
        let body: Value = serde_json::from_slice(&answer.body).unwrap();
        (answer.status.as_u16(), body)
    };
    // Both halves of an inventory in one form.
    let (xml, signature) = node.inventory();
    let part = |name: &str, file: &str, content: &[u8]| {
        let head = format!(
            "--x\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"{file}\"\r\n\r\n"
        );
        [head.as_bytes(), content, b"\r\n"].concat()
    };
    let file = crate::peers::pack(xml.as_bytes());
    let body = [
        part("file", &format!("{A}.ocs.gz"), &file),
        part("signature", &format!("{A}.ocs.sign"), signature.as_bytes()),
        b"--x--\r\n".to_vec(),
    ];
    let multipart = headers("multipart/form-data; boundary=x");
    let answer = post("inventories/upload", &multipart, body.concat()).await;
    assert_eq!(answer.0, 200, "{}", answer.1);
    let answer = post("inventories/upload", &multipart, body[0].clone()).await;
    assert_eq!(answer.0, 400, "{}", answer.1);

    let path = format!("nodes/pending/{A}");
    let wrong = post(&path, &form, b"status=maybe".to_vec()).await;
    assert_eq!((wrong.0, &wrong.1["fields"]), (400, &json!(["status"])));
    let body = format!("nodeId[]={A}&status=accepted").into_bytes();
    let answer = post("nodes/pending", &form, body).await;
    assert_eq!(answer.0, 200, "{}", answer.1);
    assert_eq!(answer.1["data"]["nodes"][0]["status"], "accepted");
    // JSON stays JSON, whatever a client says that it is.
    let path = format!("nodes/{A}");
    let body = br#"{"policyMode": "audit"}"#.to_vec();
    assert_eq!(post(&path, &form, body).await.0, 200);
    let body = b"policyMode=enforce&properties=[{\"name\": \"site\", \"value\": \"a b\"}]".to_vec();
    let answer = post(&path, &form, body).await;
    let node = &answer.1["data"]["nodes"][0];
    assert_eq!((answer.0, &node["policyMode"]), (200, &json!("enforce")));
    let properties = node["properties"].as_array().unwrap();
    assert!(
        properties.contains(&json!({"name": "site", "value": "a b"})),
        "{properties:?}"
    );
    server.stop().await.unwrap();
}
