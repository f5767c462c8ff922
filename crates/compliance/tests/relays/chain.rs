//! Relays behind relays.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_may_be_behind_a_relay() {
    let mut site = Site::start().await;
    let inner_folder = tempfile::tempdir().unwrap();
    let inner = relay::Config {
        hostname: Some("inner.example.org".into()),
        ..relay_config(inner_folder.path(), &site.relay_url())
    };
    let inner = relay::start(inner, logger()).await.unwrap();
    // It comes to the server over the outer one, and is behind that.
    promote(&site.admin, inner.id()).await;
    let shown = site.admin.get(&format!("nodes/{}", inner.id())).await;
    assert_eq!(shown["nodes"][0]["policyServerId"], *site.relay().id());

    let a = Node::new(A, &relay_url(&inner));
    until(
        async || a.enrol_behind(inner.id()).await == 201,
        "the inventory",
    )
    .await;
    until(
        async || fetched(&a, A).await == 200,
        "a policy over two relays",
    )
    .await;
    let shown = site.admin.get(&format!("nodes/{A}")).await;
    assert_eq!(shown["nodes"][0]["policyServerId"], *inner.id());
    let b = site.child(B).await;
    let (config_id, _) = a.policy().await;
    let start = now();
    assert_eq!(a.run(start, &config_id, &[REPORT]).await, 201);
    until(async || site.runs().await == 1, "the run").await;

    // Each relay has what is behind it: the inner one nothing of its neighbour.
    let inner_at_outer = as_peer(inner_folder.path(), &site.relay_url());
    assert_eq!(fetched(&inner_at_outer, A).await, 200);
    assert_eq!(fetched(&inner_at_outer, B).await, 403);
    assert_eq!(
        fetched(&as_peer(inner_folder.path(), &site.server_url()), B).await,
        403
    );
    let b_at_inner = Node::with(B, b.identity.clone(), &relay_url(&inner));
    assert_eq!(b_at_inner.run(start, &config_id, &[REPORT]).await, 404);
    assert_eq!(metric(&b, "rudder_relayd_managed_nodes_total").await, "2");
    assert_eq!(metric(&b, "rudder_relayd_sub_nodes_total").await, "3");

    // No circle: the outer one cannot be behind the inner one.
    let place = Some(json!({"policyServerId": inner.id()}));
    let path = format!("nodes/{}", site.relay().id());
    let refused = site.admin.call(Method::POST, &path, place).await;
    assert_eq!(refused.status, 400, "{}", refused.body);

    // Both work through an outage of the server.
    site.stop_server().await;
    for run in 1..6 {
        assert_eq!(a.run(start + run, &config_id, &[REPORT]).await, 201);
    }
    site.start_server().await;
    until(async || site.runs().await == 6, "all runs").await;
    inner.stop().await.unwrap();
    site.stop().await;
}
