//! What is told of runs that are not as most: in parts, too long, given up, or of as many made up
//! names as a run may have reports.

use std::os::unix::fs::PermissionsExt as _;

use super::*;
use crate::peers::{metric, now, until};

/// What a PUT of a log is answered.
async fn sent(node: &Node, second: i64, log: &str) -> (u16, String) {
    let message = node.signed(log.as_bytes());
    let path = node.path(second);
    let answer = node.request(Method::PUT, &path, &[], message);
    let answer = answer.await.unwrap();
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    (answer.status.as_u16(), text)
}

const GOOD: &str = "A file@@result_success@@r@@d@@i1@@Text@@/tmp/x";
const BAD: &str = "A file@@result_error@@r@@d@@i1@@Text@@/tmp/x";

/// The compliance of the node.
async fn shown(admin: &Admin) -> Value {
    let path = format!("nodes/{A}/compliance");
    admin.get(&path).await["nodes"][0].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_whole_run_counts_after_parts_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let (server, admin, node) = reported(folder.path()).await;
    let (config_id, _) = node.policy().await;
    let second = now() + 5;
    let whole = node.log(second, &config_id, &[BAD]);
    // Without its first line it has no start.
    let part = whole.split_once('\n').unwrap().1;
    assert_eq!(sent(&node, second, part).await.0, 201);
    assert_eq!(sent(&node, second, part).await.0, 200);
    assert_eq!(shown(&admin).await["compliance"], 100.0);
    assert_eq!(sent(&node, second, &whole).await.0, 201);
    assert_eq!(sent(&node, second, &whole).await.0, 200);
    assert_eq!(shown(&admin).await["compliance"], 0.0);
    // Of another run with this start nothing is kept, and that is said.
    let other = node.log(second, &config_id, &[GOOD]);
    let (status, told) = sent(&node, second, &other).await;
    assert_eq!(status, 409, "{told}");
    assert!(
        told.contains("another run of this node with the same start"),
        "{told}"
    );
    assert_eq!(shown(&admin).await["compliance"], 0.0);
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_left_out_of_a_run_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let (server, admin, node) = reported(folder.path()).await;
    let (config_id, _) = node.policy().await;
    let second = now() + 5;
    let log = node.log(second, &config_id, &[GOOD]);
    let (status, told) = sent(&node, second, &log).await;
    assert_eq!((status, &*told), (201, "3 reports are kept\n"));
    let second = second + 1;
    let log = node.log(second, &config_id, &[BAD]);
    let log = log.replace("@#said", &format!("@#{}", "x".repeat(2_000_000)));
    let broken = "2026-01-01T00:00:00+00:00 R: @@A file@@broken\n";
    let (status, told) = sent(&node, second, &format!("{log}{broken}")).await;
    assert_eq!(status, 201);
    for part in [
        "3 reports are kept",
        "1 lines are no reports",
        "65536 bytes",
        "1 messages are cut after 1048576 bytes",
    ] {
        assert!(told.contains(part), "{told}");
    }
    let shown = shown(&admin).await;
    assert_eq!(shown["compliance"], 0.0);
    let report = &shown["rules"][0]["directives"][0]["components"][0]["values"][0]["reports"][0];
    assert_eq!(report["message"].as_str().unwrap().len(), 1 << 20);
    assert_eq!(metric(&node, "compliance_broken_lines_total").await, "1");
    assert_eq!(metric(&node, "compliance_cut_messages_total").await, "1");
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn why_a_run_was_given_up_is_told_as_long_as_it_is_the_last() {
    let folder = tempfile::tempdir().unwrap();
    let (server, admin, node) = reported(folder.path()).await;
    let (config_id, _) = node.policy().await;
    assert_eq!(shown(&admin).await.get("policyModeInconsistency"), None);
    let second = now() + 5;
    let abort = "Common@@log_warn@@rudder@@run@@0@@Abort run@@unsupported_dryrun";
    let log = node.log(second, &config_id, &[GOOD, abort, abort]);
    assert_eq!(sent(&node, second, &log).await.0, 201);
    let expected = json!([{"cause": "unsupported_dryrun", "message": "said"}]);
    let before = shown(&admin).await;
    assert_eq!(before["policyModeInconsistency"], expected);
    // The rest of the run counts.
    assert_eq!(before["compliance"], 100.0);
    server.stop().await.unwrap();
    let server = crate::peers::server(folder.path()).await;
    let admin = Admin::of(folder.path(), &url(&server)).await;
    assert_eq!(shown(&admin).await, before);
    let node = node.at(&url(&server));
    let second = second + 1;
    assert_eq!(node.run(second, &config_id, &[GOOD]).await, 201);
    assert_eq!(shown(&admin).await.get("policyModeInconsistency"), None);
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_mode_of_a_rule_on_a_node_is_that_of_its_directives() {
    let folder_of_data = tempfile::tempdir().unwrap();
    let (server, admin, node) = reported(folder_of_data.path()).await;
    let mut all = folder();
    let mut audited = all["directives"]["d"].clone();
    (audited["id"], audited["policyMode"]) = ("e".into(), "audit".into());
    all["directives"]["e"] = audited;
    all["rules"]["r"]["directives"] = json!(["d", "e"]);
    let rule = |id: &str, directive: &str| json!({"id": id, "displayName": id, "directives": [directive], "targets": ["group:g"]});
    (all["rules"]["a"], all["rules"]["b"]) = (rule("a", "e"), rule("b", "d"));
    admin.apply(&all).await;
    until(
        async || {
            shown(&admin).await["rules"]
                .as_array()
                .is_some_and(|rules| rules.len() == 3)
        },
        "the policy",
    )
    .await;
    let modes = async || {
        let node = shown(&admin).await;
        let rules = node["rules"].as_array().unwrap().iter();
        let modes = rules.map(|rule| rule["policyMode"].as_str().unwrap().to_owned());
        (
            node["policyMode"].as_str().unwrap().to_owned(),
            modes.collect::<Vec<_>>(),
        )
    };
    // Rules in the order of their names: a, b, r.
    let (of_node, of_rules) = modes().await;
    assert_eq!(of_node, "enforce");
    assert_eq!(of_rules, ["audit", "enforce", "mixed"]);
    let audit = json!({"policyMode": "audit"});
    admin
        .data(Method::POST, &format!("nodes/{A}"), Some(audit))
        .await;
    assert_eq!(
        modes().await,
        ("audit".to_owned(), vec!["audit".to_owned(); 3])
    );
    drop(node);
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_of_made_up_names_is_read_while_others_are_answered() {
    let folder = tempfile::tempdir().unwrap();
    let (server, admin, node) = reported(folder.path()).await;
    let (config_id, _) = node.policy().await;
    let second = now() + 5;
    const MANY: usize = 4_000;
    let made_up: Vec<_> = (0..MANY)
        .map(|number| format!("A file@@result_success@@r@@d@@0@@C{number}@@k"))
        .collect();
    let made_up: Vec<_> = made_up.iter().map(String::as_str).collect();
    assert_eq!(node.run(second, &config_id, &made_up).await, 201);
    // As many at once as there are turns, and one that waits for them.
    let (one, two, three, health) = tokio::join!(
        shown(&admin),
        shown(&admin),
        shown(&admin),
        node.get("/health", &[]),
    );
    assert_eq!(health.0, 200);
    for shown in [&one, &two, &three] {
        let components = &shown["rules"][0]["directives"][0]["components"];
        assert_eq!(components.as_array().unwrap().len(), MANY + 1);
    }
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_server_keeps_is_its_owners_alone() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("data");
    let open = |path: &Path, mode| {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(path, mode).unwrap();
    };
    let modes = || {
        let mut found = vec![(folder.clone(), 0)];
        found.extend(
            std::fs::read_dir(&folder)
                .unwrap()
                .map(|one| (one.unwrap().path(), 0)),
        );
        for (path, mode) in &mut found {
            *mode = std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        }
        found
    };
    let closed = || {
        let found = modes();
        assert!(found.len() >= 6, "{found:?}");
        assert!(found.iter().all(|(_, mode)| mode & 0o077 == 0), "{found:?}");
    };
    let (server, ..) = reported(&folder).await;
    closed();
    server.stop().await.unwrap();
    // Of an older server.
    for (path, _) in modes() {
        open(&path, if path == folder { 0o755 } else { 0o644 });
    }
    let server = crate::peers::server(&folder).await;
    closed();
    server.stop().await.unwrap();
}
