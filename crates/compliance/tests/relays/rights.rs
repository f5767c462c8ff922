//! A relay has a right of its own: to the policies of the nodes that are behind it.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn policies_are_for_a_node_and_the_relay_that_it_is_behind() {
    let site = Site::start().await;
    let a = site.child(A).await;
    let b = Node::new(B, &site.server_url());
    assert_eq!(b.enrol().await, 201);
    b.policy().await;
    let relay = site.relay().id().to_owned();
    let (server, at_relay) = (site.server_url(), site.relay_url());
    let relay_at = |url: &str| as_peer(site.relay_folder.path(), url);
    let with = |node: &Node, url: &str| Node::with(&node.id, node.identity.clone(), url);

    // At the server: the relay gets its child's and its own, and not that of another node.
    assert_eq!(fetched(&relay_at(&server), A).await, 200);
    assert_eq!(fetched(&relay_at(&server), &relay).await, 200);
    assert_eq!(fetched(&relay_at(&server), B).await, 403);
    assert_eq!(fetched(&with(&a, &server), B).await, 403);
    // At the relay: a child gets its own. One that is not behind it gets nothing, nor does anybody
    // get what is another's.
    assert_eq!(fetched(&a, A).await, 200);
    assert_eq!(fetched(&a, B).await, 403);
    assert_eq!(fetched(&a, &relay).await, 403);
    assert_eq!(fetched(&with(&b, &at_relay), B).await, 403);
    assert_eq!(fetched(&with(&b, &at_relay), A).await, 403);
    // A certificate with the child's name, of another key.
    assert_eq!(fetched(&Node::new(A, &at_relay), A).await, 403);
    assert_ne!(
        metric(&a, "compliance_policy_requests_total{status=\"forbidden\"}").await,
        "0"
    );

    // The list is for the relay alone, and names who is behind it.
    let list = format!("/relays/{relay}/nodes.json");
    let (status, listed) = relay_at(&server).get(&list, &[]).await;
    assert_eq!(status, 200);
    assert!(listed.contains(A) && !listed.contains(B), "{listed}");
    for node in [&a, &b] {
        assert_eq!(with(node, &server).get(&list, &[]).await.0, 403);
        assert_eq!(with(node, &at_relay).get(&list, &[]).await.0, 403);
    }
    let own = format!("/relays/{A}/nodes.json");
    assert_eq!(with(&a, &server).get(&own, &[]).await.0, 403);
    assert_eq!(a.get(&own, &[]).await.0, 403);
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_administrator_puts_nodes_behind_relays_and_takes_them_away() {
    let site = Site::start().await;
    let relay = site.relay().id().to_owned();
    let b = Node::new(B, &site.server_url());
    assert_eq!(b.enrol().await, 201);
    let at_relay = Node::with(B, b.identity.clone(), &site.relay_url());
    let place = async |node: &str, server: &str| {
        let body = json!({"policyServerId": server});
        let path = format!("nodes/{node}");
        site.admin.call(Method::POST, &path, Some(body)).await
    };
    let before = b.policy().await.0;
    let moved = place(B, &relay).await;
    assert_eq!(moved.body["data"]["nodes"][0]["policyServerId"], *relay);
    // Its policy is another: it names its server.
    assert_ne!(b.policy_after(&before).await, before);
    until(
        async || fetched(&at_relay, B).await == 200,
        "the policy over the relay",
    )
    .await;

    // Only behind a relay, and never in a circle.
    for (node, server, why) in [
        (B, A, "is no accepted relay"),
        (B, B, "is no accepted relay"),
        (&*relay, &*relay, "is that node"),
    ] {
        let refused = place(node, server).await;
        assert_eq!(refused.status, 400, "{}", refused.body);
        assert_eq!(refused.body["fields"][0], "policyServerId");
        let told = refused.body["errorDetails"].as_str().unwrap();
        assert!(told.contains(why), "{told}");
    }
    // A relay is needed as long as nodes are behind it.
    let path = format!("nodes/{relay}");
    let demote = || Some(json!({"kind": "node"}));
    let refused = site.admin.call(Method::POST, &path, demote()).await;
    assert_eq!(refused.status, 409, "{}", refused.body);
    assert!(refused.body["errorDetails"].as_str().unwrap().contains(B));
    assert_eq!(
        site.admin.call(Method::DELETE, &path, None).await.status,
        409
    );

    assert_eq!(place(B, "root").await.status, 200);
    until(
        async || fetched(&at_relay, B).await == 403,
        "the policy to be the server's",
    )
    .await;
    // What the relay kept of it is gone.
    let kept = site
        .relay_folder
        .path()
        .join(format!("relay/policies/{B}.policy"));
    until(async || !kept.exists(), "the policy to be forgotten").await;
    assert_eq!(
        site.admin.call(Method::POST, &path, demote()).await.status,
        200
    );
    // It serves nobody any more, and refuses nothing for good.
    let refused = async || at_relay.run(now(), "c", &[REPORT]).await == 503;
    until(refused, "the relay to be none").await;
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_that_nobody_made_one_serves_nobody() {
    let (folder, relay_folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = server::start(config(folder.path()), logger())
        .await
        .unwrap();
    let admin = Admin::of(folder.path(), &url(&server)).await;
    let config = relay_config(relay_folder.path(), &url(&server));
    let relay = relay::start(config, logger()).await.unwrap();
    let a = Node::new(A, &relay_url(&relay));
    // New nodes reach the server all the same, which puts them behind itself.
    assert_eq!(a.enrol_behind(relay.id()).await, 201);
    accepted(&admin, A).await;
    let shown = admin.get(&format!("nodes/{A}")).await;
    assert_eq!(shown["nodes"][0]["policyServerId"], "root");
    let answer = a
        .request(Method::PUT, &a.path(now()), &[], "x")
        .await
        .unwrap();
    assert_eq!(answer.status, 503);
    assert!(answer.headers.contains_key("retry-after"));
    assert_eq!(fetched(&a, A).await, 503);
    assert_eq!(
        fetched(&as_peer(relay_folder.path(), &url(&server)), A).await,
        403
    );
    // Two relays never use one folder.
    let second = relay_config(relay_folder.path(), &url(&server));
    let refused = relay::start(second, logger()).await.unwrap_err();
    assert!(matches!(refused, relay::Error::Locked(_)), "{refused}");
    // One that is started while another ends waits for it.
    let third = relay_config(relay_folder.path(), &url(&server));
    let ended = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        relay.stop().await
    };
    let (third, ended) = tokio::join!(relay::start(third, logger()), ended);
    ended.unwrap();
    third.unwrap().stop().await.unwrap();
    server.stop().await.unwrap();
}
