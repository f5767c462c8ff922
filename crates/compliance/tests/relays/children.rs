//! Nodes behind a relay have what they would have of the server.

use compliance::daemon;

use super::*;
use crate::peers::pack;

#[tokio::test(flavor = "multi_thread")]
async fn a_node_behind_a_relay_is_served_as_by_the_server() {
    let site = Site::start().await;
    let relay = site.relay().id().to_owned();
    let a = site.child(A).await;
    // It is where its inventory said, and the relay is one.
    let shown = site.admin.get(&format!("nodes/{A}")).await;
    assert_eq!(shown["nodes"][0]["policyServerId"], *relay);
    assert_eq!(shown["nodes"][0]["kind"], "node");
    assert_eq!(a.get("/uuid", &[]).await, (200, relay));
    assert_eq!(a.get("/health", &[]).await, (200, "ok\n".into()));
    // The same policy, with its tag.
    let direct = site.direct(&a);
    let (policy, of_server) = (a.policy().await, direct.policy().await);
    assert_eq!(policy, of_server);
    let path = format!("/policies/{A}/rules/policy.json.gz");
    let tag = format!("\"{}\"", policy.0);
    assert_eq!(a.get(&path, &[("if-none-match", &tag)]).await.0, 304);

    // A run arrives, however its file is called and packed, and counts once.
    let start = now();
    assert_eq!(a.run(start, &policy.0, &[REPORT]).await, 201);
    let message = a.signed(a.log(start + 1, &policy.0, &[REPORT]).as_bytes());
    let mut plain = Vec::new();
    let mut packed = flate2::read::GzDecoder::new(&message[..]);
    std::io::Read::read_to_end(&mut packed, &mut plain).unwrap();
    let older = a.path(start + 1).replace("/reports/", "");
    let (node, date) = older.trim_end_matches(".log.gz").split_once('_').unwrap();
    let older = format!("/reports/{}@{node}.log", date.replace(':', "_"));
    assert_eq!(a.put(&older, plain).await, 201);
    let kept = async || metric(&direct, &reports("ok")).await == "2";
    until(kept, "the runs to arrive").await;
    let again = a.run(start, &policy.0, &[REPORT]).await;
    assert!(matches!(again, 200 | 201), "{again}");
    site.until_drained().await;
    assert_eq!(direct.run(start, &policy.0, &[REPORT]).await, 200);
    assert_eq!(site.runs().await, 2);
    assert_eq!(metric(&a, "rudder_relayd_managed_nodes_total").await, "1");

    // Another inventory, by the path of nodes that are known.
    let (xml, signature) = a.inventory();
    let path = format!("/inventory-updates/{A}.ocs");
    assert_eq!(
        a.put(&format!("{path}.gz"), pack(xml.as_bytes())).await,
        202
    );
    assert_eq!(a.put(&format!("{path}.sign"), signature).await, 201);
    site.until_drained().await;
    let forwarded = "rudder_relayd_inventories_total{status=\"forward_ok\"}";
    assert_eq!(metric(&a, forwarded).await, "2");
    // What it says of its server moves no node that is accepted.
    let shown = site.admin.get(&format!("nodes/{A}")).await;
    assert_eq!(shown["nodes"][0]["policyServerId"], *site.relay().id());
    // There is no REST API here.
    assert_eq!(a.get("/rudder/api/latest/nodes", &[]).await.0, 404);
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_needs_nothing_but_the_relays_address() {
    let site = Site::start().await;
    let (folder, root) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let config = daemon::Config {
        server: site.relay_url(),
        server_certificate: None,
        policy_key: None,
        data: folder.path().to_path_buf(),
        root: root.path().to_path_buf(),
        hostname: Some("web-1.example.org".into()),
        interval: None,
        force_audit: false,
        admin_listen: None,
    };
    let mut sent = 0;
    let ran = async || {
        let round = daemon::once(config.clone()).await.unwrap();
        assert_eq!(round.problems, [""; 0]);
        sent += round.sent;
        round.ran
    };
    until(ran, "a run").await;
    assert_eq!(sent, 1);
    site.until_drained().await;
    assert_eq!(site.runs().await, 1);
    let id = std::fs::read_to_string(folder.path().join("uuid")).unwrap();
    let shown = site.admin.get(&format!("nodes/{}", id.trim())).await;
    assert_eq!(shown["nodes"][0]["policyServerId"], *site.relay().id());
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_refuses_what_the_server_would_and_forwards_none_of_it() {
    let site = Site::start().await;
    let (a, b) = (site.child(A).await, site.child(B).await);
    let start = now();
    let log = a.log(start, "c", &[REPORT]);
    let forged = metric(&a, &reports("forged")).await;
    assert_eq!(forged, "0");
    // By the key of another child; altered on its way; not signed at all.
    assert_eq!(a.put(&a.path(start), b.signed(log.as_bytes())).await, 403);
    let message = a.signed(log.as_bytes());
    let mut plain = String::new();
    let mut packed = flate2::read::GzDecoder::new(&message[..]);
    std::io::Read::read_to_string(&mut packed, &mut plain).unwrap();
    let altered = plain.replacen("result_success", "result_error", 1);
    assert_eq!(a.put(&a.path(start), pack(altered.as_bytes())).await, 403);
    assert_eq!(a.put(&a.path(start), pack(log.as_bytes())).await, 403);
    // Signed by the node, about another; damaged; a name that is none.
    let foreign = a.signed(b.log(start, "c", &[REPORT]).as_bytes());
    assert_eq!(a.put(&a.path(start), foreign).await, 400);
    assert_eq!(a.put(&a.path(start), &b"\x1f\x8b damaged"[..]).await, 400);
    assert_eq!(a.put("/reports/x", "x").await, 400);
    // Of one that is the server's, and not behind this relay.
    let other = "00000000-0000-4000-8000-000000000001";
    let other = Node::new(other, &site.server_url());
    assert_eq!(other.enrol().await, 201);
    let other = Node::with(&other.id, other.identity.clone(), &site.relay_url());
    assert_eq!(other.run(start, "c", &[REPORT]).await, 404);
    // A new key for a node that is known, and an altered inventory.
    let thief = Node::new(A, &site.relay_url());
    assert_eq!(thief.enrol_behind(site.relay().id()).await, 403);
    // It came over this relay before.
    let relay = site.relay().id();
    let headers = [("x-compliance-relays", relay)];
    let path = a.path(start);
    let answer = a.request(Method::PUT, &path, &headers, message.clone());
    assert_eq!(answer.await.unwrap().status, 508);

    for (status, count) in [("forged", "3"), ("invalid", "3"), ("ok", "0")] {
        assert_eq!(metric(&a, &reports(status)).await, count, "{status}");
    }
    let refused = std::fs::read_dir(site.relay_folder.path().join("relay/refused"));
    let refused: Vec<_> = refused.unwrap().map(|file| file.unwrap().path()).collect();
    assert!(refused.len() >= 8, "{refused:?}");
    let kept = refused.iter().map(|path| std::fs::read(path).unwrap());
    let kept: Vec<_> = kept
        .filter(|file| file.ends_with(&pack(altered.as_bytes())))
        .collect();
    assert_eq!(kept.len(), 1);
    assert_eq!(site.runs().await, 0);
    // The real one goes through.
    assert_eq!(a.put(&a.path(start), message).await, 201);
    site.until_drained().await;
    assert_eq!(site.runs().await, 1);
    let direct = site.direct(&a);
    for status in ["forged", "invalid"] {
        assert_eq!(metric(&direct, &reports(status)).await, "0", "{status}");
    }
    site.stop().await;
}
