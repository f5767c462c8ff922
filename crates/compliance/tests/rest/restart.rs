//! A server that starts anew finds what it had, and makes none of it again.

use super::*;
use crate::peers::metric;

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_made_again_that_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let (server, admin, node) = reported(folder.path()).await;
    // Other definitions, of which only what differs is kept.
    let mut changed = super::folder();
    changed["parameters"]["p"]["value"] = json!({"a": 2});
    admin.apply(&changed).await;
    let policy = node.policy().await;
    let path = format!("nodes/{A}/compliance");
    let (shown, all) = (admin.get(&path).await, admin.get("definitions").await);
    server.stop().await.unwrap();

    let server = crate::peers::server(folder.path()).await;
    let admin = Admin::of(folder.path(), &url(&server)).await;
    assert_eq!(admin.get("definitions").await, all);
    assert_eq!(admin.get(&path).await, shown);
    let node = Node::with(A, node.identity, &url(&server));
    assert_eq!(node.policy().await, policy);
    // The server's own policy is not kept, so that it is another each time.
    assert_eq!(metric(&node, "compliance_policies_total").await, "1");
    let computed = metric(&node, "compliance_policies_computed_total").await;
    assert_eq!(computed, "2");
    server.stop().await.unwrap();
}
