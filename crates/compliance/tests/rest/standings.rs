//! Compliance of groups and targets, as tables, and the names of its calls.

use super::*;

/// A second rule, of all nodes but those of a group.
fn second_rule(all: &mut Value) {
    let mut directive = all["directives"]["d"].clone();
    directive["id"] = json!("e");
    directive["displayName"] = json!("E");
    all["directives"]["e"] = directive;
    let all_but = json!({"include": {"or": ["special:all", "special:all_policyServers"]},
        "exclude": {"or": ["group:nobody", "special:all_policyServers"]}});
    all["groups"]["nobody"] = json!({"id": "nobody", "displayName": "Nobody", "nodeIds": []});
    all["rules"]["s"] = json!({"id": "s", "displayName": "S", "directives": ["e"],
        "targets": [all_but, "group:g"]});
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_is_shown_with_all_rules_and_with_those_that_target_it() {
    let folder = tempfile::tempdir().unwrap();
    let (server, admin, _) = reported(folder.path()).await;
    let full = json!({"successRepaired": 100.0});
    let group = json!({"id": "g", "name": "G", "compliance": 100.0, "mode": "full-compliance",
        "complianceDetails": full});
    let summary = json!({"id": "g", "targeted": group, "global": group});
    for path in ["groups/compliance", "compliance/summary/groups"] {
        let all = admin.get(path).await;
        assert_eq!(all, json!({"groupCompliance": [summary]}), "{path}");
    }
    for kind in ["global", "targeted"] {
        let path = format!("groups/g/compliance/{kind}");
        let whole = admin.get(&path).await["groupCompliance"][0].clone();
        assert_eq!(whole["rules"][0]["id"], "r", "{whole}");
        assert_eq!(whole["rules"][0].get("mode"), None, "{whole}");
        assert_eq!(whole["nodes"][0]["id"], A, "{whole}");
        for (part, list) in [("byRule", "rules"), ("byNode", "nodes")] {
            let found = admin.get(&format!("{path}/{part}")).await;
            assert_eq!(found, json!({list: whole[list]}), "{kind} {part}");
        }
    }
    let alone = admin.get("groups/g/compliance/global?level=0").await;
    assert_eq!(alone, json!({"groupCompliance": [group]}));
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_target_is_asked_for_as_a_group_is() {
    let folder = tempfile::tempdir().unwrap();
    let (server, admin, node) = reported(folder.path()).await;
    let before = node.policy().await.0;
    let mut all = super::folder();
    second_rule(&mut all);
    admin.apply(&all).await;
    node.policy_after(&before).await;
    // One directive was reported, the other one is awaited.
    let half = json!({"applying": 50.0, "successRepaired": 50.0});
    let (awaited, none) = (json!({"applying": 100.0}), json!({}));
    for (word, id, name, global, targeted) in [
        ("g", "g", "G", &half, &half),
        ("group:g", "g", "G", &half, &half),
        ("nobody", "nobody", "Nobody", &none, &none),
        ("special:all", "special:all", "All nodes", &half, &awaited),
        (
            "special:all_exceptPolicyServers",
            "special:all_exceptPolicyServers",
            "All managed nodes",
            &half,
            &none,
        ),
        // They are named and excluded.
        (
            "special:all_policyServers",
            "special:all_policyServers",
            "All policy servers",
            &none,
            &none,
        ),
        (
            "policyServer:root",
            "policyServer:root",
            "root",
            &none,
            &none,
        ),
    ] {
        let summaries = admin
            .get(&format!("groups/compliance?groups=gone,{word}"))
            .await;
        let [summary] = &summaries["groupCompliance"].as_array().unwrap()[..] else {
            panic!("{word}: {summaries}");
        };
        assert_eq!(summary["id"], id);
        for (kind, details) in [("global", global), ("targeted", targeted)] {
            let shown = &summary[kind];
            assert_eq!((&shown["id"], &shown["name"]), (&json!(id), &json!(name)));
            assert_eq!(shown["complianceDetails"], *details, "{word} {kind}");
            let path = format!("groups/{word}/compliance/{kind}");
            let whole = admin.get(&path).await["groupCompliance"][0].clone();
            assert_eq!(whole["complianceDetails"], *details, "{word} {kind}");
            let rules = whole["rules"].as_array().unwrap().iter();
            let rules: Vec<_> = rules.map(|rule| rule["id"].as_str().unwrap()).collect();
            let expected = match details {
                details if *details == half => &["r", "s"][..],
                details if *details == awaited => &["s"],
                _ => &[],
            };
            assert_eq!(rules, expected, "{word} {kind}");
        }
    }
    for none in ["none", "special:none", "policyServer:none", "group:"] {
        let answer = admin
            .call(
                Method::GET,
                &format!("groups/{none}/compliance/global/byNode"),
                None,
            )
            .await;
        assert_eq!(answer.status, 404, "{none}: {}", answer.body);
    }
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_has_rudders_columns() {
    let folder = tempfile::tempdir().unwrap();
    let (server, admin, _) = reported(folder.path()).await;
    let headers = [("x-api-token", &*admin.token)];
    let quoted = |cells: &[&str]| {
        let cells: Vec<_> = cells.iter().map(|cell| format!("\"{cell}\"")).collect();
        cells.join(",") + "\n"
    };
    let node = format!("{A}.example.org");
    for (path, columns) in cases![
        &*format!("nodes/{A}/compliance") => "Rule,Directive,Block,Component";
        "rules/r/compliance/byDirective" => "Directive,Block,Component,Node";
        "rules/r/compliance/byNode" => "Node,Directive,Block,Component";
        "directives/d/compliance" => "Rule,Block,Component,Node";
        "directives/d/compliance/byRule" => "Rule,Block,Component,Node";
        "directives/d/compliance/byNode" => "Node,Rule,Block,Component";
        "groups/g/compliance/global/byRule" => "Rule,Directive,Block,Component,Node";
        "groups/g/compliance/targeted/byNode" => "Node,Rule,Directive,Block,Component";
    ] {
        let columns: Vec<_> = columns
            .split(',')
            .chain(["Value", "Status", "Message"])
            .collect();
        let row = columns.iter().map(|column| match *column {
            "Rule" => "R",
            "Directive" => "D",
            "Block" => "",
            "Component" => "Text",
            "Node" => &node,
            "Value" => "/tmp/x",
            "Status" => "successRepaired",
            _ => "said",
        });
        let row: Vec<_> = row.collect();
        let whole = format!("/rudder/api/latest/{path}?format=csv&level=1");
        let found = admin.node.get(&whole, &headers).await;
        assert_eq!(found, (200, quoted(&columns) + &quoted(&row)), "{path}");
        let json = admin.get(&format!("{path}?format=json")).await;
        assert_eq!(json, admin.get(path).await);
        let wrong = format!("{path}?format=xml");
        assert_eq!(admin.call(Method::GET, &wrong, None).await.status, 400);
    }
    // The server's own rules have nothing to show: a head alone.
    let system = format!("/rudder/api/latest/nodes/{A}/compliance/system?format=csv");
    let (status, table) = admin.node.get(&system, &headers).await;
    let head = "\"Rule\",\"Directive\",\"Block\",\"Component\",\"Value\",\"Status\",\"Message\"";
    assert_eq!((status, table.lines().next()), (200, Some(head)), "{table}");
    assert!(!table.contains("\"D\""), "{table}");
    // Where there is no table, nobody is answered as if none had been asked for.
    for path in [
        "compliance",
        "nodes/compliance",
        "rules/compliance",
        "rules/r/compliance",
        "groups/compliance",
        "groups/g/compliance/global",
        "directives/compliance",
    ] {
        let answer = admin
            .call(Method::GET, &format!("{path}?format=csv"), None)
            .await;
        assert_eq!(answer.status, 400, "{path}");
        assert_eq!(answer.body["fields"], json!(["format"]), "{path}");
    }
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_have_rudders_names() {
    let folder = tempfile::tempdir().unwrap();
    let (server, admin, _) = reported(folder.path()).await;
    for (path, action) in cases![
        &*format!("nodes/{A}/compliance") => "getNodeComplianceId";
        &format!("compliance/nodes/{A}/system") => "getNodeSystemCompliance";
        "nodes/compliance" => "getNodesCompliance";
        "nodes/status" => "getNodesStatus";
        "rules/r/compliance" => "getRulesComplianceId";
        "rules/r/compliance/byDirective" => "getRuleComplianceByDirective";
        "rules/r/compliance/byNode" => "getRuleComplianceByNode";
        "directives/d/compliance" => "getDirectiveComplianceId";
        "directives/d/compliance/byNode" => "getDirectiveComplianceByNodeId";
        "directives/d/compliance/byRule" => "getDirectiveComplianceByRuleId";
        "groups/compliance" => "getNodeGroupCompliance";
        "compliance/summary/groups" => "getNodeGroupComplianceSummary";
        "groups/g/compliance/global" => "getGlobalNodeGroupComplianceId";
        "groups/g/compliance/targeted" => "getTargetedNodeGroupComplianceId";
        "groups/g/compliance/global/byRule" => "getGlobalNodeGroupComplianceByRuleId";
        "groups/g/compliance/targeted/byNode" => "getTargetedNodeGroupComplianceByNodeId";
        "compliance/groups/g" => "getNodeGroupComplianceId";
        "compliance/groups/g/target" => "getNodeGroupComplianceTargetId";
        "settings" => "getAllSettings";
        "apiaccounts" => "getAllAccounts";
        "techniques" => "getTechniques";
        "techniques/file" => "getTechniqueAllVersion";
        "techniques/file/1.0" => "getTechnique";
        "techniques/file/directives" => "listTechniquesDirectives";
        "techniques/file/1.0/directives" => "listTechniqueDirectives";
    ] {
        let answer = admin.call(Method::GET, path, None).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        assert_eq!(answer.body["action"], action, "{path}");
    }
    server.stop().await.unwrap();
}
